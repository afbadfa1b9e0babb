"""Scores as assessments in MLflow. An extra, ``mlflow``, imported on first use."""

import json
import re
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from itertools import groupby
from typing import Any

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, ExportError
from judgekit.integrations.destination import ExportTally
from judgekit.integrations.exported import ExportedScore, answering_judges
from judgekit.judges.providers.secrets import SecretMask, environment_secrets
from judgekit.runs.rows import Row
from judgekit.threads import run_in_thread

_TRACE_ID = re.compile(r"tr-[0-9a-f]{32}|trace:/.+")
_SCORE_ID = "judgekit.score_id"


class MLflow:
    """The tracking server or store of MLflow (``MLFLOW_TRACKING_URI``, or ``mlflow.set_tracking_uri``)."""

    def __init__(self) -> None:
        try:
            mlflow: Any = import_module("mlflow")
            self._entities: Any = import_module("mlflow.entities")
            self._rejected: type[Exception] = import_module("mlflow.exceptions").MlflowException
            self._client: Any = import_module("mlflow.tracing.client").TracingClient()
        except ImportError as error:
            raise ConfigError(f"MLflow cannot be imported ({error}): {install_command('mlflow')}") from error
        self._masked = SecretMask(environment_secrets())
        self.system = f"MLflow at {re.sub('//[^/@]*@', '//', str(mlflow.get_tracking_uri()))}"

    async def send(self, scores: Sequence[ExportedScore], tally: ExportTally, /) -> None:
        """Send the scores whose traces MLflow has. They replace an earlier export of themselves."""
        for trace_id, those in groupby(scores, key=lambda exported: _trace_id(exported.row)):
            of_trace = list(those)
            if trace_id is None:
                tally.left_out["the recording has no trace id of MLflow"] += len(of_trace)
                continue
            try:
                await run_in_thread(partial(self._send, trace_id, of_trace))
            except self._rejected as error:
                if getattr(error, "error_code", None) != "RESOURCE_DOES_NOT_EXIST":
                    raise ExportError(self._masked(f"{self.system}: {error}")) from None
                tally.left_out["MLflow has no trace of this id"] += len(of_trace)
            else:
                tally.exported += len(of_trace)

    def _send(self, trace_id: str, scores: Sequence[ExportedScore]) -> None:
        """Create the assessments of a trace, and delete those of an earlier export, whose source MLflow does not update."""
        assessments: Sequence[Any] = self._client.get_trace_info(trace_id).assessments or ()
        before = {dict[str, str](kept.metadata or {}).get(_SCORE_ID): kept for kept in assessments}
        for exported in scores:
            self._client.log_assessment(trace_id, self._assessment(trace_id, exported))
            if (earlier := before.get(str(exported.id))) is not None:
                self._client.delete_assessment(trace_id, earlier.assessment_id)

    def _assessment(self, trace_id: str, exported: ExportedScore) -> Any:
        score, entities = exported.score, self._entities
        kind, source = ("LLM_JUDGE", ", ".join(answering_judges(score))) if score.calls else ("CODE", "judgekit")
        unscored = score.status != "scored"
        return entities.Feedback(
            trace_id=trace_id,
            name=score.scorer,
            value=score.value,
            error=entities.AssessmentError(score.error or score.status, score.reason) if unscored else None,
            source=entities.AssessmentSource(kind, source),
            rationale=score.reason,
            metadata=_metadata(exported),
        )

    async def aclose(self) -> None:
        """Do nothing: MLflow has connections of its own."""


def _trace_id(row: Row) -> str | None:
    return next((name for name in (row.trace_id, row.sample_id) if name and _TRACE_ID.fullmatch(name)), None)


def _metadata(exported: ExportedScore) -> dict[str, str]:
    """Return the other values of a score as texts. The name of the cost is MLflow's own."""
    score = exported.score
    fields = {
        _SCORE_ID: str(exported.id),
        "judgekit.sample_id": exported.row.sample_id,
        "judgekit.status": score.status,
        "judgekit.label": score.label,
        "judgekit.details": json.dumps(score.details) if score.details else None,
        "judgekit.warnings": "; ".join(score.warnings) or None,
        "mlflow.assessment.judgeCost": None if not score.calls or (cost := score.usd_paid) is None else str(cost),
    }
    return {name: text for name, text in fields.items() if text is not None}

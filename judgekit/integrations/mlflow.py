"""Scores as assessments in MLflow. An extra, ``judgekit[mlflow]``, imported on first use."""

import json
import re
import warnings
from collections.abc import Iterable

from judgekit.errors import ConfigError, join_limited
from judgekit.runs.rows import Row
from judgekit.score import Score

_TRACE_ID = re.compile(r"tr-[0-9a-f]{32}|trace:/.+")
_IDS_SHOWN = 5


def log_to_mlflow(rows: Iterable[Row]) -> int:
    """Log each score as an assessment of its trace, to the tracking server of MLflow (``mlflow.set_tracking_uri``).

    A trace is found by its id in MLflow, which is that of the row's trace or sample. The reason is the rationale; the
    source is the judges that answered (all that were asked, if the score failed), or else this code. Status, label,
    details and the cost are metadata. A skipped, failed or abstained score has an error instead of a value, which
    MLflow requires; its code is the class of the error, or the status. A score that is logged twice is stored twice.

    Args:
        rows: A `Run`, or some of its rows.

    Returns:
        The number of scores that were logged. A warning counts those that were not, since MLflow has no trace of them.

    Raises:
        ConfigError: MLflow is not installed.
        MlflowException: MLflow rejects a score; a note says how many were logged before.
    """
    try:
        import mlflow  # noqa: PLC0415
        from mlflow.entities import AssessmentError, AssessmentSource  # noqa: PLC0415
        from mlflow.exceptions import MlflowException  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"MLflow cannot be imported ({error}): pip install 'judgekit[mlflow]'") from error
    logged, absent = 0, list[str]()
    for row in rows:
        score, trace_id = row.score, _trace_id(row)
        if trace_id is None:
            absent.append(row.sample_id)
            continue
        unscored = score.status != "scored"
        kind, source = ("LLM_JUDGE", _judges(score)) if score.calls else ("CODE", "judgekit")
        try:
            mlflow.log_feedback(
                trace_id=trace_id,
                name=score.scorer,
                value=score.value,
                error=AssessmentError(score.error or score.status, score.reason) if unscored else None,
                source=AssessmentSource(kind, source),
                rationale=score.reason,
                metadata=_metadata(row.sample_id, score),
            )
        except MlflowException as error:
            if getattr(error, "error_code", None) != "RESOURCE_DOES_NOT_EXIST":
                error.add_note(f"{logged} scores were logged before this one")
                raise
            absent.append(row.sample_id)
        else:
            logged += 1
    if absent:
        ids = join_limited(dict.fromkeys(map(repr, absent)), _IDS_SHOWN, ", ")
        told = (
            f"{len(absent)} of {logged + len(absent)} scores were not logged: MLflow has no trace of the samples {ids}"
        )
        warnings.warn(told, stacklevel=2)
    return logged


def _trace_id(row: Row) -> str | None:
    return next((one for one in (row.trace_id, row.sample_id) if one is not None and _TRACE_ID.fullmatch(one)), None)


def _judges(score: Score) -> str:
    """Return the judges that answered, without those that they replaced; for a failed score, all that were asked."""
    asked = [call.judge for call in score.calls]
    answered = [call.judge for call in score.calls if call.error is None and score.status != "failed"]
    return ", ".join(dict.fromkeys(answered or asked))


def _metadata(sample_id: str, score: Score) -> dict[str, str]:
    """Return the other values of a score. The name of the cost is MLflow's own."""
    found = {
        "judgekit.sample_id": sample_id,
        "judgekit.status": score.status,
        "judgekit.label": score.label,
        "judgekit.details": json.dumps(score.details) if score.details else None,
        "judgekit.warnings": "; ".join(score.warnings) or None,
        "mlflow.assessment.judgeCost": None if not score.calls or (cost := score.usd_paid) is None else str(cost),
    }
    return {name: text for name, text in found.items() if text is not None}

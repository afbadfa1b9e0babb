"""Scores with what other systems find them by: the ids of their traces, and ids of their own."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID, uuid5

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import JUDGED_MARK
from judgekit.formats.spans import read_spans
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import Score
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_NAMESPACE = UUID("5b4d1d0f-5f53-4b0a-9a35-4c0b3f2c7c11")
_TRACE_ID = re.compile(r"(?i)(?!0{32})[0-9a-f]{32}")


class Place(NamedTuple):
    """The OpenTelemetry trace that a score belongs to, and the start, as far as known."""

    trace_id: str | None = None
    started_at: datetime | None = None

    @classmethod
    def of(cls, trace: Trace) -> "Place":
        """Return the trace in which the conversation ended, and when it started."""
        started_at = trace.started_at
        if started_at is not None and started_at.tzinfo is None:
            started_at = started_at.replace(tzinfo=UTC)
        try:
            spans = read_spans(FieldTracker({"spans": trace.extra.get("spans")}))
        except TraceError:  # spans of another format
            spans = []
        return cls(_valid(spans[-1].trace_id) if spans else None, started_at)


class ExportedScore(NamedTuple):
    """A score to export.

    Attributes:
        id: A UUID that is the same whenever the same scorer scores the same sample of the same recordings.
        row: The row of the score.
        place: The OpenTelemetry trace that the score belongs to; its own trace id if the recording has no spans.
        at: When the conversation or, if that is not recorded, the run began.
    """

    id: UUID
    row: Row
    place: Place
    at: datetime

    @property
    def score(self) -> Score:
        """The score."""
        return self.row.score

    @property
    def metadata(self) -> dict[str, JsonValue]:
        """The parts of the score that other systems have no field for."""
        score = self.score
        fields: dict[str, JsonValue] = {
            "judgekit.sample_id": self.row.sample_id,
            "judgekit.status": score.status,
            JUDGED_MARK: bool(score.calls),
            "judgekit.judges": ", ".join(answering_judges(score)) or None,
            "judgekit.label": score.label,
            "judgekit.confidence": score.confidence,
            "judgekit.details": score.details or None,
            "judgekit.warnings": list(score.warnings) or None,
            "judgekit.error": score.error,
            "judgekit.cost_usd": score.usd_paid if score.calls else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def exported_scores(run: Run, samples: Iterable[Sample] | None) -> Iterator[ExportedScore]:
    """Yield the scores of a run, with spans and times of these samples or else of those that the run kept."""
    kept = (sample for _, sample in run.conversations()) if samples is None else samples
    locations = _places(kept)
    signatures, repeated, recordings = (
        {record.name: record.signature for record in run.scorers},
        {*run.duplicate_ids},
        run.recordings,
    )
    for row in run:
        location = locations.get(row.sample_id) or Place()
        if location.trace_id is None:
            location = location._replace(trace_id=_valid(row.trace_id) or _valid(row.sample_id))
        number = row.index if row.sample_id in repeated else None
        parts = [recordings, row.trace_id, row.sample_id, number, row.scorer, signatures[row.scorer]]
        yield ExportedScore(uuid5(_NAMESPACE, json.dumps(parts)), row, location, location.started_at or run.started_at)


def answering_judges(score: Score) -> list[str]:
    """Return the judges that answered, without those that they replaced; for a failed score, all that were asked."""
    judges = [call.judge for call in score.calls]
    answered = [call.judge for call in score.calls if call.error is None and score.status != "failed"]
    return [*dict.fromkeys(answered or judges)]


def _places(samples: Iterable[Sample]) -> Mapping[str, Place]:
    """Return the places of samples by their ids. An id with several places has an empty one."""
    locations: dict[str, Place] = {}
    for sample in samples:
        location = Place.of(sample.trace)
        if locations.setdefault(sample.id, location) != location:
            locations[sample.id] = Place()
    return locations


def _valid(trace_id: str | None) -> str | None:
    return trace_id if trace_id is not None and _TRACE_ID.fullmatch(trace_id) else None

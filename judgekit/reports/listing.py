"""The samples of a run that a report lists, in columns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.runs.counted import CountedRow
from judgekit.runs.results import Run
from judgekit.runs.rows import LabelValue
from judgekit.score import STATUSES, ScoreStatus

MAX_LISTED = 10_000
"""The most samples in one file."""


class ListedScore(NamedTuple):
    """A score as the list shows it."""

    status: ScoreStatus
    value: float | None
    label: str | None


class ListedSample(NamedTuple):
    """A sample of the list, with its scores by scorer."""

    number: int
    id: str
    domain: str | None
    labels: Mapping[str, LabelValue]
    scores: Mapping[str, ListedScore]


@dataclass(frozen=True)
class Listing:
    """The samples of a run that are listed, by number.

    Attributes:
        entries: The listed samples. If there are more than `MAX_LISTED`, these are wanted ones first, then those that failed
            or abstained, then those with the lowest values.
        samples: The number of all samples.
    """

    entries: tuple[ListedSample, ...]
    samples: int

    @classmethod
    def of(cls, run: Run, *, included: Collection[int] = (), left_out: Collection[int] = ()) -> "Listing":
        """Return the listing of a run.

        Args:
            run: The run.
            included: The numbers of samples to list before others.
            left_out: The numbers of samples not to list.
        """
        numbers = set(run.worst_samples(MAX_LISTED, included=included, left_out=left_out))
        rows = groupby(run.counted_rows(numbers), key=lambda row: row.index)
        return cls(tuple(_entry([*sample_rows]) for _, sample_rows in rows), run.store.scored_samples(run.number))

    def columns(self, scorers: Iterable[str]) -> JsonValue:
        """Return the list in the form that the page reads."""
        return {
            "numbers": [entry.number for entry in self.entries],
            "ids": [entry.id for entry in self.entries],
            "domains": [entry.domain for entry in self.entries],
            "labels": [dict(entry.labels) or None for entry in self.entries],
            "scores": [self._column(name) for name in scorers],
        }

    def _column(self, scorer: str) -> JsonValue:
        cells = [entry.scores.get(scorer) for entry in self.entries]
        return {
            "status": "".join(str(STATUSES.index(cell.status)) if cell else "-" for cell in cells),
            "value": [None if cell is None or cell.value is None else round(cell.value, 9) for cell in cells],
            "label": [cell.label if cell else None for cell in cells],
        }


def _entry(rows: Sequence[CountedRow]) -> ListedSample:
    row = rows[0]
    scores: dict[str, ListedScore] = {
        score_row.scorer: ListedScore(score_row.score.status, score_row.score.value, score_row.score.label)
        for score_row in rows
    }
    return ListedSample(row.index, row.sample_id, row.domain, row.labels, scores)

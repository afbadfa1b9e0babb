"""The samples of a run that a report lists, in columns."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.runs.results import Run
from judgekit.runs.rows import LabelValue, Row
from judgekit.score import STATUSES, ScoreStatus

MAX_LISTED = 10_000
"""The most samples in one file."""


class ListedScore(NamedTuple):
    """A score as the list shows it; see `first_bad_turn`."""

    status: ScoreStatus
    value: float | None
    label: str | None
    first_bad: JsonValue = None


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
        is_paged: Whether the page reads its list from a server instead.
    """

    entries: tuple[ListedSample, ...]
    samples: int
    is_paged: bool = False

    @property
    def listed(self) -> int:
        """The number of samples that the page can list."""
        return self.samples if self.is_paged else len(self.entries)

    @classmethod
    def paged(cls, run: Run) -> "Listing":
        """Return the listing of a run whose samples the page reads from a server."""
        return cls((), run.store.counts(run.number).samples, is_paged=True)

    @classmethod
    def of(cls, run: Run, *, included: Collection[int] = (), left_out: Collection[int] = ()) -> "Listing":
        """Return the listing of a run, with ``included`` samples before others, and without those ``left_out``."""
        count = 0

        def candidates() -> Iterator[tuple[float, int, ListedSample]]:
            nonlocal count
            for sample in run.scored_samples():
                count += 1
                if sample.number not in left_out:
                    concern = -2.0 if sample.number in included else min(map(_concern, sample.rows))
                    yield concern, sample.number, _entry(sample.rows)

        worst = nsmallest(MAX_LISTED, candidates(), key=lambda candidate: candidate[:2])
        return cls(tuple(sorted((entry for *_, entry in worst), key=lambda entry: entry.number)), count)

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
            "first_bad": [cell.first_bad if cell else None for cell in cells],
        }


def first_bad_turn(row: Row) -> JsonValue:
    """Return the number of the first turn that did not pass, if the scorer judged turns."""
    bad = row.score.details.get("first_bad")
    return bad.get("turn") if isinstance(bad, dict) else None


def _concern(row: Row) -> float:
    """Return a rank that is lower the more a score deserves a look."""
    if row.score.value is not None:
        return row.score.value
    return 2.0 if row.score.status == "skipped" else -1.0


def _entry(rows: Sequence[Row]) -> ListedSample:
    first = rows[0]
    scores: dict[str, ListedScore] = {
        row.scorer: ListedScore(row.score.status, row.score.value, row.score.label, first_bad_turn(row)) for row in rows
    }
    return ListedSample(first.index, first.sample_id, first.domain, first.labels, scores)

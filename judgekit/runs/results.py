"""What a run gives: a row for each score."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from judgekit.runs.summary import Summary
from judgekit.score import Score
from judgekit.traces.message import Record


class Row(Record):
    """One score in a run. ``index`` is the sample's position among the samples, from 0."""

    sample_id: str
    index: int
    score: Score


@dataclass(frozen=True)
class Run:
    """The rows of a run: in the order of the samples, and within a sample in the order of the scorers.

    ``interrupted`` means that it was stopped before all samples were scored. ``print`` shows a line a scorer.
    """

    rows: tuple[Row, ...] = field(repr=False)
    interrupted: bool = False

    @cached_property
    def summary(self) -> Summary:
        """A line a scorer."""
        summary = Summary()
        for row in self.rows:
            summary.add(row.score)
        return summary

    @cached_property
    def duplicate_ids(self) -> tuple[str, ...]:
        """Ids that more than one sample has, so that their rows cannot be told apart by id."""
        first: dict[str, int] = {}
        return tuple(
            dict.fromkeys(row.sample_id for row in self.rows if first.setdefault(row.sample_id, row.index) != row.index)
        )

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        lines = [str(self.summary)]
        if self.interrupted:
            lines.append("interrupted: only the samples that were done are counted")
        if self.duplicate_ids:
            shown = ", ".join(map(repr, self.duplicate_ids[:5]))
            lines.append(f"{len(self.duplicate_ids)} ids belong to more than one sample: {shown}")
        return "\n".join(lines)

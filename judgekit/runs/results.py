"""What a run gives: a row for each score."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from judgekit.runs.conduct import Efforts
from judgekit.runs.summary import Summary
from judgekit.score import Score
from judgekit.traces.message import Record


class Row(Record):
    """One score in a run. ``index`` is the sample's position among the samples, from 0."""

    sample_id: str
    index: int
    score: Score

    def without_text(self) -> "Row":
        """The row without the words of its reason and details, which may quote the conversation."""
        details = {name: _without_text(value) for name, value in self.score.details.items()}
        return self.model_copy(update={"score": self.score.model_copy(update={"reason": "", "details": details})})


def _without_text(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return ""
    if isinstance(value, list):
        return [_without_text(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_text(item) for name, item in value.items()}
    return value


@dataclass(frozen=True)
class Run:
    """The rows of a run: in the order of the samples, and within a sample in the order of the scorers.

    ``stopped`` says why it ended before all samples were scored; what was answered until then is cached. ``efforts`` is
    what the conversations took. ``print`` shows both, and a line a scorer.
    """

    rows: tuple[Row, ...] = field(repr=False)
    stopped: str = ""
    efforts: Efforts = field(default_factory=Efforts, repr=False)

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
        lines = [told for told in (str(self.efforts), str(self.summary)) if told]
        if self.stopped:
            lines.append(f"stopped early ({self.stopped}): only the samples that were done are counted")
        if self.duplicate_ids:
            shown = ", ".join(map(repr, self.duplicate_ids[:5]))
            lines.append(f"{len(self.duplicate_ids)} ids belong to more than one sample: {shown}")
        return "\n".join(lines)

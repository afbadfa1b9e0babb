"""Losses of tool scorers, grouped by tool, argument and what came instead. No judge is asked."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from judgekit.diff import ComparedCalls
from judgekit.errors import count_text
from judgekit.look_alikes import tell_apart
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import Score
from judgekit.traces.rendering import quoted_names
from judgekit.traces.tree import MessageNumber

LossKind: TypeAlias = Literal["wrong_argument", "unreadable_arguments", "wrong_order", "missing_tool", "extra_tool"]

_FEW = 3
_LOOKED_AT = 20  # the lowest scores of a scorer, which tell whether it compares tool calls
_LONGEST = 60
_COMPARED = 1_000  # characters of an argument; texts that agree in so many count as equal


class LossSample(NamedTuple):
    """A sample with a loss: its number in the run, its id, and the message of the first such call, if one was made."""

    number: int
    id: str
    message: MessageNumber | None


@dataclass(frozen=True)
class Loss:
    """A loss that some samples have in common, by one scorer; ``print`` shows it on one line.

    Texts are short, and show where they look alike and differ. What controls a terminal, or is markup elsewhere, is not
    yet escaped.

    Attributes:
        scorer: The name of the scorer.
        kind: The kind. Calls of a ``missing_tool`` or ``extra_tool`` have no counterpart.
        tool: The name of the tool.
        argument: The path of a wrong argument, with ``[*]`` for any element of a list.
        came_instead: The wrong argument as JSON, or ``nothing``; ``None`` if it is another one in each sample.
        expected: The expected argument, if it is the same in all samples.
        samples: The samples with this loss, each once.
    """

    scorer: str
    kind: LossKind
    tool: str
    argument: str | None
    came_instead: str | None
    expected: str | None
    samples: tuple[LossSample, ...]
    _units: Mapping[int, str | None] = field(repr=False)

    @property
    def total(self) -> int:
        """The number of samples that could have this loss: all that were scored, or all that changed."""
        return len(self._units)

    @property
    def share(self) -> Estimate:
        """The share of samples with this loss; its interval counts samples of a group, or copies, once."""
        lossy = {sample.number for sample in self.samples}
        return Estimate.mean([float(number in lossy) for number in self._units], [*self._units.values()])

    @property
    def text(self) -> str:
        """The loss without the number of samples."""
        if self.argument is None:
            return f"{self.kind.replace('_', ' ')}: {self.tool}"
        expected = "" if self.expected is None else f", expected {self.expected}"
        return f"{self.tool}: {self.argument} got {self.came_instead or 'something else each time'}{expected}"

    def __str__(self) -> str:
        return f"{self.text} ({len(self.samples):,} of {count_text(self.total, 'sample')})"

    def as_json(self) -> dict[str, JsonValue]:
        """Return the loss as JSON, with all its samples."""
        samples: JsonValue = [sample._asdict() for sample in self.samples]
        names = ("kind", "tool", "argument", "came_instead", "expected", "text", "total")
        return {**{name: getattr(self, name) for name in names}, "samples": samples}


def losses(rows: Iterable[Row]) -> Sequence[Loss]:
    """Return the losses in rows of a run, by scorer, those in most samples first.

    Rows of other scorers have none. Each wrong argument, and each missing, extra or unordered call that the scorer does
    not allow, is in exactly one loss. Wrong arguments that occur in one sample each are in one loss together.

    Args:
        rows: All rows of a run, or of some scorers, including those without losses, of which shares are taken.
    """
    return _grouped((row, _lost(row.score)) for row in rows if row.score.value is not None)


def run_losses(run: Run) -> Mapping[str, Sequence[Loss]]:
    """Return the losses of each scorer that has any."""
    names = [scorer.name for scorer in run.scorers]
    lossy = [name for name in names if any(any(_lost(row.score)) for row in run.lowest(name, _LOOKED_AT))]
    return {name: losses(run.rows(scorer=name)) for name in lossy}


def frequent_losses(losses: Iterable[Loss]) -> Sequence[Loss]:
    """Return the losses to show in few lines: the first three of those that several samples have."""
    return [loss for loss in losses if len(loss.samples) > 1][:_FEW]


def new_losses(changes: Iterable[tuple[Row, Row]]) -> Sequence[Loss]:
    """Return what went wrong in the second row of each sample, except for what went wrong in its first row too."""
    return _grouped((after, _new(before.score, after.score)) for before, after in changes)


class _Lost(NamedTuple):
    """One thing that went wrong in one sample."""

    kind: LossKind
    tool: str
    argument: str | None = None
    came_instead: str | None = None
    expected: str | None = None


class _Details(ComparedCalls, defer_build=True):
    fp: float = 1
    fn: float = 1


_Located: TypeAlias = tuple[_Lost, MessageNumber | None]
"""What went wrong, with the message of the call."""


def _lost(score: Score) -> Iterator[_Located]:
    try:
        calls = _Details.model_validate({} if score.value == 1 else score.details)
    except ValueError:  # it is not the score of a tool scorer
        return
    for call in (*calls.pairs, *calls.out_of_order):
        if call.args_error is not None and call.differences:
            yield _Lost("unreadable_arguments", call.name), call.message
            continue
        for difference in call.differences:
            argument = re.sub(r"\[\d+\]", "[*]", difference.name)
            came, expected = difference.text("actual")[:_COMPARED], difference.text("expected")[:_COMPARED]
            yield _Lost("wrong_argument", call.name, argument, came, expected), call.message
    for call in calls.out_of_order:
        yield _Lost("wrong_order", call.name), call.message
    for call in calls.missing if calls.fn else ():  # otherwise, calls may be missing
        yield _Lost("missing_tool", call.name), None
    for call in calls.extra if calls.fp else ():
        yield _Lost("extra_tool", call.name), call.message


def _new(before: Score, after: Score) -> Iterator[_Located]:
    old = Counter(lost for lost, _ in _lost(before))
    for lost, message in _lost(after):
        if not old[lost]:
            yield lost, message
        old[lost] = max(0, old[lost] - 1)


def _grouped(scored: Iterable[tuple[Row, Iterable[_Located]]]) -> Sequence[Loss]:
    units = defaultdict[str, dict[int, str | None]](dict)
    exact = defaultdict[tuple[str, _Lost], list[tuple[_Lost, LossSample]]](list)
    for row, located in scored:
        units[row.scorer][row.index] = row.unit
        for lost, message in located:
            exact[row.scorer, lost._replace(expected=None)].append(
                (lost, LossSample(row.index, row.sample_id, message))
            )
    rare = {key for key, those in exact.items() if len({sample.number for _, sample in those}) == 1}
    alike = Counter((scorer, lost._replace(came_instead=None)) for scorer, lost in rare)
    groups = defaultdict[tuple[str, _Lost], list[tuple[_Lost, LossSample]]](list)
    for (scorer, lost), those in exact.items():
        merged = scorer, lost._replace(came_instead=None)
        groups[merged if (scorer, lost) in rare and alike[merged] > 1 else (scorer, lost)] += those
    tools = quoted_names(lost.tool for _, lost in groups)
    arguments = (text for those in groups.values() for lost, _ in those for text in lost[2:] if text)
    texts = [*dict.fromkeys((*tools.values(), *arguments))]
    shown: dict[str | None, str] = dict(zip(texts, tell_apart(texts, _LONGEST), strict=True))
    grouped: list[Loss] = []
    for (scorer, lost), those in groups.items():
        expected = {part.expected for part, _ in those}
        by_number = {sample.number: sample for _, sample in reversed(those)}
        grouped.append(
            Loss(
                scorer,
                lost.kind,
                shown[tools[lost.tool]],
                shown.get(lost.argument),
                shown.get(lost.came_instead),
                shown.get(expected.pop()) if len(expected) == 1 else None,
                tuple(by_number[number] for number in sorted(by_number)),
                units[scorer],
            )
        )
    order = [*units]
    return sorted(grouped, key=lambda loss: (order.index(loss.scorer), -len(loss.samples), loss.text))

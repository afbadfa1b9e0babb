"""Side-by-side diffs of expected and actual tool calls, built from the details of a tool-call score."""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, JsonValue

from judgekit.errors import truncated
from judgekit.look_alikes import tell_apart
from judgekit.traces.rendering import compact_json, quoted_name, quoted_names

_LONGEST_VALUE = 60
_LONGEST_TEXT = 160


class DiffLine(NamedTuple):
    """A line of a diff: an expected call and the actual call, prefixed with the number of its message.

    The calls of sub-agents are also prefixed with the name of the agent. ``mark`` is ``=`` if they agree, ``~`` if they differ, ``-`` if the call is missing, ``+`` if it was not expected,
    and ``<>`` if it was made out of order. A side without a call is empty.
    """

    mark: str
    expected: str
    actual: str


class Diff(tuple[DiffLine, ...]):
    """The lines in the order of the expected calls, with unexpected calls at the place where they were made."""

    __slots__ = ()

    @classmethod
    def of(cls, details: Mapping[str, JsonValue]) -> "Diff":
        """Return the diff in a score's details; empty if they describe no calls."""
        try:
            return cls(_lines(ComparedCalls.model_validate(details)))
        except ValueError:  # another shape, or a number with too many digits to print
            return cls()

    def __str__(self) -> str:
        width = max((len(line.expected) for line in self), default=0)
        return "\n".join(f"{line.mark:<2}  {line.expected:<{width}}  {line.actual}".rstrip() for line in self)


class _Difference(BaseModel, defer_build=True):
    path: str
    expected: Any = None  # JSON, as in all details of a score
    actual: Any = None

    @property
    def name(self) -> str:
        return _plain(self.path.removeprefix("args."))

    def text(self, side: Literal["expected", "actual"]) -> str:
        return compact_json(getattr(self, side)) if side in self.model_fields_set else "nothing"

    def sides(self) -> Mapping[str, str]:
        texts = tell_apart([self.text("expected"), self.text("actual")], _LONGEST_VALUE)
        return dict(zip(("expected", "actual"), texts, strict=True))


class _Call(BaseModel, defer_build=True):
    name: str
    message: int | str | None = None
    agent: str | None = None
    expected: int = 0
    actual: int = 0
    score: float = 1.0
    args: dict[str, Any] = Field(default_factory=dict)
    args_raw: str | None = None
    args_error: str | None = None
    differences: tuple[_Difference, ...] = ()

    def mark(self) -> str:
        return "~" if self.differences or self.score < 1 else "="

    def expected_text(self, names: Mapping[str, str]) -> str:
        return self._text(self._argument_texts("expected"), names)

    def actual_text(self, names: Mapping[str, str]) -> str:
        if self.args_error is not None:
            parts = [f"unreadable arguments: {_plain(self.args_raw or self.args_error)}"]
        else:
            parts = self._argument_texts("actual")
            if self.score < 1 and not self.differences:
                parts.append(f"arguments score {self.score:.2f}")
        position = [] if self.message is None else [str(self.message)]
        if self.agent is not None:
            position.append(quoted_name(truncated(self.agent, _LONGEST_VALUE)))
        text = self._text(parts, names)
        return f"{where}: {text}" if (where := " ".join(position)) else text

    def _argument_texts(self, side: str) -> list[str]:
        parts: list[str] = []
        for name, value in self.args.items():
            parts.append(f"{_plain(name)}: {truncated(compact_json(value), _LONGEST_VALUE)}")
        paths = tell_apart([difference.name for difference in self.differences])
        for path, difference in zip(paths, self.differences, strict=True):
            parts.append(f"{path}: {difference.sides()[side]}".removeprefix(": "))
        return parts

    def _text(self, parts: Sequence[str], names: Mapping[str, str]) -> str:
        name = names[self.name] if self.name else "(no name)"
        return truncated(f"{name}  {', '.join(parts)}" if parts else name, _LONGEST_TEXT)


class ComparedCalls(BaseModel, defer_build=True):
    """Expected and actual calls, as the details of a tool-call score contain them."""

    pairs: list[_Call]
    missing: list[_Call]
    extra: list[_Call]
    out_of_order: list[_Call] = []


def _lines(calls: ComparedCalls) -> Iterator[DiffLine]:
    """Return the lines: missing and unexpected calls follow the actual call that comes before them."""
    names = quoted_names(call.name for call in (*calls.pairs, *calls.out_of_order, *calls.missing, *calls.extra))
    expected = [
        *((call, DiffLine(call.mark(), call.expected_text(names), call.actual_text(names))) for call in calls.pairs),
        *((call, DiffLine("<>", call.expected_text(names), call.actual_text(names))) for call in calls.out_of_order),
        *((call, DiffLine("-", call.expected_text(names), "")) for call in calls.missing),
    ]
    groups: list[list[DiffLine]] = [[]]
    starts: list[tuple[int, int]] = []
    for call, line in sorted(expected, key=lambda pair: pair[0].expected):
        if line.actual:
            starts.append((call.actual, len(groups)))
            groups.append([])
        groups[-1].append(line)
    starts.sort()
    for call in sorted(calls.extra, key=lambda call: call.actual):
        before = bisect(starts, (call.actual, 0))
        groups[starts[before - 1][1] if before else 0].append(DiffLine("+", "", call.actual_text(names)))
    return chain.from_iterable(groups)


def _plain(text: str) -> str:
    return text if text.isprintable() else compact_json(text)

"""What the conversations of a run took, whatever is scored."""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from judgekit.aggregates.conduct import quantile
from judgekit.errors import number_of
from judgekit.traces.conduct import Effort, repeated_calls
from judgekit.traces.sample import Sample

_NAME_KEPT = 200


class Figure(NamedTuple):
    """A number of many conversations: ``n`` are those of which it is known."""

    name: str
    mean: float
    median: float
    n: int


class Conduct(NamedTuple):
    """What one conversation took; ``None`` where the recording does not say.

    ``repeating`` says whether a call is made again with equal arguments, ``warned`` whether it was read with warnings,
    ``agent`` which agent made the recording, see `agent_of`.
    """

    messages: int
    tool_calls: int
    tool_results: int
    tool_errors: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None
    repeating: bool
    warned: bool
    agent: str | None = None

    @classmethod
    def of(cls, sample: Sample) -> "Conduct | None":
        """Count what a conversation took; a trace without messages is none."""
        trace = sample.trace
        if not trace.messages:
            return None
        effort = Effort.of(trace)
        repeating = False
        with suppress(ValueError):  # what no JSON can hold, such as a number of thousands of digits, repeats nothing
            repeating = repeated_calls(trace) > 0
        counts = effort.messages, effort.tool_calls, effort.tool_results, effort.tool_errors
        took = effort.tokens, effort.cost_usd, effort.seconds
        return cls(*counts, *took, repeating, bool(trace.warnings), agent_of(sample))


def agent_of(sample: Sample) -> str | None:
    """Return the name of the agent that made a recording; ``None`` where it does not say.

    That is ``agent`` in the metadata of the sample or its trace, or else the agents and models that the agent's messages
    name.
    """
    for metadata in (sample.metadata, sample.trace.metadata):
        match metadata.get("agent"):
            case str(name) if name:
                return name[:_NAME_KEPT]
            case dict(parts) if named := [
                str(part) for part in parts.values() if part != "" and isinstance(part, str | float | int)
            ]:
                return " ".join(named)[:_NAME_KEPT]
            case _:
                pass
    said = ((one.agent, one.model) for one in sample.trace.messages if one.role == "assistant")
    names = sorted({" ".join(filter(None, pair)) for pair in said} - {""})
    return ", ".join(names)[:_NAME_KEPT] or None


@dataclass
class Efforts:
    """What conversations took, added one by one; only plain numbers are kept. ``print`` shows a line, if there were any.

    Attributes:
        conversations: How many.
        tool_results: Results of tool calls of which it is known whether they are errors.
        tool_errors: Those that are.
        repeating: Conversations in which a call is made again with equal arguments.
        warned: Conversations that were read with warnings.
    """

    conversations: int = 0
    tool_results: int = 0
    tool_errors: int = 0
    repeating: int = 0
    warned: int = 0
    _numbers: "dict[str, array[float]]" = field(default_factory=dict[str, "array[float]"], repr=False)

    def add(self, conduct: Conduct) -> None:
        """Counts a conversation; children belong to their parents."""
        self.conversations += 1
        self.repeating += conduct.repeating
        self.warned += conduct.warned
        self.tool_results += conduct.tool_results
        self.tool_errors += conduct.tool_errors
        for name, number in (
            ("messages of the agent", conduct.messages),
            ("tool calls", conduct.tool_calls),
            ("tokens", conduct.tokens),
            ("cost in USD", conduct.cost_usd),
            ("seconds", conduct.seconds),
        ):
            if number is not None:
                self._numbers.setdefault(name, array("d")).append(number)

    @property
    def figures(self) -> Sequence[Figure]:
        """Each number that is known of any conversation."""
        return [
            Figure(name, sum(numbers) / len(numbers), quantile(sorted(numbers), 0.5), len(numbers))
            for name, numbers in self._numbers.items()
        ]

    def __str__(self) -> str:
        if not self.conversations:
            return ""
        told = [self._told(figure) for figure in self.figures]
        if self.tool_results:
            told.append(f"errors {self.tool_errors / self.tool_results:.0%} of {self.tool_results:,} tool results")
        told.append(f"calls repeated in {self.repeating:,}")
        if self.warned:
            told.append(f"read with warnings {self.warned:,} (judgekit inspect says which)")
        return f"{number_of(self.conversations, 'conversation')}, mean (median): {', '.join(told)}"

    def _told(self, figure: Figure) -> str:
        known = "" if figure.n == self.conversations else f"; of {figure.n:,}"
        return f"{figure.name} {_shown(figure.mean)} ({_shown(figure.median)}{known})"


def _shown(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"

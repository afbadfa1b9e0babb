"""What the conversations of a run took, whatever is scored."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from judgekit.aggregates.conduct import quantile
from judgekit.traces.conduct import Effort, repeated_calls
from judgekit.traces.sample import Sample


class Figure(NamedTuple):
    """A number of many conversations: ``n`` are those of which it is known."""

    name: str
    mean: float
    median: float
    n: int


@dataclass
class Efforts:
    """What conversations took, added one by one; only plain numbers are kept. ``print`` shows a line, if there were any.

    Attributes:
        conversations: Those with a message; children belong to their parents.
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
    _numbers: "defaultdict[str, array[float]]" = field(
        default_factory=lambda: defaultdict(lambda: array("d")), repr=False
    )

    def add(self, sample: Sample) -> None:
        """Counts the conversation of a sample; one without messages is none."""
        trace = sample.trace
        if not trace.messages:
            return
        effort = Effort.of(trace)
        with suppress(ValueError):  # what no JSON can hold, such as a number of thousands of digits, repeats nothing
            self.repeating += repeated_calls(trace) > 0
        self.conversations += 1
        self.warned += bool(trace.warnings)
        self.tool_results += effort.tool_results
        self.tool_errors += effort.tool_errors
        for name, number in (
            ("messages of the agent", effort.messages),
            ("tool calls", effort.tool_calls),
            ("tokens", effort.tokens),
            ("cost in USD", effort.cost_usd),
            ("seconds", effort.seconds),
        ):
            if number is not None:
                self._numbers[name].append(number)

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
        conversations = f"{self.conversations:,} conversation{'' if self.conversations == 1 else 's'}"
        return f"{conversations}, mean (median): {', '.join(told)}"

    def _told(self, figure: Figure) -> str:
        known = "" if figure.n == self.conversations else f"; of {figure.n:,}"
        return f"{figure.name} {_shown(figure.mean)} ({_shown(figure.median)}{known})"


def _shown(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"

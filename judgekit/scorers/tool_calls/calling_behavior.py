"""The calls that constraints check, and the results of checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from judgekit.scorers.tool_calls.arguments import any_glob
from judgekit.traces.message import Requestor
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import Chronology


class ConstraintResult(NamedTuple):
    """The result of a check: whether the constraint holds (``None`` if undecided), why, and calls that violate it."""

    holds: bool | None
    reason: str
    violations: Sequence[ActualCall] = ()


@dataclass(frozen=True)
class Behavior:
    """The actions of one side in a trace; the agent's side includes those of its sub-agents."""

    trace: Trace
    requestor: Requestor

    @cached_property
    def calls(self) -> tuple[ActualCall, ...]:
        """The calls of this side, in order."""
        return self.trace.tool_calls(self.requestor)

    @cached_property
    def chronology(self) -> Chronology:
        """The order of the messages."""
        return Chronology(self.trace)

    def calls_of(self, tool: str) -> list[ActualCall]:
        """Return the calls of tools that match the pattern."""
        return [actual for actual, _ in self.outcomes_of(tool)]

    def outcomes_of(self, tool: str) -> list[tuple[ActualCall, bool | None]]:
        """Return the calls of matching tools, each with whether it failed; ``None`` if unknown."""
        fits = any_glob([tool])
        return [(actual, failed) for actual, failed in self._outcomes if fits(actual.call.name)]

    @cached_property
    def _outcomes(self) -> Sequence[tuple[ActualCall, bool | None]]:
        return [*zip(self.calls, self.trace.call_errors(self.requestor), strict=True)]

"""Budgets: did the agent stay within a limit of tokens, cost, time or calls?"""

from abc import abstractmethod
from dataclasses import dataclass
from math import inf, isclose
from typing import ClassVar

from judgekit.aggregates.behavior import plain_number
from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.flaws import is_error
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.text.matches import compile_pattern
from judgekit.scoring import NO_CONVERSATION
from judgekit.traces.behavior import TraceUsage, elapsed, repeated_calls
from judgekit.traces.equality import is_number
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import branches


@dataclass(frozen=True)
class _Within(ScopedScorer):
    """A scorer that compares a number of the conversation with a budget."""

    budget: float
    name: str = ""
    _template: ClassVar[str]
    """The text of the reason, in which ``{}`` is the number."""
    _maximum: ClassVar[float] = inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.budget) or not 0 <= self.budget <= self._maximum:
            raise ConfigError(f"budget must be a number from 0 to {self._maximum:g}, found {self.budget!r}")

    async def _score(self, sample: Sample) -> Score:
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        number = self._number(sample.trace)
        if isinstance(number, str):
            return Score.skipped(self.name, number)
        return Score.scored(
            self.name,
            float(number <= self.budget or isclose(number, self.budget)),  # sums of floats are not exact
            reason=f"{self._template.format(plain_number(number))}, budget {plain_number(self.budget)}",
            details={"number": number, "budget": self.budget},
            aggregate="within_budget",
            warnings=self._warnings(sample.trace),
        )

    @abstractmethod
    def _number(self, trace: Trace) -> float | str:
        """Return the number, or a text that says why it is unknown."""

    def _warnings(self, trace: Trace) -> tuple[str, ...]:
        """Return what the number leaves out."""
        del trace
        return ()


@dataclass(frozen=True)
class MaxTokens(_Within):
    """1 if the conversation took at most ``budget`` tokens, input and output together, else 0.

    The number is the one that the trace reports, or the sum over the agent's messages; with ``scope="tree"``, those of
    its children are added. Skipped if neither the trace nor every message of the agent, except a greeting, reports both. No judge. Details: ``number``,
    ``budget``. The total of a run is the share within the budget, with mean, median, 90th percentile and maximum.
    Source: see `TraceUsage`.

    Raises:
        ConfigError: The budget is not a number of at least 0.
    """

    name: str = "max_tokens"
    _template: ClassVar[str] = "{} tokens"

    def _number(self, trace: Trace) -> float | str:
        tokens = TraceUsage.of(trace).tokens
        unknown = "neither the trace nor every agent message reports input and output tokens"
        return unknown if tokens is None else tokens


@dataclass(frozen=True)
class MaxCost(_Within):
    """1 if the conversation cost at most ``budget`` US dollars, else 0.

    The cost is the one that the trace reports, with ``scope="tree"`` those of its children too; it is never computed
    from tokens. Skipped if one of them is not reported. No judge. Details, errors and total as for `MaxTokens`. Source: see `TraceUsage`.
    """

    name: str = "max_cost"
    _template: ClassVar[str] = "${}"

    def _number(self, trace: Trace) -> float | str:
        cost = TraceUsage.of(trace).cost_usd
        return "the recording does not report its cost" if cost is None else cost


@dataclass(frozen=True)
class MaxSeconds(_Within):
    """1 if the conversation took at most ``budget`` seconds, else 0.

    The time is that from ``started_at`` to ``ended_at``, or from the first message to the last. Skipped if the
    recording does not contain these times, or if they are inconsistent: it ends before it starts, or only one has a
    time zone. No judge. Details, errors and total as for `MaxTokens`. Source: see `elapsed`.
    """

    name: str = "max_seconds"
    _template: ClassVar[str] = "{} seconds"

    def _number(self, trace: Trace) -> float | str:
        return elapsed(trace)


@dataclass(frozen=True)
class MaxToolCalls(_Within):
    """1 if the agent, with ``scope="tree"`` also its sub-agents, made at most ``budget`` tool calls, else 0.

    Skipped without a conversation. No judge. Details, errors and total as for `MaxTokens`. Source: see `TraceUsage`.
    """

    name: str = "max_tool_calls"
    _template: ClassVar[str] = "tool calls: {}"

    def _number(self, trace: Trace) -> float | str:
        return TraceUsage.of(trace).tool_calls


@dataclass(frozen=True)
class MaxMessages(_Within):
    """1 if the agent, with ``scope="tree"`` also its sub-agents, sent at most ``budget`` messages, else 0.

    Messages that only call tools count. Skipped without a conversation. No judge. Details, errors and total as for
    `MaxTokens`. Source: see `TraceUsage`.
    """

    name: str = "max_messages"
    _template: ClassVar[str] = "agent messages: {}"

    def _number(self, trace: Trace) -> float | str:
        return TraceUsage.of(trace).messages


@dataclass(frozen=True)
class MaxToolErrorRate(_Within):
    """1 if at most a share ``budget`` of the results of the agent's tool calls are errors, else 0.

    Only results that are known to be errors or not count, with ``scope="tree"`` also those of sub-agents; a warning says
    if there are others. Where the recording does not say, a result is an error if the ``error_pattern``, if there is
    one, is found in its text. Skipped if none are known. No judge. Details and total as for `MaxTokens`. Source: see
    `TraceUsage`.

    Raises:
        ConfigError: The budget is not a number in [0, 1], or the pattern is invalid.
    """

    name: str = "max_tool_error_rate"
    error_pattern: str | None = None
    _template: ClassVar[str] = "share of tool results that are errors: {}"
    _maximum: ClassVar[float] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error_pattern is not None:
            compile_pattern(self.error_pattern)

    def _number(self, trace: Trace) -> float | str:
        flags = [flag for flag in self._flags(trace) if flag is not None]
        return sum(flags) / len(flags) if flags else "no tool result records whether it is an error"

    def _warnings(self, trace: Trace) -> tuple[str, ...]:
        is_unknown = None in self._flags(trace)
        return ("some tool results do not record whether they are errors, and do not count",) * is_unknown

    def _flags(self, trace: Trace) -> list[bool | None]:
        results = (message for branch in branches(trace) for message in branch.trace.messages if message.role == "tool")
        return [is_error(result, self.error_pattern) for result in results if result.requestor == "assistant"]


@dataclass(frozen=True)
class MaxRepeatedCalls(_Within):
    """1 if at most ``budget`` tool calls of the agent repeat an earlier one with equal arguments, as loops do, else 0.

    Arguments are compared as typed JSON, or as text if they cannot be read; retries of failed calls count too
    (`NoRepeat` allows them). With ``scope="tree"``, each sub-agent is counted by itself, and its repeats are added. Skipped without a
    conversation. No judge. Details, errors and total as for `MaxTokens`. Source: see `repeated_calls`.
    """

    budget: float = 0
    name: str = "max_repeated_calls"
    _template: ClassVar[str] = "repeated tool calls: {}"

    def _number(self, trace: Trace) -> float | str:
        return repeated_calls(trace)

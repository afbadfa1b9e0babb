"""Was the agent done within a budget: of tokens, of money, of time, of calls?"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isclose
from typing import ClassVar

from judgekit.aggregates.conduct import plain_number
from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scoring import NO_CONVERSATION, Blocking
from judgekit.traces.conduct import Effort, elapsed, repeated_calls
from judgekit.traces.equality import is_number
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


@dataclass(frozen=True)
class _Within(Blocking, ABC):
    """A number of the conversation, held against a budget."""

    budget: float
    name: str = ""
    _told: ClassVar[str]
    """A text in which ``{}`` is the number."""
    _most: ClassVar[float] = inf

    def __post_init__(self) -> None:
        if not is_number(self.budget) or not 0 <= self.budget <= self._most:
            raise ConfigError(f"budget is a number from 0 to {self._most:g}, found {self.budget!r}")

    async def ascore(self, sample: Sample, /) -> Score:
        """Counts, and compares."""
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        number = self._number(sample.trace)
        if isinstance(number, str):
            return Score.skipped(self.name, number)
        return Score.scored(
            self.name,
            float(number <= self.budget or isclose(number, self.budget)),  # sums of cents are not exact
            reason=f"{self._told.format(plain_number(number))}, budget {plain_number(self.budget)}",
            details={"number": number, "budget": self.budget},
            aggregate="within_budget",
        )

    @abstractmethod
    def _number(self, trace: Trace) -> float | str:
        """The number; a text says why it is unknown."""


@dataclass(frozen=True)
class MaxTokens(_Within):
    """1 if the conversation took at most ``budget`` tokens, input and output together, else 0.

    As the trace reports it, or else the sum over the agent's messages; its children's are added. Skipped where the
    trace, or else any message of the agent but a greeting, does not say both. No judge. Details: ``number``, ``budget``. Over a run:
    the share within the budget, and mean, median, 90th percentile and maximum. Source: see `Effort`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    name: str = "max_tokens"
    _told: ClassVar[str] = "{} tokens"

    def _number(self, trace: Trace) -> float | str:
        tokens = Effort.of(trace).tokens
        unknown = "neither the trace nor each message of the agent says how many input and output tokens it took"
        return unknown if tokens is None else tokens


@dataclass(frozen=True)
class MaxCost(_Within):
    """1 if the conversation cost at most ``budget`` US dollars, else 0.

    As the trace and its children report it; nothing is computed from tokens. Skipped where one of them does not. No
    judge. Details and numbers over a run: as of `MaxTokens`. Source: see `Effort`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    name: str = "max_cost"
    _told: ClassVar[str] = "${}"

    def _number(self, trace: Trace) -> float | str:
        cost = Effort.of(trace).cost_usd
        return "the recording does not say what it cost" if cost is None else cost


@dataclass(frozen=True)
class MaxSeconds(_Within):
    """1 if the conversation took at most ``budget`` seconds, else 0.

    From ``started_at`` to ``ended_at``, or else from the first message to the last. Skipped where the recording does not
    say, or where its times cannot be: it ends before it starts, or only one of the two has a time zone. No judge.
    Details and numbers over a run: as of `MaxTokens`. Source: see `elapsed`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    name: str = "max_seconds"
    _told: ClassVar[str] = "{} seconds"

    def _number(self, trace: Trace) -> float | str:
        return elapsed(trace)


@dataclass(frozen=True)
class MaxToolCalls(_Within):
    """1 if the agent, with those of the trace's children, made at most ``budget`` tool calls, else 0.

    Skipped where there is no conversation. No judge. Details and numbers over a run: as of `MaxTokens`. Source: see
    `Effort`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    name: str = "max_tool_calls"
    _told: ClassVar[str] = "tool calls: {}"

    def _number(self, trace: Trace) -> float | str:
        return Effort.of(trace).tool_calls


@dataclass(frozen=True)
class MaxMessages(_Within):
    """1 if the agent, with those of the trace's children, sent at most ``budget`` messages (its steps), else 0.

    Messages that only call tools count. Skipped where there is no conversation. No judge. Details and numbers over a
    run: as of `MaxTokens`. Source: see `Effort`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    name: str = "max_messages"
    _told: ClassVar[str] = "messages of the agent: {}"

    def _number(self, trace: Trace) -> float | str:
        return Effort.of(trace).messages


@dataclass(frozen=True)
class MaxToolErrorRate(_Within):
    """1 if at most a share ``budget`` of the results of the agent's tool calls are errors, else 0.

    Of the results of which it is known, those of the trace's children included. Skipped where none is. No judge. Details
    and numbers over a run: as of `MaxTokens`. Source: see `Effort`.

    Raises:
        ConfigError: The budget is no number in [0, 1].
    """

    name: str = "max_tool_error_rate"
    _told: ClassVar[str] = "share of tool results that are errors: {}"
    _most: ClassVar[float] = 1

    def _number(self, trace: Trace) -> float | str:
        rate = Effort.of(trace).tool_error_rate
        return "there is no tool result of which it is known whether it is an error" if rate is None else rate


@dataclass(frozen=True)
class MaxRepeatedCalls(_Within):
    """1 if at most ``budget`` tool calls of the agent repeat an earlier one with equal arguments, else 0.

    Loops do that. Arguments are compared as typed JSON, or as text where they cannot be read; retries of calls that
    failed count too (`NoRepeat` lets them pass). Each child of the trace is looked at by itself, and its repeats are
    added. Skipped where there is no conversation. No judge. Details and numbers over a run: as of `MaxTokens`. Source:
    see `repeated_calls`.

    Raises:
        ConfigError: The budget is no number from 0 on.
    """

    budget: float = 0
    name: str = "max_repeated_calls"
    _told: ClassVar[str] = "repeated tool calls: {}"

    def _number(self, trace: Trace) -> float | str:
        return repeated_calls(trace)

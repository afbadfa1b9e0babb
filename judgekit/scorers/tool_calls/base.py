"""The base of scorers that compare tool calls with expected ones."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from judgekit.errors import ConfigError, check_choice, join_limited
from judgekit.score import Explanation, Score
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.calls import Calls, Selection
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match, is_large
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import NO_CONVERSATION, compute_score
from judgekit.traces.message import Requestor
from judgekit.traces.rendering import quoted_name
from judgekit.traces.sample import Sample


@dataclass(frozen=True, kw_only=True)
class ToolCallScorer(ScopedScorer):
    """The common options of scorers that compare tool calls with expected ones.

    With ``scope="tree"``, the calls of sub-agents count too, depth first: those of a sub-agent follow the call that
    started it. An expected call with an ``agent`` only matches a call of that agent. Where the recording does not tell
    the order of sub-agents that worked in parallel, the order of their calls is not compared, with a warning.

    Attributes:
        requestor: The side whose calls are compared.
        include_failed: Whether calls that resulted in an error count.
        include_delegations: Whether calls that started a sub-agent count; otherwise ``scope`` must be ``tree``.

    Raises:
        ConfigError: An option is unknown, or the options contradict each other.
    """

    requestor: Requestor = "assistant"
    include_failed: bool = True
    include_delegations: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("requestor", self.requestor, get_args(Requestor))
        if not self.include_delegations and self.scope == "own":
            raise ConfigError('include_delegations=False needs scope="tree", which shows what calls started sub-agents')

    @cached_property
    @abstractmethod
    def _rules(self) -> ToolMatch:
        """The rules for matching calls."""

    async def _score(self, sample: Sample) -> Score:
        rules = self._rules
        if sample.reference_tool_calls is None:
            return Score.skipped(self.name, "the sample has no reference_tool_calls")
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        calls = Calls(rules, sample, Selection(self.requestor, self.include_failed, self.include_delegations))
        if rules.within == "turn" and (
            lost := [quoted_name(call.name) for call in calls.expected if call.turn is None]
        ):
            names = join_limited(lost, 5, ", ")
            return Score.skipped(self.name, f"calls are compared by turn, but expected calls have no turn: {names}")
        warnings = calls.warnings
        if rules.has_text_scorers:
            calls, text_warnings = await calls.with_texts_compared()
            warnings = [*warnings, *text_warnings]
        large = is_large(calls)
        return await compute_score(lambda: Score.computed(self.name, *self._judge(calls), warnings), large=large)

    def _judge(self, calls: Calls) -> tuple[float, Explanation]:
        """Return the value of the calls and its explanation."""
        match = Match(calls.rules, calls)
        return match.value, explain_match(match)

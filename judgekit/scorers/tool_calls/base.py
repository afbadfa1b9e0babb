"""The base of scorers that compare tool calls with expected ones."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import get_args

from judgekit.errors import ConfigError, check_choice
from judgekit.score import Explanation, Score
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.calls import Selection
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import compute_score
from judgekit.traces.fast_models import set_unvalidated
from judgekit.traces.message import Requestor
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
    def _selection(self) -> Selection:
        return Selection(self.requestor, self.include_failed, self.include_delegations)

    @cached_property
    @abstractmethod
    def _rules(self) -> ToolMatch:
        """The rules for matching calls."""

    async def _score(self, sample: Sample) -> Score:
        match = Match.of(self._rules, sample, self._selection)
        if isinstance(match, str):
            return Score.skipped(self.name, match)
        if match.rules.has_text_scorers:
            match = await match.with_texts_compared()
        return await compute_score(partial(self._score_match, match), large=match.is_large)

    def _score_match(self, match: Match) -> Score:
        value = self._value(match)
        reason, details = self._explain(match)
        score = Score.scored(self.name, value, reason=reason, warnings=match.warnings)
        set_unvalidated(score, details=details)  # JSON that was made for this score alone
        return score

    def _value(self, match: Match) -> float:
        return match.value

    def _explain(self, match: Match) -> Explanation:
        return explain_match(match)

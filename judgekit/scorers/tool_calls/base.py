"""The base of scorers that compare tool calls with expected ones."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import get_args

from judgekit.errors import ConfigError, check_choice
from judgekit.score import Explanation, Score
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.calls import Calls, Selection, has_equal_calls
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import compute_score
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

    @cached_property
    def _is_plain(self) -> bool:
        """Whether the value is 1 if the agent's calls equal the expected ones as typed JSON."""
        rules = self._rules
        return rules.is_plain and rules.within == "conversation" and self._selection == Selection()

    @cached_property
    def _best(self) -> dict[str, object]:
        """The fields of the score for equal calls."""
        return vars(Score.scored(self.name, 1.0, explain=lambda: ("", {})))

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        if self._is_plain and has_equal_calls(sample):  # as in most samples, so this takes the fastest way
            return Score.from_valid(self._best.copy(), partial(self._explain_equal, sample))
        return await super().ascore(sample)

    def _explain_equal(self, sample: Sample) -> Explanation:
        return self._explain(Match(self._rules, Calls(self._rules, sample, self._selection, are_equal=True)))

    async def _score(self, sample: Sample) -> Score:
        match = Match.of(self._rules, sample, self._selection)
        if isinstance(match, str):
            return Score.skipped(self.name, match)
        if match.rules.has_text_scorers:
            match = await match.with_texts_compared()
        if match.is_large:
            return await compute_score(partial(self._score_match, match), large=True)
        return self._score_match(match)

    def _score_match(self, match: Match) -> Score:
        value = self._value(match)
        return Score.scored(self.name, value, warnings=match.warnings, explain=partial(self._explain, match))

    def _value(self, match: Match) -> float:
        return match.value

    def _explain(self, match: Match) -> Explanation:
        return explain_match(match)

"""Tool-call match: do the calls match the expected ones under a given mode?"""

from dataclasses import dataclass
from functools import partial

from judgekit.score import Score
from judgekit.scorers.tool_calls.base import ToolCallScorer
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch, parse_tool_match
from judgekit.scoring import compute_score
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ToolCallMatch(ToolCallScorer):
    """1 if the agent's tool calls match the expected ones as the mode requires.

    The mode is a `ToolMatch`, or the name of one of `PRESETS`: ``exact``, ``same_calls``, ``contains_in_order``,
    ``contains``, ``only_these``, ``no_detours``.

    Only the agent's own calls count, unless ``scope="tree"`` or ``requestor="user"``. Failed calls count, unless
    ``include_failed=False``. Skipped without messages or ``sample.reference_tool_calls``, and if turns are compared but expected calls have none.
    No judge. Details: see `explain_match`.

    Raises:
        ConfigError: The mode or requestor is unknown.
    """

    match: ToolMatch | str
    name: str = "tool_call_match"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "match", parse_tool_match(self.match))

    async def _score(self, sample: Sample) -> Score:
        return await score_match(self.name, await self._match(parse_tool_match(self.match), sample))


async def score_match(name: str, match: Match | str) -> Score:
    """Return the score of a match, or of a sample whose calls cannot be matched."""
    if isinstance(match, str):
        return Score.skipped(name, match)

    def score() -> Score:
        return Score.scored(name, match.value, warnings=match.warnings, explain=partial(explain_match, match))

    return await compute_score(score, large=match.is_large)

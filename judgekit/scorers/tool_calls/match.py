"""Tool-call match: do the calls match the expected ones under a given mode?"""

from dataclasses import dataclass
from functools import partial
from typing import get_args

from judgekit.errors import check_choice
from judgekit.score import Score
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch, parse_tool_match
from judgekit.scoring import SyncScore, compute_score
from judgekit.traces.message import Requestor
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ToolCallMatch(SyncScore):
    """1 if the agent's tool calls match the expected ones as the mode requires.

    The mode is a `ToolMatch`, or the name of one of `PRESETS`: ``exact``, ``same_calls``, ``contains_in_order``,
    ``contains``, ``only_these``, ``no_detours``.

    Only the agent's own calls count, unless ``requestor="user"``. Failed calls count, unless ``include_failed=False``.
    Skipped without messages or ``sample.reference_tool_calls``, and if turns are compared but expected calls have none.
    No judge. Details: see `explain_match`.

    Raises:
        ConfigError: The mode or requestor is unknown.
    """

    match: ToolMatch | str
    requestor: Requestor = "assistant"
    include_failed: bool = True
    name: str = "tool_call_match"

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", parse_tool_match(self.match))
        check_choice("requestor", self.requestor, get_args(Requestor))

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        return await score_calls(
            self.name, parse_tool_match(self.match), sample, self.requestor, include_failed=self.include_failed
        )


async def score_calls(
    name: str, rules: ToolMatch, sample: Sample, requestor: Requestor, *, include_failed: bool
) -> Score:
    """Return the score of a sample's calls under a mode."""
    match = await Match.of(rules, sample, requestor, include_failed=include_failed)
    if isinstance(match, str):
        return Score.skipped(name, match)

    def score() -> Score:
        return Score.scored(name, match.value, warnings=match.warnings, explain=partial(explain_match, match))

    return await compute_score(score, large=match.is_large)

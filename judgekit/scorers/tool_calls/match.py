"""Tool-call match: do the calls match the expected ones under a given mode?"""

from dataclasses import dataclass
from functools import cached_property

from judgekit.scorers.tool_calls.base import ToolCallScorer
from judgekit.scorers.tool_calls.modes import ToolMatch, parse_tool_match


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

    @cached_property
    def _rules(self) -> ToolMatch:
        return parse_tool_match(self.match)

"""Tool-call F1: the overlap of expected and actual calls."""

from dataclasses import dataclass
from functools import cached_property

from judgekit.scorers.tool_calls.arguments import PLAIN, ArgCompare, check_args_option
from judgekit.scorers.tool_calls.base import ToolCallScorer
from judgekit.scorers.tool_calls.modes import ToolMatch


@dataclass(frozen=True)
class ToolCallF1(ToolCallScorer):
    """1 if the agent made all expected calls and no others, in any order.

    A call matches an expected one if the names are equal and the arguments agree, by default as typed JSON; each
    matches once, so repeated calls count. With TP = matched, FP = made but not expected, FN = expected but not made: 2
    TP / (2 TP + FP + FN). 1 if no call was expected and none was made.

    Only the agent's own calls count, unless ``scope="tree"`` or ``requestor="user"``. Failed calls count, unless
    ``include_failed=False``. Skipped without messages or ``sample.reference_tool_calls``. No judge. Details: see `explain_match`. Source: tool call F1
    of ragas (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), over multisets.

    Raises:
        ConfigError: The way to compare arguments or the requestor is unknown.
    """

    args: ArgCompare = PLAIN
    name: str = "tool_call_f1"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "args", check_args_option(self.args))

    @cached_property
    def _rules(self) -> ToolMatch:
        return ToolMatch(order="any", args=self.args, credit="f1")

"""Tool-call F1: the overlap of expected and actual calls."""

from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from judgekit.errors import check_choice
from judgekit.score import Score
from judgekit.scorers.tool_calls.arguments import PLAIN, ArgCompare, check_args_option
from judgekit.scorers.tool_calls.match import score_calls
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import SyncScore
from judgekit.traces.message import Requestor
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ToolCallF1(SyncScore):
    """1 if the agent made all expected calls and no others, in any order.

    A call matches an expected one if the names are equal and the arguments agree, by default as typed JSON; each
    matches once, so repeated calls count. With TP = matched, FP = made but not expected, FN = expected but not made: 2
    TP / (2 TP + FP + FN). 1 if no call was expected and none was made.

    Only the agent's own calls count, unless ``requestor="user"``. Failed calls count, unless ``include_failed=False``.
    Skipped without messages or ``sample.reference_tool_calls``. No judge. Details: see `explain_match`. Source: tool call F1
    of ragas (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), over multisets.

    Raises:
        ConfigError: The way to compare arguments or the requestor is unknown.
    """

    args: ArgCompare = PLAIN
    requestor: Requestor = "assistant"
    include_failed: bool = True
    name: str = "tool_call_f1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", check_args_option(self.args))
        check_choice("requestor", self.requestor, get_args(Requestor))

    @cached_property
    def _rules(self) -> ToolMatch:
        return ToolMatch(order="any", args=self.args, credit="f1")

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        return await score_calls(self.name, self._rules, sample, self.requestor, include_failed=self.include_failed)

"""Tool-call accuracy: were exactly the expected tools called, in order and with the expected arguments?"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from judgekit.score import Explanation
from judgekit.scorers.tool_calls.arguments import PLAIN, ArgCompare, check_args_option
from judgekit.scorers.tool_calls.base import ToolCallScorer
from judgekit.scorers.tool_calls.calls import Calls
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import ToolMatch


@dataclass(frozen=True)
class ToolCallAccuracy(ToolCallScorer):
    """1 if the agent made exactly the expected calls, in order and with the expected arguments.

    If the sequence of tool names differs, the value is 0. Otherwise it is the mean over the calls of their arguments'
    scores: the share of names in either call whose values agree, by default as typed JSON. 1 if no call was expected
    and none was made. With ``strict_order=False``, the order is free: each tool must be called as often as expected,
    and calls are paired so that the mean is highest.

    Only the agent's own calls count, unless ``scope="tree"`` or ``requestor="user"``. Failed calls count, unless
    ``include_failed=False``. Skipped without messages or ``sample.reference_tool_calls``. No judge. Details: ``aligned``, whether the names match
    as required, and those of `explain_match`. Source: tool call accuracy of ragas
    (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), with arguments compared as JSON.

    Raises:
        ConfigError: The way to compare arguments or the requestor is unknown.
    """

    strict_order: bool = True
    args: ArgCompare = PLAIN
    name: str = "tool_call_accuracy"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "args", check_args_option(self.args))

    @cached_property
    def _rules(self) -> ToolMatch:
        order: Literal["sequence", "any"] = "sequence" if self.strict_order else "any"
        return ToolMatch(order=order, parallel="ordered", args=self.args, credit="recall", args_credit="fraction")

    def _judge(self, calls: Calls) -> tuple[float, Explanation]:
        if calls.are_equal or (calls.have_same_names if self.strict_order else calls.have_same_tools):
            match = Match(calls.rules, calls)
            reason, details = explain_match(match)
            return match.value, Explanation(reason, {"aligned": True, **details})
        # Extra calls explain more than positions do.
        rules = calls.rules.model_copy(update={"order": "in_order"}) if self.strict_order else calls.rules
        reason, details = explain_match(Match(rules, calls))
        is_reordered = calls.have_same_tools
        what = "the expected tools in a different order" if is_reordered else "different tools than expected"
        return 0.0, Explanation(f"{what}: {reason}", {"aligned": False, **details})

"""Tool-call F1: how many of the expected calls were made, and how many others?"""

from dataclasses import dataclass

from pydantic import JsonValue

from judgekit.score import Score
from judgekit.scorers.tool_calls.matching import pair_equal
from judgekit.scoring import Blocking
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ToolCallF1(Blocking):
    """1 if the agent made all expected calls and no others, in any order.

    A call matches an expected one if name and arguments are equal as typed JSON; each matches once, so repeated calls
    count. With TP = matched, FP = made and not expected, FN = expected and not made: 2 TP / (2 TP + FP + FN). 1 if no
    call was expected and none was made.

    Only the agent's own calls count. Skipped without ``sample.reference_tool_calls``. No judge. Details: ``precision``,
    ``recall``, ``tp``, ``fp``, ``fn``, and the ``matched``, ``missing`` and ``extra`` calls. Source: tool call F1 of
    ragas (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), over multisets.
    """

    name: str = "tool_call_f1"

    async def ascore(self, sample: Sample, /) -> Score:
        """Matches the calls and counts."""
        expected = sample.reference_tool_calls
        if expected is None:
            return Score.skipped(self.name, "the sample has no reference_tool_calls")
        match = pair_equal(expected, sample.trace.tool_calls)
        tp, fp, fn = len(match.pairs), len(match.extra), len(match.missing)
        details: dict[str, JsonValue] = {
            "precision": tp / (tp + fp) if tp + fp else None,
            "recall": tp / (tp + fn) if tp + fn else None,
            "tp": tp,
            "fp": fp,
            "fn": fn,
            **match.details(),
        }
        if not tp + fp + fn:
            return Score.scored(self.name, 1.0, reason="no call was expected and none was made", details=details)
        wrong = match.in_words()
        reason = f"{tp} of {tp + fn} expected calls made, {fp} {'other' if fp == 1 else 'others'}{f': {wrong}' if wrong else ''}"
        return Score.scored(self.name, 2 * tp / (2 * tp + fp + fn), reason=reason, details=details)

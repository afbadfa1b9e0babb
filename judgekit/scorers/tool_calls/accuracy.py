"""Tool-call accuracy: were the expected tools called in the expected order, with the expected arguments?"""

from dataclasses import dataclass
from math import fsum

from judgekit.score import Score
from judgekit.scorers.tool_calls.matching import pair_in_sequence
from judgekit.scoring import Blocking
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ToolCallAccuracy(Blocking):
    """1 if the agent made exactly the expected calls, in order and with equal arguments.

    The tools' names must be the same in sequence, or the value is 0. Then it is the mean over the calls of argument
    accuracy: matched names over the union of argument names, compared as typed JSON. 1 if no call was expected and none
    was made.

    Only the agent's own calls count. Skipped without ``sample.reference_tool_calls``. No judge. Details: ``matched``,
    ``missing`` and ``extra`` calls. Source: tool call accuracy of ragas
    (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), arguments compared as JSON.
    """

    name: str = "tool_call_accuracy"

    async def ascore(self, sample: Sample, /) -> Score:
        """Compares the calls one by one."""
        expected = sample.reference_tool_calls
        if expected is None:
            return Score.skipped(self.name, "the sample has no reference_tool_calls")
        match = pair_in_sequence(expected, sample.trace.tool_calls)
        if match.missing or match.extra:
            names, found = [call.name for call in expected], [call.name for _, call in match.made]
            if sorted(names) == sorted(found):
                reason = f"the expected calls in another order: expected {', '.join(names)}; made {', '.join(found)}"
            else:
                reason = f"the sequence of calls is not the expected one: {match.in_words()}"
            return Score.scored(self.name, 0.0, reason=reason, details=match.details())
        if not match.pairs:
            return Score.scored(
                self.name, 1.0, reason="no call was expected and none was made", details=match.details()
            )
        value = fsum(pair.arguments.accuracy for pair in match.pairs) / len(match.pairs)
        reason = match.in_words() or f"all {len(match.pairs)} calls as expected, in order"
        return Score.scored(self.name, value, reason=reason, details=match.details())

"""Rows of ragas, with the fields of its ``MultiTurnSample`` only.

{"user_input": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello", "tool_calls": [
    {"name": "f", "args": {"a": 1}}]}], "reference": "...", "reference_tool_calls": [...], "reference_topics": [...]}
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from pydantic import JsonValue

from judgekit.formats.readers.ragas import RagasReader
from judgekit.formats.writers.writer import WrittenLine, verify_row
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import Sample

_TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}


class RagasWriter:
    """A writer of rows for ``MultiTurnSample``, which has no system messages, ids, or results without calls."""

    name = "ragas"

    def written(self, sample: Sample, index: int) -> WrittenLine:
        """Return the conversation with its references as a line."""
        row: JsonObject = {"user_input": [_message(message) for message in _fitting(sample.trace.messages)]}
        if sample.reference is not None:
            row["reference"] = sample.reference
        if sample.reference_tool_calls is not None:
            row["reference_tool_calls"] = _calls(sample.reference_tool_calls)
        if sample.reference_topics is not None:
            row["reference_topics"] = list(sample.reference_topics)
        if isinstance(rubrics := sample.fields.get("rubrics"), dict):
            row["rubrics"] = {name: text for name, text in rubrics.items() if isinstance(text, str)}
        return verify_row(sample, index, row, RagasReader())


def _fitting(messages: Sequence[Message]) -> Iterator[HumanMessage | AIMessage | ToolMessage]:
    """Yield the messages that ragas accepts. It pairs results with the agent's preceding calls by order.

    So results are put into the order of the calls, and those after a call without a result are left out.
    """
    callers = pair_results(messages).calls
    waiting = deque[tuple[int, int]]()
    before: HumanMessage | AIMessage | ToolMessage | None = None
    kept = ((index, message) for index, message in enumerate(messages) if not isinstance(message, SystemMessage))
    for are_results, run in groupby(kept, lambda pair: isinstance(pair[1], ToolMessage)):
        if are_results:
            fits = isinstance(before, AIMessage) and bool(before.tool_calls)
            answers = ((callers[index][:2], message) for index, message in run if index in callers) if fits else ()
            for caller, message in sorted(answers, key=itemgetter(0)):
                if waiting and caller == waiting[0]:
                    waiting.popleft()
                    before = message
                    yield message
            continue
        for index, message in run:
            if isinstance(message, AIMessage):
                if not isinstance(before, AIMessage):
                    waiting.clear()
                waiting += ((index, position) for position in range(len(message.tool_calls)))
            before = message
            yield message


def _message(message: HumanMessage | AIMessage | ToolMessage) -> JsonObject:
    row: JsonObject = {"type": _TYPES[message.role], "content": message.text}
    if isinstance(message, AIMessage) and message.tool_calls:
        row["tool_calls"] = _calls(message.tool_calls)
    if message.metadata:
        row["metadata"] = message.metadata
    return row


def _calls(calls: Iterable[ToolCall]) -> list[JsonValue]:
    return [{"name": call.name, "args": call.args} for call in calls]

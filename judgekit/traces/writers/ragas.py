"""ragas rows: what its ``MultiTurnSample`` holds, and nothing else.

{"user_input": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello", "tool_calls": [
    {"name": "f", "args": {"a": 1}}]}], "reference": "...", "reference_tool_calls": [...], "reference_topics": [...]}
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.readers.ragas import RagasReader
from judgekit.traces.sample import Sample
from judgekit.traces.writers.writer import Written, read_back

_TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}


class RagasWriter:
    """Rows that load as ``MultiTurnSample``. It has no system messages, ids, or results of calls that nobody made."""

    name = "ragas"

    def written(self, sample: Sample, index: int) -> Written:
        """The conversation, with its references."""
        row: JsonObject = {"user_input": [_message(message) for message in _fitting(sample.trace.messages)]}
        if sample.reference is not None:
            row["reference"] = sample.reference
        if sample.reference_tool_calls is not None:
            row["reference_tool_calls"] = _calls(sample.reference_tool_calls)
        if sample.reference_topics is not None:
            row["reference_topics"] = list(sample.reference_topics)
        if isinstance(rubrics := sample.fields.get("rubrics"), dict):
            row["rubrics"] = {name: text for name, text in rubrics.items() if isinstance(text, str)}
        return read_back(sample, index, row, RagasReader())[0]


def _fitting(messages: Sequence[Message]) -> Iterator[HumanMessage | AIMessage | ToolMessage]:
    """The messages that ragas takes: results stand behind the agent's calls, or behind other results."""
    before: HumanMessage | AIMessage | ToolMessage | None = None
    for message in messages:
        fits = not isinstance(message, SystemMessage)
        if isinstance(message, ToolMessage):
            fits = isinstance(before, ToolMessage) or (isinstance(before, AIMessage) and bool(before.tool_calls))
        if fits and not isinstance(message, SystemMessage):
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

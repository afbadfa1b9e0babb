"""Rows of ragas: multi-turn rows with typed messages, and single-turn rows with a question and an answer.

{"user_input": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello", "tool_calls": [
    {"name": "f", "args": {"a": 1}}]}], "reference": "...", "reference_tool_calls": [...], "reference_topics": [...]}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import checked_text, read_call
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, as_records, build_row_sample
from judgekit.formats.row_facts import to_text
from judgekit.traces.message import AIMessage, HumanMessage, Message, ToolCall, ToolMessage
from judgekit.traces.sample import Sample

_KINDS: dict[str, type[Message]] = {"human": HumanMessage, "ai": AIMessage, "tool": ToolMessage}


class RagasReader(RowReader):
    """A reader of rows of a ragas dataset. Rubrics, reference contexts and the like go into the sample's fields."""

    name = "ragas"
    shape = 'ragas: {"user_input": [{"type": "human", "content": ...}, ...], "reference": ...}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows by ``user_input``."""
        record = next(iter(as_records(value)), None)
        return isinstance(record, dict) and "user_input" in record

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one row. Without an id, the index is its name."""
        row = FieldTracker.of(record)
        identity = row.id("id") or str(index)
        own: dict[str, object] = {}
        messages = _messages(row)
        if isinstance(row.peek("user_input"), str) and "response" in row:
            if isinstance(row.peek("response"), list | dict):
                raise row.type_error("response", "a string")
            messages.append(AIMessage(to_text(row.take("response"))))  # some tables hold a number
        row.take("user_input")
        if "retrieved_contexts" in row:
            if "documents" in row:
                raise TraceError("found both 'retrieved_contexts' and 'documents', which mean the same; keep one")
            own["documents"] = row.take("retrieved_contexts")
        if "reference_tool_calls" in row:
            own["reference_tool_calls"] = list(map(_call, row.objects("reference_tool_calls")))
        if not messages:
            raise TraceError("user_input: contains no messages")
        return build_row_sample(row, identity, messages, own)


def _messages(row: FieldTracker) -> list[Message]:
    question = row.peek("user_input")
    if isinstance(question, str):
        return [HumanMessage(question)]
    if not isinstance(question, list):
        raise row.type_error("user_input", "a string or a list of messages")
    return [_message(message) for message in row.objects("user_input")]


def _message(message: FieldTracker) -> Message:
    kind = _KINDS[message.one_of("type", _KINDS)]
    content = checked_text(message)
    message.take("type")
    metadata = message.object("metadata")
    fields: dict[str, object] = {"content": content, "metadata": metadata.leftover() if metadata else {}}
    if kind is not ToolMessage:
        fields["tool_calls"] = list(map(_call, message.objects("tool_calls")))
    return kind.model_validate({**fields, "extra": message.leftover()})


def _call(call: FieldTracker) -> ToolCall:
    return read_call(call, ids=(), args=("args", "arguments"))

"""Conversations with Amazon Bedrock's Converse API.

{"modelId": "...", "system": [{"text": "Be brief"}], "messages": [{"role": "user", "content": [{"text": "Hi"}]}, ...]}
{"output": {"message": {"role": "assistant", "content": [...]}}, "stopReason": "end_turn", "usage": {...}}
{"request": {...}, "response": {...}}
"""

from pydantic import JsonValue

from judgekit.formats.blocks.bedrock import is_bedrock, read_message, read_system, read_tools, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import (
    RowReader,
    append_reply,
    as_records,
    build_sample,
    may_be_response_of,
    take_response,
)
from judgekit.formats.values import head, lookup
from judgekit.traces.message import Message
from judgekit.traces.sample import Sample


class BedrockReader(RowReader):
    """A reader of requests, responses, pairs of both, and rows or bare lists of messages."""

    name = "bedrock"
    shape = (
        'bedrock: {"messages": [{"role": "user", "content": [{"text": ...}]}, ...], "modelId": ..., "toolConfig": ...}'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize blocks that have no type, but a key that names their kind."""
        return _is_record(value) or (isinstance(value, list) and any(map(_is_record, head(value))))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of messages as one conversation, and the items of any other list."""
        return [document] if _is_record(document) else as_records(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. Without an id, the index is its name."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        request = row if "messages" in row else row.object("request") or FieldTracker({})
        messages = [*read_system(request)]
        messages += [message for recorded in request.objects("messages") for message in read_message(recorded)]
        if (response := row if _is_response(record) else take_response(row, record, "output")) is not None:
            messages = append_reply(messages, _reply(response, request.text("modelId")), row)
        if not messages:
            raise request.type_error("messages", "messages")
        tools = request.object("toolConfig") or FieldTracker({})
        return build_sample(row, index, {"messages": messages, "tools": read_tools(tools.optional_objects("tools"))})


def _reply(response: FieldTracker, model: str | None) -> list[Message]:
    output = response.object("output") or FieldTracker({})
    message = output.object("message")
    if message is None:
        raise output.type_error("message", "a message")
    whole = {"finish_reason": response.text("stopReason"), "usage": read_usage(response.object("usage"))}
    return read_message(message, model, whole)


def _is_response(value: JsonValue) -> bool:
    message = lookup(value, "output", "message")
    return isinstance(value, dict) and isinstance(message, dict) and ("stopReason" in value or is_bedrock([message]))


def _is_record(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return is_bedrock(value)
    if _is_response(value) or _is_response(value.get("response")):
        return True
    request = value.get("request") if "messages" not in value else value
    return is_bedrock(lookup(request, "messages")) and may_be_response_of("bedrock", value.get("response"))

"""Conversations with Anthropic's Messages API: requests, responses, and both as pairs.

{"system": "Be brief", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, ...], "tools": [...]}
{"type": "message", "role": "assistant", "model": "claude-...", "content": [...], "stop_reason": ..., "usage": {...}}
{"request": {...}, "response": {...}}
"""

from pydantic import JsonValue

from judgekit.traces.blocks.anthropic import (
    is_anthropic,
    is_response,
    may_be_anthropic,
    read_message,
    read_messages,
    read_system,
    read_tools,
)
from judgekit.traces.blocks.anthropic_stream import is_event, read_events, responses
from judgekit.traces.found import Found
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.readers.foreign import answer_of, first_of, items, may_answer, sample_from, unbatched, with_reply
from judgekit.traces.sample import Sample

_LOOKED_AT = 50


class AnthropicReader:
    """Requests, responses, pairs of both, and rows or bare lists of messages with this API's blocks."""

    name = "anthropic"
    gathers = False
    shape = 'anthropic: {"messages": [{"role": "user", "content": [{"type": "tool_result", ...}]}, ...], "system": ...}'

    def recognises(self, value: JsonValue) -> bool:
        """Blocks that only this API has, or what only its requests and responses have."""
        rows = self.records(value)[:_LOOKED_AT]
        return any(map(_is_record, rows)) and not any(map(_is_of_others, rows))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list of messages is one conversation; any other list holds one each."""
        return [document] if _is_list(document) else [unbatched(row) for row in items(document)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation. Without an id, the index names it."""
        if is_response(record):
            record = {"response": record}
        row = Found.of({"messages": record} if isinstance(record, list) else record)
        request = row if "messages" in row else row.object("request") or Found({})
        messages: list[Message] = [*read_system(request), *read_messages(request.objects("messages"))]
        if _are_events(row.peek("response")):
            for events in responses(items(row.take("response"))):
                messages += read_events(events, "response", row.warnings)
        elif (response := answer_of(row, record, "content")) is not None:
            messages = with_reply(messages, read_message(response), row)
        if not messages:
            raise request.unfit("messages", "messages")
        return sample_from(row, index, {"messages": messages, "tools": read_tools(request.details("tools"))})


class AnthropicStreamReader:
    """Responses recorded as the events in which they were streamed, one after another."""

    name = "anthropic-stream"
    gathers = True
    shape = 'anthropic-stream: {"type": "message_start", "message": {...}}, {"type": "content_block_delta", ...}, ...'

    def recognises(self, value: JsonValue) -> bool:
        """Events say what they start or add."""
        return is_event(value) or _are_events(value) or _are_events(first_of(value))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Each response is a conversation of one message."""
        return [*responses(event for row in items(document) for event in items(row))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One response; the index names it."""
        row = Found({})
        return sample_from(row, index, {"messages": read_events(items(record), "", row.warnings)})


def _are_events(value: JsonValue) -> bool:
    return isinstance(value, list) and any(map(is_event, value[:_LOOKED_AT]))


def _is_list(value: JsonValue) -> bool:
    """Whether this is a list of messages. A list of responses is one of records."""
    return isinstance(value, list) and bool(value) and not is_response(value[0]) and is_anthropic(value)


def _is_record(value: JsonValue) -> bool:
    if isinstance(value, list):
        return _is_list(value)
    if not isinstance(value, dict):
        return False
    response = value.get("response")
    if is_response(value) or is_response(response) or _are_events(response):
        return True
    request = value.get("request") if "messages" not in value else value
    return isinstance(request, dict) and _is_request(request) and may_answer("anthropic", value.get("response"))


def _is_of_others(row: JsonValue) -> bool:
    """Whether a row has a message that this API cannot have."""
    messages = row.get("messages") if isinstance(row, dict) else row
    return isinstance(messages, list) and not all(map(may_be_anthropic, messages[:_LOOKED_AT]))


def _is_request(request: JsonObject) -> bool:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(map(may_be_anthropic, messages[:_LOOKED_AT])):
        return False
    tools = request.get("tools")
    if isinstance(tools, list) and any(isinstance(tool, dict) and "function" in tool for tool in tools[:_LOOKED_AT]):
        return False  # as OpenAI's API has them, for a model of Anthropic's
    model, system = request.get("model"), request.get("system")
    block = system[0] if isinstance(system, list) and system else None
    of_text = isinstance(block, dict) and block.get("type") == "text"
    likely = ("max_tokens" in request, isinstance(model, str) and model.startswith("claude"), isinstance(system, str))
    return is_anthropic(messages) or "anthropic_version" in request or (bool(messages) and (of_text or sum(likely) > 1))

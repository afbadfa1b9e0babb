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
from judgekit.traces.blocks.anthropic_stream import assembled, is_event
from judgekit.traces.found import Found
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.readers.foreign import items, sample_from
from judgekit.traces.sample import Sample

_LOOKED_AT = 50


class AnthropicReader:
    """Requests, responses, pairs of both, and rows or bare lists of messages with this API's blocks."""

    name = "anthropic"
    gathers = False
    shape = 'anthropic: {"messages": [{"role": "user", "content": [{"type": "tool_result", ...}]}, ...], "system": ...}'

    def recognises(self, value: JsonValue) -> bool:
        """Blocks that only this API has, or what only its requests and responses have."""
        rows = self.records(value)
        return any(_is_record(row) for row in rows[:_LOOKED_AT])

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list of messages is one conversation; any other list holds one each."""
        return [document] if _is_list(document) else items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation. Without an id, the index names it."""
        if is_response(record):
            record = {"response": record}
        row = Found.of({"messages": record} if isinstance(record, list) else _whole(record))
        request = row if "messages" in row else row.object("request") or Found({})
        messages: list[Message] = [*read_system(request), *read_messages(request.objects("messages"))]
        if (response := row.object("response")) is not None:
            messages += read_message(response)
        if not messages:
            raise request.unfit("messages", "messages")
        return sample_from(row, index, {"messages": messages, "tools": read_tools(request.objects("tools"))})


class AnthropicStreamReader:
    """Responses recorded as the events in which they were streamed, one after another."""

    name = "anthropic-stream"
    gathers = True
    shape = 'anthropic-stream: {"type": "message_start", "message": {...}}, {"type": "content_block_delta", ...}, ...'

    def recognises(self, value: JsonValue) -> bool:
        """Events say what they start or add."""
        return is_event(value) or _are_events(value)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Each response is a conversation of one message."""
        return [*assembled(items(document))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One response; the index names it."""
        row = Found.of({"response": record})
        response = row.object("response") or Found({})
        return sample_from(row, index, {"messages": read_message(response)})


def _whole(record: JsonValue) -> JsonValue:
    """A pair whose response was recorded as events, with the response as it would have come in one piece."""
    if isinstance(record, dict) and _are_events(events := record.get("response")):
        [response, *_] = assembled(items(events))
        return {**record, "response": response}
    return record


def _are_events(value: JsonValue) -> bool:
    return isinstance(value, list) and any(map(is_event, value[:2]))


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
    return isinstance(request, dict) and _is_request(request)


def _is_request(request: JsonObject) -> bool:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(map(may_be_anthropic, messages[:_LOOKED_AT])):
        return False
    model = request.get("model")
    return (
        is_anthropic(messages)
        or "anthropic_version" in request
        or (bool(messages) and _is_system(request.get("system")))
        or ("max_tokens" in request and isinstance(model, str) and model.startswith("claude"))
    )


def _is_system(system: JsonValue) -> bool:
    first = system[0] if isinstance(system, list) and system else None
    return isinstance(system, str) or (isinstance(first, dict) and first.get("type") == "text")

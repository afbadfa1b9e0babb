"""Conversations with Anthropic's Messages API: requests, responses, and both as pairs.

{"system": "Be brief", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, ...], "tools": [...]}
{"type": "message", "role": "assistant", "model": "claude-...", "content": [...], "stop_reason": ..., "usage": {...}}
{"request": {...}, "response": {...}}

A response may be recorded as the events in which it was streamed:

{"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], ...}}
{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.errors import short_repr
from judgekit.formats.blocks.anthropic import (
    has_own_block,
    is_anthropic,
    is_response,
    may_be_anthropic,
    read_message,
    read_messages,
    read_system,
    read_tools,
)
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import (
    RowReader,
    append_reply,
    as_records,
    build_sample,
    first_record,
    may_be_response_of,
    take_response,
    unwrap_batch_line,
)
from judgekit.formats.values import as_list, as_object, head, lookup, messages_field, objects_in, without
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_EVENTS = ("message_start", "message_delta", "content_block_start", "content_block_delta")


class AnthropicReader(RowReader):
    """A reader of requests, responses, pairs of both, and rows or bare lists of messages with this API's blocks."""

    name = "anthropic"
    shape = 'anthropic: {"messages": [{"role": "user", "content": [{"type": "tool_result", ...}]}, ...], "system": ...}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize blocks and fields that only this API has."""
        rows = head(self.records(value))
        return any(map(_is_record, rows)) and all(
            may_be_anthropic(message) for row in rows for message in head(messages_field(row))
        )

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of messages as one conversation, and the items of any other list."""
        return [document] if _is_list(document) else [unwrap_batch_line(row) for row in as_records(document)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. Without an id, the index is its name."""
        if is_response(record):
            record = {"response": record}
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        request = row if "messages" in row else row.object("request") or FieldTracker({})
        messages: list[Message] = [*read_system(request), *read_messages(request.objects("messages"))]
        if _are_events(row.peek("response")):
            for events in split_responses(as_records(row.take("response"))):
                messages += read_events(events, "response", row.warnings)
        elif (response := take_response(row, record, "content")) is not None:
            messages = append_reply(messages, read_message(response), row)
        if not messages:
            raise request.type_error("messages", "messages")
        return build_sample(row, index, {"messages": messages, "tools": read_tools(request.optional_objects("tools"))})


class AnthropicStreamReader:
    """A reader of responses that were recorded as streamed events."""

    name = "anthropic-stream"
    joins_lines = True
    shape = 'anthropic-stream: {"type": "message_start", "message": {...}}, {"type": "content_block_delta", ...}, ...'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events by their type and what they start or add."""
        return is_event(value) or _are_events(value) or _are_events(first_record(value))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the events of each response, which is a conversation of one message."""
        return [*split_responses(event for row in as_records(document) for event in as_records(row))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one response. Its index is its name."""
        row = FieldTracker({})
        return build_sample(row, index, {"messages": read_events(as_records(record), "", row.warnings)})


def _are_events(value: JsonValue) -> bool:
    return any(map(is_event, head(value)))


def _is_list(value: JsonValue) -> bool:
    """Return whether this is a list of messages. A list of responses holds one record each."""
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
    return isinstance(request, dict) and _is_request(request) and may_be_response_of("anthropic", value.get("response"))


def _is_request(request: JsonObject) -> bool:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(map(may_be_anthropic, head(messages))):
        return False
    if any("function" in tool for tool in objects_in(head(request.get("tools")))):
        return False  # OpenAI's form, for a model of Anthropic
    model, system = request.get("model"), request.get("system")
    of_text = any(lookup(block, "type") == "text" for block in head(system)[:1])
    likely = ("max_tokens" in request, isinstance(model, str) and model.startswith("claude"), isinstance(system, str))
    return (
        any(map(has_own_block, head(messages)))
        or "anthropic_version" in request
        or (bool(messages) and (of_text or sum(likely) > 1))
    )


def is_event(value: JsonValue) -> bool:
    """Return whether this is an event of a streamed response."""
    event = as_object(value)
    return event.get("type") in _EVENTS and not event.keys().isdisjoint(("message", "delta", "content_block"))


def split_responses(events: Iterable[JsonValue]) -> list[list[JsonValue]]:
    """Return the events of each streamed response. Events before the first response belong to it."""
    groups: list[list[JsonValue]] = [[]]
    for event in events:
        if _begins(event) is not None and any(_begins(earlier) is not None for earlier in groups[-1]):
            groups.append([])
        groups[-1].append(event)
    return [group for group in groups if group]


def read_events(events: Sequence[JsonValue], where: str, warnings: list[TraceWarning]) -> list[Message]:
    """Read the messages of one response from its streamed events, whose path is ``where``. Unknown events are kept."""
    streamed = _Streamed()
    for event in events:
        streamed.add(event)
    response = FieldTracker(streamed.whole(), where, warnings)
    if streamed.repeated:
        response.warn(f"{streamed.repeated} SDK events that repeat API events, dropped")
    for error in streamed.errors:
        response.warn(f"the stream reports an error: {short_repr(error)}")
    if "stop_reason" not in response:
        response.warn("the stream ends before the response is complete")
    return read_message(response)


def _begins(event: JsonValue) -> JsonObject | None:
    message = lookup(event, "message") if lookup(event, "type") == "message_start" else None
    return message if isinstance(message, dict) else None


class _Streamed:
    """A response that is assembled piece by piece."""

    def __init__(self) -> None:
        self.repeated = 0
        self.errors: list[JsonValue] = []
        self._message: JsonObject = {"type": "message", "role": "assistant"}
        self._blocks: dict[int, JsonObject] = {}
        self._pieces: dict[tuple[int, str], list[JsonValue]] = {}
        self._unknown: list[JsonValue] = []

    def add(self, event: JsonValue) -> None:
        fields = as_object(event)
        kind, index, delta = fields.get("type"), fields.get("index"), fields.get("delta")
        block = fields.get("content_block")
        if kind in ("ping", "message_stop", "content_block_stop"):
            return
        if kind in ("text", "thinking", "signature", "citation", "input_json"):  # of the SDK, about the event before
            self.repeated += 1
        elif (message := _begins(event)) is not None:
            self._message = dict(message)
            if isinstance(content := message.get("content"), list):
                self._blocks = {at: dict(block) for at, block in enumerate(content) if isinstance(block, dict)}
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(block, dict):
            self._blocks[index] = dict(block)
        elif kind == "message_delta" and isinstance(delta, dict):
            self._message |= {name: value for name, value in delta.items() if value is not None}
            self._message |= without(fields, "type", "delta", "usage")
            if isinstance(usage := fields.get("usage"), dict):  # the counts are cumulative
                latest = {name: value for name, value in usage.items() if value is not None}
                self._message["usage"] = {**as_object(self._message.get("usage")), **latest}
        elif kind != "content_block_delta" or not (
            isinstance(index, int) and isinstance(delta, dict) and self._add_delta(index, delta)
        ):
            self._unknown.append(event)
            if kind == "error":
                self.errors.append(fields.get("error"))

    def whole(self) -> JsonObject:
        for (index, name), pieces in self._pieces.items():
            block = self._blocks.setdefault(index, {"type": name})
            first = block.get(name)
            if name == "citations":
                block[name] = [*as_list(first), *pieces]
            else:  # a call starts with empty arguments, which the streamed text replaces
                block[name] = "".join(map(str, [first, *pieces] if isinstance(first, str) else pieces))
        left: JsonObject = {"events": self._unknown} if self._unknown else {}
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)], **left}

    def _add_delta(self, index: int, delta: JsonObject) -> bool:
        """Add a delta. Return whether its kind is known."""
        kind = str(delta.get("type"))
        name = "input" if kind == "input_json_delta" else _DELTAS.get(kind)
        piece = delta.get("partial_json" if name == "input" else name) if name else None
        if name is not None and isinstance(piece, str):
            if piece:
                self._pieces.setdefault((index, name), []).append(piece)
            return True
        if kind == "citations_delta" and index in self._blocks:
            self._pieces.setdefault((index, "citations"), []).append(delta.get("citation"))
            return True
        if kind == "compaction_delta" and index in self._blocks:
            self._blocks[index].update(without(delta, "type"))
            return True
        return False

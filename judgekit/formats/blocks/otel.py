"""Messages of OpenTelemetry's conventions for generative AI, as attributes of spans and events hold them.

[{"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]},
 {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"city": "Paris"}}]},
 {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rainy"}]}]
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.formats.blocks import bedrock, openai_chat
from judgekit.formats.blocks.common import read_call, read_parts
from judgekit.formats.blocks.reply import ReplyItem, read_user_turn, split_reply, to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, as_object, head, lookup, objects_in, parse_if_json, str_or_none
from judgekit.traces.message import (
    AIMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)

_CALLS = ("tool_call", "server_tool_call")
_RESPONSES = ("tool_call_response", "server_tool_call_response")
_SOURCES = {"blob": "content", "binary": "content", "uri": "uri", "file": "file_id"}
"""Kinds of media parts, and the fields that hold the media."""
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
CHOICE = "gen_ai.choice"
EVENTS = (*_EVENTS, CHOICE)
"""The names of events that hold a message."""
_CONTENT = "gen_ai.event.content"

_USAGES = ("gen_ai.usage.", "gen_ai.aggregated_usage.", "ai.usage.")
"""Prefixes of token counts, including those of the AI SDK, and of Pydantic AI for a whole run."""
_COUNTS = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    "cached_tokens": ("cache_read.input_tokens", "cache_read_input_tokens", "cachedInputTokens"),
    "reasoning_tokens": ("reasoning.output_tokens", "reasoning_tokens", "reasoningTokens"),
}
"""The names of token counts below their prefix."""


def is_otel(messages: JsonValue) -> bool:
    """Return whether a list holds messages of these conventions: ``parts`` with text in ``content``, or calls."""
    return any(
        isinstance(message.get("role"), str) and any(map(_is_part, as_list(message.get("parts"))))
        for message in objects_in(head(messages))
        if "parts" in message
    )


def are_events(messages: JsonValue) -> bool:
    """Return whether a list holds messages of events with the events' fields, as tracers keep them in one value."""
    events = [as_object(record) for record in head(messages)]
    return bool(events) and all(event.get("event.name") in EVENTS or _CONTENT in event for event in events)


def holds_bedrock(content: JsonValue) -> bool:
    """Return whether a content has Bedrock's blocks, which some frameworks write whatever the provider."""
    return bedrock.is_bedrock([{"role": "user", "content": _unpacked(content)}])


def read_event(holder: FieldTracker, name: str | None = None) -> list[Message]:
    """Read the message of an event from its body or attributes, which may lack the event's name."""
    if name is None:
        name = str_or_none(holder.peek("event.name"))
        holder.take_if("event.name", *EVENTS)
    holder.unpack(_CONTENT)
    content = holder.maybe_object(_CONTENT)
    holder = holder if content is None else content
    name = name or (CHOICE if "message" in holder else f"gen_ai.{holder.peek('role')}.message")
    role = _EVENTS.get(name, "assistant")
    fields: JsonObject = {field: holder.take(field) for field in ("content", "tool_calls", "name", "message")}
    fields["finish_reason"] = holder.text("finish_reason")
    holder.take_if("role", role)
    message = _unpacked(fields.pop("message"))
    if isinstance(message, list):
        message = {"content": message}
    if isinstance(message, dict):
        fields |= {field: held for field, held in message.items() if held is not None}
    elif message is not None:
        fields["content"] = message
    if role == "tool":
        fields["tool_call_id"] = holder.take("id")
    role = role if fields.get("role") is None else str(fields["role"]).lower()
    parts = _unpacked(fields["content"])
    if role != "system" and holds_bedrock(parts):
        reason = fields["finish_reason"]
        whole = {"finish_reason": fields.pop("finish_reason")} if isinstance(reason, str) else None
        block = {**fields, "role": "assistant" if role == "assistant" else "user", "content": parts}
        return bedrock.read_message(FieldTracker(block, holder.path, holder.warnings), whole=whole)
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        if all(isinstance(lookup(part, "text"), str) for part in parts):
            fields["content"] = [{"type": "text", **part} for part in objects_in(parts)]
    elif role == "tool" and parts is not None:
        fields["content"] = to_text(fields["content"])
    return [read_chat(FieldTracker({**fields, "role": role}, holder.path, holder.warnings), role)]


def read_chat(message: FieldTracker, role: str) -> Message:
    """Read a message of OpenAI's kind as tracers write it: lists as JSON, with the finish reason next to it."""
    message.unpack("tool_calls")
    if isinstance(content := message.peek("content"), str) and content.startswith("[{"):
        message.unpack("content")
        parts = as_list(message.peek("content"))
        if not parts or not all("type" in as_object(part) for part in parts):
            message = message.extended(content=content)
    reason = message.text("finish_reason")
    given = message.peek("role")
    parsed = openai_chat.read_message(message.extended(role=_ROLES.get(str(given), given or role)))
    ended = reason and isinstance(parsed, AIMessage)
    return parsed.model_copy(update={"finish_reason": reason}) if ended else parsed


def _unpacked(recorded: JsonValue) -> JsonValue:
    return parse_if_json(recorded) if isinstance(recorded, str) and recorded.startswith(("[{", "{")) else recorded


def read_message(turn: FieldTracker) -> list[Message]:
    """Read one message. Tool results in it become messages of their own, whatever its role.

    A message without ``parts`` is read as one of OpenAI's, which some tracers write instead.
    """
    if turn.peek("parts") is None:
        if turn.peek("role") == "model":
            raise turn.type_error("parts", "a list of parts")
        return [openai_chat.read_message(turn)]
    role = turn.peek("role")
    if role not in ("system", "developer", "user", "assistant", "model", "tool"):
        raise turn.type_error("role", "system, developer, user, assistant or tool")
    turn.take("role")
    items = read_parts(turn.items("parts"), _item)
    if role in ("system", "developer"):
        return [_system(items, role, turn.leftover())]
    name = turn.text("name")
    if role in ("assistant", "model"):
        reason = turn.text("finish_reason")
        return split_reply(items, {"agent": name}, {"finish_reason": reason, "extra": turn.leftover()})
    if role == "tool" and not any(isinstance(item, ToolMessage | ToolCall) for item in items):
        parts = [item for item in items if not isinstance(item, ToolMessage | ToolCall)]
        return [ToolMessage.model_validate({"content": to_content(parts), "name": name, "extra": turn.leftover()})]
    messages = read_user_turn(items, turn.leftover())
    return [turn.model_copy(update={"name": name}) if name and turn.role == "user" else turn for turn in messages]


def read_instructions(instructions: Iterable[FieldTracker | JsonValue]) -> list[Message]:
    """Read the parts of instructions that are separate from the messages."""
    parts = read_parts(instructions, _item)
    return [_system(parts, "system", {})] if parts else []


def read_usage(attributes: FieldTracker) -> Usage | None:
    """Read the token counts of one span: all attributes below ``gen_ai.usage``, or the tracer's own equivalent."""
    prefix = next((start for start in _USAGES if any(name.startswith(start) for name in attributes)), None)
    if prefix is None:
        return None
    counts = {name: attributes.count(*(prefix + name for name in names)) for name, names in _COUNTS.items()}
    extra = {name.removeprefix(prefix): attributes.take(name) for name in attributes if name.startswith(prefix)}
    return Usage.model_validate({**counts, "extra": extra})


def _system(items: Sequence[ReplyItem], role: str, extra: JsonObject) -> SystemMessage:
    odd = (ToolCall, ToolMessage)
    parts = [
        OtherPart(item.model_dump(mode="json", exclude_defaults=True)) if isinstance(item, odd) else item
        for item in items
    ]
    return SystemMessage.model_validate({"content": to_content(parts), "role": role, "extra": extra})


def _is_part(part: JsonValue) -> bool:
    kind = lookup(part, "type")
    holds_text = kind in ("text", "reasoning") and isinstance(lookup(part, "content"), str)
    return holds_text or kind in (*_CALLS, *_RESPONSES)


def _item(part: FieldTracker) -> ReplyItem:
    kind = part.peek("type")
    if kind in ("text", "reasoning", "thinking"):
        text = part.text("content", "text")
        if text is None:
            raise part.type_error("content", "a string (is content capture enabled?)")
        part.take("type")
        return (TextPart if kind == "text" else ReasoningPart)(text, extra=part.leftover())
    if kind in _CALLS:
        part.take("type")
        provided = kind == "server_tool_call" or part.peek("builtin") is True
        return read_call(part, args=("arguments", "server_tool_call"), provided=provided)
    if kind in _RESPONSES:
        part.take("type")
        response = part.take("response", "result", "server_tool_call_response")
        about = {"tool_call_id": part.id("id"), "name": part.text("name"), "extra": part.leftover()}
        return ToolMessage.model_validate({**about, "content": "" if response is None else to_text(response)})
    return _media(part) or OtherPart(part.leftover())


def _media(part: FieldTracker) -> MediaPart | None:
    source_kind = str(part.peek("type"))
    source = "url" if source_kind.endswith("-url") else _SOURCES.get(source_kind)
    if source is None or not isinstance(part.peek(source), str):
        return None
    mime_type = part.text("mime_type", "media_type")
    described = str(part.peek("modality") or (mime_type if source_kind in _SOURCES else source_kind))
    kind = next((kind for kind in ("image", "audio", "video") if described.startswith(kind)), "file")
    part.take_if("modality", kind)
    part.take_if("type", "blob", "uri")
    held: JsonObject = {}
    if source != "file_id":
        held = {"data" if source == "content" else "url": part.text(source)}
    return MediaPart.model_validate({"kind": kind, "mime_type": mime_type, **held, "extra": part.leftover()})

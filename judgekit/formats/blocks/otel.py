"""Messages of OpenTelemetry's conventions for generative AI, as attributes of spans and events hold them.

[{"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]},
 {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"city": "Paris"}}]},
 {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rainy"}]}]
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.formats.blocks import openai_chat
from judgekit.formats.blocks.common import read_call, read_parts
from judgekit.formats.blocks.reply import ReplyItem, read_user_turn, split_reply, to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, head, lookup, objects_in
from judgekit.traces.message import (
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
    return [
        message.model_copy(update={"name": name}) if name and message.role == "user" else message
        for message in messages
    ]


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
        return _response(part)
    return _media(part) or OtherPart(part.leftover())


def _response(part: FieldTracker) -> ToolMessage:
    part.take("type")
    response = part.take("response", "result", "server_tool_call_response")
    message = {"tool_call_id": part.id("id"), "name": part.text("name"), "extra": part.leftover()}
    return ToolMessage.model_validate({**message, "content": "" if response is None else to_text(response)})


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

"""Messages of Anthropic's API, including the tools that the API runs itself.

[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
    {"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1", "is_error": true}]}]
"""

from collections.abc import Iterable

from pydantic import JsonValue

from judgekit.formats.blocks.common import MEDIA, content_items, read_cached_counts, read_call, read_parts
from judgekit.formats.blocks.reply import ReplyItem, is_blank, read_user_turn, split_reply, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, lookup, objects_in, str_or_none
from judgekit.traces.message import (
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    Usage,
)
from judgekit.traces.recording import ToolDefinition

_ROLES = ("system", "user", "assistant")
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OTHERS_BLOCKS = (
    *("image_url", "input_audio", "refusal", "input_text", "output_text", "tool-call", "tool-result"),
    *("document_url",),
)
OWN_BLOCKS = ("redacted_thinking", "container_upload", "mid_conv_system", "search_result")
"""Kinds of blocks that only this API has."""


def is_anthropic(messages: JsonValue) -> bool:
    """Return whether messages have blocks that only this API has; messages with only text look the same everywhere."""
    seen = head(messages)
    return all(map(may_be_anthropic, seen)) and any(map(has_own_block, seen))


def may_be_anthropic(message: JsonValue) -> bool:
    """Return whether a message has a role of this API, and no fields or blocks of other APIs."""
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    if message.get("tool_calls") or message.get("function_call"):
        return False
    return not any(map(_is_foreign_block, _blocks_of(message)))


def _is_foreign_block(block: JsonObject) -> bool:
    """Return whether a block belongs to another API. Mistral's thinking is a list of texts."""
    kind = block.get("type")
    return kind is None or kind in _OTHERS_BLOCKS or (kind == "thinking" and not isinstance(block.get("thinking"), str))


def is_response(value: JsonValue) -> bool:
    """Return whether this is a message as the API returns it."""
    return (
        isinstance(value, dict)
        and (value.get("type"), value.get("role")) == ("message", "assistant")
        and isinstance(value.get("content"), list)
        and "model" in value
        and ("stop_reason" in value or "usage" in value)
    )


def read_messages(messages: Iterable[FieldTracker]) -> list[Message]:
    """Read messages. One that holds tool results becomes several."""
    return [message for turn in messages for message in read_message(turn)]


def read_message(message: FieldTracker, blocks: Iterable[FieldTracker | JsonValue] | None = None) -> list[Message]:
    """Read one message. If it holds tool results, it becomes several. Other rows may hold ``blocks`` of its content."""
    role = message.one_of("role", _ROLES)
    content = content_items(message) if blocks is None else blocks
    message.take("role")
    message.take_if("type", "message")
    if role == "system":
        return [SystemMessage(to_content(read_parts(content, _part)), extra=message.leftover())]
    if role == "assistant":
        items = read_parts(content, _item)
        model = message.text("model")
        whole: dict[str, object] = {
            "id": message.id("id"),
            "finish_reason": message.text("stop_reason"),
            "usage": read_usage(message.object("usage")),
            "extra": message.leftover(),
        }
        return split_reply(items, {"model": model}, whole)
    return read_user_turn(read_parts(content, _user_block), message.leftover())


def read_system(request: FieldTracker) -> list[Message]:
    """Read the instructions next to the messages: a text, or blocks of text."""
    system = request.peek("system")
    if isinstance(system, str):
        request.take("system")
        return [SystemMessage(system)] if system else []
    parts = read_parts(request.items("system"), _part)
    return [SystemMessage(to_content(parts))] if parts else []


def read_usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts."""
    return read_cached_counts(counts, input=_INPUTS, cached=_INPUTS[2], output="output_tokens")


def read_tools(tools: Iterable[FieldTracker]) -> list[ToolDefinition]:
    """Read tool definitions. A tool without a name is named after its type."""
    return [
        ToolDefinition(
            tool.text("name") or str(tool.peek("type")),
            description=tool.text("description"),
            parameters=tool.take("input_schema"),
            extra=tool.leftover(),
        )
        for tool in tools
    ]


def has_own_block(message: JsonValue) -> bool:
    """Return whether a message has a block that only this API has."""
    for block in _blocks_of(message):
        if isinstance(kind := block.get("type"), str):
            if kind in OWN_BLOCKS or (kind.endswith("tool_use") and "input" in block):
                return True
            if kind.endswith("tool_result") and "tool_use_id" in block:
                return True
            if kind == "thinking" or (kind in ("image", "document") and isinstance(block.get("source"), dict)):
                return True
    return is_response(message)


def _blocks_of(message: JsonValue) -> list[JsonObject]:
    content = lookup(message, "content")
    return objects_in(head(content)) if isinstance(content, list) else []


def _type(block: FieldTracker) -> str:
    return str_or_none(block.peek("type")) or ""


def _item(block: FieldTracker) -> ReplyItem:
    kind = _type(block)
    if kind.endswith("tool_result"):
        return _result(block)
    if kind.endswith("tool_use") and not is_blank(block):
        return read_call(block, args=("input",), provided=not block.take_if("type", "tool_use"))
    return _part(block)


def _user_block(block: FieldTracker) -> ReplyItem | SystemMessage:
    """Read a block of a user message, which may also be instructions."""
    if _type(block) == "mid_conv_system":
        return SystemMessage(to_content(_parts(block)), extra=block.leftover())
    return _item(block)


def _result(block: FieldTracker) -> ToolMessage:
    block.take_if("type", "tool_result")
    content = block.peek("content")
    failed = block.boolean("is_error")
    if "is_error" not in block and failed is None:
        # Without the field, the call succeeded; results of the provider's tools say so in the content.
        failed = isinstance(content, dict) and ("error_code" in content or str(content.get("type")).endswith("_error"))
    identity = block.id("tool_use_id")
    text = to_text(block.take("content")) if _is_foreign(content) else to_content(_parts(block))
    return ToolMessage(text, tool_call_id=identity, is_error=failed, extra=block.leftover())


def _is_foreign(content: JsonValue) -> bool:
    """Return whether a result is neither text nor readable blocks, such as that of a web search."""
    if content is None or isinstance(content, str):
        return False
    kinds = [str(block.get("type")) for block in objects_in(content)]
    return not isinstance(content, list) or any(kind.endswith("_result") and kind != "search_result" for kind in kinds)


def _parts(holder: FieldTracker) -> list[Part]:
    return read_parts(content_items(holder), _part)


def _part(block: FieldTracker) -> Part:
    kind = _type(block)
    if kind in ("text", "thinking") and isinstance(text := block.peek(kind), str):
        block.take("type")
        block.take(kind)
        return (TextPart if kind == "text" else ReasoningPart)(text, extra=block.leftover())
    if kind == "redacted_thinking":
        return ReasoningPart("", extra=block.leftover())
    if kind == "container_upload":
        return MediaPart(kind="file", extra=block.leftover())
    if kind in ("image", "document") and isinstance(block.peek("source"), dict):
        return _media(block, kind)
    results = block.peek("content") if kind == "search_result" else None
    if isinstance(results, list) and all(isinstance(lookup(text, "text"), str) for text in results):
        blocks = block.objects("content")
        for text_block in blocks:
            text_block.take_if("type", "text")
        return TextPart("\n".join(text_block.text("text") or "" for text_block in blocks), extra=block.leftover())
    return OtherPart(block.leftover()) if kind in ("compaction", "tool_reference") else unknown_part(block)


def _media(block: FieldTracker, kind: str) -> Part:
    source = block.object("source") or FieldTracker({})
    if source.peek("type") == "text" and (text := source.text("data")) is not None:
        return TextPart(text, extra=block.leftover())
    if source.peek("type") == "content" and isinstance(source.peek("content"), str):
        return TextPart(source.text("content") or "", extra=block.leftover())
    source.take_if("type", "base64", "url")
    block.take_if("type", "image")
    url, data, mime_type, name = (*map(source.text, ("url", "data", "media_type")), block.text("title"))
    return MediaPart(kind=MEDIA[kind], url=url, data=data, mime_type=mime_type, name=name, extra=block.leftover())

"""Messages of Anthropic's API, with the tools that it runs itself.

[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
    {"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1", "is_error": true}]}]
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from judgekit.formats.blocks.reply import Item, asked, content_of, is_blank, reply, unread_part
from judgekit.formats.found import Found
from judgekit.formats.known import as_text
from judgekit.traces.message import (
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    parse_arguments,
)
from judgekit.traces.trace import ToolDefinition

_ROLES = ("system", "user", "assistant")
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LOOKED_AT = 50
_OTHERS_BLOCKS = (
    "image_url",
    "input_audio",
    "refusal",
    "input_text",
    "output_text",
    "tool-call",
    "tool-result",
    "document_url",
)
_KEPT = ("compaction", "tool_reference")
_OWN_BLOCKS = ("redacted_thinking", "container_upload", "mid_conv_system", "search_result")


def is_anthropic(messages: Sequence[JsonValue]) -> bool:
    """Whether messages have blocks that only this API has; those of text alone are like everybody's."""
    seen = messages[:_LOOKED_AT]
    return all(may_be_anthropic(message) for message in seen) and any(_has_own_block(message) for message in seen)


def may_be_anthropic(message: JsonValue) -> bool:
    """Whether a message has a role of this API, and nothing of what others write beside or inside the content."""
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    if message.get("tool_calls") or message.get("function_call"):
        return False
    return not any(isinstance(block, dict) and _is_of_others(block) for block in _blocks_of(message))


def _is_of_others(block: JsonObject) -> bool:
    """Whether a block is none of this API's; Mistral's thinking is a list of texts."""
    kind = block.get("type")
    return kind is None or kind in _OTHERS_BLOCKS or (kind == "thinking" and not isinstance(block.get("thinking"), str))


def is_response(value: JsonValue) -> bool:
    """Whether this is a message as the API returns it."""
    return (
        isinstance(value, dict)
        and (value.get("type"), value.get("role")) == ("message", "assistant")
        and isinstance(value.get("content"), list)
        and "model" in value
        and ("stop_reason" in value or "usage" in value)
    )


def read_messages(found: Iterable[Found]) -> list[Message]:
    """The messages; one of the source gives several where it holds results of tools.

    Raises:
        TraceError: One has no known role, a content of no known kind, or a tool call without a name.
    """
    return [message for one in found for message in read_message(one)]


def read_message(found: Found, blocks: Iterable[Found | JsonValue] | None = None) -> list[Message]:
    """One message, which gives several where it holds results of tools.

    Args:
        found: The message.
        blocks: Its content, where that does not stand in the message alone.

    Raises:
        TraceError: It has no known role, a content of no known kind, or a tool call without a name.
    """
    role = found.peek("role")
    if role not in _ROLES:
        raise found.unfit("role", f"one of {', '.join(_ROLES)}")
    content = read_blocks(found) if blocks is None else blocks
    found.take("role")
    if found.peek("type") == "message":
        found.take("type")
    if role == "system":
        return [SystemMessage(content_of([_part(block) for block in content]), extra=found.leftover())]
    if role == "assistant":
        items = [_item(block) for block in content]
        model = found.text("model")
        whole: dict[str, object] = {
            "id": found.identity("id"),
            "finish_reason": found.text("stop_reason"),
            "usage": read_usage(found.object("usage")),
            "extra": found.leftover(),
        }
        return reply(items, {"model": model}, whole)
    turn = [_aside(block) or _item(block) for block in content]
    return asked(turn, found.leftover())


def read_blocks(found: Found) -> list[Found | JsonValue]:
    """The content of a message or block, which may also be a text, as blocks.

    Raises:
        TraceError: It is something else.
    """
    content = found.peek("content")
    if isinstance(content, list):
        return found.items("content")
    if content is not None and not isinstance(content, str):
        raise found.unfit("content", "a text or a list of blocks")
    found.take("content")
    return [content] if content else []


def read_system(found: Found) -> list[Message]:
    """The instructions that stand beside the messages: a text, or blocks of it.

    Raises:
        TraceError: They are something else.
    """
    system = found.peek("system")
    if isinstance(system, str):
        found.take("system")
        return [SystemMessage(system)] if system else []
    parts = [_part(block) for block in found.items("system")]
    return [SystemMessage(content_of(parts))] if parts else []


def read_usage(found: Found | None) -> Usage | None:
    """Token counts. This API counts what was written to and read from its cache apart, so the input is their sum."""
    if found is None:
        return None
    raw: JsonObject = {name: found.peek(name) for name in _INPUTS if name in found}
    fresh, written, cached = (found.count(name) for name in _INPUTS)
    details = found.object("output_tokens_details") or Found({})
    return Usage(
        input_tokens=None if fresh is None else fresh + (written or 0) + (cached or 0),
        output_tokens=found.count("output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=details.count("thinking_tokens"),
        extra={**raw, **found.leftover()},
    )


def read_tools(found: Iterable[Found]) -> list[ToolDefinition]:
    """Definitions of tools; one without a name is kept under the name of its type."""
    return [
        ToolDefinition(
            tool.text("name") or str(tool.peek("type")),
            description=tool.text("description"),
            parameters=tool.take("input_schema"),
            extra=tool.leftover(),
        )
        for tool in found
    ]


def _has_own_block(message: JsonValue) -> bool:
    for block in _blocks_of(message):
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(block, dict) and isinstance(kind, str):
            if kind in _OWN_BLOCKS or (kind.endswith("tool_use") and "input" in block):
                return True
            if kind.endswith("tool_result") and "tool_use_id" in block:
                return True
            if kind == "thinking" or (kind in ("image", "document") and isinstance(block.get("source"), dict)):
                return True
    return is_response(message)


def _blocks_of(message: JsonValue) -> list[JsonValue]:
    content = message.get("content") if isinstance(message, dict) else None
    return content[:_LOOKED_AT] if isinstance(content, list) else []


def _type(block: Found | JsonValue) -> str:
    kind = block.peek("type") if isinstance(block, Found) else None
    return kind if isinstance(kind, str) else ""


def _item(block: Found | JsonValue) -> Item:
    """What a block is."""
    if isinstance(block, Found) and _type(block).endswith("tool_result"):
        return _result(block)
    if isinstance(block, Found) and _type(block).endswith("tool_use") and not is_blank(block):
        return _call(block)
    return _part(block)


def _aside(block: Found | JsonValue) -> SystemMessage | None:
    """Instructions that stand among what the user says."""
    if isinstance(block, Found) and _type(block) == "mid_conv_system":
        return SystemMessage(content_of(_parts(block)), extra=block.leftover())
    return None


def _call(found: Found) -> ToolCall:
    name = found.text("name")
    if name is None:
        raise found.unfit("name", "the name of a tool")
    own = found.peek("type") == "tool_use"
    if own:
        found.take("type")
    return ToolCall.model_validate(
        {
            "name": name,
            "id": found.identity("id"),
            "metadata": {} if own else {"executor": "provider"},
            **parse_arguments(found.take("input")),
            "extra": found.leftover(),
        }
    )


def _result(found: Found) -> ToolMessage:
    if found.peek("type") == "tool_result":
        found.take("type")
    content = found.peek("content")
    failed = found.flag("is_error")
    if (
        "is_error" not in found and failed is None
    ):  # absent, it means success; the provider's tools say it in the content
        failed = isinstance(content, dict) and ("error_code" in content or str(content.get("type")).endswith("_error"))
    identity = found.identity("tool_use_id")
    text = as_text(found.take("content")) if _is_foreign(content) else content_of(_parts(found))
    return ToolMessage(text, tool_call_id=identity, is_error=failed, extra=found.leftover())


def _is_foreign(content: JsonValue) -> bool:
    """Whether the content of a result is neither text nor made of blocks that people read, as that of a web search."""
    if content is None or isinstance(content, str):
        return False
    return not isinstance(content, list) or any(
        isinstance(block, dict) and str(block.get("type")).endswith("_result") and block.get("type") != "search_result"
        for block in content
    )


def _parts(found: Found) -> list[Part]:
    return [_part(block) for block in read_blocks(found)]


def _part(found: Found | JsonValue) -> Part:
    if not isinstance(found, Found):
        return TextPart(found) if isinstance(found, str) else OtherPart(found)
    kind = _type(found)
    if kind in ("text", "thinking") and isinstance(text := found.peek(kind), str):
        found.take("type")
        found.take(kind)
        return (TextPart if kind == "text" else ReasoningPart)(text, extra=found.leftover())
    if kind == "redacted_thinking":
        return ReasoningPart("", extra=found.leftover())
    if kind == "container_upload":
        return MediaPart(kind="file", extra=found.leftover())
    if kind in ("image", "document") and isinstance(found.peek("source"), dict):
        return _media(found, kind)
    if kind == "search_result" and _are_texts(found.peek("content")):
        return TextPart(_lines(found.objects("content")), extra=found.leftover())
    return OtherPart(found.leftover()) if kind in _KEPT else unread_part(found)


def _are_texts(content: JsonValue) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, dict) and isinstance(block.get("text"), str) for block in content
    )


def _lines(blocks: Iterable[Found]) -> str:
    """The texts of blocks, which are taken with their type."""
    lines: list[str] = []
    for block in blocks:
        if block.peek("type") == "text":
            block.take("type")
        lines.append(block.text("text") or "")
    return "\n".join(lines)


def _media(found: Found, kind: str) -> Part:
    source = found.object("source")
    if source is None:
        return OtherPart(found.leftover())
    if source.peek("type") == "text" and (text := source.text("data")) is not None:
        return TextPart(text, extra=found.leftover())
    if source.peek("type") == "content" and isinstance(source.peek("content"), str):
        return TextPart(source.text("content") or "", extra=found.leftover())
    if source.peek("type") in ("base64", "url"):
        source.take("type")
    if kind == "image":
        found.take("type")
    return MediaPart(
        kind="image" if kind == "image" else "file",
        url=source.text("url"),
        data=source.text("data"),
        mime_type=source.text("media_type"),
        name=found.text("title"),
        extra=found.leftover(),
    )

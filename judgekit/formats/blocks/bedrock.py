"""Messages of Amazon Bedrock's Converse API, whose blocks have no ``type`` but a single key that names their kind.

[{"role": "user", "content": [{"text": "Hi"}]},
 {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}}]},
 {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"json": {}}]}}]}]
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from judgekit.formats.blocks.common import MEDIA, read_cached_counts, read_call, read_parts
from judgekit.formats.blocks.reply import ReplyItem, is_blank, read_user_turn, split_reply, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, objects_in
from judgekit.traces.message import (
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
OBJECTS = (
    *("toolUse", "toolResult", "reasoningContent", "image", "document", "video", "audio"),
    *("cachePoint", "guardContent", "citationsContent", "searchResult"),
)
"""Fields of blocks that hold an object, and name the kind of the block."""
_INPUTS = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")


def is_bedrock(messages: JsonValue) -> bool:
    """Return whether messages have this API's blocks, and only roles of this API."""
    seen = head(messages)
    turns = objects_in(seen)
    blocks = [block for turn in turns if isinstance(content := turn.get("content"), list) for block in head(content)]
    if not blocks or len(turns) < len(seen):
        return False
    typed = any("type" in block for block in objects_in(blocks))
    of_haystack = any("meta" in turn for turn in turns)
    has_roles = all(turn.get("role") in _ROLES and not turn.get("tool_calls") for turn in turns)
    return has_roles and not (typed or of_haystack) and any(map(_is_block, blocks))


def read_message(
    message: FieldTracker, model: str | None = None, whole: Mapping[str, object] | None = None
) -> list[Message]:
    """Read one message. If it holds tool results, it becomes several. A reply has a model and fields of the whole."""
    role = message.one_of("role", _ROLES)
    message.take("role")
    items = message.items("content")
    if role == "system":
        return [SystemMessage(to_content(read_parts(items, _part)), extra=message.leftover())]
    blocks = read_parts(items, _item)
    if role == "user":
        return read_user_turn(blocks, message.leftover())
    return split_reply(blocks, {"model": model}, {**(whole or {}), "extra": message.leftover()})


def read_system(request: FieldTracker) -> list[Message]:
    """Read the instructions next to the messages."""
    parts = read_parts(request.items("system"), _part)
    return [SystemMessage(to_content(parts))] if parts else []


def read_usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts."""
    return read_cached_counts(counts, input=_INPUTS, cached=_INPUTS[1], output="outputTokens")


def read_tools(tools: Iterable[FieldTracker]) -> list[ToolDefinition]:
    """Read tool definitions. Other entries, such as cache points, are kept under the name of their kind."""
    return list(map(_definition, tools))


def _definition(tool: FieldTracker) -> ToolDefinition:
    named = tool.object("toolSpec") or tool.object("systemTool") or tool
    name, description = named.text("name"), named.text("description")
    schema = named.object("inputSchema")
    parameters = schema.take("json") if schema else None
    kind = next(iter(tool), "tool")
    return ToolDefinition(name or kind, description=description, parameters=parameters, extra=tool.leftover())


def _is_block(block: JsonValue) -> bool:
    return isinstance(block, dict) and (
        isinstance(block.get("text"), str) or any(isinstance(block.get(kind), dict) for kind in OBJECTS)
    )


def _item(block: FieldTracker) -> ReplyItem:
    if not is_blank(block.peek("toolUse")) and (call := block.object("toolUse")) is not None:
        provided = call.peek("type") == "server_tool_use"
        return read_call(call, ids=("toolUseId",), args=("input",), provided=provided, outer=block)
    if (result := block.object("toolResult")) is not None:
        return _result(block, result)
    return _part(block)


def _result(block: FieldTracker, result: FieldTracker) -> ToolMessage:
    status = result.peek("status")
    result.take_if("status", "success", "error")
    identity = result.id("toolUseId")
    parts = read_parts(result.items("content"), _result_part)
    is_error = status == "error" if status in ("success", "error") else None
    return ToolMessage(to_content(parts), tool_call_id=identity, is_error=is_error, extra=block.leftover())


def _result_part(part: FieldTracker) -> Part:
    return TextPart(to_text(part.take("json")), extra=part.leftover()) if "json" in part else _part(part)


def _part(block: FieldTracker) -> Part:
    kind = block.first("text", *OBJECTS) or ""
    value = block.peek(kind)
    if kind == "text" and isinstance(value, str):
        block.take("text")
        return TextPart(value, extra=block.leftover())
    if not isinstance(value, dict):
        return unknown_part(block)
    if kind in MEDIA:
        return _media(block, kind)
    if kind == "reasoningContent":
        return _nested_text(block, ReasoningPart, kind, "reasoningText")
    if kind == "guardContent" and isinstance(value.get("text"), dict):
        return _nested_text(block, TextPart, kind, "text")
    if kind in ("citationsContent", "searchResult") and isinstance(value.get("content"), list):
        inner = block.object(kind) or block
        text = ("" if kind == "citationsContent" else "\n").join(
            (text_block.text("text") or "") if isinstance(text_block, FieldTracker) else to_text(text_block)
            for text_block in inner.items("content")
        )
        return TextPart(text, extra=block.leftover())
    return OtherPart(block.leftover())


def _nested_text(block: FieldTracker, part: type[TextPart | ReasoningPart], outer: str, inner: str) -> Part:
    """Read a part whose text is two levels down. Without a text, as in encrypted reasoning, it is empty."""
    around = block.object(outer)
    holder = around.object(inner) if around is not None else None
    text = holder.text("text") if holder is not None else None
    return part(text or "", extra=block.leftover())


def _media(block: FieldTracker, key: str) -> Part:
    """Read media. Data that some loggers write as a list of bytes instead of base64 text stays in ``extra``."""
    media = block.object(key) or block
    source = media.object("source") or FieldTracker({})
    kind = MEDIA[key]
    if isinstance(text := source.peek("text"), str):
        source.take("text")
        return TextPart(text, extra=block.leftover())
    data = None
    if isinstance(source.peek("bytes"), str):
        data = source.text("bytes")
    elif (encoded := source.object("bytes")) is not None and encoded.peek("__bytes_encoded__") is True:  # Strands
        encoded.take("__bytes_encoded__")
        data = encoded.text("data")
    location = source.object("s3Location")
    form = media.peek("format")
    url, name = location.text("uri") if location else None, media.text("name")
    mime_type = f"{kind}/{form}" if kind != "file" and isinstance(form, str) else None
    return MediaPart(kind=kind, url=url, data=data, mime_type=mime_type, name=name, extra=block.leftover())

"""Messages of Inspect AI.

{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "add", "arguments": {"x": 1}}]}
{"role": "tool", "tool_call_id": "1", "function": "add", "content": "", "error": {"type": "unknown", "message": "nope"}}
"""

from collections.abc import Iterable

from pydantic import JsonValue

from judgekit.formats.blocks.common import MEDIA, PROVIDED, bare_part, content_items, tool_name
from judgekit.formats.blocks.reply import ReplyItem, split_reply, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import first_object, head, objects_in
from judgekit.traces.message import (
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    parse_arguments,
)


def are_messages(value: JsonValue) -> bool:
    """Return whether messages can only be Inspect's: they name a tool by a text called ``function``."""
    return any(map(_is_recognizable, objects_in(head(value))))


def read_messages(recorded: Iterable[FieldTracker]) -> list[Message]:
    """Read messages. Tools that the provider ran within a reply have their results after it."""
    return [message for fields in recorded for message in _messages(fields)]


def read_usage(usage: FieldTracker | None) -> Usage | None:
    """Read token counts. Some providers exclude cached tokens from the input; the total shows it."""
    if usage is None:
        return None
    sent, cached = usage.count("input_tokens"), usage.count("input_tokens_cache_read")
    received, written = usage.count("output_tokens"), usage.count("input_tokens_cache_write")
    thought, total = usage.count("reasoning_tokens"), usage.count("total_tokens")
    counts = {"total_tokens": total, "input_tokens_cache_write": written}
    apart = (cached or 0) + (written or 0)
    if sent is not None and apart > 0 and total == sent + (received or 0) + apart:
        counts["input_tokens"] = sent
        sent += apart
    extra: JsonObject = {name: count for name, count in counts.items() if count is not None}
    extra |= usage.leftover()
    return Usage(input_tokens=sent, output_tokens=received, cached_tokens=cached, reasoning_tokens=thought, extra=extra)


def _is_recognizable(message: JsonObject) -> bool:
    if message.get("role") == "assistant":
        message = first_object(message.get("tool_calls"))
    elif message.get("role") != "tool":
        return False
    return isinstance(message.get("function"), str)


def _messages(message: FieldTracker) -> list[Message]:
    role = message.one_of("role", ("system", "user", "assistant", "tool"))
    message.take("role")
    fields: dict[str, object] = {"id": message.id("id")}
    fields["metadata"] = (message.object("metadata") or FieldTracker({})).leftover()
    content = [item for part in content_items(message, "a list of parts") for item in _items(part)]
    if role == "assistant":
        items = [*content, *(_call(call) for call in message.objects("tool_calls"))]
        return split_reply(items, {"model": message.text("model")}, {**fields, "extra": message.leftover()})
    fields["content"] = to_content([part for part in content if not isinstance(part, ToolCall | ToolMessage)])
    if role == "tool":
        error = message.object("error")
        if error is not None and fields["content"] == "":
            fields["content"] = error.text("message") or ""
        fields |= {"name": message.text("function"), "tool_call_id": message.id("tool_call_id")}
        return [ToolMessage.model_validate({**fields, "is_error": error is not None, "extra": message.leftover()})]
    kind = SystemMessage if role == "system" else HumanMessage
    return [kind.model_validate({**fields, "extra": message.leftover()})]


def _items(part: FieldTracker | JsonValue) -> list[ReplyItem]:
    if not isinstance(part, FieldTracker):
        return [bare_part(part)]
    kind = part.peek("type")
    if kind == "tool_use" and isinstance(part.peek("name"), str):
        return _provider_call(part)
    return [_part(part, kind)]


def _part(part: FieldTracker, kind: JsonValue) -> Part:
    if kind == "text" and isinstance(part.peek("text"), str):
        part.take("type")
        text, refused = part.text("text") or "", part.boolean("refusal")
        return (RefusalPart if refused else TextPart)(text, extra=part.leftover())
    if kind == "reasoning" and isinstance(part.peek("reasoning"), str):
        part.take("type")
        hidden = part.peek("redacted") is True  # the text is encrypted
        text = part.text("summary" if hidden else "reasoning") or ""
        return ReasoningPart(text, extra=part.leftover())
    if isinstance(kind, str) and kind in MEDIA and isinstance(part.peek(kind), str):
        part.take("type")
        where, media = part.text(kind), MEDIA[kind]
        name, mime_type = part.text("filename"), part.text("mime_type")
        return MediaPart(kind=media, url=where, name=name, mime_type=mime_type, extra=part.leftover())
    return OtherPart(part.leftover()) if kind == "data" else unknown_part(part)


def _provider_call(block: FieldTracker) -> list[ReplyItem]:
    """Read a tool that the provider ran: call and result in one."""
    block.take("type")
    name, identity = block.text("name") or "", block.id("id")
    arguments = block.take("arguments")
    result, error = block.take("result"), block.take("error")
    text = to_text(error if result in (None, "") and error is not None else result or "")
    rest: JsonObject = {"error": error} if error is not None and text != error else {}
    call = ToolCall.recorded(name, arguments, id=identity, metadata=PROVIDED, extra=block.leftover())
    return [call, ToolMessage(text, tool_call_id=identity, name=name, is_error=error is not None, extra=rest)]


def _call(call: FieldTracker) -> ToolCall:
    name = tool_name(call, "function")
    call.take_if("type", "function")
    fields: dict[str, object] = {"name": name, "id": call.id("id")}
    recorded, problem = call.take("arguments"), call.text("parse_error")
    if problem is None:
        fields |= parse_arguments(recorded)
    else:
        fields |= {"args_raw": None if recorded is None else to_text(recorded), "args_error": problem}
    return ToolCall.model_validate({**fields, "extra": call.leftover()})

"""Messages of Inspect AI.

{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "add", "arguments": {"x": 1}}]}
{"role": "tool", "tool_call_id": "1", "function": "add", "content": "", "error": {"type": "unknown", "message": "nope"}}
"""

from collections.abc import Iterable

from pydantic import JsonValue

from judgekit.formats.blocks.common import MEDIA, bare_part, content_items, provider_metadata, tool_name
from judgekit.formats.blocks.reply import ReplyItem, split_reply, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, lookup
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
    return any(map(_is_recognizable, head(value)))


def read_messages(found: Iterable[FieldTracker]) -> list[Message]:
    """Read messages. Tools that the provider ran within a reply have their results after it.

    Raises:
        TraceError: A message has an unknown role or content, or a tool call has no name.
    """
    return [message for one in found for message in _messages(one)]


def read_usage(found: FieldTracker | None) -> Usage | None:
    """Read token counts. Some providers exclude cached tokens from the input; the total shows it."""
    if found is None:
        return None
    asked, read = found.count("input_tokens"), found.count("input_tokens_cache_read")
    answered, written = found.count("output_tokens"), found.count("input_tokens_cache_write")
    thought, total = found.count("reasoning_tokens"), found.count("total_tokens")
    cached = (read or 0) + (written or 0)
    apart = asked is not None and cached > 0 and total == asked + (answered or 0) + cached
    counts = {"total_tokens": total, "input_tokens_cache_write": written, "input_tokens": asked if apart else None}
    return Usage(
        input_tokens=asked + cached if apart and asked is not None else asked,
        output_tokens=answered,
        cached_tokens=read,
        reasoning_tokens=thought,
        extra={**{name: count for name, count in counts.items() if count is not None}, **found.leftover()},
    )


def _is_recognizable(message: JsonValue) -> bool:
    role = lookup(message, "role")
    if role == "assistant":
        message = next(iter(head(lookup(message, "tool_calls"))), None)
    return role in ("tool", "assistant") and isinstance(lookup(message, "function"), str)


def _messages(found: FieldTracker) -> list[Message]:
    role = found.one_of("role", ("system", "user", "assistant", "tool"))
    found.take("role")
    fields: dict[str, object] = {"id": found.id("id")}
    fields["metadata"] = (found.object("metadata") or FieldTracker({})).leftover()
    content = [item for part in content_items(found, "a list of parts") for item in _items(part)]
    if role == "assistant":
        made = [*content, *(_call(call) for call in found.objects("tool_calls"))]
        return split_reply(made, {"model": found.text("model")}, {**fields, "extra": found.leftover()})
    fields["content"] = to_content([part for part in content if not isinstance(part, ToolCall | ToolMessage)])
    if role == "tool":
        error = found.object("error")
        if error is not None and fields["content"] == "":
            fields["content"] = error.text("message") or ""
        fields |= {"name": found.text("function"), "tool_call_id": found.id("tool_call_id")}
        return [ToolMessage.model_validate({**fields, "is_error": error is not None, "extra": found.leftover()})]
    kind = SystemMessage if role == "system" else HumanMessage
    return [kind.model_validate({**fields, "extra": found.leftover()})]


def _items(found: FieldTracker | JsonValue) -> list[ReplyItem]:
    if not isinstance(found, FieldTracker):
        return [bare_part(found)]
    kind = found.peek("type")
    if kind == "tool_use" and isinstance(found.peek("name"), str):
        return _provider_call(found)
    return [_part(found, kind)]


def _part(found: FieldTracker, kind: JsonValue) -> Part:
    if kind == "text" and isinstance(found.peek("text"), str):
        found.take("type")
        text, refused = found.text("text") or "", found.boolean("refusal")
        return (RefusalPart if refused else TextPart)(text, extra=found.leftover())
    if kind == "reasoning" and isinstance(found.peek("reasoning"), str):
        found.take("type")
        hidden = found.peek("redacted") is True  # the text is encrypted
        text = found.text("summary" if hidden else "reasoning") or ""
        return ReasoningPart(text, extra=found.leftover())
    if isinstance(kind, str) and kind in MEDIA and isinstance(found.peek(kind), str):
        found.take("type")
        where, media = found.text(kind), MEDIA[kind]
        name, mime_type = found.text("filename"), found.text("mime_type")
        return MediaPart(kind=media, url=where, name=name, mime_type=mime_type, extra=found.leftover())
    return OtherPart(found.leftover()) if kind == "data" else unknown_part(found)


def _provider_call(found: FieldTracker) -> list[ReplyItem]:
    """Read a tool that the provider ran: call and result in one."""
    found.take("type")
    name, identity = found.text("name") or "", found.id("id")
    arguments = parse_arguments(found.take("arguments"))
    result, error = found.take("result"), found.take("error")
    said = to_text(error if result in (None, "") and error is not None else result or "")
    rest: JsonObject = {"error": error} if error is not None and said != error else {}
    metadata = provider_metadata(provided=True)
    call = ToolCall(name, id=identity, metadata=metadata, **arguments, extra=found.leftover())
    return [call, ToolMessage(said, tool_call_id=identity, name=name, is_error=error is not None, extra=rest)]


def _call(found: FieldTracker) -> ToolCall:
    name = tool_name(found, "function")
    found.take_if("type", "function")
    fields: dict[str, object] = {"name": name, "id": found.id("id")}
    recorded, problem = found.take("arguments"), found.text("parse_error")
    if problem is None:
        fields |= parse_arguments(recorded)
    else:
        fields |= {"args_raw": None if recorded is None else to_text(recorded), "args_error": problem}
    return ToolCall.model_validate({**fields, "extra": found.leftover()})

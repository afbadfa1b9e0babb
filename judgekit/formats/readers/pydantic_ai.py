"""Messages of pydantic-ai, versions 1 and 2, as ``all_messages_json()`` returns them.

[{"kind": "request", "instructions": "be kind", "parts": [{"part_kind": "user-prompt", "content": "weather?"}]},
 {"kind": "response", "model_name": "m", "usage": {"input_tokens": 52, "output_tokens": 9}, "parts": [
    {"part_kind": "tool-call", "tool_name": "weather", "args": {"city": "a"}, "tool_call_id": "c1"}]},
 {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "weather", "content": "rain", ...}]}]
"""

from collections.abc import Collection, Sequence
from itertools import zip_longest

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import MEDIA, PROVIDED, checked_text, content_items, media_kind, read_parts
from judgekit.formats.blocks.reply import ReplyItem, split_reply, to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, messages_field, objects_in, str_or_none
from judgekit.traces.message import (
    HumanMessage,
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
)
from judgekit.traces.sample import Sample

_PROCESSED = "Final result processed."
"""The result of an output tool. Its arguments are the agent's answer, in the requested form."""


class PydanticAIReader(MessagesReader):
    """A reader of lists of messages, or rows with a list in ``messages``.

    The call of an output tool is not a call but the agent's answer, as JSON text, unless it was discarded.
    Instructions, which every request repeats, become one `SystemMessage` until they change.
    """

    name = "pydantic-ai"
    shape = (
        'pydantic-ai: [{"kind": "request", "parts": [{"part_kind": "user-prompt", ...}]}, ...], or rows of "messages"'
    )

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Recognize messages as requests and responses whose parts have a ``part_kind``."""
        messages = objects_in(head(messages_field(document)))
        recorded = [message for message in messages if message.get("kind") in ("request", "response")]
        return any("part_kind" in part for message in recorded for part in objects_in(head(message.get("parts"))[:1]))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by its id if there is one."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        outputs, identity = _about(row.peek("messages"))
        messages = _messages(row.objects("messages"), outputs)
        if not messages:
            raise TraceError("messages: expected messages, found none")
        return build_sample(row, index, {"messages": messages}, identity=identity)


def _about(messages: JsonValue) -> tuple[set[str], str | None]:
    names: set[str] = set()
    identity: str | None = None
    for message in objects_in(messages):
        identity = str_or_none(message.get("conversation_id")) if identity is None else identity
        for part in objects_in(message.get("parts")):
            name, processed = part.get("tool_name"), part.get("content") == _PROCESSED
            if isinstance(name, str) and (processed or name == "final_result" or name.startswith("final_result_")):
                names.add(name)
    return names, identity


def _messages(recorded: Sequence[FieldTracker], outputs: Collection[str]) -> list[Message]:
    messages: list[Message] = []
    instructions: str | None = None
    for message, following in zip_longest(recorded, recorded[1:]):
        kind = message.peek("kind")
        if kind not in ("request", "response"):
            raise message.type_error("kind", "request or response")
        if kind == "response":
            messages += _response(message, outputs, _unused(following, outputs))
            continue
        start = len(messages)
        if (prompt := message.text("instructions")) is not None and prompt != instructions:
            messages.append(SystemMessage(prompt))
            instructions = prompt
        for part in message.objects("parts"):
            messages += _request_part(part, outputs)
        if len(messages) > start:
            message.take("kind")
            if rest := message.leftover():
                first = messages[start]
                messages[start] = first.model_copy(update={"extra": {**first.extra, "request": rest}})
    return messages


def _unused(request: FieldTracker | None, outputs: Collection[str]) -> set[str]:
    """Return the calls of output tools that the next request shows to be discarded."""
    return {
        to_text(part.get("tool_call_id"))
        for part in objects_in(None if request is None else request.peek("parts"))
        if part.get("content") != _PROCESSED and _closes(FieldTracker(part), outputs)
    }


def _closes(part: FieldTracker, outputs: Collection[str]) -> bool:
    """Return whether this is the result of an output tool, which nobody reads."""
    name, outcome = part.peek("tool_name"), part.peek("outcome")
    is_return = part.peek("part_kind") == "tool-return" and outcome in (None, "success")
    return is_return and isinstance(name, str) and name in outputs


def _request_part(part: FieldTracker, outputs: Collection[str]) -> list[Message]:
    """Read a part of a request as a message. Other parts give none, and stay in the request."""
    kind, name = part.peek("part_kind"), part.peek("tool_name")
    if _closes(part, outputs):
        return []
    if kind in ("tool-return", "retry-prompt") and isinstance(name, str) and name not in outputs:
        return [_result(part)]
    if kind in ("system-prompt", "instruction-delta"):
        part.take("part_kind")
        return [SystemMessage(_text(part), timestamp=part.time("timestamp"), extra=part.leftover())]
    if kind == "user-prompt":
        part.take("part_kind")
        content = to_content(read_parts(content_items(part, "a list"), _part))
    elif kind in ("tool-return", "retry-prompt", "retry-feedback"):  # the library's reply to an invalid answer
        content = _text(part)
    elif kind == "speech":
        content = part.text("transcript") or ""
    else:
        _unread(part, kind)
        return []
    return [HumanMessage(content, timestamp=part.time("timestamp"), extra=part.leftover())]


def _text(holder: FieldTracker) -> str:
    content = holder.take("content")
    return "" if content is None else to_text(content)


def _result(part: FieldTracker) -> ToolMessage:
    retry = part.peek("part_kind") == "retry-prompt"
    outcome = part.peek("outcome")
    part.take("part_kind")
    name, identity, moment = part.text("tool_name"), part.id("tool_call_id"), part.time("timestamp")
    has_parts = any("kind" in inner for inner in objects_in(part.peek("content")))
    content = to_content(read_parts(part.items("content"), _part)) if has_parts else _text(part)
    part.take_if("outcome", "success")
    failed = True if retry else None if outcome is None else outcome != "success"
    about = {"tool_call_id": identity, "name": name, "is_error": failed, "timestamp": moment}
    return ToolMessage.model_validate({"content": content, **about, "extra": part.leftover()})


def _part(part: FieldTracker) -> Part:
    kind = part.peek("kind")
    if kind in ("text", "text-content") and isinstance(part.peek("content"), str):
        part.take("kind")
        return TextPart(part.text("content") or "", extra=part.leftover())
    if kind == "binary" and isinstance(part.peek("data"), str):
        part.take("kind")
        data, mime_type = part.text("data"), part.text("media_type")
        return MediaPart(kind=media_kind(mime_type), data=data, mime_type=mime_type, extra=part.leftover())
    name = str(kind).removesuffix("-url")
    if name != kind and name in MEDIA and isinstance(part.peek("url"), str):
        part.take("kind")
        url, mime_type = part.text("url"), part.text("media_type")
        return MediaPart(kind=MEDIA[name], url=url, mime_type=mime_type, extra=part.leftover())
    if kind not in ("cache-point", "uploaded-file"):
        _unread(part, kind)
    return OtherPart(part.leftover())


def _unread(part: FieldTracker, kind: JsonValue) -> None:
    part.warn(f"unreadable part of type {kind!r:.80}, kept as is")


def _response(response: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> list[Message]:
    response.take("kind")
    items = [_reply_item(part, outputs, unused) for part in response.objects("parts")]
    whole: dict[str, object] = {
        "id": response.id("provider_response_id", "vendor_id"),
        "timestamp": response.time("timestamp"),
        "finish_reason": response.text("finish_reason"),
        "usage": _usage(response.object("usage")),
    }
    model = response.text("model_name")
    return split_reply(items, {"model": model}, {**whole, "extra": response.leftover()})


def _reply_item(part: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> ReplyItem:
    kind = part.peek("part_kind")
    if kind in ("tool-call", "builtin-tool-call"):
        return _call(part, outputs, unused)
    if kind == "builtin-tool-return":
        return _result(part)
    if kind in ("text", "thinking"):
        text = checked_text(part)
        part.take("part_kind")
        return (TextPart if kind == "text" else ReasoningPart)(text, extra=part.leftover())
    if kind == "speech" and isinstance(part.peek("transcript"), str):
        return TextPart(part.text("transcript") or "", extra=part.leftover())
    if kind == "file" and (file := part.object("content")) is not None:
        file_part, rest = _part(file), part.leftover()
        if isinstance(file_part, OtherPart):
            return OtherPart({**rest, "content": file_part.data})
        return file_part.model_copy(update={"extra": {**file_part.extra, "part": rest}})
    _unread(part, kind)
    return OtherPart(part.leftover())


def _call(part: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> ReplyItem:
    name = part.peek("tool_name")
    if not isinstance(name, str):
        raise part.type_error("tool_name", "a tool name")
    if name in outputs and to_text(part.peek("tool_call_id")) in unused:
        return OtherPart(part.leftover())
    part.take("tool_name")
    provider = part.take("part_kind") == "builtin-tool-call"
    arguments, identity = part.take("args"), part.id("tool_call_id")
    if name in outputs and not provider:
        text = "" if arguments is None else to_text(arguments)
        return TextPart(text, extra={"tool_name": name, "tool_call_id": identity, **part.leftover()})
    metadata = PROVIDED if provider else None
    return ToolCall.recorded(name, arguments, id=identity, metadata=metadata, extra=part.leftover())


def _usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts. The input includes the cached tokens."""
    if counts is None:
        return None
    details = counts.object("details") or FieldTracker({})
    thought = counts.count("output_reasoning_tokens")
    return Usage(
        input_tokens=counts.count("input_tokens", "request_tokens"),
        output_tokens=counts.count("output_tokens", "response_tokens"),
        cached_tokens=counts.count("cache_read_tokens"),
        reasoning_tokens=details.count("reasoning_tokens") if thought is None else thought,
        extra=counts.leftover(),
    )

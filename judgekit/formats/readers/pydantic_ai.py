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
from judgekit.formats.blocks.common import MediaKind, content_items, media_kind, provider_metadata, read_parts
from judgekit.formats.blocks.reply import ReplyItem, split_reply, to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, messages_field, objects_in, str_or_none
from judgekit.traces.message import (
    HumanMessage,
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
from judgekit.traces.sample import Sample

_URLS: dict[str, MediaKind] = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "file"}
_KEPT = ("cache-point", "uploaded-file")
_PROCESSED = "Final result processed."
"""The result of an output tool. Its arguments are the agent's answer, in the requested form."""


class PydanticAIReader:
    """A reader of lists of messages, or rows with a list in ``messages``.

    The call of an output tool is not a call but the agent's answer, as JSON text, unless it was discarded.
    Instructions, which every request repeats, become one `SystemMessage` until they change.
    """

    name = "pydantic-ai"
    joins_lines = False
    shape = (
        'pydantic-ai: [{"kind": "request", "parts": [{"part_kind": "user-prompt", ...}]}, ...], or rows of "messages"'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize messages as requests and responses whose parts have a ``part_kind``."""
        return any(map(_is_conversation, self.records(value)[:1]))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of messages as one conversation, and a list of rows or of such lists as many."""
        return [document] if _is_conversation(document) else as_records(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by its id if there is one."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        outputs, identity = _about(row.peek("messages"))
        messages = _messages(row.objects("messages"), outputs)
        if not messages:
            raise TraceError("messages: expected messages, found none")
        return build_sample(row, index, {"messages": messages}, identity=identity)


def _is_conversation(value: JsonValue) -> bool:
    return any(map(_is_recognizable, objects_in(head(messages_field(value)))))


def _is_recognizable(message: JsonObject) -> bool:
    if message.get("kind") not in ("request", "response"):
        return False
    return any("part_kind" in part for part in objects_in(head(message.get("parts"))[:1]))


def _about(messages: JsonValue) -> tuple[set[str], str | None]:
    """Return the names of the output tools, and the conversation's id."""
    names: set[str] = set()
    identity: str | None = None
    for message in objects_in(messages):
        identity = str_or_none(message.get("conversation_id")) if identity is None else identity
        for part in objects_in(message.get("parts")):
            name, processed = part.get("tool_name"), part.get("content") == _PROCESSED
            if isinstance(name, str) and (processed or name == "final_result" or name.startswith("final_result_")):
                names.add(name)
    return names, identity


def _messages(found: Sequence[FieldTracker], outputs: Collection[str]) -> list[Message]:
    messages: list[Message] = []
    instructions: str | None = None
    for message, following in zip_longest(found, found[1:]):
        kind = message.peek("kind")
        if kind not in ("request", "response"):
            raise message.type_error("kind", "request or response")
        if kind == "response":
            messages += _response(message, outputs, _unused(following, outputs))
            continue
        made: list[Message] = []
        if (told := message.text("instructions")) is not None and told != instructions:
            made.append(SystemMessage(told))
            instructions = told
        made += [one for part in message.objects("parts") for one in _request_part(part, outputs)]
        if made:
            message.take("kind")
            first, rest = made[0], message.leftover()
            made[0] = first.model_copy(update={"extra": {**first.extra, "request": rest}}) if rest else first
        messages += made
    return messages


def _unused(request: FieldTracker | None, outputs: Collection[str]) -> set[str]:
    """Return the calls of output tools that the next request shows to be discarded."""
    return {
        to_text(part.get("tool_call_id"))
        for part in objects_in(None if request is None else request.peek("parts"))
        if part.get("content") != _PROCESSED and _closes(FieldTracker(part), outputs)
    }


def _closes(found: FieldTracker, outputs: Collection[str]) -> bool:
    """Return whether this is the result of an output tool, which nobody reads."""
    name, outcome = found.peek("tool_name"), found.peek("outcome")
    is_return = found.peek("part_kind") == "tool-return" and outcome in (None, "success")
    return is_return and isinstance(name, str) and name in outputs


def _request_part(found: FieldTracker, outputs: Collection[str]) -> list[Message]:
    """Read a part of a request as a message. Other parts give none, and stay in the request."""
    kind, name = found.peek("part_kind"), found.peek("tool_name")
    if _closes(found, outputs):
        return []
    if kind in ("tool-return", "retry-prompt") and isinstance(name, str) and name not in outputs:
        return [_result(found)]
    if kind in ("system-prompt", "instruction-delta"):
        found.take("part_kind")
        prompt: dict[str, object] = {"content": _text(found), "timestamp": found.time("timestamp")}
        return [SystemMessage.model_validate({**prompt, "extra": found.leftover()})]
    if kind == "user-prompt":
        found.take("part_kind")
        said = to_content(read_parts(content_items(found, "a list"), _part))
    elif kind in ("tool-return", "retry-prompt", "retry-feedback"):  # the library's reply to an invalid answer
        said = _text(found)
    elif kind == "speech":
        said = found.text("transcript") or ""
    else:
        _unread(found, kind)
        return []
    fields: dict[str, object] = {"content": said, "timestamp": found.time("timestamp")}
    return [HumanMessage.model_validate({**fields, "extra": found.leftover()})]


def _text(found: FieldTracker) -> str:
    content = found.take("content")
    return "" if content is None else to_text(content)


def _result(found: FieldTracker) -> ToolMessage:
    retry = found.peek("part_kind") == "retry-prompt"
    outcome = found.peek("outcome")
    found.take("part_kind")
    fields: dict[str, object] = {
        "name": found.text("tool_name"),
        "tool_call_id": found.id("tool_call_id"),
        "timestamp": found.time("timestamp"),
        "is_error": True if retry else None if outcome is None else outcome != "success",
    }
    content = found.peek("content")
    if isinstance(content, list) and any(isinstance(one, dict) and "kind" in one for one in content):
        fields["content"] = to_content(read_parts(found.items("content"), _part))
    else:
        fields["content"] = _text(found)
    found.take_if("outcome", "success")
    return ToolMessage.model_validate({**fields, "extra": found.leftover()})


def _part(found: FieldTracker) -> Part:
    kind = found.peek("kind")
    if kind in ("text", "text-content") and isinstance(found.peek("content"), str):
        found.take("kind")
        return TextPart(found.text("content") or "", extra=found.leftover())
    if kind == "binary" and isinstance(found.peek("data"), str):
        found.take("kind")
        data, mime_type = found.text("data"), found.text("media_type")
        return MediaPart(kind=media_kind(mime_type), data=data, mime_type=mime_type, extra=found.leftover())
    if isinstance(kind, str) and kind in _URLS and isinstance(found.peek("url"), str):
        found.take("kind")
        url, mime_type = found.text("url"), found.text("media_type")
        return MediaPart(kind=_URLS[kind], url=url, mime_type=mime_type, extra=found.leftover())
    if kind not in _KEPT:
        _unread(found, kind)
    return OtherPart(found.leftover())


def _unread(found: FieldTracker, kind: JsonValue) -> None:
    found.warn(f"unreadable part of type {kind!r:.80}, kept as is")


def _response(found: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> list[Message]:
    found.take("kind")
    said = [_request_message(part, outputs, unused) for part in found.objects("parts")]
    whole: dict[str, object] = {
        "id": found.id("provider_response_id", "vendor_id"),
        "timestamp": found.time("timestamp"),
        "finish_reason": found.text("finish_reason"),
        "usage": _usage(found.object("usage")),
    }
    model = found.text("model_name")
    return split_reply(said, {"model": model}, {**whole, "extra": found.leftover()})


def _request_message(found: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> ReplyItem:
    kind = found.peek("part_kind")
    if kind in ("tool-call", "builtin-tool-call"):
        return _call(found, outputs, unused)
    if kind == "builtin-tool-return":
        return _result(found)
    if kind in ("text", "thinking"):
        content = found.peek("content")
        if content is not None and not isinstance(content, str):
            raise found.type_error("content", "a string")
        found.take("part_kind")
        return (TextPart if kind == "text" else ReasoningPart)(found.text("content") or "", extra=found.leftover())
    if kind == "speech" and isinstance(found.peek("transcript"), str):
        return TextPart(found.text("transcript") or "", extra=found.leftover())
    if kind == "file" and (file := found.object("content")) is not None:
        part, rest = _part(file), found.leftover()
        if isinstance(part, OtherPart):
            return OtherPart({**rest, "content": part.data})
        return part.model_copy(update={"extra": {**part.extra, "part": rest}})
    _unread(found, kind)
    return OtherPart(found.leftover())


def _call(found: FieldTracker, outputs: Collection[str], unused: Collection[str]) -> ReplyItem:
    name = found.peek("tool_name")
    if not isinstance(name, str):
        raise found.type_error("tool_name", "a tool name")
    if name in outputs and to_text(found.peek("tool_call_id")) in unused:
        return OtherPart(found.leftover())
    found.take("tool_name")
    provider = found.take("part_kind") == "builtin-tool-call"
    arguments, identity = found.take("args"), found.id("tool_call_id")
    if name in outputs and not provider:
        said = "" if arguments is None else to_text(arguments)
        return TextPart(said, extra={"tool_name": name, "tool_call_id": identity, **found.leftover()})
    metadata = provider_metadata(provided=provider)
    return ToolCall(name, id=identity, metadata=metadata, **parse_arguments(arguments), extra=found.leftover())


def _usage(found: FieldTracker | None) -> Usage | None:
    """Read token counts. The input includes the cached tokens."""
    if found is None:
        return None
    details = found.object("details") or FieldTracker({})
    thought = found.count("output_reasoning_tokens")
    return Usage(
        input_tokens=found.count("input_tokens", "request_tokens"),
        output_tokens=found.count("output_tokens", "response_tokens"),
        cached_tokens=found.count("cache_read_tokens"),
        reasoning_tokens=details.count("reasoning_tokens") if thought is None else thought,
        extra=found.leftover(),
    )

r"""Messages of OpenAI Chat Completions, as most servers and tools write them.

[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}]
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from judgekit.formats.blocks.common import MediaKind, bare_part, read_counts, tool_name
from judgekit.formats.blocks.plain_chat import read_plain
from judgekit.formats.blocks.reply import is_blank, nonblank_calls, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.traces.fast_models import set_unvalidated
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
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
)
from judgekit.traces.recording import ToolDefinition

_KINDS: dict[str, type[SystemMessage | HumanMessage | AIMessage | ToolMessage]] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
    "tool": ToolMessage,
    "function": ToolMessage,
}
_MEDIA: dict[str, MediaKind] = {
    "image_url": "image",
    "audio_url": "audio",
    "video_url": "video",
    "input_audio": "audio",
    "file": "file",
    "document_url": "file",  # of Mistral
}
_BESIDE = frozenset(("reasoning_content", "reasoning", "thinking_blocks", "reasoning_details", "audio", "refusal"))
"""Fields of a message that hold parts of its content."""
_CALLED = frozenset(("tool_calls", "function_call"))
_TEXTS: dict[str, type[TextPart | RefusalPart]] = {"text": TextPart, "refusal": RefusalPart}
_OTHERS = ("tool_result", "tool-call", "tool-result")
"""Parts that are messages or calls in other APIs."""


def read_messages(whole: FieldTracker, name: str = "messages") -> list[Message]:
    """Read the messages in a field.

    Raises:
        TraceError: A message has an unknown role or content, or a tool call has no name.
    """
    found = whole.objects_or(name, read_plain)
    return [read_message(one) if isinstance(one, FieldTracker) else one for one in found]  # type: ignore[misc]  # mypy finds their base class


def read_message(found: FieldTracker, **about: object) -> Message:
    """Read one message. Its format may know more ``about`` it."""
    role = found.one_of("role", _KINDS)
    kind = _KINDS[role]
    found.take("role")
    fields: dict[str, object]
    if kind is ToolMessage:
        content = _content(found) if _holds_parts(found.peek("content")) else to_text(found.take("content"))
        fields = {"content": content, "tool_call_id": found.id("tool_call_id"), "name": found.text("name")}
        if isinstance(found.peek("is_error"), bool):  # added by some recorders
            fields["is_error"] = found.take("is_error")
    elif kind is SystemMessage:
        fields = {"content": _content(found), "role": role}
    else:
        calls = _calls(found)
        fields = {"content": _content(found, calls), "tool_calls": calls}
        fields["name" if kind is HumanMessage else "agent"] = found.text("name")
    fields["id"] = found.id("id")
    return kind.parsed({**fields, **about}, found.leftover())


def read_usage(found: FieldTracker | None) -> Usage | None:
    """Read token counts as this API and compatible ones report them. Unknown counts are kept."""
    if found is None or not list(found):
        return None
    return read_counts(
        found,
        input="prompt_tokens",
        output="completion_tokens",
        cached="prompt_tokens_details.cached_tokens",
        reasoning="completion_tokens_details.reasoning_tokens",
    )


def read_tools(found: Iterable[FieldTracker]) -> list[ToolDefinition]:
    """Read tool definitions. A tool without a name is named after its type."""
    return list(map(_definition, found))


def _holds_parts(content: JsonValue) -> bool:
    """Return whether a tool result is text, parts or nothing. Some recordings hold a tool's bare return value."""
    if isinstance(content, list):
        return all(isinstance(part, str) or (isinstance(part, dict) and "type" in part) for part in content)
    return content is None or isinstance(content, str)


def _content(found: FieldTracker, calls: list[ToolCall] | None = None) -> str | Sequence[Part]:
    """Return the content with reasoning, refusal and sound from other fields. Calls among the parts go to ``calls``."""
    content = found.peek("content")
    parts: list[Part] = []
    if isinstance(content, list):
        beside = {call.id: call for call in reversed(calls or ()) if call.id is not None}
        parts += [made for part in found.items("content") if (made := _part(part, calls, beside)) is not None]
    elif content is None or isinstance(content, str):
        found.take("content")
        if calls is None or not found.has_any(_BESIDE):
            return content or ""
        if content:
            parts.append(TextPart(content))
    else:
        raise found.type_error("content", "a string or a list of parts")
    if calls is not None:
        parts = [*_thoughts(found), *parts, *_audio_parts(found, has_text=not parts)]
        if refusal := found.text("refusal"):
            parts.append(RefusalPart(refusal))
    return to_content(parts)


def _thoughts(found: FieldTracker) -> list[Part]:
    """Return the reasoning from all fields where servers put it. Some servers repeat it in several."""
    blocks = [
        _thought(block) for name in ("thinking_blocks", "reasoning_details") for block in found.optional_objects(name)
    ]
    said = {"".join(block.text for block in blocks), *(block.text for block in blocks)}
    plain = {text: None for name in ("reasoning_content", "reasoning") if (text := found.text(name))}
    return [*(ReasoningPart(text) for text in plain if text not in said), *blocks]


def _thought(found: FieldTracker) -> ReasoningPart:
    if isinstance(found.peek("thinking"), list):  # Mistral's are text parts
        text = "".join(part.text("text") or "" for part in found.optional_objects("thinking"))
    else:
        text = found.text("thinking", "text", "summary") or ""
    return ReasoningPart(text, extra=found.leftover())


def _audio_parts(found: FieldTracker, *, has_text: bool) -> list[Part]:
    """Return the sound of a reply, and its transcript if the reply has no text."""
    if (audio := found.object("audio")) is None:
        return []
    words = audio.text("transcript") if has_text else None
    sound = MediaPart(kind="audio", data=audio.text("data"), extra=audio.leftover())
    return [TextPart(words), sound] if words else [sound]


def _part(found: FieldTracker | JsonValue, calls: list[ToolCall] | None, beside: Mapping[str, ToolCall]) -> Part | None:
    if not isinstance(found, FieldTracker):
        return bare_part(found)
    kind = found.peek("type")
    if not isinstance(kind, str):
        return unknown_part(found)
    held = found.peek(kind)
    if kind in _TEXTS and isinstance(held, str):
        found.take("type")
        found.take(kind)
        return _TEXTS[kind](held, extra=found.leftover())
    if kind in _MEDIA and isinstance(held, str | dict):
        found.take("type")
        return _media(found, kind)
    if kind == "thinking":
        return _thought(found)
    if kind == "tool_use" and calls is not None and isinstance(found.peek("name"), str) and not is_blank(found):
        return _called(found, calls, beside)
    if kind in _OTHERS:
        raise found.type_error("type", "a Chat Completions part (try format=anthropic or vercel)")
    return unknown_part(found)


def _media(found: FieldTracker, kind: str) -> MediaPart:
    inner = found.maybe_object(kind)
    source = found.text(kind) if inner is None else inner.text("url", "data", "file_data")
    is_url = source is not None and ":" in source  # base64 has no colon
    return MediaPart(
        kind=_MEDIA[kind],
        url=source if is_url else None,
        data=None if is_url else source,
        name=None if inner is None else inner.text("filename"),
        extra=found.leftover(),
    )


def _called(found: FieldTracker, calls: list[ToolCall], beside: Mapping[str, ToolCall]) -> OtherPart | None:
    """Read a call among the parts, as Anthropic writes them. Some tools record it beside the content too."""
    identity = found.peek("id")
    same = beside.get(identity) if isinstance(identity, str) else None
    if same is None:
        calls.append(_call(found))
        return None
    if (same.name, same.args) != (found.peek("name"), found.peek("input")):
        found.warn("differs from the call with the same id in tool_calls; kept as is")
        return OtherPart(found.leftover())
    for name in ("type", "id", "name", "input"):
        found.take(name)
    return None


def _calls(found: FieldTracker) -> list[ToolCall]:
    if not found.has_any(_CALLED):
        return []
    calls = [_call(call) for call in nonblank_calls(found, "tool_calls")]
    if is_blank(found.peek("function_call")):
        return calls
    function = found.object("function_call")  # the older field, for a single call
    return calls if function is None else [*calls, _function_call(function, None)]


def _call(found: FieldTracker) -> ToolCall:
    found.take_if("type", "function", "tool_use")
    identity = found.id("id")
    if (function := found.object("function")) is not None:
        call = _function_call(function, identity)
    elif (custom := found.object("custom")) is not None:  # the input is free text
        call = ToolCall(tool_name(custom, "name"), {"input": custom.take("input")}, id=identity)
    else:  # datasets and hand-written files often leave out the ``function`` level
        call = _function_call(found, identity)
    extra = found.leftover()
    if extra:
        set_unvalidated(call, extra=extra)
    return call


def _function_call(found: FieldTracker, identity: str | None) -> ToolCall:
    given = found.take("arguments", "args", "input", "parameters")
    name = tool_name(found, "name")
    return ToolCall.recorded(name, given, id=identity)


def _definition(found: FieldTracker) -> ToolDefinition:
    found.take_if("type", "function")
    inner = found.object("function") or found.object("custom") or found
    name = inner.text("name")
    return ToolDefinition(
        str(found.peek("type")) if name is None else name,
        description=inner.text("description"),
        parameters=inner.take("parameters", "input_schema"),
        extra=found.leftover(),
    )

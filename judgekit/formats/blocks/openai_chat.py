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
    **dict.fromkeys(("system", "developer"), SystemMessage),
    "user": HumanMessage,
    "assistant": AIMessage,
    **dict.fromkeys(("tool", "function"), ToolMessage),
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
_TEXTS: dict[str, type[TextPart | RefusalPart]] = {"text": TextPart, "refusal": RefusalPart}


def read_messages(whole: FieldTracker, name: str = "messages") -> list[Message]:
    """Read the messages in a field."""
    messages = whole.objects_or(name, read_plain)
    return [read_message(message) if isinstance(message, FieldTracker) else message for message in messages]  # type: ignore[misc]  # mypy finds their base class


def read_message(message: FieldTracker, **about: object) -> Message:
    """Read one message. Its format may know more ``about`` it."""
    role = message.one_of("role", _KINDS)
    kind = _KINDS[role]
    message.take("role")
    fields: dict[str, object]
    if kind is ToolMessage:
        content = _content(message) if _holds_parts(message.peek("content")) else to_text(message.take("content"))
        fields = {"content": content, "tool_call_id": message.id("tool_call_id"), "name": message.text("name")}
        if isinstance(message.peek("is_error"), bool):  # added by some recorders
            fields["is_error"] = message.take("is_error")
    elif kind is SystemMessage:
        fields = {"content": _content(message), "role": role}
    else:
        calls = _calls(message)
        fields = {"content": _content(message, calls), "tool_calls": calls}
        fields["name" if kind is HumanMessage else "agent"] = message.text("name")
    fields["id"] = message.id("id")
    return kind.parsed({**fields, **about}, message.leftover())


def read_usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts as this API and compatible ones report them. Unknown counts are kept."""
    if counts is None or not list(counts):
        return None
    return read_counts(
        counts,
        input="prompt_tokens",
        output="completion_tokens",
        cached="prompt_tokens_details.cached_tokens",
        reasoning="completion_tokens_details.reasoning_tokens",
    )


def read_tools(tools: Iterable[FieldTracker]) -> list[ToolDefinition]:
    """Read tool definitions. A tool without a name is named after its type."""
    return list(map(_definition, tools))


def _holds_parts(content: JsonValue) -> bool:
    """Return whether a tool result is text, parts or nothing. Some recordings hold a tool's bare return value."""
    if isinstance(content, list):
        return all(isinstance(part, str) or (isinstance(part, dict) and "type" in part) for part in content)
    return content is None or isinstance(content, str)


def _content(message: FieldTracker, calls: list[ToolCall] | None = None) -> str | Sequence[Part]:
    """Return the content with reasoning, refusal and sound from other fields. Calls among the parts go to ``calls``."""
    content = message.peek("content")
    parts: list[Part] = []
    if isinstance(content, list):
        calls_by_id = {call.id: call for call in reversed(calls or ()) if call.id is not None}
        parts += filter(None, [_part(part, calls, calls_by_id) for part in message.items("content")])
    elif content is None or isinstance(content, str):
        message.take("content")
        if calls is None or _BESIDE.isdisjoint(message):
            return content or ""
        if content:
            parts.append(TextPart(content))
    else:
        raise message.type_error("content", "a string or a list of parts")
    if calls is not None:
        parts = [*_thoughts(message), *parts, *_audio_parts(message, has_text=not parts)]
        if refusal := message.text("refusal"):
            parts.append(RefusalPart(refusal))
    return to_content(parts)


def _thoughts(message: FieldTracker) -> list[Part]:
    """Return the reasoning from all fields where servers put it. Some servers repeat it in several."""
    blocks = [*map(_thought, message.optional_objects("thinking_blocks"))]
    blocks += map(_thought, message.optional_objects("reasoning_details"))
    block_texts = {"".join(block.text for block in blocks), *(block.text for block in blocks)}
    plain = {text: None for name in ("reasoning_content", "reasoning") if (text := message.text(name))}
    return [*(ReasoningPart(text) for text in plain if text not in block_texts), *blocks]


def _thought(block: FieldTracker) -> ReasoningPart:
    if isinstance(block.peek("thinking"), list):  # Mistral's are text parts
        text = "".join(part.text("text") or "" for part in block.optional_objects("thinking"))
    else:
        text = block.text("thinking", "text", "summary") or ""
    return ReasoningPart(text, extra=block.leftover())


def _audio_parts(message: FieldTracker, *, has_text: bool) -> list[Part]:
    """Return the sound of a reply, and its transcript if the reply has no text."""
    if (audio := message.object("audio")) is None:
        return []
    words = audio.text("transcript") if has_text else None
    sound = MediaPart(kind="audio", data=audio.text("data"), extra=audio.leftover())
    return [TextPart(words), sound] if words else [sound]


def _part(part: FieldTracker | JsonValue, calls: list[ToolCall] | None, by_id: Mapping[str, ToolCall]) -> Part | None:
    if not isinstance(part, FieldTracker):
        return bare_part(part)
    kind = part.peek("type")
    if not isinstance(kind, str):
        return unknown_part(part)
    held = part.peek(kind)
    if kind in _TEXTS and isinstance(held, str):
        part.take("type")
        part.take(kind)
        return _TEXTS[kind](held, extra=part.leftover())
    if kind in _MEDIA and isinstance(held, str | dict):
        part.take("type")
        return _media(part, kind)
    if kind == "thinking":
        return _thought(part)
    if kind == "tool_use" and calls is not None and isinstance(part.peek("name"), str) and not is_blank(part):
        return _called(part, calls, by_id)
    if kind in ("tool_result", "tool-call", "tool-result"):  # messages or calls in other APIs
        raise part.type_error("type", "a Chat Completions part (try format=anthropic or vercel)")
    return unknown_part(part)


def _media(part: FieldTracker, kind: str) -> MediaPart:
    inner = part.maybe_object(kind)
    source = part.text(kind) if inner is None else inner.text("url", "data", "file_data")
    name = None if inner is None else inner.text("filename")
    url, data = (source, None) if source and ":" in source else (None, source)  # base64 has no colon
    return MediaPart(kind=_MEDIA[kind], url=url, data=data, name=name, extra=part.leftover())


def _called(part: FieldTracker, calls: list[ToolCall], calls_by_id: Mapping[str, ToolCall]) -> OtherPart | None:
    """Read a call among the parts, as Anthropic writes them. Some tools record it next to the content too."""
    identity = part.peek("id")
    same = calls_by_id.get(identity) if isinstance(identity, str) else None
    if same is None:
        calls.append(_call(part))
        return None
    if (same.name, same.args) != (part.peek("name"), part.peek("input")):
        part.warn("differs from the call with the same id in tool_calls; kept as is")
        return OtherPart(part.leftover())
    for name in ("type", "id", "name", "input"):
        part.take(name)
    return None


def _calls(message: FieldTracker) -> list[ToolCall]:
    calls = [_call(call) for call in nonblank_calls(message, "tool_calls")]
    if is_blank(message.peek("function_call")):
        return calls
    function = message.object("function_call")  # the older field, for a single call
    return calls if function is None else [*calls, _function_call(function, None)]


def _call(call: FieldTracker) -> ToolCall:
    call.take_if("type", "function", "tool_use")
    identity = call.id("id")
    if (function := call.object("function")) is not None:
        tool_call = _function_call(function, identity)
    elif (custom := call.object("custom")) is not None:  # the input is free text
        tool_call = ToolCall(tool_name(custom, "name"), {"input": custom.take("input")}, id=identity)
    else:  # datasets and hand-written files often leave out the ``function`` level
        tool_call = _function_call(call, identity)
    extra = call.leftover()
    if extra:
        set_unvalidated(tool_call, extra=extra)
    return tool_call


def _function_call(function: FieldTracker, identity: str | None) -> ToolCall:
    given = function.take("arguments", "args", "input", "parameters")
    name = tool_name(function, "name")
    return ToolCall.recorded(name, given, id=identity)


def _definition(tool: FieldTracker) -> ToolDefinition:
    tool.take_if("type", "function")
    inner = tool.object("function") or tool.object("custom") or tool
    name = inner.text("name")
    return ToolDefinition(
        str(tool.peek("type")) if name is None else name,
        description=inner.text("description"),
        parameters=inner.take("parameters", "input_schema"),
        extra=tool.leftover(),
    )

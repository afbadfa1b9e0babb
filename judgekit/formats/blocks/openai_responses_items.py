"""Single items of OpenAI's Responses API: their content, calls and results."""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.formats.blocks.common import PROVIDED, MediaKind, bare_part, read_parts
from judgekit.formats.blocks.reply import to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, lookup, objects_in
from judgekit.traces.message import (
    JsonObject,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolMessage,
)

CALLS = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "mcp_call": ("arguments",),
    "hosted_tool_call": ("arguments",),  # the JavaScript SDK's name for all tools of the provider
    "tool_search_call": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
    "computer_call": ("action", "actions"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "program": ("code",),
}
"""Kinds of items that are calls, and the fields with their arguments."""
NAMED_CALLS = ("function_call", "custom_tool_call", "mcp_call", "hosted_tool_call")
_PROVIDED = {
    "web_search_call": "sources",
    "file_search_call": "results",
    "code_interpreter_call": "outputs",
    "image_generation_call": "result",
    "mcp_call": "output",
    "hosted_tool_call": "output",
}
"""Kinds of calls that the provider runs, and the field of the same item with their result."""
RESULTS = {
    "function_call_output": None,
    "function_call_result": None,  # in JavaScript
    "custom_tool_call_output": None,
    "computer_call_output": "computer",
    "computer_call_result": "computer",  # in JavaScript
    "local_shell_call_output": "local_shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply_patch",
    "tool_search_output": "tool_search",
    "program_output": "program",
}
"""Kinds of items that are results, and the tool's name if the kind implies it."""
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal", "logs": "logs"}
_MEDIA: dict[str, MediaKind] = {
    "input_image": "image",
    "image": "image",
    "computer_screenshot": "image",
    "input_file": "file",
    "file": "file",
    "input_audio": "audio",
    "output_audio": "audio",
    "audio": "audio",
}


def object_or_empty(holder: FieldTracker, name: str) -> FieldTracker:
    """Take an object. If the field is missing or anything else, return an empty one."""
    return holder.maybe_object(name) or FieldTracker({})


def read_content(record: FieldTracker) -> list[Part]:
    """Read the content of a message: a text or parts."""
    content = record.peek("content")
    if content is None:
        return []
    if isinstance(content, str):
        record.take("content")
        return [TextPart(content)]
    if not isinstance(content, list):
        raise record.type_error("content", "a string or a list of parts")
    items = record.items("content")
    return [part for item in items for part in (_parts(item) if isinstance(item, FieldTracker) else [bare_part(item)])]


def _parts(part: FieldTracker) -> list[Part]:
    """Read a part, and the words of a spoken one, as the Realtime API adds them, as text."""
    spoken = part.peek("type") in ("input_audio", "output_audio", "audio") and isinstance(part.peek("transcript"), str)
    words = part.text("transcript") if spoken else None
    read = _part(part)
    if not words:
        return [read]
    if isinstance(read, MediaPart) and read.url is read.data is None:
        return [TextPart(words, extra=read.extra)]
    return [TextPart(words), read]


def _nonempty_leftover(part: FieldTracker) -> JsonObject:
    """Return what is left over, without empty lists and objects, of which these parts have many."""
    return {name: value for name, value in part.leftover().items() if value not in ([], {})}


def _part(part: FieldTracker) -> Part:
    kind = str(part.peek("type"))
    if kind in _TEXTS and isinstance(text := part.peek(_TEXTS[kind]), str):
        part.take(_TEXTS[kind])
        part.take("type")
        return (RefusalPart if kind == "refusal" else TextPart)(text, extra=_nonempty_leftover(part))
    if kind in _MEDIA:
        return _media(part, kind)
    return unknown_part(part)


def _media(part: FieldTracker, kind: str) -> MediaPart:
    inner = object_or_empty(part, kind) if kind == "input_audio" else part
    url = _text_of(inner, "image_url", "file_url", "url")
    data = _text_of(inner, "data", "file_data", "image", "audio", "file")
    if data is not None and url is None and data.startswith(("data:", "http:", "https:")):
        url, data = data, None
    name = part.text("filename")
    if kind.startswith("input_"):
        part.take("type")
    return MediaPart(kind=_MEDIA[kind], url=url, data=data, name=name, extra=part.leftover())


def _text_of(holder: FieldTracker, *names: str) -> str | None:
    """Take the first of these fields that is a text. Other values are left."""
    return next((holder.text(name) for name in names if isinstance(holder.peek(name), str)), None)


def read_reasoning(record: FieldTracker) -> ReasoningPart:
    """Read the reasoning, or its summary."""
    record.take("type")
    texts = _texts(record, "content") or _texts(record, "rawContent") or _texts(record, "summary")
    return ReasoningPart("\n\n".join(texts), extra=_nonempty_leftover(record))


def _texts(record: FieldTracker, name: str) -> list[str]:
    """Take the texts of parts if all parts are texts."""
    value = record.peek(name)
    if isinstance(value, str):
        record.take(name)
        return [value]
    if not isinstance(value, list):
        return []
    texts = [text for part in value if isinstance(part, dict) and isinstance(text := part.get("text"), str)]
    if len(texts) < len(value):
        return []
    for part in record.objects(name):
        part.take_if("type", "summary_text", "reasoning_text", "input_text")
        part.take("text")
    return texts


def read_call(record: FieldTracker, kind: str) -> tuple[ToolCall, ToolMessage | None]:
    """Read a call, and its result if the same item holds it."""
    provided = kind in _PROVIDED or kind == "program" or record.peek("execution") == "server"
    identity = record.id("call_id", "callId") or (record.id("id") if kind in _PROVIDED else None)
    name = record.text("name") if kind in NAMED_CALLS else kind.removesuffix("_call")
    if name is None:
        raise record.type_error("name", "a tool name")
    arguments = _arguments(record, kind)
    result = _provided(record, kind, arguments, identity, name) if kind in _PROVIDED else None
    record.take_if("type", "function_call")
    metadata = PROVIDED if provided else None
    return ToolCall.recorded(name, arguments, id=identity, metadata=metadata, extra=record.leftover()), result


def _arguments(record: FieldTracker, kind: str) -> JsonValue:
    names = CALLS[kind]
    if names == ("arguments",):
        return record.take("arguments")
    if whole := record.maybe_object(names[0]):
        return whole.leftover()
    return {name: value for name in names if (value := record.take(name)) is not None}


def _provided(record: FieldTracker, kind: str, args: JsonValue, identity: str | None, name: str) -> ToolMessage | None:
    content: str | Sequence[Part] = ""
    if kind == "web_search_call":
        sources = args.pop("sources", None) if isinstance(args, dict) else None
        content = "" if sources is None else to_text(sources)
    elif kind == "image_generation_call" and isinstance(record.peek("result"), str):
        written = record.peek("output_format")
        mime = f"image/{written}" if isinstance(written, str) else None
        content = [MediaPart(kind="image", data=record.text("result"), mime_type=mime)]
    else:
        content = _content(record, _PROVIDED[kind])
    failed = {"completed": False, "failed": True}.get(str(record.peek("status")))
    extra: JsonObject = {}
    if "error" in record:
        failed = True
        content, extra = _error(record, content)
    if not content and not failed:
        return None  # most of these calls do not record their results
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, extra=extra)


def _error(record: FieldTracker, content: str | Sequence[Part]) -> tuple[str | Sequence[Part], JsonObject]:
    """Return the content of a failed result, and what else the error says."""
    error = record.peek("error")
    if content:
        return content, {"error": record.take("error")}
    if not isinstance(error, dict):
        return to_text(record.take("error")), {}
    inner = object_or_empty(record, "error")
    text = _content(inner, "message" if "message" in inner else "content")
    rest = inner.leftover()
    return text, {"error": rest} if rest else {}


def read_result(record: FieldTracker, kind: str, *, is_error: bool | None) -> ToolMessage:
    """Read the result of a call; ``is_error`` says if it is an error where the item itself does not."""
    output = record.peek("output")
    if isinstance(output, dict) and isinstance(output.get("success"), bool) and "content" in output:
        inner = object_or_empty(record, "output")  # as older versions of Codex wrote it
        is_error = inner.boolean("success") is False
        content = _content(inner, "content")
    else:
        content = _content(record, {"tool_search_output": "tools", "program_output": "result"}.get(kind, "output"))
        if kind == "program_output" and not content:
            content = _content(record, "output")  # in JavaScript
    if kind in ("apply_patch_call_output", "computer_call_output"):
        is_error = {"completed": False, "failed": True}.get(str(record.peek("status")), is_error)
    elif kind == "shell_call_output":
        outcomes = objects_in([lookup(command, "outcome") for command in as_list(output)])
        failures = [end.get("type") == "timeout" or end.get("exit_code") not in (0, None) for end in outcomes]
        is_error = any(failures) if failures else None
    identity = record.id("call_id", "callId")
    if identity is None and kind == "local_shell_call_output":
        identity = record.id("id")
    record.take_if("type", "function_call_output")
    return ToolMessage(
        content,
        tool_call_id=identity,
        name=record.text("name") or RESULTS[kind],
        is_error=is_error,
        timestamp=record.time("timestamp"),
        extra=record.leftover(),
    )


def _content(record: FieldTracker, name: str) -> str | Sequence[Part]:
    """Return the content of a result: text, parts, or any other value as JSON."""
    value = record.peek(name)
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return to_content(read_parts(record.items(name), _part))
    if isinstance(value, dict) and _is_part(value):
        return to_content([_part(object_or_empty(record, name))])
    return "" if record.take(name) is None else to_text(value)


def _is_part(value: JsonValue) -> bool:
    kind = lookup(value, "type")
    return isinstance(kind, str) and (kind in _TEXTS or kind in _MEDIA)

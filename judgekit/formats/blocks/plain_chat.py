"""The most common messages of OpenAI Chat Completions, read fast on purpose; all others go the full way, `openai_chat`."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.traces.fast_models import construct
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    is_unicode,
    plain_object,
)

_PART = {"type", "text"}
_CALL = {"id", "type", "function"}
_CALL_DEFAULTS = vars(ToolCall(""))
_FUNCTION = {"name", "arguments"}


def read_plain(message: JsonValue) -> Message | None:
    """Return a message; ``None`` if it has other fields than most, or arguments that are not plainly valid."""
    if not isinstance(message, dict) or not isinstance(role := message.get("role"), str) or role not in _FIELDS:
        return None
    kind, defaults, readers = _FIELDS[role]
    fields: dict[str, object] = {**defaults, "metadata": {}, "extra": {}}
    for name, value in message.items():
        if value is not None:
            if name not in readers or (plain := readers[name](value)) is None:
                return None
            fields[name] = plain
    return construct(kind, fields)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and (value.isascii() or is_unicode(value)) else None


def _content(value: JsonValue) -> str | tuple[TextPart, ...] | None:
    if not isinstance(value, list):
        return _text(value)
    texts: list[str] = []
    for part in value:
        if not isinstance(part, dict) or part.keys() != _PART or part["type"] != "text":
            return None
        if (text := _text(part["text"])) is None:
            return None
        texts.append(text)
    if len(texts) < 2:
        return texts[0] if texts else None
    return tuple([construct(TextPart, {"type": "text", "text": text, "extra": {}}) for text in texts])


def _calls(value: JsonValue) -> tuple[ToolCall, ...] | None:
    if not isinstance(value, list):
        return None
    calls = [call for recorded in value if (call := _call(recorded)) is not None]
    return tuple(calls) if len(calls) == len(value) else None


def _call(call: JsonValue) -> ToolCall | None:
    if not isinstance(call, dict) or not call.keys() <= _CALL or call.get("type", "function") != "function":
        return None
    function, identity = call.get("function"), call.get("id")
    if not isinstance(function, dict) or function.keys() != _FUNCTION:
        return None
    name, arguments = _text(function["name"]), _text(function["arguments"])
    args = None if arguments is None else plain_object(arguments)
    if not name or args is None or (identity is not None and _text(identity) is None):
        return None
    given = {"name": name, "args": args, "id": identity, "metadata": {}, "extra": {}}
    return construct(ToolCall, {**_CALL_DEFAULTS, **given})


_Readers: TypeAlias = Mapping[str, Callable[[JsonValue], object]]
"""A function for each field that returns its value from the recorded one, or ``None`` if that is not plain."""
_SHARED: _Readers = {"role": str, "content": _content, "id": _text}
_OF_RESULTS: _Readers = {
    "tool_call_id": _text,
    "name": _text,
    "is_error": lambda value: value if isinstance(value, bool) else None,
}
_SYSTEM = (SystemMessage, vars(SystemMessage()), _SHARED)
_FIELDS: Mapping[str, tuple[type[Message], Mapping[str, object], _Readers]] = {
    "system": _SYSTEM,
    "developer": _SYSTEM,
    "user": (HumanMessage, vars(HumanMessage()), {**_SHARED, "name": _text}),
    "assistant": (AIMessage, vars(AIMessage()), {**_SHARED, "tool_calls": _calls}),
    "tool": (ToolMessage, vars(ToolMessage()), {**_SHARED, **_OF_RESULTS}),
}
"""For each role, the class of its messages, the defaults of their fields, and the fields that are read here."""

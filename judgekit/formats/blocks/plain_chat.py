"""Messages of OpenAI Chat Completions that have no other fields than most, which pydantic checks without Python."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, cast

from pydantic import AfterValidator, Field, Json, JsonValue, StrictBool, TypeAdapter, with_config
from typing_extensions import TypedDict  # before Python 3.12, pydantic takes no other

from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    construct,
    is_valid_json,
)


def _refuse(_: object) -> None:
    raise ValueError("a field that few messages have")


_Default: TypeAlias = Annotated[object, AfterValidator(_refuse)]
"""A field of our own messages, which recorded ones lack."""
_Nothing: TypeAlias = Annotated[_Default, Field(default=None)]
_Empty: TypeAlias = Annotated[_Default, Field(default_factory=dict)]
_Optional: TypeAlias = Annotated[str | None, Field(default=None)]


@with_config(extra="forbid")
class _Part(TypedDict):
    type: Literal["text"]
    text: str


@with_config(extra="forbid")
class _Function(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    arguments: Json[Any]


@with_config(extra="forbid")
class _Call(TypedDict):
    id: NotRequired[str | None]
    type: NotRequired[Literal["function"]]
    function: _Function


def _text_or_parts(parts: Sequence[_Part]) -> str | Sequence[TextPart]:
    if len(parts) == 1:
        return parts[0]["text"]
    return tuple([construct(TextPart, {**part, "extra": {}}) for part in parts])


_Content: TypeAlias = str | Annotated[list[_Part], Field(min_length=1), AfterValidator(_text_or_parts)]


# These are all fields of our own messages, in their order, so that the checked fields are those of a message.
@with_config(extra="forbid")
class _System(TypedDict):
    content: _Content
    id: _Optional
    timestamp: _Nothing
    metadata: _Empty
    extra: _Empty
    role: Literal["system", "developer"]


@with_config(extra="forbid")
class _Human(TypedDict):
    content: _Content
    id: _Optional
    timestamp: _Nothing
    metadata: _Empty
    extra: _Empty
    role: Literal["user"]
    tool_calls: Annotated[_Default, Field(default=())]
    name: _Optional


@with_config(extra="forbid")
class _Tool(TypedDict):
    content: _Content
    id: _Optional
    timestamp: _Nothing
    metadata: _Empty
    extra: _Empty
    role: Literal["tool"]
    tool_call_id: _Optional
    name: _Optional
    is_error: Annotated[StrictBool | None, Field(default=None)]
    requestor: Annotated[_Default, Field(default="assistant")]


@with_config(extra="forbid")
class _AI(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_Content | None]
    tool_calls: NotRequired[list[_Call] | None]
    refusal: NotRequired[None]
    audio: NotRequired[None]
    function_call: NotRequired[None]
    id: NotRequired[str]


_Plain: TypeAlias = _System | _Human | _AI | _Tool
_MESSAGES = TypeAdapter[object](
    list[Annotated[Annotated[_Plain, Field(discriminator="role")] | object, Field(union_mode="left_to_right")]]
)
_CLASSES: Mapping[str, type[SystemMessage | HumanMessage | ToolMessage]] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": HumanMessage,
    "tool": ToolMessage,
}


def read_plain(messages: list[JsonValue]) -> list[Message | None]:
    """Return each message; ``None`` for a message with other fields, or with arguments that are not plainly valid."""
    checked = cast("list[_Plain]", _MESSAGES.validate_python(messages))
    return [
        _without_nulls(given)
        if cast("object", found) is given
        else _reply(found)
        if found["role"] == "assistant"
        else construct(_CLASSES[found["role"]], cast("dict[str, object]", found))
        for given, found in zip(messages, checked, strict=True)
    ]


def _without_nulls(found: JsonValue) -> Message | None:
    if not isinstance(found, dict) or None not in found.values():
        return None
    return read_plain([{name: value for name, value in found.items() if value is not None}])[0]


def _reply(found: _AI) -> AIMessage | None:
    calls = found.get("tool_calls") or ()
    if calls and not _are_valid([call["function"]["arguments"] for call in calls]):
        return None
    fields: dict[str, object] = {
        "content": found.get("content") or "",
        "id": found.get("id"),
        "timestamp": None,
        "metadata": {},
        "extra": {},
        "role": "assistant",
        "tool_calls": tuple([_tool_call(call) for call in calls]),
        "agent": None,
        "model": None,
        "finish_reason": None,
        "usage": None,
    }
    return construct(AIMessage, fields)


def _are_valid(arguments: list[JsonValue]) -> bool:
    """Return whether all arguments are objects of valid JSON, which 1e999 is not."""
    return {*map(type, arguments)} == {dict} and is_valid_json(arguments)


def _tool_call(found: _Call) -> ToolCall:
    function = found["function"]
    fields: dict[str, object] = {
        "name": function["name"],
        "args": function["arguments"],
        "id": found.get("id"),
        "args_raw": None,
        "args_error": None,
        "metadata": {},
        "extra": {},
    }
    return construct(ToolCall, fields)

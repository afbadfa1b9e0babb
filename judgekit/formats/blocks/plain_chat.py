"""Messages of OpenAI Chat Completions that have no other fields than most, which pydantic checks without Python."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, cast

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict  # before Python 3.12, pydantic takes no other

from judgekit.traces.message import ToolCall, construct, parse_arguments


@with_config(extra="forbid")
class _Part(TypedDict):
    type: Literal["text"]
    text: str


@with_config(extra="forbid")
class _Function(TypedDict):
    name: Annotated[str, Field(min_length=1)]
    arguments: str


@with_config(extra="forbid")
class _Call(TypedDict):
    id: NotRequired[str | None]
    type: NotRequired[Literal["function"]]
    function: _Function


def _text_or_parts(parts: list[_Part]) -> str | list[_Part]:
    return parts[0]["text"] if len(parts) == 1 else parts


def _tool_call(found: _Call) -> ToolCall:
    name, arguments = found["function"]["name"], found["function"]["arguments"]
    fields: dict[str, object] = {"name": name, "args": {}, "id": found.get("id"), "args_raw": None, "args_error": None}
    return construct(ToolCall, {**fields, "metadata": {}, "extra": {}, **parse_arguments(arguments)})


_Content: TypeAlias = str | Annotated[list[_Part], Field(min_length=1), AfterValidator(_text_or_parts)]


@with_config(extra="forbid")
class _System(TypedDict):
    role: Literal["system", "developer"]
    content: _Content


@with_config(extra="forbid")
class _Human(TypedDict):
    role: Literal["user"]
    content: _Content
    name: NotRequired[str]


@with_config(extra="forbid")
class _AI(TypedDict):
    role: Literal["assistant"]
    content: NotRequired[_Content | None]
    tool_calls: NotRequired[list[_Call] | None]
    refusal: NotRequired[None]
    audio: NotRequired[None]
    function_call: NotRequired[None]


@with_config(extra="forbid")
class _Tool(TypedDict):
    role: Literal["tool"]
    content: _Content
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


def _reply(found: _AI) -> Mapping[str, object]:
    calls = list(map(_tool_call, found.get("tool_calls") or ()))
    return {"role": "assistant", "content": found.get("content") or "", "tool_calls": calls}


def _without_nulls(found: JsonValue) -> Mapping[str, object] | None:
    if not isinstance(found, dict) or None not in found.values():
        return None
    return read_plain([{name: value for name, value in found.items() if value is not None}])[0]


_Plain: TypeAlias = Annotated[
    _System | _Human | Annotated[_AI, AfterValidator(_reply)] | _Tool, Field(discriminator="role")
]
_Other: TypeAlias = Annotated[object, AfterValidator(_without_nulls)]
_MESSAGES = TypeAdapter[object](list[Annotated[_Plain | _Other, Field(union_mode="left_to_right")]])


def read_plain(messages: list[JsonValue]) -> Sequence[Mapping[str, object] | None]:
    """Return the fields of each message as those of our own messages; ``None`` for a message with others."""
    return cast("Sequence[Mapping[str, object] | None]", _MESSAGES.validate_python(messages))

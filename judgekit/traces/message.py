"""Messages of a conversation, with their tool calls and content parts, which name each other."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import from_json, to_json

from judgekit.errors import unknown_name_message
from judgekit.traces.equality import MOST_LEVELS, is_deeper, repeated_keys
from judgekit.traces.fast_models import CheckedInC, validated
from judgekit.traces.media import parse_data_url

Item = TypeVar("Item")

if TYPE_CHECKING:
    # Constructors accept any sequence. The stored value is a tuple, so only the sequence interface is promised.
    Many: TypeAlias = Sequence[Item]
else:

    class Many:
        """A tuple of any length, which may be given as any sequence."""

        def __class_getitem__(cls, item: object) -> object:
            return tuple[item, ...]


JsonObject: TypeAlias = Annotated[dict[str, JsonValue], CheckedInC]
RecordId: TypeAlias = Annotated[str, Field(coerce_numbers_to_str=True)]
"""An id. Some files write ids as numbers."""
Requestor: TypeAlias = Literal["assistant", "user"]
"""The side that calls a tool: the agent or, in some benchmarks, the user."""


class FrozenModel(BaseModel):
    """A frozen model that rejects unknown fields. Fields declared ``kw_only=False`` may also be given by position."""

    # NaN in a recording is written as NaN, not as null, so that it round-trips.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    if not TYPE_CHECKING:

        def __init__(self, /, *args: object, **fields: object) -> None:
            if args:
                names = _positional_fields(type(self))
                if len(args) > len(names):
                    raise TypeError(f"{type(self).__name__} takes {len(names)} positional arguments, got {len(args)}")
                for name, value in zip(names, args, strict=False):
                    if name in fields:
                        raise TypeError(f"{type(self).__name__} got multiple values for {name!r}")
                    fields[name] = value
            try:
                self.__pydantic_validator__.validate_python(fields, self_instance=self)
            except ValidationError as error:
                own = {field.alias or name for name, field in type(self).model_fields.items()}
                for name in fields.keys() - own:
                    guess = "content" if name == "text" and "content" in own else ""
                    error.add_note(unknown_name_message(f"field of {type(self).__name__}", name, sorted(own), guess))
                raise

        # pydantic calls an overridden __init__ for every value that it parses, which triples the cost, unless it is
        # marked as only validating. RootModel does the same.
        __init__.__pydantic_base_init__ = True

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given, in a set of their own."""
        return {*self.__pydantic_fields_set__}


@cache
def _positional_fields(kind: type[FrozenModel]) -> Sequence[str]:
    return [name for name, field in kind.model_fields.items() if field.kw_only is False]


class Usage(FrozenModel):
    """Token counts of one or more requests; ``None`` if the provider did not report them.

    Attributes:
        input_tokens: The number of input tokens, including cached ones.
        output_tokens: The number of output tokens, including reasoning.
        cached_tokens: The number of input tokens read from the provider's cache.
        reasoning_tokens: The number of output tokens spent on reasoning.
        extra: Other counts, as reported.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    extra: JsonObject = Field(default_factory=dict)


class TextPart(FrozenModel):
    """Plain text.

    Attributes:
        type: Always ``text``.
        text: The text.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    type: Literal["text"] = "text"
    text: str = Field(kw_only=False)
    extra: JsonObject = Field(default_factory=dict)


class ReasoningPart(FrozenModel):
    """The model's reasoning before its answer, which is not part of ``message.text``.

    Attributes:
        type: Always ``reasoning``.
        text: The reasoning, or its summary.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str = Field(kw_only=False)
    extra: JsonObject = Field(default_factory=dict)


class RefusalPart(FrozenModel):
    """The text of a refusal by the model.

    Attributes:
        type: Always ``refusal``.
        text: The text of the refusal.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    type: Literal["refusal"] = "refusal"
    text: str = Field(kw_only=False)
    extra: JsonObject = Field(default_factory=dict)


class MediaPart(FrozenModel):
    """An image, audio, video or other file, by URL or as base64 data. A data URL becomes data with its MIME type.

    Attributes:
        type: Always ``media``.
        kind: The kind of media: ``image``, ``audio``, ``video`` or ``file``.
        url: The URL or path, which is never opened; ``None`` if the data is inline.
        data: The data in base64; ``None`` if there is a URL.
        mime_type: The MIME type, such as ``image/png``; ``None`` if unknown.
        name: The file name; ``None`` if unknown.
        sha256: The SHA-256 of the data in hexadecimal, which runs store in its place; else ``None``.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    type: Literal["media"] = "media"
    kind: Literal["image", "audio", "video", "file"]
    url: str | None = None
    data: str | None = None
    mime_type: str | None = None
    name: str | None = None
    sha256: str | None = None
    extra: JsonObject = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _one_form(cls, fields: JsonValue) -> object:
        if not isinstance(fields, dict):
            return fields
        url, data = fields.get("url"), fields.get("data")
        if not isinstance(url, str) or data is not None or (content := parse_data_url(url)) is None:
            return fields
        mime_type, data = content
        named, extra = fields.get("mime_type"), fields.get("extra", {})
        if mime_type and named not in (None, mime_type) and isinstance(extra, dict):
            extra = {**extra, "mime_type": named}
        own: JsonObject = {"url": None, "data": data, "mime_type": mime_type or named, "extra": extra}
        return {**fields, **own}


class OtherPart(FrozenModel):
    """A part of an unknown kind, kept verbatim.

    Attributes:
        type: Always ``other``.
        data: The part as recorded.
    """

    type: Literal["other"] = "other"
    data: Annotated[JsonValue, CheckedInC] = Field(kw_only=False)


Part: TypeAlias = Annotated[TextPart | ReasoningPart | RefusalPart | MediaPart | OtherPart, Field(discriminator="type")]


class Arguments(TypedDict, total=False):
    """The fields of a `ToolCall` that hold its arguments."""

    args: JsonObject
    args_raw: str | None
    args_error: str | None


def parse_arguments(recorded: JsonValue) -> Arguments:
    """Return recorded arguments (text, object or nothing) as fields of a `ToolCall`.

    Nothing is raised: arguments that are not a JSON object are kept as text, with the reason. Empty text means no
    arguments, and one extra layer of quoting is removed; both occur in real recordings. The text is kept as well if
    ``args`` does not contain it completely: it is quoted, or repeats a key of an object.
    """
    if recorded is None or recorded == "":
        return {"args": {}}
    raw: str | None = None
    args: JsonValue = recorded
    if isinstance(recorded, str):
        raw = recorded.encode(errors="backslashreplace").decode()  # lone surrogates become JSON escapes
        if (plain := plain_object(raw)) is not None:
            return {"args": plain}
        try:
            args = from_json(raw)
            if isinstance(args, str):
                args = from_json(args)
        except ValueError as error:
            return {"args": {}, "args_raw": raw, "args_error": f"not JSON: {error}"}
    if args == "":
        return {"args": {}, "args_raw": raw}
    if not isinstance(args, dict):
        problem = f"not a JSON object but {args!r:.80}"
    elif flaw := _flaw(args):
        problem = f"not valid JSON: it contains {flaw}"
    else:
        is_incomplete = raw is not None and (raw.lstrip().startswith('"') or repeated_keys(raw))
        return {"args": args, "args_raw": raw} if is_incomplete else {"args": args}
    return {"args": {}, "args_raw": raw or json.dumps(args), "args_error": problem}


def plain_object(text: str) -> JsonObject | None:
    """Return the object in a text if there is one, for sure without flaws and repeated keys. This is fast."""
    try:
        value: JsonValue = from_json(text, allow_inf_nan=False)
        written = to_json(value)
    except ValueError:
        return None
    has_all_keys = text.count('"') == written.count(b'"') and "\\u0022" not in text
    return value if isinstance(value, dict) and has_all_keys and _is_valid(written, value) else None


def _flaw(value: JsonValue) -> str | None:
    """Return why a parsed value is not valid JSON; ``None`` if it is valid."""
    if is_valid_json(value):
        return None
    is_deep = is_deeper(value, MOST_LEVELS)
    return f"more than {MOST_LEVELS} levels of objects and lists" if is_deep else _first_flaw(value)


def is_valid_json(value: JsonValue) -> bool:
    """Return whether a value is valid JSON for sure: a walk in Python would take ten times as long."""
    try:
        return _is_valid(to_json(value), value)
    except ValueError:
        return False


def _is_valid(written: bytes, value: JsonValue) -> bool:
    """Return whether a value is nested little enough, and has no such numbers, neither as values nor as keys."""
    if written.count(b"[") + written.count(b"{") > MOST_LEVELS and is_deeper(value, MOST_LEVELS):
        return False
    return not (b"NaN" in written or b"Infinity" in written or b'"nan"' in written or b'inf"' in written)


def _first_flaw(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return None if is_unicode(value) else "a lone surrogate"
    if isinstance(value, float):
        return None if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return next((flaw for part in value if (flaw := _first_flaw(part))), None)
    return None


def is_unicode(text: str) -> bool:
    """Return whether the text has no lone surrogates, which JSON can escape but UTF-8 cannot encode."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ToolCall(FrozenModel):
    """A tool call. Arguments that are not a JSON object are kept as text, with the reason.

    Attributes:
        name: The name of the tool.
        args: The arguments; empty if there are none, or if they could not be read.
        id: The id that results refer to; ``None`` if there is none.
        args_raw: The arguments as recorded, if ``args`` does not contain them completely; else ``None``.
        args_error: The reason why the recorded arguments could not be read; ``None`` if they were read.
        metadata: Facts about the call, such as whether the provider ran the tool.
        extra: Fields of the recording without a matching attribute, verbatim.

    Example:
        ``ToolCall("weather_check", {"location": "Paris"})``
    """

    name: str = Field(kw_only=False)
    args: JsonObject = Field(default_factory=dict, kw_only=False)
    id: str | None = None
    args_raw: str | None = None
    args_error: str | None = None
    metadata: JsonObject = Field(default_factory=dict)
    extra: JsonObject = Field(default_factory=dict)

    @classmethod
    def recorded(
        cls,
        name: str,
        arguments: JsonValue,
        *,
        id: str | None = None,
        metadata: JsonObject | None = None,
        extra: JsonObject | None = None,
    ) -> "ToolCall":
        """Return a call with arguments as a JSON parser returned them, which are not validated once more."""
        parsed = parse_arguments(arguments)
        args = parsed.pop("args", {})
        return validated(cls, {"name": name, "id": id, **parsed}, args=args, metadata=metadata, extra=extra)

    @model_validator(mode="before")
    @classmethod
    def _keep_broken_arguments(cls, data: JsonValue) -> object:
        try:
            if (
                isinstance(data, dict)
                and "args" in data
                and not (isinstance(args := data["args"], dict) and is_valid_json(args))
            ):
                return {**data, **parse_arguments(args)}
        except RecursionError:
            raise ValueError("args are nested too deeply") from None
        return data


class _Message(FrozenModel):
    content: str | Many[Part] = Field(default="", kw_only=False)
    id: str | None = None
    timestamp: datetime | None = None
    metadata: JsonObject = Field(default_factory=dict)
    extra: JsonObject = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The message's text, with refusals and without reasoning."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart | RefusalPart))

    @classmethod
    def parsed(cls, fields: Mapping[str, object], extra: JsonObject) -> Self:
        """Return a message. Its ``extra`` comes from a JSON parser, so its values are not validated one by one."""
        return validated(cls, fields, extra=extra)


class SystemMessage(_Message):
    """Instructions to the agent.

    Attributes:
        role: ``system`` or ``developer``, as recorded.
        content: The text, or the parts of the message.
        id: The id of the message; ``None`` if there is none.
        timestamp: The time of the message; ``None`` if unknown.
        metadata: Facts about the message that have no attribute of their own.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    role: Literal["system", "developer"] = "system"


class HumanMessage(_Message):
    """A message from the user, who may call tools in some benchmarks.

    Attributes:
        role: Always ``user``.
        tool_calls: The calls that the user makes.
        name: The name of the user; ``None`` if unknown.
        content: The text, or the parts of the message.
        id: The id of the message; ``None`` if there is none.
        timestamp: The time of the message; ``None`` if unknown.
        metadata: Facts about the message that have no attribute of their own.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    role: Literal["user"] = "user"
    tool_calls: Many[ToolCall] = ()
    name: str | None = None


class AIMessage(_Message):
    """A message from the agent.

    Attributes:
        role: Always ``assistant``.
        tool_calls: The calls that the agent makes.
        agent: The name of the agent, if there are several; else ``None``.
        model: The name of the model; ``None`` if unknown.
        finish_reason: The reason why the model stopped, as reported; ``None`` if not reported.
        usage: The token counts of the request; ``None`` if not reported.
        content: The text, or the parts of the message.
        id: The id of the message; ``None`` if there is none.
        timestamp: The time of the message; ``None`` if unknown.
        metadata: Facts about the message that have no attribute of their own.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    role: Literal["assistant"] = "assistant"
    tool_calls: Many[ToolCall] = ()
    agent: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None


class ToolMessage(_Message):
    """The result of a tool call.

    Attributes:
        role: Always ``tool``.
        tool_call_id: The id of the call that it answers; ``None`` if the recording has none, and the order decides.
        name: The name of the tool; ``None`` if unknown.
        is_error: Whether the call failed; ``None`` if the format cannot tell.
        requestor: The side that made the call.
        content: The text, or the parts of the message.
        id: The id of the message; ``None`` if there is none.
        timestamp: The time of the message; ``None`` if unknown.
        metadata: Facts about the message that have no attribute of their own.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    role: Literal["tool"] = "tool"
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    requestor: Requestor = "assistant"


CALLER_MESSAGES: dict[Requestor, type[AIMessage | HumanMessage]] = {"assistant": AIMessage, "user": HumanMessage}
"""The message class in which each side calls tools."""
Message: TypeAlias = Annotated[SystemMessage | HumanMessage | AIMessage | ToolMessage, Field(discriminator="role")]

r"""OpenAI Chat Completions messages, as most servers and tools write them.

{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}]}
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue, ValidationError, model_validator

from judgekit.errors import TraceError, explain
from judgekit.traces.known import KEPT, Text, known_of, sample_of
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    Identity,
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
from judgekit.traces.readers.foreign import Foreign, items, unpaired
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import ToolDefinition, Trace


class _Function(Foreign):
    name: str
    arguments: JsonValue = None


class _Custom(Foreign):
    name: str
    input: str


class _Call(Foreign):
    id: Identity | None = None
    type: str = "function"
    function: _Function | None = None
    custom: _Custom | None = None

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, data: JsonValue) -> JsonValue:
        """Data sets and hand-written files often leave out the layer of ``function``."""
        if isinstance(data, dict) and "name" in data and not {"function", "custom"} & data.keys():
            flat = dict(data)
            function = {"name": flat.pop("name"), "arguments": flat.pop("arguments", flat.pop("args", None))}
            return {**flat, "function": function}
        return data


class _Url(Foreign):
    url: str


class _ContentPart(Foreign):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: _Url | None = None


class ChatMessage(Foreign):
    """One message; fields of other providers are kept in ``unknown``."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[JsonValue] | None = None
    name: str | None = None
    id: Identity | None = None
    tool_call_id: Identity | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    refusal: str | None = None
    reasoning_content: str | None = None


class _Definition(Foreign):
    name: str
    description: str | None = None
    parameters: JsonValue = None


class _Tool(Foreign):
    type: str = "function"
    function: _Definition | None = None


class _Row(Foreign):
    messages: list[ChatMessage] = Field(min_length=1)
    id: Text | None = None
    tools: list[_Tool] | None = None
    usage: JsonObject | None = None


class OpenAIChatReader:
    """Rows with ``messages``, or bare lists of messages. A row may carry the fields of a `Sample` beside them."""

    name = "openai-chat"
    shape = 'openai-chat: {"messages": [{"role": "user", "content": ...}, ...]}, or the list alone'

    def recognises(self, value: JsonValue) -> bool:
        """Messages have a role."""
        rows = self.records(value)
        return bool(rows) and _is_conversation(rows[0])

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list of messages is one conversation; a list of rows, or of such lists, is many."""
        return [document] if _is_conversation(document) else items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One row. Without an id, the index names it."""
        try:
            row = _Row.model_validate({"messages": record} if isinstance(record, list) else record)
            return _sample(row, index)
        except ValidationError as error:
            raise TraceError(explain(error, record)) from error


def _is_conversation(value: JsonValue) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else value
    return isinstance(messages, list) and bool(messages) and isinstance(messages[0], dict) and "role" in messages[0]


def read_usage(found: JsonObject | None) -> Usage | None:
    """Token counts as this API and its followers report them; unknown counts are kept."""
    if not found:
        return None
    rest = dict(found)
    counts = {"input_tokens": rest.pop("prompt_tokens", None), "output_tokens": rest.pop("completion_tokens", None)}
    for details, ours in (
        ("prompt_tokens_details", "cached_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ):
        inner = rest.get(details)
        counts[ours] = inner.get(ours) if isinstance(inner, dict) else None
    return Usage.model_validate({**counts, "extra": rest})


def read_message(found: ChatMessage) -> Message:
    """One message as ours."""
    fields = {
        "content": _content(found),
        "id": found.id,
        "extra": found.unknown,
    }
    if found.role in ("tool", "function"):
        return ToolMessage.model_validate({**fields, "tool_call_id": found.tool_call_id, "name": found.name})
    if found.role in ("system", "developer"):
        named = {} if found.name is None else {"name": found.name}
        return SystemMessage.model_validate({**fields, "role": found.role, "extra": {**found.unknown, **named}})
    calls = [_call(call) for call in found.tool_calls or ()]
    if found.function_call is not None:
        calls.append(_function_call(found.function_call))
    kind, name = (HumanMessage, "name") if found.role == "user" else (AIMessage, "agent")
    return kind.model_validate({**fields, name: found.name, "tool_calls": calls})


def _sample(row: _Row, index: int) -> Sample:
    beside = row.unknown
    api = {"prediction": beside.pop("prediction")} if isinstance(beside.get("prediction"), dict) else {}  # a parameter
    known = known_of(beside)
    beside = api | {
        name: value for name, value in beside.items() if name not in References.__annotations__ and name not in KEPT
    }
    messages = [read_message(message) for message in row.messages]
    identity = str(index) if row.id is None else row.id
    trace = Trace(
        id=identity,
        messages=messages,
        tools=[_definition(tool) for tool in row.tools or ()],
        usage=read_usage(row.usage),
        extra=beside,
        warnings=unpaired(messages),
    )
    return sample_of(identity, {**known, "trace": trace})


def _content(found: ChatMessage) -> str | Sequence[Part]:
    if isinstance(found.content, list):
        said = [_part(part) for part in found.content]
    elif found.reasoning_content or found.refusal:
        said = list[Part]([TextPart(found.content)] if found.content else [])
    else:
        return found.content or ""
    if found.reasoning_content:
        said.insert(0, ReasoningPart(found.reasoning_content))
    if found.refusal:
        said.append(RefusalPart(found.refusal))
    return said or ""


def _part(found: JsonValue) -> Part:
    if isinstance(found, str):
        return TextPart(found)
    try:
        part = _ContentPart.model_validate(found)
    except ValidationError:
        return OtherPart(found)
    if part.type == "text" and part.text is not None:
        return TextPart(part.text, extra=part.unknown)
    if part.type == "refusal" and part.refusal is not None:
        return RefusalPart(part.refusal, extra=part.unknown)
    if part.type == "image_url" and part.image_url is not None:
        return MediaPart(kind="image", url=part.image_url.url, extra={**part.unknown, **part.image_url.unknown})
    return OtherPart(found)


def _call(found: _Call) -> ToolCall:
    extra = _with_type(found)
    if found.function is not None:
        return _function_call(found.function, found.id, extra)
    if found.custom is not None:  # its input is free text
        extra |= found.custom.unknown
        return ToolCall(found.custom.name, {"input": found.custom.input}, id=found.id, extra=extra)
    raise TraceError(f"a tool call of the type {found.type!r} that names no function: {found.unknown!r:.80}")


def _function_call(found: _Function, identity: str | None = None, extra: JsonObject | None = None) -> ToolCall:
    arguments = parse_arguments(found.arguments)
    return ToolCall(found.name, id=identity, extra={**(extra or {}), **found.unknown}, **arguments)


def _with_type(found: _Call | _Tool) -> JsonObject:
    """The unknown fields, and the type where it is not the common one."""
    return found.unknown if found.type == "function" else {**found.unknown, "type": found.type}


def _definition(found: _Tool) -> ToolDefinition:
    if found.function is None:
        return ToolDefinition(str(found.unknown.get("name", found.type)), extra=_with_type(found))
    function = found.function
    return ToolDefinition(
        function.name,
        description=function.description,
        parameters=function.parameters,
        extra={**_with_type(found), **function.unknown},
    )

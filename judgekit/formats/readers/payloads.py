"""Payloads that tracers record as they were: requests and responses of providers, and results of tools."""

from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.reply import choices_warning
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.anthropic import AnthropicReader
from judgekit.formats.readers.autogen import AutoGenReader
from judgekit.formats.readers.base import WHOLE_CONVERSATION_WARNINGS, Reader
from judgekit.formats.readers.bedrock import BedrockReader
from judgekit.formats.readers.gemini import GeminiReader
from judgekit.formats.readers.haystack import HaystackReader
from judgekit.formats.readers.langchain import LangChainReader
from judgekit.formats.readers.llama_index import LlamaIndexReader
from judgekit.formats.readers.openai_chat import OpenAIChatReader
from judgekit.formats.readers.openai_responses import OpenAIResponsesReader
from judgekit.formats.readers.otel_messages import OTelMessagesReader
from judgekit.formats.readers.payload_shapes import expand
from judgekit.formats.readers.pydantic_ai import PydanticAIReader
from judgekit.formats.readers.semantic_kernel import SemanticKernelReader
from judgekit.formats.readers.vercel import VercelReader
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import CUT_OFF_HINT
from judgekit.formats.values import parse_if_json, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import ToolDefinition, TraceWarning

_READERS: tuple[Reader, ...] = (
    OpenAIResponsesReader(),
    AnthropicReader(),
    GeminiReader(),
    BedrockReader(),
    LangChainReader(),
    PydanticAIReader(),
    LlamaIndexReader(),
    HaystackReader(),
    SemanticKernelReader(),
    AutoGenReader(),
    VercelReader(),
    OTelMessagesReader(),
)
"""The most specific first: messages of text alone look the same in many formats."""
_FALLBACK = OpenAIChatReader()
_TEXTS = (
    *("text", "prompt", "input", "query", "question", "task", "output", "answer", "result", "response", "content"),
    *("message",),
)
"""The names of the text to use if an object holds several."""
_WRAPPERS = frozenset(("input", "output"))
"""The names under which tracers of functions record their only argument and their return value."""


class Payload(NamedTuple):
    """A request or a response. ``extra`` holds everything except messages and tools."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    extra: JsonObject = {}  # noqa: RUF012 - never changed


def take_payload(holder: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload:
    """Take a field with a request or response of a model: complete, its messages, or a text; as it is or as JSON.

    The first of several choices is read; the others go into ``extra``, with a warning. A field that holds
    none of these is not taken, and the payload is empty.

    Args:
        holder: The object with the field.
        name: The field.
        kind: The type of message that a bare text becomes.
    """
    value = parse_structured_json(holder.peek(name))
    payload = messages_in(value, holder, name, kind) or _text_in(value, kind)
    if payload.messages:
        if isinstance(value, str) and value.lstrip().startswith(('{"', "[{", '["')):
            holder.warn(f"invalid JSON, read as text ({CUT_OFF_HINT})", name)
        holder.take(name)
    return payload


def take_any_payload(holder: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload:
    """Take a field as `take_payload` does, and any other value as its JSON text; with a warning if it is structured."""
    payload = take_payload(holder, name, kind)
    if payload.messages or name not in holder:
        return payload
    value = holder.peek(name)
    if isinstance(value, dict | list):
        holder.warn("neither a string nor messages, read as its JSON text", name)
    holder.take(name)
    return Payload((kind(to_text(value)),))


def variables_in(value: JsonValue) -> JsonObject:
    """Return the variables of a dataset's item: the fields of an object that holds several and no messages."""
    variables = parse_structured_json(value)
    return variables if isinstance(variables, dict) and len(variables) > 1 and "messages" not in variables else {}


def messages_in(value: JsonValue, row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload | None:
    """Return the messages of a request or response in any provider's format; ``None`` if there are none.

    A bare list of choices counts as a response, and the bare content blocks of one message as that message.

    Args:
        value: The request or response.
        row: The object that holds it, for warnings.
        name: The field that holds it.
        kind: The type of message that content blocks become.
    """
    if not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and len(value) == 1 and not _WRAPPERS.isdisjoint(value):
        inner = messages_in(next(iter(value.values())), row, name, kind)
        if inner is not None:
            return inner
    whole = expand(value, "user" if kind is HumanMessage else "assistant")
    where = f"{row.path}.{name}" if row.path else name
    for candidate in (whole, [whole]):  # a single message is recognized as a list
        reader = next((reader for reader in (*_READERS, _FALLBACK) if reader.recognizes(candidate)), None)
        if reader is not None:
            return _read(reader, candidate, where, row.warnings)
    return None


def parse_structured_json(value: JsonValue) -> JsonValue:
    """Return a value, or the object or list that it holds as JSON."""
    return parse_if_json(value) if isinstance(value, str) and value.lstrip().startswith(("{", "[")) else value


def exchange_messages(
    request: Payload, response: Payload, tools: list[ToolDefinition], **details: object
) -> tuple[list[Message], list[Message]]:
    """Return the messages of a request and its response. Everything else goes into the last one's ``extra``.

    Args:
        request: The request.
        response: The response.
        tools: The list that tool definitions are added to.
        details: More fields of the answer's `AIMessage`, used if the response does not have them.
    """
    tools += [*request.tools, *response.tools]
    messages, replies = list(request.messages), list(response.messages)
    sides = {"request": request.extra, "response": response.extra}
    extra: JsonObject = {name: side for name, side in sides.items() if side}
    rest = {name: detail for name, detail in details.items() if detail is not None}
    if replies and isinstance(last := replies[-1], AIMessage):
        update = {name: rest.pop(name) for name in list(rest) if getattr(last, name) in (None, rest[name])}
        replies[-1] = last.model_copy(update=update)
    if rest:
        extra["span"] = AIMessage.model_validate(rest).model_dump(mode="json", exclude_defaults=True)
    spoken = replies or messages
    if extra and spoken:
        spoken[-1] = spoken[-1].model_copy(update={"extra": {**spoken[-1].extra, **extra}})
    return messages, replies


def warn_of_outcome(row: FieldTracker, error: JsonValue, answer_at: str, error_at: str, *, answered: bool) -> None:
    """Warn about the error that a conversation ended with, and about an answer that it does not have."""
    outcome = "ended with an error" if answered else "contains no answer"
    if error is not None:
        row.warn(f"{outcome}: {short_repr(error)}", error_at)
    elif not answered:
        row.warn(outcome, answer_at)


def _text_in(value: JsonValue, kind: type[HumanMessage | AIMessage]) -> Payload:
    if isinstance(value, dict):
        texts = [name for name, inner in value.items() if isinstance(inner, str)]
        name = texts[0] if len(texts) == 1 else next((name for name in _TEXTS if name in texts), None)
        if name is None:
            return Payload()
        text, reason = kind(str(value[name])), value.get("finish_reason")
        if isinstance(text, AIMessage) and isinstance(reason, str):
            return Payload(
                (text.model_copy(update={"finish_reason": reason}),), extra=without(value, name, "finish_reason")
            )
        return Payload((text,), extra=without(value, name))
    return Payload((kind(value),)) if isinstance(value, str) else Payload()


def _read(reader: Reader, value: JsonValue, where: str, warnings: list[TraceWarning]) -> Payload:
    try:
        first, *others = reader.records(value)
        sample = reader.sample(first, 0)
    except TraceError as error:
        raise TraceError(f"{where}: {error.problem}") from error
    trace = sample.trace
    facts = sample.model_dump(mode="json", exclude={"schema_version", "id", "trace"}, exclude_defaults=True)
    own = {"schema_version", "messages", "tools", "extra", "warnings"}
    if trace.id == "0":  # no id of its own
        own.add("id")
    details = trace.model_dump(mode="json", exclude=own, exclude_defaults=True)
    choices: JsonObject = {"choices": others} if others else {}
    if others:
        warnings.append(TraceWarning(choices_warning(len(others) + 1), path=where))
    warnings += (
        TraceWarning(warning.message, path=f"{where}.{warning.path}" if warning.path else where)
        for warning in trace.warnings
        if warning.message not in WHOLE_CONVERSATION_WARNINGS  # other spans have the calls and the questions
    )
    return Payload(tuple(trace.messages), tuple(trace.tools), {**trace.extra, **details, **facts, **choices})

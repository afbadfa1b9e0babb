"""Payloads that tracers record as they were: requests and responses of providers, and results of tools."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.reply import choices_warning
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging import SpanStep, distinct_tools
from judgekit.formats.merging.comparison import utterances
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
from judgekit.formats.readers.otel import OTelReader
from judgekit.formats.readers.pydantic_ai import PydanticAIReader
from judgekit.formats.readers.semantic_kernel import SemanticKernelReader
from judgekit.formats.readers.vercel import VercelReader
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import CUT_OFF_HINT, Span
from judgekit.formats.values import lookup, parse_if_json, str_or_none, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, ToolCall, ToolMessage, parse_arguments
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
    OTelReader(),
)
"""The most specific first: messages of text alone look the same in many formats."""
_FALLBACK = OpenAIChatReader()
_TEXTS = (
    *("text", "prompt", "input", "query", "question", "task", "output", "answer", "result", "response", "content"),
    *("message",),
)
"""The names of the text to use if an object holds several."""
_BLOCKS = frozenset(
    (
        *("text", "input_text", "output_text", "refusal", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("image", "image_url", "input_image", "input_audio", "file", "input_file", "document"),
    )
)
"""The types of a message's content blocks."""
_WRAPPERS = frozenset(("input", "output"))
"""The names under which tracers of functions record their only argument and their return value."""
_ASIDE = ("EVALUATOR", "GUARDRAIL", "RERANKER")
"""Kinds of spans whose model calls are not part of the conversation."""
_HANDOFF = "handoff to "
_NUMBER = re.compile(r"_\d+$")
"""The number that older versions of MLflow add to spans of the same name."""


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
    whole = _expanded(value, "user" if kind is HumanMessage else "assistant")
    where = f"{row.path}.{name}" if row.path else name
    for candidate in (whole, [whole]):  # a single message is recognized as a list
        reader = next((reader for reader in (*_READERS, _FALLBACK) if reader.recognizes(candidate)), None)
        if reader is not None:
            return _read(reader, candidate, where, row.warnings)
    if isinstance(value, dict) and len(value) == 1 and not _WRAPPERS.isdisjoint(value):
        return messages_in(next(iter(value.values())), row, name, kind)
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


def read_steps(
    spans: Sequence[Span],
    kind: Callable[[Span], str | None],
    model: Callable[[Span, list[ToolDefinition]], SpanStep],
    values: tuple[str, str],
) -> tuple[list[SpanStep], list[ToolDefinition]]:
    """Return the contribution of each span to the conversation, and the defined tools.

    Without model calls that say anything, agent runs and the outermost spans provide the messages. What happens
    within an evaluation is not part of the conversation.

    Args:
        spans: The spans, ordered by start time.
        kind: Returns the kind of a span: ``LLM``, ``TOOL``, ``AGENT`` or another one.
        model: Reads a model call, and adds its tools to a list.
        values: The attributes that hold input and output.
    """
    aside: set[int] = set()
    for span in sorted(spans, key=lambda span: span.depth):
        if kind(span) in _ASIDE or id(span.parent) in aside:
            aside.add(id(span))
    if judging := [span for span in spans if kind(span) == "LLM" and id(span) in aside]:
        problem = "model calls by evaluators, guardrails or rerankers, not part of the conversation"
        path = re.split(r"[.\[]", judging[0].fields.path)[0]
        judging[0].fields.warnings.append(TraceWarning(f"{problem}, found {len(judging)}", path=path))
    tools: list[ToolDefinition] = []
    models = {id(span): model(span, tools) for span in spans if kind(span) == "LLM" and id(span) not in aside}
    called = {call.name for step in models.values() for call in _calls_of(step)}
    is_silent = not any(step.kind == "model" for step in models.values())
    steps: list[SpanStep] = []
    for span in spans:
        if id(span) in aside:
            steps.append(SpanStep(span))
        elif id(span) in models:
            steps.append(models[id(span)])
        elif kind(span) == "TOOL":
            steps.append(SpanStep(span) if _is_handoff_of(span, called) else _tool_step(span, called, values))
        else:
            name = str_or_none(span.attributes.peek("agent.name"))
            name = span.name or None if name is None else name
            step = SpanStep(span, "agent" if kind(span) == "AGENT" else None, agent=name)
            if is_silent and (step.kind or span.parent is None):
                step.kind = "agent"
                step.input_messages, step.output_messages = _agent_messages(span.attributes, values, tools)
            steps.append(step)
    return steps, list(distinct_tools(tools).values())


def read_function_steps(
    spans: Sequence[Span],
    whole: Span,
    kind: Callable[[Span], str | None],
    model: Callable[[Span, list[ToolDefinition]], SpanStep],
) -> tuple[list[SpanStep], list[ToolDefinition]]:
    """Return steps as `read_steps` does, of tracers that record functions with their ``input`` and ``output``.

    A function of the kind ``FUNCTION`` is a tool if a model called it by its name. Without model calls, any input and
    output of the whole is question and answer.
    """
    called: set[str] = set()

    def resolved_kind(span: Span) -> str | None:
        recorded = kind(span)
        return ("TOOL" if span.name in called else None) if recorded == "FUNCTION" else recorded

    def noted_model(span: Span, tools: list[ToolDefinition]) -> SpanStep:
        step = model(span, tools)
        called.update(call.name for call in _calls_of(step))
        return step

    steps, tools = read_steps(spans, resolved_kind, noted_model, ("input", "output"))
    unanswered = [step.span for step in steps if step.kind == "model" and not step.output_messages]
    if unanswered:
        error = next((f": {short_repr(span.error)}" for span in unanswered if span.error is not None), "")
        problem = f"model calls without an answer, found {len(unanswered)}{error}"
        unanswered[0].fields.warnings.append(TraceWarning(problem))
    is_silent = not any(step.kind == "model" for step in steps)
    for step in steps:
        attributes = step.span.attributes
        if is_silent and step.span is whole and resolved_kind(whole) in (None, "AGENT"):
            step.kind = "agent"
            if "input" in attributes:
                step.input_messages = take_any_payload(attributes, "input", HumanMessage).messages
            if "output" in attributes:
                step.output_messages = take_any_payload(attributes, "output", AIMessage).messages
        if step.kind == "agent" and resolved_kind(step.span) != "AGENT":
            step.agent = None  # the name is that of a function
    return steps, tools


def _calls_of(step: SpanStep) -> list[ToolCall]:
    """Return the calls that a model made in a step."""
    return [call for message in step.output_messages if isinstance(message, AIMessage) for call in message.tool_calls]


def _agent_messages(
    attributes: FieldTracker, values: tuple[str, str], tools: list[ToolDefinition]
) -> tuple[list[Message], list[Message]]:
    """Return the input and output of an agent. An input that the output repeats, as states of graphs do, stays as is."""
    name = values[0]
    response = take_payload(attributes, values[1], AIMessage)
    holder = FieldTracker({name: attributes.peek(name)}, attributes.path, attributes.warnings)
    request = take_payload(holder, name, HumanMessage)
    end = _repeated_from(request.messages, response.messages)
    if end < len(request.messages):
        request = Payload(request.messages[:end])
    elif name not in holder:
        attributes.take(name)
    return exchange_messages(request, response, tools)


def _repeated_from(inputs: Sequence[Message], outputs: Sequence[Message]) -> int:
    """Return the position in an input from which on the output repeats it; the input's length if it does not."""
    first = max(0, len(inputs) - len(outputs))
    return next((at for at in range(first, len(inputs)) if all(map(_is_same, inputs[at:], outputs))), len(inputs))


def _is_same(message: Message, repeat: Message) -> bool:
    if message.id is not None and repeat.id is not None:
        return message.id == repeat.id
    return utterances([message]) == utterances([repeat])


def _is_handoff_of(span: Span, called: Collection[str]) -> bool:
    """Return whether a span is a handoff that a model called under another name.

    OpenAI's Agents SDK traces a handoff in addition to that call, named ``transfer_to_billing_desk`` by default.
    """
    agent = _plain(span.name.removeprefix(_HANDOFF))
    if not span.name.startswith(_HANDOFF) or not agent or "tool.name" in span.attributes:
        return False
    return any(name.startswith("transfer") or agent in name for name in map(_plain, called))


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.casefold())


def _tool_step(span: Span, called: Collection[str], values: tuple[str, str]) -> SpanStep:
    """Read a tool call. Its result may be a message, as LangChain's tools return it."""
    name = span.attributes.text("tool.name") or span.name
    if name not in called and _NUMBER.sub("", name) in called:
        name = _NUMBER.sub("", name)
    identity = span.attributes.id("tool_call.id", "tool.id")
    arguments, result = map(span.attributes.take, values)
    output = parse_structured_json(result)
    if lookup(output, "type") == "tool" and isinstance(data := lookup(output, "data"), dict):
        output = data  # LangChain's form of a message
    fields: dict[str, object] = {"name": name, "tool_call_id": identity}
    if isinstance(output, dict) and isinstance(dumped := output.get("kwargs"), dict) and "lc" in output:
        output = {**dumped, "lc": cast("JsonValue", without(output, "kwargs"))}
    if isinstance(output, dict) and isinstance(output.get("content"), str) and "tool_call_id" in output:
        message = FieldTracker(output)
        identity = identity or message.id("tool_call_id")
        status = message.peek("status")
        if message.take_if("status", "success", "error"):
            fields["is_error"] = status == "error"
        fields |= {"content": message.text("content"), "tool_call_id": identity, "extra": message.leftover()}
    elif result is not None:
        fields["content"] = to_text(result)
    call = ToolCall(name, id=identity, **parse_arguments(arguments))
    return SpanStep(span, "tool", call=call, result=None if result is None else ToolMessage.model_validate(fields))


def _expanded(value: JsonValue, role: str) -> JsonValue:
    """Return shorthands and wrapped values in the form that the readers recognize."""
    if isinstance(value, list):
        blocks = [item for item in value if isinstance(item, dict) and "role" not in item]
        if not value or len(blocks) < len(value):
            return value
        if all("message" in item for item in blocks):
            return {"choices": value}
        if role == "assistant" and all(isinstance(item.get("function"), dict) for item in blocks):
            return [{"role": role, "tool_calls": value}]
        return [{"role": role, "content": value}] if all(map(_is_block, blocks)) else value
    if not isinstance(value, dict):
        return value
    if "role" not in value and _is_block(value):
        return {"role": role, "content": [value]}
    if isinstance(contents := value.get("contents"), str):  # Gemini's
        return {**value, "contents": [{"role": "user", "parts": [{"text": contents}]}]}
    generation = value.get("generations")  # LangChain's
    while isinstance(generation, list) and generation:
        generation = generation[0]
    if isinstance(generation, dict) and isinstance(message := generation.get("message"), dict):
        return {**value, "messages": [message]}
    if isinstance(generation, dict) and isinstance(text := generation.get("text"), str):
        return {**value, "messages": [{"role": role, "content": text}]}
    if isinstance(prompts := value.get("prompts"), list) and len(prompts) == 1 and isinstance(prompts[0], str):
        return {**without(value, "prompts"), "messages": [{"role": role, "content": prompts[0]}]}
    return value


def _is_block(value: JsonObject) -> bool:
    """Return whether an object is a content block of a message."""
    return str_or_none(value.get("type")) in _BLOCKS


def _text_in(value: JsonValue, kind: type[HumanMessage | AIMessage]) -> Payload:
    if isinstance(value, dict):
        texts = [name for name, inner in value.items() if isinstance(inner, str)]
        name = texts[0] if len(texts) == 1 else next((name for name in _TEXTS if name in texts), None)
        if name is None:
            return Payload()
        return Payload((kind(str(value[name])),), extra=without(value, name))
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

r"""Spans of OpenTelemetry's conventions for generative AI, and of tracers with older or other conventions.

[{"trace_id": "1f", "span_id": "2e", "name": "chat gpt-x", "attributes": {"gen_ai.operation.name": "chat",
    "gen_ai.input.messages": "[{\"role\": \"user\", \"parts\": [...]}]", "gen_ai.output.messages": "[...]"}}, ...]
{"resourceSpans": [...]}, {"resourceLogs": [...]}, or messages alone: [{"role": "user", "parts": [...]}]
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError, join_limited
from judgekit.formats.blocks import gemini, openai_chat, otel
from judgekit.formats.blocks.common import list_or_single
from judgekit.formats.blocks.reply import first_choice
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import JUDGED_MARK, label_source
from judgekit.formats.merging import SpanStep, distinct_tools, join_calls, merge_steps
from judgekit.formats.readers.base import build_sample
from judgekit.formats.readers.otel_messages import OTelMessagesReader
from judgekit.formats.readers.payloads import Payload, exchange_messages, take_payload
from judgekit.formats.readers.span_steps import agent_name
from judgekit.formats.row_facts import to_text
from judgekit.formats.span_exports import detect_convention
from judgekit.formats.spans import (
    CUT_OFF,
    LOGS_HINT,
    Event,
    Span,
    group_spans,
    read_spans,
    refuse_unread,
    take_nested,
    time_range,
)
from judgekit.formats.values import as_object, first_value, lookup, objects_in, parse_if_json
from judgekit.traces.message import AIMessage, HumanMessage, Message, ToolCall, ToolMessage
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_DETAILS = "gen_ai.client.inference.operation.details"
_CONTENTS = ("gen_ai.content.prompt", "gen_ai.content.completion")
_ADK = ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response")
_PAYLOADS = (
    ("request_data", "response_data"),  # of Logfire
    ("input.value", "output.value"),
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("input", "output"),
)
"""Attributes with a whole request and response, in the format of any provider or framework."""
_SDK = {
    "prompt": ("ai.prompt.messages", "ai.prompt"),
    "reasoning": ("ai.response.reasoning",),
    "text": ("ai.response.text", "ai.response.object"),
    "toolCalls": ("ai.response.toolCalls",),
}
"""Attributes of the AI SDK with a prompt and the parts of an answer."""
_MODELS = frozenset(("gen_ai.request.model", "gen_ai.response.model", "gen_ai.operation.name"))

_ARGUMENTS = ("gen_ai.tool.call.arguments", "ai.toolCall.args", "tool_arguments")
_ADK_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
_ADK_RESULT = "gcp.vertex.agent.tool_response"
_AGENTS = ("invoke_agent", "agent", "ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_SWITCHES = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (or =SPAN_ONLY, together with"
    " OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental), TRACELOOP_TRACE_CONTENT=true,"
    " ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true, include_content=True in Pydantic AI, recordInputs and recordOutputs in"
    " the AI SDK"
)

_MESSAGES = OTelMessagesReader()


class ModelExchange(NamedTuple):
    """The input and output messages of a model call, and the available tools."""

    input_messages: Sequence[Message] = ()
    output_messages: Sequence[Message] = ()
    tools: Sequence[ToolDefinition] = ()


class OTelReader:
    """A reader of spans and log records of conversations: one per conversation id, or else one per trace."""

    name = "otel"
    joins_lines = True
    shape = 'otel: [{"trace_id": ..., "span_id": ..., "attributes": {"gen_ai.input.messages": ...}}, ...], {"resourceSpans": [...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize attributes by these conventions' names, and messages by their parts."""
        return detect_convention(value) == "otel" or _MESSAGES.recognizes(value)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the spans of each conversation."""
        if _MESSAGES.recognizes(document):
            return [document]
        if isinstance(document, list) and document and all(map(_MESSAGES.recognizes, document)):
            return document
        spans = group_spans(document)
        conversations = join_calls(spans, lambda spans: [step for span in spans for step in _steps(span, {})])
        return [record for record in conversations if not _only_creates(record)] or conversations

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. Without contents, which tracers only capture if configured to, it is an error."""
        if _MESSAGES.recognizes(record):
            return _MESSAGES.sample(record, index)
        row = FieldTracker.of(record)
        spans = read_spans(row)
        tools: dict[str, ToolDefinition] = {}
        steps = [step for span in spans for step in _steps(span, tools)]
        spoken = (step.input_messages or step.output_messages or step.result for step in steps)
        if not any(spoken) and not any(step.call and step.call.args for step in steps):
            refuse_unread(spans)
            raise TraceError(
                f"spans: no messages, because content capture was off: turn it on ({_SWITCHES}) and record again;"
                f" if messages were moved to log records, {LOGS_HINT}"
            )
        trace = merge_steps(steps)
        _warn_of_silent_tools(row, steps)
        labels = [label for span in spans for label in _labels(span)]
        outermost = {id(step.span): step.span for step in steps if step.kind == "agent" and step.span.parent is None}
        alone = next(iter(outermost.values())) if len(outermost) == 1 else None
        usage = None if alone is None else otel.read_usage(alone.attributes)
        facts = {"tools": list(tools.values()), "usage": usage, "labels": labels}
        return build_sample(row, index, {**trace, **facts, **time_range(spans)})


def _only_creates(record: JsonValue) -> bool:
    """Return whether spans only create agents, and nothing is said."""
    spans = objects_in(lookup(record, "spans"))
    return all(lookup(span, "attributes", "gen_ai.operation.name") == "create_agent" for span in spans)


def _steps(span: Span, tools: dict[str, ToolDefinition]) -> list[SpanStep]:
    """Return the steps of a span, one for each form in which it records messages."""
    attributes = span.attributes
    operation = _first_text(attributes, "gen_ai.operation.name", "traceloop.span.kind", "ai.operationId") or ""
    if operation in ("execute_tool", "tool", "ai.toolCall") or (not operation and "gen_ai.tool.name" in attributes):
        return [_tool(span)]
    kind: Literal["agent", "model"] = "agent" if operation in _AGENTS else "model"
    names = ("gen_ai.agent.name", "agent_name", *(("traceloop.entity.name",) if kind == "agent" else ()))
    agent = _first_text(attributes, *names) or agent_name(span, is_agent=kind == "agent")
    exchanges = sorted(read_exchanges(span), key=lambda call: -len(call.input_messages) - len(call.output_messages))
    tools.update(distinct_tools(tool for exchange in exchanges for tool in exchange.tools))
    if kind == "model":
        exchanges = [add_answer_attributes(exchange, span) for exchange in exchanges]
    steps = [
        SpanStep(span, kind, agent, exchange.input_messages, exchange.output_messages)
        for exchange in exchanges
        if exchange.input_messages or exchange.output_messages
    ]
    return steps or [SpanStep(span, "agent" if kind == "agent" else None, agent)]


def _first_text(attributes: FieldTracker, *names: str) -> str | None:
    return next((text for name in names if isinstance(text := attributes.peek(name), str)), None)


def _warn_of_silent_tools(row: FieldTracker, steps: Sequence[SpanStep]) -> None:
    """Warn of tool spans without arguments and results whose tool no message and no other span calls."""
    messages = (message for step in steps for message in (*step.input_messages, *step.output_messages))
    called = {call.name for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    called |= {step.call.name for step in steps if step.call is not None}
    silent = [_tool_name(step.span) or "" for step in steps if step.kind == "tool" and step.call is None]
    if missing := [name for name in silent if name not in called]:
        listed = join_limited(missing, separator=", ")
        row.warn(f"tool calls without arguments and results that no message makes, found {len(missing)}: {listed}")


def _tool_name(span: Span) -> str | None:
    return _first_text(span.attributes, "gen_ai.tool.name", "ai.toolCall.name", "traceloop.entity.name")


def _tool(span: Span) -> SpanStep:
    attributes = span.attributes
    name = _tool_name(span)
    if name is None:
        return SpanStep(span)
    for field in (_ADK_ARGUMENTS, _ADK_RESULT):
        attributes.unpack(field)
        if attributes.peek(field) == {}:  # empty where capturing is switched off
            attributes.take(field)
    arguments = attributes.take(*_ARGUMENTS, _ADK_ARGUMENTS, "input")
    response = attributes.maybe_object(_ADK_RESULT)
    result = attributes.take("gen_ai.tool.call.result", "tool_response")
    if result is None and isinstance(result := attributes.take("ai.toolCall.result", "output"), str):
        with suppress(ValueError):  # the AI SDK writes texts as JSON too
            result = json.loads(result) if result.startswith('"') else result
    if arguments is None and (entity_input := attributes.take("traceloop.entity.input")) is not None:
        arguments = _entity_arguments(parse_if_json(entity_input))
    if result is None and (entity_output := attributes.take("traceloop.entity.output")) is not None:
        result = _entity_result(parse_if_json(entity_output))
    if arguments is None and result is None and response is None and span.error is None:
        return SpanStep(span, "tool", call_id=_first_text(attributes, "gen_ai.tool.call.id"))
    identity = attributes.id("gen_ai.tool.call.id", "ai.toolCall.id")
    call = ToolCall.recorded(name, arguments, id=identity)
    message = None if result is None else ToolMessage(to_text(result))
    if response is not None:
        message = gemini.read_function_response(FieldTracker({"response": response.leftover()}))
    pairing = {"tool_call_id": identity, "name": name}
    result_message = message and message.model_copy(update=pairing)
    return SpanStep(span, "tool", call=call, has_arguments=arguments is not None, result=result_message)


def _entity_arguments(recorded: JsonValue) -> JsonValue:
    """Return the arguments of a traced function, or those that LangChain passes to callbacks."""
    call = as_object(recorded)
    if "input_str" in call:
        return as_object(call.get("inputs")) or call["input_str"]
    if not call.keys() <= {"args", "kwargs"}:
        return recorded
    return {**({"args": call["args"]} if call.get("args") else {}), **as_object(call.get("kwargs"))}


def _entity_result(recorded: JsonValue) -> JsonValue:
    """Return what a traced function returned, or the output that LangChain passes to callbacks."""
    output = recorded["output"] if isinstance(recorded, dict) and recorded.keys() == {"output", "kwargs"} else recorded
    content = first_value(as_object(output), "content") or lookup(output, "kwargs", "content")
    return content if isinstance(content, str) else output


def _labels(span: Span) -> list[Label]:
    labels: list[Label] = []
    for event in span.events:
        attributes = event.attributes
        name = attributes.peek("gen_ai.evaluation.name")
        if event.name != "gen_ai.evaluation.result" or not isinstance(name, str):
            continue
        score = attributes.number("gen_ai.evaluation.score.value")
        value = attributes.text("gen_ai.evaluation.score.label") if score is None else score
        if value is not None:
            attributes.take("gen_ai.evaluation.name")
            reason, judged = attributes.text("gen_ai.evaluation.explanation"), attributes.peek(JUDGED_MARK)
            source = label_source(name, judged=judged if isinstance(judged, bool) else None)
            labels.append(Label(name, value, source=source, reason=reason))
    return labels


def read_exchanges(span: Span) -> list[ModelExchange]:
    """Read all messages of a span, once for each dialect that records them. Dialects may repeat each other."""
    exchanges = [ModelExchange(tools=_tools(span.attributes, "gen_ai.tool.definitions"))]
    for holder in (span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)):
        exchanges.append(_current(holder))
        exchanges.append(ModelExchange(_messages(holder, "pydantic_ai.all_messages", "user")))  # in the agent's span
    exchanges += [_events(span.events), _recorded_events(span.attributes), _indexed(span.attributes)]
    contents = (event.attributes for event in span.events if event.name in _CONTENTS)
    exchanges += [_payloads(holder, "gen_ai.prompt", "gen_ai.completion") for holder in (span.attributes, *contents)]
    exchanges += [_payloads(span.attributes, *_ADK), _ai_sdk(span.attributes)]
    if not any(map(_holds, exchanges)) and not _MODELS.isdisjoint(span.attributes):
        exchanges = [_payloads(span.attributes, *names) for names in _PAYLOADS]
    return [exchange for exchange in exchanges if _holds(exchange)]


def add_answer_attributes(exchange: ModelExchange, span: Span) -> ModelExchange:
    """Add what attributes record about the whole answer: id, model, usage, and finish reason."""
    attributes = span.attributes
    last = exchange.output_messages[-1] if exchange.output_messages else None
    if not isinstance(last, AIMessage):
        return exchange
    details: dict[str, object] = {
        "model": last.model or attributes.text("gen_ai.response.model", "ai.response.model"),
        "id": last.id or span.response_id,
        "usage": last.usage or otel.read_usage(attributes),
        "finish_reason": last.finish_reason or attributes.text("ai.response.finishReason"),
    }
    if details["model"] is None and isinstance(model := attributes.peek("gen_ai.request.model"), str):
        details["model"] = model
    reasons = attributes.peek("gen_ai.response.finish_reasons")
    if isinstance(reasons, list) and len(reasons) == 1 and details["finish_reason"] in (None, *reasons):
        details["finish_reason"] = reasons[0] if isinstance(reasons[0], str) else details["finish_reason"]
        if details["finish_reason"] == reasons[0]:
            attributes.take("gen_ai.response.finish_reasons")
    return exchange._replace(output_messages=[*exchange.output_messages[:-1], last.model_copy(update=details)])


def _listed(holder: FieldTracker, name: str) -> list[FieldTracker | JsonValue]:
    """Take a list, which may be written as JSON. An object or a bare text is a list of one."""
    _unpack(holder, name, expected="a list")
    return list_or_single(holder, name)


def _records(attributes: FieldTracker, name: str, field: str, **others: JsonValue) -> list[FieldTracker]:
    """Take a list of objects. Any other value in it becomes a field of an object."""
    return [
        entry
        if isinstance(entry, FieldTracker)
        else FieldTracker({**others, field: entry}, f"{attributes.path}.{name}")
        for entry in _listed(attributes, name)
    ]


def _holds(exchange: ModelExchange) -> bool:
    messages = [*exchange.input_messages, *exchange.output_messages]
    return bool(exchange.tools) or any(message.content or getattr(message, "tool_calls", ()) for message in messages)


def _tools(attributes: FieldTracker, name: str) -> list[ToolDefinition]:
    attributes.unpack(name)
    value = attributes.peek(name)
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        return []
    return openai_chat.read_tools(attributes.objects(name))


def _current(attributes: FieldTracker) -> ModelExchange:
    systems = otel.read_instructions(_listed(attributes, "gen_ai.system_instructions"))
    name = "gen_ai.output.messages"
    replies = _messages(attributes, name, "assistant")
    reasons, count = map(attributes.peek, ("gen_ai.response.finish_reasons", "gen_ai.request.choice.count"))
    several = len(replies) in (len(reasons) if isinstance(reasons, list) else None, count)
    prompts = [*systems, *_messages(attributes, "gen_ai.input.messages", "user")]
    return ModelExchange(prompts, first_choice(replies, attributes, name, several=several))


def _messages(attributes: FieldTracker, name: str, role: str) -> list[Message]:
    """Read messages. A value that is not an object is a text of the given role."""
    turns = _records(attributes, name, "content", role=role)
    return [message for turn in turns for message in otel.read_message(turn)]


def _indexed(attributes: FieldTracker) -> ModelExchange:
    if not any(name.startswith(("gen_ai.prompt.", "gen_ai.completion.")) for name in attributes):
        return ModelExchange()
    prompts = [otel.read_chat(message, "user") for message in _below(attributes, "gen_ai.prompt")]
    replies = [otel.read_chat(message, "assistant") for message in _below(attributes, "gen_ai.completion")]
    several = all(isinstance(reply, AIMessage) and reply.finish_reason for reply in replies)
    replies = first_choice(replies, attributes, "gen_ai.completion", several=several)
    return ModelExchange(prompts, replies, openai_chat.read_tools(_below(attributes, "llm.request.functions")))


def _below(attributes: FieldTracker, prefix: str) -> list[FieldTracker]:
    value = take_nested(attributes, prefix)
    return FieldTracker({prefix: value}, attributes.path, attributes.warnings).objects(prefix)


def _events(events: Iterable[Event]) -> ModelExchange:
    """Read events for messages and choices. The message is in an event's body or attributes."""
    prompts: list[Message] = []
    replies: list[Message] = []
    chosen: list[tuple[JsonValue, Event]] = []
    for event in events:
        if event.name in otel.EVENTS:
            event.fields.unpack("body")
            event.attributes.unpack("gen_ai.event.content")
            body = event.fields.maybe_object("body") or event.attributes.maybe_object("gen_ai.event.content")
            holder = body or event.attributes
            if event.name == otel.CHOICE:
                chosen.append((holder.peek("index"), event))
            (replies if event.name == otel.CHOICE else prompts).extend(otel.read_event(holder, event.name))
    if not chosen:
        return ModelExchange(prompts)
    several = len({repr(index) for index, _ in chosen if index is not None}) == len(replies)
    return ModelExchange(prompts, first_choice(replies, chosen[0][1].fields, "", several=several))


def _recorded_events(attributes: FieldTracker) -> ModelExchange:
    """Read the events that Pydantic AI used to write into one attribute."""
    prompts: list[Message] = []
    replies: list[Message] = []
    for name in ("events", "all_messages_events"):
        attributes.unpack(name)
        value = attributes.peek(name)
        if isinstance(value, list) and all(isinstance(record, dict) and "event.name" in record for record in value):
            for holder in attributes.objects(name):
                if (event := holder.peek("event.name")) in otel.EVENTS:
                    (replies if event == otel.CHOICE else prompts).extend(otel.read_event(holder))
    return ModelExchange(prompts, replies)


def _unpack(attributes: FieldTracker, *names: str, expected: str = "JSON") -> None:
    attributes.unpack(*names)
    for name in names:
        if isinstance(value := attributes.peek(name), str) and value.lstrip()[:1] in ("[", "{"):
            raise attributes.type_error(name, f"{expected} ({CUT_OFF})")


def _payloads(attributes: FieldTracker, request: str, response: str) -> ModelExchange:
    _unpack(attributes, request, response)
    return _exchange(take_payload(attributes, request, HumanMessage), take_payload(attributes, response, AIMessage))


def _ai_sdk(attributes: FieldTracker) -> ModelExchange:
    """Read the prompt and the answer of Vercel's AI SDK, whose parts are in single attributes."""
    _unpack(attributes, *_SDK["prompt"], *_SDK["toolCalls"])
    given = {field: name for field, names in _SDK.items() if (name := attributes.first(*names))}
    values = {field: attributes.peek(name) for field, name in given.items()}
    prompt = values.pop("prompt", None)
    answer: JsonValue = {**values, "finishReason": None} if values else None
    holder = FieldTracker({"prompt": prompt, "response": answer}, f"{attributes.path}.ai", attributes.warnings)
    request, response = take_payload(holder, "prompt", HumanMessage), take_payload(holder, "response", AIMessage)
    for field, name in given.items():
        if ("prompt" if field == "prompt" else "response") not in holder:
            attributes.take(name)
    return _exchange(request, response)


def _exchange(request: Payload, response: Payload) -> ModelExchange:
    tools: list[ToolDefinition] = []
    prompts, replies = exchange_messages(request, response, tools)
    return ModelExchange(prompts, replies, tools)

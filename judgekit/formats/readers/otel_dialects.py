"""Messages of model calls in the dialects of tracers, with ``gen_ai`` attributes or attributes of their own.

{"gen_ai.input.messages": "[{...}]", "gen_ai.output.messages": "[{...}]"}        the current convention, also in an event
{"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.content": "Hi", ...}       traceloop
{"gen_ai.prompt": "[{...}]", "gen_ai.completion": "..."}                         from before the conventions
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.formats.blocks import openai_chat, otel
from judgekit.formats.blocks.common import list_or_single
from judgekit.formats.blocks.reply import first_choice
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.payloads import Payload, exchange_messages, take_payload
from judgekit.formats.spans import CUT_OFF_HINT, Event, Span, take_nested
from judgekit.traces.message import AIMessage, HumanMessage, Message
from judgekit.traces.recording import ToolDefinition

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
_SDK_PROMPTS = ("ai.prompt.messages", "ai.prompt")
_SDK_TEXTS = ("ai.response.text", "ai.response.object")
_SDK_CALLS = ("ai.response.toolCalls",)
_MODELS = frozenset(("gen_ai.request.model", "gen_ai.response.model", "gen_ai.operation.name"))


class ModelExchange(NamedTuple):
    """The input and output messages of a model call, and the available tools."""

    input_messages: Sequence[Message] = ()
    output_messages: Sequence[Message] = ()
    tools: Sequence[ToolDefinition] = ()


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
            raise attributes.type_error(name, f"{expected} ({CUT_OFF_HINT})")


def _payloads(attributes: FieldTracker, request: str, response: str) -> ModelExchange:
    """Read a request and a response in the format of any provider or framework."""
    _unpack(attributes, request, response)
    return _exchange(take_payload(attributes, request, HumanMessage), take_payload(attributes, response, AIMessage))


def _ai_sdk(attributes: FieldTracker) -> ModelExchange:
    """Read the prompt and the answer of Vercel's AI SDK, whose parts are in single attributes."""
    names = {
        "prompt": _SDK_PROMPTS,
        "reasoning": ("ai.response.reasoning",),
        "text": _SDK_TEXTS,
        "toolCalls": _SDK_CALLS,
    }
    _unpack(attributes, *_SDK_PROMPTS, *_SDK_CALLS)
    given = {field: name for field, some in names.items() if (name := next((n for n in some if n in attributes), None))}
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

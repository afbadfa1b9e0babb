"""Messages of model calls in the dialects of tracers, with ``gen_ai`` attributes or attributes of their own.

{"gen_ai.input.messages": "[{...}]", "gen_ai.output.messages": "[{...}]"}        the current convention, also in an event
{"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.content": "Hi", ...}       traceloop
{"gen_ai.prompt": "[{...}]", "gen_ai.completion": "..."}                         from before the conventions
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks import bedrock, gemini, openai_chat, otel
from judgekit.formats.blocks.common import list_or_single
from judgekit.formats.blocks.reply import first_choice, with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.vercel import VercelReader
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import CUT_OFF_HINT, Event, Span, take_nested
from judgekit.formats.values import as_list, as_object, lookup, objects_in, parse_if_json
from judgekit.traces.message import AIMessage, JsonObject, Message
from judgekit.traces.recording import ToolDefinition

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
_DETAILS = "gen_ai.client.inference.operation.details"
_CONTENTS = ("gen_ai.content.prompt", "gen_ai.content.completion")
_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}


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
    exchanges += [_prompt(holder) for holder in (span.attributes, *contents)]
    exchanges += [_adk(span.attributes), _ai_sdk(span.attributes)]
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


def _prompt(attributes: FieldTracker) -> ModelExchange:
    """Read prompts and completions, as JSON or text. A completion may be an object with a text."""
    replies: list[Message] = []
    for completion in _records(attributes, "gen_ai.completion", "text"):
        if "parts" in completion or "content" in completion or "tool_calls" in completion:
            replies += otel.read_message(completion.extended(role="assistant"))
        else:
            text, reason = completion.take("text"), completion.text("finish_reason")
            content = "" if text is None else to_text(text)
            replies.append(AIMessage(content, finish_reason=reason, extra=completion.leftover()))
    return ModelExchange(_messages(attributes, "gen_ai.prompt", "user"), replies)


def _indexed(attributes: FieldTracker) -> ModelExchange:
    if not any(name.startswith(("gen_ai.prompt.", "gen_ai.completion.")) for name in attributes):
        return ModelExchange()
    prompts = [_chat(message, "user") for message in _below(attributes, "gen_ai.prompt")]
    replies = [_chat(message, "assistant") for message in _below(attributes, "gen_ai.completion")]
    several = all(isinstance(reply, AIMessage) and reply.finish_reason for reply in replies)
    replies = first_choice(replies, attributes, "gen_ai.completion", several=several)
    return ModelExchange(prompts, replies, openai_chat.read_tools(_below(attributes, "llm.request.functions")))


def _below(attributes: FieldTracker, prefix: str) -> list[FieldTracker]:
    value = take_nested(attributes, prefix)
    return FieldTracker({prefix: value}, attributes.path, attributes.warnings).objects(prefix)


def _chat(message: FieldTracker, role: str) -> Message:
    """Read a message of OpenAI's kind as tracers write it: lists as JSON, with the finish reason beside it."""
    message.unpack("tool_calls")
    if isinstance(content := message.peek("content"), str) and content.startswith("[{"):
        message.unpack("content")
        parts = as_list(message.peek("content"))
        if not parts or not all("type" in as_object(part) for part in parts):
            message = message.extended(content=content)
    reason = message.text("finish_reason")
    given = message.peek("role")
    parsed = openai_chat.read_message(message.extended(role=_ROLES.get(str(given), given or role)))
    ended = reason and isinstance(parsed, AIMessage)
    return parsed.model_copy(update={"finish_reason": reason}) if ended else parsed


def _events(events: Iterable[Event]) -> ModelExchange:
    """Read events for messages and choices. The message is in an event's body or attributes."""
    prompts: list[Message] = []
    replies: list[Message] = []
    chosen: list[tuple[JsonValue, Event]] = []
    for event in events:
        if event.name in _EVENTS or event.name == "gen_ai.choice":
            event.fields.unpack("body")
            event.attributes.unpack("gen_ai.event.content")
            body = event.fields.maybe_object("body") or event.attributes.maybe_object("gen_ai.event.content")
            holder = body or event.attributes
            if event.name == "gen_ai.choice":
                chosen.append((holder.peek("index"), event))
            (replies if event.name == "gen_ai.choice" else prompts).extend(_event(event.name, holder))
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
                event = holder.peek("event.name")
                if isinstance(event, str) and (event in _EVENTS or event == "gen_ai.choice"):
                    holder.take("event.name")
                    (replies if event == "gen_ai.choice" else prompts).extend(_event(event, holder))
    return ModelExchange(prompts, replies)


def _event(name: str, holder: FieldTracker) -> list[Message]:
    role = _EVENTS.get(name, "assistant")
    fields: JsonObject = {field: holder.take(field) for field in ("content", "tool_calls", "name", "message")}
    fields["finish_reason"] = holder.text("finish_reason")
    holder.take_if("role", role)
    message = _unpacked(fields.pop("message"))
    if isinstance(message, list):
        message = {"content": message}
    if isinstance(message, dict):
        fields |= message
    elif message is not None:
        fields["content"] = message
    if role == "tool":
        fields["tool_call_id"] = holder.take("id")
    role = role if fields.get("role") is None else str(fields["role"])
    content = _unpacked(fields["content"])
    if role != "system" and bedrock.is_bedrock([{"role": "user", "content": content}]):
        reason = fields["finish_reason"]
        whole = {"finish_reason": fields.pop("finish_reason")} if isinstance(reason, str) else None
        block = {**fields, "role": "assistant" if role == "assistant" else "user", "content": content}
        return bedrock.read_message(FieldTracker(block, holder.path, holder.warnings), whole=whole)
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        if all(isinstance(lookup(part, "text"), str) for part in content):
            fields["content"] = [{"type": "text", **part} for part in objects_in(content)]
    elif role == "tool" and content is not None:
        fields["content"] = to_text(fields["content"])
    return [_chat(FieldTracker({**fields, "role": role}, holder.path, holder.warnings), role)]


def _unpacked(value: JsonValue) -> JsonValue:
    return parse_if_json(value) if isinstance(value, str) and value.startswith(("[{", "{")) else value


def _unpack(attributes: FieldTracker, *names: str, expected: str = "JSON") -> None:
    attributes.unpack(*names)
    for name in names:
        if isinstance(value := attributes.peek(name), str) and value.lstrip()[:1] in ("[", "{"):
            raise attributes.type_error(name, f"{expected} ({CUT_OFF_HINT})")


def _adk(attributes: FieldTracker) -> ModelExchange:
    """Read the Gemini requests and responses of Google's ADK. They are empty objects where capturing is off."""
    request, response = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
    _unpack(attributes, request, response)
    prompts: list[Message] = []
    tools: list[ToolDefinition] = []
    if attributes.peek(request) and (recorded := attributes.maybe_object(request)):
        prompts, tools = gemini.read_request(recorded)
    replies: list[Message] = []
    if recorded := attributes.maybe_object(response):
        if (content := recorded.object("content")) is not None:
            replies = gemini.read_content(content, AIMessage)
        usage = gemini.read_usage(recorded.object("usage_metadata", "usageMetadata"))
        details = {"usage": usage, "finish_reason": recorded.text("finish_reason", "finishReason")}
        replies = with_fields(replies, once=details) if replies else replies
    return ModelExchange(prompts, replies, tools)


def _ai_sdk(attributes: FieldTracker) -> ModelExchange:
    """Read the messages that Vercel's AI SDK sends in its own form, and the answer's parts from single attributes."""
    _unpack(attributes, "ai.prompt.messages", "ai.prompt", "ai.response.toolCalls")
    prompts: list[JsonValue] = []
    if (prompt := attributes.take("ai.prompt.messages", "ai.prompt")) is not None:
        whole = prompt if isinstance(prompt, dict) else {"messages" if isinstance(prompt, list) else "prompt": prompt}
        texts = {"system": whole.get("system"), "user": whole.get("prompt")}
        prompts = [{"role": role, "content": text} for role, text in texts.items() if isinstance(text, str)]
        for name in ("prompt", "messages"):
            prompts += as_list(whole.get(name))
    reasoning = attributes.take("ai.response.reasoning")
    parts = (("reasoning", reasoning), ("text", attributes.take("ai.response.text", "ai.response.object")))
    answer: list[JsonValue] = [{"type": kind, "text": to_text(text)} for kind, text in parts if text is not None]
    answer += [{**call, "type": "tool-call"} for call in objects_in(attributes.take("ai.response.toolCalls"))]
    where = f"{attributes.path}.ai"
    reply: list[JsonValue] = [{"role": "assistant", "content": answer}] if answer else []
    return ModelExchange(_sdk(prompts, where), _sdk(reply, where))


def _sdk(messages: list[JsonValue], where: str) -> Sequence[Message]:
    if not messages:
        return ()
    try:
        return VercelReader().sample({"messages": messages}, 0).trace.messages
    except TraceError as error:
        raise TraceError(f"{where}: {error.problem}") from error

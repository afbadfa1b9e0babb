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
from judgekit.formats.blocks.reply import first_choice
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
    """Read all messages of a span, once for each dialect that records them. Dialects may repeat each other.

    Raises:
        TraceError: A message cannot be read. The error names its place.
    """
    found = [ModelExchange(tools=_tools(span.attributes, "gen_ai.tool.definitions"))]
    for holder in (span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)):
        found.append(_current(holder))
        found.append(
            ModelExchange(_messages(holder, "pydantic_ai.all_messages", "user"))
        )  # all of it, in the agent's span
    found += [_events(span.events), _recorded_events(span.attributes), _indexed(span.attributes)]
    contents = (event.attributes for event in span.events if event.name in _CONTENTS)
    found += [_prompt(holder) for holder in (span.attributes, *contents)]
    found += [_adk(span.attributes), _ai_sdk(span.attributes)]
    return [said for said in found if _holds(said)]


def add_answer_attributes(exchange: ModelExchange, span: Span) -> ModelExchange:
    """Add what attributes record about the whole answer: id, model, usage, and finish reason."""
    attributes = span.attributes
    last = exchange.output_messages[-1] if exchange.output_messages else None
    if not isinstance(last, AIMessage):
        return exchange
    known: dict[str, object] = {
        "model": last.model or attributes.text("gen_ai.response.model", "ai.response.model"),
        "id": last.id or span.response_id,
        "usage": last.usage or otel.read_usage(attributes),
        "finish_reason": last.finish_reason or attributes.text("ai.response.finishReason"),
    }
    if known["model"] is None and isinstance(model := attributes.peek("gen_ai.request.model"), str):
        known["model"] = model
    reasons = attributes.peek("gen_ai.response.finish_reasons")
    if isinstance(reasons, list) and len(reasons) == 1 and known["finish_reason"] in (None, *reasons):
        known["finish_reason"] = reasons[0] if isinstance(reasons[0], str) else known["finish_reason"]
        if known["finish_reason"] == reasons[0]:
            attributes.take("gen_ai.response.finish_reasons")
    return exchange._replace(output_messages=[*exchange.output_messages[:-1], last.model_copy(update=known)])


def _listed(found: FieldTracker, name: str) -> list[FieldTracker | JsonValue]:
    """Take a list, which may be written as JSON. A bare text is a list of one.

    Raises:
        TraceError: It is neither a list nor a text.
    """
    found.unpack(name)
    value = found.peek(name)
    if isinstance(value, dict):
        return [found.object(name) or value]
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        raise found.type_error(name, f"a list ({CUT_OFF_HINT})")
    return [found.take(name)] if isinstance(value, str) else found.items(name)


def _holds(said: ModelExchange) -> bool:
    messages = [*said.input_messages, *said.output_messages]
    return bool(said.tools) or any(one.content or getattr(one, "tool_calls", ()) for one in messages)


def _tools(attributes: FieldTracker, name: str) -> list[ToolDefinition]:
    attributes.unpack(name)
    value = attributes.peek(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return []
    return openai_chat.read_tools(attributes.objects(name))


def _current(attributes: FieldTracker) -> ModelExchange:
    systems = otel.read_instructions(_listed(attributes, "gen_ai.system_instructions"))
    name = "gen_ai.output.messages"
    answered = _messages(attributes, name, "assistant")
    reasons, count = map(attributes.peek, ("gen_ai.response.finish_reasons", "gen_ai.request.choice.count"))
    several = len(answered) in (len(reasons) if isinstance(reasons, list) else None, count)
    asked = [*systems, *_messages(attributes, "gen_ai.input.messages", "user")]
    return ModelExchange(asked, first_choice(answered, attributes, name, several=several))


def _messages(attributes: FieldTracker, name: str, role: str) -> list[Message]:
    """Read messages. A value that is not an object is a text of the given role."""
    messages: list[Message] = []
    for one in _listed(attributes, name):
        found = (
            one
            if isinstance(one, FieldTracker)
            else FieldTracker({"role": role, "content": one}, f"{attributes.path}.{name}")
        )
        messages += otel.read_message(found)
    return messages


def _prompt(attributes: FieldTracker) -> ModelExchange:
    """Read prompts and completions, as JSON or text. A completion may be an object with a text."""
    answered: list[Message] = []
    for one in _listed(attributes, "gen_ai.completion"):
        found = (
            one
            if isinstance(one, FieldTracker)
            else FieldTracker({"text": one}, f"{attributes.path}.gen_ai.completion")
        )
        if "parts" in found or "content" in found or "tool_calls" in found:
            answered += otel.read_message(found.extended(role="assistant"))
        else:
            text = found.take("text")
            answered.append(
                AIMessage(
                    "" if text is None else to_text(text),
                    finish_reason=found.text("finish_reason"),
                    extra=found.leftover(),
                )
            )
    return ModelExchange(_messages(attributes, "gen_ai.prompt", "user"), answered)


def _indexed(attributes: FieldTracker) -> ModelExchange:
    if not any(name.startswith(("gen_ai.prompt.", "gen_ai.completion.")) for name in attributes):
        return ModelExchange()
    asked = [_chat(message, "user") for message in _below(attributes, "gen_ai.prompt")]
    answered = [_chat(message, "assistant") for message in _below(attributes, "gen_ai.completion")]
    several = all(isinstance(one, AIMessage) and one.finish_reason for one in answered)
    answered = first_choice(answered, attributes, "gen_ai.completion", several=several)
    return ModelExchange(asked, answered, openai_chat.read_tools(_below(attributes, "llm.request.functions")))


def _below(attributes: FieldTracker, prefix: str) -> list[FieldTracker]:
    value = take_nested(attributes, prefix)
    return FieldTracker({prefix: value}, attributes.path, attributes.warnings).objects(prefix)


def _chat(found: FieldTracker, role: str) -> Message:
    """Read a message of OpenAI's kind as tracers write it: lists as JSON, with the finish reason beside it."""
    found.unpack("tool_calls")
    if isinstance(content := found.peek("content"), str) and content.startswith("[{"):
        found.unpack("content")
        parts = as_list(found.peek("content"))
        if not parts or not all("type" in as_object(part) for part in parts):
            found = found.extended(content=content)
    reason = found.text("finish_reason")
    given = found.peek("role")
    message = openai_chat.read_message(found.extended(role=_ROLES.get(str(given), given or role)))
    ended = reason and isinstance(message, AIMessage)
    return message.model_copy(update={"finish_reason": reason}) if ended else message


def _events(events: Iterable[Event]) -> ModelExchange:
    """Read events for messages and choices. The message is in an event's body or attributes."""
    asked: list[Message] = []
    answered: list[Message] = []
    chosen: list[tuple[JsonValue, Event]] = []
    for event in events:
        if event.name in _EVENTS or event.name == "gen_ai.choice":
            event.fields.unpack("body")
            event.attributes.unpack("gen_ai.event.content")
            body = event.fields.maybe_object("body") or event.attributes.maybe_object("gen_ai.event.content")
            holder = body or event.attributes
            if event.name == "gen_ai.choice":
                chosen.append((holder.peek("index"), event))
            (answered if event.name == "gen_ai.choice" else asked).extend(_event(event.name, holder))
    if not chosen:
        return ModelExchange(asked)
    several = len({repr(index) for index, _ in chosen if index is not None}) == len(answered)
    return ModelExchange(asked, first_choice(answered, chosen[0][1].fields, "", several=several))


def _recorded_events(attributes: FieldTracker) -> ModelExchange:
    """Read the events that Pydantic AI used to write into one attribute."""
    asked: list[Message] = []
    answered: list[Message] = []
    for name in ("events", "all_messages_events"):
        attributes.unpack(name)
        value = attributes.peek(name)
        if isinstance(value, list) and all(isinstance(one, dict) and "event.name" in one for one in value):
            for found in attributes.objects(name):
                event = found.peek("event.name")
                if isinstance(event, str) and (event in _EVENTS or event == "gen_ai.choice"):
                    found.take("event.name")
                    (answered if event == "gen_ai.choice" else asked).extend(_event(event, found))
    return ModelExchange(asked, answered)


def _event(name: str, found: FieldTracker) -> list[Message]:
    role = _EVENTS.get(name, "assistant")
    fields: JsonObject = {one: found.take(one) for one in ("content", "tool_calls", "name", "message")}
    fields["finish_reason"] = found.text("finish_reason")
    found.take_if("role", role)
    said = _unpacked(fields.pop("message"))
    if isinstance(said, list):
        said = {"content": said}
    if isinstance(said, dict):
        fields |= said
    elif said is not None:
        fields["content"] = said
    if role == "tool":
        fields["tool_call_id"] = found.take("id")
    role = role if fields.get("role") is None else str(fields["role"])
    content = _unpacked(fields["content"])
    if role != "system" and bedrock.is_bedrock([{"role": "user", "content": content}]):
        reason = fields["finish_reason"]
        whole = {"finish_reason": fields.pop("finish_reason")} if isinstance(reason, str) else None
        block = {**fields, "role": "assistant" if role == "assistant" else "user", "content": content}
        return bedrock.read_message(FieldTracker(block, found.path, found.warnings), whole=whole)
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        if all(isinstance(lookup(part, "text"), str) for part in content):
            fields["content"] = [{"type": "text", **part} for part in objects_in(content)]
    elif role == "tool" and content is not None:
        fields["content"] = to_text(fields["content"])
    known = {one: value for one, value in fields.items() if value is not None}
    return [_chat(FieldTracker({**known, "role": role}, found.path, found.warnings), role)]


def _unpacked(value: JsonValue) -> JsonValue:
    return parse_if_json(value) if isinstance(value, str) and value.startswith(("[{", "{")) else value


def _unpack(attributes: FieldTracker, *names: str) -> None:
    attributes.unpack(*names)
    for name in names:
        if isinstance(value := attributes.peek(name), str) and value.lstrip()[:1] in ("[", "{"):
            raise attributes.type_error(name, f"JSON ({CUT_OFF_HINT})")


def _adk(attributes: FieldTracker) -> ModelExchange:
    """Read the Gemini requests and responses of Google's ADK. They are empty objects where capturing is off."""
    request, response = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
    _unpack(attributes, request, response)
    asked: list[Message] = []
    tools: list[ToolDefinition] = []
    if attributes.peek(request) and (found := attributes.maybe_object(request)):
        asked, tools = gemini.read_request(found)
    answered: list[Message] = []
    if found := attributes.maybe_object(response):
        if (content := found.object("content")) is not None:
            answered = gemini.read_content(content, AIMessage)
        usage = gemini.read_usage(found.object("usage_metadata", "usageMetadata"))
        known = {"usage": usage, "finish_reason": found.text("finish_reason", "finishReason")}
        answered = gemini.with_fields(answered, once=known) if answered else answered
    return ModelExchange(asked, answered, tools)


def _ai_sdk(attributes: FieldTracker) -> ModelExchange:
    """Read the messages that Vercel's AI SDK sends in its own form, and the answer's parts from single attributes."""
    _unpack(attributes, "ai.prompt.messages", "ai.prompt", "ai.response.toolCalls")
    asked: list[JsonValue] = []
    if (prompt := attributes.take("ai.prompt.messages", "ai.prompt")) is not None:
        whole = prompt if isinstance(prompt, dict) else {"messages" if isinstance(prompt, list) else "prompt": prompt}
        texts = {"system": whole.get("system"), "user": whole.get("prompt")}
        asked = [{"role": role, "content": text} for role, text in texts.items() if isinstance(text, str)]
        for name in ("prompt", "messages"):
            asked += as_list(whole.get(name))
    said = {"reasoning": attributes.take("ai.response.reasoning")}
    said["text"] = attributes.take("ai.response.text", "ai.response.object")
    answer: list[JsonValue] = [{"type": kind, "text": to_text(one)} for kind, one in said.items() if one is not None]
    answer += [{**call, "type": "tool-call"} for call in objects_in(attributes.take("ai.response.toolCalls"))]
    where = f"{attributes.path}.ai"
    return ModelExchange(_sdk(asked, where), _sdk([{"role": "assistant", "content": answer}], where) if answer else ())


def _sdk(messages: list[JsonValue], where: str) -> Sequence[Message]:
    if not messages:
        return ()
    try:
        return VercelReader().sample({"messages": messages}, 0).trace.messages
    except TraceError as error:
        raise TraceError(f"{where}: {error.problem}") from error

"""Payloads that tracers record as they were: requests and responses of providers, and results of tools.

These shapes, which only tracers and frameworks write, are turned into messages that a reader recognizes:

{"generations": [[{"message": {...}}]]}                                   LangChain's results
{"role": "assistant", "content": "", "additional_kwargs": {...}}          LangChain's messages with OpenAI's roles
[{"toolCallId": "c1", "toolName": "f", "input": "{...}"}]                 the AI SDK's answers without text
{"text": "Hi", "toolCalls": [...], "finishReason": "stop"}                the AI SDK's results
{"content": {"role": "model", "parts": [...]}, "finish_reason": "STOP"}   responses in Google's ADK
[{"message": {"role": "user", "content": "Hi"}}]                          OpenInference's messages
{"message": "[{...}]", "finish_reason": "end_turn"}                       the attributes of an event
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.otel import CHOICE, holds_bedrock
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
from judgekit.formats.readers.pydantic_ai import PydanticAIReader
from judgekit.formats.readers.semantic_kernel import SemanticKernelReader
from judgekit.formats.readers.vercel import VercelReader
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import CUT_OFF
from judgekit.formats.values import as_list, as_object, lookup, objects_in, parse_if_json, unpacked, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import ToolDefinition, TraceWarning

Role: TypeAlias = Literal["user", "assistant"]
_BLOCKS = (
    *("text", "input_text", "output_text", "refusal", "thinking", "redacted_thinking", "tool_use", "tool_result"),
    *("image", "image_url", "input_image", "input_audio", "file", "input_file", "document"),
)
"""The types of a message's content blocks."""
_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool", "function": "function"}
"""LangChain's types of messages by role."""
_WHOLES = frozenset(("event.name", "messages", "choices", "generations"))
"""Fields next to which a message is not all that an object says."""
_OF_CANDIDATES = ("content", "finish_reason", "finishReason")
_PARAMETERS = frozenset(("parameters", "input_schema", "inputSchema"))

_READERS: tuple[Reader, ...] = (
    *(OpenAIResponsesReader(), AnthropicReader(), GeminiReader(), BedrockReader(), LangChainReader()),
    *(PydanticAIReader(), LlamaIndexReader(), HaystackReader(), SemanticKernelReader(), AutoGenReader()),
    *(VercelReader(), OTelMessagesReader()),
)
"""The most specific first: messages of text alone look the same in many formats."""
_FALLBACK = OpenAIChatReader()
_TEXTS = (
    *("text", "prompt", "input", "query", "question", "task", "output", "answer", "result", "response", "content"),
    *("message",),
)
"""The names of the text to use if an object holds several."""


class Payload(NamedTuple):
    """A request or a response. ``extra`` holds everything except messages and tools."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    extra: JsonObject = {}  # noqa: RUF012 - never changed


def take_payload(holder: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload:
    """Take a field with a request or response of a model: complete, its messages, or a text; as it is or as JSON.

    A bare text becomes a message of the given kind. The first of several choices is read; the others go into ``extra``,
    with a warning. A field that holds none of these is not taken, and the payload is empty.
    """
    value = unpacked(holder.peek(name))
    payload = messages_in(value, holder, name, kind) or _text_in(value, kind)
    if payload.messages:
        if isinstance(value, str) and value.lstrip().startswith(('{"', "[{", '["')):
            holder.warn(f"invalid JSON, read as text ({CUT_OFF})", name)
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
    variables = unpacked(value)
    return variables if isinstance(variables, dict) and len(variables) > 1 and "messages" not in variables else {}


def messages_in(value: JsonValue, row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload | None:
    """Return the messages of a request or response in any provider's format; ``None`` if there are none.

    A bare list of choices counts as a response, and bare content blocks as a message of the given kind. Warnings name
    the field of the row.
    """
    if not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and len(value) == 1 and not {"input", "output"}.isdisjoint(value):  # of functions
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


def exchange_messages(
    request: Payload, response: Payload, tools: list[ToolDefinition], **details: object
) -> tuple[list[Message], list[Message]]:
    """Return the messages of a request and its response, and add their tool definitions to ``tools``.

    The answer gets the ``details`` that it lacks, and the last message everything else, in its ``extra``.
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
            answer = text.model_copy(update={"finish_reason": reason})
            return Payload((answer,), extra=without(value, name, "finish_reason"))
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


def expand(payload: JsonObject | list[JsonValue], role: Role) -> JsonValue:
    """Return a request or response in a form that a reader recognizes, or as it is. The role is used if it has none."""
    if isinstance(payload, dict):
        if "role" not in payload and _is_block(payload):
            return {"role": role, "content": [payload]}
        expanded = (shape(payload, role) for shape in (_message, _gemini, _langchain, _sdk))
        return next((whole for whole in expanded if whole is not None), payload)
    entries = objects_in(payload)
    if not entries or len(entries) < len(payload):
        return payload
    if any("role" in entry for entry in entries):
        return _conversation(entries) or payload
    if all(isinstance(entry.get("message"), dict) for entry in entries):
        calls = [call for entry in entries for call in objects_in(lookup(entry, "message", "tool_calls"))]
        is_nested = any("tool_call" in call for call in calls)  # as in OpenInference
        return [_opened(entry) for entry in entries] if role == "user" or is_nested else {"choices": payload}
    if role == "assistant" and all(isinstance(entry.get("function"), dict) for entry in entries):
        return [{"role": role, "tool_calls": payload}]
    if _are_sdk_calls(payload):
        return [_sdk_message({}, payload)]
    return [{"role": role, "content": payload}] if all(map(_is_block, entries)) else payload


def _is_block(payload: JsonObject) -> bool:
    return payload.get("type") in _BLOCKS


def _message(payload: JsonObject, role: Role) -> JsonValue:
    """Expand a single message, or the message in a choice or event."""
    message, calls = payload.get("message"), parse_if_json(payload.get("tool_calls"))
    if "role" in payload:
        if _are_sdk_calls(calls):
            return _sdk_message(without(payload, "tool_calls"), calls)
        return _conversation([payload])
    if role == "assistant" and _WHOLES.isdisjoint(payload):
        if isinstance(message, dict) and message.get("role") == "assistant":
            return {"choices": [payload]}
        if message is not None and ("finish_reason" in payload or isinstance(message, dict)):
            return [{**payload, "event.name": CHOICE}]
        if objects_in(calls):
            return {"role": role, **payload}
    return None


def _gemini(payload: JsonObject, role: Role) -> JsonValue:
    """Expand bare texts, and the requests and responses of Google's ADK."""
    contents, content = payload.get("contents"), payload.get("content")
    new_message = payload.get("new_message", payload.get("newMessage"))
    if isinstance(contents, str):
        return {**payload, "contents": [{"role": "user", "parts": [{"text": contents}]}]}
    if isinstance(new_message, dict) and "parts" in new_message:
        return {**without(payload, "new_message", "newMessage"), "contents": [new_message]}
    if not isinstance(content, dict) or "parts" not in content or "author" in payload:
        return None
    if role == "user":
        return {**without(payload, "content"), "contents": [content]}
    candidate: JsonObject = {name: payload[name] for name in _OF_CANDIDATES if name in payload}
    return {**without(payload, *candidate), "candidates": [candidate]}


def _langchain(payload: JsonObject, role: Role) -> JsonValue:
    """Expand results and prompts of LangChain, and messages with fields of its own."""
    generation = payload.get("generations")
    while isinstance(generation, list) and generation:
        generation = generation[0]
    if isinstance(generation, dict) and isinstance(message := generation.get("message"), dict):
        return {**payload, "messages": [message]}
    if isinstance(generation, dict) and isinstance(text := generation.get("text"), str):
        return {**payload, "messages": [{"role": role, "content": text}]}
    if isinstance(prompts := payload.get("prompts"), list) and len(prompts) == 1 and isinstance(prompts[0], str):
        return {**without(payload, "prompts"), "messages": [{"role": role, "content": prompts[0]}]}
    messages = payload.get("messages")
    whole = _conversation(messages) if isinstance(messages, list) else None
    return None if whole is None else {**payload, **whole}


def _conversation(messages: Sequence[JsonValue]) -> JsonObject | None:
    """Return messages with roles as those of the framework that wrote them, and definitions of tools apart."""
    if not all(isinstance(lookup(message, "role"), str) for message in messages):
        return None
    tools = [lookup(message, "content") for message in messages if _is_definition(message)]
    spoken = [message for message in objects_in(list(messages)) if not _is_definition(message)]
    if any(isinstance(message.get("additional_kwargs"), dict) and "content" in message for message in spoken):
        spoken = [_typed(message) for message in spoken]
    elif any(isinstance(text := message.get("content"), str) and holds_bedrock(text) for message in spoken):
        spoken = [{"event.name": f"gen_ai.{message['role']}.message", **message} for message in spoken]
    elif not tools:
        return None
    return {"messages": list[JsonValue](spoken), **({"tools": tools} if tools else {})}


def _typed(message: JsonObject) -> JsonObject:
    kind = _TYPES.get(str(message["role"]))
    return {**message, "type": "chat"} if kind is None else {**without(message, "role"), "type": kind}


def _is_definition(message: JsonValue) -> bool:
    """Return whether this is the definition of a tool, which callbacks of LangChain put among the messages."""
    tool = lookup(message, "content")
    if lookup(message, "role") != "tool" or lookup(message, "tool_call_id") or not isinstance(tool, dict):
        return False
    return isinstance(tool.get("function"), dict) or ("name" in tool and not _PARAMETERS.isdisjoint(tool))


def _opened(entry: JsonObject) -> JsonObject:
    """Return a message of OpenInference without its inner levels."""
    message = as_object(entry["message"])
    calls: list[JsonValue] = [call.get("tool_call", call) for call in objects_in(message.get("tool_calls"))]
    parts = [part.get("message_content", part) for part in objects_in(message.get("contents"))]
    content = message.get("content") or parts or None
    opened: JsonObject = {**without(message, "contents"), "content": content, "tool_calls": calls or None}
    others = without(entry, "message")
    hidden = {name: other for name, other in others.items() if name in opened and other != opened[name]}
    return {**others, **opened, **({"entry": {"role": message.get("role"), **hidden}} if hidden else {})}


def _sdk(payload: JsonObject, role: Role) -> JsonValue:
    """Expand requests and results of the AI SDK."""
    system, prompt, calls = payload.get("system"), payload.get("prompt"), payload.get("toolCalls")
    if role == "user":
        if objects_in(prompt):
            return {**without(payload, "prompt"), "messages": prompt}
        if not isinstance(system, str) or not isinstance(prompt, str):
            return None
        messages: list[JsonValue] = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        return {**without(payload, "system", "prompt"), "messages": messages}
    if not ({"text", "object"} & payload.keys() and "finishReason" in payload) and not _are_sdk_calls(calls):
        return None
    answer = payload.get("text") or payload.get("object")
    parts = {"reasoning": payload.get("reasoning"), "text": None if answer is None else to_text(answer)}
    content: list[JsonValue] = [{"type": kind, "text": text} for kind, text in parts.items() if isinstance(text, str)]
    used = ("text", "toolCalls", *(name for name in ("object",) if not payload.get("text")))
    used += ("reasoning",) if isinstance(parts["reasoning"], str) else ()
    return _sdk_message({**without(payload, *used), "content": content}, calls)


def _are_sdk_calls(calls: JsonValue) -> bool:
    return bool(calls) and all({"toolCallId", "toolName"} <= as_object(call).keys() for call in as_list(calls))


def _sdk_message(message: JsonObject, calls: JsonValue) -> JsonObject:
    """Return a message of the assistant with the calls that the AI SDK records next to the text."""
    content = message.get("content")
    parts: list[JsonValue] = [{"type": "text", "text": content}] if content and isinstance(content, str) else []
    parts += as_list(content)
    called: list[JsonValue] = [{**call, "type": "tool-call"} for call in objects_in(calls)]
    return {**message, "role": "assistant", "content": [*parts, *called]}

"""Shapes of requests and responses that only tracers and frameworks write, as messages that a reader recognizes.

{"generations": [[{"message": {...}}]]}                                   LangChain's results
{"role": "assistant", "content": "", "additional_kwargs": {...}}          LangChain's messages with OpenAI's roles
[{"toolCallId": "c1", "toolName": "f", "input": "{...}"}]                 the AI SDK's answers without text
{"text": "Hi", "toolCalls": [...], "finishReason": "stop"}                the AI SDK's results
{"content": {"role": "model", "parts": [...]}, "finish_reason": "STOP"}   responses in Google's ADK
[{"message": {"role": "user", "content": "Hi"}}]                          OpenInference's messages
{"message": "[{...}]", "finish_reason": "end_turn"}                       the attributes of an event
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pydantic import JsonValue

from judgekit.formats.blocks.otel import CHOICE, holds_bedrock
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, as_object, lookup, objects_in, parse_if_json, str_or_none, without
from judgekit.traces.message import JsonObject

Role: TypeAlias = Literal["user", "assistant"]
_BLOCKS = frozenset(
    (
        *("text", "input_text", "output_text", "refusal", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("image", "image_url", "input_image", "input_audio", "file", "input_file", "document"),
    )
)
"""The types of a message's content blocks."""
_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool", "function": "function"}
"""LangChain's types of messages by role."""
_WHOLES = frozenset(("event.name", "messages", "choices", "generations"))
"""Fields beside which a message is not all that an object says."""
_PARAMETERS = frozenset(("parameters", "input_schema", "inputSchema"))


def expand(payload: JsonObject | list[JsonValue], role: Role) -> JsonValue:
    """Return a request or response in a form that a reader recognizes, or as it is.

    Args:
        payload: The request or response.
        role: Who wrote it, if it does not say so.
    """
    if isinstance(payload, dict):
        expanded = (shape(payload, role) for shape in (_block, _message, _gemini, _langchain, _sdk))
        return next((whole for whole in expanded if whole is not None), payload)
    entries = objects_in(payload)
    if not entries or len(entries) < len(payload):
        return payload
    if any("role" in entry for entry in entries):
        return _conversation(entries) or payload
    if all(isinstance(entry.get("message"), dict) for entry in entries):
        is_request = role == "user" or any(map(_is_nested, entries))
        return [_opened(entry) for entry in entries] if is_request else {"choices": payload}
    if role == "assistant" and all(isinstance(entry.get("function"), dict) for entry in entries):
        return [{"role": role, "tool_calls": payload}]
    if _are_sdk_calls(payload):
        return [_sdk_message({}, payload)]
    return [{"role": role, "content": payload}] if all(map(_is_block, entries)) else payload


def _is_block(payload: JsonObject) -> bool:
    """Return whether an object is a content block of a message."""
    return str_or_none(payload.get("type")) in _BLOCKS


def _block(payload: JsonObject, role: Role) -> JsonValue:
    return {"role": role, "content": [payload]} if "role" not in payload and _is_block(payload) else None


def _message(payload: JsonObject, role: Role) -> JsonValue:
    """Expand a single message, or the message in a choice or event."""
    message, calls = payload.get("message"), parse_if_json(payload.get("tool_calls"))
    if "role" in payload:
        return (
            _sdk_message(without(payload, "tool_calls"), calls) if _are_sdk_calls(calls) else _conversation([payload])
        )
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
    asked = payload.get("new_message", payload.get("newMessage"))
    if isinstance(contents, str):
        return {**payload, "contents": [{"role": "user", "parts": [{"text": contents}]}]}
    if isinstance(asked, dict) and "parts" in asked:
        return {**without(payload, "new_message", "newMessage"), "contents": [asked]}
    if not isinstance(content, dict) or "parts" not in content or "author" in payload:
        return None
    if role == "user":
        return {**without(payload, "content"), "contents": [content]}
    candidate: JsonObject = {
        name: payload[name] for name in ("content", "finish_reason", "finishReason") if name in payload
    }
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
    said = [message for message in objects_in(list(messages)) if not _is_definition(message)]
    if any(isinstance(message.get("additional_kwargs"), dict) and "content" in message for message in said):
        said = [_typed(message) for message in said]
    elif any(isinstance(text := message.get("content"), str) and holds_bedrock(text) for message in said):
        said = [{"event.name": f"gen_ai.{message['role']}.message", **message} for message in said]
    elif not tools:
        return None
    return {"messages": list[JsonValue](said), **({"tools": tools} if tools else {})}


def _typed(message: JsonObject) -> JsonObject:
    """Return a message with LangChain's type instead of a role."""
    kind = _TYPES.get(str(message["role"]))
    return {**message, "type": "chat"} if kind is None else {**without(message, "role"), "type": kind}


def _is_definition(message: JsonValue) -> bool:
    """Return whether this is the definition of a tool, which callbacks of LangChain put among the messages."""
    tool = lookup(message, "content")
    if lookup(message, "role") != "tool" or lookup(message, "tool_call_id") or not isinstance(tool, dict):
        return False
    return isinstance(tool.get("function"), dict) or ("name" in tool and not _PARAMETERS.isdisjoint(tool))


def _is_nested(entry: JsonObject) -> bool:
    """Return whether the calls of a message are nested as in OpenInference."""
    return any("tool_call" in call for call in objects_in(lookup(entry, "message", "tool_calls")))


def _opened(entry: JsonObject) -> JsonObject:
    """Return a message of OpenInference without its inner levels."""
    message = as_object(entry["message"])
    calls: list[JsonValue] = [call.get("tool_call", call) for call in objects_in(message.get("tool_calls"))]
    parts = [part.get("message_content", part) for part in objects_in(message.get("contents"))]
    content = message.get("content") or parts or None
    return {
        **without(entry, "message"),
        **without(message, "contents"),
        "content": content,
        "tool_calls": calls or None,
    }


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
    said = payload.get("text") or payload.get("object")
    parts = {"reasoning": payload.get("reasoning"), "text": None if said is None else to_text(said)}
    content: list[JsonValue] = [{"type": kind, "text": text} for kind, text in parts.items() if isinstance(text, str)]
    used = ("text", "toolCalls", *(name for name in ("object",) if not payload.get("text")))
    used += ("reasoning",) if isinstance(parts["reasoning"], str) else ()
    return _sdk_message({**without(payload, *used), "content": content}, calls)


def _are_sdk_calls(calls: JsonValue) -> bool:
    return bool(calls) and all(
        "toolCallId" in as_object(call) and "toolName" in as_object(call) for call in as_list(calls)
    )


def _sdk_message(message: JsonObject, calls: JsonValue) -> JsonObject:
    """Return a message of the assistant with the calls that the AI SDK records beside the text."""
    content = message.get("content")
    parts: list[JsonValue] = [{"type": "text", "text": content}] if content and isinstance(content, str) else []
    parts += as_list(content)
    called: list[JsonValue] = [{**call, "type": "tool-call"} for call in objects_in(calls)]
    return {**message, "role": "assistant", "content": [*parts, *called]}

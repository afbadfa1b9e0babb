"""Contents of Google's Gemini API, in the camelCase of its REST API or the snake_case of its SDK and of ADK.

[{"role": "user", "parts": [{"text": "Weather?"}]},
 {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}]},
 {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"result": "21C"}}}]}]
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.formats.blocks.common import PROVIDED, bare_part, checked_text, list_or_single, media_kind, tool_name
from judgekit.formats.blocks.reply import OTHER_CHOICES, is_blank, to_content, unknown_part, with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import lookup
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.recording import ToolDefinition

Speaker: TypeAlias = type[SystemMessage] | type[HumanMessage] | type[AIMessage] | type[ToolMessage]

SPEAKERS: dict[str, Speaker] = {
    "user": HumanMessage,
    "model": AIMessage,
    "system": SystemMessage,
    "function": ToolMessage,
    "tool": ToolMessage,
}
_CODE = "code_execution"
_FAILED = {"OUTCOME_OK": False, "OUTCOME_FAILED": True, "OUTCOME_DEADLINE_EXCEEDED": True}
_CALLS = ("functionCall", "function_call", "toolCall", "tool_call", "executableCode", "executable_code")
_RESULTS = (
    *("functionResponse", "function_response", "toolResponse", "tool_response", "codeExecutionResult"),
    *("code_execution_result",),
)
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_ANSWER_COUNTS = ("candidatesTokenCount", "candidates_token_count", "responseTokenCount", "response_token_count")
PART_FIELDS = frozenset(("text", *_CALLS, *_RESULTS, *_MEDIA))
FEEDBACK_FIELDS = ("promptFeedback", "prompt_feedback")
USAGE_FIELDS = ("usageMetadata", "usage_metadata")
OUTCOME_FIELDS = ("candidates", *FEEDBACK_FIELDS, *USAGE_FIELDS)
"""The fields of a response that show the outcome of the request."""


def read_contents(contents: Iterable[FieldTracker]) -> list[Message]:
    """Read contents as messages."""
    return [message for content in contents for message in read_content(content)]


def read_content(content: FieldTracker, speaker: Speaker | None = None) -> list[Message]:
    """Read one content as a message, or as several if it holds tool results. Without a role, the user speaks."""
    role = content.peek("role") or "user"
    if not isinstance(role, str) or role not in SPEAKERS:
        raise content.type_error("role", f"one of {', '.join(SPEAKERS)}")
    content.take("role")
    messages = _messages(list_or_single(content, "parts"), speaker or SPEAKERS[role])
    return with_fields(messages, extra=content.leftover())


def read_request(request: FieldTracker) -> tuple[list[Message], list[ToolDefinition]]:
    """Read the messages of a request, system instruction first, and its tools, including the provider's own.

    The SDK puts instruction and tools into ``config``, and accepts contents in many shapes.
    """
    messages: list[Message] = []
    tools: list[ToolDefinition] = []
    for holder in (request, request.object("config")):
        if holder is None:
            continue
        for name in ("systemInstruction", "system_instruction"):
            if instruction := holder.maybe_object(name):
                messages += read_content(instruction, SystemMessage)
            elif name in holder:
                messages += _messages(list_or_single(holder, name), SystemMessage)
        for tool in holder.optional_objects("tools"):
            tools += _definitions(tool)
    return [*messages, *_contents(request)], tools


def read_response(chunks: Sequence[FieldTracker]) -> list[Message]:
    """Read the first candidate. Without candidates, as for a blocked prompt, it is an empty message.

    Values of earlier chunks of a streamed response, such as token counts, are left in them if the last chunk has other
    values. A response that holds no answer gives no message.
    """
    streamed = len(chunks) > 1
    candidates, others = _split(chunks)
    if others:
        chunks[0].warn("of several candidates, the first is read; the others are kept in its extra", "candidates")
    if not candidates and not any(name in chunk for chunk in chunks for name in OUTCOME_FIELDS):
        return []
    parts: list[FieldTracker | JsonValue] = []
    for answer in candidates:
        answer.take_if("index", 0)
        if content := answer.maybe_object("content"):
            content.take_if("role", "model", "")
            parts += list_or_single(content, "parts")
    messages = _messages(parts, AIMessage, joined=streamed)
    if not any(isinstance(message, AIMessage) for message in messages):
        messages.append(AIMessage())
    return with_fields(
        messages,
        every={
            "model": _last(chunks, "modelVersion", "model_version").text("modelVersion", "model_version"),
            "timestamp": _last(chunks, "createTime", "create_time").time("createTime", "create_time"),
        },
        once={
            "id": _last(chunks, "responseId", "response_id").text("responseId", "response_id"),
            "finish_reason": _last(candidates, "finishReason", "finish_reason").text("finishReason", "finish_reason")
            if candidates
            else _blocked(chunks),
            "usage": read_usage(_last(chunks, *USAGE_FIELDS).object(*USAGE_FIELDS)),
        },
        extra={**(candidates[-1].leftover() if candidates else {}), **({OTHER_CHOICES: others} if others else {})},
    )


def _split(chunks: Sequence[FieldTracker]) -> tuple[list[FieldTracker], list[JsonValue]]:
    """Return the first candidate, which each chunk of a streamed response may have a piece of, and all others."""
    first: list[FieldTracker] = []
    others: list[JsonValue] = []
    for chunk in chunks:
        for position, candidate in enumerate(chunk.objects("candidates")):
            if position == 0 and candidate.peek("index") in (None, 0):
                first.append(candidate)
            else:
                others.append(candidate.leftover())
    return first, others


def _blocked(chunks: Sequence[FieldTracker]) -> str | None:
    feedback = _last(chunks, *FEEDBACK_FIELDS).object(*FEEDBACK_FIELDS)
    reason = feedback.text("blockReason", "block_reason") if feedback else None
    chunks[-1].warn(f"the prompt was blocked: {reason}" if reason else "the response has no candidates")
    return reason


def read_function_call(call: FieldTracker) -> ToolCall:
    """Read a function call."""
    arguments, name, identity = call.take("args"), tool_name(call, "name"), call.id("id") or None
    return ToolCall.recorded(name, arguments, id=identity, extra=call.leftover())


def read_function_response(response: FieldTracker) -> ToolMessage:
    """Read a function's result. The API documents the keys ``error``, and ``output`` or ``result`` otherwise."""
    text, is_error = _outcome(response.take("response"))
    content: list[Part] = [
        (_media(part) or OtherPart(part.leftover())) if isinstance(part, FieldTracker) else OtherPart(part)
        for part in response.items("parts")
    ]
    whole = [TextPart(text), *content] if content else text
    identity, name = response.id("id") or None, response.text("name")
    return ToolMessage(whole, tool_call_id=identity, name=name, is_error=is_error, extra=response.leftover())


def read_usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts. Input is the prompt plus the provider's tool results; output includes the thoughts."""
    if counts is None:
        return None
    prompt = counts.count("promptTokenCount", "prompt_token_count")
    tools = counts.count("toolUsePromptTokenCount", "tool_use_prompt_token_count")
    answer = counts.count(*_ANSWER_COUNTS)
    thoughts = counts.count("thoughtsTokenCount", "thoughts_token_count")
    summed: JsonObject = {}
    if tools is not None:
        summed |= {"promptTokenCount": prompt, "toolUsePromptTokenCount": tools}
    if thoughts is not None:
        summed |= {"candidatesTokenCount": answer}
    return Usage(
        input_tokens=_sum(prompt, tools),
        output_tokens=_sum(answer, thoughts),
        cached_tokens=counts.count("cachedContentTokenCount", "cached_content_token_count"),
        reasoning_tokens=thoughts,
        extra={**{name: count for name, count in summed.items() if count is not None}, **counts.leftover()},
    )


def _contents(request: FieldTracker) -> list[Message]:
    """Read contents mixed with bare parts. Adjacent bare parts form one content, the model's if they are calls."""
    messages: list[Message] = []
    for speaker, group in groupby(list_or_single(request, "contents"), _speaker):
        if speaker is None:
            messages += read_contents(item for item in group if isinstance(item, FieldTracker))
        else:
            messages += _messages(group, speaker)
    return messages


def _speaker(item: FieldTracker | JsonValue) -> Speaker | None:
    """Return the type of message that a bare part belongs to; ``None`` for a content, which has a role."""
    if not isinstance(item, FieldTracker):
        return HumanMessage
    if not {"role", "parts"}.isdisjoint(item):
        return None
    return HumanMessage if {"functionCall", "function_call"}.isdisjoint(item) else AIMessage


def _messages(parts: Iterable[FieldTracker | JsonValue], speaker: Speaker, *, joined: bool = False) -> list[Message]:
    """Return messages made from parts, with tool results as messages of their own. Streamed texts are joined."""
    messages: list[Message] = []
    content: list[Part] = []
    calls: list[ToolCall] = []
    pieces: list[list[JsonValue]] = []
    for part in parts:
        if isinstance(part, FieldTracker) and (name := part.first(*_RESULTS)) is not None:
            if content or calls:
                messages.append(_message(speaker, content, calls, pieces))
                content, calls, pieces = [], [], []
            messages.append(_result(part, name))
        elif isinstance(part, FieldTracker) and (name := part.first(*_CALLS)) is not None:
            if speaker not in (AIMessage, HumanMessage):
                raise part.type_error(name, "no call in a message with this role")
            unnamed = name in ("functionCall", "function_call") and lookup(part.peek(name), "name") is None
            if joined and calls and unnamed:
                pieces[-1].append(part.leftover())
            elif is_blank(part.peek(name)):
                content.append(_part(part))
            else:
                calls.append(_call(part, name))
                pieces.append([])
        else:
            piece = _part(part)
            if joined and content and (longer := _joined(content[-1], piece)):
                content[-1] = longer
            else:
                content.append(piece)
    if content or calls or not messages:
        messages.append(_message(speaker, content, calls, pieces))
    return messages


def _message(kind: Speaker, content: list[Part], calls: list[ToolCall], pieces: Sequence[list[JsonValue]]) -> Message:
    fields: dict[str, object] = {"content": to_content(content)}
    if calls:
        both = zip(calls, pieces, strict=True)
        fields["tool_calls"] = [_streamed(call, more) if more else call for call, more in both]
    return kind.model_validate(fields)


def _streamed(call: ToolCall, pieces: list[JsonValue]) -> ToolCall:
    """Return a call whose arguments were streamed path by path: they are kept, but not assembled."""
    error = "streamed in pieces, which are not joined"
    return call.model_copy(update={"args": {}, "args_raw": to_text([call.args, *pieces]), "args_error": error})


def _joined(piece: Part, next_piece: Part) -> Part | None:
    for kind in (TextPart, ReasoningPart):
        if isinstance(piece, kind) and isinstance(next_piece, kind) and piece.extra.keys().isdisjoint(next_piece.extra):
            return kind(piece.text + next_piece.text, extra={**piece.extra, **next_piece.extra})
    return None


def _part(part: FieldTracker | JsonValue) -> Part:
    if not isinstance(part, FieldTracker):
        return bare_part(part)
    if "text" in part:
        text = checked_text(part, "text")
        kind = ReasoningPart if part.boolean("thought") else TextPart
        return kind(text, extra=part.leftover())
    if all(name in ("thought", "thoughtSignature", "thought_signature") for name in part):
        return OtherPart(part.leftover())
    return _media(part) or unknown_part(part)


def _media(part: FieldTracker) -> MediaPart | None:
    inner = part.object(*_MEDIA)
    if inner is None:
        return None
    mime_type = inner.text("mimeType", "mime_type")
    kind, url, data = media_kind(mime_type), inner.text("fileUri", "file_uri"), inner.text("data")
    name = inner.text("displayName", "display_name")
    return MediaPart(kind=kind, url=url, data=data, mime_type=mime_type, name=name, extra=part.leftover())


def _call(part: FieldTracker, name: str) -> ToolCall:
    inner = _inner(part, name)
    if name in ("functionCall", "function_call"):
        call = read_function_call(inner)
    else:
        code: JsonObject = {key: inner.take(key) for key in ("language", "code") if key in inner}
        coded = name in ("executableCode", "executable_code")
        tool = _CODE if coded else tool_name(inner, "toolType", "tool_type")
        arguments = code if coded else inner.take("args")
        call = ToolCall.recorded(tool, arguments, id=inner.id("id") or None, metadata=PROVIDED)
    return call.model_copy(update={"extra": {**call.extra, **part.leftover()}})


def _result(part: FieldTracker, name: str) -> ToolMessage:
    inner = _inner(part, name)
    if name in ("functionResponse", "function_response"):
        result = read_function_response(inner)
    elif name in ("toolResponse", "tool_response"):
        text, is_error = _outcome(inner.take("response"))
        tool = inner.text("toolType", "tool_type")
        result = ToolMessage(text, tool_call_id=inner.id("id") or None, name=tool, is_error=is_error)
    else:
        is_error = _FAILED.get(str(inner.peek("outcome")))
        output = checked_text(inner, "output")
        result = ToolMessage(output, tool_call_id=inner.id("id") or None, name=_CODE, is_error=is_error)
    return result.model_copy(update={"extra": {**result.extra, **part.leftover()}})


def _outcome(response: JsonValue) -> tuple[str, bool | None]:
    """Return a result as text, and whether it is an error, if the format can tell."""
    if not isinstance(response, dict):
        return "" if response is None else to_text(response), None
    fields = {name: value for name, value in response.items() if value is not None}
    failed = True if fields.get("error") else None
    if len(fields) == 1 and (failed or not fields.keys().isdisjoint(("output", "result"))):
        return to_text(next(iter(fields.values()))), failed
    return to_text(response), failed


def _inner(part: FieldTracker, name: str) -> FieldTracker:
    inner = part.maybe_object(name)
    if inner is None:
        raise part.type_error(name, "an object")
    return inner


def _last(chunks: Sequence[FieldTracker], *names: str) -> FieldTracker:
    """Return the last chunk that has a field. Equal values are taken from the other chunks."""
    having = [(chunk, name) for chunk in chunks for name in names if name in chunk]
    if not having:
        return FieldTracker({})
    last, name = having[-1]
    for chunk, its_name in having:
        if chunk is not last:
            chunk.take_if(its_name, last.peek(name))
    return last


def _definitions(tool: FieldTracker) -> list[ToolDefinition]:
    tools = list(map(_definition, tool.optional_objects("functionDeclarations", "function_declarations")))
    if "name" in tool:
        tools.append(_definition(tool))
    return [*tools, *(ToolDefinition(name, extra={name: own}) for name, own in tool.leftover().items())]


def _definition(declaration: FieldTracker) -> ToolDefinition:
    return ToolDefinition(
        declaration.text("name") or "function",
        description=declaration.text("description"),
        parameters=declaration.take("parameters", "parametersJsonSchema", "parameters_json_schema"),
        extra=declaration.leftover(),
    )


def _sum(count: int | None, other: int | None) -> int | None:
    return None if count is None and other is None else (count or 0) + (other or 0)

r"""Rows with messages of OpenAI Chat Completions, and the references next to them.

{"id": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}],
 "tools": [...], "reference": "..."}
"""

import json
from collections import Counter
from itertools import count

from pydantic import JsonValue

from judgekit.formats.readers.openai_chat import OpenAIChatReader
from judgekit.formats.writers.writer import WrittenLine, verify_row
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import References, Sample

_KNOWN = set(References.__annotations__) - {"baseline"}


class OpenAIChatWriter:
    """A writer of rows of OpenAI's messages, with videos and audio URLs in the form of vLLM and OpenRouter.

    Only what a trace has fields for is written, and nothing of any ``extra``. Calls and results without an id get one.
    """

    name = "openai-chat"

    def written(self, sample: Sample, index: int) -> WrittenLine:
        """Return the conversation with its tools, usage and references as a line."""
        sample, changes = _identified(sample)
        line, missing = verify_row(sample, index, _row(sample), OpenAIChatReader())
        return WrittenLine(line, missing + changes)


def _identified(sample: Sample) -> tuple[Sample, Counter[str]]:
    """Return the sample with ids for all calls and results, and how many had none. A result gets the id of its call."""
    messages = sample.trace.messages
    callers = pair_results(messages).calls
    used = {call.id for turn in messages if isinstance(turn, AIMessage | HumanMessage) for call in turn.tool_calls}
    used |= {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    fresh = (name for number in count(1) if (name := f"call_{number}") not in used)
    changes = Counter[str]()
    ids: dict[tuple[int, int], str] = {}
    named: list[Message] = []
    for index, message in enumerate(messages):
        update: dict[str, object] = {}
        if isinstance(message, AIMessage | HumanMessage):
            for position, call in enumerate(message.tool_calls):
                ids[index, position] = call.id or next(fresh)
            if lacking := sum(call.id is None for call in message.tool_calls):
                changes["calls without an id"] += lacking
                update["tool_calls"] = tuple(
                    call.model_copy(update={"id": ids[index, position]})
                    for position, call in enumerate(message.tool_calls)
                )
        elif isinstance(message, ToolMessage) and message.tool_call_id is None:
            changes["results without an id"] += 1
            caller = callers.get(index)
            update["tool_call_id"] = next(fresh) if caller is None else ids[caller.message, caller.position]
        named.append(message.model_copy(update=update))
    if not changes:
        return sample, changes
    return sample.model_copy(update={"trace": sample.trace.model_copy(update={"messages": tuple(named)})}), changes


def _row(sample: Sample) -> JsonObject:
    trace = sample.trace
    row: JsonObject = {"id": sample.id, "messages": [_message(turn) for turn in trace.messages]}
    if trace.tools:
        row["tools"] = [{"type": "function", "function": _definition(tool)} for tool in trace.tools]
    if trace.usage is not None:
        row["usage"] = _usage(trace.usage)
    row |= sample.model_dump(mode="json", include=_KNOWN, exclude_defaults=True)
    if sample.baseline is not None:
        row["baseline"] = sample.baseline.model_dump(mode="json")
    return row


def _message(message: Message) -> JsonObject:
    row: JsonObject = {"role": message.role, **_content(message), "id": message.id}
    if isinstance(message, ToolMessage):
        row |= {"tool_call_id": message.tool_call_id, "name": message.name}
    elif isinstance(message, HumanMessage | AIMessage):
        row["name"] = message.name if isinstance(message, HumanMessage) else message.agent
        if message.tool_calls:
            row["tool_calls"] = [_call(call) for call in message.tool_calls]
    return _stated(row)


def _content(message: Message) -> JsonObject:
    """Return the content. Leading reasoning and a final refusal have fields of their own."""
    if isinstance(message.content, str):
        return {"content": message.content}
    parts = list(message.content)
    fields: JsonObject = {}
    if isinstance(message, AIMessage):
        thoughts: list[JsonValue] = []
        for part in parts:
            if not isinstance(part, ReasoningPart):
                break
            thoughts.append(part.text)
        parts = parts[len(thoughts) :]
        if len(thoughts) == 1:
            fields["reasoning_content"] = thoughts[0]
        elif thoughts:
            fields["thinking_blocks"] = [{"thinking": thought} for thought in thoughts]
        # Readers ignore an empty content next to a refusal, and an empty refusal.
        are_read = all(part.text for part in parts if isinstance(part, TextPart | RefusalPart))
        if parts and isinstance(last := parts[-1], RefusalPart) and are_read:
            fields["refusal"], parts = last.text, parts[:-1]
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return {**fields, "content": parts[0].text}
    written: list[JsonValue] = [block for part in parts if (block := _part(part)) is not None]
    return {**fields, "content": written or (None if isinstance(message, AIMessage) else "")}


def _part(part: Part) -> JsonValue:
    """Return a part, or ``None`` if the format has no such part."""
    if isinstance(part, MediaPart):
        return None if part.url is None and part.data is None else _media(part)
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "refusal", "refusal": part.text} if isinstance(part, RefusalPart) else None


def _media(part: MediaPart) -> JsonObject:
    """Return media as a URL or data URL; audio data stays as it is."""
    if part.kind == "audio" and part.data is not None:
        held: JsonObject = {"data": part.data, "format": (part.mime_type or "").partition("/")[2] or None}
        return {"type": "input_audio", "input_audio": _stated(held)}
    address = part.url or f"data:{part.mime_type or ''};base64,{part.data}"
    if part.kind == "file":
        return {"type": "file", "file": _stated({"file_data": address, "filename": part.name})}
    return {"type": f"{part.kind}_url", f"{part.kind}_url": {"url": address}}


def _call(call: ToolCall) -> JsonObject:
    arguments = json.dumps(call.args, ensure_ascii=False) if call.args_raw is None else call.args_raw
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _definition(tool: ToolDefinition) -> JsonObject:
    return _stated({"name": tool.name, "description": tool.description, "parameters": tool.parameters})


def _usage(usage: Usage) -> JsonObject:
    cached, reasoning = usage.cached_tokens, usage.reasoning_tokens
    counts: JsonObject = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
    }
    return _stated(counts)


def _stated(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}

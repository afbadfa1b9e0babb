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
    OtherPart,
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

    The ``extra`` of a message is written as it was. Calls and results without an id get one.
    """

    name = "openai-chat"

    def written(self, sample: Sample, index: int) -> WrittenLine:
        """Return the conversation with its tools, usage and references as a line."""
        reader = OpenAIChatReader()
        sample, changes = _identified(sample)
        written, faithful = verify_row(sample, index, _row(sample, with_extra=True), reader)
        if not faithful:  # fields named like those of this or another format would be mistaken for them
            written, _ = verify_row(sample, index, _row(sample, with_extra=False), reader)
        return WrittenLine(written.line, written.missing + changes)


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


def _row(sample: Sample, *, with_extra: bool) -> JsonObject:
    trace = sample.trace
    row: JsonObject = {"id": sample.id, "messages": [_message(turn, with_extra=with_extra) for turn in trace.messages]}
    if trace.tools:
        row["tools"] = [_definition(tool) for tool in trace.tools]
    if trace.usage is not None:
        row["usage"] = _usage(trace.usage)
    row |= sample.model_dump(mode="json", include=_KNOWN, exclude_defaults=True)
    if sample.baseline is not None:
        row["baseline"] = sample.baseline.model_dump(mode="json")
    return _merged(trace.extra, row) if with_extra else row


def _merged(extra: JsonObject, own: JsonObject) -> JsonObject:
    """Return the fields with the leftover from reading, back in its place."""
    merged = {**extra, **own}
    for name, value in own.items():
        left_over = extra.get(name)
        if isinstance(value, dict) and isinstance(left_over, dict):
            merged[name] = _merged(left_over, value)
    return merged


def _message(message: Message, *, with_extra: bool) -> JsonObject:
    row: JsonObject = {"role": message.role, **_content(message, with_extra=with_extra), "id": message.id}
    if isinstance(message, ToolMessage):
        row |= {"tool_call_id": message.tool_call_id, "name": message.name}
    elif isinstance(message, HumanMessage | AIMessage):
        row["name"] = message.name if isinstance(message, HumanMessage) else message.agent
        if message.tool_calls:
            row["tool_calls"] = [_call(call, with_extra=with_extra) for call in message.tool_calls]
    row = {name: value for name, value in row.items() if value is not None}
    return _merged(message.extra, row) if with_extra else row


def _content(message: Message, *, with_extra: bool) -> JsonObject:
    """Return the content. Leading reasoning and a final refusal have fields of their own."""
    if isinstance(message.content, str):
        return {"content": message.content}
    parts = list(message.content)
    fields: JsonObject = {}
    if isinstance(message, AIMessage):
        first = next((at for at, part in enumerate(parts) if not isinstance(part, ReasoningPart)), len(parts))
        thoughts = [part for part in parts[:first] if isinstance(part, ReasoningPart)]
        parts = parts[len(thoughts) :]
        blocks: list[JsonValue] = [{**(part.extra if with_extra else {}), "thinking": part.text} for part in thoughts]
        if len(thoughts) == 1 and not (with_extra and thoughts[0].extra):
            fields["reasoning_content"] = thoughts[0].text
        elif blocks:
            fields["thinking_blocks"] = blocks
        # Readers ignore an empty content next to a refusal, and an empty refusal.
        are_read = all(part.text for part in parts if isinstance(part, TextPart | RefusalPart))
        if parts and isinstance(last := parts[-1], RefusalPart) and not last.extra and are_read:
            fields["refusal"], parts = last.text, parts[:-1]
    if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
        return {**fields, "content": parts[0].text}
    written: list[JsonValue] = [block for part in parts if (block := _part(part, with_extra=with_extra)) is not None]
    return {**fields, "content": written or (None if isinstance(message, AIMessage) else "")}


def _part(part: Part, *, with_extra: bool) -> JsonValue:
    """Return a part, or ``None`` if the format has no such part."""
    if isinstance(part, OtherPart):
        return part.data if with_extra and isinstance(part.data, dict) and "type" in part.data else None
    if isinstance(part, ReasoningPart):
        return None
    own: JsonObject
    if isinstance(part, MediaPart):
        if part.url is None and part.data is None:
            return None
        own = _media(part)
    elif isinstance(part, TextPart):
        own = {"type": "text", "text": part.text}
    else:
        own = {"type": "refusal", "refusal": part.text}
    return _merged(part.extra, own) if with_extra else own


def _media(part: MediaPart) -> JsonObject:
    """Return media as a URL or data URL; audio data stays as it is."""
    if part.kind == "audio" and part.data is not None:
        held: JsonObject = {"data": part.data, "format": (part.mime_type or "").partition("/")[2] or None}
        return {"type": "input_audio", "input_audio": {name: value for name, value in held.items() if value}}
    address = part.url or f"data:{part.mime_type or ''};base64,{part.data}"
    if part.kind == "file":
        return {"type": "file", "file": {"file_data": address, **({"filename": part.name} if part.name else {})}}
    return {"type": f"{part.kind}_url", f"{part.kind}_url": {"url": address}}


def _call(call: ToolCall, *, with_extra: bool) -> JsonObject:
    arguments = json.dumps(call.args, ensure_ascii=False) if call.args_raw is None else call.args_raw
    own: JsonObject = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    return _merged(call.extra, own) if with_extra else own


def _definition(tool: ToolDefinition) -> JsonObject:
    fields = {"description": tool.description, "parameters": tool.parameters}
    function: JsonObject = {"name": tool.name, **{name: value for name, value in fields.items() if value is not None}}
    return _merged({"type": "function", **tool.extra}, {"function": function})


def _usage(usage: Usage) -> JsonObject:
    counts: JsonObject = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": None if usage.cached_tokens is None else {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": (
            None if usage.reasoning_tokens is None else {"reasoning_tokens": usage.reasoning_tokens}
        ),
    }
    return _merged(usage.extra, {name: count for name, count in counts.items() if count is not None})

"""Comparison of messages by what they say, since a history may split them differently, and repetitions with more to say."""

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

from pydantic import JsonValue

from judgekit.formats.merging.step import SpanStep
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, MediaPart, Message, SystemMessage, ToolCall

Utterance: TypeAlias = tuple[str, ...]
"""A text, call or result."""


def variants_of(messages: Iterable[Message], steps: Iterable[SpanStep]) -> list[JsonValue]:
    """Return the messages, calls and results of steps that hold a value which neither the messages nor others have."""
    values = {leaf for message in messages for leaf in _values(_dumped(message))}
    variants: list[JsonValue] = []
    for step in steps:
        recorded = [_dumped(message) for message in (*step.input_messages, *step.output_messages)]
        of_tool = {"call": step.call, "result": step.result}
        recorded.append({name: _dumped(held) for name, held in of_tool.items() if held is not None})
        for variant in recorded:
            if not (own := _values(variant)) <= values:
                values |= own
                variants.append(variant)
    return variants


def utterances(messages: Iterable[Message]) -> list[Utterance]:
    """Return what messages say, without reasoning (which a history may omit), call ids and whitespace."""
    spoken: list[Utterance] = []
    for message in messages:
        text = " ".join(message.text.split())
        parts = () if isinstance(message.content, str) else message.content
        media = [part.url or part.data or "" for part in parts if isinstance(part, MediaPart)]
        calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
        if text or media or not calls:
            spoken.append((message.role, text, *media))
        spoken += [("call", *name_and_arguments(call)) for call in calls]
    return spoken


def hashes_of(messages: Iterable[Message], end: int = 0) -> list[int]:
    """Return a hash of everything said up to each message."""
    hashes: list[int] = []
    for message in messages:
        for atom in utterances([message]):
            end = hash((end, atom))
        hashes.append(end)
    return hashes


def repeats(messages: Sequence[Utterance], last: Sequence[Utterance]) -> bool:
    """Return whether a message repeats the last one, perhaps with the stop sequence that cut it off."""
    if messages == last or len(messages) != 1 or len(last) != 1:
        return messages == last
    (role, text, *_), (other, cut, *_) = *messages, *last
    return role == other == "assistant" and 0 < len(cut) < len(text) <= len(cut) + 40 and text.startswith(cut)


def name_and_arguments(call: ToolCall) -> tuple[str, str]:
    """Return the name and the arguments of a call."""
    return call.name, call.args_raw if call.args_error and call.args_raw else json.dumps(call.args, sort_keys=True)


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of the calls in messages."""
    calls = (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    return {call.id for call in calls if call.id is not None}


def split_instructions(messages: Sequence[Message]) -> tuple[list[SystemMessage], list[Message]]:
    """Return the instructions at the beginning, and the remaining messages."""
    systems: list[SystemMessage] = []
    for message in messages:
        if not isinstance(message, SystemMessage):
            break
        systems.append(message)
    return systems, list(messages[len(systems) :])


def _dumped(value: Message | ToolCall) -> JsonObject:
    return cast("JsonObject", value.model_dump(mode="json", exclude_defaults=True))


def _values(value: JsonValue) -> set[tuple[str, str]]:
    leaves: set[tuple[str, str]] = set()
    pending = [("", value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name, item) for item in value]
        elif value is not None:
            leaves.add((name, repr(value)))
    return leaves

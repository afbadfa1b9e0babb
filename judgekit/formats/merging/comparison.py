"""Comparison of messages by what they say, since a history may split them differently."""

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, Message, SystemMessage, ToolCall

Utterance: TypeAlias = tuple[str, ...]
"""A text, call or result."""
_STOP = 40
"""The longest stop sequence, in characters."""


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


def prefix_hashes(messages: Iterable[Message], end: int = 0) -> list[int]:
    """Return a hash of everything said up to each message."""
    hashes: list[int] = []
    for message in messages:
        for atom in utterances([message]):
            end = hash((end, atom))
        hashes.append(end)
    return hashes


def repeats_last(messages: Sequence[Utterance], last: Sequence[Utterance]) -> bool:
    """Return whether a message repeats the last one, perhaps with the stop sequence that cut off the answer."""
    if messages == last or len(messages) != 1 or len(last) != 1:
        return messages == last
    (role, text, *_), (other, cut, *_) = *messages, *last
    return role == other == "assistant" and 0 < len(cut) < len(text) <= len(cut) + _STOP and text.startswith(cut)


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

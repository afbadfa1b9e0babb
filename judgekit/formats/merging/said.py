"""What messages say, by which they are compared: a history may divide them in another way."""

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, Message, SystemMessage, ToolCall

Atom: TypeAlias = tuple[str, ...]
"""Something said, called or answered."""
_STOP = 40
"""Characters that a stop sequence may have."""


def atoms(messages: Iterable[Message]) -> list[Atom]:
    """What messages say, but for reasoning, which a history may leave out, ids of calls, and spaces."""
    found: list[Atom] = []
    for message in messages:
        text = " ".join(message.text.split())
        parts = () if isinstance(message.content, str) else message.content
        media = [part.url or part.data or "" for part in parts if isinstance(part, MediaPart)]
        calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
        if text or media or not calls:
            found.append((message.role, text, *media))
        found += [("call", *signature(call)) for call in calls]
    return found


def ends(messages: Iterable[Message], end: int = 0) -> list[int]:
    """A hash of all that was said, after each message."""
    found: list[int] = []
    for message in messages:
        for atom in atoms([message]):
            end = hash((end, atom))
        found.append(end)
    return found


def is_again(said: Sequence[Atom], last: Sequence[Atom]) -> bool:
    """Whether this was said last. A history may put back the stop sequence at which the answer was cut off."""
    if said == last or len(said) != 1 or len(last) != 1:
        return said == last
    (role, text, *_), (other, cut, *_) = *said, *last
    return role == other == "assistant" and 0 < len(cut) < len(text) <= len(cut) + _STOP and text.startswith(cut)


def signature(call: ToolCall) -> tuple[str, str]:
    """The name and the arguments of a call."""
    return call.name, call.args_raw if call.args_error and call.args_raw else json.dumps(call.args, sort_keys=True)


def call_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of the calls that are made."""
    calls = (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    return {call.id for call in calls if call.id is not None}


def parted(messages: Sequence[Message]) -> tuple[list[SystemMessage], list[Message]]:
    """The instructions at the beginning, and the rest."""
    systems: list[SystemMessage] = []
    for message in messages:
        if not isinstance(message, SystemMessage):
            break
        systems.append(message)
    return systems, list(messages[len(systems) :])

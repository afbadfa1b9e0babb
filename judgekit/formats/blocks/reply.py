"""An assistant's reply as messages, where the provider ran tools while it was given."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.errors import TraceError, shortened
from judgekit.formats.found import Found
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    Message,
    OtherPart,
    Part,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
)

OTHER_CHOICES = "choices"
"""The field of a message's ``extra`` with the other answers to one request, of which a conversation has only one."""
Item: TypeAlias = Part | ToolCall | ToolMessage
"""What a reply is made of, in order."""
_KINDS = ("type", "index")
"""Fields that are filled even in an empty placeholder."""


def is_blank(value: Found | JsonValue) -> bool:
    """Whether a value is the empty placeholder that some servers write in place of a call: no name, id or arguments."""
    if isinstance(value, Found):
        return all(name in _KINDS or is_blank(value.peek(name)) for name in value)
    if isinstance(value, dict):
        return all(name in _KINDS or is_blank(inner) for name, inner in value.items())
    return all(map(is_blank, value)) if isinstance(value, list) else value in (None, "")


def listed_calls(found: Found, name: str) -> list[Found]:
    """Return the calls in a list, without empty placeholders, which stay in the object.

    Raises:
        TraceError: It is no list, or something in it is no object.
    """
    calls: list[Found] = []
    for index, item in enumerate(found.items(name)):
        if isinstance(item, Found):
            calls += [] if is_blank(item) else [item]
        elif item is not None:
            where = f"{found.where}.{name}[{index}]".lstrip(".")
            raise TraceError(f"{where}: expected an object, found {shortened(item)}")
    return calls


def unread_part(found: Found) -> OtherPart:
    """A part of a kind that the format does not have, or that is broken: it is kept as it stands, with a warning."""
    if not is_blank(found):
        kind = found.peek("type")
        named = "without a type" if kind is None else f"of the kind {kind!r:.80}"
        found.warn(f"a part {named} that cannot be read, kept as it stands")
    return OtherPart(found.leftover())


def content_of(parts: Sequence[Part]) -> str | Sequence[Part]:
    """The content of a message: a plain text if it is nothing else."""
    if not parts:
        return ""
    first = parts[0]
    return first.text if len(parts) == 1 and isinstance(first, TextPart) and not first.extra else parts


def reply(items: Iterable[Item], each: Mapping[str, object], whole: Mapping[str, object]) -> list[Message]:
    """The messages of one reply: a tool's result ends a message, and what follows is the next.

    Args:
        items: What the reply is made of.
        each: Fields of each `AIMessage`: the agent, the model.
        whole: What is known of the reply as a whole, as fields of its last `AIMessage`.
    """
    groups: list[tuple[list[Part], list[ToolCall], list[ToolMessage]]] = [([], [], [])]
    for item in items:
        if isinstance(item, ToolMessage):
            groups[-1][2].append(item)
            continue
        if groups[-1][2]:
            groups.append(([], [], []))
        if isinstance(item, ToolCall):
            groups[-1][1].append(item)
        else:
            groups[-1][0].append(item)
    messages: list[Message] = []
    for number, (parts, calls, results) in enumerate(groups, 1):
        said = {**each, "content": content_of(parts), "tool_calls": calls}
        messages += [AIMessage.model_validate({**said, **(whole if number == len(groups) else {})}), *results]
    return messages


def first_choice(answers: Sequence[Message], found: Found, name: str, *, several: bool) -> list[Message]:
    """The first of several choices; the others stand in its ``extra``, and a warning says so.

    Args:
        answers: All messages that came back; mostly one.
        found: The object that holds them, for the warning.
        name: The field that holds them.
        several: Whether it is known that these are choices; else texts alone are, since one answer has one.
    """
    replies = [one for one in answers if isinstance(one, AIMessage)]
    several = several or all(one.text and not one.tool_calls for one in replies)
    if len(answers) < 2 or len(replies) < len(answers) or not several:
        return list(answers)
    found.warn(f"{len(answers)} choices; the first is read, the others are in the extra of its message", name)
    first, *others = replies
    rest = [one.model_dump(mode="json", exclude_defaults=True) for one in others]
    return [first.model_copy(update={"extra": {**first.extra, OTHER_CHOICES: rest}})]


def asked(items: Iterable[Item | SystemMessage], extra: JsonObject) -> list[Message]:
    """The messages of one turn of the user, where results of tools stand among what the user says.

    Args:
        items: What the turn is made of.
        extra: What is known of the turn as a whole; it goes to its last message.
    """
    made: list[Message] = []
    for is_apart, group in groupby(items, key=lambda item: isinstance(item, ToolMessage | SystemMessage)):
        said: list[Part] = []
        calls: list[ToolCall] = []
        for item in group:
            if isinstance(item, ToolMessage | SystemMessage):
                made.append(item)
            elif isinstance(item, ToolCall):
                calls.append(item)
            else:
                said.append(item)
        if not is_apart:
            made.append(HumanMessage(content_of(said), tool_calls=calls))
    [*others, last] = made or [HumanMessage("")]
    whole: JsonObject = {**last.extra, "message": extra} if last.extra and extra else last.extra or extra
    return [*others, last.model_copy(update={"extra": whole})]

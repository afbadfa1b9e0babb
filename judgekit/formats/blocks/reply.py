"""Assistant replies and user turns as messages, including tool results within them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.field_tracker import FieldTracker
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
"""The field of a message's ``extra`` with all but the first of several answers to the same request."""
ReplyItem: TypeAlias = Part | ToolCall | ToolMessage
"""An element of a reply."""
_KINDS = ("type", "index")
"""Fields that are set even in an empty placeholder."""


def is_blank(value: FieldTracker | JsonValue) -> bool:
    """Return whether a value is an empty placeholder that some servers write for a call: no name, id or arguments."""
    if isinstance(value, FieldTracker):
        return all(name in _KINDS or is_blank(value.peek(name)) for name in value)
    if isinstance(value, dict):
        return all(name in _KINDS or is_blank(inner) for name, inner in value.items())
    return all(map(is_blank, value)) if isinstance(value, list) else value in (None, "")


def nonblank_calls(message: FieldTracker, name: str) -> list[FieldTracker]:
    """Return the calls in a list. Empty placeholders stay in the object."""
    calls: list[FieldTracker] = []
    for index, item in enumerate(message.items(name)):
        if isinstance(item, FieldTracker):
            calls += [] if is_blank(item) else [item]
        elif item is not None:
            where = f"{message.path}.{name}[{index}]".lstrip(".")
            raise TraceError(f"{where}: expected an object, found {short_repr(item)}")
    return calls


def unknown_part(part: FieldTracker) -> OtherPart:
    """Keep a part of an unknown kind, or a malformed one, as it is, with a warning."""
    if not is_blank(part):
        kind = part.peek("type")
        named = "without a type" if kind is None else f"of type {kind!r:.80}"
        part.warn(f"unreadable part {named}, kept as is")
    return OtherPart(part.leftover())


def to_content(parts: Sequence[Part]) -> str | Sequence[Part]:
    """Return the content of a message: plain text if that is all there is."""
    if len(parts) == 1 and isinstance(first := parts[0], TextPart) and not first.extra:
        return first.text
    return parts or ""


def split_reply(items: Iterable[ReplyItem], each: Mapping[str, object], whole: Mapping[str, object]) -> list[Message]:
    """Return the messages of one reply. A tool result ends a message, and what follows starts the next.

    Each `AIMessage` has the fields in ``each``, such as agent and model, and the last one those of the ``whole`` reply.
    """
    groups: list[list[ReplyItem]] = [[]]
    for item in items:
        if groups[-1] and isinstance(groups[-1][-1], ToolMessage) and not isinstance(item, ToolMessage):
            groups.append([])
        groups[-1].append(item)
    messages: list[Message] = []
    for number, group in enumerate(groups, 1):
        parts, calls = _parts_and_calls(group)
        fields = {**each, "content": to_content(parts), "tool_calls": calls, **(whole if number == len(groups) else {})}
        messages += [AIMessage.model_validate(fields), *(item for item in group if isinstance(item, ToolMessage))]
    return messages


def _parts_and_calls(items: Sequence[ReplyItem | SystemMessage]) -> tuple[list[Part], list[ToolCall]]:
    parts = [item for item in items if not isinstance(item, ToolCall | ToolMessage | SystemMessage)]
    return parts, [item for item in items if isinstance(item, ToolCall)]


def choices_warning(count: int) -> str:
    """Return the warning for a response of several choices."""
    return f"{count} choices; the first is read, the others are kept in the extra of its message"


def first_choice(answers: Sequence[Message], holder: FieldTracker, name: str, *, several: bool) -> list[Message]:
    """Return the first of several choices. The others go into its ``extra``, with a warning.

    If they are not known to be ``several`` choices, only messages of plain text count as choices.
    """
    replies = [answer for answer in answers if isinstance(answer, AIMessage)]
    several = several or all(reply.text and not reply.tool_calls for reply in replies)
    if len(answers) < 2 or len(replies) < len(answers) or not several:
        return list(answers)
    holder.warn(choices_warning(len(answers)), name)
    first, *others = replies
    rest = [choice.model_dump(mode="json", exclude_defaults=True) for choice in others]
    return [first.model_copy(update={"extra": {**first.extra, OTHER_CHOICES: rest}})]


def read_user_turn(items: Iterable[ReplyItem | SystemMessage], extra: JsonObject) -> list[Message]:
    """Return the messages of one user turn, which may hold tool results; the last one gets the turn's ``extra``."""
    messages: list[Message] = []
    for is_apart, group in groupby(items, key=lambda item: isinstance(item, ToolMessage | SystemMessage)):
        members = list(group)
        parts, calls = _parts_and_calls(members)
        apart = [item for item in members if isinstance(item, ToolMessage | SystemMessage)]
        messages += apart if is_apart else [HumanMessage(to_content(parts), tool_calls=calls)]
    [*others, last] = messages or [HumanMessage("")]
    if not extra:
        return [*others, last]
    whole: JsonObject = {**last.extra, "message": extra} if last.extra else extra
    return [*others, last.model_copy(update={"extra": whole})]


def with_fields(
    messages: Sequence[Message],
    *,
    every: Mapping[str, object] | None = None,
    once: Mapping[str, object] | None = None,
    extra: JsonObject | None = None,
) -> list[Message]:
    """Return the messages of one content: all with ``every`` field that they can have, and one also with the others.

    Fields in ``once`` and ``extra`` are for the agent's last message, or for the last message if none is the agent's.
    """
    agents = [number for number, message in enumerate(messages) if isinstance(message, AIMessage)]
    last = agents[-1] if agents else len(messages) - 1
    done: list[Message] = []
    for number, message in enumerate(messages):
        fields: dict[str, object] = {**(every or {}), **((once or {}) if number == last else {})}
        fields = {name: value for name, value in fields.items() if name in type(message).model_fields}
        if extra and number == last:
            fields["extra"] = {**message.extra, **extra}
        done.append(message.model_copy(update=fields) if fields else message)
    return done

"""Several answers to one request, of which a conversation has only one."""

from collections.abc import Sequence

from judgekit.formats.found import Found
from judgekit.traces.message import AIMessage, Message

OTHER_CHOICES = "choices"
"""The field of a message's ``extra`` with the other answers."""


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

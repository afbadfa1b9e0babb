"""How a conversation is made to fit a budget."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from judgekit.traces.message import HumanMessage, Message, ToolMessage
from judgekit.traces.rendering import Passage, conversation, omission

BYTES_A_TOKEN = 4
_LEAST = 200
"""Bytes that are left of a text in the middle, before its whole message goes."""
_MARK = 50
"""Bytes that say what is missing from a text, its bars included; no text of fewer is cut."""


def shortened(passages: Sequence[Passage], messages: Sequence[Message], budget_tokens: int) -> Sequence[Passage]:
    """The passages, as far as a rendering of so many tokens has room for them.

    Between the first and the last message, tool results give way first, then what else was said and called, the longest
    first, then whole messages from the middle on. Messages of the user, the first and the last are cut only where there
    is no room even for them alone.

    Raises:
        ValueError: There is no room even for the headers.
    """
    room = BYTES_A_TOKEN * budget_tokens - len(conversation(()))
    numbered = [*enumerate(messages, 1)]
    kept = {number for number, message in numbered if isinstance(message, HumanMessage)} | {1, len(messages)}
    results = {number for number, message in numbered if isinstance(message, ToolMessage)} - kept
    others = {number for number, _ in numbered} - kept - results
    passages = _levelled(passages, room, results, _LEAST)
    passages = _levelled(passages, room, others, _LEAST)
    passages = _without_middle(passages, room, kept)
    passages = _levelled(passages, room, kept, _MARK)
    if (short := _size(passages) - room) > 0:
        needed = budget_tokens - (-short // BYTES_A_TOKEN)
        raise ValueError(
            f"a budget of {budget_tokens:,} tokens is too small for this conversation of {len(messages):,} messages: "
            f"what can never be left out takes {needed:,}"
        )
    return passages


def _levelled(passages: Sequence[Passage], room: int, numbers: Collection[int], least: int) -> Sequence[Passage]:
    """The texts of some messages cut to one size, such that all passages fit, but to no less than the least size."""
    excess = _size(passages) - room
    if excess <= 0:
        return passages
    sizes = [passage.text_size for passage in passages if passage.number in numbers]
    level = max(least, _level(sizes, sum(sizes) - excess))
    return [
        _cut(passage, level) if passage.number in numbers and passage.text_size > level else passage
        for passage in passages
    ]


def _level(sizes: Sequence[int], room: int) -> int:
    """The size such that all fit, if what is larger is cut to it."""
    level = 0
    for above, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        level = room // above
        if size > level:
            break
        room -= size
    return level


def _cut(passage: Passage, size: int) -> Passage:
    """The passage with a text of at most so many bytes; where it has many line breaks or long characters, of fewer."""
    limit = min(passage.limit, size - _MARK)
    while (cut := replace(passage, limit=limit)).text_size > size:
        limit = limit * size // cut.text_size
    return cut


def _without_middle(passages: Sequence[Passage], room: int, kept: Collection[int]) -> Sequence[Passage]:
    """The passages without as many messages around the middle as needed, but for those that are kept."""
    if _size(passages) <= room:
        return passages
    twice_middle = 1 + max(kept)

    def without(reach: int) -> list[Passage]:
        found: list[Passage] = []
        for goes, group in groupby(
            passages, lambda one: one.number not in kept and abs(2 * one.number - twice_middle) <= reach
        ):
            run = [*group]
            gap = _gap(run)
            found.extend([gap] if goes and gap.size < _size(run) + 1 else run)
        return found

    return without(bisect_left(range(twice_middle), True, key=lambda reach: _size(without(reach)) <= room))  # noqa: FBT003


def _gap(run: Sequence[Passage]) -> Passage:
    """A line in the place of all that."""
    characters = sum(len(passage.text) + passage.left_out for passage in run)
    first, last = run[0].number, run[-1].number
    return Passage(first, omission(characters), "", 0, left_out=characters, until=last if last > first else None)


def _size(passages: Sequence[Passage]) -> int:
    """Bytes of the passages, with line breaks between them."""
    return sum(passage.size for passage in passages) - 1

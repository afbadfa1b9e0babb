"""Shortening of conversations to fit a budget."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from judgekit.traces.message import HumanMessage, Message, ToolMessage
from judgekit.traces.rendering import Passage, omission_note, render_passages

BYTES_A_TOKEN = 4
_LEAST = 200
"""The least size in bytes of a shortened text in the middle, before its whole message is dropped."""
_MARK = 50
"""The size in bytes of the note that says what is missing, with its bars; shorter texts are not cut."""


def shorten_passages(passages: Sequence[Passage], messages: Sequence[Message], budget_tokens: int) -> Sequence[Passage]:
    """Return the passages, shortened to fit a rendering of ``budget_tokens`` tokens.

    Between the first and the last message, tool results are shortened first, then other text and calls, longest first;
    then whole messages are dropped, starting in the middle. The first and last message and those of the user are
    shortened only if they alone exceed the budget.

    Raises:
        ValueError: The budget is too small even for the headers.
    """
    room = BYTES_A_TOKEN * budget_tokens - len(render_passages(()))
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
            f"the parts that are never dropped take {needed:,}"
        )
    return passages


def _levelled(passages: Sequence[Passage], room: int, numbers: Collection[int], least: int) -> Sequence[Passage]:
    """Return the passages with some messages' texts cut to a common size of at least ``least``, so that all fit."""
    excess = _size(passages) - room
    if excess <= 0:
        return passages
    sizes = [passage.text_size for passage in passages if passage.message_number in numbers]
    level = max(least, _level(sizes, sum(sizes) - excess))
    return [
        _cut(passage, level) if passage.message_number in numbers and passage.text_size > level else passage
        for passage in passages
    ]


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the size to which larger texts must be cut so that all fit."""
    level = 0
    for above, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        level = room // above
        if size > level:
            break
        room -= size
    return level


def _cut(passage: Passage, size: int) -> Passage:
    """Return the passage with a text of at most ``size`` bytes; it may become shorter than necessary."""
    limit = min(passage.limit, size - _MARK)
    while (cut := replace(passage, limit=limit)).text_size > size:
        limit = limit * size // cut.text_size
    return cut


def _without_middle(passages: Sequence[Passage], room: int, kept: Collection[int]) -> Sequence[Passage]:
    """Return the passages without as many messages around the middle as necessary, except those in ``kept``."""
    if _size(passages) <= room:
        return passages
    twice_middle = 1 + max(kept)

    def without(reach: int) -> list[Passage]:
        found: list[Passage] = []
        for goes, group in groupby(
            passages, lambda one: one.message_number not in kept and abs(2 * one.message_number - twice_middle) <= reach
        ):
            run = [*group]
            gap = _gap(run)
            found.extend([gap] if goes and gap.size < _size(run) + 1 else run)
        return found

    return without(bisect_left(range(twice_middle), True, key=lambda reach: _size(without(reach)) <= room))  # noqa: FBT003


def _gap(run: Sequence[Passage]) -> Passage:
    """Return a one-line passage that replaces the given ones."""
    characters = sum(len(passage.text) + passage.omitted_characters for passage in run)
    first, last = run[0].message_number, run[-1].message_number
    return Passage(
        first,
        omission_note(characters),
        "",
        0,
        omitted_characters=characters,
        last_message_number=last if last > first else None,
    )


def _size(passages: Sequence[Passage]) -> int:
    """Return the size of the passages in bytes, with line breaks between them."""
    return sum(passage.size for passage in passages) - 1

"""Long recordings in parts, each of which shows some of the messages whole."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from judgekit.traces.images import ImageSettings, hidden_image
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import Recording
from judgekit.traces.rendering import (
    Passage,
    Rendering,
    count_hidden_media,
    limit_images,
    message_passages,
    render_passages,
)
from judgekit.traces.shortening import (
    BYTES_A_TOKEN,
    NOTE_SIZE,
    gap_passage,
    level_passages,
    passages_size,
    shorten_passages,
)
from judgekit.traces.tree import Branch, MessageNumber, branches, conversation_path, walk_messages

_CONTEXT_SHARE = 4
"""The largest fraction of a part that the repeated head may take up."""
_GAP_SIZE = 80
"""The most bytes of a line that stands for messages that are not shown."""
_OUTLINED = 80


class Part(NamedTuple):
    """A part of a recording: its messages, which no other part has, their passages, and what a judge is shown."""

    numbers: Sequence[MessageNumber]
    passages: Sequence[Passage]
    rendering: Rendering


class LongRecording:
    """A recording that is longer than a judge may be shown at once.

    All parts repeat its head, shortened: system messages, those of the user and the last one. No part ends between a
    call and its result or the end of its sub-agent, unless both do not fit into one; then the next repeats the call too.

    Args:
        trace: The recording.
        budget_tokens: The most tokens of a part, at four bytes each.
        images: The images to show; none if not given.

    Raises:
        ValueError: The budget is too small even for the headers of a message.
    """

    def __init__(self, trace: Recording, budget_tokens: int, images: ImageSettings | None) -> None:
        self._trace, self._images, self._budget = trace, images, budget_tokens
        self._most_images = 0 if images is None else images.max_images
        self._room = BYTES_A_TOKEN * budget_tokens - len(render_passages((), {}))
        whole = message_passages(Branch(trace), sys.maxsize, images)
        self._passages = [replace(passage, same_as=None) if passage.same_as else passage for passage in whole]
        self._numbers = [branch.number(index) for branch, index in walk_messages(Branch(trace))]
        self._positions: dict[MessageNumber, list[int]] = {number: [] for number in self._numbers}
        number = self._numbers[0]
        for at, passage in enumerate(self._passages):  # lines around a sub-agent go with the message before
            number = passage.message_number if passage.message_number in self._positions else number
            self._positions[number].append(at)
        roles = {number: message.role for number, message in enumerate(trace.messages, 1)}
        self._head = {number for number in roles if roles[number] in ("system", "user") or number == len(roles)}
        self._callers = self._open_calls()
        self.parts = self._split()

    def _open_calls(self) -> Sequence[Sequence[MessageNumber]]:
        """Return for each message those before it with a call whose result, or sub-agent, has not ended before it."""
        order = {number: at for at, number in enumerate(self._numbers)}
        callers: list[list[MessageNumber]] = [[] for _ in self._numbers]
        for message, at in order.items():
            number = message
            while path := conversation_path(number):
                number = path.rpartition(".")[0]
                callers[at].append(number if "." in number else int(number))
        for branch in branches(self._trace):
            for index, call in pair_results(branch.trace.messages).calls.items():
                caller = branch.number(call.message)
                for at in range(order[caller] + 1, order[branch.number(index)] + 1):
                    callers[at].append(caller)
        return callers

    def _context(self, numbers: Sequence[MessageNumber]) -> Mapping[int, Passage]:
        """Return the passages of messages, shortened, by position; if there are too many, without those in the middle."""
        while numbers:
            room = self._room // _CONTEXT_SHARE - _GAP_SIZE * (len(numbers) + 1)
            whole = {at: self._passages[at] for number in numbers for at in self._positions[number]}
            texts = [replace(each, image=hidden_image("in a part")) if each.image else each for each in whole.values()]
            shown = level_passages(texts, room, {*numbers}, NOTE_SIZE)
            if passages_size(shown) <= room:
                return dict(zip(whole, shown, strict=True))
            half = len(numbers) // 2
            numbers = [*numbers[: (half + 1) // 2], *numbers[len(numbers) - half // 2 :]]
        return {}

    def _split(self) -> Sequence[Part]:
        parts: list[Part] = []
        messages = [[self._passages[at] for at in self._positions[number]] for number in self._numbers]
        sizes = [sum(passage.size for passage in passages) + _images_size(passages) for passages in messages]
        head, start = self._context(sorted(self._head)), 0
        while start < len(messages):
            repeated = {*self._head, *self._callers[start]} if self._callers[start] else ()
            context = self._context([number for number in self._numbers if number in repeated]) if repeated else head
            room = self._room - passages_size([*context.values()]) - _GAP_SIZE * (len(context) + 2)
            end, size = start + 1, sizes[start]
            while end < len(messages) and (size := size + sizes[end]) <= room:
                end += 1
            if end < len(messages):  # as late as possible where the fewest calls are open
                end = max(range(start + 1, end + 1), key=lambda border: (-len(self._callers[border]), border))
            parts.append(self._part(self._numbers[start:end], context))
            start = end
        return parts

    def _part(self, numbers: Sequence[MessageNumber], context: Mapping[int, Passage]) -> Part:
        own = sorted(at for number in numbers for at in self._positions[number])
        whole: Sequence[Passage] = [self._passages[at] for at in own]
        room = self._room - passages_size([*context.values()])
        tokens = max(room // 2, room - passages_size(whole)) // BYTES_A_TOKEN
        whole = limit_images(whole, self._most_images, tokens, "no room for it within conversation_tokens")
        shown = {**context, **dict(zip(own, whole, strict=True))}
        lines: dict[int, Passage] = {}
        for is_shown, group in groupby(range(len(self._passages)), shown.__contains__):
            run = [*group]
            gap = self._passages[run[0] : run[-1] + 1]
            lines |= {at: shown[at] for at in run} if is_shown else {run[0]: gap_passage(gap)}
        room = self._room - _images_size(whole)
        cut = dict(zip(lines, level_passages([*lines.values()], room, {*numbers}, NOTE_SIZE), strict=True))
        if passages_size([*cut.values()]) > room:
            raise ValueError(f"{self._budget:,} tokens are too few even for the headers of message {numbers[0]}")
        return Part(numbers, [cut[at] for at in own], render_passages([*cut.values()], {}))

    def digest(self, ending: str) -> Rendering:
        """Return the recording in outline, with the head as whole as possible, and a text behind it.

        Raises:
            ValueError: They do not fit into the budget.
        """
        outline = [
            passage if passage.message_number in self._head else replace(passage, limit=min(passage.limit, _OUTLINED))
            for passage in limit_images(self._passages, self._most_images, sys.maxsize, "")
        ]
        tokens = self._budget - -(-len(ending.encode()) // BYTES_A_TOKEN)
        shown = render_passages(shorten_passages(outline, self._trace, tokens), {})
        in_parts = [passage for part in self.parts for passage in part.passages]
        return Rendering(
            f"{shown}{ending}",
            sum(passage.omitted for passage in in_parts),
            characters=sum(len(passage.text) + passage.omitted_characters for passage in self._passages),
            has_sub_agents=bool(self._trace.children),
            images=shown.images,
            hidden_media=count_hidden_media(self._trace, in_parts, self._images),
        )


def _images_size(passages: Sequence[Passage]) -> int:
    return BYTES_A_TOKEN * sum(passage.image.tokens for passage in passages if passage.image is not None)

"""Shortening of conversations to fit a budget."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from judgekit.errors import count_text
from judgekit.traces.message import HumanMessage, ToolMessage
from judgekit.traces.recording import Recording
from judgekit.traces.rendering import Passage, limit_images, omission_note, render_passages, sub_agent_name
from judgekit.traces.tree import Branch, MessageNumber, branches

BYTES_A_TOKEN = 4
_LEAST = 200
"""The least size in bytes of a shortened text in the middle, before its whole message is dropped."""
NOTE_SIZE = 50
"""The size in bytes of the note that says what is missing, with its bars; shorter texts are not cut."""


def shorten_passages(passages: Sequence[Passage], trace: Recording, budget_tokens: int) -> Sequence[Passage]:
    """Return the passages of a trace, shortened to fit a rendering of ``budget_tokens`` tokens.

    Images take up at most half of the budget, or what the text leaves; see `limit_images`.

    Sub-agents give way before the agents that started them, the deepest first: their tool results are shortened, then
    their other text and calls, longest first; then a whole sub-agent is replaced by one line, the longest first.

    In the conversation itself, between the first and the last message, tool results are shortened first, then other
    text and calls, longest first; then whole messages are dropped, starting in the middle. The first and last message
    and those of the user are shortened only if they alone exceed the budget.

    Raises:
        ValueError: The budget is too small even for the headers.
    """
    room = BYTES_A_TOKEN * budget_tokens - len(render_passages((), {}))
    for_images = max(room // 2, room - passages_size(passages)) // BYTES_A_TOKEN
    passages = limit_images(passages, len(passages), for_images, "no room for it within conversation_tokens")
    room -= BYTES_A_TOKEN * sum(passage.image.tokens for passage in passages if passage.image is not None)
    if trace.children and passages_size(passages) > room:
        passages = _with_shorter_sub_agents(passages, trace, room)
    messages = trace.messages
    numbered = [*enumerate(messages, 1)]
    kept = {number for number, message in numbered if isinstance(message, HumanMessage)} | {1, len(messages)}
    results = {number for number, message in numbered if isinstance(message, ToolMessage)} - kept
    others = {number for number, _ in numbered} - kept - results
    passages = level_passages(passages, room, results, _LEAST)
    passages = level_passages(passages, room, others, _LEAST)
    passages = _without_middle(passages, room, kept)
    passages = level_passages(passages, room, kept, NOTE_SIZE)
    if (short := passages_size(passages) - room) > 0:
        needed = budget_tokens - (-short // BYTES_A_TOKEN)
        raise ValueError(
            f"a budget of {budget_tokens:,} tokens is too small for this conversation of {len(messages):,} messages: "
            f"the parts that are never dropped take {needed:,}"
        )
    return passages


def _with_shorter_sub_agents(passages: Sequence[Passage], trace: Recording, room: int) -> Sequence[Passage]:
    by_depth: dict[int, list[Branch]] = {}
    for branch in branches(trace):
        by_depth.setdefault(branch.depth, []).append(branch)
    for depth in range(max(by_depth), 0, -1):
        each = [
            (branch.number(index), isinstance(message, ToolMessage))
            for branch in by_depth[depth]
            for index, message in enumerate(branch.trace.messages)
        ]
        passages = level_passages(passages, room, {number for number, is_result in each if is_result}, _LEAST)
        passages = level_passages(passages, room, {number for number, is_result in each if not is_result}, _LEAST)
        excess = passages_size(passages) - room
        if excess <= 0:
            break
        runs = _runs(passages, {branch.path for branch in by_depth[depth]})
        sizes = {branch.path: passages_size(runs[branch.path]) for branch in by_depth[depth]}
        gone: dict[MessageNumber, Passage] = {}
        for branch in sorted(by_depth[depth], key=lambda sub_agent: -sizes[sub_agent.path]):
            if excess <= 0:
                break
            line = _collapsed(branch, runs[branch.path])
            if line.size < sizes[branch.path] + 1:
                gone[branch.path] = line
                excess -= sizes[branch.path] + 1 - line.size
        passages = _without_sub_agents(passages, gone)
    return passages


def _runs(passages: Sequence[Passage], paths: Collection[str]) -> dict[str, Sequence[Passage]]:
    """Return the passages of each sub-agent, from where it begins to where it ends."""
    began: dict[str, int] = {}
    runs: dict[str, Sequence[Passage]] = {}
    for at, passage in enumerate(passages):
        path = passage.message_number
        if isinstance(path, str) and path in paths and (first := began.setdefault(path, at)) < at:
            runs[path] = passages[first : at + 1]
    return runs


def _collapsed(branch: Branch, run: Sequence[Passage]) -> Passage:
    """Return a one-line passage that replaces those of a sub-agent."""
    characters = sum(len(passage.text) + passage.omitted_characters for passage in run)
    messages = count_text(len(branch.trace.messages), "message")
    calls = count_text(len(branch.trace.own_calls()), "tool call")
    words = f"{sub_agent_name(branch)}: {messages}, {calls}, {omission_note(characters)}"
    return Passage(branch.path, words, "", 0, omitted_characters=characters, depth=branch.depth)


def _without_sub_agents(passages: Sequence[Passage], gone: Mapping[MessageNumber, Passage]) -> Sequence[Passage]:
    """Return the passages with those of some sub-agents replaced, and the results that repeat their text with it."""
    kept: list[Passage] = []
    within: MessageNumber | None = None
    for passage in passages:
        if within is not None:
            within = None if passage.message_number == within else within
        elif passage.message_number in gone:
            within = passage.message_number
            kept.append(gone[within])
        elif isinstance(passage.same_as, str) and passage.same_as.rpartition(".")[0] in gone:
            kept.append(replace(passage, same_as=None))
        else:
            kept.append(passage)
    return kept


def level_passages(
    passages: Sequence[Passage], room: int, numbers: Collection[MessageNumber], least: int
) -> Sequence[Passage]:
    """Return the passages with some messages' texts cut to a common size of at least ``least``, so that all fit."""
    excess = passages_size(passages) - room
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
    limit = min(passage.limit, size - NOTE_SIZE)
    while (cut := replace(passage, limit=limit)).text_size > size:
        limit = limit * size // cut.text_size
    return cut


def _without_middle(passages: Sequence[Passage], room: int, kept: Collection[int]) -> Sequence[Passage]:
    """Return the passages without as many messages around the middle as necessary, except those in ``kept``."""
    if passages_size(passages) <= room:
        return passages
    twice_middle = 1 + max(kept)
    stay = {0, *kept}  # 0: sub-agents of unknown messages

    def without(reach: int) -> list[Passage]:
        shorter: list[Passage] = []
        for goes, group in groupby(
            passages,
            lambda passage: (number := _own_number(passage)) not in stay and abs(2 * number - twice_middle) <= reach,
        ):
            run = [*group]
            gap = gap_passage(run)
            shorter.extend([gap] if goes and gap.size < passages_size(run) + 1 else run)
        return shorter

    return without(bisect_left(range(twice_middle), True, key=lambda reach: passages_size(without(reach)) <= room))  # noqa: FBT003


def _own_number(passage: Passage) -> int:
    """Return the number of the message, for a sub-agent that of the message of the agent itself that led to it."""
    number = passage.message_number
    return number if isinstance(number, int) else int(number.partition(".")[0])


def gap_passage(run: Sequence[Passage]) -> Passage:
    """Return a one-line passage that replaces the given ones."""
    characters = sum(len(passage.text) + passage.omitted_characters for passage in run)
    first, last = _own_number(run[0]), _own_number(run[-1])
    end = last if last > first else None
    return Passage(first, omission_note(characters), "", 0, omitted_characters=characters, last_message_number=end)


def passages_size(passages: Sequence[Passage]) -> int:
    """Return the size of the passages in bytes, with line breaks between them."""
    return sum(passage.size for passage in passages) - 1

"""The sentences of what agents say, each with its place in the text of its message."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from judgekit.traces.recording import Recording
from judgekit.traces.tree import Branch, MessageNumber, walk_messages

_LINE_BREAKS = {ord("\r"): " ", **dict.fromkeys(map(ord, "\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")}
_BLOCK = re.compile(  # of code, or a table: several lines with bars
    r"(?ms)^[ \t]*(`{3,}|~{3,})[^`\n]*$.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|(?:^[^\n|]*\|[^\n]*(?:\n|\Z)){2,}"
)
_STOP = re.compile(
    r"""(?imx)(?:^(?P<marker>  # in front of an item of a list, a heading or a quotation
        (?:[ \t]*(?:[-*+>\u2022\u2023\u25aa\u25cf\u25e6\u2013\u2014]|\#{1,6}|\(?(?:\d{1,3}|[a-z])[.)])(?:[ \t]+|(?=\n|\Z)))*)
    |(?P<short>(?<!\w)(?:(?:[a-z]\.)*[a-z]|mrs?|ms|dr|prof|sr|jr|st|mt|vs|approx|inc|ltd|dept|est|fig|nr|bzw|nos?(?=\.\ \d))\.)
    |(?:[.!?\u2026]+(?=(?:[^\w\s]|_)*(?:\s|\Z))|[\u3002\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u104b\u17d4]+)
        ["'\u201d\u2019\u00bb\u203a)\]}*_\u300d\u300f\uff09\u3011\u300b]*
    )(?=[ \t]*(?P<following>\S?))"""
)
_TRIMMED, _LETTER = re.compile(r"(?s)\S(?:.*\S)?"), re.compile(r"[^\W_]")


class Sentence(NamedTuple):
    """A sentence of an agent: the number of its message, its start and end in the text of that, and its own text."""

    message: MessageNumber
    start: int
    end: int
    text: str


def agent_sentences(trace: Recording) -> list[Sentence]:
    """Return the sentences of an agent and its sub-agents, in the order of `Trace.render`."""
    return [
        Sentence(branch.number(index), start, end, message.text[start:end])
        for branch, index in walk_messages(Branch(trace))
        if (message := branch.trace.messages[index]).role == "assistant"
        for start, end in sentence_spans(message.text)
    ]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence; every character but white space is in exactly one.

    Each line begins a sentence, an item of a list with its marker, unless the line before goes on in small letters. A table
    and a block of code are one each. What has neither letter nor digit, such as a rule, belongs to the sentence before.
    """
    text = text.translate(_LINE_BREAKS)
    cuts = [0]
    for block in _BLOCK.finditer(text):
        cuts += [*_ends(text, cuts[-1], block.start()), block.start(), block.end()]
    cuts += [*_ends(text, cuts[-1], len(text)), len(text)]
    first = len(text) if (letter := _LETTER.search(text)) is None else letter.start()
    starts = [0, *(start for start, end in pairwise(cuts) if start > first and _LETTER.search(text, start, end))]
    pieces = [_TRIMMED.search(text, start, end) for start, end in pairwise([*starts, len(text)])]
    return [piece.span() for piece in pieces if piece is not None]


def _ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield the offsets behind sentences in a part of a text without tables and blocks of code."""
    line = words = start
    for match in _STOP.finditer(text, start, stop):
        goes_on = match["following"].islower()
        if match["marker"] is not None:  # a line begins
            before = text[line : match.start()].rstrip()
            if not (before and words >= line + len(before)) and (
                not goes_on or match["marker"] or before.endswith(":")
            ):
                yield match.start()
            line, words = match.span()
        elif match["short"] is None and not goes_on:
            yield match.end()

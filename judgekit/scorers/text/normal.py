"""Texts without what does not change an answer: case, width, white space, and punctuation around them."""

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from judgekit.scorers.text.words import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Callable

    from regex import Pattern

_NOT_RAISED = re.compile("[^\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+")
"""What superscript and subscript digits stand between: NFKC would make 102 of 10 squared."""


def folded(text: str) -> str:
    """A text in one case, with one form of each character (NFKC) and one space for each run of white space."""
    # Case goes first, so that texts that are one without it stay one; what NFKC makes of them may have case again.
    formed = _NOT_RAISED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text.casefold())
    return " ".join(formed.casefold().split())


def normalized(text: str) -> str:
    """A text without what does not change an answer: texts that are equal in this form give the same answer.

    It is `folded`, without spaces beside letters of scripts that put none between words (as in ``skII 神仙水``), and
    without punctuation that ends sentences and clauses (Unicode's ``Terminal_Punctuation``) at the
    end, ``¿`` and ``¡`` at the start, and quotation marks around all of it. All else stays, within and at both ends:
    ``-5``, ``.5``, ``$5``, ``5%``, ``5'``, ``(0, 5]`` and ``C++`` are not ``5``, ``0, 5`` and ``C``. Where nothing else
    would be left, punctuation stays too.
    """
    whole = folded(text)
    if not whole.isascii():
        whole = _spaces()("", whole)
    start, end = 0, len(whole)
    first, last, quotation = _edges()
    while (opening := first.search(whole, start, end)) and (closing := last.search(whole, opening.start(), end)):
        start, end = opening.start(), closing.end()
        if not (quotation.match(whole, start) and quotation.match(whole, end - 1)):
            return whole[start:end]
        start, end = start + 1, end - 1
    return whole


@cache
def _spaces() -> "Callable[[str, str], str]":
    """The function that replaces spaces beside letters of scripts that put none between words."""
    import regex  # noqa: PLC0415 - most scorers do without

    letter = rf"[\p{{L}}&&[{UNSPACED}]]"
    # A mark after a space is a sign of its own; without the space it would be one of the letter before it.
    return regex.compile(rf"(?<={letter}\p{{M}}*) (?!\p{{M}})| (?={letter})", regex.V1).sub


@cache
def _edges() -> "tuple[Pattern[str], Pattern[str], Pattern[str]]":
    """What a text begins with, what it ends with (searched for from behind), and quotation marks."""
    import regex  # noqa: PLC0415 - as above

    return (
        regex.compile(r"[^\s¿¡]"),
        regex.compile(r"(?r)[^\s\p{Terminal_Punctuation}]"),
        regex.compile(r"\p{Quotation_Mark}"),
    )

"""Normalization of texts: case, width, whitespace and surrounding punctuation, which do not change an answer."""

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from judgekit.scorers.text.words import UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from regex import Pattern

_NOT_RAISED = re.compile("[^\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+")
"""Text between superscript and subscript digits, which NFKC would turn into normal ones: 10 squared into 102."""


def fold_text(text: str) -> str:
    """Return a text in lowercase, with normalized characters (NFKC) and single spaces."""
    # Case is folded first, so that texts that differ only in case stay equal; NFKC may produce uppercase again.
    formed = _NOT_RAISED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text.casefold())
    return " ".join(formed.casefold().split())


def normalize_text(text: str) -> str:
    """Return a text without variations that do not change an answer: texts with equal results give the same answer.

    The text is `fold_text`, then spaces next to letters of scripts without word spaces (as in ``skII 神仙水``), punctuation
    that ends sentences and clauses (Unicode's ``Terminal_Punctuation``) at the end, ``¿`` and ``¡`` at the start, and
    quotation marks around the whole are removed. Everything else stays, also at both ends: ``-5``, ``.5``, ``$5``,
    ``5%``, ``5'``, ``(0, 5]`` and ``C++`` do not become ``5``, ``0, 5`` and ``C``. Punctuation stays if nothing else
    would be left.
    """
    whole = fold_text(text)
    spaces, first, last, quotation = _patterns()
    if not whole.isascii():
        whole = spaces.sub("", whole)
    start, end = 0, len(whole)
    while (opening := first.search(whole, start, end)) and (closing := last.search(whole, opening.start(), end)):
        start, end = opening.start(), closing.end()
        if not (quotation.match(whole, start) and quotation.match(whole, end - 1)):
            return whole[start:end]
        start, end = start + 1, end - 1
    return whole


@cache
def _patterns() -> "tuple[Pattern[str], Pattern[str], Pattern[str], Pattern[str]]":
    """Return patterns for spaces in scripts without them, the first and last character (searched back), and quotation marks."""
    import regex  # noqa: PLC0415 - most scorers do without

    letter = rf"[\p{{L}}&&[{UNSPACED_SCRIPTS}]]"
    # A combining mark after a space stands alone; without the space it would join the letter before it.
    spaces = regex.compile(rf"(?<={letter}\p{{M}}*) (?!\p{{M}})| (?={letter})", regex.V1)
    first, last = regex.compile(r"[^\s¿¡]"), regex.compile(r"(?r)[^\s\p{Terminal_Punctuation}]")
    return spaces, first, last, regex.compile(r"\p{Quotation_Mark}")

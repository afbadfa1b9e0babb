"""Content words of a text: its words without function words, and with negated ones marked."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from judgekit.scorers.text.normalization import fold_text

NEGATED = "_NEG"
"""The suffix of negated words, as in `nltk.sentiment.util.mark_negation`."""

_published_words = re.compile(r"\b\w+\b").findall


def content_words(
    text: str, split: Callable[[str], list[str]], stop_words: frozenset[str], *, ignore_percent: bool = False
) -> set[str]:
    """Return the words of a text without stop words and single Latin letters, and with a mark on negated ones.

    Numbers are words as written, with sign and decimals, but without thousands separators. A percentage is one word,
    ``20%``, however it is written (``20 percent``, ``百分之20``). Negations are words, and the
    words after one, up to the next punctuation mark or the end of the line, are marked (Das & Chen 2001; Pang et al.
    2002). Phrases that only look like negations, such as 不过 and "no problem", are single words.

    Args:
        text: The text, in any case.
        split: A function that splits the parts between numbers, negations and punctuation into words.
        stop_words: The words to leave out, in lowercase. Negations and numbers are always kept.
        ignore_percent: Whether a percentage is its number.
    """
    sign = "" if ignore_percent else "%"
    return {word for line in text.splitlines() for word in _marked(fold_text(line), split, stop_words, sign)}


def published_words(text: str, stop_words: frozenset[str]) -> set[str]:
    r"""Return the matches of ``\b\w+\b`` in a lowercase text, longer than one character and without stop words."""
    return {word for word in _published_words(text.lower()) if len(word) > 1 and word not in stop_words}


def _marked(
    text: str, split: Callable[[str], list[str]], stop_words: frozenset[str], percent_sign: str
) -> Iterator[str]:
    """Yield the content words of a line."""
    mark, start = "", 0
    for match in _cuts().finditer(text):
        yield from (word + mark for word in split(text[start : match.start()]) if _counts(word, stop_words))
        start, kind = match.end(), match.lastgroup
        if kind is None:  # a phrase that only looks like a negation
            yield match[0] + mark
        elif kind in ("number", "percent", "hundredths"):
            number = (match["number"] or match["hundredths"]).replace(",", "").replace("\u2212", "-")
            yield number + (percent_sign if kind != "number" else "") + mark
        elif kind == "end":
            mark = ""
        else:
            yield ("not" if kind == "contraction" else match[0]) + mark
            mark = NEGATED
    yield from (word + mark for word in split(text[start:]) if _counts(word, stop_words))


def _counts(word: str, stop_words: frozenset[str]) -> bool:
    is_latin_letter = len(word) == 1 and word.isalpha() and word < "\u0250"  # where the Latin blocks end
    return word not in stop_words and not is_latin_letter


@cache
def _cuts() -> re.Pattern[str]:
    """Return the pattern of everything special between words: numbers, negations, and ends of clauses."""
    harmless = sorted(load_word_list("no_negations"), key=len, reverse=True)  # the longest first
    phrases = "|".join(word for word in harmless if word.isascii())
    longest_first = [word for word in harmless if not word.isascii()]
    latin = "|".join(word for word in load_word_list("negations") if word.isascii())
    chinese = "".join(word for word in load_word_list("negations") if not word.isascii())
    auxiliaries = (
        "ai|are|ca|could|dare|did|do|does|had|has|have|is|may|might|must|need|ought|sha|should|was|were|wo|would"
    )
    number = r"(?:(?<![a-z\d.])[-\u2212]?\.?)?(?<![a-z\d])(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.:/-]\d+)*)"
    return re.compile(  # each branch first checks one character, which suffices for most
        rf"(?=[{''.join({word[0] for word in longest_first})}])(?:{'|'.join(longest_first)})"
        rf"|(?=[\d.\u2212-])(?P<number>{number})(?P<percent>\s?(?:%|(?:percent|per cent)(?![a-z])))?"
        rf"|百分之(?P<hundredths>{number})"
        rf"|(?<![a-z])(?=[a-z])(?:(?:{phrases})|(?P<contraction>(?:{auxiliaries})n['\u2019]?t|cannot)|(?P<latin>{latin}))(?![a-z])"
        rf"|(?P<chinese>[{chinese}])"
        r"|(?P<end>[.,:;!?。…—])"
    )


@cache
def load_word_list(kind: str) -> frozenset[str]:
    """Return one of the word lists in ``words.yaml``: ``stop_words``, ``negations`` or ``no_negations``."""
    import yaml  # noqa: PLC0415 - only needed by this scorer

    lists: dict[str, str] = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
    return frozenset(word.replace("_", " ") for word in lists[kind].split())

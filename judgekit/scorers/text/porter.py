"""Porter stemming of English words with NLTK's changes, because rouge-score uses NLTK's stemmer."""

import re
from collections.abc import Mapping

_IRREGULAR = {
    "cannings": "canning",
    "dying": "die",
    "innings": "inning",
    "lying": "lie",
    "outings": "outing",
    "skies": "sky",
    "tying": "tie",
} | {word: word for word in ("canning", "exceed", "howe", "inning", "news", "outing", "proceed", "sky", "succeed")}
_STEP_2 = {
    "ization|izer": "ize",
    "ational|ation|ator": "ate",
    "tional": "tion",
    "alism|aliti|alli": "al",
    "anci": "ance",
    "biliti|bli": "ble",
    "eli": "e",
    "enci": "ence",
    "entli": "ent",
    "fulli|fulness": "ful",
    "iveness|iviti": "ive",
    "(?<=l)ogi": "og",
    "ousli|ousness": "ous",
}
_STEP_3 = {"alize": "al", "ative|ful|ness": "", "ical|icate|iciti": "ic"}
_STEP_4 = {"able|al|ance|ant|ate|ement|ence|ent|er|ible|ic|(?<=[st])ion|ism|iti|ive|ize|ment|ou|ous": ""}
"""The endings by their replacement; an ending that is part of another one comes after it."""


def stem(word: str) -> str:
    """Return the stem of a lowercase word.

    Source: Porter 1980, "An algorithm for suffix stripping", https://doi.org/10.1108/eb046814, with the two changes of
    https://tartarus.org/martin/PorterStemmer (``bli`` for ``abli``, and ``logi``) and the default ones of
    `nltk.stem.porter.PorterStemmer`, for words such as ``dies``, ``enjoy`` and ``using``.
    """
    if word in _IRREGULAR or len(word) <= 2:
        return _IRREGULAR.get(word, word)
    word = _without_ending(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1]).endswith("c"):
        word = f"{word[:-1]}i"
    changed = _replaced(word, _STEP_2, 1)
    if word.endswith("alli") and changed != word:
        changed = _replaced(changed, _STEP_2, 1)
    word = _replaced(_replaced(changed, _STEP_3, 1), _STEP_4, 2)
    if word.endswith("e") and (_measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _is_short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _without_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_ending(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    rest = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if rest == word or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if rest[-1] == rest[-2:-1] and _shape(rest).endswith("c"):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return f"{rest}e" if _measure(rest) == 1 and _is_short(rest) else rest


def _replaced(word: str, replacements: Mapping[str, str], measure: int) -> str:
    """Replace the ending of a word if the part before it has at least this measure."""
    for endings, replacement in replacements.items():
        if match := re.search(rf"(?:{endings})\Z", word):  # the longest, because it begins first
            rest = word[: match.start()]
            return rest + replacement if _measure(rest) >= measure else word
    return word


def _shape(word: str) -> str:
    """Return ``c`` for each consonant and ``v`` for each vowel; ``y`` is a vowel after a consonant."""
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Return whether a word ends in a short syllable, like ``hop`` and ``us``."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")

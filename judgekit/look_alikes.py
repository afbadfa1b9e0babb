r"""Texts that look alike and differ: ``caf\u0065\u0301`` and ``caf\u00e9``, or a no-break space next to a space.

Unicode has several spellings of a letter (NFC and NFD), many spaces, and characters that nobody sees: zero-width ones,
direction marks, soft hyphens. Wherever two texts are shown next to each other, they are shown by `tell_apart`.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import normalize

if TYPE_CHECKING:
    from regex import Pattern


def tell_apart(texts: Sequence[str], limit: int | None = None) -> list[str]:
    """Return texts that are shown next to each other, with escapes where some look alike and differ; others as they are.

    With a ``limit``, each is cut off with three dots after so many characters. Where the difference would be cut off, a
    text begins shortly before it.
    """
    shown = [*texts] if all(map(str.isascii, texts)) else _with_escapes(texts)
    if limit is None or all(len(text) <= limit for text in shown):
        return shown
    cut = [text if len(text) <= limit else f"{text[: limit - 3]}..." for text in shown]
    whole = defaultdict[str, set[str]](set)
    for short, text in zip(cut, shown, strict=True):
        whole[short].add(text)
    for index, (short, text) in enumerate(zip(cut, shown, strict=True)):
        if len(whole[short]) > 1:
            rest = text[max(0, _shared(whole[short]) - limit // 4) :]
            cut[index] = f"...{rest}" if len(rest) <= limit - 3 else f"...{rest[: limit - 6]}..."
    return _with_escapes(cut)


def look_alike(text: str, other: str) -> bool:
    """Return whether two texts differ, but not to the eye."""
    return text != other and not (text.isascii() and other.isascii()) and _look(text) == _look(other)


def look_alike_part(text: str, whole: str) -> str | None:
    """Return the first part of the whole that looks like the text and differs from it, if there is one."""
    if (text.isascii() and whole.isascii()) or not (look := _look(text)) or text in whole:
        return None
    characters = _patterns()[0].findall(whole)
    looks = list(map(_look, characters))
    start = "".join(looks).find(look)
    if start < 0:
        return None
    part, at = "", 0
    for character, seen in zip(characters, looks, strict=True):
        if at + len(seen) > start and at < start + len(look):
            part += character
        at += len(seen)
    return part


def _with_escapes(texts: Sequence[str]) -> list[str]:
    alike = defaultdict[str, set[str]](set)
    for text in texts:
        alike[_look(text)].add(text)
    return [text if len(those := alike[_look(text)]) == 1 else _escaped(text, those) for text in texts]


def _escaped(text: str, alike: set[str]) -> str:
    """Return a text with escapes for what is not plain, between what all that look like it begin and end with."""
    start = _shared(alike)
    end = _shared([other[start:][::-1] for other in alike])
    characters = _patterns()[0].findall(text[start : len(text) - end])
    middle = "".join(
        character if normalize("NFD", character) == character == _look(character) else "".join(map(_escape, character))
        for character in characters
    )
    return text[:start] + middle + text[len(text) - end :]


def _shared(texts: Collection[str]) -> int:
    """Return the number of characters that all texts begin with."""
    first, last = min(texts), max(texts)
    return next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"


def _look(text: str) -> str:
    """Return a text that two texts share if nobody can see how they differ."""
    if text.isascii():
        return text
    _, spaces, invisible = _patterns()
    return normalize("NFC", invisible.sub("", spaces.sub(" ", text)))


@cache
def _patterns() -> "tuple[Pattern[str], Pattern[str], Pattern[str]]":
    """Return patterns of a character with its marks, of spaces, and of characters that nobody sees."""
    import regex  # noqa: PLC0415 - most texts are plain

    return (
        regex.compile(r"\X"),
        regex.compile(r"[\p{Zs}\p{Zl}\p{Zp}\u2800]"),
        regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}--[\t\n\r]]", regex.V1),
    )

"""Plain text: without the escapes and look-alike characters that hide values from a search."""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import unescape
from unicodedata import category, decimal, normalize

_LAYERS = 4
"""The number of nested encodings to decode. JSON within JSON counts once, however deep."""
_UNUSUAL = re.compile(r"[^\n -~]")
_DROPPED = "\u200b"
_INVISIBLE = "\0\x01\x7f\u034f\u20e3\u115f\u1160\u2800\u3164\uffa0"
_ESCAPED = (
    r"(?<!\\)\\++(?:u[dD][89abAB][0-9a-fA-F]{2}\\++u[dD][c-fC-F][0-9a-fA-F]{2}"  # a surrogate pair
    r"|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|(?:e|033)(?=[\[(])|[nrtfv]|[^\w\s\\])"
    r"|(?:\x1b|\^\[)\[[0-?]*+[ -/]*+[@-~]|\x9b[0-?]*+[ -/]*+[@-~]|\[\d[\d;]*+m|\x1b(?:[()][0-9A-Z]|[\]\\]|(?!\[))"  # of terminals
    r"|&(?:amp;)*+(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});"
    rf"|{_DROPPED}+"
)
_PERCENT = r"|%(?:25)*+(?:[0-7][0-9a-fA-F]|[c-fC-F][0-9a-fA-F](?:%(?:25)*+[89abAB][0-9a-fA-F]){1,3})"
_WRAPPED = {False: re.compile(_ESCAPED), True: re.compile(_ESCAPED + _PERCENT)}


class _Folding(dict[int, str]):
    """Plain characters by the characters that look like them, filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind, plain = category(character), normalize("NFKC", character)
        if kind == "Cf" or character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f":
            folded = _DROPPED
        elif kind == "Nd":
            folded = str(decimal(character))
        elif kind == "Zs" or character in "\t\r\f\v":
            folded = " "
        elif kind in ("Zl", "Zp") or character == "\x85":
            folded = "\n"
        elif kind == "Pd" or character == "\u2212":
            folded = "-"
        else:
            folded = plain if len(plain) == 1 and plain.isascii() else character
        self[code] = folded
        return folded


_FOLDED = _Folding()


def to_plain_text(text: str, *, percent: bool = True) -> tuple[str, Sequence[int]]:
    r"""Return a text in plain characters, and the position of each in the text (and, last, the end of the text).

    The escapes of JSON are decoded at any depth of nesting, even in text that is not JSON, and so are those of HTML.
    Colors of terminals are removed. Digits, letters, hyphens and spaces of all kinds become those of ASCII; invisible characters are removed.

    Args:
        text: The text, such as ``{\"to\": \"ann\\u0040x.org\"}``.
        percent: Whether to decode percent-encoding, too.
    """
    plain = text
    places: Sequence[int] = range(len(text) + 1)
    for _ in range(_LAYERS):
        if _UNUSUAL.search(plain):
            plain = plain.translate(_FOLDED)
        pieces: list[str] = []
        kept: list[int] = []
        done = 0
        for token in _WRAPPED[percent].finditer(plain):
            character = _decoded(token[0])
            if len(character) < 2:
                start = token.start()
                pieces += plain[done:start], character
                kept += places[done : start + len(character)]
                done = token.end()
        if not pieces:
            break
        plain = "".join((*pieces, plain[done:]))
        places = [*kept, *places[done:]]
    return plain, places


@lru_cache(4096)
def _decoded(token: str) -> str:
    """Return the character that a token stands for, an empty text if it is invisible, or the token itself."""
    if token[0] in "\x1b\x9b^[":
        return " " if token[1:] in ("]", "\\") else ""
    if token[0] == "\\":
        escape = token.lstrip("\\")
        if escape in ("e", "033"):
            return "\x1b"
        if len(escape) == 1:
            return _LETTERS.get(escape, escape)
        units = [int(unit[1:], 16) for unit in re.split(r"\\+", escape)]
        character = b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "replace")
    elif token[0] == "%":
        encoded = bytes.fromhex("".join(re.findall(r"%(?:25)*([0-9a-fA-F]{2})", token)))
        character = encoded.decode(errors="replace")
    else:
        character = unescape(re.sub("^&(?:amp;)+", "&", token))
    return character.translate(_FOLDED).replace(_DROPPED, "") if len(character) == 1 else token


_LETTERS = {"n": "\n", "r": " ", "t": " ", "f": " ", "v": " "}

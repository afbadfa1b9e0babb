"""Words of a text, also where its script puts no spaces between them."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Literal, Protocol, TypeAlias, get_args
from unicodedata import normalize

from judgekit.errors import ConfigError

Tokenize: TypeAlias = Literal["auto", "rouge-score", "whitespace", "jieba"]
"""How a text is split into words.

``auto``: runs of letters, their marks and digits in any script, in composed form (NFC); in scripts that put no spaces
between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each character with its marks is a word.
``rouge-score``: runs of a to z and digits, as Google's rouge-score has it; on text in ASCII the same as ``auto``.
``whitespace``: what stands between spaces, punctuation included.
``jieba``: as ``auto``, and runs of Chinese characters into the words of the dictionary of jieba
(``pip install 'judgekit[chinese]'``).
"""

Split: TypeAlias = Callable[[str], list[str]]
"""Splits a text into words."""

UNSPACED = "".join(
    rf"\p{{scx={script}}}" for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
)
"""Scripts without spaces between words, with what they share (such as the long ー), within a set of `regex`."""

_ascii_words = re.compile(r"[A-Za-z0-9]+").findall
_chinese_or_not = re.compile(r"[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+").findall


def splitter(tokenize: str) -> Split:
    """The function that splits a text into words.

    Raises:
        ConfigError: There is no such way, or it needs what is not installed.
    """
    known: Mapping[str, Split] = {"auto": _auto, "rouge-score": _ascii_words, "whitespace": str.split, "jieba": _jieba}
    if tokenize not in known:
        raise ConfigError.unknown("way to split a text into words", tokenize, get_args(Tokenize))
    if tokenize == "jieba":
        _dictionary()
    return known[tokenize]


def _auto(text: str) -> list[str]:
    return _ascii_words(text) if text.isascii() else _unicode_words()(normalize("NFC", text))


@cache
def _unicode_words() -> Split:
    import regex  # noqa: PLC0415 - most texts do without

    spaced = rf"--[{UNSPACED}]"
    word = rf"[\p{{L}}\p{{N}}&&[{UNSPACED}]]\p{{M}}*|[\p{{L}}\p{{N}}{spaced}][\p{{L}}\p{{M}}\p{{N}}{spaced}]*"
    return regex.compile(word, regex.V1).findall


class _Dictionary(Protocol):
    """A tokenizer of jieba, as far as it is used."""

    FREQ: dict[str, int]
    total: int
    initialized: bool

    def get_dict_file(self) -> object: ...
    def gen_pfdict(self, file: object, /) -> tuple[dict[str, int], int]: ...
    def lcut(self, text: str, /) -> list[str]: ...


@cache
def _dictionary() -> _Dictionary:
    try:
        jieba = import_module("jieba")
    except ImportError as error:
        raise ConfigError("tokenize='jieba' needs jieba: pip install 'judgekit[chinese]'") from error
    made: _Dictionary = jieba.Tokenizer()
    # By itself it would load what anybody has left in the folder for temporary files, and log that it does.
    made.FREQ, made.total = made.gen_pfdict(made.get_dict_file())
    made.initialized = True
    return made


def _jieba(text: str) -> list[str]:
    cut = _dictionary().lcut
    runs = _chinese_or_not(text)
    return [word for run in runs for word in (cut(run) if "\u4e00" <= run[0] <= "\u9fff" else _auto(run))]

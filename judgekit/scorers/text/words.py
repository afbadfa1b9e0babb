"""Words of a text, also where its script puts no spaces between them."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Literal, Protocol, TypeAlias, get_args

from judgekit.errors import ConfigError

Tokenize: TypeAlias = Literal["auto", "rouge-score", "whitespace", "jieba"]
"""How a text is split into words.

``auto``: runs of letters, their marks and digits in any script; in scripts that put no spaces between words (Chinese,
Japanese, Thai, Lao, Khmer, Burmese) each character with its marks is a word.
``rouge-score``: runs of a to z and digits, as Google's rouge-score has it; on text in ASCII the same as ``auto``.
``whitespace``: what stands between spaces, punctuation included.
``jieba``: as ``auto``, and runs of Chinese characters into the words of the dictionary of jieba
(``pip install 'judgekit[chinese]'``).
"""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_ascii_words = re.compile(r"[A-Za-z0-9]+").findall


def splitter(tokenize: str) -> Callable[[str], list[str]]:
    """The function that splits a text into words.

    Raises:
        ConfigError: There is no such way, or it needs what is not installed.
    """
    known: Mapping[str, Callable[[str], list[str]]] = {
        "auto": _auto,
        "rouge-score": _ascii_words,
        "whitespace": str.split,
        "jieba": _jieba,
    }
    if tokenize not in known:
        raise ConfigError.unknown("way to split a text into words", tokenize, get_args(Tokenize))
    if tokenize == "jieba":
        _dictionary()
    return known[tokenize]


def _auto(text: str) -> list[str]:
    return _ascii_words(text) if text.isascii() else _unicode_words()(text)


@cache
def _unicode_words() -> Callable[[str], list[str]]:
    import regex  # noqa: PLC0415 - most texts do without

    word = rf"[{_UNSPACED}]\p{{M}}*|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])+"
    return regex.compile(word).findall


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


@cache
def _chinese() -> Callable[[str], list[str]]:
    import regex  # noqa: PLC0415 - as above

    return regex.compile(r"\p{Han}+|\P{Han}+").findall


def _jieba(text: str) -> list[str]:
    cut = _dictionary().lcut
    return [word for run in _chinese()(text) for word in (cut(run) if "\u4e00" <= run[0] <= "\u9fff" else _auto(run))]

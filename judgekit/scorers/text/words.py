"""Splitting of text into words, even in scripts without spaces between words."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, check_choice

Tokenize: TypeAlias = Literal["auto", "rouge-score", "whitespace", "jieba"]
"""The way in which a text is split into words.

``auto``: runs of letters, combining marks and digits in any script, in composed form (NFC); in scripts without spaces
between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each character with its marks is a word.
``rouge-score``: runs of a to z and digits, as in Google's rouge-score; for ASCII text the same as ``auto``.
``whitespace``: the parts between spaces, including punctuation.
``jieba``: like ``auto``, but runs of Chinese characters are split into words by the dictionary of jieba
(``pip install jieba``).
"""

Split: TypeAlias = Callable[[str], list[str]]
"""A function that splits a text into words."""

UNSPACED_SCRIPTS = "".join(
    rf"\p{{scx={script}}}" for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
)
"""The scripts without word spaces, and characters they share (such as the long ー), as part of a `regex` set."""

_ascii_words = re.compile(r"[A-Za-z0-9]+").findall
_chinese_or_not = re.compile(r"[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+").findall


def splitter(tokenize: str) -> Split:
    """Return the function that splits a text into words.

    Raises:
        ConfigError: The way to split words is unknown, or needs a package that is not installed.
    """
    check_choice("way to split a text into words", tokenize, _SPLITTERS)
    if tokenize == "jieba":
        _chinese_words()
    return _SPLITTERS[tokenize]


def _auto(text: str) -> list[str]:
    return _ascii_words(text) if text.isascii() else _unicode_words()(normalize("NFC", text))


@cache
def _unicode_words() -> Split:
    import regex  # noqa: PLC0415 - most texts do without

    spaced = rf"--[{UNSPACED_SCRIPTS}]"
    word = rf"[\p{{L}}\p{{N}}&&[{UNSPACED_SCRIPTS}]]\p{{M}}*|[\p{{L}}\p{{N}}{spaced}][\p{{L}}\p{{M}}\p{{N}}{spaced}]*"
    return regex.compile(word, regex.V1).findall


@cache
def _chinese_words() -> Split:
    try:
        jieba = import_module("jieba")
    except ImportError as error:
        raise ConfigError(f"tokenize='jieba' needs jieba: {install_command('chinese')}") from error
    tokenizer: Any = jieba.Tokenizer()
    # By default it would load a cache from the shared temporary directory, and log that.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    split: Split = tokenizer.lcut
    return split


def _jieba(text: str) -> list[str]:
    runs, cut = _chinese_or_not(text), _chinese_words()
    return [word for run in runs for word in (cut(run) if "\u4e00" <= run[0] <= "\u9fff" else _auto(run))]


_SPLITTERS: Mapping[str, Split] = {"auto": _auto, "rouge-score": _ascii_words, "whitespace": str.split, "jieba": _jieba}

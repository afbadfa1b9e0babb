"""The encodings of text: their names, and the one that the first bytes of a file show."""

import codecs
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import IO

from judgekit.errors import ConfigError, TraceError

ENCODING_HINT = "set its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"
_HEAD_BYTES = 1 << 20
_CHUNK = 1 << 16
_ABOVE_ASCII = re.compile(r"[^\x00-\x7f]+")
_WORDS = re.compile(r"[^\x00-\x7f]{2,}|(?<![A-Za-z])[^\x00-\x7f](?![A-Za-z])")


def detect_encoding(open_file: Callable[[], AbstractContextManager[IO[bytes]]]) -> str:
    """Return GB18030 if the first megabyte is Chinese and most of its non-ASCII lines are not UTF-8, else UTF-8.

    A file with a byte order mark of UTF-16 is that.

    Args:
        open_file: Opens the file, whose errors are ``TraceError``s.
    """
    with suppress(TraceError), open_file() as file:  # an invalid byte raises one too
        decoder = codecs.getincrementaldecoder("utf-8")()
        for _ in range(_HEAD_BYTES // _CHUNK):
            decoder.decode(file.read(_CHUNK))
        return "utf-8"
    foreign = size = 0
    broken: list[bytes] = []
    is_chinese = True
    with suppress(TraceError), open_file() as file:  # a damaged file raises when it is read
        while size < _HEAD_BYTES and (line := file.readline(_HEAD_BYTES - size)):
            if not size and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            size += len(line)
            if not line.isascii():
                foreign += 1
                is_chinese = is_chinese and _is_text(line, "gb18030")
                if not _is_text(line, "utf-8"):
                    broken.append(line)
    return "gb18030" if is_chinese and len(broken) * 2 > foreign and _is_chinese(b"".join(broken)) else "utf-8"


def encoding_name(encoding: str) -> str:
    """Return Python's name of an encoding."""
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except LookupError:
        raise ConfigError(
            f"unknown encoding {encoding!r}; use one that Python knows, such as 'utf-8' or 'gb18030'"
        ) from None


def _is_text(line: bytes, encoding: str) -> bool:
    """Return whether a line is valid in an encoding. Its last character may be cut off."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(line)
    except UnicodeDecodeError:
        return False
    return True


def _is_chinese(text: bytes) -> bool:
    """Return whether more than a fifth of the GBK characters are common ones.

    A common character does not count if it stands alone within a Latin word: an accented letter of one byte and the
    letter after it are GB18030 too, but not as a common character. Traditional Chinese has a third of these or more.
    """
    decoded = text.decode("gb18030", "ignore")
    common = "".join(_WORDS.findall(decoded)).encode("gb2312", "ignore")[::2]  # first bytes, by frequency
    all_bytes = "".join(_ABOVE_ASCII.findall(decoded)).encode("gbk", "ignore")[::2]
    return sum(first < 0xD8 for first in common) * 5 > len(all_bytes)


def decode_error_text(error: UnicodeDecodeError) -> str:
    """Return an error message for bytes that are invalid in an encoding, with a remedy."""
    where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return f"not {error.encoding.upper()}: {where}; {ENCODING_HINT}"

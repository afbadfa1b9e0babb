"""Files of records: how they are opened, in which encoding, and how JSON is read from them."""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import from_json

from judgekit.errors import ConfigError, TraceError

Container: TypeAlias = Literal["lines", "document", "csv", "parquet"]

_LOOKED_AT = 1 << 20
_SUFFIXES: dict[str, Container] = {
    "": "document",
    ".json": "document",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
_UNREADABLE = (OSError, EOFError, zlib.error)
_ABOVE_ASCII = re.compile(r"[^\x00-\x7f]+")
_WORDS = re.compile(r"[^\x00-\x7f]{2,}|(?<![A-Za-z])[^\x00-\x7f](?![A-Za-z])")


class Line(NamedTuple):
    """A line that is not blank, with its number from 1."""

    number: int
    text: bytes


class Record(NamedTuple):
    """One record of a file with the line where it starts, if it has one; its value, or why that cannot be read."""

    line: int | None
    value: JsonValue | TraceError


@dataclass(frozen=True)
class File:
    """A file that is there and is not empty.

    Attributes:
        path: Where it is; a name that ends in ``.gz`` is that of a packed file.
        container: What holds the records, as the file's name says.
        encoding: That of the bytes which `opened` gives, by Python's name for it.
        guessed: The file is not UTF-8, and nobody said what it is.
    """

    path: Path
    container: Container
    encoding: str = "utf-8"
    guessed: bool = False
    _recoded: str | None = None

    @classmethod
    def at(cls, path: Path | str, encoding: str | None = None) -> "File":
        """The file; its encoding is found out where it is not given: UTF-8, GB18030, or UTF-16 with a mark.

        Raises:
            TraceError: There is no such file, or nothing in it, or its name ends as that of no known container.
            ConfigError: There is no such encoding.
        """
        path = Path(path)
        if path.is_dir():
            raise TraceError("is a folder; give one file", path=path)
        if not path.exists():
            raise TraceError("does not exist", path=path)
        if path.stat().st_size == 0:
            raise TraceError("is empty", path=path)
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        if suffix not in _SUFFIXES:
            known = ", ".join(filter(None, _SUFFIXES))
            raise TraceError(
                f"no file that ends in {suffix!r} can be read; known are {known}, all also with .gz", path=path
            )
        file = cls(path, _SUFFIXES[suffix])
        if file.container == "parquet":
            return file
        name = file._found_encoding() if encoding is None else _known(encoding)
        if "\n".encode(name) != b"\n":  # such as UTF-16, whose lines cannot be split as bytes
            return replace(file, _recoded=name)
        return replace(file, encoding=name, guessed=encoding is None and name != "utf-8")

    @property
    def notice(self) -> TraceError | None:
        """What the reader of a file must know whose encoding was guessed."""
        if not self.guessed:
            return None
        found = "is not UTF-8 and was read as GB18030; if that is right, say so: encoding='gb18030', --encoding gb18030"
        return TraceError(found, path=self.path)

    @contextmanager
    def opened(self) -> Generator[IO[bytes]]:
        """The file, unpacked; what goes wrong while it is read is about this file."""
        try:
            with gzip.open(self.path) if self.path.suffix.lower() == ".gz" else self.path.open("rb") as file:
                stream = cast("IO[bytes]", file)
                yield stream if self._recoded is None else BytesIO(stream.read().decode(self._recoded).encode())
        except _UNREADABLE as error:
            raise TraceError(f"cannot be read: {error}", path=self.path) from error
        except UnicodeDecodeError as error:
            raise TraceError(undecodable(error), path=self.path) from error

    def lines(self) -> Iterator[Line]:
        """The lines that are not blank; a file has at least one."""
        blank = True
        with self.opened() as file:
            for number, line in enumerate(file, 1):
                if text := (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip():
                    blank = False
                    yield Line(number, text)
        if blank:
            raise TraceError("has only blank lines", path=self.path)

    def records(self) -> Iterator[Record]:
        """The records of a file of JSON lines."""
        return map(self.parsed, self.lines())

    def parsed(self, line: Line) -> Record:
        """A line of JSON as a record."""
        try:
            return Record(line.number, parse_json(line.text, self.encoding))
        except ValueError as error:  # to the parser it is line 1, whatever its number in the file
            return Record(line.number, TraceError(_not_json(error).replace(" at line 1 column ", " at column ")))

    def document(self) -> JsonValue | Iterator[Record]:
        """The one JSON value that the file holds, or the records on its lines where it is JSONL of another name."""
        with self.opened() as file:
            content = file.read().removeprefix(codecs.BOM_UTF8)
        try:
            return parse_json(content, self.encoding)
        except ValueError as error:
            if (first := content.lstrip().split(b"\n", 1)[0]) and self._is_json(first):
                return self.records()
            raise TraceError(_not_json(error), path=self.path) from error

    def _is_json(self, text: bytes) -> bool:
        try:
            parse_json(text, self.encoding)
        except ValueError:
            return False
        return True

    def _found_encoding(self) -> str:
        """By the first megabyte: GB18030 if it is Chinese, and most of the lines that are not ASCII are not UTF-8."""
        foreign = looked_at = 0
        broken: list[bytes] = []
        chinese = True
        with suppress(TraceError), self.opened() as file:  # a damaged file is an error when it is read
            while looked_at < _LOOKED_AT and (line := file.readline(_LOOKED_AT - looked_at)):
                if not looked_at and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    return "utf-16"
                looked_at += len(line)
                if not line.isascii():
                    foreign += 1
                    chinese = chinese and _is_text(line, "gb18030")
                    if not _is_text(line, "utf-8"):
                        broken.append(line)
        return "gb18030" if chinese and len(broken) * 2 > foreign and _is_chinese(b"".join(broken)) else "utf-8"


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except LookupError:
        found = f"no text encoding is called {encoding!r}; give one that Python knows, such as 'utf-8' or 'gb18030'"
        raise ConfigError(found) from None


def _is_text(line: bytes, encoding: str) -> bool:
    """Whether a line is, which may be cut in the middle of its last character."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(line)
    except UnicodeDecodeError:
        return False
    return True


def _is_chinese(text: bytes) -> bool:
    """Whether more than a fifth of the characters of GBK are common ones, and none of these alone within a Latin word.

    An accented letter of one byte is GB18030 too, together with the letter behind it, but not as a common character.
    Traditional Chinese shares a third of these or more.
    """
    said = text.decode("gb18030", "ignore")
    common = "".join(_WORDS.findall(said)).encode("gb2312", "ignore")[::2]  # of two bytes, the first in order of use
    every = "".join(_ABOVE_ASCII.findall(said)).encode("gbk", "ignore")[::2]
    return sum(first < 0xD8 for first in common) * 5 > len(every)


def undecodable(error: UnicodeDecodeError) -> str:
    """What is no text in its encoding, and what to do about it."""
    where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return (
        f"not {error.encoding.upper()}: {where}; name its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"
    )


def parse_json(text: bytes, encoding: str = "utf-8") -> JsonValue:
    """JSON as real recordings have it: NaN and lone surrogates are let through, for the schema to deal with.

    Raises:
        ValueError: It is no JSON, or (a `UnicodeDecodeError`) no text in this encoding.
    """
    try:
        return cast("JsonValue", from_json(text if encoding == "utf-8" else text.decode(encoding)))
    except ValueError:
        said = text.decode(encoding)
        if "\\u" not in said:  # the fast parser refuses nothing else that the slow one takes
            raise
        try:
            return cast("JsonValue", json.loads(said))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _not_json(error: ValueError) -> str:
    return undecodable(error) if isinstance(error, UnicodeDecodeError) else f"not JSON: {error}"

"""Files of records: opening them, and reading JSON from them."""

import codecs
import json
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.compression import Archive, Compression, bounded_lines, compression_of, decompressed, read_bounded
from judgekit.formats.file_lists import STANDARD_STREAM, Container, container_of, locate_object
from judgekit.locations import Location, Url, to_location
from judgekit.traces.equality import is_deeper

ENCODING_HINT = "set its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"
_PARQUET = b"PAR1"
_OBJECT = re.compile(rb"^\{", re.MULTILINE)
_JSON_DEPTH = 200
"""The most levels of objects and lists that the JSON parser reads."""
_TOO_DEEP = "recursion limit exceeded"
"""The parser's message about more."""


class FileLine(NamedTuple):
    """A line that is not blank, numbered from 1."""

    number: int
    text: bytes


class FileRecord(NamedTuple):
    """A record of a file: its value, or the error that it cannot be read, and its first line if it has one."""

    line_number: int | None
    value: JsonValue | TraceError

    def parsed(self) -> JsonValue:
        """Return the value."""
        if isinstance(self.value, TraceError):
            raise self.value
        return self.value


class _TemporaryCopy:
    """A copy of a stream that can be read only once, in a temporary file that is deleted with the object."""

    def __init__(self, stream: IO[bytes]) -> None:
        with tempfile.NamedTemporaryFile(prefix="judgekit-", delete=False) as file:
            self.path = Path(file.name)
            weakref.finalize(self, self.path.unlink, missing_ok=True)
            shutil.copyfileobj(stream, file)

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        return self.path.open(mode)


@dataclass(frozen=True)
class File:
    """An existing file that is not empty.

    Its container is the form of the records, by the suffix or the content: ``objects`` are concatenated JSON objects of
    many lines each. The encoding is that of the bytes that `open` yields, under Python's name for it.
    """

    path: Location
    container: Container
    compression: Compression | None = None
    encoding: str = "utf-8"
    _recoded: str | None = None
    _temporary_copy: _TemporaryCopy | None = None

    @classmethod
    def locate(cls, path: Path | str, encoding: str | None = None) -> "File":
        """Return the file. If no encoding is given, it is UTF-8, or UTF-16 if the file begins with its mark.

        Standard input is called ``-``. It is copied to a temporary file, and recognized by its content.
        """
        path = to_location(path)
        copy = None
        if isinstance(path, Url):
            path = locate_object(path)
        elif path == STANDARD_STREAM:
            copy = _TemporaryCopy(sys.stdin.buffer)
        elif path.is_dir():
            raise TraceError("is a folder; pass a file", path=path)
        elif not path.exists():
            raise TraceError("does not exist", path=path)
        elif not path.is_file():  # a pipe
            with path.open("rb") as stream:
                copy = _TemporaryCopy(stream)
        try:
            with (copy or path).open("rb") as stream:
                head = stream.read(4)
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=path) from error
        if not head:
            raise TraceError("is empty", path=path)
        compression = compression_of(head)
        container = "document" if copy else container_of(path)
        if compression == "zip":
            container = "archive"
        return cls(path, container, compression, _temporary_copy=copy).with_encoding(encoding)

    def with_encoding(self, encoding: str | None) -> "File":
        """Return the file with its encoding, and with its container if its name does not show it."""
        if self._temporary_copy:
            with suppress(TraceError), self.open() as stream:
                if stream.read(len(_PARQUET)) == _PARQUET:
                    return replace(self, container="parquet")
        if self.container in ("parquet", "archive"):
            return self
        name = self._marked_encoding() if encoding is None else _encoding_name(encoding)
        has_other_lines = "\n".encode(name) != b"\n"  # as in UTF-16, whose lines cannot be split as bytes
        file = replace(self, _recoded=name) if has_other_lines else replace(self, encoding=name)
        return file.with_container() if file.container == "document" else file

    def _marked_encoding(self) -> str:
        with suppress(TraceError), self.open() as stream:  # a damaged file raises when it is read
            if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "utf-16"
        return "utf-8"

    def with_container(self) -> "File":
        """Return the file with the container that its first two lines show, since its name does not."""
        with suppress(TraceError), closing(self.lines()) as lines:  # a damaged file raises when it is read
            first, second = next(lines).text, next(lines, None)
            if self._temporary_copy and not first.startswith((b"{", b"[")):
                return replace(self, container="csv")
            if second is not None and self._is_json(first):
                return replace(self, container="lines")
        return self

    @contextmanager
    def open(self) -> Generator[IO[bytes]]:
        """Open the file, decompressed. Errors while reading name this file."""
        try:
            with (
                (self._temporary_copy or self.path).open("rb") as file,
                nullcontext(file)
                if self.compression in (None, "zip")
                else decompressed(file, self.compression) as stream,
            ):
                if self._recoded is None:
                    yield stream
                else:
                    yield BytesIO(self._read_all(stream).decode(self._recoded).encode())
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=self.path) from error
        except TraceError as error:
            raise TraceError(error.problem, path=self.path, line=error.line) from error
        except UnicodeDecodeError as error:
            raise TraceError(decode_error_text(error), path=self.path) from error

    def lines(self) -> Generator[FileLine]:
        """Yield the lines that are not blank. Concatenated files may have a byte order mark at each start."""
        is_blank = True
        with self.open() as file:
            for number, line in enumerate(bounded_lines(file), 1):
                if text := line.removeprefix(codecs.BOM_UTF8).strip():
                    is_blank = False
                    yield FileLine(number, text)
        if is_blank:
            raise TraceError("has only blank lines", path=self.path)

    def objects(self) -> Iterator[FileLine]:
        """Return the lines of each of the concatenated objects."""
        return _objects(self._content())

    def parsed(self, line: FileLine) -> FileRecord:
        """Return a line of JSON, or the lines of one object, as a record."""
        try:
            return FileRecord(line.number, parse_json(line.text, self.encoding))
        except ValueError as error:
            problem = _not_json(error)
            if self.container == "lines":  # the parser always counts it as line 1
                problem = problem.replace(" at line 1 column ", " at column ")
            return FileRecord(line.number, TraceError(problem))

    def document(self) -> FileRecord | None:
        """Return the one JSON value of the file; ``None`` if it holds concatenated objects."""
        content = self._content()
        try:
            return FileRecord(None, parse_json(content, self.encoding))
        except ValueError as error:
            objects = _objects(content)
            first, second = next(objects, None), next(objects, None)
            if first is not None and second is not None and self._is_json(first.text):
                return None
            is_text = "expected value at line 1 column 1" in str(error)
            hint = "; it holds other text, and judgekit formats lists what can be read" if is_text else ""
            raise TraceError(f"{_not_json(error)}{hint}", path=self.path) from error

    def _content(self) -> bytes:
        with self.open() as stream:
            return self._read_all(stream).removeprefix(codecs.BOM_UTF8)

    def _read_all(self, stream: IO[bytes]) -> bytes:
        return read_bounded(stream) if self.compression else read_bounded(stream, "it")

    def archived(self) -> Iterator[FileRecord]:
        """Yield the samples of an Inspect log one at a time, each with the log's header."""
        try:
            with (self._temporary_copy or self.path).open("rb") as file, Archive(file) as archive:
                names = [name for name in archive if name.startswith("samples/") and name.endswith(".json")]
                if not names:
                    raise TraceError("contains no samples, so it is not an Inspect log")
                header: JsonValue = None
                for name in ("header.json", "_journal/start.json"):  # a log in progress has only the second
                    if header is None and name in archive:
                        head = _member(archive, name)
                        if isinstance(head.value, TraceError):
                            yield head
                        else:
                            header = head.value
                for name in names:
                    sample = _member(archive, name)
                    if header is not None and not isinstance(sample.value, TraceError):
                        sample = sample._replace(value={"header": header, "sample": sample.value})
                    yield sample
        except TraceError as error:
            raise TraceError(error.problem, path=self.path) from error
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=self.path) from error

    def _is_json(self, text: bytes) -> bool:
        try:
            parse_json(text, self.encoding)
        except ValueError:
            return False
        return True


def _objects(content: bytes) -> Iterator[FileLine]:
    """Yield concatenated objects, each of which begins a line with its brace."""
    starts = [match.start() for match in _OBJECT.finditer(content)]
    number = 1
    for before, (start, end) in zip([0, *starts], pairwise([*starts, len(content)]), strict=False):
        number += content.count(b"\n", before, start)
        yield FileLine(number, content[start:end])


def _member(archive: Archive, name: str) -> FileRecord:
    try:
        return FileRecord(None, parse_json(archive.member(name)))
    except TraceError as error:
        return FileRecord(None, error)
    except ValueError as error:
        return FileRecord(None, TraceError(f"{name}: {_not_json(error)}"))


def parse_json(text: bytes, encoding: str = "utf-8") -> JsonValue:
    """Return JSON as real recordings have it: NaN and lone surrogates pass, for the schema to handle.

    Text that is not JSON, or not valid in its encoding (a `UnicodeDecodeError`), is a ``ValueError``.
    """
    try:
        return cast("JsonValue", from_json(text if encoding == "utf-8" else text.decode(encoding)))
    except ValueError:
        decoded = text.decode(encoding)
        if "\\u" not in decoded:  # otherwise, the fast parser accepts all that the slow one does
            raise
        try:
            value: JsonValue = json.loads(decoded)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        if is_deeper(value, _JSON_DEPTH):
            raise ValueError(_TOO_DEEP) from None
        return value


def _not_json(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return decode_error_text(error)
    return f"not JSON: {error}".replace("not JSON: EOF", "not JSON: the text ends").replace(
        f"not JSON: {_TOO_DEEP}", f"nested more than {_JSON_DEPTH} levels deep"
    )


def _encoding_name(encoding: str) -> str:
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except LookupError:
        problem = f"unknown encoding {encoding!r}; use one that Python knows, such as 'utf-8' or 'gb18030'"
        raise ConfigError(problem) from None


def decode_error_text(error: UnicodeDecodeError) -> str:
    """Return an error message for bytes that are invalid in an encoding, with a remedy."""
    where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return f"not {error.encoding.upper()}: {where}; {ENCODING_HINT}"

"""Files of records: opening them, their encodings, and reading JSON from them."""

import codecs
import glob
import json
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from math import inf
from pathlib import Path, PurePosixPath
from typing import IO, Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import from_json

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.compression import (
    Archive,
    Compression,
    bounded_lines,
    decompressed_stream,
    detect_compression,
    read_bounded,
)
from judgekit.locations import Location, Url, open_binary, to_location
from judgekit.shards import LineStart

Container: TypeAlias = Literal["lines", "document", "objects", "archive", "csv", "parquet"]

ENCODING_HINT = "set its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"
STANDARD_STREAM = Path("-")
"""Standard input or output."""

_FIRST_LINE = LineStart()
_LOOKED_AT = 1 << 20
_MARK = 4
_PIECE = 1 << 16
_SUFFIXES: dict[str, Container] = {
    "": "document",
    ".json": "document",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "parquet",  # an Arrow table, read in the same way
    ".eval": "archive",
    ".traj": "document",  # from SWE-agent
    ".txt": "document",
    ".log": "document",
}
_OF_RECORDS = _SUFFIXES.keys() - {"", ".txt", ".log"}
"""The suffixes of files to read in folders. Other suffixes are common in all kinds of files."""
_KNOWN = f"{', '.join(filter(None, _SUFFIXES))}, all also with .gz or .zst"
_OF_DATASETS = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Metadata that Hugging Face's `save_to_disk` writes beside a dataset's tables."""
_HEADERS = ("header.json", "_journal/start.json")
"""The headers in an Inspect log's archive. A log in progress has only the second."""
_OBJECT = re.compile(rb"^\{", re.MULTILINE)
_ABOVE_ASCII = re.compile(r"[^\x00-\x7f]+")
_WORDS = re.compile(r"[^\x00-\x7f]{2,}|(?<![A-Za-z])[^\x00-\x7f](?![A-Za-z])")


class FileLine(NamedTuple):
    """A line that is not blank, numbered from 1, and the offset in the file at which it begins."""

    number: int
    text: bytes
    offset: int = 0


class FileRecord(NamedTuple):
    """A record of a file: its value, or the error that it cannot be read, and its first line if it has one.

    ``clean`` means that it is known to hold no lone surrogates.
    """

    line_number: int | None
    value: JsonValue | TraceError
    clean: bool = False


class _Kept:
    """A copy of a stream that can be read only once, in a temporary file that is deleted with the object."""

    def __init__(self, stream: IO[bytes]) -> None:
        with tempfile.NamedTemporaryFile(prefix="judgekit-", delete=False) as file:
            self.path = Path(file.name)
            weakref.finalize(self, self.path.unlink, missing_ok=True)
            shutil.copyfileobj(stream, file)


@dataclass(frozen=True)
class File:
    """An existing file that is not empty.

    Attributes:
        path: Its path or URL, for messages.
        container: The form of the records, from the file's suffix or from its content:
            ``objects`` are concatenated JSON objects of many lines each.
        compression: Its compression, whatever its name.
        encoding: The encoding of the bytes that `open` yields, under Python's name for it.
        encoding_guessed: Whether the file is not UTF-8 and its encoding was guessed.
    """

    path: Location
    container: Container
    compression: Compression | None = None
    encoding: str = "utf-8"
    encoding_guessed: bool = False
    _recoded: str | None = None
    _temporary_copy: _Kept | None = None

    @classmethod
    def locate(cls, path: Path | str, encoding: str | None = None) -> "File":
        """Return the file. If no encoding is given, it is detected: UTF-8, GB18030, or UTF-16 with a mark.

        Standard input is called ``-``. It is copied to a temporary file, and recognized by its content.

        Raises:
            TraceError: The file does not exist, is empty, or has an unknown suffix.
            ConfigError: The encoding is unknown.
        """
        path = to_location(path)
        kept = None
        if isinstance(path, Url):
            path = _located(path)
        elif path == STANDARD_STREAM:
            kept = _Kept(sys.stdin.buffer)
        elif path.is_dir():
            raise TraceError("is a folder; pass a file", path=path)
        elif not path.exists():
            raise TraceError("does not exist", path=path)
        elif not path.is_file():  # a pipe
            with path.open("rb") as stream:
                kept = _Kept(stream)
        try:
            with open_binary(path if kept is None else kept.path) as stream:
                head = stream.read(_MARK)
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=path) from error
        if not head:
            raise TraceError("is empty", path=path)
        packing = detect_compression(head)
        container = "document" if kept else _container_of(path)
        return cls(path, "archive" if packing == "zip" else container, packing, _temporary_copy=kept).with_encoding(
            encoding
        )

    def with_encoding(self, encoding: str | None) -> "File":
        """Return the file with its encoding, and with its container if its name does not show it."""
        if self._temporary_copy and self._starts_with(b"PAR1"):
            return replace(self, container="parquet")
        if self.container in ("parquet", "archive"):
            return self
        name = self._found_encoding() if encoding is None else _encoding_name(encoding)
        if "\n".encode(name) != b"\n":  # UTF-16, for example, whose lines cannot be split as bytes
            file = replace(self, _recoded=name)
        else:
            file = replace(self, encoding=name, encoding_guessed=encoding is None and name != "utf-8")
        return file.with_container() if file.container == "document" else file

    def with_container(self) -> "File":
        """Return the file with the container that its first two lines show, since its name does not."""
        with suppress(TraceError), closing(self.lines()) as lines:  # a damaged file raises when it is read
            first, second = next(lines).text, next(lines, None)
            if self._temporary_copy and not first.startswith((b"{", b"[")):
                return replace(self, container="csv")
            if second is not None and self._is_json(first):
                return replace(self, container="lines")
        return self

    @property
    def notice(self) -> TraceError | None:
        """The notice that the file's encoding was guessed, if it was."""
        if not self.encoding_guessed:
            return None
        found = "is not UTF-8 and was read as GB18030; if that is right, set encoding='gb18030' or --encoding gb18030"
        return TraceError(found, path=self.path)

    @contextmanager
    def open(self) -> Generator[IO[bytes]]:
        """Open the file, decompressed. Errors while reading name this file."""
        try:
            with open_binary(self._place) as file, decompressed_stream(file, self.compression) as stream:
                yield stream if self._recoded is None else BytesIO(self._all(stream).decode(self._recoded).encode())
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=self.path) from error
        except TraceError as error:
            raise TraceError(error.problem, path=self.path, line=error.line) from error
        except UnicodeDecodeError as error:
            raise TraceError(decode_error_text(error), path=self.path) from error

    @property
    def has_byte_lines(self) -> bool:
        """Whether the file holds JSON lines that can be found by their offsets."""
        return self.container == "lines" and not (self.compression or self._recoded or self._temporary_copy)

    def lines(self, start: LineStart = _FIRST_LINE, stop: float = inf) -> Generator[FileLine]:
        """Yield the lines that are not blank. Concatenated files may have a byte order mark at each start.

        Only lines that begin from ``start`` to before the offset ``stop`` are read.
        """
        blank, offset = start == _FIRST_LINE, start.offset
        if offset >= stop:
            return
        with self.open() as file:
            if offset:
                file.seek(offset)
            for number, line in enumerate(bounded_lines(file, start.lines), start.lines + 1):
                if text := line.removeprefix(codecs.BOM_UTF8).strip():
                    blank = False
                    yield FileLine(number, text, offset)
                offset += len(line)
                if offset >= stop:
                    return
        if blank:
            raise TraceError("has only blank lines", path=self.path)

    def records(self) -> Iterator[FileRecord]:
        """Return the records of JSON lines, of concatenated objects, or of an archive."""
        if self.container == "archive":
            return self._archived()
        return map(self.parsed, self.lines() if self.container == "lines" else _objects(self._content()))

    def parsed(self, line: FileLine) -> FileRecord:
        """Return a line of JSON, or the lines of one object, as a record."""
        try:
            value, clean = _parsed(line.text, self.encoding)
            return FileRecord(line.number, value, clean)
        except ValueError as error:
            found = _not_json(error)
            if self.container == "lines":  # the parser always counts it as line 1
                found = found.replace(" at line 1 column ", " at column ")
            return FileRecord(line.number, TraceError(found))

    def document(self) -> FileRecord | None:
        """Return the one JSON value of the file; ``None`` if it holds concatenated objects.

        Raises:
            TraceError: The file holds no JSON.
        """
        content = self._content()
        try:
            return FileRecord(None, *_parsed(content, self.encoding))
        except ValueError as error:
            objects = _objects(content)
            first, second = next(objects, None), next(objects, None)
            if first is not None and second is not None and self._is_json(first.text):
                return None
            raise TraceError(_not_json(error), path=self.path) from error

    def _content(self) -> bytes:
        with self.open() as stream:
            return self._all(stream).removeprefix(codecs.BOM_UTF8)

    def _all(self, stream: IO[bytes]) -> bytes:
        return stream.read() if self.compression is None else read_bounded(stream)

    def _archived(self) -> Iterator[FileRecord]:
        """Yield the samples of an Inspect log one at a time, each with the log's header."""
        try:
            with open_binary(self._place) as file, Archive(file) as archive:
                names = [name for name in archive if name.startswith("samples/") and name.endswith(".json")]
                if not names:
                    raise TraceError("contains no samples, so it is not an Inspect log")
                header: JsonValue = None
                for name in _HEADERS:
                    if header is None and name in archive:
                        head = _member(archive, name)
                        if isinstance(head.value, TraceError):
                            yield head
                        else:
                            header = head.value
                for name in names:
                    sample = _member(archive, name)
                    if header is not None and not isinstance(sample.value, TraceError):
                        sample = sample._replace(value={"header": header, "sample": sample.value}, clean=False)
                    yield sample
        except TraceError as error:
            raise TraceError(error.problem, path=self.path) from error
        except OSError as error:
            raise TraceError(f"cannot be read: {error}", path=self.path) from error

    @property
    def _place(self) -> Location:
        return self.path if self._temporary_copy is None else self._temporary_copy.path

    def _starts_with(self, mark: bytes) -> bool:
        with suppress(TraceError), self.open() as stream:
            return stream.read(len(mark)) == mark
        return False

    def _is_json(self, text: bytes) -> bool:
        try:
            _parsed(text, self.encoding)
        except ValueError:
            return False
        return True

    def _found_encoding(self) -> str:
        """Return GB18030 if the first megabyte is Chinese and most of its non-ASCII lines are not UTF-8, else UTF-8."""
        with suppress(TraceError), self.open() as file:  # an invalid byte raises one too
            decoder = codecs.getincrementaldecoder("utf-8")()
            for _ in range(_LOOKED_AT // _PIECE):
                decoder.decode(file.read(_PIECE))
            return "utf-8"
        foreign = looked_at = 0
        broken: list[bytes] = []
        chinese = True
        with suppress(TraceError), self.open() as file:  # a damaged file raises when it is read
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


def list_files(path: Path | str) -> Sequence[Location]:
    """Return the readable files in a folder, or the files that match a pattern; else the path itself.

    Hidden files and the metadata of Hugging Face datasets are left out. Files are sorted by
    name. Objects of a bucket come with the version that they have now.

    Raises:
        TraceError: A folder holds no such files, or there is no such object.
    """
    path = to_location(path)
    if isinstance(path, Url):
        return _list_objects(path)
    if path.is_dir():
        inside = {PurePosixPath(one.relative_to(path)): one for one in path.rglob("*")}
        found = sorted(inside[one] for one in _with_records(inside) if inside[one].is_file())
        if not found:
            raise TraceError(f"contains no readable files; known suffixes: {_KNOWN}", path=path)
        return found
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    fitting = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path.glob shows hidden files
    return sorted(one for one in map(Path, fitting) if one.is_file()) or [path]


def _list_objects(url: Url) -> Sequence[Url]:
    try:
        return [Url(url, url.current_version())]
    except IsADirectoryError:
        return _objects_below(url)
    except FileNotFoundError as error:
        if glob.has_magic(url) and (found := _listed(url, url.matches)):
            return sorted(found)
        raise TraceError(str(error), path=url) from error
    except OSError as error:
        raise TraceError(f"cannot be read: {error}", path=url) from error


def _objects_below(prefix: Url) -> Sequence[Url]:
    start = len(prefix.rstrip("/")) + 1
    inside = {PurePosixPath(one[start:]): one for one in _listed(prefix, prefix.objects)}
    if found := sorted(inside[one] for one in _with_records(inside)):
        return found
    raise TraceError(f"contains no readable files; known suffixes: {_KNOWN}", path=prefix)


def _listed(url: Url, objects: Callable[[], Sequence[Url]]) -> Sequence[Url]:
    try:
        return objects()
    except OSError as error:
        raise TraceError(f"cannot be listed: {error}", path=url) from error


def _located(url: Url) -> Url:
    """Return the URL with the version of the object that is read."""
    found = [url] if url.version is not None else _list_objects(url)
    if list(found) != [url]:
        raise TraceError("is a folder or a pattern; name one object", path=url)
    return found[0]


def _with_records(names: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield the names, relative to a folder, of visible files that hold records."""
    shown = [one for one in names if not any(part.startswith(".") for part in one.parts)]
    datasets = {folder for one in shown if _suffix(one) == ".arrow" for folder in (one.parent, one.parent.parent)}
    for one in shown:
        if _suffix(one) in _OF_RECORDS and not (one.name in _OF_DATASETS and one.parent in datasets):
            yield one


def require_separate_output(output: Path | str, *read: Path | str | None) -> None:
    """Check that an output file is not one of the files that are read, also in folders.

    Raises:
        ConfigError: The output file is also read.
        TraceError: A folder holds no readable files.
    """
    output = to_location(output)
    files = (file for path in read if path is not None for file in list_files(path))
    if output != STANDARD_STREAM and _identity(output) in map(_identity, files):
        raise ConfigError(f"--output {output}: is an input file; choose another")


def require_json_lines(path: Location) -> None:
    """Check that JSON Lines in this file would be read as such again.

    Raises:
        ConfigError: The file's name has the suffix of another kind of file, or an unknown one.
    """
    if path != STANDARD_STREAM and _SUFFIXES.get(_suffix(path)) not in ("lines", "document"):
        raise ConfigError(
            f"{path}: would be written as JSON Lines, so its name must end in .jsonl, .jsonl.gz or .jsonl.zst"
        )


def _identity(location: Location) -> Location:
    return location if isinstance(location, Url) else location.resolve()


def _container_of(path: Location) -> Container:
    """Return the container that a file's name shows."""
    suffix = _suffix(path)
    if suffix not in _SUFFIXES:
        raise TraceError(f"unknown suffix {suffix!r}; known suffixes: {_KNOWN}", path=path)
    return _SUFFIXES[suffix]


def _suffix(path: Location | PurePosixPath) -> str:
    """Return the suffix of a name, without the suffix of a compressed file."""
    return PurePosixPath(path.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix


def _objects(content: bytes) -> Iterator[FileLine]:
    """Yield concatenated objects, each of which begins a line with its brace."""
    starts = [match.start() for match in _OBJECT.finditer(content)]
    number = 1
    for before, (start, end) in zip([0, *starts], pairwise([*starts, len(content)]), strict=False):
        number += content.count(b"\n", before, start)
        yield FileLine(number, content[start:end])


def _member(archive: Archive, name: str) -> FileRecord:
    try:
        return FileRecord(None, *_parsed(archive.member(name), "utf-8"))
    except TraceError as error:
        return FileRecord(None, error)
    except ValueError as error:
        return FileRecord(None, TraceError(f"{name}: {_not_json(error)}"))


def _encoding_name(encoding: str) -> str:
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except LookupError:
        found = f"unknown encoding {encoding!r}; use one that Python knows, such as 'utf-8' or 'gb18030'"
        raise ConfigError(found) from None


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
    said = text.decode("gb18030", "ignore")
    common = "".join(_WORDS.findall(said)).encode("gb2312", "ignore")[::2]  # first bytes, by frequency
    every = "".join(_ABOVE_ASCII.findall(said)).encode("gbk", "ignore")[::2]
    return sum(first < 0xD8 for first in common) * 5 > len(every)


def decode_error_text(error: UnicodeDecodeError) -> str:
    """Return an error message for bytes that are invalid in an encoding, with a remedy."""
    where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return f"not {error.encoding.upper()}: {where}; {ENCODING_HINT}"


def parse_json(text: bytes, encoding: str = "utf-8") -> JsonValue:
    """Return JSON as real recordings have it: NaN and lone surrogates pass, for the schema to handle.

    Raises:
        ValueError: It is not JSON, or (as `UnicodeDecodeError`) not valid in this encoding.
    """
    return _parsed(text, encoding)[0]


def _parsed(text: bytes, encoding: str) -> tuple[JsonValue, bool]:
    """Return the value, and whether it is known to hold no lone surrogates."""
    try:
        return cast("JsonValue", from_json(text if encoding == "utf-8" else text.decode(encoding))), True
    except ValueError:
        said = text.decode(encoding)
        if "\\u" not in said:  # otherwise, the fast parser accepts all that the slow one does
            raise
        try:
            return cast("JsonValue", json.loads(said)), False
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _not_json(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return decode_error_text(error)
    return f"not JSON: {error}".replace("not JSON: EOF", "not JSON: the text ends")

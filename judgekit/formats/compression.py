"""Compressed files: gzip, zstd and the archives of Inspect, recognized by their first bytes."""

import gzip
import struct
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import IO, Literal, Self, TypeAlias, cast

from judgekit.distribution import install_command
from judgekit.errors import TraceError

Compression: TypeAlias = Literal["gzip", "zstd", "zip"]

MAX_BYTES = 1 << 29
"""The most bytes of a line or document. A few kilobytes may decompress to more than fits into memory."""
_SPLIT_LIST = "jq -cn --stream 'fromstream(1 | truncate_stream(inputs))' FILE > records.jsonl"
"""A command that splits a list without holding it in memory."""
_MARKS: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
"""The first bytes of compressed files."""
_ZSTD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD)


def compression_of(head: bytes) -> Compression | None:
    """Return the compression of a file, by its first bytes."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)


@contextmanager
def decompressed(file: IO[bytes], compression: Compression) -> Generator[IO[bytes]]:
    """Return a stream that decompresses a file."""
    damages: tuple[type[Exception], ...] = (EOFError, zlib.error)
    library: ModuleType = gzip
    if compression == "zstd":
        library = _zstd("")
        damages += (library.ZstdError,)
    try:
        with library.open(file) as stream:
            yield cast("IO[bytes]", stream)
    except damages as error:
        raise OSError(str(error)) from error


@contextmanager
def compressing_stream(file: IO[bytes], suffix: str) -> Generator[IO[bytes]]:
    """Return a stream that compresses into a file, if the suffix of the file's name says so."""
    suffix = suffix.lower()
    if suffix not in (".gz", ".zst"):
        yield file
        return
    library = _zstd("") if suffix == ".zst" else gzip
    with library.open(file, "wb") as stream:
        yield cast("IO[bytes]", stream)


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream. A line that is longer than any record is an error."""
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        if len(line) > MAX_BYTES:
            raise TraceError(f"line {number} is {_size_error()}")
        yield line


def read_bounded(stream: IO[bytes], subject: str = "decompressed, it") -> bytes:
    """Return the content of a stream, which is held in memory; too much is an error beginning with the ``subject``."""
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise TraceError(f"{subject} is {_size_error()}: {_SPLIT_LIST}")
    return content


def _size_error() -> str:
    return f"longer than {MAX_BYTES >> 20:,} MB, the limit; write JSON Lines, one record per line"


class Archive:
    """A ZIP archive whose members are stored, deflated or compressed by zstd, as Inspect writes them."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            with zipfile.ZipFile(file) as archive:
                # Members that are written again replace earlier ones.
                methods = {member.filename: member.compress_type for member in archive.infolist()}
            by_zstd = _ZSTD in methods.values()
            # Before Python 3.14, zipfile can only list members that zstd compressed.
            library = _zstd(".zipfile") if by_zstd and sys.version_info < (3, 14) else zipfile
            self._file = library.ZipFile(file)
        except _damages() as error:
            raise TraceError(f"cannot be read: {error}") from error
        self._methods = methods

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the members, in order."""
        return iter(self._methods)

    def member(self, name: str) -> bytes:
        """Return the content of a member."""
        if (method := self._methods[name]) not in _METHODS:
            raise TraceError(f"{name}: compression method {method} is not one that Inspect writes")
        try:
            with self._file.open(name) as stream:
                return read_bounded(cast("IO[bytes]", stream))
        except TraceError as error:
            raise TraceError(f"{name}: {error.problem}") from error
        except _damages() as error:
            raise TraceError(f"{name}: cannot be read: {error}") from error


def _damages() -> tuple[type[Exception], ...]:
    damages = (OSError, EOFError, ValueError, RuntimeError, OverflowError, struct.error, zlib.error, zipfile.BadZipFile)
    try:
        return (*damages, _zstd("").ZstdError, _zstd(".zipfile").BadZipFile)
    except (TraceError, ImportError):
        return damages


def _zstd(module: str) -> ModuleType:
    try:
        if sys.version_info >= (3, 14):
            return import_module("compression.zstd" if not module else "zipfile")
        return import_module(f"backports.zstd{module}")
    except ImportError as error:
        raise TraceError(f"is compressed with zstd; to read it, {install_command('zstd')}") from error

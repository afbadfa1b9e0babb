"""Packed files: gzip, zstd and the archives of Inspect. What they are is found by their first bytes, not by their names."""

import gzip
import struct
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Literal, Self, TypeAlias, cast

from judgekit.errors import TraceError

Packing: TypeAlias = Literal["gzip", "zstd", "zip"]

LONGEST = 1 << 29
"""Bytes of a line, or of a packed document: a few kilobytes may unpack to more than any memory holds."""
_MARKS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
_ZSTD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD)


def packing_of(path: Path) -> Packing | None:
    """How a file is packed, if it is."""
    with path.open("rb") as file:
        head = file.read(4)
    return next((packing for mark, packing in _MARKS.items() if head.startswith(mark)), None)


@contextmanager
def unpacked(path: Path, packing: Packing | None) -> Generator[IO[bytes]]:
    """What a file holds, as a stream; an archive as it stands.

    Raises:
        OSError: It cannot be read, or is damaged.
        TraceError: What unpacks it is not installed.
    """
    damages: tuple[type[Exception], ...] = (EOFError, zlib.error)
    library: ModuleType = gzip
    if packing == "zstd":
        library = _zstd("")
        damages += (library.ZstdError,)
    try:
        with path.open("rb") if packing in (None, "zip") else library.open(path) as stream:
            yield cast("IO[bytes]", stream)
    except damages as error:
        raise OSError(str(error)) from error


@contextmanager
def packed(file: IO[bytes], suffix: str) -> Generator[IO[bytes]]:
    """A stream that packs what is written to it into a file, as the suffix of the file's name says, if it does.

    Raises:
        TraceError: What packs it is not installed.
    """
    suffix = suffix.lower()
    if suffix not in (".gz", ".zst"):
        yield file
        return
    library = _zstd("") if suffix == ".zst" else gzip
    with library.open(file, "wb") as stream:
        yield cast("IO[bytes]", stream)


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream.

    Raises:
        TraceError: One is longer than any record is.
    """
    number = 0
    while line := stream.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise TraceError(f"line {number} is {_too_much()}")
        yield line


def bounded(stream: IO[bytes]) -> bytes:
    """All that a packed stream holds.

    Raises:
        TraceError: It is more than a document holds.
    """
    content = stream.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise TraceError(f"unpacked, it is {_too_much()}")
    return content


def _too_much() -> str:
    return f"longer than {LONGEST >> 20:,} MB, and is not read; write JSON Lines, one record a line"


class Archive:
    """A ZIP archive whose members are stored, deflated or packed by zstd, as Inspect writes them.

    Raises:
        TraceError: It is none, or what unpacks it is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as found:
                # What is written again replaces what was there.
                members = {one.filename: one for one in found.infolist()}
            by_zstd = any(one.compress_type == _ZSTD for one in members.values())
            # Before Python 3.14, zipfile can list what zstd has packed, and no more.
            library = _zstd(".zipfile") if by_zstd and sys.version_info < (3, 14) else zipfile
            self._file = library.ZipFile(path)
        except _damages() as error:
            raise TraceError(f"cannot be read: {error}") from error
        self._members = {name: one.compress_type for name, one in members.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """The names of the members, in the order of the archive."""
        return iter(self._members)

    def member(self, name: str) -> bytes:
        """What a member holds.

        Raises:
            TraceError: It is damaged, or longer than any record is.
        """
        if (method := self._members[name]) not in _METHODS:
            raise TraceError(f"{name}: packed by method {method}, which is none that Inspect writes")
        try:
            with self._file.open(name) as stream:
                return bounded(cast("IO[bytes]", stream))
        except TraceError as error:
            raise TraceError(f"{name}: {error.found}") from error
        except _damages() as error:
            raise TraceError(f"{name}: cannot be read: {error}") from error


def _damages() -> tuple[type[Exception], ...]:
    """What is raised about a damaged archive."""
    known = (OSError, EOFError, ValueError, RuntimeError, OverflowError, struct.error, zlib.error, zipfile.BadZipFile)
    try:
        return (*known, _zstd("").ZstdError, _zstd(".zipfile").BadZipFile)
    except (TraceError, ImportError):
        return known


def _zstd(module: str) -> ModuleType:
    try:
        if sys.version_info >= (3, 14):
            return import_module("compression.zstd" if not module else "zipfile")
        return import_module(f"backports.zstd{module}")
    except ImportError as error:
        raise TraceError("is packed by zstd, which takes a library: pip install 'judgekit[zstd]'") from error

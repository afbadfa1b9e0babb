"""Sizes of the pages of Parquet files, as the pages' own headers state them: a footer can be forged to state less."""

from collections.abc import Iterator
from typing import IO

from judgekit.errors import TraceError

_HEAD_BYTES = (4_096, 16 << 20)
"""So many bytes are read of a header at first, and at most."""
_DEEPEST = 10
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
"""Types of fields in Thrift's compact protocol, in which headers are written."""


def page_sizes(stream: IO[bytes], start: int, length: int) -> Iterator[int]:
    """Yield the unpacked size of each page in a column chunk.

    Args:
        stream: The file.
        start: The offset of the chunk's first page.
        length: The packed length of the chunk.

    Raises:
        TraceError: A header cannot be read.
    """
    end = start + length
    while start < end:
        for most in _HEAD_BYTES:
            stream.seek(start)
            header = _Header(stream.read(min(most, end - start)))
            try:
                sizes = header.sizes()
                break
            except IndexError:
                continue
        else:
            raise TraceError("a page header of Parquet cannot be read")
        unpacked, packed = (sizes.get(name, -1) for name in (_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE))
        if unpacked < 0 or packed < 0:
            raise TraceError("a page header of Parquet does not state the size of its page")
        yield unpacked
        start += header.at + packed


class _Header:
    """A page header, read from its start."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def sizes(self) -> dict[int, int]:
        """Return the integers of the header by the number of their field, and move to its end."""
        sizes: dict[int, int] = {}
        for number, kind in self._fields():
            if kind in _INTEGERS:
                sizes[number] = self._integer()
            else:
                self._skip(kind, 1)
        return sizes

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _unsigned(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 0x0F

    def _skip(self, kind: int, depth: int, *, is_element: bool = False) -> None:
        if depth > _DEEPEST:
            raise TraceError("a page header of Parquet is nested too deeply")
        if kind in _BOOLEANS:
            self.at += is_element  # as a field, its type is its value
        elif kind == _BYTE:
            self.at += 1
        elif kind in _INTEGERS:
            self._unsigned()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _TEXT:
            length = self._unsigned()
            self.at += length
        elif kind in _LISTS:
            head = self._byte()
            for _ in range(self._unsigned() if head >> 4 == 0x0F else head >> 4):
                self._skip(head & 0x0F, depth + 1, is_element=True)
        elif kind == _MAP:
            kinds = self._byte() if (count := self._unsigned()) else 0
            for _ in range(count):
                self._skip(kinds >> 4, depth + 1, is_element=True)
                self._skip(kinds & 0x0F, depth + 1, is_element=True)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        else:
            raise TraceError("a page header of Parquet has a field of an unknown type")

"""Record batches of Parquet and Arrow files, each refused before it takes more memory than any record may."""

import struct
from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, TraceError
from judgekit.formats.compression import MAX_BYTES

_HEAD_BYTES = (4_096, 16 << 20)
"""So many bytes are read of a header at first, and at most."""
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
"""Types of fields in Thrift's compact protocol, in which headers are written."""

_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
"""The first bytes of Arrow's two file types. Hugging Face's datasets use the second."""
_USUAL_BYTES = MAX_BYTES // 8
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
"""Kinds of messages in Arrow's stream."""
_MOST_COMPRESSED = 200
"""The compression ratio above which the compressed size says little about the rows."""
_REFERENCE_BYTES = 8
"""The least memory of a value in Python."""


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
        if depth > 10:
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


def record_batches(stream: IO[bytes]) -> tuple[Any, Iterator[Any]]:
    """Return the columns and record batches of a file, by its first bytes. One that is too large is an error."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
        arrow: Any = import_module("pyarrow.ipc")
    except ImportError as error:
        raise ConfigError(f"reading Parquet and Arrow needs pyarrow: {install_command('parquet')}") from error
    head = stream.read(len(_ARROW_FILE))
    if head == _ARROW_FILE or head.startswith(_ARROW_STREAM):
        start = 8 if head == _ARROW_FILE else 0  # where the stream begins
        stream.seek(start)
        for message in arrow.MessageReader.open_stream(stream):
            _check(_unpacked_bytes(message.metadata.to_pybytes(), message.body))
        stream.seek(start)
        batches = arrow.open_stream(stream)
        return batches.schema, map(_checked, batches)
    stream.seek(0)
    file = parquet.ParquetFile(stream)
    schema, metadata = file.schema_arrow, file.metadata
    columns: list[Any] = [file.schema.column(number) for number in range(len(file.schema))]
    # Kept as dictionaries, texts that are stored once and meant often take no memory until their size is known.
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    file = parquet.ParquetFile(stream, metadata=metadata, read_dictionary=texts)
    groups: list[Any] = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    row_bytes = max((_row_bytes(stream, group) for group in groups), default=0)
    _check(row_bytes)
    batches = file.iter_batches(batch_size=max(1, min(256, _USUAL_BYTES // max(1, row_bytes))))
    return schema, (_checked(batch).cast(schema) for batch in batches)


def _row_bytes(stream: IO[bytes], group: Any) -> int:
    """Return the mean size of the rows in a row group of Parquet; if one row may be nearly all of it, that of all."""
    total = 0
    for number in range(group.num_columns):
        chunk = group.column(number)
        if not chunk.num_values:  # its pages are not read, and may have no offset
            continue
        first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        start = min(first or chunk.data_page_offset, chunk.data_page_offset)
        pages = list(page_sizes(stream, start, chunk.total_compressed_size))
        size = max(sum(pages), chunk.total_uncompressed_size, chunk.num_values * _REFERENCE_BYTES)
        if max(pages, default=0) > MAX_BYTES or size > max(MAX_BYTES, _MOST_COMPRESSED * chunk.total_compressed_size):
            return int(size)
        total += size
    return int(total // max(1, group.num_rows))


def _checked(batch: Any) -> Any:
    batch.validate(full=True)
    _check(sum(map(_python_bytes, batch.columns)))
    return batch


def _check(size: int) -> None:
    if size > MAX_BYTES:
        raise TraceError(
            f"a record batch is longer than {MAX_BYTES >> 20:,} MB, unpacked, the limit; write JSON Lines, one record per line"
        )


def _python_bytes(array: Any) -> int:
    """Return the least size of the values of an array as objects, in which what is stored once may stand often."""
    kind = str(array.type).partition("<")[0].partition("[")[0]
    size = len(array) * _REFERENCE_BYTES
    if kind == "extension":
        return _python_bytes(array.storage)
    if kind == "dictionary":
        values = array.dictionary
        if values.type.num_fields:
            return size + _python_bytes(values) * len(array)
        lengths = _text_lengths(values)
        return size if lengths is None else size + (lengths.take(array.indices).sum().as_py() or 0)
    if kind in ("run_end_encoded", "list_view", "large_list_view"):
        return size + _python_bytes(array.values) * len(array)
    if kind == "map":
        return size + _python_bytes(array.keys) + _python_bytes(array.items)
    if kind in ("list", "large_list", "fixed_size_list"):
        return size + _python_bytes(array.values)
    if kind == "struct":
        return size + sum(_python_bytes(array.field(number)) for number in range(array.type.num_fields))
    lengths = _text_lengths(array)
    return size + (int(array.nbytes) if lengths is None else lengths.sum().as_py() or 0)


def _text_lengths(array: Any) -> Any:
    """Return the lengths of texts or bytes; ``None`` for values of a fixed size."""
    kind = str(array.type)
    if kind in ("string_view", "binary_view") and len(array):  # each view, of 16 bytes, begins with its length
        pyarrow: Any = import_module("pyarrow")
        views = memoryview(array.buffers()[1]).cast("B").cast("i")
        lengths = views[4 * array.offset : 4 * (array.offset + len(array)) : 4]
        return pyarrow.array(lengths.tolist(), "int64")
    if kind not in ("string", "large_string", "binary", "large_binary"):
        return None
    return import_module("pyarrow.compute").binary_length(array)


def _unpacked_bytes(metadata: bytes, body: Any) -> int:
    """Return the size of the buffers in a message of Arrow's stream: each compressed one begins with its own."""
    message = _Table(metadata, *struct.unpack_from("<I", metadata))
    header = message.table(2)
    if header is not None and message.byte(1) == _DICTIONARY_BATCH:
        header = header.table(1)
    elif header is None or message.byte(1) != _RECORD_BATCH:
        return 0
    if header is None or header.table(3) is None:  # not compressed
        return 0 if body is None else int(body.size)
    at, total = header.target(2), 0
    for number in range(struct.unpack_from("<I", metadata, at)[0] if at else 0):
        start, length = struct.unpack_from("<qq", metadata, at + 4 + number * 16)
        if length >= 8:
            (size,) = struct.unpack_from("<q", body, start)
            total += length if size == -1 else size
    return total


class _Table:
    """A table of FlatBuffers, in which Arrow's messages are written: its fields by number."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content, self._at = content, at

    def _field(self, number: int) -> int:
        (back,) = struct.unpack_from("<i", self._content, self._at)
        start = self._at - back
        (size,) = struct.unpack_from("<H", self._content, start)
        slot = 4 + 2 * number
        offset = struct.unpack_from("<H", self._content, start + slot)[0] if slot < size else 0
        return self._at + offset if offset else 0

    def byte(self, number: int) -> int:
        return self._content[at] if (at := self._field(number)) else 0

    def target(self, number: int) -> int:
        """Return where the vector or table that a field points to begins; 0 if the field is absent."""
        at = self._field(number)
        return at + int(struct.unpack_from("<I", self._content, at)[0]) if at else 0

    def table(self, number: int) -> "_Table | None":
        at = self.target(number)
        return _Table(self._content, at) if at else None


def page_sizes(stream: IO[bytes], start: int, length: int) -> Iterator[int]:
    """Yield the unpacked size of each page in a column chunk of Parquet, by its start and its packed length."""
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

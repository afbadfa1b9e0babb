"""The records of a file in any container: lines, objects, the rows of a table, or a document."""

from collections.abc import Generator, Iterable, Iterator

from judgekit.errors import TraceError
from judgekit.formats.columns import Columns
from judgekit.formats.exports import MORE_PAGES, read_page
from judgekit.formats.files import File, FileRecord
from judgekit.formats.readers.base import as_records
from judgekit.formats.tables import csv_rows, parquet_rows


def records_in(file: File, columns: Columns, *, requires_columns: bool = True) -> Generator[FileRecord]:
    """Yield the records of a file, with columns renamed and pages unpacked."""
    records: Iterator[FileRecord]
    if file.container == "csv":
        records = csv_rows(file, columns)
    elif file.container == "parquet":
        records = parquet_rows(file, columns)
    elif file.container == "archive":
        records = unpaged(file.archived())
    elif file.container == "lines":
        records = unpaged(map(file.parsed, file.lines()))
    else:
        records = unpaged(_in_document(file))
    if columns.names:
        if file.container not in ("csv", "parquet"):
            records = columns.rows(records)
        if requires_columns:
            records = columns.required(file.path, records)
    yield from records


def _in_document(file: File) -> Iterator[FileRecord]:
    document = file.document() if file.container == "document" else None
    if document is None:
        yield from map(file.parsed, file.objects())
    elif rows := as_records(document.parsed()):
        yield from (FileRecord(None, row) for row in rows)
    else:
        raise TraceError("contains no rows", path=file.path)


def unpaged(records: Iterable[FileRecord]) -> Iterator[FileRecord]:
    """Yield records, unpacking pages. Ends with an error if the last page is not the final one."""
    last: FileRecord | None = None
    for record in records:
        page = None if isinstance(record.value, TraceError) else read_page(record.value)
        if page is None:
            yield record
        else:
            last = record if page.has_more else None
            yield from (FileRecord(record.line_number, value) for value in page.records)
    if last is not None:
        yield FileRecord(last.line_number, TraceError(MORE_PAGES))

"""Tables of dataset rows: CSV, Parquet and Arrow."""

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time
from functools import cache
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from itertools import chain
from typing import Any, cast

from pydantic import JsonValue

from judgekit.errors import TraceError, count_text
from judgekit.formats.arrow_batches import record_batches
from judgekit.formats.columns import Columns
from judgekit.formats.compression import bounded_lines
from judgekit.formats.files import File, FileRecord, decode_error_text, parse_json
from judgekit.traces.sample import MEASUREMENT_FIELDS

_OF_PROMPTFOO = ["Status", "Score", "Named Scores"]
"""Consecutive columns of promptfoo's tables."""

STRUCTURES = {
    *("documents", "fields", "metadata", "ranking", "reference_contexts", "reference_tool_calls", "reference_topics"),
    *("references", "results", "retrieved_contexts"),
}
"""Columns whose cells hold JSON."""
NUMBERS = {*MEASUREMENT_FIELDS, "prediction_score"}
"""Columns whose cells hold numbers."""
_PYTHON = re.compile(r"\s*[\[{(]+'")
"""The beginning of a list or object of texts that Python printed instead of writing JSON."""
_FRAME = '; write spans of Phoenix with spans.to_json("spans.jsonl", orient="records", lines=True)'
_HINTS = {
    "unexpected end": "a quote that is opened in this row is never closed",
    "new-line character": "a carriage return outside quotes; lines end in \\n or \\r\\n",
}


def csv_rows(file: File, columns: Columns) -> Iterator[FileRecord]:
    """Yield the rows below the header. The delimiter is the candidate that the header has most of, outside quotes.

    A cell is text, except in columns of `STRUCTURES` and `NUMBERS`. An empty cell is a missing value, except that an
    empty response is a response. Rows with only empty cells are skipped, and a column without a name is named by its
    number, ``column 1``. A table without rows, with two columns of one name, or of promptfoo is an error.
    """
    broken: list[TraceError] = []
    with file.open() as stream:
        lines = _text(bounded_lines(stream), file.encoding, broken)
        before, first = next(((at, line) for at, line in enumerate(lines) if line.strip()), (0, ""))
        delimiter = max(",;\t", key=re.sub('"[^"]*("|$)', "", first).count)
        rows = _csv().reader(chain([first], lines), delimiter=delimiter, strict=True)
        header = _next(rows, broken)
        if isinstance(header, TraceError):
            raise TraceError(header.problem, path=file.path, line=before + 1)
        columns_found = [name.strip() or f"column {number}" for number, name in enumerate(header or (), 1)]
        if any(columns_found[at : at + 3] == _OF_PROMPTFOO for at in range(len(columns_found))):
            problem = "is a table of promptfoo, without prompts and assertions; write promptfoo eval -o results.json"
            raise TraceError(problem, path=file.path)
        try:
            names = columns.renamed(columns_found)
        except TraceError as error:
            hint = _FRAME if "'context.span_id'" in error.problem else ""
            raise TraceError(error.problem + hint, path=file.path, line=before + 1) from error
        read = [_CELLS.get(name, lambda cell: cell or None) for name in names]
        if delimiter == ";":  # the comma is the decimal separator
            read = [_comma_number if read_cell is _number else read_cell for read_cell in read]
        count = 0
        line = before + rows.line_num + 1
        while (cells := _next(rows, broken)) is not None:
            if isinstance(cells, TraceError):
                value: JsonValue | TraceError = cells
            elif len(cells) != len(columns_found):
                size = count_text(len(cells), "cell")
                value = TraceError(f"has {size}, but the first row names {len(columns_found)} columns")
            else:
                value = _row(names, read, cells)
            if isinstance(cells, TraceError) or any(cells):
                yield FileRecord(line, value)
                count += 1
            line = before + rows.line_num + 1
    if not count:
        raise TraceError("contains no rows", path=file.path)


@cache
def _csv() -> Any:
    """Return a private instance of Python's csv parser, in which a cell may hold a whole conversation.

    The limit of a cell's length is global state of the module, and that of the shared instance belongs to the user.
    """
    spec = cast("ModuleSpec", find_spec("_csv"))
    module = module_from_spec(spec)
    cast("Loader", spec.loader).exec_module(module)
    csv: Any = module
    csv.field_size_limit(2**31 - 1)
    return csv


def _text(stream: Iterable[bytes], encoding: str, broken: list[TraceError]) -> Iterator[str]:
    """Yield the lines of a file. Errors of invalid lines go to ``broken``; their cells still end at the right place."""
    for number, line in enumerate(stream):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            broken.append(TraceError(decode_error_text(error)))
            text = line.decode("latin-1")
        yield text if number else text.lstrip("\ufeff")


def _next(rows: Iterator[list[str]], broken: list[TraceError]) -> list[str] | TraceError | None:
    cells: list[str] | TraceError | None
    try:
        cells = next(rows, None)
    except _csv().Error as error:
        hint = next((hint for text, hint in _HINTS.items() if text in str(error)), str(error))
        cells = TraceError(f"not CSV: {hint}")
    if broken:
        cells = broken[0]
        broken.clear()
    return cells


_Cell = Callable[[str], JsonValue]


def _row(names: Sequence[str], read: Sequence[_Cell], cells: Sequence[str]) -> JsonValue | TraceError:
    row: dict[str, JsonValue] = {}
    for name, read_cell, cell in zip(names, read, cells, strict=True):
        try:
            value = read_cell(cell)
        except ValueError as error:
            if _PYTHON.match(cell):
                return TraceError(f"{name}: not JSON but Python's repr; write the table with to_jsonl() instead")
            return TraceError(f"{name}: not JSON: {error}")
        if value is not None:
            row[name] = value
    return row


def _number(cell: str) -> JsonValue:
    """Return a number. Other text is kept, for the schema to reject."""
    try:
        return int(cell) if cell.isdecimal() else float(cell)
    except ValueError:
        return cell or None


def _comma_number(cell: str) -> JsonValue:
    value = _number(cell.replace(",", "."))
    return value if isinstance(value, int | float) else cell or None


_CELLS: dict[str, _Cell] = {
    **dict.fromkeys(STRUCTURES, lambda cell: parse_json(cell.encode()) if cell else None),
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(("response", "output"), str),
}


def parquet_rows(file: File, columns: Columns) -> Iterator[FileRecord]:
    """Yield the rows of a Parquet or Arrow file.

    Lists, structs and maps are kept; values without a JSON type (times, decimals, bytes) become text. A null field of a
    nested struct is left out: all rows share the fields of a struct, so null may stand for a field that a row lacks.
    """
    empty = True
    with file.open() as stream:
        try:
            schema, batches = record_batches(stream)
            names = columns.renamed(schema.names)
            for batch in batches:
                for values in zip(*(map(_json, _values(column)) for column in batch.columns), strict=True):
                    empty = False
                    yield FileRecord(None, dict(zip(names, values, strict=True)))
        except TraceError as error:
            raise TraceError(error.problem, path=file.path) from error
        except (ValueError, NotImplementedError, LookupError, OverflowError, struct.error) as error:
            raise TraceError(f"cannot be read: {error}", path=file.path) from error
    if empty:
        raise TraceError("contains no rows", path=file.path)


def _values(column: Any) -> Any:
    """Return the values in Python, whose times have no nanoseconds. Maps become objects."""
    kind = str(column.type)
    if "map<" in kind:  # the option makes pyarrow slower
        return column.to_pylist(maps_as_pydicts="strict")
    return (column.cast("string") if kind.startswith(("timestamp[ns", "time64[ns")) else column).to_pylist()


def _json(value: object) -> JsonValue:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {str(key): _json(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_json(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)

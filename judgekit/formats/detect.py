"""Detection of the format of a recording, and a count of its records where that is quick."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from pydantic import JsonValue
from pydantic_core import from_json

from judgekit.errors import TraceError
from judgekit.formats.columns import DETECTION_ROWS
from judgekit.formats.files import FileRecord
from judgekit.formats.readers import FALLBACKS, READERS, installed_readers, reader_named
from judgekit.formats.readers.base import Reader, first_record
from judgekit.formats.score_records import AUDIT_HINT, score_system
from judgekit.formats.unread import column_option
from judgekit.formats.values import as_object
from judgekit.locations import Location, Url


def detect(value: JsonValue) -> Reader:
    """Return the only reader that recognizes a parsed file or one line of a JSONL file, or say which are close."""
    if (reader := _only_fitting(value)) is not None:
        return reader
    if (system := score_system(first_record(value))) is not None:
        raise TraceError(f"contains scores of {system} and no conversations; {AUDIT_HINT}")
    keys, row = _keys(value), as_object(first_record(value))
    flat = bool(row) and not any(isinstance(field, dict | list) for field in row.values())
    shared_keys = {
        reader.shape: len(keys & set(re.findall(r'(?<!: )"(\w+)"', reader.shape))) + (flat and reader.name == "rows")
        for reader in (*READERS.values(), *installed_readers())
    }
    near = sorted(filter(shared_keys.__getitem__, shared_keys), key=shared_keys.__getitem__, reverse=True)
    hint = (
        "".join(f"\n  {shape}" for shape in near[:5])
        or f" {', '.join(READERS)} (judgekit formats shows what they look like); name a reader of your own with --format"
    )
    raise TraceError(
        f"unknown format: found {_value_text(value)}{_format_hint(value)}. {'Closest' if near else 'Known'} formats:{hint}"
    )


def _format_hint(value: JsonValue) -> str:
    """Return a hint for a record of unknown format: the field that holds its messages, or its records."""
    record = value if isinstance(value, dict) else {}
    for name, held in record.items():
        first = first_record(held) if isinstance(held, list) else None
        if isinstance(first, dict) and "role" in first and name != "messages":
            return f"; if {name!r} holds the conversation: {column_option(name, 'messages')}"
        if isinstance(first, dict) and len(record) == 1:
            records = f".{name}[]" if name.isidentifier() else f".{json.dumps(name)}[]"
            return f"; if {name!r} holds the records: jq -c {shlex.quote(records)} FILE > records.jsonl"
    return ""


def detect_first(path: Location, records: Iterable[FileRecord]) -> Reader:
    """Return the format of the first records of a file: the first that is not a fallback, or the log they belong to."""
    failures: list[TraceError] = []
    fallbacks: list[str] = []
    for record in records:
        try:
            reader = detect(record.parsed())
        except TraceError as error:
            problem = error.problem
            if problem.startswith("not JSON: the text ends"):
                problem += "; if the file is a single JSON document, give it the suffix .json"
            failures.append(TraceError(problem, path=path, line=record.line_number))
            continue
        if reader.name not in FALLBACKS:
            return reader
        fallbacks.append(reader.name)
    if not fallbacks:
        raise failures[0] if failures else TraceError("contains no conversations", path=path)
    return READERS[min(fallbacks, key=FALLBACKS.index)]


def detect_document(path: Location, document: JsonValue) -> Reader:
    """Return the format of a document. A list of records is treated like lines, since its first may say little."""
    records = [FileRecord(None, value) for value in document[:DETECTION_ROWS]] if isinstance(document, list) else []
    try:
        reader = detect(document)
    except TraceError:
        with suppress(TraceError):
            if records:
                return detect_first(path, records)
        raise
    if records and reader.name in FALLBACKS and reader.records(document) == document:
        return detect_first(path, records)
    return reader


class RecordReaders:
    """The readers of the records of one file, which may differ in format.

    A record is first offered to the reader of its file. But a fallback also recognizes records of other formats, so it
    only takes those with the fields of an earlier record that no other reader recognized.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._is_fallback = reader.name in FALLBACKS
        self._fields: set[frozenset[str]] = set()

    def reader_of(self, record: JsonValue) -> Reader:
        """Return the reader of a record: that of the file if no other recognizes it better. Several are an error."""
        fields = frozenset(record) if self._is_fallback and isinstance(record, dict) else frozenset[str]()
        try:
            if (not self._is_fallback or fields in self._fields) and self._reader.recognizes(record):
                return self._reader
        except RecursionError:
            raise TraceError("nested too deeply") from None
        reader = _only_fitting(record)
        if reader is not None and reader.joins_lines:
            problem = f"is a record of {reader.name}, whose records belong together"
            raise TraceError(f"{problem}; move them to a file of their own")
        if reader is self._reader and len(self._fields) < 1_000:
            self._fields.add(fields)
        return reader or self._reader


def _only_fitting(value: JsonValue) -> Reader | None:
    """Return the only reader that recognizes a value. Fallbacks come last."""
    own = [reader for reader in READERS.values() if reader.name not in FALLBACKS]
    try:
        fitting = [reader for reader in (*installed_readers(), *own) if reader.recognizes(value)]
        if not fitting:
            return next((READERS[name] for name in FALLBACKS if READERS[name].recognizes(value)), None)
    except RecursionError:
        raise TraceError("nested too deeply") from None
    if len(fitting) > 1:
        names = " or ".join(reader.name for reader in fitting)
        raise TraceError(f"may be {names}: found {_value_text(value)}; choose one (format=, --format)")
    return fitting[0]


def _keys(value: JsonValue) -> set[str]:
    return _keys(value[0]) if isinstance(value, list) and value else set(as_object(value))


def _value_text(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_value_text(value[0])}" if value else "an empty list"
    return f"{value!r:.80}"


def count_records(paths: Sequence[Location], format: str | None = None) -> int | None:
    """Return the number of records in JSONL files; ``None`` for others, for objects, and for logs of many records."""
    files = [path for path in paths if not isinstance(path, Url) and path.suffix == ".jsonl" and path.is_file()]
    if not files or len(files) < len(paths):
        return None
    with files[0].open("rb") as file:
        try:
            reader = detect(from_json(file.readline())) if format is None else reader_named(format)
        except (ValueError, TraceError):
            return None
    if reader.joins_lines:
        return None
    lines = 0
    for path in files:
        with path.open("rb") as file:
            lines += sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 1 << 20), b""))
    return lines

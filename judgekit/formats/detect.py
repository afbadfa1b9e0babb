"""Detection of a recording's format."""

import json
import re
import shlex
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.readers import FALLBACKS, READERS, installed_readers
from judgekit.formats.readers.base import Reader, first_record
from judgekit.formats.score_records import AUDIT_HINT, score_system
from judgekit.formats.unread import column_option
from judgekit.formats.values import as_object


def detect(value: JsonValue) -> Reader:
    """Return the reader that recognizes a parsed file or one line of a JSONL file.

    Raises:
        TraceError: No reader or several recognize it. The error says what was found and which formats are close.
    """
    if (reader := _only(_fitting(value), value)) is not None:
        return reader
    if (system := score_system(first_record(value))) is not None:
        raise TraceError(f"contains scores of {system} and no conversations; {AUDIT_HINT}")
    keys, flat = _keys(value), _is_flat(value)
    near = [
        reader.shape
        for reader in (*READERS.values(), *installed_readers())
        if (flat and reader.name == "rows") or keys & set(re.findall(r'"(\w+)"', reader.shape))
    ]
    hint = (
        "".join(f"\n  {shape}" for shape in near)
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


def reader_for_record(record: JsonValue, known: Reader) -> Reader:
    """Return the reader of one record in a file of the format ``known``, or another reader that recognizes it better.

    Raises:
        TraceError: Several other readers recognize the record, or one whose records belong together.
    """
    if known.recognizes(record):
        return known
    reader = _only(_fitting(record), record)
    if reader is not None and reader.joins_lines:
        raise TraceError(
            f"is a record of {reader.name}, whose records belong together; move them to a file of their own"
        )
    return reader or known


def _fitting(value: JsonValue) -> Sequence[Reader]:
    fitting = [
        reader
        for reader in (*installed_readers(), *READERS.values())
        if reader.name not in FALLBACKS and reader.recognizes(value)
    ]
    if fitting:
        return fitting
    fallback = next((READERS[name] for name in FALLBACKS if name in READERS and READERS[name].recognizes(value)), None)
    return [] if fallback is None else [fallback]


def _only(fitting: Sequence[Reader], value: JsonValue) -> Reader | None:
    if len(fitting) > 1:
        names = " or ".join(reader.name for reader in fitting)
        raise TraceError(f"may be {names}: found {_value_text(value)}; choose one (format=, --format)")
    return next(iter(fitting), None)


def _keys(value: JsonValue) -> set[str]:
    """Return the keys of an object, or of the first object in a list."""
    return _keys(value[0]) if isinstance(value, list) and value else set(as_object(value))


def _is_flat(value: JsonValue) -> bool:
    """Return whether a value may be a dataset row: an object without nested values, or a list that begins with one."""
    row = as_object(first_record(value))
    return bool(row) and not any(isinstance(item, dict | list) for item in row.values())


def _value_text(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_value_text(value[0])}" if value else "an empty list"
    return f"{value!r:.80}"

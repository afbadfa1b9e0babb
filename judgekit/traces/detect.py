"""Which format a recording has."""

import re

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.readers import FALLBACKS, READERS
from judgekit.traces.readers.foreign import Reader, first_of


def detect(value: JsonValue) -> Reader:
    """The reader that recognises a parsed file, or one line of a JSONL file.

    Raises:
        TraceError: None does, or more than one; says what was seen, and which formats it may be.
    """
    fitting = [reader for reader in READERS.values() if reader.recognises(value)]
    fitting = [reader for reader in fitting if reader.name not in FALLBACKS] or fitting[:1]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = " or ".join(reader.name for reader in fitting)
        raise TraceError(f"may be {names}: found {_seen(value)}; say which (format=, --format)")
    keys, flat = _keys(value), _is_flat(value)
    near = [
        reader.shape
        for reader in READERS.values()
        if (flat and reader.name == "rows") or keys & set(re.findall(r'"(\w+)"', reader.shape))
    ]
    hint = (
        "".join(f"\n  {shape}" for shape in near)
        or f" {', '.join(READERS)} (judgekit formats shows what they look like)"
    )
    raise TraceError(f"no known format: found {_seen(value)}. {'Nearest' if near else 'Known'} are:{hint}")


def _keys(value: JsonValue) -> set[str]:
    """The keys of an object, or of the first in a list."""
    if isinstance(value, list):
        return _keys(value[0]) if value else set()
    return set(value) if isinstance(value, dict) else set()


def _is_flat(value: JsonValue) -> bool:
    """Whether it may be a row of a dataset: an object, or the first in a list, without any structure in it."""
    row = first_of(value)
    return isinstance(row, dict) and bool(row) and not any(isinstance(item, dict | list) for item in row.values())


def _seen(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_seen(value[0])}" if value else "an empty list"
    return f"{value!r:.80}"

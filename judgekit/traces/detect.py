"""Which format a recording has."""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.readers import READERS
from judgekit.traces.readers.foreign import Reader


def detect(value: JsonValue) -> Reader:
    """The reader that recognises a parsed file, or one line of a JSONL file.

    Raises:
        TraceError: None does; says what was seen and what was tried.
    """
    for reader in READERS.values():
        if reader.recognises(value):
            return reader
    tried = "".join(f"\n  {reader.shape}" for reader in READERS.values())
    raise TraceError(f"no known format: found {_seen(value)}. Tried:{tried}")


def _seen(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_seen(value[0])}" if value else "an empty list"
    return f"{value!r:.80}"

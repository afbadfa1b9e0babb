"""The number of conversations in files, where it can be found quickly."""

from collections.abc import Sequence
from functools import partial

from pydantic_core import from_json

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers import reader_named
from judgekit.locations import Location, Url


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

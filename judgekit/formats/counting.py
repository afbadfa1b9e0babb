"""The number of conversations in files, where it can be found quickly."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic_core import from_json

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers import reader_named


def count_records(paths: Sequence[Path], format: str | None = None) -> int | None:
    """Return the number of records in JSONL files; ``None`` for other files and for logs of many records."""
    if not paths or any(path.suffix != ".jsonl" or not path.is_file() for path in paths):
        return None
    with paths[0].open("rb") as file:
        try:
            reader = detect(from_json(file.readline())) if format is None else reader_named(format)
        except (ValueError, TraceError):
            return None
    if reader.joins_lines:
        return None
    lines = 0
    for path in paths:
        with path.open("rb") as file:
            lines += sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 1 << 20), b""))
    return lines

"""How many conversations files hold, where that is quickly known."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic_core import from_json

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers import reader_named


def records_in(paths: Sequence[Path], format: str | None = None) -> int | None:
    """Return how many records JSONL files hold; ``None`` for other files, and where many records make one conversation."""
    if not paths or any(path.suffix != ".jsonl" or not path.is_file() for path in paths):
        return None
    with paths[0].open("rb") as file:
        try:
            reader = detect(from_json(file.readline())) if format is None else reader_named(format)
        except (ValueError, TraceError):
            return None
    if reader.gathers:
        return None
    lines = 0
    for path in paths:
        with path.open("rb") as file:
            lines += sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 1 << 20), b""))
    return lines

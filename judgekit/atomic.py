"""Atomic writing: a file is replaced when all of the new one is there."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO


@contextmanager
def replaced(path: Path) -> Generator[IO[bytes]]:
    """Yield a new file that takes the place of the one at ``path`` at the end; a pipe or a device is written directly.

    Until then, and after an error, the old file stays as it is, so that others can read it meanwhile.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    part = path.with_name(f".part-{token_hex(4)}-{path.name}")  # two may write at once: the last one stays
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

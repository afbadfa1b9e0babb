"""Atomic writing: a file, or an object in a bucket, is replaced once the new one is complete."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import NamedTemporaryFile
from typing import IO

from judgekit.locations import Location, Url


@contextmanager
def atomic_write(path: Location) -> Generator[IO[bytes]]:
    """Yield a new file that replaces the one at ``path`` at the end; a pipe or a device is written directly.

    Until then, and after an error, the old file stays as it is, so that others can read it. What replaces an object in
    a bucket is a temporary file until it is uploaded.
    """
    if isinstance(path, Url):
        path.check_writable()
        with NamedTemporaryFile(prefix="judgekit-") as new:
            yield new
            new.flush()
            path.upload(Path(new.name))
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    part = path.with_name(f".part-{token_hex(4)}-{path.name}")  # two processes may write at once: the last one wins
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

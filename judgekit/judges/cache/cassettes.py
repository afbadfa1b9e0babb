"""Cassettes: JSONL files of replies, to commit and replay."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from judgekit.atomic import atomic_write
from judgekit.errors import StoreError, validation_message
from judgekit.judges.cache.replies import RecordedReply
from judgekit.judges.cache.store import RecordedDigests, recorded_digests
from judgekit.judges.request import Reply


class Cassette:
    """The replies of a cassette, which is only read.

    Raises:
        StoreError: The cassette cannot be read, or has two replies to one request.
    """

    def __init__(self, path: Path) -> None:
        self._lines: dict[str, RecordedReply] = {}
        numbers, number = dict[str, int](), 0
        try:
            with path.open(encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    recorded = RecordedReply.model_validate_json(line)
                    if recorded.key and recorded.reply is not None:
                        first = self._lines.setdefault(recorded.key, recorded)
                        if first.reply != recorded.reply:
                            raise StoreError(
                                f"{path}, lines {numbers[recorded.key]} and {number}: two replies to the same"
                                " request, perhaps from a merge of two recordings; delete one of them"
                            )
                        numbers.setdefault(recorded.key, number)
                    elif recorded.note is None:
                        lacking = "key" if recorded.key == "" else "reply"
                        raise StoreError(f"{path}, line {number}: {lacking} is missing")
        except ValidationError as error:
            raise StoreError(f"{path}, line {number}: {validation_message(error)}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        line = self._lines.get(key)
        return line.reply if line else None

    def recorded(self) -> Iterable[RecordedReply]:
        """Return the replies with their requests."""
        return self._lines.values()

    async def digests(self) -> RecordedDigests:
        """Return the hashed parts of all requests, each with the name of its prompt."""
        return recorded_digests(self._lines.values())

    async def aclose(self) -> None:
        """Do nothing: no file is open."""


def write_cassette(path: Path, lines: Iterable[RecordedReply]) -> int:
    """Write a cassette, which replaces an older one once it is complete, and return its number of lines.

    Raises:
        StoreError: The cassette cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            raise StoreError(f"{path.resolve()}: cannot be written: not a file; name another")
        with atomic_write(path) as file:
            count = write_cassette_lines(file, lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path.resolve()}: cannot be written: {error}") from error
    return count


def write_cassette_lines(file: IO[bytes], lines: Iterable[RecordedReply]) -> int:
    """Write the lines of a cassette, and return their number."""
    count = 0
    for line in lines:
        text = json.dumps(line.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
        file.write(f"{_visible(text)}\n".encode())
        count += 1
    return count


def _visible(text: str) -> str:
    """Return JSON with characters escaped that would control a terminal or break a line in an editor."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)

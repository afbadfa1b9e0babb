"""Readers that are not part of judgekit, which may raise anything."""

import logging
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, error_with_location, short_repr
from judgekit.formats.readers.base import Reader
from judgekit.traces.sample import Sample

Read = TypeVar("Read")
_log = logging.getLogger("judgekit")


class OwnReader:
    """A reader of an installed package or of your own code.

    Whatever it raises is a `TraceError` with the exception and its line, and what it makes is a `Sample`. A record that it
    cannot look at, such as a list where it expects an object, is not of its format; this is logged once.
    """

    def __init__(self, reader: Reader) -> None:
        self.name, self.shape, self.joins_lines = reader.name, reader.shape, reader.joins_lines
        self._reader = reader

    def recognizes(self, value: JsonValue) -> bool:
        """Return whether a parsed file, or one line of a JSONL file, has this format."""
        try:
            return bool(self._attempt(lambda: self._reader.recognizes(value)))
        except (TraceError, ValidationError) as error:
            _log_once(f"the format {self.name} cannot tell whether a record has its form: {error}")
            return False

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the conversations in a parsed file, or in one line of a JSONL file."""
        return self._attempt(lambda: list(self._reader.records(document)))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Return one conversation as a sample."""
        sample = self._attempt(lambda: self._reader.sample(record, index))
        if not isinstance(sample, Sample):  # pyright: ignore[reportUnnecessaryIsInstance] - users may return anything
            raise TraceError(f"the format {self.name} returned {short_repr(sample)} instead of a Sample")
        return sample

    def _attempt(self, read: Callable[[], Read]) -> Read:
        try:
            return read()
        except (TraceError, ValidationError, RecursionError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise TraceError(f"the format {self.name} raised {error_with_location(error)}") from error


_log_once = cache(_log.warning)

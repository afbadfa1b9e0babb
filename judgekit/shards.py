"""Shards: the parts of recordings that processes score independently of each other."""

import re
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from judgekit.errors import ConfigError

_TEXT = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class ByteRange(NamedTuple):
    """The offsets from ``start`` to before ``stop``."""

    start: int
    stop: float


class LineStart(NamedTuple):
    """The start of a line in a file: its offset, and the numbers of lines and of records before it."""

    offset: int = 0
    lines: int = 0
    records: int = 0


class ShardStart(NamedTuple):
    """The start of a shard. Nothing before it has to be read.

    Attributes:
        file: The place of its first file among all files.
        records: The number of records in the files before.
        line: Where it begins in its first file.
    """

    file: int = 0
    records: int = 0
    line: LineStart = LineStart()


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts, by its index from 0. By default, it is everything."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard that a text such as ``3/16`` names.

        Raises:
            ConfigError: It names none.
        """
        found = _TEXT.fullmatch(text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(f"shard {text!r}: expected NUMBER/COUNT, from 1/16 to 16/16 for 16 shards")
        return cls(int(found[1]) - 1, int(found[2]))

    def byte_range(self, size: int) -> ByteRange:
        """Return the share of ``size`` bytes. The last shard has no end, so that each offset is in one shard."""
        first, after = (-(-index * size // self.count) for index in (self.index, self.index + 1))
        return ByteRange(first, inf if self.index + 1 == self.count else after)

    def __str__(self) -> str:
        return f"{self.index + 1}/{self.count}"


EVERYTHING = Shard()

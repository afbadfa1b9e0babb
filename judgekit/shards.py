"""Shards: the parts of recordings that processes score independently of each other."""

import re
from dataclasses import dataclass

from judgekit.errors import ConfigError

_TEXT = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts, by its index from 0: every record whose number leaves it as the rest. By default, all."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard that a text such as ``3/16`` names."""
        match = _TEXT.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigError(f"shard {text!r}: expected NUMBER/COUNT, from 1/16 to 16/16 for 16 shards")
        return cls(int(match[1]) - 1, int(match[2]))

    def __contains__(self, number: int) -> bool:
        """Return whether the record with this number is in the shard."""
        return number % self.count == self.index

    def __str__(self) -> str:
        return f"{self.index + 1}/{self.count}"


EVERYTHING = Shard()

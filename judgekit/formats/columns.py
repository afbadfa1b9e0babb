"""Columns of dataset rows under the names that they have here."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from pydantic import JsonValue

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.files import Record

ROWS_LOOKED_AT = 100


@dataclass(frozen=True)
class Columns:
    """What columns are called in the files, and what here; a column may stand in any of the files read together.

    Raises:
        ConfigError: Two columns are to have one name.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    late: bool = False
    """Whether there are more files, so that only at their end it is known whether a column is missing."""
    seen: dict[str, None] = field(default_factory=dict[str, None], init=False)

    def __post_init__(self) -> None:
        if (twice := _twice(self.names.values())) is not None:
            these = " and ".join(repr(theirs) for theirs, ours in self.names.items() if ours == twice)
            raise ConfigError(f"columns: {these} are both to be called {twice!r}")

    def renamed(self, found: Iterable[str]) -> list[str]:
        """The names of a row's columns, in their order, as they are here.

        Raises:
            TraceError: Two columns have one name.
        """
        found = list(found)
        if (twice := _twice(found)) is not None:
            raise TraceError(f"two columns are called {twice!r}")
        self.seen.update(dict.fromkeys(found))
        ours = [self.names.get(name, name) for name in found]
        if (twice := _twice(ours)) is not None:
            theirs = next(name for name in found if self.names.get(name) == twice)
            raise TraceError(
                f"the column {theirs!r} is to be called {twice!r}, and there is a column {twice!r} already"
            )
        return ours

    def row(self, value: JsonValue) -> JsonValue:
        """A JSON object with its keys renamed; anything else as it is.

        Raises:
            TraceError: See `renamed`.
        """
        return dict(zip(self.renamed(value), value.values(), strict=True)) if isinstance(value, dict) else value

    def rows(self, records: Iterable[Record]) -> Iterator[Record]:
        """Records with their keys renamed."""
        for record in records:
            try:
                value = record.value if isinstance(record.value, TraceError) else self.row(record.value)
            except TraceError as error:
                value = error
            yield Record(record.line, value)

    def required(self, path: Path, records: Iterator[Record]) -> Iterator[Record]:
        """The same records, once every column that is renamed has been seen in the first hundred, or in another file.

        Raises:
            TraceError: A column has not.
        """
        first = list(islice(records, ROWS_LOOKED_AT))
        if not self.late:
            self.must_be_seen(path)
        yield from chain(first, records)

    def must_be_seen(self, path: Path) -> None:
        """Checks that every column that is renamed is there.

        Raises:
            TraceError: A column is not.
        """
        for name in self.names:
            if name not in self.seen:
                raise TraceError(str(ConfigError.unknown("column", name, self.seen)), path=path)


def _twice(names: Iterable[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)

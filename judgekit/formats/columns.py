"""Renamed columns of dataset rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

from pydantic import JsonValue

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.files import FileRecord
from judgekit.locations import Location

DETECTION_ROWS = 100


@dataclass(frozen=True)
class Columns:
    """The new names of columns, which all differ. A column may be in any of the files that are read together."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    has_more_files: bool = False
    """Whether there are more files, so that missing columns are only known after the last one."""
    seen: dict[str, None] = field(default_factory=dict[str, None], init=False)

    def __post_init__(self) -> None:
        if len(set(self.names.values())) < len(self.names):
            twice = _first_duplicate(self.names.values())
            these = " and ".join(repr(theirs) for theirs, ours in self.names.items() if ours == twice)
            raise ConfigError(f"columns: {these} are both renamed to {twice!r}")

    def renamed(self, columns: Iterable[str]) -> list[str]:
        """Return the column names of a row in order, renamed."""
        columns = list(columns)
        if (twice := _first_duplicate(columns)) is not None:
            raise TraceError(f"two columns are named {twice!r}")
        self.seen.update(dict.fromkeys(columns))
        ours = [self.names.get(name, name) for name in columns]
        if (twice := _first_duplicate(ours)) is not None:
            theirs = next(name for name in columns if self.names.get(name) == twice)
            raise TraceError(f"cannot rename the column {theirs!r} to {twice!r}: there already is a column {twice!r}")
        return ours

    def row(self, value: JsonValue) -> JsonValue:
        """Return a JSON object with its keys renamed, and any other value as it is."""
        return dict(zip(self.renamed(value), value.values(), strict=True)) if isinstance(value, dict) else value

    def rows(self, records: Iterable[FileRecord]) -> Iterator[FileRecord]:
        """Yield records with their keys renamed."""
        for record in records:
            try:
                value = record.value if isinstance(record.value, TraceError) else self.row(record.value)
            except TraceError as error:
                value = error
            yield FileRecord(record.line_number, value)

    def required(self, path: Location, records: Iterator[FileRecord]) -> Iterator[FileRecord]:
        """Yield the records, if every renamed column is in the first hundred or in another file, or else an error."""
        first = list(islice(records, DETECTION_ROWS))
        if not self.has_more_files:
            self.must_be_seen(path)
        yield from chain(first, records)

    def must_be_seen(self, path: Location) -> None:
        """Check that every renamed column exists."""
        for name in self.names:
            if name not in self.seen:
                raise TraceError(str(ConfigError.unknown("column", name, self.seen)), path=path)


def _first_duplicate(names: Iterable[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)

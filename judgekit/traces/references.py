"""References that stand in a file of their own, joined to traces that carry none."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, explain, listed
from judgekit.traces.sample import References, Sample


class Joiner:
    """Joins rows such as ``{"id": "t1", "reference": "..."}`` to samples, and keeps account of what did not fit.

    The key is ``id``, or else the one field that is none of a `Sample`: it names a key in the metadata of the
    sample or its trace, or in what the trace's format has beside, and one row may then join many samples. All rows have the same key.

    Args:
        path: The file the rows come from, for messages.
        rows: Pairs of a line number and a row.

    Raises:
        TraceError: A row that has no key, another key than the first, or an unknown or unfit field.
    """

    def __init__(self, path: Path, rows: Iterator[tuple[int, JsonValue]]) -> None:
        self._path = path
        self._key: str | None = None
        self._references: dict[str, dict[str, object]] = {}
        self._lines: dict[str, list[int]] = {}
        self._met: set[str] = set()
        self._carried = 0
        for line, row in rows:
            try:
                key, value, known = self._split(row)
                checked = Sample.model_validate({"id": value, **known})
            except ValidationError as error:
                raise TraceError(explain(error, row), path=path, line=line) from error
            except ValueError as error:
                raise TraceError(str(error), path=path, line=line) from error
            self._key = key
            self._references[value] = {name: getattr(checked, name) for name in known}
            self._lines.setdefault(value, []).append(line)

    def _split(self, row: JsonValue) -> tuple[str, str, dict[str, JsonValue]]:
        if not isinstance(row, dict):
            raise ValueError(f"expected an object, found {row!r:.80}")
        known = {name: value for name, value in row.items() if name in References.__annotations__}
        keys = [name for name in row if name not in known]
        key = self._key or ("id" if "id" in keys else keys[0] if keys else None)
        if key is None or keys != [key]:
            wanted = "one key" if key is None else f"the key {key!r}"
            message = (
                f"expected {wanted} and references, found the fields {', '.join(map(repr, row))}; "
                f"references are {', '.join(References.__annotations__)}"
            )
            raise ValueError(message)
        return key, str(row[key]), known

    def join(self, sample: Sample) -> Sample:
        """The sample with what its row knows and it does not. Its own references stay."""
        value = self._value(sample)
        if value is None or value not in self._references:
            return sample
        self._met.add(value)
        if len(self._lines[value]) > 1:
            return sample
        known = self._references[value]
        missing = {name: found for name, found in known.items() if getattr(sample, name) in (None, {})}
        self._carried += len(missing) < len(known)
        return Sample.model_validate({**dict(sample), **missing})

    def _value(self, sample: Sample) -> str | None:
        if self._key == "id":
            return sample.id
        places = (sample.metadata, sample.trace.metadata, sample.trace.extra)
        return next((str(place[self._key]) for place in places if self._key in place), None)

    def problems(self) -> Iterator[TraceError]:
        """What did not fit, once all samples have been joined."""
        twice = {value: lines for value, lines in self._lines.items() if len(lines) > 1}
        if twice:
            found = listed(f"{value!r} on lines {', '.join(map(str, lines))}" for value, lines in twice.items())
            yield TraceError(f"keys that stand more than once, none of whose rows was used: {found}", path=self._path)
        if unmatched := [repr(value) for value in self._references if value not in self._met]:
            found = f"{len(unmatched)} references met no sample by {self._key!r}: {listed(unmatched)}"
            yield TraceError(found, path=self._path)
        if self._carried:
            found = f"{self._carried} samples carry references of their own, which were kept"
            yield TraceError(found, path=self._path)

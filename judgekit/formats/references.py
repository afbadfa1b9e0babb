"""References from a separate file, joined to traces that have none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from pydantic import JsonValue

from judgekit.errors import TraceError, count_text, join_limited
from judgekit.formats.files import FileRecord
from judgekit.formats.row_facts import VERBATIM_COLUMNS, extra_fields, make_sample, read_facts, to_text
from judgekit.locations import Location
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import References, Sample

_KNOWN = (*References.__annotations__, "expected_output")


class ReferenceJoiner:
    """A join of rows such as ``{"id": "t1", "reference": "..."}`` with samples, which reports what does not match.

    The key is ``id``, or else ``input``, the text of a trace's first user message. Otherwise it is the one field that
    is not a field of a `Sample` or dataset row: it names a key in the metadata of the sample or its trace, or in the
    trace's ``extra``, and one row may join many samples. So may the ``id`` of a task whose trials are named
    ``task#trial``. All rows have the same key. With ``id`` and ``input``, other columns go into the sample's fields.

    A row that cannot be read, has no key or another key than the first, or has an unknown or invalid field is left out
    and reported.

    Raises:
        TraceError: No row can be used.
    """

    def __init__(self, path: Location, rows: Iterable[FileRecord]) -> None:
        self._path = path
        self._key: str | None = None
        self._references: dict[str, dict[str, object]] = {}
        self._places: dict[str, list[str]] = {}
        self._met: dict[str, set[str | None]] = {}
        self._unknown: dict[str, None] = {}
        self._carried = 0
        self._warnings: list[TraceWarning] = []
        self._unusable: list[TraceError] = []
        for index, (line, row) in enumerate(rows):
            try:
                key, value, facts = self._split(row)
                checked = make_sample(value, facts)
            except TraceError as error:
                number = index if line is None else None
                self._unusable.append(TraceError(error.problem, path=path, index=number, line=line))
                continue
            self._key = key
            self._references[value] = {name: getattr(checked, name) for name in facts}
            self._places.setdefault(value, []).append(f"record {index}" if line is None else f"line {line}")
        if self._unusable and not self._references:
            raise self._unusable[0]

    def _split(self, row: JsonValue | TraceError) -> tuple[str, str, JsonObject]:
        if isinstance(row, TraceError):
            raise row
        if not isinstance(row, dict):
            raise TraceError(f"expected an object, found {row!r:.80}")
        row = {name: value for name, value in row.items() if value is not None}
        keys = [name for name in row if name not in References.__annotations__ and name not in VERBATIM_COLUMNS]
        key = self._key or next((name for name in ("id", "input", *keys) if name in keys), None)
        facts = read_facts(row, self._warnings)
        if key in ("id", "input") and key in keys:
            others = {name: row[name] for name in keys if name not in ("id", "input")}
            return key, to_text(row[key]), {**facts, "fields": {**others, **extra_fields(facts)}} if others else facts
        if key is None or keys != [key]:
            wanted = "one key" if key is None else f"the key {key!r}"
            raise TraceError(
                f"expected {wanted} and references, found the fields {', '.join(map(repr, row))}; "
                f"reference fields are {', '.join(_KNOWN)}"
            )
        return key, to_text(row[key]), facts

    def join(self, sample: Sample) -> Sample:
        """Return the sample with its row's references. Its own references are kept."""
        value = self._value(sample)
        if value is None:
            return sample
        if value not in self._references:
            if len(self._unknown) < 3:
                self._unknown[value] = None
            return sample
        self._met.setdefault(value, set()).add(sample.group)
        if len(self._places[value]) > 1:
            return sample
        references = self._references[value]
        missing = {name: fact for name, fact in references.items() if getattr(sample, name) in (None, {})}
        kept = references.keys() - missing.keys()
        if "fields" in kept:
            fields = cast("JsonObject", references["fields"])
            missing["fields"] = {**fields, **sample.fields}
            if fields.keys().isdisjoint(sample.fields):
                kept.remove("fields")
        self._carried += bool(kept)
        return Sample.model_validate({**dict(sample), **missing})

    def _value(self, sample: Sample) -> str | None:
        if self._key == "id":
            # A trial is named ``task#trial``, if the task also names its group; see `group_name`.
            task, _, trial = sample.id.rpartition("#")
            is_trial = trial.isdecimal() and task and f" {sample.group}".endswith(f" {task}")
            return task if is_trial and task in self._references and sample.id not in self._references else sample.id
        if self._key == "input":
            return next((message.text for message in sample.trace.messages if message.role == "user"), None)
        places = (sample.metadata, sample.trace.metadata, sample.trace.extra)
        return next((to_text(fields[self._key]) for fields in places if self._key in fields), None)

    @property
    def notices(self) -> list[TraceError]:
        """The notices before any sample is joined: rows that cannot be used, duplicate keys, and warnings about rows."""
        twice = {value: places for value, places in self._places.items() if len(places) > 1}
        warnings = Counter(f"{warning.path}: {warning.message}" for warning in self._warnings)
        problems = [f"{warning} ({times:,} times)" for warning, times in warnings.items()]
        if twice:
            keys = join_limited(f"{key!r:.80} ({join_limited(lines, separator=', ')})" for key, lines in twice.items())
            problems.append(f"duplicate keys, whose rows are not used: {keys}")
        return [*self._unusable, *([TraceError("; ".join(problems), path=self._path)] if problems else [])]

    def misfits(self, *, all_samples: bool = True) -> Iterator[TraceError]:
        """Yield what did not match, after the samples are joined.

        If these are not ``all_samples``, references that match none of them are reported only if no reference does.
        """
        unmatched = [f"{value!r:.80}" for value in self._references if value not in self._met]
        if unmatched and (all_samples or (self._unknown and not self._met)):
            problem = f"{_matching(unmatched)} no sample by {self._key!r}: {join_limited(unmatched)}"
            if self._unknown:
                kind = {"id": "ids", "input": "inputs"}.get(str(self._key), f"{self._key!r}")
                problem += f"; samples have {kind} such as {', '.join(f'{value!r:.80}' for value in self._unknown)}"
            elif not self._met:
                problem += "; no sample has this key"
            yield TraceError(problem, path=self._path)
        shared = [f"{value!r:.80}" for value, groups in self._met.items() if self._key == "id" and len(groups) > 1]
        if shared:
            problem = f"{_matching(shared)} samples of different groups by 'id': {join_limited(shared)}"
            yield TraceError(problem, path=self._path)
        if self._carried:
            problem = f"{count_text(self._carried, 'sample')} already had references, which were kept"
            yield TraceError(problem, path=self._path)


def _matching(references: Sequence[str]) -> str:
    return "1 reference matches" if len(references) == 1 else f"{len(references):,} references match"

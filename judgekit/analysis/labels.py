"""Labels that a judge is compared with: the verdicts of people, or of a benchmark, on samples that it scored."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field, FiniteFloat, JsonValue, ValidationError

from judgekit.errors import ConfigError, TraceError, join_limited, short_repr, validation_message
from judgekit.formats.columns import Columns
from judgekit.formats.files import ENCODING_HINT, File
from judgekit.formats.tables import csv_rows
from judgekit.runs.alignments import LabelRole
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.score import ScaleValue, verdict_value
from judgekit.traces.message import FrozenModel, RecordId
from judgekit.traces.trace import Label

SelectionMethod: TypeAlias = Literal["random", "stratified", "convenience"]
"""The way in which a sample was selected: drawn from all scored samples, drawn from one verdict, or picked by hand."""


class HumanLabel(FrozenModel):
    """The label that one person, or a benchmark, gives one sample.

    Attributes:
        sample: The sample's id.
        scorer: The scorer whose question is answered.
        value: A label of the scale, a number in [0, 1], or yes or no; ``None`` if the sample was drawn but left blank.
        annotator: The person who labelled; ``None`` stands for one and the same person.
        reason: The reason for the label.
        run: The number of the run that the sample was drawn from.
        number: The sample's number in that run.
        recordings: A hash of what that run read, see `Run.recordings`, as other files of runs have a run with that
            number too.
        selection: The way in which the sample was selected: ``random``, ``stratified`` (drawn by its verdict) or
            ``convenience`` (picked by hand, which corrects no mean); ``None`` if unknown.
        probability: The probability with which the sample was drawn; ``None`` also if it was drawn by its verdict,
            which this would reveal.
        role: What the label is for when a judge is aligned with people: see `judgekit.runs.alignments.LabelRole`. ``None``
            leaves that to a hash of the recording.
        source: The source of the label. Labels in files are from people. The source of a recorded label may be unknown:
            it may even be the verdict of the judge itself. This is not a column of a file.
    """

    sample: RecordId
    scorer: str
    value: bool | FiniteFloat | str | None = None
    annotator: RecordId | None = None
    reason: str = ""
    run: int | None = Field(default=None, ge=1)
    number: int | None = Field(default=None, ge=0)
    recordings: str | None = None
    selection: SelectionMethod | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    role: LabelRole | None = None
    source: Literal["human", "benchmark", "unknown"] = "human"

    @property
    def is_picked_to_read(self) -> bool:
        """Whether the sample was picked for the model to read that aligns the judge, so that it stands for no others."""
        return self.role == "reflect" and self.selection == "convenience"


LABEL_COLUMNS = tuple(name for name in HumanLabel.model_fields if name != "source")
"""The names of the columns in a file of labels."""
DISPLAY_COLUMNS = ("question", "choices", "conversation", "rival", "reference")
"""Columns for people who label in a spreadsheet; they are not read."""
_REQUIRED = ("sample", "scorer", "value")
_NAMELESS = re.compile(r"column \d+")
_ESCAPED = re.compile(r"'[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""A formula as `judgekit.reports.csv_export.csv_table` writes it."""
_SAVE_AGAIN = "save it again in UTF-8 (in Excel: CSV UTF-8)"


def read_labels(path: Path | str) -> Sequence[HumanLabel]:
    """Return the labels in a file: CSV, as spreadsheets write it, or JSON lines.

    Columns, or keys, are ``sample``, ``scorer`` and ``value``, and optionally the other fields of `HumanLabel`. A blank
    value stands for a sample that nobody labelled. Duplicates are treated as in `deduplicate`.

    Args:
        path: A ``.csv``, ``.tsv`` or ``.jsonl`` file, or its URL.

    Raises:
        TraceError: The file cannot be read; the message says where, what was found, and what to do.
    """
    file = File.locate(path)
    if file.encoding_guessed:
        raise TraceError(f"is not UTF-8; {_SAVE_AGAIN}", path=path)
    try:
        return _without_duplicates(_lines(file))
    except TraceError as error:
        raise TraceError(error.problem.replace(ENCODING_HINT, _SAVE_AGAIN), path=path, line=error.line) from error


def _lines(file: File) -> Iterator[tuple[int | None, HumanLabel]]:
    columns = Columns()
    if file.container == "csv":
        records = csv_rows(file, columns)
    elif file.container == "lines":
        records = file.records()
    else:
        raise TraceError("labels are read from CSV (.csv, .tsv) and from JSON lines (.jsonl)")
    try:
        for line, value, _ in records:
            try:
                if isinstance(value, TraceError):
                    raise value
                if not isinstance(value, dict):
                    raise TraceError(f"expected an object with {', '.join(_REQUIRED)}, found {short_repr(value)}")
                named = [
                    name for name in columns.seen if not _NAMELESS.fullmatch(name)
                ]  # the first row names the columns
                _must_be_columns(named or value)
                yield line, _label(_read(value) if named else value)
            except TraceError as error:
                raise TraceError(error.problem, line=line if error.line is None else error.line) from error
    finally:
        del records  # closes the file, which the traceback of an error would hold open


def _must_be_columns(names: Iterable[str]) -> None:
    there = set(names)
    for name in there - {*LABEL_COLUMNS, *DISPLAY_COLUMNS}:
        raise TraceError(str(ConfigError.unknown("column of labels", name, LABEL_COLUMNS)))
    if missing := [name for name in _REQUIRED if name not in there]:
        known = "the value is blank where nobody labelled the sample; columns:"
        raise TraceError(f"has no {' and no '.join(missing)}; {known} {', '.join(LABEL_COLUMNS)}")


def _read(cells: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the cells of a row without the protection against formulas; numbers may have a decimal comma."""
    row: dict[str, JsonValue] = {"sample": ""} if "number" in cells else {}  # an id may be blank
    for name, cell in cells.items():
        text = str(cell)
        if _ESCAPED.match(text):
            text = text.removeprefix("'")
        if name not in ("sample", "reason"):
            text = text.strip()
        row[name] = text.replace(",", ".") if name == "probability" else text
    return row


def _label(row: Mapping[str, JsonValue]) -> HumanLabel:
    known = {name: value for name, value in row.items() if name not in DISPLAY_COLUMNS}
    try:
        return HumanLabel.model_validate({**known, "value": None if known.get("value") == "" else known.get("value")})
    except ValidationError as error:
        raise TraceError(validation_message(error, known)) from error


def deduplicate(labels: Iterable[HumanLabel]) -> Sequence[HumanLabel]:
    """Return the labels without duplicates; a blank counts only if the person gives the sample no other label.

    Raises:
        TraceError: One person gives a sample two labels.
    """
    return _without_duplicates((None, label) for label in labels)


def _without_duplicates(labels: Iterable[tuple[int | None, HumanLabel]]) -> Sequence[HumanLabel]:
    found: dict[tuple[object, ...], tuple[int | None, HumanLabel]] = {}
    for line, label in labels:
        key = (label.sample, label.scorer, label.annotator, label.run, label.number, label.recordings)
        before, first = found.get(key, (None, None))
        if first is None or first.value is None:
            found[key] = (line, label)
        elif label.value not in (None, first.value):
            who = "an unnamed person" if label.annotator is None else repr(label.annotator)
            raise TraceError(
                f"{who} gives the sample {short_repr(label.sample)} the label {label.value!r} for {label.scorer!r}, and "
                f"{first.value!r} {'before' if before is None else f'in line {before}'}; keep one of the two, or name "
                "two people in the column annotator",
                line=line,
            )
    return [label for _, label in found.values()]


def labels_by_scorer(
    labels: Iterable[HumanLabel], a: Run, b: Run, scorers: Sequence[str]
) -> Mapping[str, Sequence[HumanLabel]]:
    """Return labels on two runs by scorer.

    Raises:
        ConfigError: A label does not tell which of the two runs it belongs to, or names a scorer that is not in both.
    """
    found: dict[str, list[HumanLabel]] = {}
    for label in labels:
        if label.scorer not in scorers:
            raise ConfigError.unknown("scorer of both runs", label.scorer, scorers)
        if label.is_picked_to_read:
            continue
        if label.run is None:
            raise ConfigError(
                f"the label of sample {short_repr(label.sample)} does not say which run's answer it is about; add the column "
                "run with the number of that run"
            )
        if a.number == b.number and label.recordings is None:
            raise ConfigError(
                f"both runs have the number {a.number}, so labels cannot name one: keep both in one store"
            )
        found.setdefault(label.scorer, []).append(label)
    return found


def label_value(label: HumanLabel, scorer: ScorerRecord) -> ScaleValue | None:
    """Return the value of a label to a scorer: a number in [0, 1], ``"skipped"`` or ``"abstained"``.

    A label can be one of the scorer's scale; a number in [0, 1]; yes, pass or true, which is 1; no, fail or false,
    which is 0; "n/a" or "not applicable", which is ``"skipped"``. Labels of the scale take precedence, so that ``1``
    may be its lowest one.

    Returns:
        ``"skipped"`` if the person says that the question does not apply, ``"abstained"`` if they cannot tell, and
        ``None`` if the label is blank.

    Raises:
        TraceError: The label is none of these.
    """
    if label.value is None:
        return None
    value = verdict_value(label.value, scorer.scale)
    if value is None:
        choices = join_limited((*scorer.scale, "a number in [0, 1]", "yes", "no", "n/a"), separator=", ")
        who = "" if label.annotator is None else f" by {label.annotator!r}"
        raise TraceError(
            f"{scorer.name!r} does not know the label {short_repr(label.value)} of the sample "
            f"{short_repr(label.sample)}{who}; use one of {choices}"
        )
    return value


def recorded_labels(run: Run, names: Mapping[str, str]) -> Sequence[HumanLabel]:
    """Return the labels that came with the recordings of a run, except those of judges.

    If the run stores no text, annotators and reasons are unknown, and labels that annotators disagree on are left out.

    Args:
        run: The run.
        names: By the name of a recorded label, the scorer whose question it answers; ``label`` is that of the sample
            itself. A label with the name of a scorer belongs to that scorer, unless another label is given for it.

    Raises:
        ConfigError: There is no such scorer, no sample has such a label, or a judge gave it.
        TraceError: One person gives a sample two labels.
    """
    scorers = [one.name for one in run.scorers]
    for scorer in names.values():
        if scorer not in scorers:
            raise ConfigError.unknown("scorer of the run", scorer, scorers)
    wanted = {**{name: name for name in scorers if name not in names.values()}, **names}
    found: list[HumanLabel] = []
    known: set[str] = set()
    judged: set[str] = set()
    for number, sample, label in _conversation_labels(run) if run.record.keeps_text else _row_labels(run):
        if label.source == "judge":
            judged.add(label.name)
            continue
        known.add(label.name)
        if label.name in wanted:
            found.append(
                HumanLabel(
                    sample=sample,
                    scorer=wanted[label.name],
                    value=label.value,
                    annotator=label.annotator or (None if label.source == "human" else label.source),
                    reason=label.reason or "",
                    run=run.number,
                    number=number,
                    source=label.source,
                )
            )
    for name in names:
        if name in judged - known:
            raise ConfigError(
                f"the recorded label {short_repr(name)} is the verdict of a judge, and cannot show whether "
                f"{names[name]} is right; name labels of people or of a benchmark"
            )
        if name not in known:
            raise ConfigError.unknown("label that was recorded", name, sorted(known))
    return deduplicate(found)


class _Recorded(NamedTuple):
    """A label of a sample, with the sample's number and id."""

    number: int
    sample: str
    label: Label


def _conversation_labels(run: Run) -> Iterator[_Recorded]:
    """Yield the labels of the stored conversations."""
    for number, sample in run.conversations():
        if sample.label is not None:
            yield _Recorded(number, sample.id, Label("label", sample.label, source="benchmark"))
        for label in sample.trace.labels:
            yield _Recorded(number, sample.id, label)


def _row_labels(run: Run) -> Iterator[_Recorded]:
    """Yield the labels of the rows, for runs that store no conversations."""
    for number, rows in groupby(run, key=lambda row: row.index):
        row = next(rows)  # all rows of a sample have its labels
        for name, value in row.labels.items():
            yield _Recorded(number, row.sample_id, Label(name, value, source=row.label_sources.get(name, "unknown")))

"""Labels that a judge is compared with: those of people or of a benchmark, on samples that it scored."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias, cast

from pydantic import BeforeValidator, Field, FiniteFloat, JsonValue, ValidationError

from judgekit.analysis.label_exports import ExportedLabels
from judgekit.errors import (
    ConfigError,
    TraceError,
    check_choice,
    join_limited,
    path_text,
    short_repr,
    validation_message,
)
from judgekit.formats.columns import Columns
from judgekit.formats.exports import MORE_PAGES
from judgekit.formats.files import ENCODING_HINT, File, FileRecord
from judgekit.formats.records import records_in
from judgekit.formats.score_records import ScoreRecord, ScoreSystem, read_score, score_system
from judgekit.formats.values import as_object
from judgekit.locations import to_location
from judgekit.runs.alignments import LabelRole
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.score import ScaleValue, verdict_value
from judgekit.traces.message import FrozenModel, RecordId
from judgekit.traces.recording import Label
from judgekit.traces.tree import MessageNumber

_MESSAGE = re.compile(r"\d{1,9}(\.\d{1,9}\.\d{1,9})*", re.ASCII)

SelectionMethod: TypeAlias = Literal["random", "stratified", "convenience"]
"""The way in which a sample was selected: drawn from all scored samples, drawn from one verdict, or picked by hand."""


def _message_number(value: object) -> object:
    """Return the number of a message in a cell of a table, which may be blank."""
    if not isinstance(value, str):
        return value
    if value and not _MESSAGE.fullmatch(value):
        raise ValueError(f"expected the number of a message, such as 4 or 4.2.1, found {short_repr(value)}")
    return int(value) if value.isdecimal() else value or None


class HumanLabel(FrozenModel):
    """The label that one person, or a benchmark, gives one sample.

    Attributes:
        sample: The sample's id.
        scorer: The scorer whose question is answered.
        value: A label of the scale, a number in [0, 1], or yes or no; ``None`` if the sample was drawn but left blank.
        message: The number of the message where it went wrong, or its path in a sub-agent, such as ``4.2.1``; of a turn, its first.
        annotator: The person who labeled; ``None`` stands for one and the same person.
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
        source: The source of the label. Labels in files are from people, except scores of other systems whose origin is
            unknown. The source of a recorded label may be unknown too: it may even be the verdict of the judge itself.
            This and what follows are no columns of a file.
        file: The name of the file that the label came from.
        given_at: When it was added to a file of runs; ``None`` if it was not.
    """

    sample: RecordId
    scorer: str
    value: bool | FiniteFloat | str | None = None
    message: Annotated[MessageNumber | None, BeforeValidator(_message_number)] = None
    annotator: RecordId | None = None
    reason: str = ""
    run: int | None = Field(default=None, ge=1)
    number: int | None = Field(default=None, ge=0)
    recordings: str | None = None
    selection: SelectionMethod | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    role: LabelRole | None = None
    source: Literal["human", "benchmark", "unknown"] = "human"
    file: str | None = None
    given_at: datetime | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether the sample was drawn at random, perhaps by its verdict."""
        return self.selection in ("random", "stratified")

    @property
    def is_picked_to_read(self) -> bool:
        """Whether the sample was picked for the model to read that aligns the judge, so that it stands for no others."""
        return self.role == "train" and self.selection == "convenience"


LABEL_COLUMNS = tuple(name for name in HumanLabel.model_fields if name not in ("source", "file", "given_at"))
"""The names of the columns in a file of labels."""
RECORDED_LABELS = "labels recorded with the conversations"
"""Stands for the name of the file of such labels."""
DISPLAY_COLUMNS = ("question", "choices", "conversation", "baseline", "reference")
"""Columns for people who label in a spreadsheet; they are not read."""
_REQUIRED = ("sample", "scorer", "value")
_NAMELESS = re.compile(r"column \d+")
_ESCAPED = re.compile(r"'[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""A formula as `judgekit.reports.csv_export.csv_table` writes it."""
_SAVE_AGAIN = "save it again in UTF-8 (in Excel: CSV UTF-8)"


class LabelFile(NamedTuple):
    """The labels in a file.

    Attributes:
        labels: The human labels.
        notices: What was left out, and why. Only the score files of other systems hold anything else.
        names: The names of scorers and scores in the file, whether their labels were used or not.
    """

    labels: Sequence[HumanLabel]
    notices: Sequence[str]
    names: frozenset[str]

    def named(self, path: Path | str) -> "LabelFile":
        """Return the labels with the name of their file."""
        name = to_location(path).name
        return self._replace(labels=[label.model_copy(update={"file": name}) for label in self.labels])


def read_labels(
    path: Path | str, *, names: Mapping[str, str] | None = None, run: Run | None = None
) -> Sequence[HumanLabel]:
    """Return the labels in a file: CSV, as spreadsheets write it, or JSON lines.

    Columns, or keys, are ``sample``, ``scorer`` and ``value`` (or ``label``), and optionally the other fields of `HumanLabel`. A blank
    value stands for a sample that nobody labeled. Duplicates are treated as in `deduplicate`.

    Files of Langfuse's scores, LangSmith's feedback and Phoenix's annotations are read too, also pages of them as their
    APIs return them (``.json``). Their scores are labels if people gave them to a whole trace, whose id is the
    sample's; a Python warning says how many are left out.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl`` or ``.json`` file, or its URL.
        names: By the name of a score or scorer in the file, the scorer whose question it answers.
        run: The run that was labeled: scores must have the name of one of its scorers, and may belong to the outermost
            span of a sample.

    Raises:
        ConfigError: A score that ``names`` assigns is the verdict of a judge.
        TraceError: The file cannot be read; the message says where, what was found, and what to do.
    """
    file = read_label_file(path, names=names, run=run)
    for notice in file.notices:
        warnings.warn(f"{path_text(path)}: {notice}", stacklevel=2)
    return file.labels


def read_label_file(path: Path | str, *, names: Mapping[str, str] | None = None, run: Run | None = None) -> LabelFile:
    """Return the labels in a file, and what was left out; see `read_labels`."""
    file = File.locate(path)
    columns = Columns()
    try:
        with closing(records_in(file, columns)) as records:  # an error that is kept would hold the file open
            first = next(records, None)
            rows = chain([] if first is None else [first], records)
            system = None if first is None or isinstance(first.value, TraceError) else score_system(first.value)
            if system is not None:
                return _exported(rows, system, ExportedLabels(names or {}, run)).named(path)
            if file.container not in ("csv", "lines"):
                raise TraceError("labels are read from CSV (.csv, .tsv) and from JSON lines (.jsonl)")
            labels, renamed = _without_duplicates(_lines(rows, columns)), names or {}
            own = [label.model_copy(update={"scorer": renamed.get(label.scorer, label.scorer)}) for label in labels]
            return LabelFile(own, (), frozenset(label.scorer for label in labels)).named(path)
    except TraceError as error:
        raise TraceError(error.problem.replace(ENCODING_HINT, _SAVE_AGAIN), path=path, line=error.line) from error


def _exported(records: Iterable[FileRecord], system: ScoreSystem, selection: ExportedLabels) -> LabelFile:
    notices: list[str] = []
    scores = list(_scores(records, system, notices))
    exported = [
        (export.line, _human_label(export.label, export.sample, export.scorer)) for export in selection.select(scores)
    ]
    notices += (f"left out {export}" for export in selection.notices())
    names = frozenset(score.label.name for _, score in scores if score.label is not None)
    return LabelFile(_without_duplicates(exported), notices, names)


def _scores(
    records: Iterable[FileRecord], system: ScoreSystem, notices: list[str]
) -> Iterator[tuple[int | None, ScoreRecord]]:
    for line, value in records:
        if isinstance(value, TraceError):
            if value.problem != MORE_PAGES:
                raise TraceError(value.problem, line=line if value.line is None else value.line) from value
            notices.append(MORE_PAGES)
            continue
        if score_system(value) != system:
            raise TraceError(f"expected a score of {system} like the first one, found {short_repr(value)}", line=line)
        yield line, read_score(as_object(value), system)


def _lines(records: Iterable[FileRecord], columns: Columns) -> Iterator[tuple[int | None, HumanLabel]]:
    for line, value in records:
        try:
            if isinstance(value, TraceError):
                raise value
            if not isinstance(value, dict):
                raise TraceError(f"expected an object with {', '.join(_REQUIRED)}, found {short_repr(value)}")
            named = [name for name in columns.seen if not _NAMELESS.fullmatch(name)]  # the first row names the columns
            row = _with_value(value)
            _must_be_columns(_with_value(dict.fromkeys(named)) if named else row)
            yield line, _label(_read(row) if named else row)
        except TraceError as error:
            raise TraceError(error.problem, line=line if error.line is None else error.line) from error


def _with_value(row: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a row whose label is in the column ``value``, although it may be called ``label`` in the file."""
    is_renamed = "label" in row and "value" not in row
    return {"value" if is_renamed and name == "label" else name: cell for name, cell in row.items()}


def _must_be_columns(names: Iterable[str]) -> None:
    there = set(names)
    for name in there - {*LABEL_COLUMNS, *DISPLAY_COLUMNS}:
        raise TraceError(str(ConfigError.unknown("column of labels", name, LABEL_COLUMNS)))
    if missing := [name for name in _REQUIRED if name not in there]:
        explanation = "the value is blank where nobody labeled the sample; columns:"
        raise TraceError(f"has no {' and no '.join(missing)}; {explanation} {', '.join(LABEL_COLUMNS)}")


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
    fields = {name: value for name, value in row.items() if name not in DISPLAY_COLUMNS}
    try:
        return HumanLabel.model_validate(
            {**fields, "value": None if fields.get("value") == "" else fields.get("value")}
        )
    except ValidationError as error:
        raise TraceError(validation_message(error, fields)) from error


def deduplicate(labels: Iterable[HumanLabel]) -> Sequence[HumanLabel]:
    """Return the labels without duplicates; a blank counts only if the person gives the sample no other label.

    Raises:
        TraceError: One person gives a sample two labels.
    """
    return _without_duplicates((None, label) for label in labels)


def _without_duplicates(labels: Iterable[tuple[int | None, HumanLabel]]) -> Sequence[HumanLabel]:
    kept: dict[tuple[object, ...], tuple[int | None, HumanLabel]] = {}
    for line, label in labels:
        key = (label.sample, label.scorer, label.annotator, label.run, label.number, label.recordings, label.message)
        before, first = kept.get(key, (None, None))
        if first is None or first.value is None:
            kept[key] = (line, label)
        elif label.value not in (None, first.value):
            who = "an unnamed person" if label.annotator is None else repr(label.annotator)
            raise TraceError(
                f"{who} gives the sample {short_repr(label.sample)} the label {label.value!r} for {label.scorer!r}, and "
                f"{first.value!r} {'before' if before is None else f'in line {before}'}; keep one of the two, or name "
                "two people in the column annotator",
                line=line,
            )
    given = {key[:-1] for key, (_, label) in kept.items() if label.value is not None}
    return [label for key, (_, label) in kept.items() if label.value is not None or key[-1] or key[:-1] not in given]


def labels_by_scorer(
    labels: Iterable[HumanLabel], a: Run, b: Run, scorers: Sequence[str]
) -> Mapping[str, Sequence[HumanLabel]]:
    """Return labels on two runs by scorer.

    Raises:
        ConfigError: A label does not tell which of the two runs it belongs to, or names a scorer that is not in both.
    """
    by_scorer: dict[str, list[HumanLabel]] = {}
    for label in labels:
        check_choice("scorer of both runs", label.scorer, scorers)
        if label.run is None:
            raise ConfigError(
                f"the label of sample {short_repr(label.sample)} does not say which run's answer it is about; add the column "
                "run with the number of that run"
            )
        if a.number == b.number and label.recordings is None:
            raise ConfigError(
                f"both runs have the number {a.number}, so labels cannot name one: keep both in one store"
            )
        by_scorer.setdefault(label.scorer, []).append(label)
    return by_scorer


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
    scorers = [scorer_record.name for scorer_record in run.scorers]
    for scorer in names.values():
        check_choice("scorer of the run", scorer, scorers)
    wanted = {**{name: name for name in scorers if name not in names.values()}, **names}
    labels: list[HumanLabel] = []
    usable: set[str] = set()
    judged: set[str] = set()
    for number, sample, label in _conversation_labels(run) if run.record.keeps_text else _row_labels(run):
        if label.source == "judge":
            judged.add(label.name)
            continue
        usable.add(label.name)
        if label.name in wanted:
            human = _human_label(label, sample, wanted[label.name])
            where = {"run": run.number, "number": number, "file": RECORDED_LABELS}
            labels.append(human.model_copy(update=where))
    for name in names:
        if name in judged - usable:
            raise ConfigError(
                f"the recorded label {short_repr(name)} is the verdict of a judge, and cannot show whether "
                f"{names[name]} is right; name human labels or those of a benchmark"
            )
        check_choice("label that was recorded", name, sorted(usable))
    return deduplicate(labels)


def _human_label(label: Label, sample: str, scorer: str) -> HumanLabel:
    """Return a label that is not a judge's as an answer to a scorer's question. Its source stands in for a name."""
    return HumanLabel(
        sample=sample,
        scorer=scorer,
        value=label.value,
        annotator=label.annotator or (None if label.source == "human" else label.source),
        reason=label.reason or "",
        source=cast("Literal['human', 'benchmark', 'unknown']", label.source),
        message=label.message,
    )


class _Recorded(NamedTuple):
    """A label of a sample, with the sample's number and id."""

    number: int
    sample: str
    label: Label


def _conversation_labels(run: Run) -> Iterator[_Recorded]:
    for number, sample in run.conversations():
        if sample.label is not None:
            yield _Recorded(number, sample.id, Label("label", sample.label, source="benchmark"))
        for label in sample.trace.labels:
            yield _Recorded(number, sample.id, label)


def _row_labels(run: Run) -> Iterator[_Recorded]:
    for number, rows in groupby(run, key=lambda row: row.index):
        row = next(rows)  # all rows of a sample have its labels
        for name, value in row.labels.items():
            yield _Recorded(number, row.sample_id, Label(name, value, source=row.label_sources.get(name, "unknown")))

"""Human labels in a file of runs: added, read, and combined with those that a command is given."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from pydantic_core import from_json, to_json

from judgekit.analysis.labels import RECORDED_LABELS, HumanLabel, label_value
from judgekit.analysis.matching import match_labels
from judgekit.analysis.spent_labels import question_names
from judgekit.errors import ConfigError, StoreError, count_text
from judgekit.formats.label_sources import label_source
from judgekit.runs.model_families import is_model_name
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.schema import LabelRow
from judgekit.runs.store import RunStore
from judgekit.score import ScaleValue

_Key: TypeAlias = tuple[int | None, str, str, str | None]
"""The number and the id of a sample, the question, and the annotator."""


class LabelChanges(NamedTuple):
    """The changes that added labels make to those that are stored.

    Attributes:
        added: The number of new labels.
        changed: The number of labels that differ from the last one of the same person for the same sample, and replace it.
        unchanged: The number of labels that were there already.
        replaced: The number of these that do not count, because the person has given another label since.
        blank: The number of samples that were left blank, which withdraws no label.
        not_stored: The number of labels whose samples are not in the file of runs, or that may not be from people.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    replaced: int = 0
    blank: int = 0
    not_stored: int = 0

    def __str__(self) -> str:
        words = {
            "added": self.added,
            "changed": self.changed,
            "as before": self.unchanged - self.replaced,
            "as before, but replaced by later ones": self.replaced,
            "left blank": self.blank,
            "not stored, since their samples are not or they may not be from people": self.not_stored,
        }
        every = count_text(sum(words.values()), "label")
        return f"{every}: {', '.join(f'{number:,} {what}' for what, number in words.items() if number) or 'none'}"


class CombinedLabels(NamedTuple):
    """The stored labels of a run and those that were given.

    Attributes:
        labels: The last label of each person for each sample and question.
        history: All stored labels, in the order in which they were given.
        damaged: The number of stored labels that are damaged.
        changes: The changes that the given labels make.
    """

    labels: Sequence[HumanLabel]
    history: Sequence[HumanLabel]
    damaged: int
    changes: LabelChanges


def add_labels(run: Run, labels: Iterable[HumanLabel]) -> LabelChanges:
    """Add human labels to the file of a run; a run in memory keeps them as long as it lives.

    Labels are only added: the last one of a person for a sample counts, and a blank one withdraws none. What was added from
    the same file before is not added again. Labels are not stored if their source is unknown, if their annotator has the
    name of a judge or a model, or if the run has no such sample.

    Args:
        run: The run that the labels are on. Labels that name another run are stored only if it read the same files.
        labels: The labels, such as those of `read_labels`.

    Raises:
        ConfigError: A label names another scorer, or one person gives a sample two labels.
        TraceError: A scorer does not know a label.
        StoreError: The file cannot be written.
    """
    return combine_labels(run, labels, keep=True).changes


def stored_labels(run: Run) -> Sequence[HumanLabel]:
    """Return the stored human labels on a run, or on others of its recordings: the last of each person for each sample."""
    return combine_labels(run).labels


def combine_labels(run: Run, labels: Iterable[HumanLabel] = (), *, keep: bool = False) -> CombinedLabels:
    """Return the stored labels of a run together with those that are given, which are stored too if they are to be kept."""
    given = list(labels)
    store = RunStore(run.store.path) if keep and run.store.read_only else run.store
    with store.transaction() if keep else nullcontext():
        combining = _Combining(run, store, given)
        rows = combining.add(given)
        if keep:
            store.add_labels(rows)
    return combining.combined()


class _Combining:
    """Labels on a run that are combined: those that are stored, and those that are given."""

    def __init__(self, run: Run, store: RunStore, given: Iterable[HumanLabel]) -> None:
        self._run, self._store = run, store
        self._scorers: dict[str, ScorerRecord] = {}
        self._questions: dict[str, str] = {}
        for record in run.scorers:
            names = question_names(run, record) if record.judged else [record.name]
            self._scorers |= {name: self._scorers.get(name, record) for name in names}
            self._questions |= dict.fromkeys(names, names[-1])
        named = {run.number, *store.labeled_runs(), *(label.run for label in given if label.run is not None)}
        self._numbers = {number: store.sample_numbers(number) for number in filter(self._reads_the_same, named)}
        self._counting: dict[_Key, Sequence[HumanLabel]] = {}
        self._by_file: dict[_Key, dict[str | None, HumanLabel]] = {}
        self._unplaced: list[HumanLabel] = []
        self._changes = Counter[str]()
        self._history: list[HumanLabel] = []
        self._damaged = 0

    def add(self, given: Iterable[HumanLabel]) -> Sequence[LabelRow]:
        """Combine labels with those that are stored, and return the rows to be stored."""
        for label in given:
            if label.scorer not in self._scorers:
                names = [record.name for record in self._run.scorers]
                raise ConfigError.unknown(f"scorer of run {self._run.number}", label.scorer, names)
        self._read()
        new: dict[_Key, list[HumanLabel]] = {}
        for label in filter(self._is_new, self._placed(given)):
            new.setdefault(self._key(label), []).append(label)
        for key, labels in new.items():
            self._take(key, labels)
        for question in {key[2] for key in new}:
            self._check(question)
        return [_row(label) for labels in new.values() for label in labels if self._is_from_person(label)]

    def combined(self) -> CombinedLabels:
        """Return the labels that count, with those of samples that are not stored."""
        counting = [label for labels in self._counting.values() for label in labels]
        changes = LabelChanges(**self._changes)
        return CombinedLabels([*counting, *self._unplaced], self._history, self._damaged, changes)

    def _reads_the_same(self, number: int) -> bool:
        """Return whether a run is this one, or is there and read the same files."""
        if number != self._run.number:
            with suppress(StoreError):
                return Run(self._store, self._store.record(number)).recordings == self._run.recordings is not None
        return number == self._run.number

    def _placed(self, given: Iterable[HumanLabel]) -> Iterator[HumanLabel]:
        """Yield the labels with the run and the number of their samples, and set apart those whose samples are not stored."""
        here = self._run.recordings
        for label in given:
            home = label.run if label.run in self._numbers and label.recordings in (None, here) else None
            if label.run is None or (label.recordings == here is not None):
                home = home or self._run.number
            numbers = () if home is None else self._numbers[home].get(label.sample, ())
            if label.number is not None:
                numbers = [number for number in numbers if number == label.number]
            if len(numbers) != 1:
                self._unplaced.append(label)
                self._changes["not_stored"] += 1
                continue
            # The verdicts of the run in another file that it was drawn by may not be those of this one.
            is_drawn_there = label.selection == "stratified" and label.run not in (None, home)
            selection = None if is_drawn_there else label.selection
            where = {"run": home, "number": numbers[0], "recordings": here, "selection": selection}
            yield label.model_copy(update=where)

    def _key(self, label: HumanLabel) -> _Key:
        return label.number, label.sample, self._questions[label.scorer], label.annotator

    def _read(self) -> None:
        """Read the stored labels."""
        rows = [row for number in self._numbers for row in self._store.label_rows(number)]
        intact = [row for row in rows if row is not None and row.scorer in self._scorers]
        self._damaged = rows.count(None)
        ids = {
            (run, number): sample
            for run, samples in self._numbers.items()
            for sample, numbers in samples.items()
            for number in numbers
        }
        for row in sorted(intact, key=lambda row: row.given_at):
            label = _label(row, ids.get((row.run, row.sample), f"#{row.sample}"), self._run.recordings)
            self._history.append(label)
            self._take(self._key(label), [label])

    def _take(self, key: _Key, labels: Sequence[HumanLabel]) -> None:
        """Let labels of one person replace earlier ones, unless they are blank. A sample that was drawn remains so."""
        by_file = self._by_file.setdefault(key, {})
        by_file |= {label.file: label for label in labels}
        if self._value(key) is None or any(label.value is not None for label in labels):
            drawn = next((label for label in by_file.values() if label.is_drawn), None)
            kept = {"selection": drawn.selection, "probability": drawn.probability} if drawn else {}
            self._counting[key] = [label if label.is_drawn else label.model_copy(update=kept) for label in labels]

    def _value(self, key: _Key) -> ScaleValue | None:
        """Return the value that counts for a sample, question and person; ``None`` if there is none."""
        labels = (label for label in self._counting.get(key, ()) if label.value is not None)
        return next((label_value(label, self._scorers[label.scorer]) for label in labels), None)

    def _is_new(self, label: HumanLabel) -> bool:
        """Return whether a label is not the last one that came from its file, and count it."""
        key, value = self._key(label), label_value(label, self._scorers[label.scorer])
        before, last = self._value(key), self._by_file.get(key, {}).get(label.file)
        if not self._is_from_person(label):
            what = "not_stored"
        elif last is not None and _content(last) == _content(label):
            self._changes["replaced"] += value not in (None, before)
            what = "unchanged"
        else:
            same, last = "unchanged" if value == before else "changed", None
            what = "blank" if value is None else "added" if before is None else same
        self._changes[what] += 1
        return last is None or what == "not_stored"

    def _is_from_person(self, label: HumanLabel) -> bool:
        is_judge = is_judge_name(label.annotator, self._run, self._scorers[label.scorer])
        return label.source != "unknown" and label.file != RECORDED_LABELS and not is_judge

    def _check(self, question: str) -> None:
        """Check that no sample has two roles, or two labels by one person, before labels are stored.

        Raises:
            ConfigError: One has.
        """
        labels = [label for key, labels in self._counting.items() if key[2] == question for label in labels]
        record, numbers = self._scorers[question], {label.number for label in labels if label.number is not None}
        match_labels(self._run, record, list(self._run.rows(scorer=record.name, numbers=numbers)), labels)


def _row(label: HumanLabel) -> LabelRow:
    value = None if label.value is None else to_json(label.value).decode()
    fields = label.model_dump(include=set(LabelRow._fields))
    return LabelRow(**{**fields, "given_at": time.time_ns(), "sample": label.number, "value": value})


def is_judge_name(annotator: str | None, run: Run, scorer: ScorerRecord) -> bool:
    """Return whether an annotator has the name of a model or a judge, such as one that was asked by this scorer."""
    if annotator is None or label_source(annotator) == "judge":
        return annotator is not None
    models = run.audit_subject(scorer).models if scorer.judged else {}
    return is_model_name(annotator, [*models, *(model for reported in models.values() for model in reported if model)])


def _label(row: LabelRow, sample: str, recordings: str | None) -> HumanLabel:
    fields = row._asdict() | {"sample": sample, "number": row.sample, "recordings": recordings}
    value = None if row.value is None else from_json(row.value)
    given_at = datetime.fromtimestamp(row.given_at / 1e9, UTC)
    return HumanLabel.model_validate({**fields, "value": value, "given_at": given_at})


def _content(label: HumanLabel) -> tuple[object, ...]:
    value = (type(label.value), label.value)  # since True is 1
    return label.scorer, value, label.reason, label.role, label.selection, label.probability, label.source

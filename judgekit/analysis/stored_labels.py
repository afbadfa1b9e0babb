"""Human labels in a file of runs: added, read, and combined with those that a command is given."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TypeAlias

from pydantic_core import from_json, to_json

from judgekit.analysis.labels import RECORDED_LABELS, HumanLabel, label_value
from judgekit.analysis.matching import match_labels
from judgekit.analysis.spent_labels import question_names
from judgekit.errors import ConfigError, StoreError, TraceError
from judgekit.runs.model_families import is_model_name
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.schema import LabelRow
from judgekit.runs.store import RunStore
from judgekit.score import ScaleValue
from judgekit.traces.tree import MessageNumber

_CONTENT = {"scorer", "value", "message", "reason", "role", "selection", "probability", "source"}
_Key: TypeAlias = tuple[int | None, str, str, str | None, MessageNumber | None]
"""The number and the id of a sample, the question, the annotator, and the message with which a labeled turn begins."""


def add_labels(run: Run, labels: Iterable[HumanLabel]) -> Mapping[str, int]:
    """Add human labels to the file of a run; a run in memory keeps them as long as it lives.

    Labels are only added: the last one of a person for a sample counts, and a blank one withdraws none. Labels are not
    stored if their source is unknown, if their annotator has the name of a judge or a model, or if the run has no such
    sample.

    Args:
        run: The run that the labels are on. Labels that name another run are stored only if it read the same files.
        labels: The labels, such as those of `read_labels`.

    Returns:
        The number of labels that are ``added``, ``changed`` (the person gave the sample another label before), ``as before``,
        ``replaced since`` (as in the last version of their file, but the person has given another label elsewhere since),
        ``left blank`` and ``not stored``.

    Raises:
        ConfigError: A label names another scorer, or one person gives a sample two labels.
        TraceError: A scorer does not know a label.
        StoreError: The file cannot be written.
    """
    return combine_labels(run, labels, keep=True).changes


def stored_labels(run: Run) -> Sequence[HumanLabel]:
    """Return the stored human labels on a run, or on others of its recordings: the last of each person for each sample."""
    return combine_labels(run).labels


def combine_labels(run: Run, labels: Iterable[HumanLabel] = (), *, keep: bool = False) -> "CombinedLabels":
    """Return the stored labels of a run together with those that are given, which are stored too if they are to be kept."""
    given = list(labels)
    store = RunStore(run.store.path) if keep and run.store.read_only else run.store
    with store.transaction() if keep else nullcontext():
        combined = CombinedLabels(run, store, given)
        if keep:
            store.add_labels(map(_row, combined.new))
    return combined


class CombinedLabels:
    """Labels on a run: those that are stored, and those that are given.

    Attributes:
        history: All stored labels, in the order in which they were given.
        left_out: The number of stored labels that cannot be used, by reason.
        new: The given labels that are to be stored.
        changes: The number of given labels by what they change.
    """

    def __init__(self, run: Run, store: RunStore, given: Sequence[HumanLabel]) -> None:
        self._run, self._store = run, store
        self._scorers: dict[str, ScorerRecord] = {}
        self._questions: dict[str, str] = {}
        for record in run.scorers:
            names = question_names(run, record) if record.judged else [record.name]
            self._scorers |= {name: self._scorers.get(name, record) for name in names}
            self._questions |= dict.fromkeys(names, names[-1])
        for label in given:
            if label.scorer not in self._scorers:
                names = [record.name for record in run.scorers]
                raise ConfigError.unknown(f"scorer of run {run.number}", label.scorer, names)
        named = {run.number, *store.labeled_runs(), *(label.run for label in given if label.run is not None)}
        self._numbers = {number: store.sample_numbers(number) for number in filter(self._reads_the_same, named)}
        self._counting: dict[_Key, Sequence[HumanLabel]] = {}
        self._by_file: dict[_Key, dict[str | None, HumanLabel]] = {}
        self._unplaced: list[HumanLabel] = []
        self.changes = Counter[str]()
        self.left_out = Counter[str]()
        self.history = self._read()
        new: dict[_Key, list[HumanLabel]] = {}
        for label in filter(self._is_new, self._placed(given)):
            new.setdefault(self._key(label), []).append(label)
        for key, labels in new.items():
            self._take(key, labels)
        for question in {key[2] for key in new}:
            self._check(question)
        self.new = [label for labels in new.values() for label in labels if self._is_from_person(label)]

    @property
    def labels(self) -> Sequence[HumanLabel]:
        """The last label of each person for each sample and question, and those of samples that are not stored."""
        return [*(label for labels in self._counting.values() for label in labels), *self._unplaced]

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
            if label.run is None or label.recordings == here is not None:
                home = home or self._run.number
            numbers = () if home is None else self._numbers[home].get(label.sample, ())
            if label.number is not None:
                numbers = [number for number in numbers if number == label.number]
            if len(numbers) != 1:
                self._unplaced.append(label)
                self.changes["not stored"] += 1
                continue
            # The verdicts of the run in another file that it was drawn by may not be those of this one.
            is_drawn_there = label.selection == "stratified" and label.run not in (None, home)
            selection = None if is_drawn_there else label.selection
            where = {"run": home, "number": numbers[0], "recordings": here, "selection": selection}
            yield label.model_copy(update=where if self._run.record.keeps_text else {**where, "reason": ""})

    def _key(self, label: HumanLabel) -> _Key:
        turn = label.message if self._scorers[label.scorer].per_turn else None
        return label.number, label.sample, self._questions[label.scorer], label.annotator, turn

    def _read(self) -> Sequence[HumanLabel]:
        """Return the stored labels, after letting them count."""
        rows = [row for number in self._numbers for row in self._store.label_rows(number)]
        intact = [row for row in rows if row is not None and row.scorer in self._scorers]
        ids = {
            (run, number): sample
            for run, samples in self._numbers.items()
            for sample, numbers in samples.items()
            for number in numbers
        }
        history: list[HumanLabel] = []
        for row in sorted(intact, key=lambda row: row.given_at):
            fields = row._asdict() | {
                "sample": ids.get((row.run, row.sample), f"#{row.sample}"),
                "number": row.sample,
                "recordings": self._run.recordings,
                "value": None if row.value is None else from_json(row.value),
                "message": None if row.message is None else from_json(row.message),
                "given_at": datetime.fromtimestamp(row.given_at / 1e9, UTC),
            }
            label = HumanLabel.model_validate(fields)
            try:
                label_value(label, self._scorers[label.scorer])
            except TraceError:  # the scorer had another scale in the other run of these recordings
                self.left_out[f"{label.scorer} does not know these labels of run {row.run}"] += 1
                continue
            history.append(label)
            self._take(self._key(label), [label])
        if damaged := rows.count(None):
            self.left_out["damaged in the file of runs"] = damaged
        return history

    def _take(self, key: _Key, labels: Sequence[HumanLabel]) -> None:
        """Let labels of one person replace earlier ones, unless they are blank. A sample that was drawn remains so."""
        by_file = self._by_file.setdefault(key, {})
        by_file |= {label.file: label for label in labels}
        if self._value(key) is None or any(label.value is not None for label in labels):
            drawn = next((label for label in by_file.values() if label.is_drawn), None)
            kept = {"selection": drawn.selection, "probability": drawn.probability} if drawn else {}
            self._counting[key] = [label if label.is_drawn else label.model_copy(update=kept) for label in labels]

    def _value(self, key: _Key) -> ScaleValue | None:
        labels = (label for label in self._counting.get(key, ()) if label.value is not None)
        return next((label_value(label, self._scorers[label.scorer]) for label in labels), None)

    def _is_new(self, label: HumanLabel) -> bool:
        """Return whether a label is not the last one that came from its file, and count it."""
        key, value = self._key(label), label_value(label, self._scorers[label.scorer])
        before, last = self._value(key), self._by_file.get(key, {}).get(label.file)
        is_known = last is not None and _content(last) == _content(label)
        if not self._is_from_person(label):
            self.changes["not stored"] += 1
            return True
        if is_known:
            self.changes["as before" if value in (None, before) else "replaced since"] += 1
        elif value is None:
            self.changes["left blank"] += 1
        else:
            self.changes["added" if before is None else "as before" if value == before else "changed"] += 1
        return not is_known

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


def is_judge_name(annotator: str | None, run: Run, scorer: ScorerRecord) -> bool:
    """Return whether an annotator has the name of a model or a judge, such as one that was asked by this scorer."""
    judges: list[str] = []
    for judge, models in run.audit_subject(scorer).models.items() if scorer.judged else ():
        judges += (judge, *filter(None, models))
    return annotator is not None and is_model_name(annotator, judges)


def _row(label: HumanLabel) -> LabelRow:
    value, message = (None if part is None else to_json(part).decode() for part in (label.value, label.message))
    replaced = {"given_at": time.time_ns(), "sample": label.number, "value": value, "message": message}
    fields = {**label.model_dump(), **replaced}
    return LabelRow._make(fields[name] for name in LabelRow._fields)


def _content(label: HumanLabel) -> tuple[object, ...]:
    return type(label.value), label.model_dump(include=_CONTENT)  # with its type, since True is 1

"""Human labels in a file of runs: added, read, and combined with those that a command is given."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_Key: TypeAlias = tuple[int | None, int | None, str, str, str | None]
"""The run, or ``None`` for the one asked about and others of its recordings; the sample; the question; the annotator."""


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
    name of a judge or a model, or if their samples are not in the file of runs.

    Args:
        run: The run that the labels are on, unless they name another run of its file.
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
        combining = _Combining(run, store)
        rows = combining.add(given)
        if keep:
            store.add_labels(rows)
    return combining.combined()


class _Combining:
    """Labels on a run that are combined: those that are stored, and those that are given."""

    def __init__(self, run: Run, store: RunStore) -> None:
        self._run, self._store = run, store
        self._runs: dict[int, Run | None] = {run.number: run}
        self._scorers: dict[str, ScorerRecord] = {}
        self._questions: dict[str, str] = {}
        for record in run.scorers:
            names = question_names(run, record) if record.judged else [record.name]
            self._scorers |= {name: self._scorers.get(name, record) for name in names}
            self._questions |= dict.fromkeys(names, names[-1])
        self._here = {run.number, *filter(self._reads_the_same, store.labeled_runs())}
        self._numbers: dict[int, Mapping[str, Sequence[int]]] = {}
        self._counting: dict[_Key, Sequence[HumanLabel]] = {}
        self._by_file: dict[_Key, dict[str | None, HumanLabel]] = {}
        self._unplaced: list[HumanLabel] = []
        self._changes = Counter[str]()
        self._history: list[HumanLabel] = []
        self._damaged = 0

    def add(self, given: Sequence[HumanLabel]) -> Sequence[LabelRow]:
        """Combine labels with those that are stored, and return the rows to be stored."""
        for label in given:
            if label.scorer not in self._scorers:
                names = [record.name for record in self._run.scorers]
                raise ConfigError.unknown(f"scorer of run {self._run.number}", label.scorer, names)
        placed = list(self._placed(given))
        self._read(sorted(self._here.union(label.run or 0 for label in placed)))
        new: dict[_Key, list[HumanLabel]] = {}
        for label in filter(self._is_new, placed):
            new.setdefault(self._key(label), []).append(label)
        for key, labels in new.items():
            self._take(key, labels)
        if placed:
            self._check({label.scorer for label in placed})
        return [self._row(label) for labels in new.values() for label in labels if self._is_from_person(label)]

    def combined(self) -> CombinedLabels:
        """Return the labels that count, with those of samples that are not stored."""
        counting = [label for labels in self._counting.values() for label in labels]
        changes = LabelChanges(**self._changes)
        return CombinedLabels([*counting, *self._unplaced], self._history, self._damaged, changes)

    def _known_run(self, number: int) -> Run | None:
        if number not in self._runs:
            self._runs[number] = None
            with suppress(StoreError):
                self._runs[number] = Run(self._store, self._store.record(number))
        return self._runs[number]

    def _reads_the_same(self, number: int) -> bool:
        other = self._known_run(number)
        return other is not None and self._run.recordings is not None and other.recordings == self._run.recordings

    def _home(self, label: HumanLabel) -> Run | None:
        """Return the run of this file that a label is on."""
        other = self._run if label.run is None else self._known_run(label.run)
        if other is not None and label.recordings in (None, other.recordings):
            return other
        return self._run if label.recordings is not None and label.recordings == self._run.recordings else None

    def _placed(self, given: Sequence[HumanLabel]) -> Iterator[HumanLabel]:
        """Yield the labels with the run and the number of their samples, and set apart those whose samples are not stored."""
        for label in given:
            home = self._home(label)
            numbers = () if home is None else self._numbers_of(home).get(label.sample, ())
            if home is None or (len(numbers) != 1 if label.number is None else label.number not in numbers):
                self._unplaced.append(label)
                self._changes["not_stored"] += 1
                continue
            number = numbers[0] if label.number is None else label.number
            # The verdicts of the run in another file that it was drawn by may not be those of this one.
            is_drawn_there = label.selection == "stratified" and label.run not in (None, home.number)
            selection = None if is_drawn_there else label.selection
            where = {"run": home.number, "number": number, "recordings": home.recordings, "selection": selection}
            yield label.model_copy(update=where)

    def _numbers_of(self, run: Run) -> Mapping[str, Sequence[int]]:
        if run.number not in self._numbers:
            numbers: dict[str, list[int]] = {}
            for number, sample in self._store.sample_ids(run.number).items():
                numbers.setdefault(sample, []).append(number)
            self._numbers[run.number] = numbers
        return self._numbers[run.number]

    def _key(self, label: HumanLabel) -> _Key:
        home = None if label.run in self._here else label.run
        return home, label.number, label.sample, self._questions[label.scorer], label.annotator

    def _read(self, runs: Iterable[int]) -> None:
        """Read the stored labels on these runs."""
        rows: list[LabelRow] = []
        for number in runs:
            for row in self._store.label_rows(number) if number else ():
                if row is None:
                    self._damaged += 1
                else:
                    rows.append(row)
        ids = {number: self._store.sample_ids(number) for number in {row.run for row in rows}}
        for row in sorted(rows, key=lambda row: row.given_at):
            if row.scorer in self._scorers:
                home = self._known_run(row.run) or self._run
                label = _label(row, ids[row.run].get(row.sample, f"#{row.sample}"), home.recordings)
                self._history.append(label)
                self._take(self._key(label), [label])

    def _take(self, key: _Key, labels: Sequence[HumanLabel]) -> None:
        """Let labels of one person replace earlier ones, unless they are blank. A sample that was drawn remains so."""
        by_file = self._by_file.setdefault(key, {})
        by_file |= {label.file: label for label in labels}
        if any(label.value is not None for label in self._counting.get(key, ())) and all(
            label.value is None for label in labels
        ):
            return
        drawn = next((label for label in by_file.values() if label.is_drawn), None)
        kept = {"selection": drawn.selection, "probability": drawn.probability} if drawn else {}
        self._counting[key] = [label if label.is_drawn else label.model_copy(update=kept) for label in labels]

    def _is_new(self, label: HumanLabel) -> bool:
        """Return whether a label is not the last one that came from its file, and count it."""
        key = self._key(label)
        record = self._scorers[label.scorer]
        value = label_value(label, record)
        counting = next((other for other in self._counting.get(key, ()) if other.value is not None), None)
        is_same = counting is not None and label_value(counting, record) == value
        last = self._by_file.get(key, {}).get(label.file)
        if not self._is_from_person(label):
            self._changes["not_stored"] += 1
            return True
        if last is not None and _content(last) == _content(label):
            self._changes["unchanged"] += 1
            self._changes["replaced"] += not is_same and value is not None
            return False
        what = "blank" if value is None else "added" if counting is None else "unchanged" if is_same else "changed"
        self._changes[what] += 1
        return True

    def _is_from_person(self, label: HumanLabel) -> bool:
        return (
            label.source != "unknown"
            and label.file != RECORDED_LABELS
            and not is_judge_name(label.annotator, self._run, self._scorers[label.scorer])
        )

    def _check(self, scorers: Iterable[str]) -> None:
        """Check that no sample has two roles, or two labels by one person, before labels are stored.

        Raises:
            ConfigError: One has.
        """
        for record in {self._questions[name]: self._scorers[name] for name in scorers}.values():
            by_run: dict[int | None, list[HumanLabel]] = {}
            for key, labels in self._counting.items():
                if key[3] == self._questions[record.name]:
                    by_run.setdefault(key[0], []).extend(labels)
            for number, labels in by_run.items():
                home = self._run if number is None else self._known_run(number)
                if home is not None:
                    numbers = {label.number for label in labels if label.number is not None}
                    match_labels(home, record, list(home.rows(scorer=record.name, numbers=numbers)), labels)

    @staticmethod
    def _row(label: HumanLabel) -> LabelRow:
        value = None if label.value is None else to_json(label.value).decode()
        return LabelRow(
            label.run or 0,
            time.time_ns(),
            label.number or 0,
            *(label.scorer, label.annotator, value, label.reason, label.role),
            *(label.selection, label.probability, label.source, label.file),
        )


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

"""Human labels, each matched with the judge's verdict on the same sample."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from judgekit.analysis.findings import Opinion
from judgekit.analysis.labels import HumanLabel, label_value
from judgekit.analysis.sampling import is_not_applicable, strata
from judgekit.analysis.spent_labels import SpentSamples
from judgekit.analysis.turns import TurnVerdicts, judged_turns, passes
from judgekit.errors import ConfigError, StoreError, join_limited, short_repr, short_reprs
from judgekit.runs.alignments import LabelRole
from judgekit.runs.answers import reported_names
from judgekit.runs.audit_records import LabelSelection, new_models
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord, identity_differences
from judgekit.traces.tree import MessageNumber

LEFT_BLANK = "drawn and left blank"
CANNOT_TELL = "people cannot tell"
_NAMED = 3
_NOT_SPENT = SpentSamples()
_NEAR = 0.05  # how far the number of drawn samples may be from the expected one, as a share of it


def distance(a: float | None, b: float | None) -> float:
    """Return the distance of two values, in [0, 1]: 1 if only one says that the question does not apply (``None``)."""
    return float(a is not b) if a is None or b is None else abs(a - b)


class LabeledSample(NamedTuple):
    """A sample that a judge decided, with human labels.

    ``weight`` is the number of samples of the run that it stands for, which is 1 unless samples were drawn by verdict;
    ``role`` is what the labels are for in an alignment, if they say so.
    """

    row: Row
    opinions: Sequence[Opinion]
    weight: float = 1.0
    role: LabelRole | None = None

    @property
    def judge_value(self) -> float | None:
        """The judge's value; ``None`` if the judge says that the question does not apply."""
        return self.row.score.value

    @property
    def values(self) -> Sequence[float]:
        """The values from people who say that the question applies."""
        return [opinion.value for opinion in self.opinions if opinion.value is not None]

    @property
    def applicable_share(self) -> float:
        """The share of people who say that the question applies."""
        return len(self.values) / len(self.opinions)

    @property
    def mean(self) -> float | None:
        """The mean of these values; ``None`` if nobody says that the question applies."""
        values = self.values
        return fsum(values) / len(values) if values else None


@dataclass(frozen=True)
class MatchedLabels:
    """The labels for one scorer that belong to samples of one run.

    Attributes:
        run: The run.
        rows: All rows of the scorer that have a value; if people labeled samples to which the question does not apply
            according to the judge, also the rows of such samples.
        samples: The samples that people labeled.
        selection: The way in which these samples were selected.
        missing_reasons: Why samples that were drawn have no label at all: `LEFT_BLANK` or `CANNOT_TELL`.
        unused_labels: The number of labels that could not be used, by reason.
        unmatched: The number of labels that match no sample of the run, by reason.
        notes: Further notes on the selection of the samples.
        turns: The verdicts of people and the judge on single turns, if the scorer judges each turn.
    """

    run: Run
    rows: Sequence[Row]
    samples: Sequence[LabeledSample]
    selection: LabelSelection
    missing_reasons: Collection[str] = ()
    unused_labels: Counter[str] = field(default_factory=Counter[str])
    unmatched: Counter[str] = field(default_factory=Counter[str])
    notes: Sequence[str] = ()
    turns: Sequence[TurnVerdicts] = ()

    @property
    def unlabeled_rows(self) -> Sequence[Row]:
        """The rows that people did not label."""
        labeled = {sample.row.index for sample in self.samples}
        return [row for row in self.rows if row.index not in labeled]


def match_labels(
    run: Run,
    record: ScorerRecord,
    all_rows: Sequence[Row],
    labels: Iterable[HumanLabel],
    excluded: SpentSamples = _NOT_SPENT,
) -> MatchedLabels:
    """Match each label with its sample, by the sample's number in the run if the label has one, else by its id.

    Raises:
        ConfigError: A label is not on the scale, or one person gives a sample two labels.
    """
    matching = _Finding(run, record, all_rows, excluded)
    given = list(labels)
    is_drawn = any(label.is_drawn for label in given)
    for label in given:
        if is_drawn and label.selection == "convenience" and not label.is_picked_to_read:
            matching.unused_labels["picked by hand, while other samples were drawn at random"] += 1
        else:
            matching.add(label)
    has_skipped = any(row.score.value is None and row.index in matching.opinions for row in all_rows)
    rows = [row for row in all_rows if row.score.value is not None or (has_skipped and is_not_applicable(row))]
    samples = [
        LabeledSample(row, tuple(opinions.values()), role=matching.roles.get(row.index))
        for row in rows
        if (opinions := matching.opinions.get(row.index))
    ]
    drawn, notes = matching.selection(len(rows), len(samples), has_skipped=has_skipped)
    if drawn == "stratified":
        samples = matching.weighted(samples) or _weighted(samples, rows)
    lost = {why for index, why in matching.unlabeled.items() if index not in matching.opinions}
    unused, turns = matching.unused_labels, [*matching.turns.values()]
    return MatchedLabels(run, rows, samples, drawn, lost, unused, matching.unmatched(), notes, turns)


def _weighted(samples: Sequence[LabeledSample], rows: Sequence[Row]) -> list[LabeledSample]:
    parts = [{row.index for row in part} for part in strata(rows, by_confidence=True)]
    labeled = [sum(sample.row.index in part for sample in samples) for part in parts]
    weights = {index: len(part) / max(1, n) for part, n in zip(parts, labeled, strict=True) for index in part}
    return [sample._replace(weight=weights[sample.row.index]) for sample in samples]


class _Finding:
    """A search for the rows of labels, one label at a time."""

    def __init__(self, run: Run, record: ScorerRecord, rows: Sequence[Row], spent: SpentSamples) -> None:
        self._run, self._record, self._spent = run, record, spent
        self._rows = {row.index: row for row in rows}
        self._by_id = {row.sample_id: row for row in rows}
        self._repeated = set(run.duplicate_ids)
        self._selections: set[str | None] = set()
        self._labeled: set[int] = set()
        self._unknown: list[str] = []
        self._ambiguous: list[str] = []
        self._changed: list[str] = []
        self.opinions: dict[int, dict[str | None, Opinion]] = {}
        self.turns: dict[tuple[object, ...], TurnVerdicts] = {}
        self.roles: dict[int, LabelRole] = {}
        self.unlabeled: dict[int, str] = {}
        self._probabilities: set[float] = set()
        self._weights: dict[int, float] = {}
        self.unused_labels = Counter[str]()

    def add(self, label: HumanLabel) -> None:
        row = self._row(label)
        if row is None:
            return
        if self._record.per_turn and label.message is not None:
            self._add_turn(row, label, label.message)
            return
        self._labeled.add(row.index)
        if row.index in self._spent.numbers:
            self.unused_labels[self._spent.reason] += 1
            return
        self._selections.add(label.selection)
        if label.probability is not None:
            self._probabilities.add(label.probability)
            self._weights[row.index] = 1 / label.probability
        if label.role is not None and self.roles.setdefault(row.index, label.role) != label.role:
            raise ConfigError(
                f"sample {label.sample!r} has the roles {self.roles[row.index]} and {label.role}; all labels of a sample have one"
            )
        if label.value is None:
            self._exclude(row, LEFT_BLANK)
            return
        value = label_value(label, self._record)
        if value == "abstained":
            self._exclude(row, CANNOT_TELL)
        elif row.score.value is None and not is_not_applicable(row):
            by = "by the scorer, which did not ask the judge" if row.score.status == "skipped" else "by the judge"
            self.unused_labels[f"{row.score.status} {by}"] += 1
        else:
            value = None if value == "skipped" else value
            text = str(label.value) if isinstance(label.value, str | bool) else f"{label.value:g}"
            opinion = Opinion(
                annotator=label.annotator, label=text, value=value, reason=label.reason, message=label.message
            )
            before = self.opinions.setdefault(row.index, {}).setdefault(label.annotator, opinion)
            if before.value != value:
                who = "an unnamed person" if label.annotator is None else repr(label.annotator)
                raise ConfigError(
                    f"{who} gives sample {label.sample!r} two labels for {self._record.name}: "
                    f"{' and '.join(short_reprs([before.label, text]))}; keep one, or name the annotators"
                )

    def _add_turn(self, row: Row, label: HumanLabel, message: MessageNumber) -> None:
        human, judged = label_value(label, self._record), judged_turns(row)
        reason = LEFT_BLANK if human is None else CANNOT_TELL if human == "abstained" else ""
        if not reason and message in judged:
            reason, verdict = "on single turns, which correct no mean", passes(judged[message]["value"])
            by_person = passes(human if isinstance(human, float) else None)
            self.turns[row.index, label.annotator, message] = TurnVerdicts(by_person, verdict, row.unit)
        self.unused_labels[reason or "on turns that the judge did not judge"] += 1

    def _exclude(self, row: Row, reason: str) -> None:
        self.unused_labels[reason] += 1
        self.unlabeled[row.index] = reason

    def _row(self, label: HumanLabel) -> Row | None:
        row = self._by_id.get(label.sample)
        if label.number is not None:
            row = self._rows.get(label.number)
            if row is not None and row.sample_id != label.sample:
                self._changed.append(f"{' is '.join(short_reprs([label.sample, row.sample_id]))} there")
                return None
        elif label.sample in self._repeated:
            self._ambiguous.append(short_repr(label.sample))
            return None
        if row is None:
            self._unknown.append(short_repr(label.sample))
        return row

    def unmatched(self) -> Counter[str]:
        """Return the number of labels without a sample, by reason."""
        run = f"run {self._run.number}"
        renamed = f"the sample with this number in {run} has another id (spreadsheets change ids: restore them):"
        samples = {
            f"{run} has no score for": self._unknown,
            "several samples have this id:": self._ambiguous,
            renamed: self._changed,
        }
        names = {why: join_limited(dict.fromkeys(those), _NAMED, ", ") for why, those in samples.items()}
        return Counter({f"{why} {names[why]}": len(those) for why, those in samples.items() if those})

    def weighted(self, samples: Sequence[LabeledSample]) -> list[LabeledSample]:
        """Return the samples with weights by their known probabilities; none if these are not known."""
        has_weights = all(sample.row.index in self._weights for sample in samples)
        return [sample._replace(weight=self._weights[sample.row.index]) for sample in samples] if has_weights else []

    def selection(self, scored: int, labeled: int, *, has_skipped: bool) -> tuple[LabelSelection, Sequence[str]]:
        """Return how the labeled samples were selected, and notes on it."""
        if "convenience" in self._selections:
            return "convenience", ()
        if self._selections == {"stratified"} and len(self._weights) == labeled:
            return "stratified", ()  # by the verdicts of another question, as those of this one do not tell
        if labeled == scored:
            return "all", ()
        if self._selections not in ({"random"}, {"stratified"}):
            return "unknown", ()
        if self._selections == {"stratified"}:
            return "stratified", ()
        if has_skipped and len(self._probabilities) != 1:
            return "unknown", ("several sheets were joined, and some may leave out samples that the judge skipped",)
        missing = max(self._probabilities, default=0) * scored - len(self._labeled)  # several sheets may have more
        if missing > max(1, _NEAR * len(self._labeled)):
            return "unknown", ("drawn samples are missing, or others have been scored since",)
        return "random", ()


def labels_by_run(
    run: Run, record: ScorerRecord, labels: Iterable[HumanLabel]
) -> tuple[Mapping[Run, Sequence[HumanLabel]], Counter[str]]:
    """Return the labels by the run that they belong to, this run first, and the number of unusable ones by reason.

    A label that names no run, or a run that read the same files, belongs to this run. Labels of another run are usable
    if it asked the same judge.
    """
    here: list[HumanLabel] = []
    by_run: dict[Run, Sequence[HumanLabel]] = {run: here}
    left_out = Counter[str]()
    by_origin: dict[tuple[int | None, str | None], list[HumanLabel]] = {}
    for label in labels:
        by_origin.setdefault((label.run, label.recordings), []).append(label)
    mine = run.recordings
    for (number, recordings), those in by_origin.items():
        if number is None or (number == run.number and recordings in (None, mine)):
            here += those
            continue
        try:
            other = Run(run.store, run.store.record(number))
        except StoreError:
            other = None
        read = recordings or (other.recordings if other else None)
        if read is not None and read == mine:
            # The verdicts of that run may not be those of this one.
            here += [
                given.model_copy(update={"selection": None}) if given.selection == "stratified" else given
                for given in those
            ]
        elif other is None:
            left_out[f"run {number} is not kept"] += len(those)
        elif read != other.recordings:
            left_out[f"they belong to another run {number}, on other recordings"] += len(those)
        else:
            judged = next((scorer for scorer in other.scorers if scorer.name == record.name), None)
            if judged is None:
                changed = "it has no such scorer"
            elif judged.signature is not None and judged.signature == record.signature:
                before = {judge: reported_names(models) for judge, models in other.audit_subject(judged).models.items()}
                changed = new_models(before, run.audit_subject(record).models)
            else:
                differences = join_limited(identity_differences(judged.identity, record.identity), _NAMED)
                changed = differences or "it cannot be identified"
            if not changed:
                by_run[other] = those
            else:
                left_out[f"run {number} has another judge: {changed}"] += len(those)
    return by_run, left_out

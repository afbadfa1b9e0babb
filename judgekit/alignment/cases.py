"""Labeled recordings with their roles, and how far verdicts on them are from people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from judgekit.analysis.labels import HumanLabel, SelectionMethod
from judgekit.analysis.matching import LabeledSample, distance, labels_by_run, match_labels
from judgekit.errors import ConfigError, short_repr
from judgekit.runs.alignments import AlignmentRecord, LabelRole, assigned_role
from judgekit.runs.hashes import recording_key
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.score import Score
from judgekit.traces.sample import Sample

_ORDER: Mapping[LabelRole, int] = {"train": 0, "validation": 1, "test": 2}


@dataclass(frozen=True)
class Case:
    """A recording that people labeled, and what its labels are for."""

    sample: Sample
    labeled: LabeledSample
    role: LabelRole
    selection: SelectionMethod | None = None

    @property
    def human_value(self) -> float | None:
        """The mean of the values that people gave; ``None`` if the question does not apply according to them."""
        return self.labeled.mean

    @property
    def human_agreement(self) -> float:
        """The agreement of the people who labeled the sample, in [0, 1]; there are at least two."""
        pairs = list(combinations([opinion.value for opinion in self.labeled.opinions], 2))
        return 1 - fsum(distance(a, b) for a, b in pairs) / len(pairs)

    def error(self, score: Score) -> float:
        """Return the mean distance of a verdict from what people say, in [0, 1].

        It is 1 for a verdict that is missing, and where only one side says that the question applies.
        """
        if score.status in ("failed", "abstained"):
            return 1.0
        human_values = [opinion.value for opinion in self.labeled.opinions]
        return fsum(distance(score.value, value) for value in human_values) / len(human_values)


def read_cases(
    run: Run, scorer: ScorerRecord, labels: Sequence[HumanLabel], earlier: Sequence[AlignmentRecord]
) -> tuple[Sequence[Case], Mapping[str, int]]:
    """Return the labeled recordings of a run in their order, and the number of unusable labels by reason.

    Raises:
        ConfigError: The run stores no text, or lacks the scorer; or samples of a group have two roles.
        TraceError: The scorer does not know a label.
    """
    if not run.record.keeps_text:
        raise ConfigError(f"run {run.number} stores no conversations (store_text = false), so none can be judged again")
    if scorer.name not in (names := [record.name for record in run.scorers]):
        raise ConfigError.unknown(f"scorer of run {run.number}", scorer.name, names)
    rows = list(run.rows(scorer=scorer.name))
    by_run, left_out = labels_by_run(run, scorer, labels)
    matched = match_labels(run, scorer, rows, by_run[run])
    left_out += matched.unused_labels + matched.unmatched
    for other, those in by_run.items():
        if other is not run:
            left_out[f"they belong to run {other.number}"] += len(those)
    wanted = {sample.row.index for sample in matched.samples}
    samples = dict(run.conversations(wanted.__contains__))
    there = [sample for sample in matched.samples if sample.row.index in samples]
    if lost := len(matched.samples) - len(there):
        left_out["their conversations are damaged in the file of runs"] += lost
    roles = assign_roles(there, samples, earlier)
    # Labels picked only to be read say nothing about how the others were drawn.
    others = [label for label in by_run[run] if not label.is_picked_to_read]
    drawn = match_labels(run, scorer, rows, others)
    weights = {sample.row.index: sample.weight for sample in drawn.samples}
    there = [sample._replace(weight=weights.get(sample.row.index, sample.weight)) for sample in there]
    selection: SelectionMethod | None = (
        drawn.selection if drawn.selection in ("random", "stratified", "convenience") else None
    )
    numbers = [sample.row.index for sample in there]
    cases = [Case(samples[n], sample, roles[n], selection) for n, sample in zip(numbers, there, strict=True)]
    return cases, dict(left_out)


def assign_roles(
    labeled: Sequence[LabeledSample], samples: Mapping[int, Sample], earlier: Sequence[AlignmentRecord] = ()
) -> Mapping[int, LabelRole]:
    """Return the role of each labeled sample by its number.

    Roles on the sheet stand, even for other samples of the same group; `assigned_role` gives the others theirs. A
    recording that occurs twice has the first of its roles, and one that the question was aligned by before is read.

    Raises:
        ConfigError: Samples of one group have different roles on the sheet.
    """
    by_group: dict[str, LabelRole] = {}
    for labeled_sample in labeled:
        group = samples[labeled_sample.row.index].group
        role = labeled_sample.role
        if role is not None and group is not None and by_group.setdefault(group, role) != role:
            raise ConfigError(
                f"samples of the group {short_repr(group)} have the roles {by_group[group]} and {role}; give all of "
                "them one, since they are not independent"
            )
    roles: dict[int, LabelRole] = {}
    first: dict[str, LabelRole] = {}
    for labeled_sample in labeled:
        sample = samples[labeled_sample.row.index]
        role = labeled_sample.role or by_group.get(sample.group or "") or assigned_role(sample)
        if any(before.was_fitted_to(sample) for before in earlier):
            role = "train"
        key = recording_key(sample)
        if _ORDER[role] <= _ORDER[first.get(key, role)]:
            first[key] = role
        roles[labeled_sample.row.index] = role
    return {number: first[recording_key(samples[number])] for number in roles}

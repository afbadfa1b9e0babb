"""The difference between two runs that people would see, from labels of some samples of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from judgekit.analysis.correction import too_few_labels
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.matching import MatchedLabels, labels_by_run, match_labels
from judgekit.analysis.measures import value_kind
from judgekit.analysis.sample_pairs import Numbers, ScoredPairs, Values
from judgekit.analysis.sampling import strata
from judgekit.analysis.selection_bias import selection_bias
from judgekit.errors import count_text, join_limited
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.stats.corrected_difference import LabeledTasks, corrected_difference
from judgekit.stats.label_planning import labels_needed
from judgekit.stats.prediction_powered import MIN_LABELS, squares_of_added
from judgekit.stats.quantiles import normal_quantile
from judgekit.stats.wilson import Interval

_ALPHA, _POWER = 0.05, 0.8
_LEAST_P, _HALVINGS = 1e-6, 18


@dataclass(frozen=True)
class DifferenceCorrection:
    """The difference of two runs corrected by human labels, or the reason why it is not corrected.

    Attributes:
        labels_a: The number of labeled pairs whose labels are on A.
        labels_b: The number of those whose labels are on B.
        labels_both: The number of those with labels on both.
        a: The mean that people would give A, over the pairs; ``None`` if the correction is refused.
        b: The mean that they would give B.
        interval: The 95 % interval of b - a.
        p: The two-sided p at which the interval just contains 0, but at least 0.000001.
        p_holm: p adjusted for the number of scorers; those without labels count with their own p.
        unavailable_reason: Why the labels do not support a correction; empty if they do.
        assumptions: The assumptions under which the correction is right.
        notes: What the labels of one run alone say, and labels that could not be used.
    """

    labels_a: int
    labels_b: int
    labels_both: int
    a: float | None = None
    b: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    unavailable_reason: str = ""
    assumptions: str = ""
    notes: Sequence[str] = ()

    @property
    def difference(self) -> float | None:
        """The corrected mean of B minus that of A."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def label_counts(self) -> str:
        """The numbers of labeled pairs in words."""
        return f"labels of {self.labels_a:,} pairs on A, {self.labels_b:,} on B, {self.labels_both:,} on both"

    def lines(self) -> Iterator[str]:
        """Yield lines that say all of it."""
        counts = self.label_counts
        if self.a is None or self.b is None or self.interval is None:
            yield f"no corrected difference ({counts}): {self.unavailable_reason}"
        else:
            low, high, method = self.interval
            assumed = f"; if {self.assumptions}" if self.assumptions else ""
            yield (
                f"corrected difference {self.b - self.a:+z.3f} ({low:+z.3f} to {high:+z.3f}), A {self.a:.3f}, B "
                f"{self.b:.3f}, by {method} and {counts}{assumed}"
            )
        yield from self.notes

    def as_json(self) -> dict[str, JsonValue]:
        """Return the correction as JSON."""
        names = ("labels_a", "labels_b", "labels_both", "a", "b", "difference", "p", "p_holm", "unavailable_reason")
        return {
            **{name: getattr(self, name) for name in (*names, "assumptions")},
            "interval": None if self.interval is None else self.interval._asdict(),
            "notes": list(self.notes),
        }


def correct_difference(
    a: Run, b: Run, scorer: str, pairs: ScoredPairs, labels: Sequence[HumanLabel]
) -> DifferenceCorrection:
    """Return the difference that people would see, by `judgekit.stats.corrected_difference`.

    Args:
        a: The baseline.
        b: The run that is compared with it.
        scorer: The name of a scorer in both runs.
        pairs: Its values of the samples in both runs.
        labels: Labels for this scorer, each of which names its run.
    """
    drawn = [label for label in labels if not label.is_picked_to_read]
    picked = len(labels) - len(drawn)
    first = _LabeledSide.of(a, scorer, pairs.numbers_a, pairs.a, drawn)
    second = _LabeledSide.of(b, scorer, pairs.numbers_b, pairs.b, drawn)
    sides = {"A": first, "B": second}
    used = {(label.run, label.number, label.sample, label.annotator) for side in sides.values() for label in side.given}
    neither = len(drawn) - len(used)
    notes = [f"labels of {name} left out: {why}" for name, side in sides.items() for why in side.left_out]
    notes += [f"{count_text(neither, 'label')} left out: they belong to neither run"] if neither else []
    notes += (
        [f"{count_text(picked, 'label')} left out: picked for judgekit align to read, not at random"] if picked else []
    )
    estimate = None
    if all(side.count for side in sides.values()):
        reason = next((f"on {name}, {side.obstacle}" for name, side in sides.items() if side.obstacle), "")
        if not reason:
            estimate = corrected_difference(first.tasks(), second.tasks(), pairs.groups)
            reason = (
                ""
                if estimate
                else "the labels vary too little, are of too few groups, or leave out one of the judge's verdicts"
            )
    else:
        labeled, other = ("A", "B") if first.count else ("B", "A")
        reason = f"there are no human labels of {other}, where the judge may err differently than on {labeled}"
        notes += _one_sided(labeled, other, sides[labeled], sides[other].judged, pairs)
    correction = DifferenceCorrection(
        first.count,
        second.count,
        int((first.is_labeled & second.is_labeled).sum()),
        unavailable_reason=reason,
        assumptions=join_limited(dict.fromkeys(side.assumption for side in sides.values() if side.assumption)),
        notes=notes,
    )
    if estimate is None:
        return correction
    p = _p_value(first.tasks(), second.tasks(), pairs)
    return replace(correction, a=estimate.a, b=estimate.b, interval=estimate.interval, p=p)


def _p_value(a: LabeledTasks, b: LabeledTasks, pairs: ScoredPairs) -> float:
    """Return the least alpha, by bisection, whose interval leaves out 0."""
    low, high = log(_LEAST_P), 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        estimate = corrected_difference(a, b, pairs.groups, level=1 - exp(middle))
        if estimate is None or estimate.interval.low <= 0 <= estimate.interval.high:
            low = middle
        else:
            high = middle
    return exp(high)


def _one_sided(
    labeled: str, other: str, labeled_side: "_LabeledSide", judged: Values, pairs: ScoredPairs
) -> Iterator[str]:
    """Yield how wrong the judge must be about the other run to hide a difference, and how many labels would tell."""
    if labeled_side.obstacle:
        return
    trusted = corrected_difference(labeled_side.tasks(), LabeledTasks(judged, judged), pairs.groups)
    if trusted is None:
        return
    bias = float(labeled_side.judged.mean()) - trusted.a
    tip, sign = trusted.b - trusted.a, 1 if trusted.b > trusted.a else -1
    low, high = sorted((sign * trusted.interval.low, sign * trusted.interval.high))
    yield (
        f"tipping point: people would find no difference if the judge {_rates(tip, other)} (95 % interval {low:.3f} to "
        f"{high:.3f}); it {_rates(bias, labeled)}"
    )
    raw = abs(float(pairs.b.mean() - pairs.a.mean()))
    seen = f"a difference of {raw:.3f}, which the judge sees"
    z = normal_quantile(1 - _ALPHA / 2)
    left = (raw / (z + normal_quantile(_POWER))) ** 2 - ((trusted.interval.high - trusted.interval.low) / 2 / z) ** 2
    share = min(0.99, max(0.01, float(judged.mean()) - bias))
    phi, needed = labeled_side.correlation(), None
    for _ in range(2):  # first without the errors that none of so many labels shows
        unseen = squares_of_added(share, 1) / max(needed, MIN_LABELS) ** 2 if needed else 0.0
        needed = labels_needed(share, phi, sqrt(left - unseen), len(judged)) if left > unseen else None
    if needed is None:
        yield f"no number of labels on {other} alone would likely show {seen}: label more of {labeled} too"
    else:
        yield f"about {max(needed, MIN_LABELS):,} labels on {other} would likely show {seen}"


def _rates(bias: float, run: str) -> str:
    return f"{'over' if bias > 0 else 'under'}rates {run} by {abs(bias):.3f} on average"


@dataclass(frozen=True, eq=False)
class _LabeledSide:
    """One run's values of the pairs, with labels of some of them."""

    judged: Values
    labels: Values
    applicable: Values
    strata: NDArray[np.intp] | None
    given: Sequence[HumanLabel]
    left_out: Sequence[str]
    obstacle: str = ""
    assumption: str = ""

    @classmethod
    def of(cls, run: Run, scorer: str, numbers: Numbers, judged: Values, labels: Sequence[HumanLabel]) -> Self:
        record = next(sample for sample in run.scorers if sample.name == scorer)
        given = labels_by_run(run, record, labels)[0][run]
        values, applies = np.full(len(judged), np.nan), np.zeros(len(judged))
        if not given:
            return cls(judged, values, applies, None, given, ())
        rows = list(run.rows(scorer=scorer))
        matched = match_labels(run, record, rows, given)
        indices = {number: index for index, number in enumerate(numbers.tolist())}
        unpaired = 0
        for sample in matched.samples:
            index = indices.get(sample.row.index)
            if index is None:
                unpaired += 1
            else:
                values[index], applies[index] = sample.mean or 0.0, sample.applicable_share
        left_out = [f"{count:,} ({why})" for why, count in (matched.unmatched + matched.unused_labels).items()]
        left_out += [f"{unpaired:,} (no pair has this sample)"] if unpaired else []
        kind, _ = value_kind(record, rows, matched.samples)
        obstacle, assumption = _selection(
            matched, selection_bias(matched, kind, dict(run.store.usage_by_sample(run.number)))
        )
        count = int((~np.isnan(values)).sum())
        if not obstacle and count < MIN_LABELS:
            obstacle = too_few_labels(count, MIN_LABELS)
        if any(label.source == "unknown" for label in given):
            unknown = "no label is the verdict of a judge (their source is unknown)"
            assumption = f"{unknown}, and {assumption}" if assumption else unknown
        kinds = _kinds(matched, indices) if matched.selection in ("stratified", "unknown") else None
        return cls(judged, values, applies, kinds, given, left_out, obstacle, assumption)

    @property
    def is_labeled(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.labels)

    @property
    def count(self) -> int:
        return int(self.is_labeled.sum())

    def tasks(self) -> LabeledTasks:
        return LabeledTasks(self.judged, self.labels, self.applicable, self.strata)

    def correlation(self) -> float:
        """Return the correlation of the judge's values and people's; 0 if either does not vary."""
        both = self.is_labeled & (self.applicable > 0)
        judged, human = self.judged[both], self.labels[both]
        return float(np.corrcoef(judged, human)[0, 1]) if np.ptp(judged) and np.ptp(human) else 0.0


def _selection(matched: MatchedLabels, bias: str) -> tuple[str, str]:
    """Return why the labeled samples cannot stand for the others, or what is assumed of them."""
    if matched.selection == "convenience":
        return "the labeled samples were picked by hand (selection is convenience)", ""
    if bias:
        return bias, ""
    if matched.selection == "unknown":
        return "", f"the labeled samples of each verdict are a random sample of run {matched.run.number}"
    return "", ""


def _kinds(matched: MatchedLabels, indices: Mapping[int, int]) -> NDArray[np.intp]:
    """Return the stratum of each pair, by the verdicts of its run."""
    kinds = np.zeros(len(indices), np.intp)
    for number, part in enumerate[Sequence[Row]](strata(matched.rows, by_confidence=matched.selection == "stratified")):
        for row in part:
            if (index := indices.get(row.index)) is not None:
                kinds[index] = number
    return kinds

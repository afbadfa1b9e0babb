"""Measures of a judge on labeled samples: its agreement with people, and the quality of its confidence."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import fsum, isclose, nan
from typing import Self

import numpy as np
from numpy.typing import NDArray

from judgekit.analysis.correction import independent_share
from judgekit.analysis.findings import Disagreement, Guarantee, ValueKind
from judgekit.analysis.matching import LabeledSample, MatchedLabels, distance
from judgekit.runs.audit_records import ConfusionCounts
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import first_of_units
from judgekit.runs.rows import Row, ScorerRecord
from judgekit.stats import agreement
from judgekit.stats.agreement import bootstrap_items, krippendorff_alpha
from judgekit.stats.calibration import expected_calibration_error
from judgekit.stats.correlation import rank_correlation
from judgekit.stats.selection import min_confidence_threshold

_MOST_COPIES = 50
_ROUNDING = 0.01
_MOST_VALUES = 7
_DIGITS = 9
NOT_APPLICABLE_VALUE = 2.0
"""Stands for "does not apply" among values, which are in [0, 1]."""


def value_kind(
    record: ScorerRecord, rows: Sequence[Row], samples: Sequence[LabeledSample]
) -> tuple[ValueKind, Sequence[float]]:
    """Return the kind of the values of a judge and of people, and all possible values in order, or none if continuous.

    Values are ordinal if each belongs to a label of the scale or, without a scale, if each score has a label and there
    are few values.
    """
    judged = {row.score.value for row in rows if row.score.value is not None}
    human = {value for sample in samples for value in sample.values}
    scale = {grade for grade in record.scale.values() if isinstance(grade, float | int)}
    if {*judged, *human, *scale} <= {0, 1}:
        return "binary", (0.0, 1.0)
    values = judged | human
    is_labeled = all(row.score.label is not None for row in rows if row.score.value is not None)
    is_ordinal = values <= scale if scale else is_labeled and len(values) <= _MOST_VALUES
    return ("ordinal", sorted(values | scale)) if is_ordinal else ("continuous", ())


@dataclass(frozen=True)
class VerdictPairs:
    """Samples with a verdict of people and of the judge: a value, or ``None`` if the question does not apply.

    A sample on which people disagree counts once, split among their verdicts.
    """

    kind: ValueKind
    values: Sequence[float]
    samples: Sequence[LabeledSample]
    human_verdicts: Sequence[Sequence[float | None]]
    by_verdict: bool

    @classmethod
    def of(cls, matched: MatchedLabels, kind: ValueKind, values: Sequence[float]) -> Self:
        """Return the labeled samples of a scorer."""
        human = [[opinion.value for opinion in sample.opinions] for sample in matched.samples]
        return cls(kind, values, matched.samples, human, matched.selection == "stratified")

    @cached_property
    def judge_verdicts(self) -> Sequence[float | None]:
        """The judge's verdict on each sample."""
        return [sample.judge_value for sample in self.samples]

    @cached_property
    def human_means(self) -> Sequence[float | None]:
        """The mean of people's values for each sample; ``None`` if all say that the question does not apply."""
        applying = [[value for value in verdicts if value is not None] for verdicts in self.human_verdicts]
        return [fsum(values) / len(values) if values else None for values in applying]

    @cached_property
    def applicable(self) -> Sequence[int]:
        """The places of the samples to which the question applies, according to the judge and at least one person."""
        pairs = zip(self.human_means, self.judge_verdicts, strict=True)
        return [index for index, pair in enumerate(pairs) if None not in pair]

    @cached_property
    def is_disputed(self) -> bool:
        """Whether people and the judge disagree on whether the question applies to some sample."""
        pairs = zip(self.human_verdicts, self.judge_verdicts, strict=True)
        return any((value is None) != (judged is None) for human, judged in pairs for value in human)

    @cached_property
    def groups(self) -> Sequence[str | None]:
        """The unit of each sample; see `Row`."""
        return [sample.row.unit for sample in self.samples]

    @cached_property
    def agreement_shares(self) -> Sequence[float]:
        """For each sample, the share of people, in [0, 1], who agree with the judge."""
        pairs = zip(self.human_verdicts, self.judge_verdicts, strict=True)
        return [fsum(_is_equal(value, judged) for value in human) / len(human) for human, judged in pairs]

    @cached_property
    def weights(self) -> Sequence[float]:
        """The number of samples of the run that each sample stands for; 1 unless they were drawn by verdict."""
        return [sample.weight for sample in self.samples]

    def bootstrap(self, statistic: Callable[[NDArray[np.intp]], float | None]) -> Estimate:
        """Return a statistic of the samples, given by their places, with its bootstrap interval.

        If samples were drawn with different probabilities, each is repeated in proportion to its weight.
        """
        places = np.arange(len(self.samples))
        of = self._counted(statistic, places)
        return Estimate.of(of(places), bootstrap_items(of, len(places), self.groups))

    def _counted(
        self, statistic: Callable[[NDArray[np.intp]], float | None], places: NDArray[np.intp]
    ) -> Callable[[NDArray[np.intp]], float | None]:
        """Return the statistic as a function of positions in ``places``, with each sample repeated by its weight."""
        copies = _copies(np.asarray(self.weights)[places]) if self.by_verdict else None

        def of(chosen: NDArray[np.intp]) -> float | None:
            drawn = chosen if copies is None else np.repeat(chosen, copies[chosen])
            return statistic(places[drawn])

        return of

    def accuracy(self, among: Sequence[int] | None = None) -> Estimate:
        """Return how often the judge is right, on all samples or on those at some places."""
        indices = range(len(self.samples)) if among is None else among
        return Estimate.mean(
            [self.agreement_shares[index] for index in indices], [self.groups[index] for index in indices]
        )

    def _shares(self, value: float) -> Sequence[float]:
        """Return the share of people who give a value, for each sample."""
        return [fsum(_is_equal(given, value) for given in verdicts) / len(verdicts) for verdicts in self.human_verdicts]

    def agreement(self) -> dict[str, Estimate]:
        """Return the agreement of the judge with people, by name; the first figure is the one to quote alone."""
        if not self.samples:
            return {}
        has_none = any(None in verdicts for verdicts in self.human_verdicts) or None in self.judge_verdicts
        if self.kind == "continuous":
            figures = self.subset(self.applicable)._value_agreement()  # noqa: SLF001 - its own
            return {**figures, "agreement on whether it applies": self._on_applicability()} if has_none else figures
        weights = self.weights if self.by_verdict else None
        values = [*self.values, NOT_APPLICABLE_VALUE] if has_none else self.values
        judged = [applicable_value(verdict) for verdict in self.judge_verdicts]
        tables = agreement.AgreementTables.of(
            _table(self.human_verdicts), judged, values=values, groups=self.groups, weights=weights
        )
        weighted: agreement.Weights = "quadratic" if self.kind == "ordinal" else "none"

        def kappa(table: NDArray[np.float64]) -> NDArray[np.float64]:
            return agreement.table_kappa(table, weighted, has_unordered=has_none)

        figures = {
            "weighted kappa" if self.kind == "ordinal" else "kappa": Estimate.of(*tables.figure(kappa)),
            "agreement": Estimate.of(*tables.figure(agreement.table_agreement)) if self.by_verdict else self.accuracy(),
            "AC1": Estimate.of(*tables.figure(agreement.table_ac1)),
        }
        if self.kind == "binary":
            for name, human in (("sensitivity", 1), ("specificity", 0)):
                shares = self._shares(human)
                if self.by_verdict or not {*shares} <= {0, 1}:
                    figures[name] = Estimate.of(*tables.figure(partial(agreement.table_agreement, row=human)))
                else:
                    figures[name] = self.accuracy([index for index, share in enumerate(shares) if share])
        return figures

    def _value_agreement(self) -> dict[str, Estimate]:
        """Return the agreement on continuous values."""
        if not self.samples:
            return {}
        both = np.asarray([self.human_means, self.judge_verdicts], np.float64)
        return {
            "alpha": self.bootstrap(lambda drawn: krippendorff_alpha(both[:, drawn], metric="interval")),
            "rank correlation": self.bootstrap(lambda drawn: rank_correlation(*both[:, drawn])),
        }

    def subset(self, indices: Sequence[int]) -> Self:
        """Return the pairs at some places."""
        verdicts = [self.human_verdicts[index] for index in indices]
        return replace(self, samples=[self.samples[index] for index in indices], human_verdicts=verdicts)

    def _on_applicability(self) -> Estimate:
        """Return how often people and the judge agree on whether the question applies."""
        shares = [
            verdicts.count(None) / len(verdicts) if judged is None else 1 - verdicts.count(None) / len(verdicts)
            for verdicts, judged in zip(self.human_verdicts, self.judge_verdicts, strict=True)
        ]
        if not self.by_verdict:
            return Estimate.mean(shares, self.groups)
        return self.bootstrap(lambda drawn: float(np.asarray(shares)[drawn].mean()))

    def confusion(self, record: ScorerRecord) -> dict[str, dict[str, float]]:
        """Return how often people give the label of a row and the judge that of a column."""
        graded = [(sample.judge_value, sample.row.score.label) for sample in self.samples]
        labels = [*graded, *((grade, label) for label, grade in record.scale.items() if not isinstance(grade, str))]
        value_labels = {
            value: " or ".join(dict.fromkeys(label for grade, label in labels if label and grade == value))
            for value in self.values
        }
        # A label may stand for several values, such as a share of what was asked for.
        used = Counter(value_labels.values())
        names = {
            value: f"{value:g}" if not name else name if used[name] == 1 else f"{name} ({value:g})"
            for value, name in value_labels.items()
        }
        times: dict[tuple[float | None, float | None], list[float]] = {}
        for verdicts, judged in zip(self.human_verdicts, self.judge_verdicts, strict=True):
            for value in verdicts:
                times.setdefault((value, judged), []).append(1 / len(verdicts))
        named: dict[float | None, str] = dict(names.items())
        if any(None in pair for pair in times):
            skipped = (label for label, grade in record.scale.items() if grade == "skipped")
            named[None] = next(skipped, "does not apply")
        return {
            of_row: {of_column: fsum(times.get((row, column), ())) for column, of_column in named.items()}
            for row, of_row in named.items()
        }

    def counts(self) -> ConfusionCounts | None:
        """Return how often each side says 0 or 1; a sample on which people disagree is split by their shares."""
        if self.kind != "binary" or not self.samples:
            return None
        yes, no = self._shares(1), self._shares(0)
        tp, fn, fp, tn = (
            fsum(share for share, judged in zip(shares, self.judge_verdicts, strict=True) if judged == verdict)
            for shares, verdict in ((yes, 1), (yes, 0), (no, 1), (no, 0))
        )
        return ConfusionCounts(tp=tp, fp=fp, fn=fn, tn=tn)

    def independent_counts(self) -> ConfusionCounts | None:
        """Return the counts that independent random samples would need to tell as much of sensitivity and specificity.

        They are fewer than the samples if these share groups, or were drawn by the judge's verdict, which also shifts
        the shares.
        """
        if self.kind != "binary" or not self.applicable or self.is_disputed:
            return None
        pairs = self.subset(self.applicable)
        (tp, fn), (fp, tn) = (pairs._independent(human) for human in (1.0, 0.0))  # noqa: SLF001 - its own
        return ConfusionCounts(tp=tp, fp=fp, fn=fn, tn=tn)

    def _independent(self, human: float) -> tuple[float, float]:
        """Return how many of the samples with one verdict of people the judge gives a 1, and how many a 0."""
        shares = self._shares(human)
        indices = [index for index, share in enumerate(shares) if share]
        if not indices:
            return 0.0, 0.0
        judged = [self.judge_verdicts[index] or 0.0 for index in indices]
        kept = [shares[index] for index in indices]
        weights = [self.weights[index] * share for index, share in zip(indices, kept, strict=True)]
        worth = self._effective_labels(shares) * independent_share(
            judged, [self.groups[index] for index in indices], kept
        )
        share = sum(weight * verdict for weight, verdict in zip(weights, judged, strict=True)) / sum(weights)
        return round(worth * share, _DIGITS), round(worth * (1 - share), _DIGITS)

    def _effective_labels(self, shares: Sequence[float]) -> float:
        """Return how many random samples would tell as much of how often the judge says 1 about some samples.

        ``shares`` says to which degree each sample is one of them. The number follows from the delta method on the odds
        of 1, whose two sides are sums over the verdicts that samples were drawn by. Half a sample of either kind is
        added to each verdict (Haldane 1956, https://doi.org/10.1111/j.1469-1809.1956.tb01285.x): of a frequent verdict
        that is never seen to be wrong, a few wrong ones that were not drawn would make up most of the errors.
        """
        if not self.by_verdict or len({*self.judge_verdicts}) < 2:
            return fsum(shares)
        verdicts = list(zip(self.judge_verdicts, self.weights, strict=True))
        every, these, variance = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        for verdict, n in Counter(verdicts).items():
            judged, weight = verdict
            such = fsum(share for share, pair in zip(shares, verdicts, strict=True) if pair == verdict)
            side, share = int(judged or 0), (such + 0.5) / (n + 1)
            every[side] += weight * n
            these[side] += weight * n * share
            variance[side] += weight**2 * n * share * (1 - share)
        share = these[1] / sum(these)
        of_odds = sum(variance[side] / these[side] ** 2 + 1 / every[side] for side in (0, 1))
        return 1 / (share * (1 - share) * of_odds)

    def disagreements(self) -> Sequence[Disagreement]:
        """Return the samples on which somebody disagrees with the judge, by distance and confidence, highest first."""
        pairs = zip(self.samples, self.human_means, self.human_verdicts, self.agreement_shares, strict=True)
        apart = [
            (sample, human, fsum(distance(sample.judge_value, value) for value in verdicts) / len(verdicts))
            for sample, human, verdicts, right in pairs
            if right < 1
        ]
        apart.sort(key=lambda entry: (-entry[2], -(entry[0].row.score.confidence or 0)))
        return [
            Disagreement(
                index=sample.row.index,
                sample_id=sample.row.sample_id,
                judge_value=sample.judge_value,
                label=sample.row.score.label,
                reason=sample.row.score.reason,
                human_value=human,
                opinions=sample.opinions,
            )
            for sample, human, _ in apart
        ]

    @cached_property
    def with_confidence(self) -> Sequence[int]:
        """The places of the samples whose verdict has a confidence and is right or wrong."""
        if self.kind == "continuous":
            return []
        pairs = [(sample.row.score.confidence, sample.judge_value) for sample in self.samples]
        return [index for index, pair in enumerate(pairs) if None not in pair]

    def calibration(self) -> Estimate | None:
        """Return the expected calibration error of the judge's confidence; ``None`` without a confidence.

        It has no interval: resampling raises the error by chance once more, so that percentiles would never include the
        0 of a perfectly calibrated judge.
        """
        if not self.with_confidence:
            return None
        confidence = np.asarray([sample.row.score.confidence or 0 for sample in self.samples])
        right = np.asarray(self.agreement_shares, np.float64)
        of = self._counted(
            lambda drawn: expected_calibration_error(confidence[drawn], right[drawn]),
            np.asarray(self.with_confidence, np.intp),
        )
        return Estimate(value=of(np.arange(len(self.with_confidence))))

    def guarantee(self, rows: Sequence[Row], alpha: float, delta: float, obstacle: str) -> Guarantee:
        """Return the confidence below which the judge must abstain; ``obstacle`` says why the labels cannot tell.

        One sample of each unit counts, since the guarantee holds for independent samples.
        """
        if not obstacle and self.kind == "continuous":
            obstacle = "continuous values are neither right nor wrong"
        if not obstacle and self.by_verdict:
            obstacle = "the samples were drawn by the judge's verdict, and a guarantee needs samples drawn at random"
        if not obstacle and not self.with_confidence:
            obstacle = "no labeled verdict has a confidence: ask several times (repeats=5), or use a judge that returns logprobs"
        if obstacle:
            return Guarantee(alpha=alpha, delta=delta, unavailable_reason=obstacle)
        alone = {row.index for row in first_of_units([self.samples[index].row for index in self.with_confidence])}
        indices = [index for index in self.with_confidence if self.samples[index].row.index in alone]
        confidence = [self.samples[index].row.score.confidence or 0 for index in indices]
        wrong = [1 - self.agreement_shares[index] for index in indices]
        every = [row.score.confidence for row in rows if row.score.confidence is not None]
        least = min_confidence_threshold(confidence, wrong, every, alpha=alpha, delta=delta)
        threshold = least.value
        if threshold is None:
            return Guarantee(alpha=alpha, delta=delta, unavailable_reason=least.unavailable_reason)
        kept = [float((row.score.confidence or 0) >= threshold) for row in rows]
        missed = [float(no) for no, sure in zip(wrong, confidence, strict=True) if sure >= threshold]
        coverage = Estimate.mean(kept, [row.unit for row in rows])
        return Guarantee(alpha=alpha, delta=delta, threshold=threshold, coverage=coverage, risk=Estimate.mean(missed))


def applicable_value(verdict: float | None) -> float:
    """Return a verdict as a number, even if the question does not apply."""
    return NOT_APPLICABLE_VALUE if verdict is None else verdict


def _is_equal(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return isclose(a, b, abs_tol=1e-9)


def _table(verdicts: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    """Return an array of shape (people, samples), with NaN for samples that have fewer labels than others."""
    table = np.full((max(map(len, verdicts)), len(verdicts)), nan)
    for column, values in enumerate(verdicts):
        table[: len(values), column] = [applicable_value(verdict) for verdict in values]
    return table


def _copies(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return how often to repeat each sample to match its weight to within 1 %, with as few copies as possible."""
    shares = weights / weights.min()
    off = ((n, np.abs(np.rint(shares * n) / (shares * n) - 1).max()) for n in range(1, _MOST_COPIES))
    least = next((n for n, most in off if most <= _ROUNDING), _MOST_COPIES)
    return np.asarray(np.rint(shares * least), np.intp)

"""Whether a candidate agrees more often with people than the question that it came from: errors in, a verdict out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from judgekit.runs.alignments import AlignmentOutcome
from judgekit.runs.intervals import Estimate
from judgekit.stats.comparison import paired_interval
from judgekit.stats.improvement import detectable_gain, look_level, mcnemar_mid_p, sign_flip_gain
from judgekit.stats.units import Units
from judgekit.traces.message import FrozenModel

MIN_LABELS = 40
"""The number of labeled samples below which nothing could be shown."""
MIN_OTHERS = 8
"""The number of labeled samples that must differ from the most frequent label."""
_RARE = 0.25
"""The share of a class below which both classes count equally, as agreement alone would favor the other one."""
_CLASS_LOSS = 0.05
"""The loss of agreement within one class that rules out an improvement, if it is shown."""
_DIGITS = 9
_BINARY = (0.0, 1.0)


class AlignmentVerdict(FrozenModel):
    """The result of testing one candidate against the old question.

    Agreement is 1 minus the mean distance between the judge's value and people's; for values of 0 or 1, how often the
    judge is right. Sensitivity is the agreement on what people pass, specificity that on what they fail.

    Attributes:
        outcome: Whether an improvement is shown.
        sample_count: The number of labeled samples in the test.
        before: The agreement of the old question.
        after: That of the candidate.
        gain: The difference, with its paired interval.
        fixed: The number of samples on which only the candidate is right, or nearer to people.
        regressed: The number of samples on which only the old question is.
        sensitivity: The old and the new sensitivity; ``None`` if people pass nothing.
        specificity: The old and the new specificity; ``None`` if people fail nothing.
        test: The test.
        p: Its one-sided p.
        alpha: The level of the test.
        least_gain: The gain in agreement that would have been shown with a probability of 80 %; ``None`` if none would.
    """

    outcome: AlignmentOutcome
    sample_count: int
    before: Estimate
    after: Estimate
    gain: Estimate
    fixed: int
    regressed: int
    sensitivity: tuple[float, float] | None = None
    specificity: tuple[float, float] | None = None
    test: str
    p: float
    alpha: float
    least_gain: float | None


@dataclass(frozen=True)
class JudgedSamples:
    """Labeled samples with the errors of the old question and of each candidate, in [0, 1].

    Attributes:
        human_values: The mean of the human labels of each sample; NaN if the question does not apply according to them.
        groups: The unit of each sample; see `judgekit.runs.rows.Row`.
        base: The errors of the old question.
        candidates: The errors of the candidates, a row for each.
    """

    human_values: NDArray[np.float64]
    groups: Sequence[str | None]
    base: NDArray[np.float64]
    candidates: NDArray[np.float64]

    def only(self, kept: NDArray[np.bool_]) -> Self:
        """Return some of the samples."""
        groups = [group for group, keep in zip(self.groups, kept, strict=True) if keep]
        return type(self)(self.human_values[kept], groups, self.base[kept], self.candidates[:, kept])

    @property
    def improvements(self) -> NDArray[np.float64]:
        """The number by which each candidate is nearer to people than the old question, on each sample."""
        return np.round(self.base - self.candidates, _DIGITS)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights by which both classes count equally, if one of them is rare; otherwise ``None``."""
        passed = self.human_values == 1
        share = float(passed.mean()) if len(passed) else 0.0
        if not np.isin(self.human_values, _BINARY).all() or not 0 < min(share, 1 - share) < _RARE:
            return None
        return np.where(passed, 0.5 / share, 0.5 / (1 - share))

    def agreement(self) -> NDArray[np.float64]:
        """Return the agreement of each candidate, with both classes counting equally if one of them is rare."""
        return 1 - np.average(self.candidates, axis=1, weights=self.weights)


def choose(samples: JudgedSamples) -> int:
    """Return the place of the candidate that agrees best with people, the first of several."""
    return int(np.argmax(np.round(samples.agreement(), _DIGITS)))


def holdout_verdict(samples: JudgedSamples, chosen: int, *, look: int = 1) -> AlignmentVerdict:
    """Test once whether the chosen candidate is better, on samples that did not choose it.

    The test is the one-sided McNemar mid-p; with groups, values other than 0 and 1, or a rare class, a sign-flip test
    in which a group changes sides together.

    Args:
        samples: The samples, none of which was read or chose.
        chosen: The place of the candidate.
        look: How many times labels of this test set have been looked at, this time included.
    """
    gains = samples.improvements[chosen]
    test, p = _holdout_p(samples, gains)
    _, opposite = _holdout_p(samples, -gains)
    alpha = look_level(look)
    rates = {value: _class_rates(samples, chosen, value) for value in _BINARY}
    outcome: AlignmentOutcome = "not shown"
    if p < alpha and not any(_is_harmed(samples, gains, value) for value in _BINARY):
        outcome = "shown"
    elif opposite < alpha:
        outcome = "worse"
    units, discordant = len(Units.of(gains, samples.groups)), float((gains != 0).mean())
    return AlignmentVerdict(
        outcome=outcome,
        sample_count=len(gains),
        before=Estimate.mean([*(1 - samples.base)], samples.groups),
        after=Estimate.mean([*(1 - samples.candidates[chosen])], samples.groups),
        gain=Estimate.of(float(gains.mean()), paired_interval(gains, samples.groups)),
        fixed=int((gains > 0).sum()),
        regressed=int((gains < 0).sum()),
        sensitivity=rates[1.0],
        specificity=rates[0.0],
        test=test,
        p=p,
        alpha=alpha,
        least_gain=detectable_gain(units, discordant, alpha=alpha),
    )


def _holdout_p(samples: JudgedSamples, gains: NDArray[np.float64]) -> tuple[str, float]:
    weights = samples.weights
    if weights is None and Units.of(gains, samples.groups).codes is None and np.isin(gains, (-1, 0, 1)).all():
        return "McNemar mid-p", mcnemar_mid_p(int((gains > 0).sum()), int((gains < 0).sum()))
    by_class = "" if weights is None else ", both classes counting equally"
    return f"sign-flip{by_class}", sign_flip_gain(gains if weights is None else gains * weights, samples.groups)


def _class_rates(samples: JudgedSamples, chosen: int, value: float) -> tuple[float, float] | None:
    those = samples.human_values == value
    if not those.any():
        return None
    return 1 - float(samples.base[those].mean()), 1 - float(samples.candidates[chosen][those].mean())


def _is_harmed(samples: JudgedSamples, gains: NDArray[np.float64], value: float) -> bool:
    those = samples.human_values == value
    groups = [group for group, is_chosen in zip(samples.groups, those, strict=True) if is_chosen]
    lost = paired_interval(-gains[those], groups) if those.any() else None
    return lost is not None and lost.low > _CLASS_LOSS


def refusal_reason(human_values: Sequence[float | None]) -> str:
    """Return why labeled samples are too few or too much alike to align a judge by; empty if they are not."""
    if (n := len(human_values)) < MIN_LABELS:
        return f"{n} labeled samples are too few: at least {MIN_LABELS} are needed, and 100 to show a common gain"
    ((_, most),) = Counter(None if value is None else round(value) for value in human_values).most_common(1)
    if (others := n - most) < MIN_OTHERS:
        return f"only {others} of {n} labeled samples differ from the others in their label: at least {MIN_OTHERS} are needed"
    return ""

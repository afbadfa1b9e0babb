"""Bradley-Terry strengths of competitors, from pairwise comparisons."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import log1p, sqrt, tanh

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.quantiles import t_quantile
from judgekit.stats.units import Groups, Units, check_within
from judgekit.stats.wilson import Interval

_ENOUGH = 1e-9


@dataclass(frozen=True)
class BradleyTerry:
    """The strengths of competitors on the logistic scale, with a mean of 0.

    Attributes:
        strengths: The strength of each competitor, in the order of their first comparison.
        intervals: The intervals of the strengths relative to their mean; ``None`` if there are fewer units than
            competitors, or if all agree.
    """

    strengths: Mapping[Hashable, float]
    intervals: Mapping[Hashable, Interval | None]

    def beats(self, first: Hashable, second: Hashable) -> float:
        """Return the probability that one is preferred, with a tie counting half: 1 / (1 + exp(second - first))."""
        return (1 + tanh((self.strengths[first] - self.strengths[second]) / 2)) / 2


def bradley_terry(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    scores: ArrayLike,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
) -> BradleyTerry | None:
    """Return the strengths that make the comparisons most likely, with a tie counting as half a win for each side.

    They are found by Newton's method with damped steps that always improve the likelihood (Bach 2010,
    https://doi.org/10.1214/09-EJS521). The intervals are t intervals with a cluster-robust standard error, the sandwich
    of the information matrix around the sum over units of the squared scores. It is valid if ties are half wins, which
    vary less than wins and losses, and if comparisons in one group, such as votes on one question, depend on each
    other. It is too small for few units. Source: Bradley and Terry 1952, https://doi.org/10.2307/2334029; Liang and
    Zeger 1986, https://doi.org/10.1093/biomet/73.1.13. Outcomes are assumed to depend only on differences of strengths.

    Args:
        first: The first competitor of each comparison.
        second: The second competitor of each comparison.
        scores: 1 if the first won, 0 if the second won, 0.5 for a tie.
        groups: The group of each comparison; by default, each is its own.
        level: The confidence level of the intervals.

    Returns:
        ``None`` if there are no comparisons, or if the competitors fall into two parts such that nobody in one ever won
        or tied against anybody in the other: their distance is then unknown (Ford 1957,
        https://doi.org/10.2307/2308513).

    Raises:
        ValueError: The lists differ in length, a score is not in [0, 1], or a competitor is compared with itself.
    """
    units = Units.of(scores, groups)
    values = units.values
    if not len(first) == len(second) == len(values):
        raise ValueError(
            f"expected first, second and scores of one length, found {len(first)}, {len(second)}, {len(values)}"
        )
    check_within(values, 0, 1, "scores")
    if (
        same := next((estimate for estimate, other in zip(first, second, strict=True) if estimate == other), None)
    ) is not None:
        raise ValueError(f"expected two different competitors, found {same!r} compared with itself")
    names = list(dict.fromkeys(name for pair in zip(first, second, strict=True) for name in pair))
    numbers = {name: number for number, name in enumerate(names)}
    design = np.zeros((len(values), len(names)))  # 1 for the first competitor, -1 for the second
    rows = np.arange(len(values))
    design[rows, [numbers[name] for name in first]] = 1
    design[rows, [numbers[name] for name in second]] = -1
    if not names or not _is_connected(design, values):
        return None
    strengths = np.zeros(len(names))
    while True:
        likely = (1 + np.tanh(design @ strengths / 2)) / 2
        information = design.T @ (design * (likely * (1 - likely))[:, np.newaxis]) + 1 / len(names)  # fixes the mean
        influences = np.linalg.solve(information, (design * (values - likely)[:, np.newaxis]).T)
        step = influences.sum(axis=1)
        if (reach := float(np.ptp(step))) < _ENOUGH:
            break
        strengths += step * log1p(reach) / reach
    intervals = [_interval(*estimate, units, len(names), level) for estimate in zip(strengths, influences, strict=True)]
    return BradleyTerry(dict(zip(names, strengths.tolist(), strict=True)), dict(zip(names, intervals, strict=True)))


def _is_connected(design: NDArray[np.float64], scores: NDArray[np.float64]) -> bool:
    """Return whether a chain of wins and ties leads from each competitor to each other one."""
    gained = (design > 0) * scores[:, np.newaxis] + (design < 0) * (1 - scores)[:, np.newaxis]
    reached = (gained.T @ np.abs(design)) > 0
    for _ in range(design.shape[1].bit_length()):
        reached = reached @ reached
    return bool(reached.all())


def _interval(
    strength: float, influences: NDArray[np.float64], units: Units, competitors: int, level: float
) -> Interval | None:
    """Return the t interval of a strength, given the influence of each comparison on it."""
    if (count := len(units)) < competitors:
        return None
    error = sqrt(count / (count - 1) * float(np.square(units.sums(influences)).sum()))
    if error < _ENOUGH:
        return None
    half = error * t_quantile(count - 1, (1 + level) / 2)
    method = "sandwich t" if units.codes is None else f"cluster-robust sandwich t, {count:,} groups"
    return Interval(float(strength) - half, float(strength) + half, method)

"""Two runs over the same samples: how far they differ, and how likely chance alone would make them differ so far."""

from collections.abc import Sequence
from math import floor, log2

import numpy as np
from numpy.typing import ArrayLike

from judgekit.stats.intervals import Interval, t_interval, wilson_bounds
from judgekit.stats.quantiles import normal_quantile, t_quantile
from judgekit.stats.units import Groups, Units, must_be_within

_BITS = 8
_SIGNS = 2.0 * (np.arange(2**_BITS) >> np.arange(_BITS)[:, np.newaxis] & 1) - 1  # a column for each choice of -1 and 1
_CHUNK = 1_000
_ROUNDING = 1e-12


def paired_interval(differences: ArrayLike, groups: Groups | None = None, *, level: float = 0.95) -> Interval | None:
    """Return the interval of the mean difference of pairs of scores: `t_interval`, cut to [-1, 1].

    Where all units are alike, t would say that the mean is known exactly. What is known is that none of G units is
    otherwise, so that a share of at most p of all can be: p is the upper bound of `wilson` for 0 of G. Were these at -1,
    or at 1, the mean would lie by p times the way to either: that is the interval.

    Assumes independent units. Where few units differ, and nearly all of these in one direction, it covers too little: in
    simulations with 3 to 10 such units expected, 83 to 93 % instead of 95 %.

    Returns:
        ``None`` where there are fewer than two units.

    Raises:
        ValueError: A difference is not in [-1, 1].
    """
    units = Units.of(differences, groups)
    must_be_within(units.values, -1, 1)
    if (count := len(units)) < 2:
        return None
    if spread := t_interval(units, level=level):
        return spread._replace(low=max(-1.0, spread.low), high=min(1.0, spread.high))
    mean, (_, share) = float(units.values.mean()), wilson_bounds(0, count, normal_quantile((1 + level) / 2))
    method = f"Wilson, all {'pairs' if units.codes is None else f'{count:,} groups'} alike"
    return Interval(mean - share * (mean + 1), mean + share * (1 - mean), method)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of pairs of scores that are 0 or 1, from how many are 1 on one side only.

    Were both sides the same, each of these pairs would fall to either with probability 1/2. Source: McNemar 1947,
    https://doi.org/10.1007/BF02295996, with the binomial distribution in the place of chi-squared. Assumes independent
    pairs. 1 where no pair differs.
    """
    from scipy.special import bdtr  # noqa: PLC0415 - slow to import

    pairs = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), pairs, 0.5)))


def sign_flip(differences: ArrayLike, groups: Groups | None = None, *, draws: int = 10_000, seed: int = 0) -> float:
    """The two-sided p of a mean difference: how often it is as far from 0 if the sides of each unit change at random.

    The signs of a whole group change together. All ways to change them are gone through where there are no more than
    ``draws`` of them; else as many are drawn, and p is (b + 1) / (draws + 1), where b of them are as far from 0. Source:
    Fisher 1935, "The Design of Experiments", section 21; Phipson and Smyth 2010, https://doi.org/10.2202/1544-6115.1585.
    Assumes that, were there no difference, each unit would be as likely the other way round. Units whose differences
    come to 0 change nothing. 1 where no unit differs.
    """
    units = Units.of(differences, groups)
    sums = units.sums(units.values)
    sums = sums[sums != 0]
    as_far = abs(float(sums.sum())) - _ROUNDING * float(np.abs(sums).sum())
    if len(sums) < draws.bit_length():  # 2 ** len(sums) <= draws, without a number that long
        totals = np.zeros(1)
        for one in sums:
            totals = np.concatenate([totals - one, totals + one])
        return float(np.mean(np.abs(totals) >= as_far))
    random = np.random.default_rng(seed)
    totals = np.zeros(draws)
    blocks = np.pad(sums, (0, -len(sums) % _BITS)).reshape(-1, _BITS)
    for start in range(0, len(blocks), _CHUNK):
        for sums_by_signs in blocks[start : start + _CHUNK] @ _SIGNS:
            totals += sums_by_signs[np.frombuffer(random.bytes(draws), np.uint8)]
    return (int(np.sum(np.abs(totals) >= as_far)) + 1) / (draws + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p adjusted for how many there are: below alpha, it holds with all others at a family-wise error of alpha.

    Source: Holm 1979, https://www.jstor.org/stable/4615733. Assumes nothing of how they depend on each other. ``None``
    was not tested, and is not counted.
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for before, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - before) * p))
        adjusted[index] = highest
    return adjusted


def detectable_difference(standard_error: float, df: int, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true difference that a two-sided t test of this standard error would show with probability ``power``.

    It is the standard error times the noncentrality at which t with ``df`` degrees of freedom passes its critical value
    that often; that it passes the one on the other side is left out, being less likely than one in a million. Source: Bloom
    1995, https://doi.org/10.1177/0193841X9501900504, with noncentral t in the place of his sum of two quantiles. Assumes
    that the standard error is known.

    Returns:
        ``None`` where the standard error is 0 or there is no degree of freedom, and nothing can be said.
    """
    if standard_error <= 0 or df < 1:
        return None
    from scipy.special import nctdtrinc  # noqa: PLC0415 - slow to import

    return standard_error * float(nctdtrinc(df, 1 - power, t_quantile(df, 1 - alpha / 2)))


def least_by_signs(units: Units, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true mean difference that `mcnemar` or `sign_flip` can show with probability ``power``, at the best.

    With m units that differ their p is no less than 2 * 2**-m, so that it takes some of them: 6 where ``alpha`` is 0.05.
    At the best all go to one side. If each unit then differs with probability q, by as much as those do that differ
    here, at least m of G differ with a probability that is the incomplete beta function I_q(m, G - m + 1). A t test,
    which `detectable_difference` is of, knows no such bound: of few differences it says too little.

    Returns:
        ``None`` where there are fewer than m units, or none that differs.
    """
    least, count = floor(1 - log2(alpha)) + 1, len(units)
    sums = np.abs(units.sums(units.values))
    if count < least or not sums.any():
        return None
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import

    return float(sums[sums != 0].mean() * count / len(units.values) * betaincinv(least, count - least + 1, power))

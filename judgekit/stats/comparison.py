"""Comparison of two runs on the same samples: the size of the difference, and tests against chance."""

from collections.abc import Sequence
from math import floor, log2

import numpy as np
from numpy.typing import ArrayLike

from judgekit.stats.intervals import t_interval
from judgekit.stats.quantiles import normal_quantile, t_quantile
from judgekit.stats.units import Groups, Units, check_within
from judgekit.stats.wilson import Interval, wilson_bounds

_BITS = 8
_SIGNS = 2.0 * (np.arange(2**_BITS) >> np.arange(_BITS)[:, np.newaxis] & 1) - 1  # one column per combination of signs
_CHUNK = 1_000
_ROUNDING = 1e-12


def paired_interval(differences: ArrayLike, groups: Groups | None = None, *, level: float = 0.95) -> Interval | None:
    """Return the interval of the mean difference of paired scores: t with two more units, clipped to [-1, 1].

    If few units differ, nearly all of them in one direction, t alone errs too often: "not worse by more than M" is
    then claimed of systems that are worse by M in 12 % of runs instead of 2.5 %. So two units are added that differ as
    much as the unit that differs most, one in each direction. For pairs of 0s and 1s, these are those of Bonett and
    Price 2012, https://doi.org/10.3102/1076998611411915. With groups, they have the average size.

    If all units are equal, t would treat the mean as exactly known. In fact, none of G units differs, so at most a
    share p of all units can: p is the upper bound of `wilson` for 0 of G. If these were at -1 or at 1, the mean would
    move by p of the way there, which gives the interval.

    Units are assumed to be independent. In simulations at 95 % (``benchmarks/differences.py``), the coverage
    is 93.9 % or more, and each side errs in 5.8 % at most; however, if all but very few units differ only slightly and
    these by 1, it is 71 to 79 %, since runs without such a unit do not show that there are any.

    Returns:
        ``None`` if there are fewer than two units.

    Raises:
        ValueError: A difference is not in [-1, 1].
    """
    units = Units.of(differences, groups)
    check_within(units.values, -1, 1)
    if (count := len(units)) < 2:
        return None
    if units.standard_error():
        size = round(len(units.values) / count)
        largest = np.abs(units.sums(units.values)).max() / size
        values = np.concatenate([units.values, np.repeat([largest, -largest], size)])
        codes = None if units.codes is None else np.concatenate([units.codes, np.repeat([count, count + 1], size)])
        if spread := t_interval(Units(values, codes), level=level):
            method = "adjusted t" if codes is None else f"adjusted cluster-robust t, {count:,} groups"
            return Interval(max(-1.0, spread.low), min(1.0, spread.high), method)
    mean, (_, share) = float(units.values.mean()), wilson_bounds(0, count, normal_quantile((1 + level) / 2))
    method = f"Wilson, all {'pairs' if units.codes is None else f'{count:,} groups'} equal"
    return Interval(mean - share * (mean + 1), mean + share * (1 - mean), method)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p for paired binary scores, from the numbers of pairs that are 1 on one side only.

    If both sides were equally good, each of these pairs would favor either side with probability 1/2. Source: McNemar
    1947, https://doi.org/10.1007/BF02295996, with the binomial distribution instead of chi-squared. Pairs are assumed
    to be independent. The result is 1 if no pair differs.
    """
    from scipy.special import bdtr  # noqa: PLC0415 - slow to import

    pairs = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), pairs, 0.5)))


def sign_flip(differences: ArrayLike, groups: Groups | None = None, *, draws: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p of a mean difference: how often it is as far from 0 if units swap sides at random.

    The signs of a whole group change together. All combinations of signs are enumerated if there are at most ``draws``
    of them; otherwise that many are drawn, and p is (b + 1) / (draws + 1), where b of them are as far from 0. Source:
    Fisher 1935, "The Design of Experiments", section 21; Phipson and Smyth 2010,
    https://doi.org/10.2202/1544-6115.1585. It is assumed that, without a difference, each unit would be equally likely
    the other way round. Units whose differences sum to 0 have no effect. The result is 1 if no unit differs.
    """
    units = Units.of(differences, groups)
    sums = units.sums(units.values)
    sums = sums[sums != 0]
    as_far = abs(float(sums.sum())) - _ROUNDING * float(np.abs(sums).sum())
    if len(sums) < draws.bit_length():  # 2 ** len(sums) <= draws, without computing a huge number
        totals = np.zeros(1)
        for amount in sums:
            totals = np.concatenate([totals - amount, totals + amount])
        return float(np.mean(np.abs(totals) >= as_far))
    random = np.random.default_rng(seed)
    totals = np.zeros(draws)
    blocks = np.pad(sums, (0, -len(sums) % _BITS)).reshape(-1, _BITS)
    for start in range(0, len(blocks), _CHUNK):
        for sums_by_signs in blocks[start : start + _CHUNK] @ _SIGNS:
            totals += sums_by_signs[np.frombuffer(random.bytes(draws), np.uint8)]
    return (int(np.sum(np.abs(totals) >= as_far)) + 1) / (draws + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted by Holm's method, which controls the family-wise error rate.

    Those below alpha hold together at a family-wise error rate of alpha. Source: Holm 1979,
    https://www.jstor.org/stable/4615733. Any dependence between the tests is allowed. ``None`` stands for a test that
    was not made, and does not count.
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for before, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - before) * p))
        adjusted[index] = highest
    return adjusted


def detectable_difference(standard_error: float, df: int, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the smallest true difference that a two-sided t test detects with probability ``power``.

    It is the standard error times the noncentrality at which t with ``df`` degrees of freedom exceeds its critical
    value that often; the critical value on the other side is ignored, being exceeded less than once in a million times.
    Source: Bloom 1995, https://doi.org/10.1177/0193841X9501900504, with noncentral t instead of the sum of two
    quantiles. The standard error is assumed to be known.

    Returns:
        ``None`` if the standard error is 0 or there are no degrees of freedom.
    """
    if standard_error <= 0 or df < 1:
        return None
    from scipy.special import nctdtrinc  # noqa: PLC0415 - slow to import

    return standard_error * float(nctdtrinc(df, 1 - power, t_quantile(df, 1 - alpha / 2)))


def detectable_by_signs(units: Units, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the smallest true mean difference that `mcnemar` or `sign_flip` can detect with probability ``power``.

    With m differing units, their p is at least 2 * 2**-m, so they need a minimum of units: 6 for an ``alpha`` of 0.05.
    In the best case, all differ in one direction. If each unit then differs with probability q, by as much as the
    differing units here, at least m of G differ with a probability given by the incomplete beta function I_q(m, G - m +
    1). The t test of `detectable_difference` has no such bound: with few differences, its result is too small.

    Returns:
        ``None`` if there are fewer than m units, or if none differs.
    """
    least, count = floor(1 - log2(alpha)) + 1, len(units)
    sums = np.abs(units.sums(units.values))
    if count < least or not sums.any():
        return None
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import

    return float(sums[sums != 0].mean() * count / len(units.values) * betaincinv(least, count - least + 1, power))

"""Confidence intervals of means."""

from collections.abc import Callable, Iterator
from math import sqrt
from typing import NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from judgekit.stats.units import Groups, Units


class Interval(NamedTuple):
    """The bounds of a confidence interval, and how it was found."""

    low: float
    high: float
    method: str


def mean_interval(values: ArrayLike, groups: Groups | None = None, *, level: float = 0.95) -> Interval | None:
    """The interval of a mean of scores, by what the scores are.

    `wilson` if all are 0 or 1 and no group has a second value, else `t_interval`, cut to [0, 1], where every mean of
    scores lies, which does not change how often it covers it; and where all units are alike, so that it would have no
    width, `bounded_interval` says what takes its place.

    Returns:
        ``None`` where there are fewer than two units, and nothing can be said; one score that is 0 or 1 has an interval.

    Raises:
        ValueError: A value is not in [0, 1].
    """
    units = Units.of(values, groups)
    if units.codes is None and ((units.values == 0) | (units.values == 1)).all():
        return wilson(int(units.values.sum()), len(units), level=level)
    return bounded_interval(units, 0, 1, level=level)


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval | None:
    """The score interval of a share; ``None`` where ``n`` is 0.

    Source: Wilson 1927, https://doi.org/10.1080/01621459.1927.10502953, without a correction for continuity, as advised
    by Brown, Cai and DasGupta 2001 (https://doi.org/10.1214/ss/1009213286). Assumes independent values. Counts need not be
    whole: a value that two people give differently is half a success.

    Raises:
        ValueError: There are fewer than 0 successes, or more than ``n``.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 to {n} successes, found {successes}")
    if n == 0:
        return None
    share, z = successes / n, _z(level)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = max(0.0, centre - half) if successes else 0.0
    high = min(1.0, centre + half) if successes < n else 1.0
    return Interval(low, high, "Wilson")


def t_interval(units: Units, *, level: float = 0.95) -> Interval | None:
    """The interval of the mean of all values by Student's t, with as many degrees of freedom as there are units, less one.

    The standard error is that of `Units.standard_error`, so that with groups it is cluster-robust. Source: Student 1908,
    https://doi.org/10.1093/biomet/6.1.1. Assumes independent units and a mean that is nearly normal: where values are very
    skewed, such as a few failures among many successes, or where there are under some 20 groups, it covers the mean less
    often than it says.

    Returns:
        ``None`` where units do not differ.
    """
    if not (error := units.standard_error()):
        return None
    mean, half = float(units.values.mean()), error * float(stdtrit(len(units) - 1, (1 + level) / 2))
    method = "t" if units.codes is None else f"cluster-robust t, {len(units):,} groups"
    return Interval(mean - half, mean + half, method)


def bounded_interval(units: Units, least: float, most: float, *, level: float = 0.95) -> Interval | None:
    """The interval of a mean of values between ``least`` and ``most``: `t_interval`, cut to these.

    Where all units are alike, t would say that the mean is known exactly. What is known is that none of G units is
    otherwise, so that a share of at most p of all can be: p is the upper bound of `wilson` for 0 of G, z**2 / (G + z**2).
    Were these at ``least`` or at ``most``, the mean would lie by p times the way to either: that is the interval. Where
    all are 0, or all 1, it is that of `wilson`. Assumes that the size of a group does not depend on its values.

    Returns:
        ``None`` where there are fewer than two units.

    Raises:
        ValueError: A value is not between the two.
    """
    outside = units.values[(units.values < least) | (units.values > most)]
    if len(outside):
        raise ValueError(f"expected values in [{least:g}, {most:g}], found {outside[0]!s}")
    count = len(units)
    if count < 2:
        return None
    if spread := t_interval(units, level=level):
        return spread._replace(low=max(least, spread.low), high=min(most, spread.high))
    mean, share = float(units.values.mean()), _z(level) ** 2 / (count + _z(level) ** 2)
    method = f"Wilson, all {'values' if units.codes is None else f'{count:,} groups'} alike"
    return Interval(mean - share * (mean - least), mean + share * (most - mean), method)


def bootstrap(
    values: ArrayLike,
    groups: Groups | None = None,
    *,
    statistic: Callable[[NDArray[np.float64]], SupportsFloat] = np.mean,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval | None:
    """The interval of a statistic by the percentiles of its values in samples drawn with replacement.

    Groups are drawn whole, as many as there are. Percentiles stay where the statistic can lie and need nothing but the
    draws; BCa would need the statistic without each of the units in turn, which is out of reach for a large run. They
    make the interval too narrow where units are few: with under some 30, t is the better one. What is no list of numbers
    is drawn by its indices, which come to ``statistic`` as floats: ``bootstrap(range(len(scores)), statistic=...)``.

    Source: Efron 1979, https://doi.org/10.1214/aos/1176344552; the number of draws: Hesterberg 2015,
    https://doi.org/10.1080/00031305.2015.1089789. Assumes independent units.

    Returns:
        ``None`` where there are fewer than two units, a draw has no finite value, or all draws have the same.
    """
    units = Units.of(values, groups)
    if (count := len(units)) < 2:
        return None
    samples = _resamples(units, np.random.default_rng(seed))
    found = np.fromiter((float(statistic(sample)) for sample in samples), np.float64, draws)
    if not np.isfinite(found).all() or found.min() == found.max():
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), "bootstrap" if units.codes is None else f"bootstrap, {count:,} groups")


def _resamples(units: Units, random: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """As many units as there are, drawn with replacement, without end."""
    count = len(units)
    if units.codes is None:
        while True:
            yield units.values[random.integers(count, size=count)]
    values = units.values[np.argsort(units.codes, kind="stable")]
    sizes = np.bincount(units.codes)
    ends = np.cumsum(sizes)
    while True:
        drawn = random.integers(count, size=count)
        lengths = sizes[drawn]
        shifts = np.repeat(ends[drawn] - np.cumsum(lengths), lengths)
        yield values[np.arange(len(shifts)) + shifts]


def _z(level: float) -> float:
    return float(ndtri((1 + level) / 2))

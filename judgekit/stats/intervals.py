"""Confidence intervals of means."""

from collections.abc import Callable, Iterator
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.quantiles import t_quantile
from judgekit.stats.units import Groups, Units, check_within
from judgekit.stats.wilson import Interval, wilson, wilson_bounds

_FEW_APART = 2
"""The most units, up to a tenth, that differ from all others if an interval is said to be too narrow."""


def mean_interval(values: ArrayLike, groups: Groups | None = None, *, level: float = 0.95) -> Interval | None:
    """Return the modified Wilson interval of a mean of scores in [0, 1].

    This is Wilson's interval for the effective number of values: the number of independent 0s and 1s whose mean would
    have the same variance, n_eff = mean * (1 - mean) / variance. With groups, the variance is the cluster-robust one of
    `Units.standard_error`. Because the variance is estimated, z is replaced by Student's t, with one degree of freedom
    less than there are units. Groups of unequal size count as `Units.effective_count` of equal ones, since the mean
    rests on the large ones. Source: Franco et al. 2019, https://pmc.ncbi.nlm.nih.gov/articles/PMC6690503. If
    ungrouped scores are all 0 or 1, their mean determines the variance, and the interval is `wilson`.

    Since other scores may still occur, n_eff is computed with two extra units, one at 0 and one at 1, like the uniform
    prior of a share. The mean is unchanged. Hence there is an interval even if all units are equal.

    Units are assumed to be independent. In simulations at 95 %, the coverage was 93 % or more for the mean of scores on
    a scale from 1 to 5, and of repeated trials of 5 to 100 tasks, even if one task has most of the trials. It falls to
    84 to 88 % if less than one score that is not 1 (or not 0) is expected; where one or two were found, the
    method says so. The
    interval is wider than the t interval for scores with little variation: around the middle of the scale, with a
    standard deviation of 0.1, it is 1.4 times as wide for 50 scores and 1.1 times for 200.

    Returns:
        ``None`` if there are fewer than two units; however, a single score of 0 or 1 has an interval.

    Raises:
        ValueError: A value is not in [0, 1].
    """
    units = Units.of(values, groups)
    check_within(units.values, 0, 1)
    if units.codes is None and ((units.values == 0) | (units.values == 1)).all():
        return wilson(int(units.values.sum()), len(units), level=level)
    if (error := units.standard_error()) is None:
        return None
    count, equal, mean = len(units), units.effective_count, float(units.values.mean())
    added = mean**2 + (1 - mean) ** 2
    effective = (equal * mean * (1 - mean) + added) / (equal * (count - 1) / count * error**2 + added / equal)
    method = "modified Wilson" if units.codes is None else f"modified Wilson, {count:,} groups"
    apart = min(np.count_nonzero(units.sums(units.values)), np.count_nonzero(units.sums(1 - units.values)))
    if 0 < apart <= min(_FEW_APART, count // 10):
        method += f"; it may be too narrow, since all but {apart} of {count:,} are {'0' if mean < 0.5 else '1'}"
    return Interval(*wilson_bounds(mean, effective, t_quantile(max(1.0, equal - 1), (1 + level) / 2)), method)


def t_interval(units: Units, *, level: float = 0.95) -> Interval | None:
    """Return Student's t interval of the mean of all values, with one degree of freedom less than there are units.

    The standard error is that of `Units.standard_error`, which is cluster-robust with groups. Source: Student 1908,
    https://doi.org/10.1093/biomet/6.1.1. Units are assumed to be independent and the mean nearly normal: coverage is
    too low for very skewed values, such as a few failures among many successes, or for fewer than about 20 groups.

    Returns:
        ``None`` if units do not differ.
    """
    if not (error := units.standard_error()):
        return None
    mean, half = float(units.values.mean()), error * t_quantile(len(units) - 1, (1 + level) / 2)
    method = "t" if units.codes is None else f"cluster-robust t, {len(units):,} groups"
    return Interval(mean - half, mean + half, method)


def bootstrap(
    values: ArrayLike,
    groups: Groups | None = None,
    *,
    statistic: Callable[[NDArray[np.float64]], SupportsFloat] = np.mean,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval | None:
    """Return the percentile bootstrap interval of a statistic.

    Groups are resampled as a whole. Percentiles respect the range of the statistic and need only the draws; BCa would
    need the statistic without each unit in turn, which is infeasible for a large run. The interval is too narrow for
    few units: below about 30, t is better. Data other than a list of numbers is resampled by index, passed to
    ``statistic`` as floats: ``bootstrap(range(len(scores)), statistic=...)``.

    Source: Efron 1979, https://doi.org/10.1214/aos/1176344552; the number of draws: Hesterberg 2015,
    https://doi.org/10.1080/00031305.2015.1089789. Units are assumed to be independent.

    Returns:
        ``None`` if there are fewer than two units, a draw has no finite value, or all draws have the same value.
    """
    units = Units.of(values, groups)
    if (count := len(units)) < 2:
        return None
    samples = resamples(units, np.random.default_rng(seed))
    statistics = np.fromiter((float(statistic(units.values[sample])) for sample in samples), np.float64, draws)
    if not np.isfinite(statistics).all() or statistics.min() == statistics.max():
        return None
    low, high = np.quantile(statistics, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), "bootstrap" if units.codes is None else f"bootstrap, {count:,} groups")


def resamples(units: Units, random: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield, endlessly, the indices of the values in as many units as there are, drawn with replacement."""
    count = len(units)
    if units.codes is None:
        while True:
            yield random.integers(count, size=count, dtype=np.intp)
    members = np.argsort(units.codes, kind="stable")
    sizes = np.bincount(units.codes)
    ends = np.cumsum(sizes)
    while True:
        drawn = random.integers(count, size=count)
        lengths = sizes[drawn]
        shifts = np.repeat(ends[drawn] - np.cumsum(lengths), lengths)
        yield members[np.arange(len(shifts)) + shifts]

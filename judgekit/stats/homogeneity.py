"""Tests of whether two sets of values come from the same distribution."""

from collections.abc import Mapping
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from judgekit.stats.units import Units

_DRAWS = 9_999
_ROUNDING = 1e-9


def kolmogorov_smirnov(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the two-sided p of D, the largest distance between the cumulative shares of two sets of values.

    p is that of sqrt(n m / (n + m)) D in Kolmogorov's distribution. Source: Smirnov 1948,
    https://doi.org/10.1214/aoms/1177730256. Values are assumed to be independent; with ties or few values, p is too
    large rather than too small.

    Returns:
        ``None`` if a set is empty.

    Raises:
        ValueError: A value is not a finite number.
    """
    first, second = np.sort(Units.of(a).values), np.sort(Units.of(b).values)
    if not len(first) or not len(second):
        return None
    from scipy.special import kolmogorov  # noqa: PLC0415 - slow to import

    values = np.concatenate([first, second])
    below, other = (np.searchsorted(ordered, values, "right") / len(ordered) for ordered in (first, second))
    return float(kolmogorov(sqrt(len(first) * len(second) / len(values)) * float(np.abs(below - other).max())))


def homogeneity(a: Mapping[str, int], b: Mapping[str, int], *, seed: int = 0) -> float | None:
    """Return the p of two sets having the same rates of all kinds; ``a`` and ``b`` are counts by kind.

    The test is exact and conditional: sets of these sizes are drawn 9,999 times from the union, and p is (k + 1) /
    10,000, where k of the draws are as far from equal rates, by chi-squared, as the sets are. Source: Fisher 1935, "The
    Design of Experiments"; Patefield 1981, https://doi.org/10.2307/2346669; Phipson and Smyth 2010,
    https://doi.org/10.2202/1544-6115.1585. Items are assumed to be independent. The result is 1 if there is one kind.

    Returns:
        ``None`` if a set is empty.

    Raises:
        ValueError: A count is below 0.
    """
    kinds = sorted({*a, *b})
    counts = np.array([[side.get(kind, 0) for kind in kinds] for side in (a, b)], np.int64).reshape(2, -1)
    if (counts < 0).any():
        raise ValueError(f"expected counts of 0 or more, found {counts.min()}")
    both = counts.sum(axis=0)
    counts, both = counts[:, both > 0], both[both > 0]
    sizes = counts.sum(axis=1)
    if not sizes.all():
        return None
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(both, int(sizes[0]), _DRAWS, "marginals")
    # With fixed margins, chi-squared is a monotone function of the squared distance of one set.
    expected = both * (sizes[0] / both.sum())
    far = float((np.square(counts[0] - expected) / both).sum())
    as_far = np.square(drawn - expected) @ (1 / both) >= far * (1 - _ROUNDING)
    return (int(as_far.sum()) + 1) / (_DRAWS + 1)

"""Confidence intervals of shares, without the slow import of numpy."""

from math import sqrt
from typing import NamedTuple

from judgekit.stats.quantiles import normal_quantile


class Interval(NamedTuple):
    """The bounds of a confidence interval, and the method behind it.

    Attributes:
        low: The lower bound.
        high: The upper bound.
        method: The name of the method, such as ``wilson``.
    """

    low: float
    high: float
    method: str


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval | None:
    """Return the score interval of a share; ``None`` if ``n`` is 0.

    Source: Wilson 1927, https://doi.org/10.1080/01621459.1927.10502953, without continuity correction, as recommended
    by Brown, Cai and DasGupta 2001 (https://doi.org/10.1214/ss/1009213286). Values are assumed to be independent.
    Counts need not be integers: a value on which two people disagree is half a success.

    Raises:
        ValueError: There are fewer than 0 successes, or more than ``n``.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 to {n} successes, found {successes}")
    return Interval(*wilson_bounds(successes / n, n, normal_quantile((1 + level) / 2)), "Wilson") if n else None


def wilson_bounds(share: float, n: float, z: float) -> tuple[float, float]:
    """Return the bounds of Wilson's interval for a share of ``n`` values; ``n`` need not be an integer."""
    less = z * z / n
    center = (share + less / 2) / (1 + less)
    half = sqrt(less * (share * (1 - share) + less / 4)) / (1 + less)
    return max(0.0, center - half) if share else 0.0, min(1.0, center + half) if share < 1 else 1.0

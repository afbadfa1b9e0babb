"""Quantiles of the normal distribution and of Student's t, which every interval needs: importing scipy takes longer than a run."""

from functools import cache
from math import atan, cos, pi, sqrt, tan
from statistics import NormalDist

import numpy as np


def normal_quantile(share: float) -> float:
    """Return the number that the given share of a standard normal distribution lies below."""
    return NormalDist().inv_cdf(share)


@cache
def t_quantile(freedom: int, share: float) -> float:
    """Return the number that a share of Student's t distribution lies below, for a share of at least a half.

    With t = sqrt(freedom) * tan(angle), the density is proportional to cos(angle) ** (freedom - 1), and its tail is
    integrated by Gauss-Legendre quadrature. The tail falls and is convex, so that Newton's method, which begins at the
    smaller normal quantile, comes ever closer from below. To 11 digits it is scipy's ``stdtrit``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    end = min(pi / 2, 12 / sqrt(freedom))  # beyond 12 standard deviations there is nothing

    def tail(angle: float) -> float:
        half = (end - angle) / 2
        return half * float(weights @ np.exp((1 - freedom) / 2 * np.log1p(np.tan(angle + half * (nodes + 1)) ** 2)))

    sought = 2 * (1 - share) * tail(0)
    angle, step = atan(normal_quantile(share) / sqrt(freedom)), 1.0
    while step > 1e-14 * angle:
        step = (tail(angle) - sought) / cos(angle) ** (freedom - 1)
        angle += step
    return sqrt(freedom) * tan(angle)

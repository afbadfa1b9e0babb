"""The smallest number that is enough, found by simulation."""

from collections.abc import Callable
from math import sqrt

import numpy as np

_DRAWS = 800
"""The most simulations of a number."""
_BATCH = 100
_SURE = 4.0
"""The distance from the wanted share of successes, in standard errors, at which the simulation stops early."""
_PRECISION = 0.02
"""The share of a number to which it is searched."""


def smallest_enough(
    succeeds: Callable[[np.random.Generator, int], bool], least: int, most: int, *, power: float = 0.8, seed: int = 0
) -> int | None:
    """Return the smallest number with which a simulated study succeeds with a probability of ``power``, to within 2 %.

    Args:
        succeeds: Whether a study of this size, drawn at random, succeeds.
        least: The smallest number that is considered.
        most: The largest one.
        power: The probability, between 0 and 1.
        seed: The seed of the simulation.

    Returns:
        ``None`` if even ``most`` is not enough.
    """

    def is_enough(number: int) -> bool:
        random, successes = np.random.default_rng(seed), 0
        for drawn in range(1, _DRAWS + 1):
            successes += succeeds(random, number)
            if not drawn % _BATCH and abs(successes / drawn - power) > _SURE * sqrt(power * (1 - power) / drawn):
                return successes > power * drawn
        return successes >= power * _DRAWS

    low, high = least - 1, least
    while high < most and not is_enough(high):
        low, high = high, 2 * high
    if high >= most:
        if most < least or not is_enough(most):
            return None
        high = most
    while high - low > max(1, _PRECISION * high):
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high

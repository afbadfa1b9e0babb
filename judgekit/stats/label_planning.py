"""The number of labels that a corrected mean needs."""

from collections.abc import Callable
from math import ceil, sqrt

import numpy as np

from judgekit.stats.prediction_powered import MIN_LABELS, PPIMean, ppi_mean

_MOST = 10**9
_DRAWS = 800
"""The most simulations of a number."""
_BATCH = 100
_SURE = 4.0
"""The distance from the wanted share of successes, in standard errors, at which the simulation stops early."""
_PRECISION = 0.02
"""The share of a number to which it is searched."""

_SIMULATED = 1_000
_TIMES_LABELS = 10
"""At most this many samples, or this many times the labels, are simulated: further ones hardly narrow the interval."""


def labels_needed(share: float, correlation: float, standard_error: float, samples: float) -> int | None:
    """Return the number of random labels with which PPI++ estimates a share with a standard error.

    With the correlation phi of the judge's verdicts and people's, the variance of the estimate is p * (1 - p) * ((1 -
    phi**2) / n + phi**2 / N), solved for n. Source: PPI++, Angelopoulos, Duchi and Zrnic 2023,
    https://arxiv.org/abs/2311.01453, for binary values and the best lambda. For a judge whose share of passes is that
    of people, phi is Cohen's kappa; otherwise kappa is less, so that planning with it asks for more labels.

    Args:
        share: The share p that is estimated, in (0, 1).
        correlation: phi, in [-1, 1]; what a judge that says the opposite knows is not used.
        standard_error: The standard error that is wanted, above 0.
        samples: The number N of samples that the judge scored, which may be infinite.

    Returns:
        The number of labels, at most N; ``None`` if even a label of each sample does not suffice, because N is too small.
    """
    spread, explained = share * (1 - share), max(0.0, correlation) ** 2
    left = standard_error**2 - spread * explained / samples
    if left * _MOST <= spread * (1 - explained):
        return None
    count = ceil(spread * (1 - explained) / left - 1e-9)
    return count if count <= samples else None


def labels_to_meet(
    goal: Callable[[PPIMean], bool],
    share: float,
    judged_share: float,
    correlation: float,
    samples: int,
    *,
    power: float = 0.8,
    seed: int = 0,
) -> int | None:
    """Return the number of random labels after which a corrected mean meets a goal with a probability of ``power``.

    The corrected means are simulated, up to 800 for each number that is tried, since their interval is far from symmetric
    around a share near 0 or 1: what a normal approximation promises in 80 % of cases is then met in as few as 1 %.

    Args:
        goal: Whether a corrected mean is good enough.
        share: The share that people pass, in [0, 1].
        judged_share: The share that the judge passes, in [0, 1].
        correlation: phi of the judge's verdicts and people's, as in `labels_needed`; as close to it as the two shares
            permit is simulated.
        samples: The number of samples that the judge scored.
        power: The probability with which the goal shall be met.
        seed: The seed of the simulation.

    Returns:
        The number of labels, from `MIN_LABELS` to ``samples``; ``None`` if even a label of each sample does not suffice.
    """
    both = share * judged_share + max(0.0, correlation) * sqrt(share * (1 - share) * judged_share * (1 - judged_share))
    both = min(both, share, judged_share)
    chances = [both, judged_share - both, share - both, max(0.0, 1 - judged_share - share + both)]

    def meets(random: np.random.Generator, labels: int) -> bool:
        others = min(samples, max(_SIMULATED, _TIMES_LABELS * labels)) - labels
        right, lenient, strict, failed = random.multinomial(labels, chances)
        human = np.repeat((1.0, 0.0, 1.0, 0.0), (right, lenient, strict, failed))
        judged = np.repeat((1.0, 0.0), (right + lenient, strict + failed))
        passed = random.binomial(others, judged_share)
        mean = ppi_mean(human, judged, np.repeat((1.0, 0.0), (passed, others - passed)))
        return mean is not None and goal(mean)

    return smallest_enough(meets, MIN_LABELS, samples, power=power, seed=seed)


def smallest_enough(
    succeeds: Callable[[np.random.Generator, int], bool], least: int, most: int, *, power: float = 0.8, seed: int = 0
) -> int | None:
    """Return the smallest number with which a simulated study succeeds with a probability of ``power``, to within 2 %.

    ``succeeds`` draws a study of a size. The result is ``None`` if even ``most`` is not enough.
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

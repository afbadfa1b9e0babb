"""When enough has been asked: intervals that may be looked at after every value, and leads that are decisive."""

from collections.abc import Sequence
from math import comb, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.units import must_be_within

_MOST_AT_STAKE = 0.5


class ConfidenceSequence(NamedTuple):
    """The bounds of the mean after each value; arrays of the shape of the values."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def confidence_sequence(values: ArrayLike, *, level: float = 0.95, step: float = 0.001) -> ConfidenceSequence:
    """Bounds after each value that with probability ``level`` hold the mean after all of them, however many there come.

    One may look after each, and stop for what one sees, as with no interval made for a fixed number of values. For each
    mean m of a grid a gambler bets on values above m, and another on those below, with stakes set before each value is
    seen; were m the mean, neither would be likely ever to have 2 / (1 - level) times what it began with. What remains are
    the m at which none has. Source: Waudby-Smith and Ramdas 2024, https://arxiv.org/abs/2010.09686, theorem 3: hedged
    capital, with predictable plug-in stakes of at most half of the capital.

    Assumes values in [0, 1], each of which has the same mean whatever came before: samples in random order, drawn from
    very many. Where ``low`` comes above ``high``, that did not hold. Exact for any number of values; some 1.4 times
    as wide as `wilson`, which may be looked at once, after 50 values, and 2 times after 1,000.

    Args:
        values: The values in the order they came, along the last axis; further axes are sequences of their own.
        level: How likely the mean is within the bounds throughout.
        step: The grid; bounds are rounded outwards to it.

    Raises:
        ValueError: A value is not in [0, 1].
    """
    found = np.asarray(values, np.float64)
    must_be_within(found, 0, 1)
    count = np.arange(1, found.shape[-1] + 1, dtype=np.float64)
    means = (0.5 + np.cumsum(found, axis=-1)) / (count + 1)
    variances = (0.25 + np.cumsum(np.square(found - means), axis=-1)) / (count + 1)
    before = np.concatenate([np.full((*found.shape[:-1], 1), 0.25), variances[..., :-1]], axis=-1)
    enough = log(2 / (1 - level))
    stakes = np.sqrt(2 * enough / (before * count * np.log1p(count)))

    def has_won(gains: NDArray[np.float64], most: float) -> NDArray[np.bool_]:
        capital = np.cumsum(np.log1p(np.minimum(stakes, most) * gains), axis=-1)
        return np.maximum.accumulate(capital, axis=-1) >= enough

    low, high = np.zeros_like(found), np.ones_like(found)
    for mean in np.arange(1, round(1 / step)) * step:  # each gambler fares the worse, the further the mean is its way
        low[has_won(found - mean, _MOST_AT_STAKE / mean)] = mean
        high[has_won(mean - found, _MOST_AT_STAKE / (1 - mean)) & (high == 1)] = mean
    return ConfidenceSequence(low, high)


def is_decisive(counts: Sequence[int], *, left: int, level: float = 0.95) -> bool:
    """Whether the answer that leads may be taken for the one that further draws would give most often.

    It may where the ``left`` draws cannot bring another level with it, or where it is the more likely of the first two
    with a probability over ``level``: that of a share over one half under a Beta(first + 1, second + 1) distribution.
    Source: Aggarwal et al. 2023 (Adaptive-Consistency), https://arxiv.org/abs/2305.11860. Assumes independent
    draws, and that each share of the two is as likely as any other before. At 0.95, it takes 4 draws that agree, 7 with
    one that does not, 10 with two.

    The share of draws for the leader is no estimate without bias if asking stopped because of it: it is too far from 1/2.

    Args:
        counts: How often each answer was given.
        left: How many draws might still be made.
        level: The probability asked for.

    Raises:
        ValueError: A count, or ``left``, is below 0.
    """
    if left < 0 or any(count < 0 for count in counts):
        raise ValueError(f"expected counts of 0 or more, found {list(counts)} and {left} left")
    first, second, *_ = *sorted(counts, reverse=True), 0, 0
    draws = first + second + 1
    return first - second > left or sum(comb(draws, k) for k in range(second + 1, draws + 1)) / 2**draws > level

"""Whether one of several candidates is better than what there is, on the same items: tests for one or all of them."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.quantiles import normal_quantile
from judgekit.stats.units import Groups, Units

_ROUNDING = 1e-9
_CHUNK = 1_000


class MaxT(NamedTuple):
    """The result of `max_t`.

    Attributes:
        best: The place of the candidate with the largest statistic.
        p: The p of the best candidate, adjusted for the choice.
        adjusted: The adjusted p of each candidate.
        critical: The value that the largest statistic exceeds with probability ``alpha`` if no candidate differs.
    """

    best: int
    p: float
    adjusted: NDArray[np.float64]
    critical: float


def max_t(
    gains: ArrayLike,
    groups: Groups | None = None,
    *,
    two_sided: bool = False,
    alpha: float = 0.05,
    draws: int = 9_999,
    seed: int = 0,
) -> MaxT:
    """Test whether the best of several candidates is better than what there is, allowing for the choice.

    T of a candidate is the sum of its gains over the square root of the sum of their squares, each summed by unit first.
    In each draw, a unit's gains change sign together for all candidates; the adjusted p of a candidate is how often the
    largest T of a draw reaches the candidate's. Source: Westfall and Young 1993, "Resampling-Based Multiple Testing";
    the count includes the data themselves (Phipson and Smyth 2010, https://doi.org/10.2202/1544-6115.1585).

    It is assumed that without a difference each unit is equally likely the other way round, and that the candidates
    were made without these items. With one candidate this is a sign-flip test.

    Args:
        gains: A row per candidate, a column per item: how much better it is on this item.
        groups: The group of each item.
        two_sided: Whether worse candidates count as different, too.
        alpha: The level of ``critical``.
        draws: The number of draws.
        seed: The seed of the draws.

    Raises:
        ValueError: The gains are not a table of finite numbers with at least one candidate and one item.
    """
    table = np.asarray(gains, np.float64)
    if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
        raise ValueError(f"expected a row of finite gains for each candidate, found the shape {table.shape}")
    units = Units.of(table[0], groups)
    sums = np.stack([units.sums(row) for row in table])
    sums = sums[:, (sums != 0).any(axis=0)]  # units without any gain or loss change nothing
    scale = np.sqrt(np.square(sums).sum(axis=1))
    scale[scale == 0] = np.inf
    scaled = sums / scale[:, np.newaxis]
    observed = scaled.sum(axis=1)
    random = np.random.default_rng(seed)
    largest = np.empty(draws)
    for start in range(0, draws, _CHUNK):
        count = min(_CHUNK, draws - start)
        signs = 2.0 * random.integers(2, size=(scaled.shape[1], count), dtype=np.int8) - 1
        drawn = scaled @ signs
        largest[start : start + count] = (np.abs(drawn) if two_sided else drawn).max(axis=0)
    reached = np.abs(observed) if two_sided else observed
    as_large = (largest >= reached[:, np.newaxis] - _ROUNDING).sum(axis=1)
    adjusted = (as_large + 1) / (draws + 1)
    best = int(np.argmax(reached))
    return MaxT(best, float(adjusted[best]), adjusted, float(np.quantile(largest, 1 - alpha)))


def mcnemar_mid_p(fixed: int, regressed: int) -> float:
    """Return the one-sided mid-p that more items are fixed than regressed by chance.

    It is the probability of more fixed items than there are, and half of that of as many, if each of those that differ
    were fixed with probability 1/2. Source: Fagerland, Lydersen and Laake 2013,
    https://doi.org/10.1186/1471-2288-13-91, which recommends it over the exact test, whose p is too large. Items are
    assumed to be independent. The result is 1/2 if none differs.
    """
    from scipy.special import bdtr  # noqa: PLC0415 - slow to import

    pairs = fixed + regressed
    at_least = float(bdtr(regressed, pairs, 0.5))
    more = float(bdtr(regressed - 1, pairs, 0.5)) if regressed else 0.0
    return (at_least + more) / 2


def detectable_gain(n: int, discordant: float, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Return the smallest gain in agreement that a one-sided McNemar test shows with probability ``power``.

    It solves n = (z_alpha sqrt(psi) + z_power sqrt(psi - d**2))**2 / d**2 for the gain d. Source: Connor 1987,
    https://doi.org/10.2307/2531961.

    Args:
        n: The number of independent items.
        discordant: The share psi of items on which the two sides differ; a gain of d needs at least d.
        alpha: The one-sided level.
        power: The probability of showing the gain.

    Returns:
        ``None`` if no gain is large enough.
    """
    z_level, z_power = normal_quantile(1 - alpha), normal_quantile(power)

    def is_shown(gain: float) -> bool:
        psi = max(discordant, gain)
        needed = (z_level * sqrt(psi) + z_power * sqrt(psi - gain * gain)) ** 2 / gain**2
        return needed <= n

    if not is_shown(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > _ROUNDING:
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high


def look_level(look: int, alpha: float = 0.05) -> float:
    """Return the level of the j-th look at one test set: alpha for the first, then alpha / (j (j + 1)).

    The looks after the first spend at most alpha / 2 together, so that all of them spend less than 1.5 alpha, however
    many there are.
    """
    return alpha if look == 1 else alpha / (look * (look + 1))

"""Whether a candidate is better than what there is, on the same items."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from judgekit.stats.quantiles import normal_quantile
from judgekit.stats.units import Groups, Units

_ROUNDING = 1e-9
_CHUNK = 1_000


def sign_flip_gain(gains: ArrayLike, groups: Groups | None = None, *, draws: int = 9_999, seed: int = 0) -> float:
    """Return the one-sided p of a gain: how often it is as large if units swap sides at random.

    The signs of a whole group change together. p is (b + 1) / (draws + 1), where b draws are as large. Source: Fisher
    1935, "The Design of Experiments", section 21; Phipson and Smyth 2010, https://doi.org/10.2202/1544-6115.1585. It is
    assumed that, without a difference, each unit would be equally likely the other way round.
    """
    units = Units.of(gains, groups)
    sums = units.sums(units.values)
    sums = sums[sums != 0]  # units without any gain or loss change nothing
    scaled = sums / sqrt(np.square(sums).sum() or 1)
    random, as_large = np.random.default_rng(seed), 0
    for start in range(0, draws, _CHUNK):
        signs = 2.0 * random.integers(2, size=(len(sums), min(_CHUNK, draws - start)), dtype=np.int8) - 1
        as_large += int((scaled @ signs >= scaled.sum() - _ROUNDING).sum())
    return (as_large + 1) / (draws + 1)


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

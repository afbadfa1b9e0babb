"""Which verdicts to keep: the confidence below which a judge abstains, so that it is seldom wrong where it does not."""

from bisect import bisect_left
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.units import must_be_pairs

_STAKES = np.arange(1, 11) / 10
"""The shares of their capital that gamblers stake on each verdict being right."""
_BEGINNINGS = (0.25, 0.5, 1)
"""The shares of all verdicts that are kept by the thresholds at which testing begins."""
_LEAST_GAIN = 1e-6
"""Of a gambler at each verdict, below which it would take millions of them to show anything."""


class Threshold(NamedTuple):
    """The least confidence of the verdicts that are kept.

    Attributes:
        value: The least confidence; ``None`` where no threshold is shown to keep the promise, and then ``refused`` says why.
        kept: How many of the labelled verdicts have it; without one, how many have that of the threshold that came nearest.
        wrong: How many of those are wrong.
        n: How many labelled verdicts there are.
        refused: Why there is none; empty if there is one.
        needed: Where there is none: about how many labelled verdicts it would take; ``None`` where more would not help.
    """

    value: float | None
    kept: int
    wrong: float
    n: int
    refused: str = ""
    needed: int | None = None


def least_confidence(
    confidence: ArrayLike, wrong: ArrayLike, all_confidences: ArrayLike, *, alpha: float, delta: float
) -> Threshold:
    """Return the least confidence such that of all verdicts with as much or more, at most ``alpha`` are wrong.

    The probability that more than ``alpha`` of them are wrong is at most ``delta``, however often one looks while labels
    of further verdicts are added, and even if one stops as soon as there is a threshold.

    For each threshold, gamblers bet on the labelled verdicts that it keeps. One who stakes a share s of the capital
    multiplies it by 1 + s (alpha - error) / (1 - alpha) at each of them. Were ``alpha`` or more of all verdicts wrong, the
    mean capital of gamblers with the stakes 0.1, 0.2, ..., 1 would be a nonnegative supermartingale, which reaches c times
    its beginning with a probability of at most 1 / c (Ville 1939, "Étude critique de la notion de collectif"). For errors
    that are 0 or 1 it is a mixture of Wald's likelihood ratios. Source: Waudby-Smith and Ramdas 2024,
    https://arxiv.org/abs/2010.09686; Ramdas et al. 2023, https://arxiv.org/abs/2210.01948.

    The thresholds are the confidences of all verdicts, labelled or not, so that they are the same at each look. They are
    tested downwards until the first that fails, beginning with those that keep a quarter, a half and all of the verdicts,
    each at an equal share of ``delta``; the lowest that is reached is taken. Of those below a beginning that keep too many
    wrong verdicts, the highest would have to pass, so that more thresholds cost nothing. Source: Angelopoulos et al. 2021
    ("Learn then Test"), https://arxiv.org/abs/2110.01052.

    Where ``alpha`` is 0.1, ``delta`` 0.05 and all verdicts are equally sure, it takes 41 labels without an error, 66 with
    one and 85 with two; a binomial test, which may be made once only, takes 29, 46 and 61.

    Assumes that labelled verdicts are independent, one of a group where there are groups, and a random sample of those
    that the threshold is used on.

    Args:
        confidence: The confidence of each labelled verdict; any number that is greater for those that are surer.
        wrong: How far people say otherwise of each, from 0 to 1: a fraction where they differ among themselves.
        all_confidences: The confidences of all verdicts of the run, also of those without a label.
        alpha: The share of wrong verdicts that is borne, above 0 and under 1.
        delta: How likely the promise may be broken, above 0 and under 1.

    Raises:
        ValueError: A value is none of these, the lists are not of one length, or a labelled verdict is not of the run.
    """
    confidences, errors, every = (np.asarray(values, np.float64) for values in (confidence, wrong, all_confidences))
    must_be_pairs(confidences, errors)
    if not np.isfinite(every).all() or not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("expected finite confidences, and errors from 0 to 1")
    if not np.isin(confidences, every).all():
        raise ValueError("expected the confidence of each labelled verdict among all confidences")
    for name, share in (("alpha", alpha), ("delta", delta)):
        if not 0 < share < 1:
            raise ValueError(f"expected {name} above 0 and under 1, found {share}")
    values, counts = np.unique(-every, return_counts=True)
    beginnings = np.unique(np.searchsorted(np.cumsum(counts), np.multiply(_BEGINNINGS, len(every))))
    enough = log(len(beginnings) / delta)
    order = np.argsort(-confidences)
    with np.errstate(divide="ignore"):  # who stakes all loses all
        gains = np.log1p(np.outer((alpha - errors[order]) / (1 - alpha), _STAKES))
    capital = np.concatenate([np.zeros((1, len(_STAKES))), np.cumsum(gains, axis=0)])
    kept = np.searchsorted(-confidences[order], values, side="right")
    lost = np.concatenate([[0], np.cumsum(errors[order])])
    n, least = len(errors), _needed(np.log1p(_STAKES * alpha / (1 - alpha)), enough)
    if n < least:
        told = f"{n:,} labelled verdicts cannot show it: were none of them wrong, it would take {ceil(least):,}"
        return Threshold(None, n, float(lost[n]), n, told, ceil(least))
    shown = _mean(capital)[kept] >= enough
    passed = [begin for begin in beginnings if shown[begin]]
    if passed:
        failed = np.flatnonzero(~shown[passed[-1] :])
        last = passed[-1] + failed[0] - 1 if len(failed) else len(shown) - 1
        return Threshold(-float(values[last]), int(kept[last]), float(lost[kept[last]]), n)
    tried = [(n * _needed(capital[size] / size, enough) / size, int(size)) for size in kept[beginnings] if size]
    needed, size = min(tried)
    rate = lost[size] / size
    told = f"the {size:,} most confident labelled verdicts have an error rate of {rate:.2g}"
    if needed == np.inf:
        return Threshold(None, size, float(lost[size]), n, f"{told}, which would have to be clearly below {alpha:.3g}")
    why = f"if it stays at that, some {ceil(needed):,} labels would show that it is {alpha:.3g} or less"
    return Threshold(None, size, float(lost[size]), n, f"{told}; {why}", ceil(needed))


def _mean(capital: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the mean capital of all gamblers, from the logarithms of theirs."""
    return np.asarray(np.logaddexp.reduce(capital, axis=-1)) - log(len(_STAKES))


def _needed(gains: NDArray[np.float64], enough: float) -> float:
    """Return how many verdicts it takes at which gamblers gain that much on average; infinite where it is millions."""
    if gains.max() < _LEAST_GAIN:
        return np.inf
    most = ceil((enough + log(len(_STAKES))) / gains.max())
    return 1 + bisect_left(range(1, most), enough, key=lambda size: float(_mean(gains * size)))

"""Selective verdicts: the confidence below which a judge should abstain to be rarely wrong."""

from bisect import bisect_left
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.units import check_same_length

_STAKES = np.arange(1, 11) / 10
"""The shares of their capital that gamblers bet on each verdict being right."""
_BEGINNINGS = (0.25, 0.5, 1)
"""The shares of all verdicts kept by the thresholds at which testing starts."""
_LEAST_GAIN = 1e-6
"""The gain per verdict below which a gambler would need millions of verdicts to prove anything."""


class Threshold(NamedTuple):
    """The least confidence of the verdicts to keep.

    Attributes:
        value: The least confidence; ``None`` if none is shown to keep the guarantee.
        unavailable_reason: Why there is none, and about how many labels would show one, if any number would.
    """

    value: float | None
    unavailable_reason: str = ""


def min_confidence_threshold(
    confidence: ArrayLike, wrong: ArrayLike, all_confidences: ArrayLike, *, alpha: float, delta: float
) -> Threshold:
    """Return the least confidence such that at most a share ``alpha`` of the verdicts that reach it is wrong.

    The probability that more of them are wrong is at most ``delta``, however often one looks while labels are added,
    and even if one stops as soon as there is a threshold.

    For each threshold, gamblers bet on the labeled verdicts that it keeps. A gambler with stake s multiplies the
    capital by 1 + s (alpha - error) / (1 - alpha) at each verdict. If ``alpha`` or more of all verdicts were wrong, the
    mean capital of gamblers with the stakes 0.1, 0.2, ..., 1 would be a nonnegative supermartingale, which reaches c
    times its initial value with a probability of at most 1 / c (Ville 1939, "Étude critique de la notion de
    collectif"). For errors of 0 or 1, it is a mixture of Wald's likelihood ratios. Source: Waudby-Smith and Ramdas
    2024, https://arxiv.org/abs/2010.09686; Ramdas et al. 2023, https://arxiv.org/abs/2210.01948.

    The thresholds are the confidences of all verdicts, labeled or not, so that they are the same at each look. They
    are tested downwards until the first one fails, starting with those that keep a quarter, a half and all of the
    verdicts, each with an equal share of ``delta``; the lowest threshold reached is used. Among the thresholds below a
    start that keep too many wrong verdicts, the highest would have to pass first, so additional thresholds cost
    nothing. Source: Angelopoulos et al. 2021 ("Learn then Test"), https://arxiv.org/abs/2110.01052.

    With ``alpha`` 0.1, ``delta`` 0.05 and equally confident verdicts, it takes 41 labels without an error, 66 with one
    and 85 with two; a binomial test, which may be used only once, takes 29, 46 and 61.

    Labeled verdicts are assumed to be independent, one per group if there are groups, and a random sample of those
    that the threshold is applied to.

    Args:
        confidence: The confidence of each labeled verdict: any number that grows with certainty.
        wrong: The error of each verdict by human labels, from 0 to 1; a fraction if people disagree with each other.
        all_confidences: The confidences of all verdicts of the run, including unlabeled ones.
        alpha: The accepted share of wrong verdicts, above 0 and below 1.
        delta: The accepted probability of exceeding it, above 0 and below 1.

    Raises:
        ValueError: A value is out of range, the lists differ in length, or a labeled verdict is not in the run.
    """
    confidences, errors, every = (np.asarray(values, np.float64) for values in (confidence, wrong, all_confidences))
    check_same_length(confidences, errors)
    if not np.isfinite(every).all() or not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("expected finite confidences, and errors from 0 to 1")
    if not np.isin(confidences, every).all():
        raise ValueError("expected the confidence of each labeled verdict among all confidences")
    for name, share in (("alpha", alpha), ("delta", delta)):
        if not 0 < share < 1:
            raise ValueError(f"expected {name} above 0 and below 1, found {share}")
    values, counts = np.unique(-every, return_counts=True)
    beginnings = np.unique(np.searchsorted(np.cumsum(counts), np.multiply(_BEGINNINGS, len(every))))
    enough = log(len(beginnings) / delta)
    order = np.argsort(-confidences)
    with np.errstate(divide="ignore"):  # a stake of 1 can lose everything
        gains = np.log1p(np.outer((alpha - errors[order]) / (1 - alpha), _STAKES))
    capital = np.concatenate([np.zeros((1, len(_STAKES))), np.cumsum(gains, axis=0)])
    kept = np.searchsorted(-confidences[order], values, side="right")
    lost = np.concatenate([[0], np.cumsum(errors[order])])
    n, least = len(errors), _needed(np.log1p(_STAKES * alpha / (1 - alpha)), enough)
    if n < least:
        reason = f"{n:,} labeled verdicts are too few: even with no errors, it would take {ceil(least):,}"
        return Threshold(None, reason)
    shown = _mean(capital)[kept] >= enough
    passed = [begin for begin in beginnings if shown[begin]]
    if passed:
        failed = np.flatnonzero(~shown[passed[-1] :])
        last = passed[-1] + failed[0] - 1 if len(failed) else len(shown) - 1
        return Threshold(-float(values[last]))
    tried = [(n * _needed(capital[size] / size, enough) / size, int(size)) for size in kept[beginnings] if size]
    needed, size = min(tried)
    rate = lost[size] / size
    reason = f"the {size:,} most confident labeled verdicts have an error rate of {rate:.2g}"
    if needed == np.inf:
        return Threshold(None, f"{reason}; it would have to be clearly below {alpha:.3g}")
    why = f"at this rate, about {ceil(needed):,} labels would show that it is {alpha:.3g} or less"
    return Threshold(None, f"{reason}; {why}")


def _mean(capital: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the gamblers' mean capital, given the logarithms of their capitals."""
    return np.asarray(np.logaddexp.reduce(capital, axis=-1)) - log(len(_STAKES))


def _needed(gains: NDArray[np.float64], enough: float) -> float:
    """Return how many verdicts it takes at this average gain; infinite if it would be millions."""
    if gains.max() < _LEAST_GAIN:
        return np.inf
    most = ceil((enough + log(len(_STAKES))) / gains.max())
    return 1 + bisect_left(range(1, most), enough, key=lambda size: float(_mean(gains * size)))

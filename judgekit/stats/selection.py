"""Which verdicts to keep: the confidence below which a judge abstains, so that it is seldom wrong where it does not."""

from math import ceil, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr


class Threshold(NamedTuple):
    """The least confidence of the verdicts that are kept.

    Attributes:
        value: The least confidence; ``None`` where none keeps the promise, and then ``refused`` says why.
        kept: How many of the labelled verdicts have it; without one, how many the highest that was tried has.
        wrong: How many of those are wrong.
        n: How many labelled verdicts there are.
        refused: Why there is none; empty if there is one.
        needed: Where there is none: about how many labelled verdicts it would take; ``None`` where more would not help.
    """

    value: float | None
    kept: int
    wrong: int
    n: int
    refused: str = ""
    needed: int | None = None


def least_confidence(confidence: ArrayLike, wrong: ArrayLike, *, alpha: float, delta: float) -> Threshold:
    """The least confidence such that of all verdicts with as much or more, at most ``alpha`` are wrong.

    The promise is broken, that is more than ``alpha`` of them are wrong, for at most ``delta`` of all samples of labels
    that might have been drawn. Thresholds are tried from the highest down, until the first that fails; the one before it
    is taken. One holds if so few wrong verdicts, or fewer, would be among those that it keeps with a probability of at
    most ``delta``, were ``alpha`` of all of them wrong: a binomial tail, exact for any number of labels. Which of all
    thresholds is the first that should fail does not depend on the labels, and none is taken below it unless it holds by
    mistake; so the tests need no correction for how many they are. In effect all numbers are tried, not only those that
    occur, between which nothing changes. Source: Jung, Brahman and Choi 2024 ("Trust or Escalate"),
    https://arxiv.org/abs/2407.18370; Angelopoulos et al. 2021 ("Learn then Test"), https://arxiv.org/abs/2110.01052.

    The first to be tried keeps a quarter of the labelled verdicts, and no fewer than log(delta) / log(1 - alpha): of fewer
    nothing could be shown, were none wrong, and among few it is chance whether one is.

    Assumes that labelled verdicts are independent, one of a group where there are groups, and a random sample of those
    that the threshold is used on; and, since those of most confidence are not tried alone, that verdicts of less
    confidence are no less often wrong.

    Args:
        confidence: The confidence of each labelled verdict; any number that is greater for those that are surer.
        wrong: Whether people say otherwise: 1 or 0.
        alpha: The share of wrong verdicts that is borne, above 0 and under 1.
        delta: How likely the promise may be broken, above 0 and under 1.

    Raises:
        ValueError: A value is none of these, or the lists are not of one length.
    """
    confidences, errors = np.asarray(confidence, np.float64), np.asarray(wrong, np.float64)
    if confidences.ndim != 1 or confidences.shape != errors.shape:
        raise ValueError(f"expected two lists of one length, found {confidences.shape} and {errors.shape}")
    if not np.isfinite(confidences).all() or not ((errors == 0) | (errors == 1)).all():
        raise ValueError("expected finite confidences, and 0 or 1 for whether each verdict is wrong")
    for name, share in (("alpha", alpha), ("delta", delta)):
        if not 0 < share < 1:
            raise ValueError(f"expected {name} above 0 and under 1, found {share}")
    n, least = len(errors), ceil(log(delta) / log1p(-alpha))
    if n < least:
        told = f"{n:,} labelled verdicts cannot show it: were none of them wrong, it would take {least:,}"
        return Threshold(None, n, int(errors.sum()), n, told, least)
    values, of, counts = np.unique(-confidences, return_inverse=True, return_counts=True)
    kept, lost = np.cumsum(counts), np.cumsum(np.bincount(of, weights=errors).astype(np.int64))
    tried = kept >= max(least, n / 4)
    values, kept, lost = -values[tried], kept[tried], lost[tried]
    shown = bdtr(lost, kept, alpha) <= delta
    if not shown[0]:
        return _none(int(kept[0]), int(lost[0]), n, alpha, delta)
    last = len(shown) - 1 if shown.all() else int(shown.argmin()) - 1
    return Threshold(float(values[last]), int(kept[last]), int(lost[last]), n)


def _none(kept: int, wrong: int, n: int, alpha: float, delta: float) -> Threshold:
    told = f"of the {kept:,} most confident verdicts that are labelled, {wrong:,} are wrong"
    share = wrong / kept
    if share >= alpha:
        return Threshold(None, kept, wrong, n, f"{told}, which is no less than the {alpha:.3g} that is borne")
    size = kept
    while float(bdtr(int(size * share), size, alpha)) > delta:
        size += ceil(size / 1_000)
    needed = ceil(size * n / kept)
    why = f"too many for so few to show that {alpha:.3g} or less are; some {needed:,} labels might show it"
    return Threshold(None, kept, wrong, n, f"{told}, {why}", needed)

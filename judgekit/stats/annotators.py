"""Several annotators of the same items: their agreement with each other, and with a judge."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.agreement import check_ratings


def human_ceiling(ratings: ArrayLike, judged: ArrayLike | None = None) -> float | None:
    """Return the share of annotators' answers that agree with another annotator's answer, with each item counting once.

    Items with one rating are left out. With ``judged``, return the judge's agreement with annotators on the same items:
    by this measure, a judge that reaches the same value is as good as an annotator. It is not an upper bound: a judge
    that follows the majority agrees with annotators more often than they agree with each other. For numbers that should
    be close rather than equal, use `judgekit.stats.agreement.krippendorff_alpha` instead.

    Args:
        ratings: Annotators x items; NaN for a missing rating.
        judged: The judge's answers; items with NaN are left out.

    Returns:
        ``None`` if no item has two ratings.

    Raises:
        ValueError: The ratings are not a table of numbers, or the judge's answers do not match the items.
    """
    table = check_ratings(ratings)
    several = (~np.isnan(table)).sum(0) >= 2
    equal, pairs = _pairs(table[:, several], None if judged is None else _judged(judged, table)[several])
    return float(np.mean(equal[pairs > 0] / pairs[pairs > 0])) if pairs.any() else None


def _judged(judged: ArrayLike, table: NDArray[np.float64]) -> NDArray[np.float64]:
    verdicts = np.asarray(judged, dtype=np.float64)
    if verdicts.shape != table.shape[1:]:
        raise ValueError(f"expected one value for each of {table.shape[1]:,} items, found {verdicts.shape}")
    return verdicts


def _pairs(table: NDArray[np.float64], judged: NDArray[np.float64] | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    given = ~np.isnan(table)
    if judged is not None:
        return (table == judged).sum(0), (given & ~np.isnan(judged)).sum(0)
    alike = np.zeros(table.shape[1], np.intp)
    for value in np.unique(table[given]):
        alike += _pair_counts((table == value).sum(0))
    return alike, _pair_counts(given.sum(0))


def _pair_counts(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    return counts * (counts - 1) // 2

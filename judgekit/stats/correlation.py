"""Rank correlation."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return Spearman's rank correlation: 1 if b never falls as a grows, -1 if it never rises, about 0 without a trend.

    It is the correlation of ranks, with mean ranks for ties. Source: Spearman 1904, https://doi.org/10.2307/1412159.

    Returns:
        ``None`` if there are fewer than two pairs, or if one of the two is constant.

    Raises:
        ValueError: The arguments are not two lists of finite numbers with the same length.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not np.isfinite([first, second]).all():
        raise ValueError(f"expected two lists of finite numbers of one length, found {first!r} and {second!r}")
    if len(first) < 2:
        return None
    ranks_a, ranks_b = _ranks(first), _ranks(second)
    spread = float(np.sqrt(np.square(ranks_a).sum() * np.square(ranks_b).sum()))
    return float(ranks_a @ ranks_b) / spread if spread else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    order = values.argsort()
    ordered = values[order]
    ranks = np.empty(len(values))
    ranks[order] = (ordered.searchsorted(ordered) + ordered.searchsorted(ordered, "right") - len(values)) / 2
    return ranks

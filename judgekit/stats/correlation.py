"""Correlation of ranks."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float | None:
    """Spearman's rank correlation of pairs: 1 where b never falls as a grows, -1 where it never grows, about 0 if neither.

    The correlation of ranks, equal values sharing their mean rank. Source: Spearman 1904,
    https://doi.org/10.2307/1412159.

    Returns:
        ``None`` where there are fewer than two pairs, or one of the two does not vary.

    Raises:
        ValueError: The two are no lists of finite numbers of one length.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not np.isfinite([first, second]).all():
        raise ValueError(f"expected two lists of finite numbers of one length, found {first!r} and {second!r}")
    if len(first) < 2:
        return None
    one, other = _ranks(first), _ranks(second)
    spread = float(np.sqrt(np.square(one).sum() * np.square(other).sum()))
    return float(one @ other) / spread if spread else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks, less their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[places] - (len(values) + 1) / 2, np.float64)

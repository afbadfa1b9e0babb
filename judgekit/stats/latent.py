"""What is true where only raters have spoken, who err: their votes weighed by how often each of them errs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ENOUGH = 1e-9


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """What each item is, and how each rater errs, so far as their ratings tell.

    Attributes:
        values: The values that ratings have, in order: the classes.
        probabilities: How likely each item is of each class: (items, classes).
        shares: How many of all items are of each class: (classes,).
        raters: Who they are, in the order of ``confusions``.
        confusions: How often each rater says what of items of each class: (raters, true class, what is said).
        log_posterior: The logarithm of the likelihood, and of the prior that the smoothing amounts to.
        converged: Whether a further step would change it by less than 1e-9.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    shares: NDArray[np.float64]
    raters: tuple[Hashable, ...]
    confusions: NDArray[np.float64]
    log_posterior: float
    converged: bool


def dawid_skene(
    ratings: ArrayLike, raters: Sequence[Hashable] | None = None, *, smoothing: float = 0.01, steps: int = 1_000
) -> DawidSkene | None:
    """The classes of items and the confusion matrices of raters that make the ratings most likely, by the EM algorithm.

    It starts from the votes, each of the same weight, and goes on until the likelihood rises no more; it never falls.
    Each rater's count for each class and rating starts from ``smoothing`` in the place of 0, so that none is ever held to
    be unable to err: the mode under Dirichlet(1 + smoothing) priors. Source: Dawid and Skene 1979,
    https://doi.org/10.2307/2346806.

    Assumes that raters err independently of each other once the class of an item is known. Judges that share a model or a
    prompt do not: they are believed too much. Assumes that raters are right more often than not; else classes may change
    places. There may be other maxima, which are not looked for.

    Args:
        ratings: The number of the class that each rater gave each item: (ratings, items), NaN where there is none.
        raters: The rater of each row; rows of one rater, such as draws of one judge, share a matrix. By default each row
            has one of its own.
        smoothing: What is added to each count, above 0.
        steps: After how many steps to stop in any case.

    Returns:
        ``None`` where no item has three ratings, of which nothing follows, or all ratings are the same.

    Raises:
        ValueError: The array has another shape, or holds an infinite value, there is not one rater for each row, or
            ``smoothing`` is not above 0.
    """
    found = np.asarray(ratings, np.float64)
    if found.ndim != 2 or np.isinf(found).any():
        raise ValueError(f"expected finite numbers of shape (ratings, items), found {found!r}")
    rows = range(len(found)) if raters is None else raters
    if len(rows) != len(found):
        raise ValueError(f"expected one rater for each of {len(found):,} rows, found {len(rows):,}")
    if smoothing <= 0:
        raise ValueError(f"expected smoothing above 0, found {smoothing}")
    given = ~np.isnan(found)
    values = np.unique(found[given])
    if len(values) < 2 or given.sum(axis=0).max() < 3:
        return None
    names = {name: number for number, name in enumerate(dict.fromkeys(rows))}
    counts = np.zeros((len(names), found.shape[1], len(values)))  # of raters, items and what was said
    for name, row in zip(rows, found, strict=True):
        counts[names[name]] += row[:, np.newaxis] == values
    votes = counts.sum(axis=0) + _ENOUGH  # an item without votes may be anything
    fit, rise = _step(counts, votes / votes.sum(axis=1, keepdims=True), smoothing), inf
    for _ in range(1, steps):
        again = _step(counts, fit.probabilities, smoothing)
        fit, rise = again, again.log_posterior - fit.log_posterior
        if rise < _ENOUGH:
            break
    return DawidSkene(
        values, fit.probabilities, fit.shares, tuple(names), fit.confusions, fit.log_posterior, rise < _ENOUGH
    )


class _Fit(NamedTuple):
    shares: NDArray[np.float64]
    confusions: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    log_posterior: float


def _step(counts: NDArray[np.float64], probabilities: NDArray[np.float64], smoothing: float) -> _Fit:
    """The most likely shares and confusions where items are of these classes, and how likely, with them, the classes are."""
    shares = probabilities.sum(axis=0) + smoothing
    shares /= shares.sum()
    confusions = np.einsum("ij,ril->rjl", probabilities, counts) + smoothing
    confusions /= confusions.sum(axis=2, keepdims=True)
    logs = np.log(confusions)
    joint = np.log(shares) + np.einsum("ril,rjl->ij", counts, logs)
    highest = joint.max(axis=1, keepdims=True)
    likelihoods = np.exp(joint - highest)
    sums = likelihoods.sum(axis=1, keepdims=True)
    prior = smoothing * (float(np.log(shares).sum()) + float(logs.sum()))
    return _Fit(shares, confusions, likelihoods / sums, float((highest + np.log(sums)).sum()) + prior)

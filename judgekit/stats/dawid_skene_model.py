"""Estimates of the truth from raters who err: their votes, weighted by their error rates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ENOUGH = 1e-9


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """The estimated classes of items and error rates of raters.

    Attributes:
        values: The distinct ratings, in order: the classes.
        probabilities: The probability of each class for each item: (items, classes).
        class_shares: The share of each class among all items: (classes,).
        raters: The raters, in the order of ``confusions``.
        confusions: The probability of each answer of a rater for items of each class: (raters, true class, answer).
        log_posterior: The logarithm of the likelihood times the prior that the smoothing corresponds to.
        converged: Whether another step would change it by less than 1e-9.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    class_shares: NDArray[np.float64]
    raters: tuple[Hashable, ...]
    confusions: NDArray[np.float64]
    log_posterior: float
    converged: bool


def dawid_skene(
    ratings: ArrayLike, raters: Sequence[Hashable] | None = None, *, smoothing: float = 0.01, steps: int = 1_000
) -> DawidSkene | None:
    """Return the most likely classes of items and confusion matrices of raters, by the EM algorithm.

    The algorithm starts from an unweighted vote and continues until the likelihood, which never falls, stops rising.
    Each rater's count for each class and rating starts at ``smoothing`` instead of 0, so that no rater is ever
    considered infallible: this is the mode under Dirichlet(1 + smoothing) priors. Source: Dawid and Skene 1979,
    https://doi.org/10.2307/2346806.

    Given the class of an item, raters are assumed to err independently. Judges that share a model or a prompt do not,
    and are trusted too much. Raters are assumed to be right more often than not; otherwise, classes may be swapped.
    There may be other maxima, which are not searched for.

    Args:
        ratings: The class number given by each rater to each item: (ratings, items), with NaN for a missing rating.
        raters: The rater of each row. Rows of one rater, such as draws of a judge, share a matrix. By default, each row
            has one.
        smoothing: The number added to each count, above 0.
        steps: The maximum number of steps.

    Returns:
        ``None`` if no item has three ratings, in which case nothing can be inferred, or if all ratings are equal.

    Raises:
        ValueError: The array has another shape or contains an infinite value, the raters do not match its rows, or
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
    counts = np.zeros((len(names), found.shape[1], len(values)))  # raters x items x answers
    for name, row in zip(rows, found, strict=True):
        counts[names[name]] += row[:, np.newaxis] == values
    votes = counts.sum(axis=0) + _ENOUGH  # an item without votes may be of any class
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
    """Return the most likely shares and confusions for these classes, and the resulting class probabilities."""
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

"""Ranking measures as pure functions of ranks and grades, with results in [0, 1].

Ranks count from 1. ``ranks`` are the ranks of the relevant documents, in ascending order; ``grades`` are the grades of
the documents at each rank, best first, with 0 for unjudged ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from math import expm1, log, log2
from operator import itemgetter, mul
from typing import Literal, TypeAlias

Gains: TypeAlias = Literal["exponential", "linear"]


def reciprocal_rank(ranks: Sequence[int]) -> float:
    """Return the reciprocal of the first rank; 0 if there is none."""
    return 1 / ranks[0] if ranks else 0.0


def average_precision(ranks: Sequence[int], relevant: int, *, interpolated: bool = False) -> float:
    """Return the mean precision at the ranks of all ``relevant`` documents; 0 for those not retrieved.

    With ``interpolated``, the precision is the highest at this rank or any later one.
    """
    precisions = [hit_count / rank for hit_count, rank in enumerate(ranks, 1)]
    if interpolated:
        precisions = [*accumulate(reversed(precisions), max)]
    return sum(precisions) / relevant


def auc(ranks: Collection[int], retrieved: int, scores: Sequence[float] | None) -> float:
    """Return the share of pairs of a relevant and another document in which the relevant one ranks higher.

    Pairs with equal scores count half. There must be both kinds among the ``retrieved`` documents.
    """
    relevant = set(ranks)
    standing = zip(scores or range(retrieved), (rank in relevant for rank in range(1, retrieved + 1)), strict=True)
    above = halves = 0
    for _, group in groupby(standing, key=itemgetter(0)):
        kinds = [is_relevant for _, is_relevant in group]
        relevant_count = sum(kinds)
        halves += (len(kinds) - relevant_count) * (2 * above + relevant_count)
        above += relevant_count
    return halves / (2 * above * (retrieved - above))


def ndcg(
    grades: Sequence[float], judged: Collection[float], k: int | None = None, gains: Gains = "exponential"
) -> float:
    """Return the discounted cumulative gain of the first k documents, relative to the best order of ``judged``.

    The gain of a grade is 2^grade - 1, or for linear gains the grade itself; its discount is log2(rank + 1). At least
    one grade in ``judged`` must be above 0; grades below 0 count as 0.
    """
    ideal = sorted(judged, reverse=True)
    gain = _SHARES[gains]
    worth = {grade: gain(grade, ideal[0]) if grade > 0 else 0.0 for grade in {0.0, *ideal}}
    return min(1.0, _dcg(grades[:k], worth) / _dcg(ideal[:k], worth))


def err(grades: Iterable[float], max_grade: float) -> float:
    """Return the expected reciprocal rank at which a user who reads from the top stops.

    A document of grade g satisfies with the probability (2^g - 1) / 2^max_grade, and a satisfied user stops.
    """
    expected, reading = 0.0, 1.0
    for rank, grade in enumerate(grades, 1):
        if grade > 0:
            satisfied = -expm1(-grade * _LN2) * 2.0 ** (grade - max_grade)
            expected += reading * satisfied / rank
            reading *= 1 - satisfied
    return expected


_LN2 = log(2)
_SHARES: Mapping[Gains, Callable[[float, float], float]] = {
    "exponential": lambda grade, top: expm1(-grade * _LN2) / expm1(-top * _LN2) * 2.0 ** (grade - top),
    "linear": lambda grade, top: grade / top,
}
"""The gain of a grade relative to that of the highest, which avoids overflow for high and underflow for low grades."""


def _dcg(grades: Sequence[float], gains_by_grade: Mapping[float, float]) -> float:
    gains: Iterable[float] = map(mul, map(gains_by_grade.__getitem__, grades), _discounts(len(grades).bit_length()))
    return sum(gains)


@lru_cache
def _discounts(bits: int) -> Sequence[float]:
    """Return the weights of all ranks with this many bits."""
    return [1 / log2(rank + 1) for rank in range(1, 1 << bits)]

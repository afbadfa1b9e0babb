"""Several annotators of the same items: how far they agree, whether a judge may stand in for one, what a panel is worth."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.agreement import ratings_of
from judgekit.stats.units import Groups, Units

_ROUNDING = 1e-12
_TIE = 0.5


class Pairs(NamedTuple):
    """Pairs of votes on one item: how many are equal, of how many."""

    equal: int
    n: int

    @property
    def agreement(self) -> float | None:
        """The share that is equal; ``None`` where there are no pairs."""
        return self.equal / self.n if self.n else None


def pairwise_agreement(votes: ArrayLike, judged: ArrayLike | None = None, *, ties: bool = True) -> Pairs:
    """How often two votes on which of two answers is the better one are equal, each pair of votes counting once.

    Source: Zheng et al. 2023 (MT-Bench), https://arxiv.org/abs/2306.05685, table 5: with ties its setup S1, without S2.

    Args:
        votes: Annotators x items: 1 where the first answer is the better one, 0 where the second is, 0.5 where neither,
            or where a voter who was asked in both orders contradicts himself; NaN where there is no vote. The rows need
            not be the same persons throughout.
        judged: The judge's votes. Given these, it is pairs of the judge and an annotator that count, not of two
            annotators.
        ties: Whether 0.5 is a vote like the others; else pairs with one are left out. Agreement is higher without, and so
            is that by chance: 1/2 of two kinds of vote, 1/3 of three.

    Raises:
        ValueError: A vote is something else.
    """
    table = ratings_of(votes)
    said = None if judged is None else _judged(judged, table)
    for one in (table, said):
        if one is not None and not np.isin(one[~np.isnan(one)], (0, _TIE, 1)).all():
            raise ValueError("expected votes that are 0, 0.5, 1 or NaN, found other values")
    if not ties:
        table = np.where(table == _TIE, np.nan, table)
        said = None if said is None else np.where(said == _TIE, np.nan, said)
    equal, pairs = _pairs(table, said)
    return Pairs(int(equal.sum()), int(pairs.sum()))


def human_ceiling(ratings: ArrayLike, judged: ArrayLike | None = None) -> float | None:
    """How often an annotator says what another one says of the same item, each item counting once.

    Items with one rating are left out. With ``judged``, how often the judge says what an annotator says, of these same
    items: a judge for whom it is as high is as good as one of them by that measure. It is no upper bound: who says what
    most of them say agrees with one of them more often than they do with each other. Where numbers are to be near rather
    than equal, `judgekit.stats.agreement.krippendorff_alpha` takes its place.

    Args:
        ratings: Annotators x items; NaN where an annotator has none.
        judged: What the judge says of each item; NaN where it says nothing, and the item is left out.

    Returns:
        ``None`` where no item has two ratings.

    Raises:
        ValueError: The ratings are no table of numbers, or there is not one of the judge for each item.
    """
    table = ratings_of(ratings)
    several = (~np.isnan(table)).sum(0) >= 2
    equal, pairs = _pairs(table[:, several], None if judged is None else _judged(judged, table)[several])
    return float(np.mean(equal[pairs > 0] / pairs[pairs > 0])) if pairs.any() else None


class AlternativeTest(NamedTuple):
    """What the alternative annotator test finds.

    Attributes:
        winning_rate: The share of annotators, of those tested, for whom it is shown that the judge may stand in.
        advantage: How likely the judge is to be as near to the other annotators as one of them is, or nearer.
        passed: Whether that is shown for half of them or more.
        p: Of each annotator, the probability of such a result if the judge were worse by epsilon, adjusted for how many
            were tested; ``None`` of those with too few items.
    """

    winning_rate: float
    advantage: float
    passed: bool
    p: tuple[float | None, ...]


def alternative_test(
    ratings: ArrayLike,
    judged: ArrayLike,
    groups: Groups | None = None,
    *,
    metric: Literal["nominal", "interval"] = "nominal",
    epsilon: float = 0.2,
    alpha: float = 0.05,
    least: int = 30,
) -> AlternativeTest | None:
    """The alternative annotator test (alt-test): may a judge stand in for an annotator?

    Each annotator is left out in turn. On each item the judge and the one left out are held against all others: by the
    share that says the same, or by the mean square of the differences; who is nearer wins, both do where they are equally
    near. A one-sided t test says whether the annotator wins more often than the judge by less than ``epsilon``. Source:
    Calderon, Reichart and Dror 2025, https://arxiv.org/abs/2501.10970; the adjustment: Benjamini and Yekutieli 2001,
    https://doi.org/10.1214/aos/1013699998.

    With fewer items than ``least``, where the authors turn to Wilcoxon's test, an annotator is not tested: that is a test
    of medians, and between -1, 0 and 1 no median is ``epsilon``. Where all units are alike, t would be certain; p is
    then ((1 - epsilon) / (1 - d))**n, where d is by how much the annotator wins more often: by Markov's inequality, n units
    are no likelier to be all as low if the judge is worse by epsilon. The authors ask for three annotators; with two the
    test only says who is nearer to the other one. Assumes independent units.

    Args:
        ratings: Annotators x items; NaN where an annotator has none. Items with one rating are left out.
        judged: What the judge says of each item; items with NaN are left out.
        groups: The group of each item. With these the t test is cluster-robust, and ``least`` groups are asked for.
        metric: Whether ratings are names, or numbers that can be near each other.
        epsilon: By how much a judge may be worse, being cheaper: the authors take 0.2 where annotators are experts,
            0.15 where they are skilled, 0.1 in a crowd.
        alpha: The share of false findings that is borne.
        least: How many items an annotator must share with others to be tested.

    Returns:
        ``None`` where no annotator can be tested.

    Raises:
        ValueError: The ratings are no table of numbers, there is not one value of the judge, or not one group, for each
            item, or ``epsilon`` is not in [0, 1).
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"expected an epsilon in [0, 1), found {epsilon}")
    table = ratings_of(ratings)
    said = _judged(judged, table)
    codes = Units.of(np.zeros(len(said)), groups).codes
    p_values: list[float | None] = []
    as_near: list[float] = []
    for one, own in enumerate(table):
        others = np.delete(table, one, 0)
        chosen = ~np.isnan(own) & ~np.isnan(said) & ~np.isnan(others).all(0)
        others = others[:, chosen]
        judge_off, own_off = (_distance(rating[chosen], others, metric) for rating in (said, own))
        judge_wins, own_wins = judge_off <= own_off + _ROUNDING, own_off <= judge_off + _ROUNDING
        units = Units.of(own_wins.astype(np.float64) - judge_wins, None if codes is None else codes[chosen])
        if len(units) < max(least, 2):
            p_values.append(None)
            continue
        p_values.append(_below(units, epsilon))
        as_near.append(float(judge_wins.mean()))
    if not as_near:
        return None
    adjusted = _benjamini_yekutieli(p_values)
    winning_rate = sum(p is not None and p <= alpha for p in adjusted) / len(as_near)
    return AlternativeTest(winning_rate, float(np.mean(as_near)), winning_rate >= 0.5, tuple(adjusted))


def effective_votes(votes: ArrayLike, labels: ArrayLike) -> float | None:
    """How many independent voters would err as a panel does whose members err on the same items.

    n / (1 + (n - 1) r), where r is the correlation of two members' errors: their mean covariance over their mean
    variance, which is the mean correlation where all err equally often. It is 1 where all err on the same items, n where
    they err independently, and more where they err on different ones. Source: the effective sample size of Kish 1965,
    "Survey Sampling", of votes: Kohli 2026, https://arxiv.org/abs/2605.29800. An error is a vote other than the label:
    verdicts alone cannot tell errors that are shared from agreement on what is so.

    Args:
        votes: Members x items; NaN where a member has none, and the item is left out.
        labels: What is known to be so of each item; NaN where nothing is, and the item is left out.

    Returns:
        ``None`` where fewer than two items are left, no member errs on some of them only, or errors cancel altogether.

    Raises:
        ValueError: The votes are no table of numbers, or there is not one label for each item.
    """
    table = ratings_of(votes)
    known = _judged(labels, table)
    chosen = ~np.isnan(table).any(0) & ~np.isnan(known)
    wrong = (table != known)[:, chosen].astype(np.float64)
    if wrong.shape[1] < 2:
        return None
    single, together = float(wrong.var(1).mean()), float(wrong.mean(0).var())
    return single / together if min(single, together) > _ROUNDING else None


def _judged(judged: ArrayLike, table: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.asarray(judged, dtype=np.float64)
    if found.shape != table.shape[1:]:
        raise ValueError(f"expected one value for each of {table.shape[1]:,} items, found {found.shape}")
    return found


def _pairs(table: NDArray[np.float64], judged: NDArray[np.float64] | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of each item, how many pairs of ratings are equal, and how many there are."""
    given = ~np.isnan(table)
    if judged is not None:
        return (table == judged).sum(0), (given & ~np.isnan(judged)).sum(0)
    alike = np.zeros(table.shape[1], np.intp)
    for value in np.unique(table[given]):
        alike += _two_of((table == value).sum(0))
    return alike, _two_of(given.sum(0))


def _two_of(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    return counts * (counts - 1) // 2


def _distance(
    rating: NDArray[np.float64], others: NDArray[np.float64], metric: Literal["nominal", "interval"]
) -> NDArray[np.float64]:
    """How far a rating of each item is from those of others, of whom there is one at least."""
    match metric:
        case "nominal":
            off = (others != rating).astype(np.float64)
        case "interval":
            off = np.square(others - rating)
        case _:
            raise ValueError(f"expected a metric that is nominal or interval, found {metric!r}")
    given = ~np.isnan(others)
    return np.asarray(np.where(given, off, 0).sum(0) / given.sum(0), np.float64)


def _below(units: Units, epsilon: float) -> float:
    """The p of a one-sided t test that the mean is less than ``epsilon``."""
    from scipy.special import stdtr  # noqa: PLC0415 - slow to import

    mean, error, count = float(units.values.mean()), units.standard_error(), len(units)
    if error:
        return float(stdtr(count - 1, (mean - epsilon) / error))
    return ((1 - epsilon) / (1 - mean)) ** count if mean < epsilon else 1.0


def _benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p adjusted for how many there are, from the greatest down, however they depend on each other."""
    tested = sorted(((p, index) for index, p in enumerate(p_values) if p is not None), reverse=True)
    adjusted: list[float | None] = [None] * len(p_values)
    least, harmonic = 1.0, sum(1 / rank for rank in range(1, len(tested) + 1))
    for above, (p, index) in enumerate(tested):
        least = min(least, p * harmonic * len(tested) / (len(tested) - above))
        adjusted[index] = least
    return adjusted

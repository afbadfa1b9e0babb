"""Several annotators of the same items: their agreement, and a test of a judge as one of them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.agreement import check_ratings
from judgekit.stats.units import Groups, Units

_ROUNDING = 1e-12


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


class AlternativeTest(NamedTuple):
    """The result of the alternative annotator test.

    Attributes:
        winning_rate: The share of tested annotators whom the judge was shown to be able to replace.
        advantage: The probability that the judge is at least as close to the other annotators as one of them is.
        passed: Whether the winning rate is at least one half.
        p: For each annotator, the probability of such a result if the judge were worse by epsilon, adjusted for
            multiple tests; ``None`` for annotators with too few items.
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
    min_items: int = 30,
) -> AlternativeTest | None:
    """Return the result of the alternative annotator test (alt-test) of whether a judge may replace an annotator.

    Each annotator is left out in turn. On each item, the judge and that annotator are compared with all others, by the
    share of equal answers or by the mean squared difference; the closer one wins, and both win a tie. A one-sided t
    test checks that the annotator's lead over the judge in wins is less than ``epsilon``. Source: Calderon, Reichart
    and Dror 2025, https://arxiv.org/abs/2501.10970; the adjustment: Benjamini and Yekutieli 2001,
    https://doi.org/10.1214/aos/1013699998.

    An annotator with fewer than ``min_items`` items is not tested. The authors use Wilcoxon's test there, but that is a
    test of medians, and between -1, 0 and 1 no median is ``epsilon``. If all units are equal, t would be certain; p is
    then ((1 - epsilon) / (1 - d))**n, where d is the annotator's lead: by Markov's inequality, n units are no likelier
    to all be that low if the judge is worse by epsilon. The authors ask for three annotators; with two, the test only
    shows who is closer to the other one. Units are assumed to be independent.

    Args:
        ratings: Annotators x items; NaN for a missing rating. Items with one rating are left out.
        judged: The judge's answers; items with NaN are left out.
        groups: The group of each item. With groups, the t test is cluster-robust, and ``min_items`` refers to groups.
        metric: Whether ratings are names, or numbers that can be close to each other.
        epsilon: The disadvantage allowed to a judge for being cheaper. The authors use 0.2 for experts, 0.15 for
            skilled annotators and 0.1 for crowd workers.
        alpha: The accepted rate of false discoveries.
        min_items: The minimum number of items that a tested annotator shares with others.

    Returns:
        ``None`` if no annotator can be tested.

    Raises:
        ValueError: The ratings are not a table of numbers, the judge's answers or the groups do not match the items, or
            ``epsilon`` is not in [0, 1).
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"expected an epsilon in [0, 1), found {epsilon}")
    table = check_ratings(ratings)
    verdicts = _judged(judged, table)
    codes = Units.of(np.zeros(len(verdicts)), groups).codes
    p_values: list[float | None] = []
    as_near: list[float] = []
    for annotator, own in enumerate(table):
        others = np.delete(table, annotator, 0)
        chosen = ~np.isnan(own) & ~np.isnan(verdicts) & ~np.isnan(others).all(0)
        others = others[:, chosen]
        judge_off, own_off = (_distance(rating[chosen], others, metric) for rating in (verdicts, own))
        judge_wins, own_wins = judge_off <= own_off + _ROUNDING, own_off <= judge_off + _ROUNDING
        units = Units.of(own_wins.astype(np.float64) - judge_wins, None if codes is None else codes[chosen])
        if len(units) < max(min_items, 2):
            p_values.append(None)
            continue
        p_values.append(_below(units, epsilon))
        as_near.append(float(judge_wins.mean()))
    if not as_near:
        return None
    adjusted = _benjamini_yekutieli(p_values)
    winning_rate = sum(p is not None and p <= alpha for p in adjusted) / len(as_near)
    return AlternativeTest(winning_rate, float(np.mean(as_near)), winning_rate >= 0.5, tuple(adjusted))


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


def _distance(
    rating: NDArray[np.float64], others: NDArray[np.float64], metric: Literal["nominal", "interval"]
) -> NDArray[np.float64]:
    """Return the distance of a rating of each item from those of others, of which there is at least one."""
    match metric:
        case "nominal":
            off = (others != rating).astype(np.float64)
        case "interval":
            off = np.square(others - rating)
        case _:
            raise ValueError(f"expected the metric nominal or interval, found {metric!r}")
    given = ~np.isnan(others)
    return np.asarray(np.where(given, off, 0).sum(0) / given.sum(0), np.float64)


def _below(units: Units, epsilon: float) -> float:
    """Return the p of a one-sided t test that the mean is less than ``epsilon``."""
    from scipy.special import stdtr  # noqa: PLC0415 - slow to import

    mean, error, count = float(units.values.mean()), units.standard_error(), len(units)
    if error:
        return float(stdtr(count - 1, (mean - epsilon) / error))
    return ((1 - epsilon) / (1 - mean)) ** count if mean < epsilon else 1.0


def _benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p values adjusted for multiple tests with any dependence, from the greatest down."""
    tested = sorted(((p, index) for index, p in enumerate(p_values) if p is not None), reverse=True)
    adjusted: list[float | None] = [None] * len(p_values)
    least, harmonic = 1.0, sum(1 / rank for rank in range(1, len(tested) + 1))
    for above, (p, index) in enumerate(tested):
        least = min(least, p * harmonic * len(tested) / (len(tested) - above))
        adjusted[index] = least
    return adjusted

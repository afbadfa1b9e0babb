"""Agreement of raters: how often they say the same, how far beyond chance, and how far from what is known to be so."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.intervals import Interval
from judgekit.stats.units import Groups, Units

Categories: TypeAlias = Sequence[float] | Sequence[str]
"""All that a rater can say, in its order, each once, also what nobody said of these items."""


def agreement(a: ArrayLike, b: ArrayLike) -> float | None:
    """The share of items of which two raters say the same; ``None`` where there are none.

    Raises:
        ValueError: The two are no lists of one length, of finite numbers or of strings.
    """
    first, second, _ = _codes(a, b, None)
    return float(np.equal(first, second).mean()) if len(first) else None


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: Literal["none", "linear", "quadratic"] = "none",
    values: Categories | None = None,
) -> float | None:
    """Cohen's kappa of two raters: 1 where they always agree, 0 where no more than by chance, at least -1.

    kappa = 1 - (disagreement) / (that of the same answers, paired at random), where a pair of different answers counts 1,
    or with weights as many ranks as lie between them, or the square of that. Source: Cohen 1960,
    https://doi.org/10.1177/001316446002000104; weighted: Cohen 1968, https://doi.org/10.1037/h0026256. Where nearly all
    items are of one category it is low even if the two hardly ever differ: `gwet_ac1` is not.

    Args:
        a: What one rater says of each item: numbers or strings.
        b: What the other says.
        weights: How far answers are apart.
        values: All possible answers in order, which weights go by; else those that were given, sorted.

    Returns:
        ``None`` where there are no items, or both give one and the same answer throughout: chance would do as well.

    Raises:
        ValueError: The two are no lists of one length, of finite numbers or of strings, or an answer is not in ``values``.
    """
    first, second, count = _codes(a, b, values)
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    match weights:
        case "none":
            apart = np.minimum(apart, 1)
        case "linear":
            pass
        case "quadratic":
            apart = apart**2
        case _:
            raise ValueError(f"expected weights that are none, linear or quadratic, found {weights!r}")
    counts = np.bincount(first * count + second, minlength=count**2).reshape(count, count)
    by_chance = int((apart * np.outer(counts.sum(1), counts.sum(0))).sum())
    return 1 - int((apart * counts).sum()) * len(first) / by_chance if by_chance else None


def gwet_ac1(a: ArrayLike, b: ArrayLike, *, values: Categories | None = None) -> float | None:
    """Gwet's AC1 of two raters: as `cohen_kappa`, but by chance they agree only where they guess, as on hard items.

    AC1 = (p - e) / (1 - e), where p is the share of equal answers, e = sum of s(1 - s) / (K - 1) over the K categories,
    and s the share of a category among the answers of both. Source: Gwet 2008,
    https://doi.org/10.1348/000711006X126600.

    Args:
        a: What one rater says of each item: numbers or strings.
        b: What the other says.
        values: All possible answers, whose number K it depends on; else those that were given.

    Returns:
        1 where both give one and the same answer throughout; ``None`` where there are no items.

    Raises:
        ValueError: As `cohen_kappa`.
    """
    first, second, count = _codes(a, b, values)
    if not len(first):
        return None
    shares = np.bincount(np.concatenate([first, second])) / (2 * len(first))
    by_chance = float((shares * (1 - shares)).sum()) / max(count - 1, 1)
    return (float(np.equal(first, second).mean()) - by_chance) / (1 - by_chance)


def krippendorff_alpha(ratings: ArrayLike, *, metric: Literal["nominal", "ordinal", "interval"]) -> float | None:
    """Krippendorff's alpha of any number of raters: 1 where they always agree, 0 where no more than by chance.

    alpha = 1 - (disagreement within items) / (that of all ratings, paired at random). Items with one rating are left out.
    Ratings disagree by 0 or 1 if they are names, by the square of their difference, or by that of their mean ranks among
    all ratings. Source: Krippendorff 2011, https://repository.upenn.edu/asc_papers/43. It is computed from sums of squares
    about means, to which the sums over pairs come down: an item with m ratings has m / (m - 1) times the one about its
    own mean, and n ratings n / (n - 1) times the one about the mean of all; names count as a 1 for each in a row of zeros.

    Args:
        ratings: Raters x items; NaN where a rater has none.
        metric: What ratings are.

    Returns:
        ``None`` where no item has two ratings, or all items that have are rated alike.

    Raises:
        ValueError: The ratings are no table of numbers.
    """
    table = ratings_of(ratings)
    table = table[:, (~np.isnan(table)).sum(0) >= 2]
    given = ~np.isnan(table)
    found, ranks, sizes = np.unique(table[given], return_inverse=True, return_counts=True)
    if len(found) < 2:
        return None
    match metric:
        case "nominal":
            points = (np.arange(len(found))[:, np.newaxis] == ranks).astype(np.float64)
        case "ordinal":
            points = (np.cumsum(sizes) - sizes / 2)[np.newaxis, ranks]
        case "interval":
            points = found[np.newaxis, ranks]
        case _:
            raise ValueError(f"expected a metric that is nominal, ordinal or interval, found {metric!r}")
    item = np.nonzero(given)[1]
    per_item = given.sum(0)
    within = 0.0
    for point in points:  # names: one row each
        means = np.bincount(item, weights=point) / per_item
        within += float((np.square(point - means[item]) / (per_item[item] - 1) * per_item[item]).sum())
    total = float(np.square(points - points.mean(1, keepdims=True)).sum())
    return 1 - within / total * (len(item) - 1) / len(item)


class Confusion(NamedTuple):
    """How often a judge says yes or no of items of which people say yes or no: positives and negatives, true and false."""

    tp: int
    fp: int
    fn: int
    tn: int

    @classmethod
    def of(cls, human: ArrayLike, judged: ArrayLike) -> Self:
        """Counts them.

        Raises:
            ValueError: The two are no lists of one length, or hold something else than 0 and 1.
        """
        truth, said = np.asarray(human, np.float64), np.asarray(judged, np.float64)
        if truth.ndim != 1 or truth.shape != said.shape:
            raise ValueError(f"expected two lists of one length, found {truth.shape} and {said.shape}")
        if not np.isin([truth, said], (0, 1)).all():
            raise ValueError("expected 0 or 1 for each item, found other values")
        return cls(*(int(np.sum((truth == yes) & (said == so))) for so, yes in ((1, 1), (1, 0), (0, 1), (0, 0))))

    @property
    def sensitivity(self) -> float | None:
        """The share of what people say yes to that the judge says yes to; ``None`` where they say it of nothing."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def specificity(self) -> float | None:
        """The share of what people say no to that the judge says no to; ``None`` where they say it of nothing."""
        return self.tn / (self.tn + self.fp) if self.tn + self.fp else None


def redrawn(
    statistic: Callable[[NDArray[np.intp]], float | None],
    n: int,
    groups: Groups | None = None,
    *,
    draws: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval | None:
    """The interval of any statistic of items, by the percentiles of its values in samples drawn with replacement.

    Groups are drawn whole, as many as there are. Source and assumptions are those of `judgekit.stats.intervals.bootstrap`.
    A statistic may be undefined in a draw, as kappa is where all items drawn are of one category. What it would be there
    nobody knows: such a draw counts as below the lower bound for the lower one and as above the upper bound for the upper
    one. So it can only widen the interval, and as soon as a bound would fall among such draws, which takes more than
    (1 - level) / 2 of them, there is no interval. A draw may also lack a category: what depends on all of them, as
    weighted kappa and AC1 do, must be given them as ``values``.

    Example:
        ``redrawn(lambda at: cohen_kappa(human[at], judged[at]), len(human), groups)``

    Args:
        statistic: What is computed from items, given by their indices, each as often as it was drawn.
        n: How many items there are.
        groups: The group of each item.
        draws: How many samples are drawn.
        seed: Equal seeds draw equal samples.
        level: How often the interval should cover the true value.

    Returns:
        ``None`` where there are fewer than two units, too many draws are undefined, or all others are alike, as they
        are where raters never differ: that says nothing of those that were not drawn.
    """
    units = Units.of(np.arange(n), groups)
    count, tail = len(units), (1 - level) / 2
    if count < 2:
        return None
    members = [] if units.codes is None else [np.flatnonzero(units.codes == unit) for unit in range(count)]
    random = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(draws):
        drawn = random.integers(count, size=count)
        value = statistic(np.concatenate([members[int(unit)] for unit in drawn]) if members else drawn)
        if value is not None:
            found.append(value)
    undefined = draws - len(found)
    if undefined > tail * draws or min(found) == max(found):
        return None
    low = np.quantile([min(found)] * undefined + found, tail)
    high = np.quantile([max(found)] * undefined + found, 1 - tail)
    return Interval(float(low), float(high), "bootstrap" if units.codes is None else f"bootstrap, {count:,} groups")


def ratings_of(ratings: ArrayLike) -> NDArray[np.float64]:
    """A table of numbers, raters x items; NaN where a rater has none.

    Raises:
        ValueError: It is no such table.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError(f"expected a table of numbers, raters x items, found {table!r}")
    return table


def _codes(a: ArrayLike, b: ArrayLike, values: Categories | None) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """The number of the category of each of both raters' answers, and how many categories there are."""
    first, second = np.asarray(a), np.asarray(b)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"expected two lists of one length, found {first.shape} and {second.shape}")
    both = np.concatenate([first, second])
    names = {one.dtype.kind == "U" for one in (first, second)}
    if len(first) and (len(names) > 1 or not (True in names or np.isfinite(both.astype(np.float64)).all())):
        raise ValueError(f"expected finite numbers of both, or strings, found {first[:3]!r} and {second[:3]!r}")
    if values is None:
        known, codes = np.unique(both, return_inverse=True)
    else:
        known = np.asarray(values)
        order = np.argsort(known)
        codes = order[np.minimum(np.searchsorted(known, both, sorter=order), len(known) - 1)]
        if (unknown := both[known[codes] != both]).size:
            raise ValueError(f"expected answers among {list(values)}, found {unknown[0].item()!r}")
    return codes[: len(first)], codes[len(first) :], len(known)

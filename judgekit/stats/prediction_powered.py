"""The mean that people would give, from a judge's values of all samples and people's labels of some (PPI++)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import fsum, isclose, sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.intervals import Interval, wilson_bounds
from judgekit.stats.quantiles import normal_quantile, t_quantile
from judgekit.stats.units import Groups, Units, must_be_within

_ROUNDING = 1e-12

LEAST_LABELS = 10
"""Of fewer labels, or fewer labelled groups, the interval is honest and of no use: 0.4 to 1 wide, whatever the judge."""


class PPIMean(NamedTuple):
    """A mean, and what the judge adds to the labels.

    ``weight`` is lambda, the part that the judge has in it, from 0 (labels alone) to 1; of strata, their mean by share.
    ``worth`` is how many labels, drawn from all samples at random, would tell as much without the judge.
    """

    value: float
    interval: Interval
    weight: float
    worth: float


@dataclass(frozen=True, eq=False)
class Stratum:
    """Samples of one kind, of which those that people labelled were drawn at random.

    Attributes:
        labels: What people say of n samples; any value where nobody says that the question applies.
        judged: What the judge says of the same n.
        unlabelled: What the judge says of the others.
        share: What part of all samples is of this kind; those of all strata come to 1.
        groups: The group of each label. Any samples may be of one group: of other strata, labelled or not.
        unlabelled_groups: The group of each of the others.
        applies: The share of people, in [0, 1], who say that the question applies to each of the n; all do if not given.
    """

    labels: ArrayLike
    judged: ArrayLike
    unlabelled: ArrayLike
    share: float
    groups: Groups | None = None
    unlabelled_groups: Groups | None = None
    applies: ArrayLike | None = None


def ppi_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    unlabelled: ArrayLike,
    *,
    groups: Groups | None = None,
    unlabelled_groups: Groups | None = None,
    level: float = 0.95,
    bounded: bool = True,
) -> PPIMean | None:
    """`stratified_ppi_mean` of samples of one kind."""
    whole = Stratum(labels, judged, unlabelled, 1, groups, unlabelled_groups)
    return stratified_ppi_mean([whole], level=level, bounded=bounded)


def stratified_ppi_mean(strata: Sequence[Stratum], *, level: float = 0.95, bounded: bool = True) -> PPIMean | None:
    """The mean of what people would say of all samples: the judge's mean, set right by how far the judge is from people.

    Of a stratum it is mean(labels) + lambda * (mean(unlabelled) - mean(judged)), in which the judge's bias is lost. lambda
    = cov(labels, judged) / var(all judged) / (1 + n / N), cut to [0, 1], makes its variance least: a useless judge is left
    out. Found from the same labels, it biases the mean by the order of 1 / n, which is little beside the width. Source:
    PPI++, Angelopoulos, Duchi and Zrnic 2023, https://arxiv.org/abs/2311.01453; strata: Fisch et al. 2024,
    https://arxiv.org/abs/2406.04291. The variance is summed over groups as in `Units.standard_error`, and has that of the
    shares in it: the samples are taken as drawn from endlessly many.

    The interval is Wilson's for as many labels as have this variance (Franco et al. 2019,
    https://pmc.ncbi.nlm.nih.gov/articles/PMC6690503), with Student's t in the place of z, its degrees of freedom being
    the labelled groups less the strata. With many labels it is that of the logit scale (Kott 2017,
    https://www150.statcan.gc.ca/n1/pub/12-001-x/2017002/article/54872-eng.htm), which with few covers too little or is
    several times as wide near 0 and 1. Where judge and people agree on all n samples, they may yet differ on others: to
    the variance z**2 labels are added that no judge foresaw, half 0 and half 1, as by Agresti and Coull 1998,
    https://doi.org/10.1080/00031305.1998.10480550. With few labels between 0 and 1 the interval is wider than it need be.

    Where the question does not apply to some samples, the mean is that of the others, a ratio: the sum of applies * labels
    over the sum of applies, both estimated from the labels. With r the ratio among labels alone and A the mean of
    applies, each label is replaced by its linearized value r + applies * (label - r) / A (Woodruff 1971,
    https://doi.org/10.1080/01621459.1971.10482279), whose mean is r and whose variance is that of the ratio. To the labels
    that are added it applies, and degrees of freedom are those of the labelled groups to which it applies. In simulations
    of 20 and 60 labels, of which it applied to 20 to 100 %, 95 % intervals covered the mean .948 of the time or more.

    Without bounds nothing is added, and the interval is value +- t * standard error.

    Assumes that labels were drawn at random within each stratum, that groups are independent, and that one judge, which
    was not fitted to these labels, judged all samples.

    Args:
        strata: Kinds of samples, such as by the judge's verdict; those of share 0 are left out.
        level: How often the interval covers the mean.
        bounded: All values are in [0, 1].

    Returns:
        ``None`` where a stratum has fewer than two labels, or labels of fewer than two groups, and where the question
        applies to labels of no more groups than there are strata; without bounds also where nothing varies.

    Raises:
        ValueError: Shares are below 0 or do not come to 1, there is not one judged value for each label, or a value is
            no number or out of bounds.
    """
    shares = [one.share for one in strata]
    if min(shares, default=-1) < 0 or not isclose(fsum(shares), 1, abs_tol=1e-9):
        raise ValueError(f"expected shares of 0 or more that come to 1, found {shares}")
    strata = [one for one in strata if one.share]
    ratio = _ratio(strata)
    if ratio is None:
        return None
    _, applying = ratio
    kinds = [_Kind.of(one, *ratio, bounded=bounded) for one in strata]
    codes = _codes(strata, kinds)
    counts = [len(np.unique(one)) for one in codes]
    labelled = np.concatenate(codes[::2])
    n, units = len(labelled), len(np.unique(labelled))
    freedom = len(np.unique(labelled[np.concatenate([kind.applies for kind in kinds]) > 0])) - len(kinds)
    if min(counts[::2]) < 2 or freedom < 1:
        return None

    # The question applies to each label that is added: among these it is one of 1 / applying, and 1 / applying away.
    added = normal_quantile((1 + level) / 2) ** 2 / applying if bounded else 0.0
    value = fsum(kind.share * kind.mean for kind in kinds)
    people = fsum(kind.share * float(kind.labels.mean()) for kind in kinds)
    moves: list[NDArray[np.float64]] = []  # how far each sample moves the value
    alone: list[NDArray[np.float64]] = []  # how far each label would move a mean of labels alone
    unforeseen = 0.0
    for kind, count, others in zip(kinds, counts[::2], counts[1::2], strict=True):
        less = count - 1 + kind.share * added
        of_share = kind.share * (kind.mean - value) / (len(kind.labels) + len(kind.unlabelled))
        errors = _part(kind.labels - kind.weight * kind.judged) * sqrt(count / less)
        judged = _part(kind.unlabelled) * kind.weight * sqrt(others / max(1, others - 1))
        moves += [kind.share * errors + of_share, kind.share * judged + of_share]
        alone.append(sqrt(kind.share / (n * len(kind.labels))) * (kind.labels - people))
        unforeseen += kind.share**2 * _squares(float(kind.labels.mean()), kind.share * added) / (count * less)
    variance = _over_groups(moves, codes) + unforeseen / applying
    of_added = _squares(people, added) / applying / units
    of_labels = (units * _over_groups(alone, codes[::2]) + of_added) / (units - 1 + added)
    if (error := sqrt(variance)) <= _ROUNDING:
        return None

    weight = fsum(kind.share * kind.weight for kind in kinds)
    method = "PPI++" if weight or len(kinds) > 1 else "labels alone"
    if len(kinds) > 1:
        method += f", {len(kinds)} strata"
    if units < n:
        method += f", {units:,} groups"
    t = t_quantile(freedom, (1 + level) / 2)
    if not bounded:
        interval = Interval(value - t * error, value + t * error, method)
    else:
        value = min(1.0, max(0.0, value))
        binary = (n * people * (1 - people) + _squares(people, added)) / (n - 1 + added)
        interval = Interval(*wilson_bounds(value, binary / variance, t), method)
    return PPIMean(value, interval, weight, n * of_labels / variance)


class _Kind(NamedTuple):
    """A stratum that was read, with its lambda."""

    labels: NDArray[np.float64]
    judged: NDArray[np.float64]
    unlabelled: NDArray[np.float64]
    applies: NDArray[np.float64]
    share: float
    weight: float

    @classmethod
    def of(cls, stratum: Stratum, mean: float, applying: float, *, bounded: bool) -> Self:
        """Read a stratum; ``mean`` and ``applying`` are the labels' mean where the question applies, and how often it does."""
        labels, judged = Units.of(stratum.labels, stratum.groups).values, Units.of(stratum.judged).values
        others = Units.of(stratum.unlabelled, stratum.unlabelled_groups)
        if len(labels) != len(judged):
            raise ValueError(f"expected one judged value for each of {len(labels):,} labels, found {len(judged):,}")
        every = np.concatenate([judged, others.values])
        if bounded:
            must_be_within(np.concatenate([labels, every]), 0, 1)
        applies = _applies(stratum)
        if applying < 1:
            labels = mean + applies * (labels - mean) / applying
        weight = 0.0
        if len(labels) > 1 and len(others) > 1 and np.ptp(every) > _ROUNDING:  # the spread of one group is unknown
            covariance = float((labels - labels.mean()) @ judged) / len(labels)
            weight = covariance / float(every.var(ddof=1)) / (1 + len(labels) / len(others.values))
        return cls(labels, judged, others.values, applies, float(stratum.share), min(1.0, max(0.0, weight)))

    @property
    def mean(self) -> float:
        found = float(self.labels.mean())
        if not self.weight:
            return found
        return found + self.weight * float(self.unlabelled.mean() - self.judged.mean())


def _ratio(strata: Sequence[Stratum]) -> tuple[float, float] | None:
    """Return the mean of labels where the question applies, and how often it applies; ``None`` where it never does."""
    total = applying = 0.0
    for one in strata:
        labels, applies = np.asarray(one.labels, np.float64), _applies(one)
        if len(labels):
            total += one.share * float((applies * labels).mean())
            applying += one.share * float(applies.mean())
    return (total / applying, applying) if applying else None


def _applies(stratum: Stratum) -> NDArray[np.float64]:
    """Return the share of people who say that the question applies to each label."""
    n = len(np.asarray(stratum.labels))
    applies = np.ones(n) if stratum.applies is None else np.asarray(stratum.applies, np.float64)
    if applies.shape != (n,) or not ((applies >= 0) & (applies <= 1)).all():
        raise ValueError(f"expected a share in [0, 1] for each of {n:,} labels, found {applies!r}")
    return applies


def _codes(strata: Sequence[Stratum], kinds: Sequence[_Kind]) -> list[NDArray[np.intp]]:
    """The number of each sample's group: labels and others of the first stratum, of the second, and so on."""
    found = [
        (len(values), groups)
        for stratum, kind in zip(strata, kinds, strict=True)
        for values, groups in ((kind.labels, stratum.groups), (kind.unlabelled, stratum.unlabelled_groups))
    ]
    total, ends = sum(size for size, _ in found), np.cumsum([size for size, _ in found])
    codes = None
    if any(groups is not None for _, groups in found):
        keys = chain.from_iterable(repeat(None, size) if groups is None else groups for size, groups in found)
        codes = Units.of(np.zeros(total), [*keys]).codes
    return np.split(np.arange(total) if codes is None else codes, ends[:-1])


def _over_groups(values: Sequence[NDArray[np.float64]], codes: Sequence[NDArray[np.intp]]) -> float:
    """The sum over groups of their squared sums."""
    return float(np.square(np.bincount(np.concatenate(codes), weights=np.concatenate(values))).sum())


def _part(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each value moves their mean."""
    return (values - values.mean()) / len(values) if len(values) else values


def _squares(mean: float, count: float) -> float:
    """The squared deviations from a mean of ``count`` labels, half of them 0 and half 1."""
    return count / 2 * (mean**2 + (1 - mean) ** 2)

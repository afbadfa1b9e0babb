"""The difference between the scores of one scorer in two runs, and how certain it is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import JsonValue

from judgekit.aggregates.total import Total, compute_total
from judgekit.analysis.corrected_difference import DifferenceCorrection
from judgekit.analysis.sample_pairs import Numbers, Outcome, ScoredPairs, Values
from judgekit.errors import join_limited
from judgekit.stats.comparison import detectable_by_signs, detectable_difference, mcnemar, paired_interval, sign_flip
from judgekit.stats.intervals import bootstrap
from judgekit.stats.units import Units
from judgekit.stats.wilson import Interval

ChangeVerdict: TypeAlias = Literal["better", "worse", "no evidence", "unchanged", "not compared"]

_ALPHA = 0.05
_ROUNDING = 1e-9  # values that are no further apart are equal
_DRAWS = 1_000
_PAIRS_REDRAWN = 2_000


class AggregateDifference(NamedTuple):
    """The aggregate over the pairs in each run, for a scorer whose aggregate is not the mean.

    ``interval`` is that of the difference, by a bootstrap that draws pairs or whole groups of them. ``note`` says why
    something is ``None``.
    """

    name: str
    a: float | None
    b: float | None
    interval: Interval | None
    note: str = ""

    def __str__(self) -> str:
        if self.a is None or self.b is None:
            return f"{self.name}: {self.note}"
        sure = self.note if self.interval is None else f"{_interval_text(self.interval)} by {self.interval.method}"
        return (
            f"over the pairs, {self.name} is {self.a:.3f} in A and {self.b:.3f} in B, {self.b - self.a:+z.3f} ({sure})"
        )


@dataclass(frozen=True)
class Difference:
    """The difference between the scores of one scorer in A and B; above 0, B is better.

    Attributes:
        scorer: The scorer's name.
        pairs: The number of samples with a value in both runs; the other numbers are over these.
        excluded: The number of samples without a value in one of the runs, by their outcomes in A and B.
        a: The mean of A.
        b: The mean of B.
        interval: The 95 % interval of the mean difference, clustered if there are groups.
        test: ``exact McNemar`` if all values are 0 or 1 and no group has two pairs, else ``sign-flip permutation``.
        p: The two-sided p of that test.
        p_holm: p adjusted for the number of scorers.
        detectable: The smallest true difference that this many pairs with this spread would have shown with a
            probability of 80 %, if this scorer alone were tested at 0.05.
        better: The number of pairs with a higher value in B.
        worse: The number of pairs with a lower value in B.
        overall: The aggregate of the scores if it is not the mean, such as corpus BLEU.
        correction: The difference that people would see, by their labels; ``None`` if there are none.
    """

    scorer: str
    pairs: int
    excluded: Mapping[tuple[Outcome, Outcome], int]
    a: float | None = None
    b: float | None = None
    interval: Interval | None = None
    test: str = ""
    p: float | None = None
    p_holm: float | None = None
    detectable: float | None = None
    better: int = 0
    worse: int = 0
    overall: AggregateDifference | None = None
    correction: DifferenceCorrection | None = None

    @property
    def difference(self) -> float | None:
        """The mean of B minus the mean of A."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def verdict(self) -> ChangeVerdict:
        """The verdict on B, which is better or worse if the adjusted p is below 0.05."""
        if self.p_holm is None or self.difference is None:
            return "not compared"
        if not self.better + self.worse:
            return "unchanged"
        if self.p_holm >= _ALPHA:
            return "no evidence"
        return "better" if self.difference > 0 else "worse"

    @property
    def method(self) -> str:
        """The methods behind p and the interval."""
        return self.test if self.interval is None else f"{self.test}, interval by {self.interval.method}"

    def notes(self) -> Iterator[str]:
        """Yield notes on the numbers, a line each."""
        yield "; ".join((self._counted(), *self._caveats()))
        if self.excluded:
            outcomes = ", ".join(
                format_outcomes(pair, ("A", "B"), "in", times) for pair, times in self.excluded.items()
            )
            yield f"pairs not compared: {sum(self.excluded.values()):,} ({outcomes})"
        if self.overall is not None:
            other = "; the table shows the mean of the single scores instead"
            yield f"{self.overall}{other if self._has_another_number else ''}"
        if self.correction is not None:
            yield from self.correction.lines()

    def _counted(self) -> str:
        if not self.pairs:
            return "no sample has a value in both runs"
        equal = self.pairs - self.better - self.worse
        return f"{self.better:,} of {self.pairs:,} pairs better, {self.worse:,} worse, {equal:,} equal"

    @property
    def _has_another_number(self) -> bool:
        """Whether the aggregate differs from the mean; a share within a budget or an accuracy does not."""
        both = () if self.overall is None else ((self.overall.a, self.a), (self.overall.b, self.b))
        return any(
            aggregate is not None and mean is not None and abs(aggregate - mean) > _ROUNDING for aggregate, mean in both
        )

    def _caveats(self) -> Iterator[str]:
        """Yield caveats on a high p."""
        if self.verdict != "no evidence":
            return
        yield "no evidence of a difference"
        if self.p is not None and self.p < _ALPHA:
            yield f"p is {_chance(self.p)} before Holm's adjustment for the number of scorers"
        elif self.interval is not None and not self.interval.low <= 0 <= self.interval.high:
            yield f"the approximate interval excludes 0, but the verdict depends on p, which is {_chance(self.p or 0)}"
        if self.detectable is None or self.detectable > 1:
            yield "there are too few pairs to show one (those of one group count once)"
        else:
            yield f"one of {self.detectable:.2g} or more would likely have been detected"

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table, with ``-`` for missing numbers."""
        if self.a is None or self.b is None:
            numbers = ["-"] * 5
        else:
            numbers = [f"{self.a:.3f}", f"{self.b:.3f}", f"{self.b - self.a:+z.3f}"]
            numbers += ["-" if self.interval is None else _interval_text(self.interval)]
            numbers += ["-" if self.p_holm is None else _chance(self.p_holm)]
        return self.scorer, self.verdict, *numbers

    def as_json(self) -> dict[str, JsonValue]:
        """Return the difference as JSON."""
        overall = self.overall
        return {
            "scorer": self.scorer,
            "verdict": self.verdict,
            "pairs": self.pairs,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "interval": _interval_json(self.interval),
            "test": self.test,
            "p": self.p,
            "p_holm": self.p_holm,
            "detectable": self.detectable,
            "better": self.better,
            "worse": self.worse,
            "excluded": [{"a": a, "b": b, "samples": times} for (a, b), times in self.excluded.items()],
            "overall": None if overall is None else {**overall._asdict(), "interval": _interval_json(overall.interval)},
            "correction": None if self.correction is None else self.correction.as_json(),
        }


class PairedNumbers(NamedTuple):
    """The numbers of paired samples in A and in B."""

    a: Numbers
    b: Numbers


def compare_scorer(scorer: str, pairs: ScoredPairs) -> tuple[Difference, PairedNumbers, PairedNumbers]:
    """Return the difference, with p not yet adjusted for other scorers, and the pairs that got worse and better."""
    gains = pairs.b - pairs.a
    gains[np.abs(gains) <= _ROUNDING] = 0
    worse, better = int((gains < 0).sum()), int((gains > 0).sum())
    losers, winners = np.argsort(gains, kind="stable")[:worse], np.argsort(-gains, kind="stable")[:better]
    difference = Difference(scorer, len(gains), pairs.excluded)
    if len(gains):
        units = Units.of(gains, pairs.groups)
        if units.codes is None and np.isin((pairs.a, pairs.b), (0, 1)).all():
            test, p = "exact McNemar", mcnemar(worse, better)
        else:
            test, p = "sign-flip permutation", sign_flip(gains, pairs.groups)
        difference = replace(
            difference,
            a=float(pairs.a.mean()),
            b=float(pairs.b.mean()),
            interval=paired_interval(gains, pairs.groups),
            test=test,
            p=p,
            detectable=_detectable(units),
            better=better,
            worse=worse,
            overall=_overall(pairs),
        )
    return (
        difference,
        PairedNumbers(pairs.numbers_a[losers], pairs.numbers_b[losers]),
        PairedNumbers(pairs.numbers_a[winners], pairs.numbers_b[winners]),
    )


def _detectable(units: Units) -> float | None:
    """Return the smallest difference that both the spread and the least possible p of this many pairs can show."""
    if (least := detectable_by_signs(units)) is None:
        return None
    return max(least, detectable_difference(units.standard_error() or 0.0, len(units) - 1) or 0.0)


def _overall(pairs: ScoredPairs) -> AggregateDifference | None:
    """Return the aggregate of the scores, if it is not the mean."""
    names = {"mean" if score is None else score.aggregate for score in (*pairs.scores_a, *pairs.scores_b)}
    if names == {"mean"}:
        return None
    if len(names) > 1:
        note = f"the scores have different aggregates: {join_limited(sorted(names), separator=', ')}"
        return AggregateDifference("undefined", None, None, None, note)
    (name,) = names

    def totals(indices: Iterable[int]) -> tuple[Total, Total]:
        a, b = ([score for index in indices if (score := side[index])] for side in (pairs.scores_a, pairs.scores_b))
        return compute_total(name, a), compute_total(name, b)

    def gain(drawn: Values) -> float:
        a, b = (total.value for total in totals([int(index) for index in drawn]))
        return nan if a is None or b is None else b - a

    everything = range(len(pairs.groups))
    a, b = totals(everything)
    interval = None
    if a.value is None or b.value is None:
        note = a.note if a.value is None else b.note
    elif len(everything) > _PAIRS_REDRAWN:
        note = f"no interval: over {_PAIRS_REDRAWN:,} pairs take too long to resample"
    else:
        interval = bootstrap(everything, pairs.groups, statistic=gain, draws=_DRAWS)
        note = "" if interval else "no interval: resampling these pairs says too little"
    return AggregateDifference(a.name, a.value, b.value, interval, note)


def _interval_json(interval: Interval | None) -> JsonValue:
    return None if interval is None else interval._asdict()


def format_outcomes(pair: tuple[str, str], sides: tuple[str, str], separator: str, times: int) -> str:
    """Return the outcomes of samples on two sides, such as ``3 failed in A`` or ``3 skipped by both``."""
    if pair[0] == pair[1]:
        return f"{times:,} {pair[0]} {separator} both"
    parts = (f"{outcome} {separator} {side}" for outcome, side in zip(pair, sides, strict=True) if outcome != "scored")
    return f"{times:,} {' and '.join(parts)}"


def _interval_text(interval: Interval) -> str:
    return f"{interval.low:+z.3f} to {interval.high:+z.3f}"


def _chance(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:#.3g}"

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

_SENTENCES: Mapping[ChangeVerdict, str] = {
    "better": "B is better",
    "worse": "B is worse",
    "no evidence": "there is no evidence of a difference",
    "unchanged": "no score changed",
    "not compared": "nothing was compared",
}
_DECIDED = {"better", "worse"}
_TESTED = ("test", "p", "p_holm", "detectable", "better", "worse")
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


class ChangeEstimate(NamedTuple):
    """A verdict on B with its numbers: by the scores themselves, or corrected by human labels."""

    verdict: ChangeVerdict
    a: float | None
    b: float | None
    interval: Interval | None
    p_holm: float | None

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table, with ``-`` for missing numbers."""
        if self.a is None or self.b is None:
            return self.verdict, *["-"] * 5
        interval = "-" if self.interval is None else _interval_text(self.interval)
        p = "-" if self.p_holm is None else _chance(self.p_holm)
        return self.verdict, f"{self.a:.3f}", f"{self.b:.3f}", f"{self.b - self.a:+z.3f}", interval, p

    def __str__(self) -> str:
        _, _, _, difference, interval, _ = self.cells()
        return f"{_SENTENCES[self.verdict]} ({difference}{'' if interval == '-' else f', {interval}'})"


@dataclass(frozen=True)
class Difference:
    """The difference between the scores of one scorer in A and B; above 0, B is better.

    All numbers but those of ``correction`` are computed from the scores themselves: with a judge, by the judge alone.

    Attributes:
        scorer: The scorer's name.
        pairs: The number of samples with a value in both runs; the other numbers are over these.
        excluded: The number of samples without a value in one of the runs, by their outcomes in A and B.
        a: The mean of A.
        b: The mean of B.
        interval: The 95 % interval of the mean difference, clustered if there are groups.
        test: ``exact McNemar`` if all values are 0 or 1 and no group has two pairs, else ``sign-flip permutation``.
        p: The two-sided p of that test.
        p_holm: p adjusted for the number of scorers; where others are corrected, these count with their corrected p.
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
        """The verdict on B: by the corrected difference if labels support one, else by the scores themselves."""
        return self.leading.verdict

    @property
    def by_scores(self) -> ChangeEstimate:
        """The verdict by the scores themselves: with a judge, by the judge alone."""
        is_unchanged = self.p_holm is not None and not self.better + self.worse
        verdict = "unchanged" if is_unchanged else _verdict(self.difference, self.p_holm)
        return ChangeEstimate(verdict, self.a, self.b, self.interval, self.p_holm)

    @property
    def corrected(self) -> ChangeEstimate | None:
        """The verdict by the corrected difference; ``None`` without labels that support one."""
        correction = self.correction
        if correction is None or correction.difference is None:
            return None
        verdict = _verdict(correction.difference, correction.p_holm)
        return ChangeEstimate(verdict, correction.a, correction.b, correction.interval, correction.p_holm)

    @property
    def leading(self) -> ChangeEstimate:
        """The corrected verdict if there is one, else that by the scores themselves."""
        return self.corrected or self.by_scores

    @property
    def contradiction(self) -> str:
        """A sentence on labels and judge if they differ in the sign or in what is decided; empty if they do not."""
        corrected, alone, correction = self.corrected, self.by_scores, self.correction
        if corrected is None or correction is None:
            return ""
        has_other_sign = (correction.difference or 0) * (self.difference or 0) < 0
        if not has_other_sign and (
            corrected.verdict == alone.verdict or not {corrected.verdict, alone.verdict} & _DECIDED
        ):
            return ""
        return (
            f"{self.scorer}: the judge and human labels disagree: corrected by the labels, {corrected}; by the judge "
            f"alone, {alone}"
        )

    @property
    def method(self) -> str:
        """The methods behind p and the interval."""
        return self.test if self.interval is None else f"{self.test}, interval by {self.interval.method}"

    def notes(self) -> Iterator[str]:
        """Yield notes on the numbers, a line each."""
        alone = ""
        if self.correction is not None:
            yield from self.correction.lines()
            alone = "by the judge alone: "
        outcomes = ", ".join(format_outcomes(pair, ("A", "B"), "in", times) for pair, times in self.excluded.items())
        if not self.pairs:
            yield f"no sample has a value in both runs{outcomes and f' ({outcomes})'}"
        else:
            equal = self.pairs - self.better - self.worse
            counts = f"{self.better:,} of {self.pairs:,} pairs better, {self.worse:,} worse, {equal:,} equal"
            yield f"{alone}{'; '.join((counts, *self._caveats()))}"
            if self.excluded:
                yield f"pairs not compared: {sum(self.excluded.values()):,} ({outcomes})"
        if self.overall is not None:
            other = "; the table shows the mean of the single scores instead"
            yield f"{self.overall}{other if self._has_another_number else ''}"

    @property
    def _has_another_number(self) -> bool:
        """Whether the aggregate differs from the mean; a share within a budget or an accuracy does not."""
        both = () if self.overall is None else ((self.overall.a, self.a), (self.overall.b, self.b))
        return any(
            aggregate is not None and mean is not None and abs(aggregate - mean) > _ROUNDING for aggregate, mean in both
        )

    def _caveats(self) -> Iterator[str]:
        """Yield caveats on a high p."""
        if self.by_scores.verdict != "no evidence":
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

    def table_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the row of a table; if it is corrected, the row by the judge alone follows."""
        if self.corrected is None:
            yield self.scorer, *self.by_scores.cells()
        else:
            yield f"{self.scorer}, corrected", *self.corrected.cells()
            yield f"{self.scorer}, by the judge alone", *self.by_scores.cells()

    def as_json(self) -> dict[str, JsonValue]:
        """Return the difference as JSON."""
        overall = self.overall
        names = (*("scorer", "verdict", "contradiction", "pairs", "a", "b", "difference"), *_TESTED)
        return {
            **{name: getattr(self, name) for name in names},
            "verdict_by_scores": self.by_scores.verdict,
            "interval": _interval_json(self.interval),
            "excluded": [{"a": a, "b": b, "samples": times} for (a, b), times in self.excluded.items()],
            "overall": None if overall is None else {**overall._asdict(), "interval": _interval_json(overall.interval)},
            "correction": None if self.correction is None else self.correction.as_json(),
        }


def _verdict(difference: float | None, p_holm: float | None) -> ChangeVerdict:
    """Return a verdict on B, which is better or worse if the adjusted p is below 0.05."""
    if difference is None or p_holm is None:
        return "not compared"
    if p_holm >= _ALPHA:
        return "no evidence"
    return "better" if difference > 0 else "worse"


class PairedNumbers(NamedTuple):
    """The numbers of paired samples in A and in B."""

    a: Numbers
    b: Numbers


class PairedGains(NamedTuple):
    """The numbers of the paired samples that have values in both runs, and their gains from A to B."""

    a: Numbers
    b: Numbers
    gains: Values

    @property
    def worse(self) -> PairedNumbers:
        """The pairs that lost, largest losses first."""
        return self._first(int((self.gains < 0).sum()), self.gains)

    @property
    def better(self) -> PairedNumbers:
        """The pairs that gained, largest gains first."""
        return self._first(int((self.gains > 0).sum()), -self.gains)

    def _first(self, count: int, order: Values) -> PairedNumbers:
        chosen = np.argsort(order, kind="stable")[:count]
        return PairedNumbers(self.a[chosen], self.b[chosen])


def compare_scorer(scorer: str, pairs: ScoredPairs) -> tuple[Difference, PairedGains]:
    """Return the difference, with p not yet adjusted for other scorers, and the gain of each pair."""
    gains = pairs.b - pairs.a
    gains[np.abs(gains) <= _ROUNDING] = 0
    worse, better = int((gains < 0).sum()), int((gains > 0).sum())
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
    return difference, PairedGains(pairs.numbers_a, pairs.numbers_b, gains)


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

"""Judges held against each other: one question about the same samples, who agrees with whom, and who with people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Self, TypeAlias

from pydantic import Field

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.matching import Labelled, homes, match
from judgekit.analysis.measures import Pairs, kind_of
from judgekit.errors import ConfigError
from judgekit.runs.receipts import Figure
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord
from judgekit.score import STATUSES, JudgeCall, Status
from judgekit.traces.message import Many, Record

_Outcomes: TypeAlias = tuple[Status | None, Status | None]
_DIGITS = 9  # of a difference, so that rounding alone makes none
_ONE_SIDED = ("sensitivity", "specificity")  # figures that treat one of two judges as the truth


class Verdict(Record):
    """What one judge says of a sample."""

    value: float
    label: str | None
    reason: str


class Flip(Record):
    """A sample of which two judges say different things; ``human`` is the mean of people's values, where there are any."""

    index: int
    sample_id: str
    a: Verdict
    b: Verdict
    human: float | None = None


class LeftOut(Record):
    """Samples that have no value by one judge or both, by what became of them; ``None`` where they were not come to."""

    a: Status | None
    b: Status | None
    samples: int


class Closer(Record):
    """Which of two judges is closer to people, over the labelled samples that both decided.

    A judge is as close as 1 less the mean distance of its value from those that people give: where all are 0 or 1 and
    people agree, right or wrong.

    Attributes:
        n: How many samples these are.
        a: The mean closeness of one judge, and ``b`` that of the other.
        only_a: Samples to which the one is closer, and ``only_b`` the other.
        difference: The mean of b less that of a.
        test: ``exact McNemar`` where all are right or wrong and no group has two samples, else ``sign-flip permutation``.
        p: The two-sided p of that test.
        p_holm: It, adjusted for the number of pairs of judges.
    """

    n: int
    a: float
    b: float
    only_a: int
    only_b: int
    difference: Figure
    test: str
    p: float
    p_holm: float


class Pair(Record):
    """Two judges, over the samples that both gave a value.

    Attributes:
        a: One of them, and ``b`` the other.
        n: How many samples these are.
        left_out: The others, which are no disagreement.
        agreement: By name, the first the one to be named alone.
        flips: Those with different values, the furthest apart first.
        closer: Which of the two is closer to people; ``None`` without labels.
    """

    a: str
    b: str
    n: int
    left_out: Many[LeftOut] = ()
    agreement: dict[str, Figure] = Field(default_factory=dict)
    flips: Many[Flip] = ()
    closer: Closer | None = None


class Side(Record):
    """One judge, and what it took.

    Attributes:
        judge: Its name, or its model.
        scorer: What its scores are called in the run.
        value: What they come to.
        counts: How many samples are scored, skipped, failed and abstained.
        missing: Samples that a run which was stopped did not come to.
        answered: How many answers came from which model.
        reported: By judge, how many answers each model gave that its provider reported; ``""`` counts those without one.
        fell_back: Samples for which another judge answered in its place: there, that one is compared.
        requests: How many were sent, and ``cached`` how many answers were known already.
        tokens: Those of the requests that were sent; ``None`` where a provider did not say.
        cost_usd: In US dollars; ``None`` where the price is unknown.
        seconds: What a request took, the median of those that were sent and answered; ``None`` where there were none.
        labelled: Samples that both people and the judge decided.
        left_out: Labels that could not be used, by why.
        people: By name, the first the one to be named alone, the agreement with what people say together.
    """

    judge: str
    scorer: str
    value: Figure
    counts: dict[Status, int]
    missing: int
    answered: dict[str, int]
    reported: dict[str, dict[str, int]] = Field(default_factory=dict[str, dict[str, int]])
    fell_back: int = 0
    requests: int
    cached: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None
    labelled: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)
    people: dict[str, Figure] = Field(default_factory=dict)


class JudgeComparison(Record):
    """What the judges of a run say, each pair of them, over all its samples."""

    run: int
    samples: int
    sides: Many[Side]
    pairs: Many[Pair]


@dataclass(frozen=True)
class _Answers:
    """What one judge says, and what people say of the same samples."""

    judge: str
    record: ScorerRecord
    statuses: Mapping[int, Status]
    rows: Mapping[int, Row]
    people: Mapping[int, Sequence[float]]
    labelled: int
    agreement: Mapping[str, Figure]
    left_out: Mapping[str, int]

    @classmethod
    def of(cls, run: Run, judge: str, record: ScorerRecord, labels: Sequence[HumanLabel]) -> Self:
        """Reads the rows of a judge, and finds the labels of its samples."""
        every = list(run.rows(scorer=record.name))
        runs, left_out = homes(run, record, labels)
        matched = match(run, record, every, runs[run])
        pairs = Pairs.of(matched, *kind_of(record, matched.rows, matched.samples))
        left_out += matched.left_out + matched.unmatched
        for other, theirs in runs.items():
            if other is not run:
                left_out[f"of samples of run {other.number}"] += len(theirs)
        people = {
            one.row.index: one.values for one in matched.samples if one.values and one.row.score.value is not None
        }
        return cls(
            judge,
            record,
            {row.index: row.score.status for row in every},
            {row.index: row for row in matched.rows if row.score.value is not None},
            people,
            len(matched.samples),
            pairs.agreement(),
            left_out,
        )

    def value(self, index: int) -> float:
        """The value of a sample that has one."""
        return self.rows[index].score.value or 0.0

    def verdict(self, index: int) -> Verdict:
        """The same in words."""
        score = self.rows[index].score
        return Verdict(value=self.value(index), label=score.label, reason=score.reason)


def compare_judges(run: Run, judges: Mapping[str, str], labels: Iterable[HumanLabel] = ()) -> JudgeComparison:
    """Holds the judges of a run against each other, each pair of them, and against people.

    A sample that one of two judges did not decide is counted beside them. Intervals draw groups of samples whole.

    Args:
        run: Each judge is a scorer of it, all of which ask the same question.
        judges: By the name of each judge, that of its scorer.
        labels: What people answer to this question.

    Raises:
        ConfigError: There is no such scorer, or one person says two things of one sample.
        TraceError: A label is none of the scale.
    """
    from judgekit.stats.comparison import holm  # noqa: PLC0415 - numpy takes a while

    given, records = list(labels), {one.name: one for one in run.scorers}
    for scorer in judges.values():
        if scorer not in records:
            raise ConfigError.unknown("scorer of the run", scorer, records)
    found = [_Answers.of(run, judge, records[scorer], given) for judge, scorer in judges.items()]
    closer = [_closer(a, b) for a, b in combinations(found, 2)]
    adjusted = holm([None if one is None else one.p for one in closer])
    return JudgeComparison(
        run=run.number,
        samples=run.samples.samples,
        sides=[_side(run, answers) for answers in found],
        pairs=[
            _pair(a, b, one and one.model_copy(update={"p_holm": p}))
            for (a, b), one, p in zip(combinations(found, 2), closer, adjusted, strict=True)
        ],
    )


def _side(run: Run, answers: _Answers) -> Side:
    line = run.summary[answers.record.name]
    asked = [row.score.calls for row in run.rows(scorer=line.scorer)]
    seconds = [call.seconds for calls in asked for call in calls if not call.cached and call.error is None]
    return Side(
        judge=answers.judge,
        scorer=line.scorer,
        value=Figure.of(line.value, line.interval),
        counts={status: line.counts[status] for status in STATUSES},
        missing=line.missing,
        answered=dict(line.judges),
        reported={
            judge: {name or "": times for name, times in models.items()} for judge, models in line.reported.items()
        },
        fell_back=sum(map(_fell_back, asked)),
        requests=line.requests,
        cached=line.cached,
        tokens=line.tokens,
        cost_usd=line.cost_usd,
        seconds=median(seconds) if seconds else None,
        labelled=answers.labelled,
        left_out=dict(answers.left_out),
        people=dict(answers.agreement),
    )


def _fell_back(calls: Sequence[JudgeCall]) -> bool:
    """Whether somebody answered, and somebody who was asked did not."""
    answered = {call.judge for call in calls if call.error is None}
    return bool(answered) and not answered.issuperset(call.judge for call in calls)


def _pair(a: _Answers, b: _Answers, closer: Closer | None) -> Pair:
    outcomes = Counter[_Outcomes]()
    for index in {**a.statuses, **b.statuses}:
        outcomes[a.statuses.get(index), b.statuses.get(index)] += 1
    del outcomes["scored", "scored"]
    both = [index for index in a.rows if index in b.rows]
    rows = [side.rows[index] for side in (a, b) for index in both]
    pairs = Pairs(
        *kind_of(b.record, rows, ()),
        samples=[Labelled(b.rows[index], ()) for index in both],
        said=[[a.value(index)] for index in both],
        by_verdict=False,
    )
    apart = {index: gap for index in both if (gap := round(abs(a.value(index) - b.value(index)), _DIGITS))}
    people = {**b.people, **a.people}
    return Pair(
        a=a.judge,
        b=b.judge,
        n=len(both),
        left_out=[LeftOut(a=of_a, b=of_b, samples=times) for (of_a, of_b), times in outcomes.most_common()],
        agreement={name: figure for name, figure in pairs.agreement().items() if name not in _ONE_SIDED},
        flips=[
            Flip(
                index=index,
                sample_id=a.rows[index].sample_id,
                a=a.verdict(index),
                b=b.verdict(index),
                human=fmean(people[index]) if index in people else None,
            )
            for index in sorted(apart, key=lambda index: (-apart[index], index))
        ],
        closer=closer,
    )


def _closer(a: _Answers, b: _Answers) -> Closer | None:
    import numpy as np  # noqa: PLC0415

    from judgekit.stats.comparison import mcnemar, paired_interval, sign_flip  # noqa: PLC0415
    from judgekit.stats.units import Units  # noqa: PLC0415

    both = [index for index in a.people if index in b.people]
    if not both:
        return None
    groups = [a.rows[index].group for index in both]
    near_a, near_b = (
        np.asarray([1 - fmean(abs(side.value(index) - one) for one in a.people[index]) for index in both])
        for side in (a, b)
    )
    gains = np.round(near_b - near_a, _DIGITS)
    only_a, only_b = int((gains < 0).sum()), int((gains > 0).sum())
    if Units.of(gains, groups).codes is None and np.isin((near_a, near_b), (0, 1)).all():
        test, p = "exact McNemar", mcnemar(only_a, only_b)
    else:
        test, p = "sign-flip permutation", sign_flip(gains, groups)
    return Closer(
        n=len(both),
        a=float(near_a.mean()),
        b=float(near_b.mean()),
        only_a=only_a,
        only_b=only_b,
        difference=Figure.of(float(gains.mean()), paired_interval(gains, groups)),
        test=test,
        p=p,
        p_holm=p,
    )

"""Comparisons of judges that answer one question about the same samples: agreement with each other and with people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Self

import numpy as np
from pydantic import Field, JsonValue

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.matching import LabeledSample, labels_by_run, match_labels
from judgekit.analysis.measures import VerdictPairs, value_kind
from judgekit.analysis.spent_labels import spent_samples
from judgekit.errors import check_choice
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord
from judgekit.score import STATUSES, JudgeCall, ScoreStatus
from judgekit.stats.comparison import holm, mcnemar, paired_interval, sign_flip
from judgekit.stats.units import Units
from judgekit.traces.message import FrozenModel, Many

_DIGITS = 9  # of a difference, so that rounding alone makes none
_ONE_SIDED = ("sensitivity", "specificity")  # figures that treat one of two judges as the truth


class JudgeVerdict(FrozenModel):
    """The verdict of one judge on a sample."""

    value: float
    label: str | None
    reason: str


class Flip(FrozenModel):
    """A sample on which two judges disagree; ``human_value`` is the mean of people's values, if there are any."""

    index: int
    sample_id: str
    a: JudgeVerdict
    b: JudgeVerdict
    human_value: float | None = None


class LeftOutSamples(FrozenModel):
    """Samples without a value from one or both judges, by both statuses; ``None`` if a judge did not reach them."""

    a: ScoreStatus | None
    b: ScoreStatus | None
    samples: int


class ClosenessTest(FrozenModel):
    """The comparison of two judges with people, over the labeled samples that both judges decided.

    A judge's closeness is 1 minus the mean distance of its value from people's values. If all values are 0 or 1 and
    people agree, it says whether the judge is right.

    Attributes:
        sample_count: The number of these samples.
        a: The mean closeness of the first judge.
        b: The mean closeness of the second judge.
        a_closer: The number of samples on which the first judge is closer.
        b_closer: The number of samples on which the second judge is closer.
        difference: The mean of b minus the mean of a.
        test: ``exact McNemar`` if each judge is right or wrong and no group has two samples, else ``sign-flip
            permutation``.
        p: The two-sided p of that test.
        p_holm: p adjusted for the number of pairs.
    """

    sample_count: int
    a: float
    b: float
    a_closer: int
    b_closer: int
    difference: Estimate
    test: str
    p: float
    p_holm: float


class JudgePair(FrozenModel):
    """Two judges, over the samples that both gave a value.

    Attributes:
        a: The first judge.
        b: The second judge.
        sample_count: The number of these samples.
        excluded: The other samples, which do not count as disagreements.
        agreement: Measures of agreement by name; the first is the one to quote alone.
        flips: The samples with different values, largest distance first.
        flip_count: Their number.
        closeness: The comparison with people; ``None`` without labels.
    """

    a: str
    b: str
    sample_count: int
    excluded: Many[LeftOutSamples] = ()
    agreement: dict[str, Estimate] = Field(default_factory=dict)
    flips: Many[Flip] = ()
    flip_count: int = 0
    closeness: ClosenessTest | None = None


class JudgeResult(FrozenModel):
    """A judge with its results and its cost.

    Attributes:
        judge: The judge's name, or its model.
        scorer: The name of its scores in the run.
        value: The aggregate of its scores.
        status_counts: The number of samples by status.
        missing: The number of samples that a stopped run did not reach.
        answered: The number of answers by model.
        reported_models: The number of answers by judge and reported model; ``""`` counts answers without one.
        fell_back: The number of samples that another judge answered in its place; there, the other judge is compared.
        requests: The number of requests sent.
        cached: The number of answers from a cache.
        tokens: The tokens of the requests; ``None`` if a provider did not report them.
        cost_usd: The cost in US dollars; ``None`` if a price is unknown.
        seconds: The median duration of the requests that were answered; ``None`` if there were none.
        labeled: The number of samples that both people and the judge decided.
        unused_labels: The number of labels that could not be used, by reason.
        human_agreement: Measures of agreement with people, by name; the first is the one to quote alone.
    """

    judge: str
    scorer: str
    value: Estimate
    status_counts: dict[ScoreStatus, int]
    missing: int
    answered: dict[str, int]
    reported_models: dict[str, dict[str, int]] = Field(default_factory=dict[str, dict[str, int]])
    fell_back: int = 0
    requests: int | float
    cached: int | float
    tokens: int | None
    cost_usd: float | None
    seconds: float | None
    labeled: int = 0
    unused_labels: dict[str, int] = Field(default_factory=dict)
    human_agreement: dict[str, Estimate] = Field(default_factory=dict)


class JudgeComparison(FrozenModel):
    """The comparison of the judges of a run: each of them, and each pair, over all samples."""

    run: int
    samples: int
    judges: Many[JudgeResult]
    pairs: Many[JudgePair]

    def as_json(self, show: int | None = None) -> JsonValue:
        """Return the comparison as JSON, with the first ``show`` flips of each pair, or all."""
        pairs = tuple(pair.model_copy(update={"flips": pair.flips[:show]}) for pair in self.pairs)
        document: JsonValue = self.model_copy(update={"pairs": pairs}).model_dump(mode="json")
        return document


@dataclass(frozen=True)
class _Answers:
    """The verdicts of one judge, and those of people on the same samples."""

    judge: str
    record: ScorerRecord
    statuses: Mapping[int, ScoreStatus]
    rows: Mapping[int, Row]
    human_values: Mapping[int, Sequence[float]]
    labeled: int
    agreement: Mapping[str, Estimate]
    unused_labels: Mapping[str, int]

    @classmethod
    def of(
        cls, run: Run, judge: str, record: ScorerRecord, labels: Sequence[HumanLabel], compared: Sequence[ScorerRecord]
    ) -> Self:
        """Return the verdicts in the rows of a judge, with labels of its samples that none of those asked was aligned by."""
        every = list(run.rows(scorer=record.name))
        runs, left_out = labels_by_run(run, record, labels)
        matched = match_labels(run, record, every, runs[run], spent_samples(run, compared, every, runs[run]))
        pairs = VerdictPairs.of(matched, *value_kind(record, matched.rows, matched.samples))
        left_out += matched.unused_labels + matched.unmatched
        for other, theirs in runs.items():
            if other is not run:
                left_out[f"they belong to run {other.number}"] += len(theirs)
        human_values = {
            sample.row.index: sample.values
            for sample in matched.samples
            if sample.values and sample.row.score.value is not None
        }
        return cls(
            judge,
            record,
            {row.index: row.score.status for row in every},
            {row.index: row for row in matched.rows if row.score.value is not None},
            human_values,
            len(matched.samples),
            pairs.agreement(),
            left_out,
        )

    def value(self, index: int) -> float:
        """Return the value of a sample that has one."""
        return self.rows[index].score.value or 0.0

    def verdict(self, index: int) -> JudgeVerdict:
        """Return the verdict on a sample that has a value."""
        score = self.rows[index].score
        return JudgeVerdict(value=self.value(index), label=score.label, reason=score.reason)


def compare_judges(run: Run, judges: Mapping[str, str], labels: Iterable[HumanLabel] = ()) -> JudgeComparison:
    """Compare the judges of a run, each pair of them, and each with people.

    A sample that one of two judges did not decide is counted separately. Intervals resample whole groups.

    Args:
        run: A run in which each judge is a scorer, all with the same question.
        judges: The names of scorers by the names of judges.
        labels: People's answers to this question.

    Raises:
        ConfigError: There is no such scorer, or one person gives a sample two labels.
        TraceError: A label is not on the scale.
    """
    given, records = list(labels), {record.name: record for record in run.scorers}
    for scorer in judges.values():
        check_choice("scorer of the run", scorer, records)
    compared = [records[scorer] for scorer in judges.values()]
    sides = [_Answers.of(run, judge, record, given, compared) for judge, record in zip(judges, compared, strict=True)]
    tests = [_closer(a, b) for a, b in combinations(sides, 2)]
    adjusted = holm([None if test is None else test.p for test in tests])
    closer = [test and test.model_copy(update={"p_holm": p}) for test, p in zip(tests, adjusted, strict=True)]
    return JudgeComparison(
        run=run.number,
        samples=run.samples.samples,
        judges=[_side(run, answers) for answers in sides],
        pairs=[_pair(a, b, closeness) for (a, b), closeness in zip(combinations(sides, 2), closer, strict=True)],
    )


def _side(run: Run, answers: _Answers) -> JudgeResult:
    line = run.summary[answers.record.name]
    calls_by_sample = [row.score.calls for row in run.rows(scorer=line.scorer)]
    seconds = [call.seconds for calls in calls_by_sample for call in calls if not call.cached and call.error is None]
    return JudgeResult(
        judge=answers.judge,
        scorer=line.scorer,
        value=Estimate.of(line.value, line.interval),
        status_counts={status: line.counts[status] for status in STATUSES},
        missing=line.missing,
        answered=dict(line.judges),
        reported_models={
            judge: {name or "": times for name, times in models.items()}
            for judge, models in line.answers.models.items()
        },
        fell_back=sum(map(_fell_back, calls_by_sample)),
        requests=line.requests,
        cached=line.cached,
        tokens=line.tokens,
        cost_usd=line.cost_usd,
        seconds=median(seconds) if seconds else None,
        labeled=answers.labeled,
        unused_labels=dict(answers.unused_labels),
        human_agreement=dict(answers.agreement),
    )


def _fell_back(calls: Sequence[JudgeCall]) -> bool:
    """Return whether there was an answer, but not from every judge that was asked."""
    answered = {call.judge for call in calls if call.error is None}
    return bool(answered) and not answered.issuperset(call.judge for call in calls)


def _pair(a: _Answers, b: _Answers, closeness: ClosenessTest | None) -> JudgePair:
    outcomes = Counter[tuple[ScoreStatus | None, ScoreStatus | None]]()
    for index in {**a.statuses, **b.statuses}:
        outcomes[a.statuses.get(index), b.statuses.get(index)] += 1
    del outcomes["scored", "scored"]
    both = [index for index in a.rows if index in b.rows]
    rows = [side.rows[index] for side in (a, b) for index in both]
    pairs = VerdictPairs(
        *value_kind(b.record, rows, ()),
        samples=[LabeledSample(b.rows[index], ()) for index in both],
        human_verdicts=[[a.value(index)] for index in both],
        by_verdict=False,
    )
    apart = {index: gap for index in both if (gap := round(abs(a.value(index) - b.value(index)), _DIGITS))}
    human_values = {**b.human_values, **a.human_values}
    return JudgePair(
        a=a.judge,
        b=b.judge,
        sample_count=len(both),
        excluded=[LeftOutSamples(a=of_a, b=of_b, samples=times) for (of_a, of_b), times in outcomes.most_common()],
        agreement={name: figure for name, figure in pairs.agreement().items() if name not in _ONE_SIDED},
        flips=[
            Flip(
                index=index,
                sample_id=a.rows[index].sample_id,
                a=a.verdict(index),
                b=b.verdict(index),
                human_value=fmean(human_values[index]) if index in human_values else None,
            )
            for index in sorted(apart, key=lambda index: (-apart[index], index))
        ],
        flip_count=len(apart),
        closeness=closeness,
    )


def _closer(a: _Answers, b: _Answers) -> ClosenessTest | None:
    human = {index: values for index, values in a.human_values.items() if index in b.human_values}
    if not human:
        return None
    groups = [a.rows[index].unit for index in human]
    near_a, near_b = (
        np.asarray([1 - fmean(abs(side.value(index) - value) for value in human[index]) for index in human])
        for side in (a, b)
    )
    gains = np.round(near_b - near_a, _DIGITS)
    only_a, only_b = int((gains < 0).sum()), int((gains > 0).sum())
    if Units.of(gains, groups).codes is None and np.isin((near_a, near_b), (0, 1)).all():
        test, p = "exact McNemar", mcnemar(only_a, only_b)
    else:
        test, p = "sign-flip permutation", sign_flip(gains, groups)
    return ClosenessTest(
        sample_count=len(human),
        a=float(near_a.mean()),
        b=float(near_b.mean()),
        a_closer=only_a,
        b_closer=only_b,
        difference=Estimate.of(float(gains.mean()), paired_interval(gains, groups)),
        test=test,
        p=p,
        p_holm=p,
    )

"""How far verdicts repeat: flips, and verdicts that are near to turning."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, count
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgekit.analysis.findings import Repeatability
from judgekit.analysis.noise import repeatability
from judgekit.jobs.api import run
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.rows import Row
from judgekit.runs.textless import TextRemover
from judgekit.score import Score, current_repeat
from judgekit.scorers.pairwise import Pairwise
from judgekit.scorers.panel import Panel
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scoring import Scorer
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


@dataclass(frozen=True)
class Told:
    """Says of a sample what its fields tell for each repeat; ``None`` is an abstention."""

    name: str = "judged"

    async def ascore(self, sample: Sample, /) -> Score:
        value = sample.fields[self.name][current_repeat.get()]
        return Score.abstained(self.name, "cannot tell") if value is None else Score.scored(self.name, value)


NUMBERS = count()


def sample(group: str | None = None, **values: Sequence[float | None]) -> Sample:
    return Sample.of([HumanMessage(f"Book it, {next(NUMBERS)}."), AIMessage("Done.")], fields=values, group=group)


def rows(scorer: Scorer, samples: Sequence[Sample]) -> list[Row]:
    return list(run(samples, [scorer]))


def of_repeats(*repeats: Sequence[float | None], by: str = "majority") -> Repeatability | None:
    scorer = Repeat(Told(), repeats=len(repeats[0]), aggregation=by)
    return repeatability(rows(scorer, [sample(judged=values) for values in repeats]))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.integers(2, 5).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n), min_size=2, max_size=5)
    )
)
def test_the_flip_rate_is_how_many_pairs_of_repeats_differ(repeats):
    pairs = [[one != other for one, other in combinations(values, 2)] for values in repeats]
    assert of_repeats(*repeats).flip_rate.value == pytest.approx(fmean(map(fmean, pairs)))


def test_of_two_repeats_it_is_a_share_with_the_interval_of_one():
    found = of_repeats(*[[1, 0]] * 3, *[[1, 1]] * 7)
    rate = found.flip_rate
    assert (rate.value, rate.method) == (pytest.approx(0.3), "Wilson")
    assert (found.samples, found.repeats, found.max_repeats) == (10, 20, 20)
    low, high = proportion_confint(3, 10, method="wilson")
    assert (rate.low, rate.high) == (pytest.approx(low), pytest.approx(high))


def test_trials_of_a_task_are_not_taken_for_independent():
    samples = [sample(str(n // 5), judged=[1, n // 5 % 2]) for n in range(20)]
    alone = [one.model_copy(update={"group": None}) for one in samples]
    grouped, apart = (repeatability(rows(Repeat(Told(), repeats=2), some)).flip_rate for some in (samples, alone))
    assert "4 groups" in grouped.method
    assert grouped.high - grouped.low > apart.high - apart.low


def test_near_is_a_verdict_that_a_repeat_more_or_less_could_turn():
    cases = [
        ([1, 1, 0], "majority", True),
        ([1, 1, 1], "majority", False),
        ([1, 0], "majority", True),
        ([1, 1, 1, 0], "majority", False),
        ([1, 0.5, 0.5], "majority", True),
        ([1, 1, 1, None, None], "majority", True),
        ([0.5, 0.5, 0.5], "majority", False),
        ([0.5, 0.5, 0.5], "mean", True),
        ([1, 1, 0], "mean", True),
        ([1, 1, 1, 0], "mean", False),
        ([0.9, 0.8, 0.6], "mean", False),
        ([0.7, 0.6, 0.6], "mean", True),
    ]
    for repeats, by, near in cases:
        assert of_repeats(repeats, by=by).near.value == near


def test_of_members_with_repeats_those_of_one_member_are_compared():
    samples = [sample(a=[1, 0], b=[0, 0]), sample(a=[1, 1], b=[0, 0])]
    found = repeatability(rows(Panel([Repeat(Told(name), repeats=2) for name in "ab"]), samples))
    assert (found.samples, found.repeats, found.flip_rate.value) == (2, 8, 1 / 4)


def test_of_members_that_stop_when_the_lead_is_plain_the_first_repeats_are_looked_at():
    samples = [sample(a=[1, 1, 1, 1], b=[1, 0, 1, 1, 1, 1, 1, 1, 1]), sample(a=[0] * 4, b=[0] * 4)]
    found = repeatability(rows(Panel([Repeat(Told(name), repeats="auto") for name in "ab"]), samples))
    assert (found.repeats, found.max_repeats) == (4 + 6 + 4 + 4, 4 * 9)
    assert found.notes[0].startswith("Only the first 4 repeats count here")


def test_members_that_are_asked_once_differ_from_each_other():
    samples = [sample(a=[1], b=[1], c=[0]), sample(a=[0], b=[0], c=[0]), sample(a=[1], b=[None], c=[1])]
    found = repeatability(rows(Panel([Told("a"), Told("b"), Told("c")]), samples))
    assert found.flip_rate.value == pytest.approx((2 / 3 + 0 + 2 / 3) / 3)
    assert found.near.value == pytest.approx(2 / 3)


def test_the_two_orders_of_a_pair_are_two_verdicts():
    said = {"strengths_first": "", "strengths_second": "", "reason": "", "evidence_first": [1], "evidence_second": []}
    places = iter(["first", "second", "first", "first", "tie", "tie", "second", "first"])
    judge = ScriptedJudge(lambda _: {**said, "verdict": next(places)})
    baseline = Trace(messages=[HumanMessage(f"Book it, {next(NUMBERS)}."), AIMessage("No.")])
    pairs = [sample().model_copy(update={"baseline": baseline}) for _ in range(4)]
    pairs.append(sample().model_copy(update={"baseline": sample().trace}))  # nobody is asked about it
    found = repeatability(list(run(pairs, [Pairwise("Which?", judge)])))
    assert (found.samples, found.repeats) == (4, 8)
    assert found.flip_rate.value == found.near.value == 1 / 4  # the second pair


@pytest.mark.simulations
def test_repeats_that_stop_when_the_lead_is_plain_are_counted_as_if_they_did_not():
    repeat, likely = random.Random(0), 0.7  # noqa: S311 - no secret
    samples = [sample(judged=[float(repeat.random() < likely) for _ in range(9)]) for _ in range(400)]
    made = rows(Repeat(Told(), repeats="auto"), samples)
    found = repeatability(made)
    assert (found.samples, found.max_repeats) == (400, 3_600)
    assert found.repeats == sum(len(row.score.details["repeats"]) for row in made)
    assert found.repeats < 3_000
    assert found.flip_rate.low < 2 * likely * (1 - likely) < found.flip_rate.high
    assert found.notes[0].startswith("Only the first 4 repeats count here")
    firsts = [sample(judged=one.fields["judged"][:4]) for one in samples]
    assert repeatability(rows(Repeat(Told(), repeats=4), firsts)).flip_rate == found.flip_rate


def test_of_a_panel_that_escalates_those_are_looked_at_who_are_asked_in_any_case():
    samples = [sample(a=[1], b=[1], c=[0]), sample(a=[1], b=[0], c=[1])]
    found = repeatability(rows(Panel([Told("a"), Told("b"), Told("c")], escalate=True), samples))
    assert (found.repeats, found.max_repeats, found.flip_rate.value) == (5, 6, 1 / 2)
    assert found.notes[0].startswith("Only the first 2 members count here")


def test_a_member_that_failed_says_nothing():
    whole, broken = sample(a=[1], b=[1], c=[1]), sample(a=[1], b=[1])  # c has no field to read
    found = repeatability(rows(Panel([Told("a"), Told("b"), Told("c")], quorum=2), [whole, broken]))
    assert (found.samples, found.repeats, found.max_repeats) == (2, 5, 6)
    assert (found.flip_rate.value, found.near.value) == (0, 0)
    alone = sample(a=[1])
    assert repeatability(rows(Panel([Told("a"), Told("b"), Told("c")], quorum=1), [alone])) is None


def test_who_gave_the_verdict_in_the_end_says_nothing_of_how_the_first_one_came():
    samples = [sample(judged=[0.5, 0.5, 0.5, 1], other=[1]), sample(judged=[1, 1, 0, 0], other=[1])]
    repeated = Repeat(Told(), repeats=4)
    assert (
        repeatability(rows(Selective(repeated, 0.8, Told("other")), samples)).near
        == repeatability(rows(repeated, samples)).near
    )


def test_what_was_not_sure_enough_to_be_a_verdict_is_noise_all_the_same():
    samples = [sample(judged=[1, 1, 0], other=[1]), sample(judged=[1, 1, 1], other=[1])]
    plain = repeatability(rows(Repeat(Told(), repeats=3), samples))
    for escalate in (None, Told("other")):
        assert repeatability(rows(Selective(Repeat(Told(), repeats=3), 0.8, escalate), samples)) == plain


def test_repeats_of_a_member_that_was_not_sure_enough_are_noise_all_the_same():
    samples = [sample(a=[1, 1, 0], b=[1, 1, 1]), sample(a=[0, 0, 0], b=[0, 0, 1])]
    plain, sure = ([Repeat(Told(name), repeats=3) for name in "ab"] for _ in range(2))
    doubting = Panel([Selective(member, 0.8) for member in sure])
    assert repeatability(rows(doubting, samples)).flip_rate == repeatability(rows(Panel(plain), samples)).flip_rate


@pytest.mark.parametrize(
    "asked",
    [
        Repeat(Told(), repeats=3),
        Selective(Repeat(Told(), repeats=3), 0.8),
        Panel([Repeat(Told(name), repeats=3) for name in "ab"]),
        Panel([Selective(Repeat(Told(name), repeats=3), 0.8) for name in "ab"]),
    ],
    ids=["repeats", "doubted", "panel", "doubted panel"],
)
def test_what_is_kept_without_text_tells_as_much(asked):
    samples = [
        sample(judged=[1, 1, 0], a=[1, 1, 0], b=[1, 1, 1]),
        sample(judged=[1, None, 1], a=[0, 0, 0], b=[0, 0, 1]),
    ]
    made = rows(asked, samples)
    assert repeatability(
        [row.model_copy(update={"score": TextRemover().score(row.score)}) for row in made]
    ) == repeatability(made)


def test_where_nobody_was_asked_twice_there_is_nothing_to_tell():
    assert repeatability([]) is None
    assert repeatability(rows(Told(), [sample(judged=[1])])) is None
    assert of_repeats([None, None]) is None
    once = of_repeats([1, 0])
    assert (once.samples, once.flip_rate.value) == (1, 1)

"""Repeated repeats of one scorer: independent verdicts, their majority or mean, and how far they agree."""

import asyncio
import re
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import AuthenticationError, BudgetError, ConfigError, OverloadError
from judgekit.jobs.api import run as run_samples
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score, current_repeat, planning
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

SAMPLE = Sample.of([HumanMessage("Book it."), AIMessage("Done.")])
BOOKED = Prompt(
    "booked", "Is it booked?", ("conversation",), "", "You judge.", "Is it booked?", scale=(("yes", 1.0), ("no", 0.0))
)


def answer(verdict: str) -> dict:
    return {"reason": f"why {verdict}", "evidence": [2], "verdict": verdict}


@dataclass(frozen=True)
class Drawn:
    """Gives each repeat the score that a list has for it, wherever it stands in time."""

    scores: tuple[Score | Exception, ...]
    name: str = "drawn"

    async def ascore(self, _sample: Sample, /) -> Score:
        index = current_repeat.get()
        await asyncio.sleep(0.001 * (len(self.scores) - index))
        if isinstance(score := self.scores[index], Exception):
            raise score
        return score


def scored(value: float) -> Score:
    return Score.scored("drawn", value, label=f"label {value}", reason=f"why {value}")


def repeated(*scores: Score | Exception, by: str = "majority") -> Score:
    return asyncio.run(Repeat(Drawn(scores), repeats=len(scores), aggregation=by).ascore(SAMPLE))


def test_the_majority_of_the_repeats_is_the_score():
    found = repeated(*map(scored, (1.0, 0.0, 1.0, 1.0, 0.0)))
    assert (found.scorer, found.value, found.label) == ("drawn_x5", 1.0, "label 1.0")
    assert found.reason == "3 of 5 repeats agree: why 1.0"
    assert found.details["agreement"] == 3 / 5
    assert found.details["std"] == pytest.approx(pstdev([1, 0, 1, 1, 0]))
    assert found.details["repeats"][1] == {"status": "scored", "value": 0.0, "label": "label 0.0", "reason": "why 0.0"}


def test_its_confidence_is_the_share_of_the_repeats_for_the_verdict():
    assert repeated(*map(scored, (1.0, 0.0, 1.0, 1.0, 0.0))).confidence == 3 / 5
    assert repeated(scored(1.0), scored(1.0), Score.abstained("drawn", "cannot tell")).confidence == 2 / 3
    assert repeated(*map(scored, (0.25, 0.5)), by="mean").confidence is None
    assert repeated(*map(scored, (1.0, 0.0))).confidence is None


def test_warnings_of_the_repeats_are_those_of_the_score_each_once():
    repeats = [Score.scored("drawn", 1, warnings=said) for said in (["odd"], [], ["short", "odd"])]
    assert repeated(*repeats).warnings == repeated(*repeats, by="mean").warnings == ("odd", "short")
    assert repeated(*map(scored, (1.0, 1.0))).warnings == ()


def test_the_mean_of_the_repeats_is_the_score():
    found = repeated(*map(scored, (0.25, 0.5, 0.75)), by="mean")
    assert (found.value, found.reason) == (0.5, "mean of 3 repeats, 0.25 to 0.75")


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=6))
def test_the_numbers_are_those_of_the_draws(values):
    by_majority, by_mean = (repeated(*map(scored, values), by=by) for by in ("majority", "mean"))
    most = max(map(values.count, values))
    winners = {value for value in values if values.count(value) == most}
    assert by_majority.value == (winners.pop() if len(winners) == 1 else None)
    assert by_majority.status == ("abstained" if by_majority.value is None else "scored")
    assert by_mean.value == pytest.approx(fmean(values))
    assert by_mean.details["agreement"] == by_majority.details["agreement"] == most / len(values)


def test_a_draw_that_abstains_is_a_vote_for_nothing():
    nothing = Score.abstained("drawn", "cannot tell")
    assert repeated(nothing, nothing, scored(1.0)).status == "abstained"
    assert repeated(nothing, scored(1.0), scored(1.0)).value == 1.0
    assert repeated(nothing, nothing).reason == "cannot tell"
    assert repeated(nothing, scored(0.5), by="mean").reason == "mean of 1 repeats, 0.50 to 0.50, 1 without a value"


def test_a_draw_that_fails_fails_the_whole_by_its_class():
    found = repeated(scored(1.0), OverloadError("busy"), scored(1.0))
    assert (found.status, found.error) == ("failed", "OverloadError")
    assert found.reason == "1 of 3 repeats failed: OverloadError: busy"


def test_what_the_scorer_skips_is_skipped():
    found = repeated(*[Score.skipped("drawn", "no reference", label="not_applicable")] * 2)
    assert (found.status, found.reason, found.label) == ("skipped", "no reference", "not_applicable")


def test_a_draw_that_skips_is_a_vote_like_others():
    skip = Score.skipped("drawn", "no claim")
    assert repeated(skip, *[scored(1.0)] * 4).value == 1.0
    assert repeated(skip, skip, scored(1.0)).reason == "no claim"
    assert repeated(skip, scored(1.0)).status == "abstained"
    assert repeated(skip, scored(1.0), scored(0.0)).status == "abstained"
    assert repeated(skip, scored(1.0), scored(0.5), by="mean").value == 0.75
    assert repeated(skip, skip, scored(0.5), by="mean").status == "skipped"


def test_sums_that_a_rounding_keeps_apart_are_one_value():
    found = repeated(scored(0.1 + 0.2), scored(0.3), scored(0.7))
    assert (found.value, found.details["agreement"]) == (pytest.approx(0.3), 2 / 3)


@pytest.mark.parametrize("error", [AuthenticationError("no"), BudgetError("spent")])
def test_what_stops_a_run_gets_through_when_all_repeats_are_done(error):
    with pytest.raises(type(error)):
        repeated(error, scored(1.0))


def test_each_draw_is_asked_for_itself_and_all_calls_are_kept():
    judge = ScriptedJudge([answer("yes"), answer("no"), answer("yes")], params={"seed": 40})
    found = asyncio.run(Repeat(PromptScorer(BOOKED, judge), repeats=3).ascore(SAMPLE))
    assert (found.value, found.label, len(found.calls)) == (1.0, "yes", 3)
    assert len({request.key for request in judge.requests}) == 3
    assert len({request.messages for request in judge.requests}) == 1
    assert sorted(request.repeat for request in judge.requests) == [0, 1, 2]
    assert sorted(request.params["seed"] for request in judge.requests) == [40, 41, 42]


def test_the_repeats_of_a_second_run_come_from_the_cache(tmp_path):
    def judge() -> ScriptedJudge:
        settings = {"cache": tmp_path / "cache.sqlite", "cache_mode": "read_write"}
        return ScriptedJudge([answer("yes"), answer("no"), answer("yes")], **settings)

    def run(judge: ScriptedJudge, repeats: int) -> Score:
        return asyncio.run(Repeat(PromptScorer(BOOKED, judge), repeats=repeats).ascore(SAMPLE))

    first, second = judge(), judge()
    assert run(second, 3).value == run(first, 3).value
    assert len(first.requests) + len(second.requests) == 3
    assert {call.cached for call in run(judge(), 2).calls} == {True}  # fewer repeats are the first of them


def test_it_asks_what_its_scorer_asks():
    scorer = PromptScorer(BOOKED, ScriptedJudge([]))
    assert Repeat(Repeat(scorer)).prompts == scorer.prompts
    assert Repeat(Drawn(())).prompts == ()


def test_repeats_within_repeats_draw_apart():
    judge = ScriptedJudge({"booked": answer("yes")})
    asyncio.run(Repeat(Repeat(PromptScorer(BOOKED, judge), repeats=2), repeats=3).ascore(SAMPLE))
    assert sorted(request.repeat for request in judge.requests) == list(range(6))


def drawn_until_plain(*scores: Score | Exception) -> Score:
    return asyncio.run(Repeat(Drawn(scores), repeats="auto").ascore(SAMPLE))


def first_plain(values: list[float]) -> int:
    """After how many draws the leader cannot be caught up with by nine, or is ahead with more than 95 %.

    The share of the first of two answers, of a and b repeats, lies over one half with the probability that a + b + 1 coins
    show heads at most a times.
    """
    for n in range(1, len(values) + 1):
        b, a = sorted((values[:n].count(0.0), values[:n].count(1.0)))
        ahead = Fraction(sum(comb(n + 1, heads) for heads in range(a + 1)), 2 ** (n + 1))
        if a - b > 9 - n or ahead > Fraction(95, 100):
            return n
    return len(values)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=9, max_size=9))
def test_by_auto_it_stops_at_the_first_draw_that_makes_the_verdict_plain(values):
    found = drawn_until_plain(*map(scored, values))
    n = first_plain(values)
    assert [repeat["value"] for repeat in found.details["repeats"]] == values[:n]
    assert (found.scorer, found.details["min_repeats"], found.details["max_repeats"]) == ("drawn_auto", 4, 9)
    assert (found.value, found.confidence) == (max((0.0, 1.0), key=values[:n].count), found.details["agreement"])


def test_by_auto_the_reason_says_what_was_not_asked():
    assert drawn_until_plain(*[scored(1.0)] * 9).reason == "4 of 4 repeats agree, 5 more not needed: why 1.0"
    whole = drawn_until_plain(*map(scored, [1.0, 0.0] * 4), scored(1.0))
    assert whole.reason == "5 of 9 repeats agree: why 1.0"
    assert drawn_until_plain(*map(scored, [1.0, 0.5, 0.0] * 3)).status == "abstained"


def test_by_auto_a_draw_that_fails_ends_it_since_it_will_be_asked_again():
    found = drawn_until_plain(scored(1.0), OverloadError("busy"), *[scored(1.0)] * 7)
    assert (found.status, found.reason) == ("failed", "1 of 4 repeats failed: OverloadError: busy")


@pytest.mark.parametrize("repeats", ["auto", 4])
def test_the_first_is_asked_alone_and_then_as_many_at_once_as_it_takes_in_any_case(repeats):
    met, under_way, alone = asyncio.Barrier(3), [], []

    @dataclass(frozen=True)
    class Waiting:
        name: str = "waiting"

        async def ascore(self, _sample: Sample, /) -> Score:
            under_way.append(self)
            if not alone:
                await asyncio.sleep(0.01)
                alone.append(len(under_way))
            else:
                await met.wait()
            return scored(1.0)

    assert asyncio.run(asyncio.wait_for(Repeat(Waiting(), repeats=repeats).ascore(SAMPLE), 5)).value == 1
    assert alone == [1]


def test_by_auto_the_repeats_are_the_first_of_any_number_of_repeats(tmp_path):
    kept = {"cache": tmp_path / "cache.sqlite", "cache_mode": "read_write"}
    verdicts = ["yes", "no", "yes", "yes", "yes", "yes"]
    judge = ScriptedJudge([answer(verdict) for verdict in verdicts], **kept)
    found = Repeat(PromptScorer(BOOKED, judge), repeats="auto").score(SAMPLE)
    assert (found.confidence, len(judge.requests), found.details["requests_saved"]) == (5 / 6, 6, 3)
    again = ScriptedJudge([], **kept)
    assert Repeat(PromptScorer(BOOKED, again), repeats="auto").score(SAMPLE).details == found.details
    assert Repeat(PromptScorer(BOOKED, again), repeats=6).score(SAMPLE).value == found.value


def test_by_auto_a_plan_has_room_for_the_most():
    scorer = Repeat(PromptScorer("tone", Judge("openai/a", cache_mode="off")), repeats="auto")
    with planning():
        found = asyncio.run(attempt(scorer, SAMPLE))
    assert [call.error for call in found.calls] == ["PlannedError"] * 9


def test_by_auto_a_run_says_what_was_saved():
    def say(request) -> dict:
        wavers = "Book it" in request.messages[1].content
        return answer("no" if wavers and request.repeat % 2 else "yes")

    samples = [SAMPLE, Sample.of([HumanMessage("Thanks."), AIMessage("You are welcome.")])]
    line = run_samples(samples, [Repeat(PromptScorer(BOOKED, ScriptedJudge(say)), repeats="auto")]).summary[
        "booked_auto"
    ]
    assert [*line.notes()] == ["repeats: 6.5 of at most 9 per sample; 5 requests saved"]
    fixed = run_samples(samples, [Repeat(PromptScorer(BOOKED, ScriptedJudge(say)), repeats=3)]).summary["booked_x3"]
    assert [*fixed.notes()] == []
    members = [Repeat(PromptScorer(BOOKED, ScriptedJudge(say)), repeats="auto", name=name) for name in "ab"]
    line = run_samples(samples, [Panel(members)]).summary["panel"]
    assert [*line.notes()] == ["repeats: 6.5 of at most 9 per sample; 10 requests saved"]


def test_what_is_repeated_how_often_and_how_is_part_of_the_signature():
    scorer = PromptScorer(BOOKED, ScriptedJudge([]))
    made = [Repeat(scorer), Repeat(scorer, repeats=3), Repeat(scorer, aggregation="mean"), Repeat(Repeat(scorer))]
    made.append(Repeat(scorer, repeats="auto"))
    assert len({signature(one) for one in (*made, scorer)}) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 1}, "repeats must be 2 or more, or 'auto', found 1"),
        ({"repeats": "auto", "aggregation": "mean"}, "a mean needs every repeat, so repeats='auto' cannot stop early"),
        ({"aggregation": "median"}, "no way to aggregate repeats is called 'median'"),
    ],
)
def test_a_repeat_that_makes_no_sense_is_an_error(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Repeat(Drawn(()), **options)

"""Panels: the votes of several scorers become one verdict, and no vote is lost on the way."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import AuthenticationError, BudgetError, ConfigError, JudgeDownError, OverloadError, QuotaError
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import JudgeCall, Score, planning, record_calls
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

SAMPLE = Sample.of([HumanMessage("Book it."), AIMessage("Done.")])
SCALE = (("yes", 1.0), ("no", 0.0))
BOOKED = Prompt("booked", "Is it booked?", ("conversation",), "", "You judge.", "Is it booked?", scale=SCALE)
KIND = Prompt("kind", "Is it kind?", ("conversation",), "", "You judge.", "Is it kind?", scale=SCALE)
VOTES = [0.0, 0.5, 1.0, "abstained", "skipped", "failed"]


@dataclass(frozen=True)
class Member:
    """Says what it is told to, at the price of a call."""

    says: float | str | Exception
    name: str

    async def ascore(self, _sample: Sample, /) -> Score:
        record_calls(JudgeCall(judge=f"judge/{self.name}", prompt="p"))
        await asyncio.sleep(0)
        if isinstance(self.says, Exception):
            raise self.says
        if isinstance(self.says, float):
            return Score.scored(self.name, self.says, label=f"label {self.says}", reason=f"why {self.says}")
        if self.says == "failed":
            raise OverloadError(f"{self.name} is busy")
        return {"skipped": Score.skipped, "abstained": Score.abstained}[self.says](
            self.name, f"{self.says} it", label=f"label {self.says}"
        )


def members(votes: Sequence[float | str | Exception]) -> list[Member]:
    return [Member(vote, f"m{index}") for index, vote in enumerate(votes)]


def verdict(*votes: float | str | Exception, **options) -> Score:
    return asyncio.run(attempt(Panel(members(votes), **options), SAMPLE))


def said(score: Score) -> float | str:
    return score.status if score.value is None else score.value


def asked_by(score: Score) -> list[str]:
    return [call.judge for call in score.calls]


def answer(label: str) -> dict:
    return {"reason": f"why {label}", "evidence": [2], "verdict": label}


@pytest.mark.parametrize("rule", ["majority", "unanimous", "mean"])
def test_warnings_of_the_members_are_those_of_the_panel_each_once(rule):
    @dataclass(frozen=True)
    class Warns:
        name: str
        said: tuple[str, ...]

        async def ascore(self, _sample: Sample, /) -> Score:
            return Score.scored(self.name, 1, warnings=self.said)

    panel = Panel([Warns("a", ("odd",)), Warns("b", ("short", "odd")), Warns("c", ())], rule=rule)
    assert panel.score(SAMPLE).warnings == ("odd", "short")


def test_the_unanimous_verdict_is_what_all_members_say():
    cases = [
        ([0.5, 0.5, 0.5], 0.5),
        ([1.0, 1.0, 0.0], "abstained"),
        ([1.0, 1.0, "abstained"], "abstained"),
        ([1.0, 1.0, "skipped"], "abstained"),
        (["skipped", "skipped"], "skipped"),
        (["abstained", "abstained"], "abstained"),
        ([0.0, "failed"], "failed"),
    ]
    for votes, expected in cases:
        assert said(verdict(*votes, rule="unanimous")) == expected


@pytest.mark.parametrize(
    ("votes", "mean", "middle"),
    [
        ([0.5, 1.0, "abstained"], 0.75, 0.75),
        ([1.0, "abstained"], "abstained", "abstained"),
        ([1.0, "skipped", "skipped"], "skipped", "skipped"),
        ([1.0, "failed", 1.0], "failed", "failed"),
    ],
)
def test_mean_and_median_are_those_of_the_values_where_most_votes_are_values(votes, mean, middle):
    assert said(verdict(*votes, rule="mean")) == pytest.approx(mean)
    assert said(verdict(*votes, rule="median")) == pytest.approx(middle)


def test_a_mean_weighs_the_members_that_gave_a_value():
    cases = [
        ([1.0, 0.0], {}, 0.7),
        ([1.0, 0.0, "abstained"], {"weights": [1, 3, 96]}, 0.25),  # the weights of those that gave a value
        ([1.0, "failed", 0.0], {"weights": [1, 96, 3], "quorum": 2}, 0.25),
        ([1.0, "abstained"], {}, "abstained"),
    ]
    for votes, options, mean in cases:
        found = verdict(*votes, rule="mean", **{"weights": [0.7, 0.3], **options})
        assert said(found) == pytest.approx(mean)
        if found.value is not None:
            assert found.reason.startswith("weighted mean of the values: ")


@given(st.lists(st.sampled_from(VOTES[:-1]), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_members_does_not_matter(votes, draw):
    shuffled = draw.sample(votes, len(votes))
    for rule in ("majority", "unanimous", "mean", "median"):
        assert said(verdict(*votes, rule=rule)) == said(verdict(*shuffled, rule=rule))
    values, half = [vote for vote in votes if isinstance(vote, float)], Fraction(len(votes), 2)
    assert said(verdict(*votes)) == next((vote for vote, n in Counter(votes).items() if n > half), "abstained")
    if len(values) > half:
        assert said(verdict(*votes, rule="mean")) == pytest.approx(fmean(values))
        assert said(verdict(*votes, rule="median")) == median(values)


def test_every_vote_stays_in_the_details():
    found = verdict(1.0, "abstained", 1.0)
    assert found.details["votes"] == {
        "m0": {"judge": "judge/m0", "status": "scored", "value": 1.0, "label": "label 1.0", "reason": "why 1.0"},
        "m1": {
            "judge": "judge/m1",
            "status": "abstained",
            "value": None,
            "label": "label abstained",
            "reason": "abstained it",
        },
        "m2": {"judge": "judge/m2", "status": "scored", "value": 1.0, "label": "label 1.0", "reason": "why 1.0"},
    }
    assert found.details["unasked"] == []


def test_its_confidence_is_the_share_of_the_votes_for_the_verdict():
    cases = [
        ([1.0, 0.0, 1.0], {}, 2 / 3),
        ([1.0, 1.0, "abstained"], {}, 2 / 3),
        ([1.0, 1.0, 0.0], {"escalate": True}, 1),  # of the votes that were cast
        ([1.0, 1.0, "failed"], {"quorum": 2}, 1),
        ([1.0, 0.0], {}, None),
        ([1.0, 1.0], {"rule": "mean"}, None),
        (["skipped", "skipped"], {}, None),
    ]
    for votes, options, confidence in cases:
        assert verdict(*votes, **options).confidence == confidence


def test_the_draws_of_a_member_stay_with_its_vote():
    judge = ScriptedJudge([answer("yes"), answer("no"), answer("yes")])
    panel = Panel([*members([1.0]), Repeat(PromptScorer(BOOKED, judge), repeats=3)])
    votes = asyncio.run(panel.ascore(SAMPLE)).details["votes"]
    assert (votes["booked_x3"]["repeats"], votes["booked_x3"]["value"]) == ([1.0, 0.0, 1.0], 1.0)
    assert "repeats" not in votes["m0"]


def test_the_verdict_has_the_label_and_the_reason_of_those_who_gave_it():
    found = verdict(0.0, 1.0, 1.0)
    assert (found.label, found.reason) == ("label 1.0", "by majority (0.00 x1, 1.00 x2): why 1.0")
    for rule in ("majority", "mean"):
        idle = verdict(1.0, "skipped", "skipped", rule=rule)
        assert (idle.label, idle.reason) == ("label skipped", f"by {rule} (1.00 x1, skipped x2): skipped it")
    mean = verdict(0.5, 1.0, "abstained", rule="mean")
    assert (mean.label, mean.reason) == (None, "mean of the values: 0.50 x1, 1.00 x1, abstained x1")
    torn = verdict(1.0, "abstained")
    assert (torn.label, torn.reason) == (None, "no verdict by majority: 1.00 x1, abstained x1")


def test_a_member_that_fails_fails_the_panel_and_its_vote_and_its_cost_are_kept():
    found = verdict(1.0, "failed", 1.0)
    assert (found.status, found.error) == ("failed", "OverloadError")
    assert found.reason == "1 of 3 members failed: OverloadError: m1 is busy"
    assert [vote["status"] for vote in found.details["votes"].values()] == ["scored", "failed", "scored"]
    assert asked_by(found) == ["judge/m0", "judge/m1", "judge/m2"]


def test_with_a_quorum_those_that_fail_are_left_out_as_long_as_enough_decide():
    cases = [
        ([1.0, 1.0, "failed"], 2, 1.0),
        ([1.0, 0.0, "failed"], 2, "abstained"),
        ([1.0, "failed", "failed"], 2, "failed"),
        ([1.0, "failed", "failed"], 1, 1.0),
        (["failed", "failed", "failed"], 1, "failed"),
        ([1.0, 1.0, "abstained"], 3, "abstained"),
        (["skipped", "skipped", "failed"], 2, "skipped"),
        ([1.0, "abstained", "failed"], 1, "abstained"),  # one of two votes is no majority
        ([1.0, "abstained", "failed"], 2, "failed"),
    ]
    for votes, quorum, expected in cases:
        assert said(verdict(*votes, quorum=quorum)) == expected


def test_a_quorum_that_is_missed_is_said_so():
    assert verdict(1.0, "abstained", quorum=2).reason == "quorum of 2 not reached: 1.00 x1, abstained x1"


DOWN = JudgeDownError("openai/m is down")


@pytest.mark.parametrize(
    ("votes", "options", "expected"),
    [
        ([1.0, 1.0, DOWN], {"quorum": 2}, 1.0),
        ([1.0, 0.0, DOWN], {"quorum": 2}, "abstained"),
        ([1.0, "failed", DOWN], {"quorum": 2}, "failed"),  # by itself this once: other samples have a quorum
        ([1.0, DOWN, DOWN], {"quorum": 1}, 1.0),
        ([0.0, 1.0, DOWN], {"quorum": 2, "rule": "mean"}, 0.5),
        ([DOWN, 1.0, 1.0], {"quorum": 2, "escalate": True}, 1.0),
    ],
)
def test_a_member_whose_judge_is_down_is_left_out_where_a_quorum_allows_it_and_the_score_says_so(
    votes, options, expected
):
    found = verdict(*votes, **options)
    assert said(found) == expected
    down = [f"m{index}" for index, vote in enumerate(votes) if vote is DOWN]
    assert found.warnings == tuple(f"{name} has no vote: its judge is down" for name in down)
    assert [found.details["votes"][name]["status"] for name in down] == ["failed"] * len(down)
    assert len(found.calls) == 3


@pytest.mark.parametrize(
    ("votes", "options"),
    [
        ([1.0, 1.0, DOWN], {}),
        ([1.0, DOWN, DOWN], {"quorum": 2}),
        ([DOWN, DOWN], {"quorum": 1}),
        ([DOWN, 1.0, 1.0], {"escalate": True}),
    ],
)
def test_a_panel_that_cannot_decide_without_those_that_are_down_scores_nothing(votes, options):
    with pytest.raises(JudgeDownError, match=r"^openai/m is down$"):
        verdict(*votes, **options)


def test_a_member_that_is_down_and_not_needed_is_no_matter():
    assert verdict(1.0, 1.0, DOWN, escalate=True).warnings == ()


def test_members_are_asked_at_once():
    met = asyncio.Barrier(3)

    @dataclass(frozen=True)
    class Waiting:
        name: str

        async def ascore(self, sample: Sample, /) -> Score:
            await met.wait()
            return Score.scored(self.name, 1)

    panel = Panel([Waiting("a"), Waiting("b"), Waiting("c")])
    assert asyncio.run(asyncio.wait_for(panel.ascore(SAMPLE), 5)).value == 1


def test_who_escalates_asks_the_next_only_while_the_verdict_is_open():
    cases = [
        ([1.0, 0.0, 1.0], "majority", 3, 1.0),
        (["abstained", "abstained", 1.0], "majority", 2, "abstained"),
        ([1.0, 0.0, "abstained", "abstained", 1.0], "majority", 4, "abstained"),
        ([1.0, 0.0, 1.0], "unanimous", 2, "abstained"),
        ([1.0, 1.0, 1.0], "unanimous", 3, 1.0),
        (["failed", 1.0, 1.0], "majority", 2, "failed"),
    ]
    for votes, rule, asked, expected in cases:
        found = verdict(*votes, rule=rule, escalate=True)
        assert (said(found), len(found.calls)) == (expected, asked)
        names = [f"m{index}" for index in range(len(votes))]
        assert [*found.details["votes"]] == names[:asked]
        assert found.details["unasked"] == names[asked:]


def test_who_escalates_asks_in_the_place_of_a_member_that_failed_where_a_quorum_allows_it():
    found = verdict("failed", 1.0, 1.0, 0.0, quorum=2, escalate=True)
    assert (found.value, found.reason) == (1.0, "by majority (failed x1, 1.00 x2): why 1.0")
    assert asked_by(found) == ["judge/m0", "judge/m1", "judge/m2"]


@given(
    st.lists(st.sampled_from(VOTES[:-1]), min_size=2, max_size=5),
    st.sampled_from(["majority", "unanimous"]),
    st.integers(0, 5),
)
def test_who_escalates_says_what_the_whole_panel_would_say_and_no_vote_that_it_spared_could_change_it(
    votes, rule, quorum
):
    options = {"rule": rule, "quorum": min(quorum, len(votes)) or None}
    found, whole = verdict(*votes, **options, escalate=True), verdict(*votes, **options)
    assert said(found) == said(whole)
    asked = len(found.calls)
    ends = {
        said(verdict(*votes[:asked], *rest, **options)) for rest in product([*VOTES[:-1]], repeat=len(votes) - asked)
    }
    assert ends == {said(whole)}
    if asked > 2:  # and it did not ask one too many
        before = votes[: asked - 1]
        ends = {said(verdict(*before, *rest, **options)) for rest in product(VOTES[:-1], repeat=len(votes) - asked + 1)}
        assert len(ends) > 1


@pytest.mark.parametrize(("error", "why"), [(BudgetError, "its budget is spent"), (QuotaError, "its quota is spent")])
def test_a_member_that_has_spent_its_budget_or_quota_is_left_out_like_one_that_is_down(error, why):
    found = verdict(1.0, 1.0, error("spent"), quorum=2)
    assert (found.value, found.warnings) == (1.0, (f"m2 has no vote: {why}",))
    with pytest.raises(error, match=r"^spent$"):
        verdict(1.0, 1.0, error("spent"))


@pytest.mark.parametrize("error", [AuthenticationError("no"), BudgetError("spent")])
@pytest.mark.parametrize("escalate", [False, True])
def test_what_stops_a_run_gets_through_when_all_that_were_asked_are_done(error, escalate):
    done: list[str] = []

    @dataclass(frozen=True)
    class Slow:
        name: str = "slow"

        async def ascore(self, sample: Sample, /) -> Score:
            await asyncio.sleep(0.01)
            done.append(self.name)
            return Score.scored(self.name, 1)

    with pytest.raises(type(error)):
        asyncio.run(Panel([Member(error, "m"), Slow()], escalate=escalate).ascore(SAMPLE))
    assert done == ["slow"]


def test_one_question_for_several_judges_needs_no_names():
    judges = [ScriptedJudge([answer(label)]) for label in ("yes", "no", "yes")]
    other = judges[1].model_copy(update={"model": "scripted/other"})
    panel = Panel([PromptScorer(BOOKED, judge) for judge in (judges[0], other, judges[2])], rule="mean")
    found = panel.score(SAMPLE)
    assert [(name, vote["judge"], vote["label"]) for name, vote in found.details["votes"].items()] == [
        ("booked (scripted/judge) #1", "scripted/judge", "yes"),
        ("booked (scripted/other)", "scripted/other", "no"),
        ("booked (scripted/judge) #3", "scripted/judge", "yes"),
    ]
    assert len(found.calls) == 3


def test_one_judge_cannot_vote_twice_under_two_names():
    one, other = Judge("openai/x", price=Price(1, 2)), Judge("openai/x", concurrency=2)
    with pytest.raises(ConfigError, match="'tone' is in the panel twice"):
        Panel([PromptScorer("tone", one), PromptScorer("tone", other)])
    Panel([PromptScorer("tone", one), PromptScorer("tone", Judge("openai/x", params={"seed": 1}))])


def test_a_plan_has_room_for_all_members():
    """Nobody knows yet whether the first two will agree."""
    judges = [Judge(f"openai/{name}", cache_mode="off") for name in "abc"]
    with planning():
        found = asyncio.run(attempt(Panel([PromptScorer("tone", one) for one in judges], escalate=True), SAMPLE))
    assert [(call.judge, call.error) for call in found.calls] == [(f"openai/{name}", "PlannedError") for name in "abc"]


def test_members_that_are_not_asked_are_told_apart_as_well():
    judge = ScriptedJudge({"booked": answer("yes")})
    judges = [judge.model_copy(update={"model": f"scripted/{model}"}) for model in ("cheap", "middle", "dear")]
    scorers = [PromptScorer(BOOKED, judges[0]), PromptScorer(BOOKED, judges[1])]
    last = Repeat(PromptScorer(BOOKED, judges[2]), repeats=2, name="booked")
    found = asyncio.run(Panel([*scorers, last], escalate=True).ascore(SAMPLE))
    assert (found.value, found.details["unasked"]) == (1.0, ["booked (scripted/dear)"])


def test_a_panel_within_a_panel_and_a_repeat_are_members_like_others():
    inner = Panel(members([1.0, 1.0, 0.0]), name="inner")
    judge = ScriptedJudge([answer("yes"), answer("no"), answer("yes")])
    found = asyncio.run(Panel([inner, Repeat(PromptScorer(BOOKED, judge), repeats=3)], rule="unanimous").ascore(SAMPLE))
    assert found.value == 1.0
    assert asked_by(found) == ["judge/m0", "judge/m1", "judge/m2", *["scripted/judge"] * 3]
    assert [*found.details["votes"]] == ["inner", "booked_x3"]
    assert found.details["votes"]["inner"]["judge"] == "judge/m0, judge/m1, judge/m2"


def test_a_member_gives_in_a_panel_the_verdict_that_it_gives_alone():
    """It is the same draw, so that what is cached for one serves the other."""
    judge = ScriptedJudge({"booked": answer("yes"), "kind": answer("yes")})
    scorers = [PromptScorer(BOOKED, judge), PromptScorer(KIND, judge)]
    asyncio.run(Panel(scorers).ascore(SAMPLE))
    for scorer in scorers:
        asyncio.run(scorer.ascore(SAMPLE))
    assert [*Counter(request.key for request in judge.requests).values()] == [2, 2]


def test_it_asks_what_its_members_ask_each_question_once_in_order():
    judge, other = ScriptedJudge([]), ScriptedJudge([])
    kind = PromptScorer(KIND, judge)
    panel = Panel([kind, PromptScorer(BOOKED, judge), PromptScorer(KIND, other), *members([1.0])])
    assert Panel([panel, Repeat(kind)]).prompts == panel.prompts == (KIND, BOOKED)
    assert Panel(members([1.0, 0.0])).prompts == ()


def test_who_sits_in_it_and_how_it_counts_is_part_of_the_signature():
    one, two, three = members([1.0, 1.0, 1.0])
    panels = [
        Panel([one, two]),
        Panel([two, one]),
        Panel([one, two, three]),
        Panel([one, two], rule="mean"),
        Panel([one, two], rule="mean", weights=[1, 2]),
        Panel([one, two], quorum=1),
        Panel([one, two], escalate=True),
    ]
    assert len({signature(panel) for panel in panels}) == len(panels)


def test_a_panel_that_makes_no_sense_is_an_error():
    cases = [
        ([1.0], {}, "a panel needs two or more members, found 1"),
        ([1.0, 0.0], {"rule": "majorty"}, "no rule of a panel is called 'majorty'. Did you mean 'majority'?"),
        ([1.0, 0.0], {"quorum": 3}, "quorum must be from 1 to 2, the number of members, found 3"),
        ([1.0, 0.0], {"quorum": 0}, "quorum must be from 1 to 2, the number of members, found 0"),
        (
            [1.0, 0.0],
            {"rule": "mean", "escalate": True},
            "a mean needs every vote, so it cannot escalate; rules that can: majority, unanimous",
        ),
        ([1.0, 0.0], {"weights": [1, 2]}, "only a mean has weights, not the rule 'majority'"),
        *(
            ([1.0, 0.0], {"rule": "mean", "weights": weights}, "weights must be 2 numbers above 0, one for each member")
            for weights in ([1], [1, 2, 3], [1, 0], [1, -1], [1, float("inf")], [1, float("nan")], [1, True], "ab")
        ),
    ]
    for votes, options, message in cases:
        with pytest.raises(ConfigError, match=re.escape(message)):
            Panel(members(votes), **options)

"""Weighted binary criteria: who decides them, what they sum to, and the class of the outcome."""

import asyncio
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import BudgetError, ConfigError, RefusalError
from judgekit.judges.schema import strict_schema
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.criteria import OUTCOMES, WeightedCriteria, _answer_model
from judgekit.scoring import attempt, run_sync, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

MEETING = {
    "correct_participants": 0.25,
    "correct_time": 0.25,
    "correct_duration": 0.10,
    "explored_alternatives": 0.20,
    "clear_explanation": 0.20,
}
SAMPLE = Sample.of([HumanMessage("Book a room for 8."), AIMessage("Room 3 is yours.")], id="one")


def said(criterion: str, holds: str = "yes", evidence: tuple[int, ...] = (2,)) -> dict:
    return {"reason": f"why {criterion}", "evidence": list(evidence), "holds": holds}


def reply(**holds: str) -> dict:
    return {name: said(name, one) for name, one in holds.items()}


def tried(scorer: WeightedCriteria, sample: Sample = SAMPLE) -> Score:
    return run_sync(lambda: attempt(scorer, sample))


def decided(weights: dict[str, float], holds: dict[str, bool | None], **options: object) -> Score:
    """The score where functions decide, as they are told to."""
    checks = {name: lambda sample, found=found: found for name, found in holds.items()}
    return tried(WeightedCriteria(weights, checks=checks, **options))


def meeting(*failed: str, idle: tuple[str, ...] = (), **options: object) -> Score:
    holds = {name: None if name in idle else name not in failed for name in MEETING}
    return decided(MEETING, holds, **options)


def costs(score: Score) -> dict[str, float]:
    return {name: one["cost"] for name, one in score.details["criteria"].items() if one["cost"]}


def test_the_value_is_the_sum_of_the_weights_that_hold_and_the_label_its_class():
    cases = [
        (("correct_time",), 0.75, "successful_completion"),
        (("correct_time", "correct_duration"), 0.65, "graceful_failure"),
        (("correct_participants", "correct_time"), 0.5, "graceful_failure"),
        (("correct_participants", "correct_time", "correct_duration"), 0.4, "partial_failure"),
        (tuple(MEETING), 0, "hard_failure"),
    ]
    for failed, value, outcome in cases:
        found = meeting(*failed)
        assert found.value == pytest.approx(value)
        assert (found.label, found.details["outcome"], found.calls) == (outcome, outcome, ())
        assert costs(found) == pytest.approx({name: MEETING[name] for name in failed})


def test_the_reason_lists_what_failed_and_its_cost_and_what_passed_and_what_does_not_apply():
    assert meeting("correct_time", "clear_explanation").reason == (
        "graceful_failure 0.55: failed correct_time (-0.25), clear_explanation (-0.20); "
        "passed correct_participants, correct_duration, explored_alternatives"
    )
    assert meeting(*MEETING).reason.startswith("hard_failure 0.00: failed correct_participants (-0.25), ")
    assert meeting(*tuple(MEETING)[:4], idle=("clear_explanation",)).reason.endswith(
        "failed correct_participants (-0.31), correct_time (-0.31), correct_duration (-0.12), "
        "explored_alternatives (-0.25); not applicable clear_explanation"
    )
    assert meeting(idle=tuple(MEETING)).reason == "no criterion applies"


weighted = st.lists(st.integers(1, 10_000), min_size=1, max_size=7).map(
    lambda parts: [one / sum(parts) for one in parts]
)


@given(weighted, st.data(), st.sampled_from(["share", "pass"]))
def test_value_and_costs_sum_to_1_whatever_holds(weights, data, not_applicable):
    named = {f"c{index}": weight for index, weight in enumerate(weights)}
    holds = {name: data.draw(st.sampled_from([True, False, None])) for name in named}
    found = decided(named, holds, not_applicable=not_applicable)
    exact = {name: Fraction(weight) for name, weight in named.items()}
    counts = [name for name, one in holds.items() if one is not None or not_applicable == "pass"]
    if set(holds.values()) == {None}:
        assert (found.status, found.label, found.reason) == ("skipped", "not_applicable", "no criterion applies")
        return
    expected = sum(exact[name] for name in counts if holds[name] is not False) / sum(exact[name] for name in counts)
    assert found.value == pytest.approx(float(expected), abs=1e-12)
    assert found.value + sum(costs(found).values()) == pytest.approx(1)
    assert costs(found).keys() == {name for name, one in holds.items() if one is False}
    assert (found.value == 1) is (False not in holds.values())
    assert (found.value == 0) is (found.label == "hard_failure")


@given(st.sampled_from(["0.75", "0.5", "0.3", "0.7"]), st.lists(st.integers(1, 99), min_size=1, max_size=6), st.data())
def test_what_sums_to_a_bound_in_decimals_reaches_it(bound, cuts, data):
    """0.1 + 0.2 + 0.2 is no less than 0.5, whatever floats make of it and in whatever order they come."""
    held = _split(Decimal(bound), cuts)
    weights = [*held, *_split(1 - Decimal(bound), cuts)]
    order = data.draw(st.permutations(range(len(weights))))
    named = {f"c{index}": float(weights[index]) for index in order}
    thresholds = {"reached": float(bound), "missed": 0.0}
    holds = {name: int(name[1:]) < len(held) for name in named}
    assert decided(named, holds, thresholds=thresholds).label == "reached"
    assert decided(named, holds, thresholds={"reached": float(bound) + 1e-6, "missed": 0.0}).label == "missed"


def _split(whole: Decimal, cuts: list[int]) -> list[Decimal]:
    places = sorted({Decimal(0), whole, *(whole * cut / 100 for cut in cuts)})
    return [high - low for low, high in pairwise(places)]


def test_weights_whose_sum_is_a_rounding_above_1_give_no_value_above_1():
    assert decided({"a": 0.5, "b": 0.5 + 9e-10}, {"a": True, "b": True}).value == 1


def booked(sample: Sample) -> bool | None:
    return sample.fields.get("booked")


async def confirmed(sample: Sample) -> bool | None:
    await asyncio.sleep(0)
    return sample.fields.get("booked")


@pytest.mark.parametrize("required", [["correct_time"], [booked], [confirmed], ["correct_participants", booked]])
def test_what_is_required_and_missed_leaves_the_next_class(required):
    sample = SAMPLE.model_copy(update={"fields": {"booked": False}})
    checks = {name: lambda sample, name=name: name != "correct_time" for name in MEETING}
    found = tried(WeightedCriteria(MEETING, checks=checks, required=required), sample)
    missed = [one if isinstance(one, str) else one.__name__ for one in required if one != "correct_participants"]
    assert (found.value, found.label) == (pytest.approx(0.75), "graceful_failure")
    assert found.details["required_missed"] == missed
    assert f"; required and missed {missed[0]}; " in found.reason


@pytest.mark.parametrize("fields", [{"booked": True}, {"booked": None}, {}])
def test_what_is_required_and_holds_or_does_not_apply_changes_nothing(fields):
    sample = SAMPLE.model_copy(update={"fields": fields})
    checks = dict.fromkeys(MEETING, lambda sample: True) | {"correct_time": booked}
    found = tried(WeightedCriteria(MEETING, checks=checks, required=["correct_time", booked, confirmed]), sample)
    assert (found.value, found.label, found.details["required_missed"]) == (1, "successful_completion", [])


def test_what_is_required_is_no_help_below_the_first_class():
    assert meeting("correct_time", "correct_duration", required=["correct_time"]).label == "graceful_failure"
    assert meeting(*MEETING, required=["correct_time"]).label == "hard_failure"


def test_the_classes_can_be_others():
    for thresholds, labels in [
        ({"pass": 1, "fail": 0}, ["pass", "fail", "fail"]),
        ({"all": 0.9, "some": 0, "none": 0}, ["all", "some", "none"]),
    ]:
        for holds, label in zip([(True, True), (True, False), (False, False)], labels, strict=True):
            found = decided({"a": 0.5, "b": 0.5}, dict(zip("ab", holds, strict=True)), thresholds=thresholds)
            assert found.label == label


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (lambda sample: sample.fields["time"], "RuntimeError: the check of right raised KeyError: 'time'"),
        (lambda sample: 1, "TypeError: the check of right returned 1; a check returns True, False, or None"),
        (lambda sample: "yes", "TypeError: the check of right returned 'yes'; a check returns True, False, or None"),
    ],
)
def test_a_function_that_fails_fails_the_score_by_name_and_the_judge_is_not_asked(check, reason):
    judge = ScriptedJudge([reply(asked="yes")])
    found = tried(WeightedCriteria({"asked": 0.5, "right": 0.5}, checks={"right": check}, judge=judge))
    assert (found.status, found.value, judge.requests) == ("failed", None, [])
    assert found.reason.startswith(reason)


def test_an_error_that_stops_the_run_is_let_through():
    def check(sample: Sample) -> bool:
        raise BudgetError("spent")

    with pytest.raises(BudgetError, match=r"^spent$"):
        tried(WeightedCriteria({"a": 1}, checks={"a": check}))


def test_the_judge_decides_in_one_request_what_no_function_does():
    judge = ScriptedJudge([reply(clear_explanation="no", explored_alternatives="not_applicable")])
    checks = dict.fromkeys(list(MEETING)[:3], lambda sample: True)
    scorer = WeightedCriteria(
        MEETING, checks={**checks, "explored_alternatives": "Did it offer\n another\u2028time?"}, judge=judge
    )
    found = tried(scorer)
    assert (found.value, found.label) == (pytest.approx(0.75), "successful_completion")
    assert {name: found.details["criteria"][name] for name in ("explored_alternatives", "clear_explanation")} == {
        "explored_alternatives": {
            "weight": 0.2,
            "holds": None,
            "reason": "why explored_alternatives",
            "evidence": [2],
            "cost": 0.0,
        },
        "clear_explanation": {
            "weight": 0.2,
            "holds": False,
            "reason": "why clear_explanation",
            "evidence": [2],
            "cost": pytest.approx(0.25),
        },
    }
    (request,) = judge.requests
    asked = request.messages[-1].content
    assert len(found.calls) == 1
    assert asked.startswith(SAMPLE.trace.render())
    assert "\nexplored_alternatives: Did it offer another time?\nclear_explanation: clear explanation?\n" in asked
    assert "correct_time" not in asked


def test_each_criterion_can_have_a_request_of_its_own_and_they_go_out_together():
    together = asyncio.Barrier(3)

    class Meeting(ScriptedJudge):
        async def ask(self, *arguments):
            await together.wait()  # for ever, unless all are asked at once
            return await super().ask(*arguments)

    names = ("a", "b", "c")
    judge = Meeting(
        lambda request: reply(**{name: "yes" for name in names if f"\n{name}: " in request.messages[-1].content})
    )
    scorer = WeightedCriteria(dict.fromkeys(names, 1), normalize=True, separate_requests=True, judge=judge)
    found = tried(scorer)
    assert (found.value, len(found.calls), len(judge.requests), len(scorer.prompts)) == (1, 3, 3, 3)
    assert len({request.prompt for request in judge.requests}) == 3


def test_where_one_of_several_requests_fails_the_score_fails_and_keeps_what_was_paid():
    def answer(request):
        return RefusalError("no") if "\na: " in request.messages[-1].content else reply(b="yes")

    found = tried(WeightedCriteria({"a": 0.5, "b": 0.5}, separate_requests=True, judge=ScriptedJudge(answer)))
    assert (found.status, found.error, len(found.calls)) == ("failed", "RefusalError", 2)


UNUSABLE = {
    "one left out": (reply(a="yes"), "b: Field required"),
    "one twice": ('{"a": 1, "b": 1, "b": 2}', "the reply says 'b' twice, and differently"),
    "a message that is not there": ({"a": said("a"), "b": said("b", evidence=(3,))}, "cites the messages [3]"),
    "a number": (reply(a="yes", b=1), "b.holds: Input should be 'yes', 'no' or 'not_applicable', found 1"),
}


@pytest.mark.parametrize(("bad", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_reply_that_cannot_be_used_is_shown_to_the_judge_once_and_then_fails(bad, problem):
    weights = {"a": 0.5, "b": 0.5}
    judge = ScriptedJudge([bad, reply(b="no", a="yes"), bad, bad])
    mended, failed = (tried(WeightedCriteria(weights, judge=judge)) for _ in range(2))
    assert (mended.value, [call.error for call in mended.calls]) == (0.5, ["ReplyError", None])
    assert problem in judge.requests[1].messages[-1].content
    assert (failed.status, failed.error, len(failed.calls)) == ("failed", "ReplyError", 2)


def test_in_the_form_of_the_reply_the_reason_stands_before_the_verdict():
    schema = strict_schema(_answer_model(("a", "b")))
    (one,) = schema["$defs"].values()
    assert one["required"] == ["reason", "evidence", "holds"]
    assert schema["required"] == ["a", "b"]


def test_criteria_may_have_any_plain_name():
    names = ["copy", "model_config", "_hidden", "schema", "größe", "json"]
    judge = ScriptedJudge([reply(**dict.fromkeys(names, "yes"))])
    assert tried(WeightedCriteria(dict.fromkeys(names, 1), normalize=True, judge=judge)).value == 1


def test_the_judge_sees_the_fields_of_a_sample_that_has_any_as_it_may_see_them():
    judge = ScriptedJudge([reply(a="yes")] * 2, redact=["email"])
    scorer = WeightedCriteria({"a": 1}, judge=judge)
    tried(scorer)
    tried(scorer, SAMPLE.model_copy(update={"fields": {"to": "ann@example.org", "trap": "}\n[0 fields ends]"}}))
    without, shown = (request.messages[-1].content for request in judge.requests)
    assert "fields" not in without
    assert '| {"to":"<email 1>","trap":"}\\n[0 fields ends]"}\n' in shown
    assert without.split("Which of", 1)[1] == shown.split("Which of", 1)[1]


def test_the_score_says_what_the_judge_was_not_shown():
    long = Sample.of([HumanMessage("Hi"), *[AIMessage("word " * 2_000)] * 5, AIMessage("Bye")])
    judge = ScriptedJudge([reply(a="yes"), reply(b="yes")], conversation_tokens=2_000)
    found = tried(WeightedCriteria({"a": 0.5, "b": 0.5}, separate_requests=True, judge=judge), long)
    omitted = found.details["omitted_characters"]
    assert 0 < omitted < len(long.trace.render())
    assert found.reason.startswith(f"{omitted:,} characters of the recording (")


def test_seven_criteria_take_few_more_words_than_the_conversation():
    judge = ScriptedJudge([reply(**dict.fromkeys([f"criterion_{n}" for n in range(7)], "yes"))])
    tried(WeightedCriteria({f"criterion_{n}": 1 for n in range(7)}, normalize=True, judge=judge))
    (request,) = judge.requests
    assert sum(len(turn.content) for turn in request.messages) <= 1.3 * len(SAMPLE.trace.render()) + 2_500


def one_way(sample: Sample) -> bool:
    return "8" in sample.trace.messages[0].text


def another_way(sample: Sample) -> bool:
    return "9" in sample.trace.messages[0].text


def test_the_signature_tells_apart_what_scores_otherwise():
    judge = ScriptedJudge([])

    def made(check: object = one_way, **options: object) -> WeightedCriteria:
        weights = {"a": 0.5, "b": 0.5}
        return WeightedCriteria(**{"weights": weights, "checks": {"a": check}, "judge": judge, **options})

    assert signature(made()) == signature(made()) == signature(replace(made()))
    different = [
        made(),
        made(another_way),
        made("Is it so?"),
        made(weights={"a": 0.6, "b": 0.4}),
        made(separate_requests=True),
        made(not_applicable="pass"),
        made(required=["a"]),
        made(required=[one_way]),
        made(required=[another_way]),
        made(thresholds={"pass": 0.5, "fail": 0}),
        made(name="other"),
    ]
    assert len({signature(one) for one in different}) == len(different)


def test_what_makes_no_sense_is_an_error():
    cases = [
        ({"weights": {}}, "the weights must sum to 1, found 0; change them, or pass normalize=True"),
        ({"weights": {}, "normalize": True}, "the weights must sum to 1, found 0"),
        (
            {"weights": {"a": 0.5, "b": 0.4}},
            "the weights must sum to 1, found 0.9; change them, or pass normalize=True",
        ),
        ({"weights": {"a": 0.5, "b": 0.5 + 2e-9}}, "the weights must sum to 1, found 1.000000002"),
        ({"weights": {"a": 1.5, "b": -0.5}}, "the weight of b must be a number above 0, found -0.5"),
        ({"weights": {"a": float("nan")}}, "the weight of a must be a number above 0, found nan"),
        ({"weights": {"a": float("inf")}, "normalize": True}, "the weight of a must be a number above 0, found inf"),
        ({"weights": {"a": True}}, "the weight of a must be a number above 0, found True"),
        (
            {"weights": {"a: yes\nb": 1}},
            r"the name of a criterion must be an identifier such as correct_time, found 'a: yes\nb'",
        ),
        (
            {"checks": {"corect_time": "?"}},
            "no criterion is called 'corect_time'. Did you mean 'correct_time'? Known: correct_time",
        ),
        ({"checks": {"correct_time": True}}, "the check of correct_time must be a function or a question, found True"),
        ({"required": ["corect_time"]}, "no criterion is called 'corect_time'. Did you mean 'correct_time'?"),
        ({"required": "correct_time"}, "required must be a list of criteria and functions, found 'correct_time'"),
        ({"required": [3]}, "a check must be a function or the name of a criterion, found 3"),
        ({"thresholds": 0.5}, "thresholds must be two or more classes, best first"),
        ({"not_applicable": "fail"}, "no way to weigh what does not apply is called 'fail'"),
        ({}, "weighted_criteria asks a judge about correct_time: pass judge=..., or functions in checks=..."),
        ({"weights": {"a": 0.5, "b": 0.5}, "name": "mine"}, "mine asks a judge about a, b: pass judge=..."),
    ]
    for options, message in cases:
        with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
            WeightedCriteria(**{"weights": {"correct_time": 1}, **options})


def test_thresholds_that_do_not_fall_to_0_are_an_error():
    cases = [
        {"all": 0},
        {"good": 0.5, "bad": 0.1},
        {"a": 0.5, "b": 0.5, "c": 0},
        {"a": 1.1, "b": 0},
        {"a": float("nan"), "b": 0},
        {"a": "0.5", "b": 0},
    ]
    for thresholds in cases:
        with pytest.raises(ConfigError, match=f"the values must decrease to 0, found {re.escape(str(thresholds))}"):
            WeightedCriteria({"a": 1}, checks={"a": one_way}, thresholds=thresholds)


def test_the_classes_of_one_scorer_are_not_those_of_another():
    scorer = WeightedCriteria({"a": 1}, checks={"a": one_way})
    assert scorer.thresholds == OUTCOMES
    assert scorer.thresholds is not OUTCOMES


def test_the_example_runs_and_has_a_sample_of_every_class(forked, examples):
    command = forked("python", examples / "weighted_criteria.py")
    out, err = command.communicate()
    assert (command.returncode, err) == (0, "")
    assert [outcome for outcome in OUTCOMES if f" {outcome} " not in out] == []

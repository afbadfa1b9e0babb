"""What ragas makes of verdicts on topics and goals, and what is recommended where it errs or leaves a choice."""

import json
from itertools import zip_longest

import pytest

from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import Scorer, attempt, run_sync
from judgekit.traces.sample import Sample

GOALS = {kind.name: kind for kind in (AgentGoalAccuracyWithReference, AgentGoalAccuracyWithoutReference)}
RE_ASK = "re-ask or judge error"
MISSING = "missing"
OUR_CHOICE = {
    "ta-ontopic-all-refused-precision": None,  # 0/0: nothing was answered that could be off topic
    "ta-offtopic-all-answered-f1": 0.0,  # recall is 0/0, and f1 = 0 / (0 + FP) is not
    "goal-with-ref-empty-reference": None,
}
"""Where ragas's number is a matter of policy, and no other is recommended."""


@pytest.fixture
def cases(shared_data) -> list[dict]:
    return json.loads((shared_data / "cases" / "ragas_cases.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture
def topics(cases) -> list[dict]:
    found = [case for case in cases if case["metric"] == "topic_adherence"]
    assert len(found) == 17
    return found


@pytest.fixture
def goals(cases) -> list[dict]:
    found = [case for case in cases if case["metric"] in GOALS]
    assert len(found) == 5
    return found


def sample(case: dict) -> Sample:
    given = case["input"]
    references = {name: given[name] for name in ("reference", "reference_topics") if name in given}
    return Sample.model_validate({"id": case["id"], "trace": {"messages": given["conversation"]}, **references})


def tried(scorer: Scorer, case: dict) -> Score:
    return run_sync(lambda: attempt(scorer, sample(case)))


def recommended(case: dict) -> float | str | None:
    """The number that is right: ragas's own, the one recommended in its place, or the one that we chose."""
    if case["status"] == "agree":
        return case["ragas_score"]
    if case["id"] in OUR_CHOICE:
        return OUR_CHOICE[case["id"]]
    known = {name: number for name, number in case["recommended"].items() if name != "why"}
    (number,) = known.values()
    return number


def requests(case: dict) -> dict:
    """The lists of verdicts as requests. Where one list is shorter, a request lacks its verdict, or its words."""
    judged = case["judge"]
    lists = zip_longest(judged["topics"], judged["refused"], judged["on_topic"], fillvalue=MISSING)
    items = [
        {
            "request": request,
            "message": 2,
            "reason": "as message 2 says",
            "topic": {True: 1, False: None}.get(on_topic, MISSING),
            "outcome": {True: "refused", False: "answered"}.get(refused, MISSING),
        }
        for request, refused, on_topic in lists
    ]
    return {"requests": [{name: said for name, said in item.items() if said != MISSING} for item in items]}


def topic_score(case: dict, mode: str | None = None) -> Score:
    judge = ScriptedJudge([requests(case)])
    return tried(TopicAdherence(judge, mode=mode or case["options"]["mode"]), case)


def test_the_topics_have_the_numbers_of_ragas_where_it_is_right_and_the_recommended_ones_elsewhere(topics):
    expected = {case["id"]: (recommended(case), case["tolerance"]) for case in topics}
    expected = {name: pair for name, pair in expected.items() if pair[0] != RE_ASK}
    found = {case["id"]: topic_score(case).value for case in topics if case["id"] in expected}
    assert len(expected) == 15
    assert found == {
        name: None if number is None else pytest.approx(number, abs=tolerance)
        for name, (number, tolerance) in expected.items()
    }


def test_too_few_and_too_many_verdicts_are_asked_for_again_and_then_fail(topics):
    doubtful = [case for case in topics if recommended(case) == RE_ASK]
    missing = {"ta-verdicts-too-short": "requests[2].topic", "ta-verdicts-too-long": "requests[2].request"}
    assert {case["id"] for case in doubtful} == {*missing}
    for case in doubtful:
        bad = requests(case)
        judge = ScriptedJudge([bad, {"requests": bad["requests"][:2]}, bad, bad])
        scorer = TopicAdherence(judge, mode=case["options"]["mode"])
        mended, failed = tried(scorer, case), tried(scorer, case)
        first_two = case["judge"]["on_topic"][:2]
        assert mended.value == sum(first_two) / len(first_two)
        assert (failed.status, failed.value, failed.error) == ("failed", None, "ReplyError")
        assert [call.error for call in (*mended.calls, *failed.calls)] == [
            "ReplyError",
            None,
            "ReplyError",
            "ReplyError",
        ]
        assert f"{missing[case['id']]}: Field required" in judge.requests[1].messages[-1].content
        assert f"{missing[case['id']]}: Field required" in failed.reason


def test_the_goals_have_the_numbers_of_ragas_where_it_is_right_and_the_recommended_ones_elsewhere(goals):
    """Its verdicts are numbers, and ours are words."""
    expected = {case["id"]: recommended(case) for case in goals}
    found = {}
    for case in goals:
        judged = case["judge"]
        goal = {
            "goal": judged["user_goal"],
            "end_state": judged["end_state"],
            "reason": "as message 4 says",
            "evidence": [4],
            "verdict": {"0": "not_achieved", "1": "achieved"}[str(judged["verdict"])],
        }
        for partial in (False, True):
            judge = ScriptedJudge([{"goals": [goal]}])
            score = tried(GOALS[case["metric"]](judge, partial=partial), case)
            assert len(judge.requests) == (score.status == "scored")
            found.setdefault(case["id"], score.value)
            assert found[case["id"]] == score.value
    assert found == expected
    assert found["goal-with-ref-int-verdict"] == 1

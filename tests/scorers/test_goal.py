"""Agent goal accuracy."""

import json

import pytest

from judgekit.errors import RefusalError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scoring import attempt, wait_for
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage
from judgekit.traces.sample import Sample

KINDS = [AgentGoalAccuracyWithReference, AgentGoalAccuracyWithoutReference]
SAMPLE = Sample.of(
    [HumanMessage("Book a table for 8."), AIMessage("It is booked.")], id="one", reference="A table at 8"
)


def answer(verdict: str = "achieved", evidence: tuple[int, ...] = (2,), **changes: object) -> dict:
    return {
        "user_goal": "a table",
        "end_state": "booked",
        "reason": "message 2 says so",
        "evidence": list(evidence),
        "verdict": verdict,
        **changes,
    }


def tried(kind: type, judge: ScriptedJudge, sample: Sample = SAMPLE) -> Score:
    return wait_for(lambda: attempt(kind(judge), sample))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("verdict", "value"), [("achieved", 1.0), ("not_achieved", 0.0)])
def test_the_verdict_is_the_value_and_is_explained(kind, verdict, value):
    judge = ScriptedJudge([answer(verdict, (1, 2))])
    found = tried(kind, judge)
    assert (found.scorer, found.status, found.value, found.label) == (kind(judge).name, "scored", value, verdict)
    assert found.reason == "message 2 says so"
    assert found.details == {"user_goal": "a table", "end_state": "booked", "evidence": [1, 2]}
    assert len(found.calls) == len(judge.requests) == 1


@pytest.mark.parametrize("reference", [None, "", "  \n"])
def test_without_a_reference_the_one_is_skipped_and_the_other_is_not(reference):
    sample = SAMPLE.model_copy(update={"reference": reference})
    judge = ScriptedJudge([answer()])
    skipped = tried(AgentGoalAccuracyWithReference, judge, sample)
    assert skipped == Score.skipped("agent_goal_accuracy_with_reference", "the sample has no reference")
    assert judge.requests == []
    assert tried(AgentGoalAccuracyWithoutReference, judge, sample).value == 1


@pytest.mark.parametrize("messages", [[], [SystemMessage("Be kind."), AIMessage("Hello?")]])
def test_where_the_user_says_nothing_there_is_no_goal(messages):
    judge = ScriptedJudge([])
    found = tried(AgentGoalAccuracyWithoutReference, judge, Sample.of(messages, id="one"))
    assert found == Score.skipped(
        "agent_goal_accuracy_without_reference", "the conversation has no message of the user"
    )
    assert judge.requests == []


def test_a_desired_outcome_needs_no_message_of_the_user_but_a_conversation():
    judge = ScriptedJudge([answer("not_achieved", ())])
    alone = Sample.of([AIMessage("Hello?")], id="one", reference="A table at 8")
    assert tried(AgentGoalAccuracyWithReference, judge, alone).value == 0
    empty = Sample(id="one", reference="A table at 8")
    assert tried(AgentGoalAccuracyWithReference, judge, empty).reason == "the sample has no conversation"
    assert len(judge.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_is_shown_to_the_one_that_asks_for_it_alone(kind):
    judge = ScriptedJudge([answer()])
    tried(kind, judge)
    (request,) = judge.requests
    asked = request.messages[-1].content
    assert asked.startswith(SAMPLE.trace.render())
    assert ("| A table at 8\n" in asked) is (kind is AgentGoalAccuracyWithReference)


UNUSABLE = {
    "achieved without evidence": (answer(evidence=()), "says achieved without the number of a message that shows it"),
    "message 0": (answer(evidence=(1, 0)), "cites the messages [0]; the conversation has messages 1 to 2"),
    "a message behind the last": (answer("not_achieved", (3,)), "cites the messages [3]; the conversation has messages 1 to 2"),
    "another verdict": (answer("partly"), "verdict: Input should be 'achieved' or 'not_achieved', found 'partly'"),
    "a number as verdict": (answer(verdict=1), "verdict: Input should be 'achieved' or 'not_achieved', found 1"),
    "no evidence at all": (answer(evidence=("two",)), "evidence[0]: Input should be a valid integer"),
    "prose": ("Yes, it did.", "the reply holds no JSON object, found 'Yes, it did.'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bad", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_reply_that_cannot_be_used_is_shown_to_the_judge_once(kind, bad, problem):
    judge = ScriptedJudge([bad, answer("not_achieved", ())])
    found = tried(kind, judge)
    assert (found.value, [call.error for call in found.calls]) == (0, ["ReplyError", None])
    assert problem in judge.requests[1].messages[-1].content


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bad", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_reply_that_cannot_be_used_twice_is_a_failed_score(kind, bad, problem):
    judge = ScriptedJudge([bad, bad, answer()])
    found = tried(kind, judge)
    assert (found.status, found.value, len(judge.requests)) == ("failed", None, 2)
    assert found.reason.startswith(f"ReplyError: {problem}")
    assert [call.error for call in found.calls] == ["ReplyError", "ReplyError"]


def test_not_achieved_needs_no_evidence():
    """Where nothing was done there is no message to show it."""
    judge = ScriptedJudge([answer("not_achieved", ())])
    assert tried(AgentGoalAccuracyWithReference, judge).details["evidence"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_judge_that_declines_is_a_failed_score_that_keeps_its_call(kind):
    found = tried(kind, ScriptedJudge([RefusalError("I cannot judge this")]))
    assert (found.status, found.reason) == ("failed", "RefusalError: I cannot judge this")
    assert [call.error for call in found.calls] == ["RefusalError"]


@pytest.mark.parametrize("kind", KINDS)
def test_another_name_stands_in_all_its_scores(kind):
    scorer = kind(ScriptedJudge([answer()]), name="goal")
    assert (scorer.score(SAMPLE).scorer, scorer.score(Sample(id="none")).scorer) == ("goal", "goal")


def test_the_cases_of_ragas_have_the_values_that_its_verdicts_mean(shared_data):
    """An empty reference is skipped where ragas raises; a verdict as a number is our judge's word for it."""
    kinds = {"agent_goal_accuracy_with_reference": KINDS[0], "agent_goal_accuracy_without_reference": KINDS[1]}
    expected, found = {}, {}
    for case in json.loads((shared_data / "cases" / "ragas_cases.json").read_text())["cases"]:
        if case["metric"] not in kinds:
            continue
        given, judged = case["input"], case["judge"]
        verdict = {"0": "not_achieved", "1": "achieved"}[str(judged["verdict"])]
        judge = ScriptedJudge([answer(verdict, (4,), user_goal=judged["user_goal"], end_state=judged["end_state"])])
        sample = Sample.model_validate(
            {"id": "c", "trace": {"messages": given["conversation"]}, "reference": given.get("reference")}
        )
        one = tried(kinds[case["metric"]], judge, sample)
        assert len(judge.requests) == (one.status == "scored")
        found[case["id"]] = one.value
        expected[case["id"]] = case.get("recommended", {}).get("default", case["ragas_score"])
    expected["goal-with-ref-empty-reference"] = None
    assert len(expected) == 5
    assert found == expected


def test_the_example_reaches_its_goal_with_one_request_each(shared_data):
    examples = json.loads((shared_data / "cases" / "agent_examples.json").read_text())["samples"]
    (example,) = [one for one in examples if "agent_goal_accuracy_with_reference" in one["expected"]]
    sample = Sample.model_validate(
        {"id": example["id"], "trace": {"messages": example["messages"]}, "reference": example["reference"]}
    )
    judge = ScriptedJudge([answer(evidence=(7,)), answer(evidence=(7, 8))])
    found = {kind(judge).name: tried(kind, judge, sample) for kind in KINDS}
    assert {name: one.value for name, one in found.items()} == example["expected"]
    assert list(example["expected"].values()) == [1, 1]
    assert [len(one.calls) for one in found.values()] == [1, 1]
    assert len(judge.requests) == 2

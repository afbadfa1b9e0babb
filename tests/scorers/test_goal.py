"""Agent goal accuracy."""

import pytest

from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scoring import attempt, run_sync
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage
from judgekit.traces.sample import Sample

KINDS = [AgentGoalAccuracyWithReference, AgentGoalAccuracyWithoutReference]
SAMPLE = Sample.of(
    [HumanMessage("Book a table for 8."), AIMessage("It is booked.")], id="one", reference="A table at 8"
)


def goal(
    verdict: object = "achieved", evidence: tuple[object, ...] = (2,), name: str = "a table", **changes: object
) -> dict:
    return {
        "goal": name,
        "end_state": "booked",
        "reason": "message 2 says so",
        "evidence": list(evidence),
        "verdict": verdict,
        **changes,
    }


def goals(*items: dict) -> dict:
    return {"goals": list(items)}


def answer(*args: object, **changes: object) -> dict:
    """An answer about one goal."""
    return goals(goal(*args, **changes))


def tried(kind: type, judge: ScriptedJudge, sample: Sample = SAMPLE, **options: bool) -> Score:
    return run_sync(lambda: attempt(kind(judge, **options), sample))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("verdict", "value"), [("achieved", 1.0), ("not_achieved", 0.0)])
def test_the_verdict_is_the_value_and_is_explained(kind, verdict, value):
    judge = ScriptedJudge([answer(verdict, (1, 2))])
    found = tried(kind, judge)
    assert (found.scorer, found.status, found.value, found.label) == (kind(judge).name, "scored", value, verdict)
    assert found.reason == "message 2 says so"
    assert found.details == answer(verdict, (1, 2))
    assert len(found.calls) == len(judge.requests) == 1


# How many of three goals were achieved: the value and the label, and those with partial.
SEVERAL = {
    0: (0, "not_achieved", 0, "not_achieved"),
    1: (0, "not_achieved", 1 / 3, "partly_achieved"),
    2: (0, "not_achieved", 2 / 3, "partly_achieved"),
    3: (1, "achieved", 1, "achieved"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("achieved", SEVERAL)
def test_of_several_goals_all_must_be_achieved_and_partial_gives_the_share(kind, achieved):
    said = goals(*[goal()] * achieved, *[goal("not_achieved", ())] * (3 - achieved))
    whole, partly = (tried(kind, ScriptedJudge([said]), partial=partial) for partial in (False, True))
    assert (whole.value, whole.label, partly.value, partly.label) == SEVERAL[achieved]
    assert (whole.details, whole.reason) == (partly.details, partly.reason)
    assert whole.details == said


def test_the_reason_names_each_goal_that_was_not_achieved_with_its_reason():
    said = goals(
        goal(name="a table."),
        goal("not_achieved", (), "a taxi.", reason="No tool was called."),
        goal("not_achieved", (), "a cake", reason="it was canceled"),
    )
    for partial in (False, True):
        assert tried(KINDS[1], ScriptedJudge([said]), partial=partial).reason == (
            "1 of 3 goals achieved; not achieved: a taxi: No tool was called; a cake: it was canceled"
        )


def test_a_user_who_asks_for_nothing_has_no_goal_that_could_be_missed():
    sample = Sample.of([HumanMessage("Hello!"), AIMessage("Hello!")], id="one")
    for partial in (False, True):
        found = tried(KINDS[1], ScriptedJudge([goals()]), sample, partial=partial)
        assert (found.status, found.reason, found.details) == ("skipped", "the user has no goal", goals())
        assert found.label == "no_goal"
        assert len(found.calls) == 1


def test_a_desired_outcome_has_one_goal_at_least():
    judge = ScriptedJudge([goals(), answer()])
    assert tried(KINDS[0], judge).value == 1
    assert "lists no goal; the desired outcome is at least one" in judge.requests[1].messages[-1].content
    found = tried(KINDS[0], ScriptedJudge([goals(), goals()]))
    assert (found.status, found.value) == ("failed", None)


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
    "achieved without evidence": (
        answer(evidence=()),
        "says that 'a table' is achieved, without the number of a message that shows it",
    ),
    "a message behind the last": (answer("not_achieved", (3,)), "cites the messages [3]; the conversation has messages 1 to 2"),
    "another verdict": (answer("partly"), "goals[0].verdict: Input should be 'achieved' or 'not_achieved', found 'partly'"),
    "prose": ("Yes, it did.", "the reply holds no JSON object, found 'Yes, it did.'"),
}  # fmt: skip


def test_a_reply_that_cannot_be_used_is_shown_to_the_judge_once_and_then_fails():
    for kind in KINDS:
        for bad, problem in UNUSABLE.values():
            judge = ScriptedJudge([bad, answer("not_achieved", ()), bad, bad])
            mended, failed = (tried(kind, judge) for _ in range(2))
            assert (mended.value, [call.error for call in mended.calls]) == (0, ["ReplyError", None])
            assert problem in judge.requests[1].messages[-1].content
            assert (failed.status, failed.value, len(failed.calls)) == ("failed", None, 2)
            assert failed.reason.startswith(f"ReplyError: {problem}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdicts_alone_are_an_answer_too(kind):
    """As where the judge's words are not kept."""
    silent = {"name": "", "end_state": "", "reason": ""}
    said = goals(goal(**silent), goal("not_achieved", **silent))
    found = tried(kind, ScriptedJudge([said]), partial=True)
    assert (found.value, found.reason) == (0.5, "1 of 2 goals achieved")

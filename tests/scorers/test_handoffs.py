"""Hand-offs between agents."""

import pytest

from judgekit.errors import ReplyError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.scorers.handoffs import HandoffQuality
from judgekit.scoring import attempt, run_sync
from judgekit.traces.behavior import handoffs
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

NESTED = Trace(
    messages=[
        HumanMessage("Book a hotel in Paris."),
        AIMessage(tool_calls=[ToolCall("ask_hotels", {"task": "a hotel"}, id="a")], agent="front"),
        ToolMessage("Ritz", tool_call_id="a"),
        AIMessage("Booked: the Ritz.", agent="front"),
    ],
    children=[
        Trace(messages=[HumanMessage("a hotel"), AIMessage("Ritz", agent="hotels")], metadata={"call_id": "a"}),
        Trace(messages=[HumanMessage("?"), AIMessage("!")]),
        Trace(messages=[]),
    ],
)
SWITCHED = Trace(
    messages=[
        HumanMessage("Refund me."),
        AIMessage("I pass you on.", agent="front"),
        AIMessage("Which order?", agent="refunds"),
        HumanMessage("12"),
        AIMessage("Done.", agent="refunds"),
        AIMessage("Anything else?", agent="front"),
    ]
)


def verdict(number, verdict="good", given=2, used=4):
    return {"handoff": number, "task": "t", "use": "u", "given": given, "used": used, "verdict": verdict}


def tried(judge, trace=NESTED, **options):
    return run_sync(lambda: attempt(HandoffQuality(judge, **options), Sample(id="1", trace=trace)))


def test_sub_agents_and_other_agents_in_one_conversation_are_handed_tasks():
    assert list(map(str, handoffs(NESTED))) == [
        "front to hotels, given in message 2, taken in 2.1.1, until 2.1.2",
        "front to an agent, given in an unknown message, taken in 0.1.1, until 0.1.2",
    ]
    assert list(map(str, handoffs(SWITCHED))) == [
        "front to refunds, given in message 2, taken in 3, until 5",
        "refunds to front, given in message 5, taken in 6, until 6",
    ]
    unnamed = [AIMessage("a"), AIMessage("b", agent="x"), AIMessage("c")]
    assert handoffs(Trace(messages=unnamed)) == []


def test_the_judge_is_asked_once_about_all_of_them():
    judge = ScriptedJudge([{"handoffs": [verdict(2, "answer_ignored", "0.1.1", "0.1.2"), verdict(1, used="2.1.2")]}])
    found = tried(judge)
    assert (found.value, found.label, found.status) == (0.5, "answer_ignored", "scored")
    assert found.reason == (
        "1 of 2 hand-offs good; front to an agent, given in an unknown message, taken in 0.1.1, until 0.1.2: answer_ignored"
    )
    first, second = found.details["handoffs"]
    assert (first["giver"], first["receiver"], first["used"]) == ("front", "hotels", "2.1.2")
    assert (second["verdict"], second["given"]) == ("answer_ignored", "0.1.1")
    [request] = judge.requests
    system, user = request.messages
    assert "1. front to hotels, given in message 2, taken in 2.1.1, until 2.1.2" in user.content
    assert "This recording has sub-agents" in system.content
    assert "[0.1.2]" in user.content.replace(user.content[1:13] + " ", "")


def test_the_value_is_that_of_the_worst():
    for *verdicts, value in [
        ("good", "good", 1),
        ("good", "answer_ignored", 0.5),
        ("incomplete_task", "wrong_agent", 0),
    ]:
        answer = {"handoffs": [verdict(at, one) for at, one in enumerate(verdicts, 1)]}
        assert tried(ScriptedJudge([answer]), SWITCHED).value == value


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([verdict(1)], "must judge each of the hand-offs 1 to 2 once, found [1]"),
        ([verdict(1), verdict(1)], "must judge each of the hand-offs 1 to 2 once, found [1, 1]"),
        ([verdict(1), verdict(2, used=9)], "cites the messages [9]; the conversation has messages 1 to 6"),
        ([verdict(1), verdict(2, used="2.1.1")], "cites the messages ['2.1.1']; the conversation has messages 1 to 6"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused(answer, why):
    found = tried(ScriptedJudge([{"handoffs": answer}] * 2), SWITCHED)
    assert (found.status, found.error) == ("failed", ReplyError.__name__)
    assert why in found.reason


def test_without_a_hand_off_it_is_skipped_without_a_request():
    judge = ScriptedJudge([])
    assert tried(judge, Trace(messages=[HumanMessage("hi"), AIMessage("hi", agent="a")])).status == "skipped"
    found = tried(judge, scope="own")
    assert (found.status, judge.requests) == ("skipped", [])
    assert found.warnings == ('scope = "own": 3 sub-agents with 0 tool calls not looked at',)

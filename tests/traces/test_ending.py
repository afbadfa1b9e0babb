"""Whether a conversation has an answer, and why it has none."""

import pytest

from judgekit.traces.ending import MissingAnswer, missing_answer
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.trace import Trace

ASK, ANSWER, THANKS = HumanMessage("Where is my order?"), AIMessage("On its way."), HumanMessage("Thanks!")
CALL, RESULT = AIMessage(tool_calls=[ToolCall("find", id="c1")]), ToolMessage("found", tool_call_id="c1")
TALKING_CALL = AIMessage("Let me look.", tool_calls=[ToolCall("find", id="c2")])
SEARCH = ToolCall("web_search", metadata={"executor": "provider"})
OF_USER = [
    HumanMessage(tool_calls=[ToolCall("reboot", id="u1")]),
    ToolMessage("ok", tool_call_id="u1", requestor="user"),
]
ENDING_TOOLS = (
    "finish",
    "final_answer",
    "mark_task_complete",
    "transfer_to_human_agents",
    "endCall",
    "attempt_completion",
)
AFTER_USER = "the conversation stops after the user's message"
AFTER_RESULT = "the conversation ends with the result of 'find'"
AFTER_CALL = "the conversation ends with a call without a result, of 'find'"
FAILED = "it failed with 'rate limit'"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [SystemMessage("Be kind.")],
        [ASK, ANSWER],
        [ANSWER],
        [ASK, ANSWER, THANKS],
        [ASK, ANSWER, *OF_USER],
        [ASK, AIMessage("")],
        [ASK, TALKING_CALL],
        *([ASK, CALL, RESULT, AIMessage("Done.", tool_calls=[ToolCall(name)])] for name in ENDING_TOOLS),
        *([ASK, AIMessage(tool_calls=[ToolCall(name)]), ToolMessage("ok", name=name)] for name in ENDING_TOOLS),
        [ASK, AIMessage("It rains.", tool_calls=[SEARCH])],
        [ASK, CALL, RESULT, AIMessage("It rains.", tool_calls=[SEARCH])],
        [ASK, ANSWER, RESULT],
        [ASK, AIMessage([MediaPart(kind="image", url="a.png")], tool_calls=[ToolCall("draw")])],
    ],
)
def test_a_conversation_with_an_answer_lacks_none(messages):
    assert missing_answer(Trace(messages=messages)) is None


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([ASK, CALL], AFTER_CALL),
        ([ASK, CALL, RESULT], AFTER_RESULT),
        ([RESULT], "the conversation ends with a tool result"),
        ([ASK, CALL, RESULT, TALKING_CALL], AFTER_CALL),
    ],
)
def test_an_agent_that_ends_with_a_call_or_a_result_gave_up(messages, reason):
    assert missing_answer(Trace(messages=messages)) == MissingAnswer(reason, gave_up=True)


@pytest.mark.parametrize(
    "messages", [[ASK], [SystemMessage("Be kind."), ASK, ASK], [ANSWER, ASK], [ASK, CALL, RESULT, ASK]]
)
def test_a_conversation_that_stops_after_a_request_may_lack_a_recorded_reply(messages):
    assert missing_answer(Trace(messages=messages)) == MissingAnswer(AFTER_USER, gave_up=False)


@pytest.mark.parametrize("messages", [[ASK], [ASK, ANSWER, ASK], [ASK, CALL], [ASK, CALL, RESULT], [ASK, TALKING_CALL]])
def test_a_recorded_error_shows_that_the_agent_gave_up(messages):
    assert missing_answer(Trace(messages=messages, error="rate limit")) == MissingAnswer(FAILED, gave_up=True)


@pytest.mark.parametrize("last", ["", " ", "rate limit"])
def test_a_last_message_that_is_blank_or_the_error_itself_is_no_answer(last):
    trace = Trace(messages=[ASK, AIMessage(last)], error="rate limit")
    assert missing_answer(trace) == MissingAnswer(FAILED, gave_up=True)


def test_an_answer_counts_even_if_an_error_was_recorded():
    assert missing_answer(Trace(messages=[ASK, ANSWER], error="rate limit")) is None


@pytest.mark.parametrize(
    ("termination", "gave_up"), [("max_steps", True), ("ERROR", True), ("OK", False), ("success", False), (None, False)]
)
def test_a_termination_shows_that_an_agent_without_an_answer_gave_up_unless_it_is_a_success(termination, gave_up):
    missing = missing_answer(Trace(messages=[ASK], termination=termination))
    assert missing is not None
    assert missing.gave_up is gave_up


def test_a_long_error_is_shortened_and_escaped():
    missing = missing_answer(Trace(messages=[ASK], error="\x1b[31m" + "x" * 10_000))
    assert missing is not None
    assert len(missing.reason) < 120
    assert "\x1b" not in missing.reason

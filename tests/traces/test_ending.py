"""Whether a conversation has an answer, and why it has none."""

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


def missing(messages, **trace):
    return missing_answer(Trace(messages=messages, **trace))


def test_a_conversation_with_an_answer_lacks_none():
    for messages in [
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
    ]:
        assert missing(messages) is None, messages


def test_an_agent_that_ends_with_a_call_or_a_result_gave_up():
    for messages, reason in [
        ([ASK, CALL], AFTER_CALL),
        ([ASK, CALL, RESULT], AFTER_RESULT),
        ([RESULT], "the conversation ends with a tool result"),
        ([ASK, CALL, RESULT, TALKING_CALL], AFTER_CALL),
    ]:
        assert missing(messages) == MissingAnswer(reason, gave_up=True)


def test_a_conversation_that_stops_after_a_request_may_lack_a_recorded_reply():
    for messages in [[ASK], [SystemMessage("Be kind."), ASK, ASK], [ANSWER, ASK], [ASK, CALL, RESULT, ASK]]:
        assert missing(messages) == MissingAnswer(AFTER_USER, gave_up=False)


def test_a_recorded_error_shows_that_the_agent_gave_up_unless_it_answers_with_more_than_the_error():
    blank = ([ASK, AIMessage(last)] for last in ("", " ", "rate limit"))
    for messages in [[ASK], [ASK, ANSWER, ASK], [ASK, CALL], [ASK, CALL, RESULT], [ASK, TALKING_CALL], *blank]:
        assert missing(messages, error="rate limit") == MissingAnswer(FAILED, gave_up=True)
    assert missing([ASK, ANSWER], error="rate limit") is None


def test_a_termination_shows_that_an_agent_without_an_answer_gave_up_unless_it_is_a_success():
    for termination in ("max_steps", "ERROR", "OK", "success", None):
        assert missing([ASK], termination=termination).gave_up is (termination in ("max_steps", "ERROR"))


def test_a_long_error_is_shortened_and_escaped():
    reason = missing([ASK], error="\x1b[31m" + "x" * 10_000).reason
    assert len(reason) < 120
    assert "\x1b" not in reason

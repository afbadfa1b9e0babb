"""One recorded conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import Label
from judgekit.traces.trace import ActualCall, Trace


def test_another_schema_version_is_an_error():
    with pytest.raises(ValidationError, match="schema_version"):
        Trace.model_validate({"schema_version": 2})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_hold_is_an_error(number):
    with pytest.raises(ValidationError, match="finite"):
        Label("a", number)
    with pytest.raises(ValidationError, match="finite"):
        Trace(cost_usd=number)


@given(st.from_type(Trace))
def test_any_trace_is_the_same_after_a_json_round_trip(trace):
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


def test_tool_calls_are_those_of_one_side_with_the_numbers_of_their_messages_and_turns():
    f, g, h, i, j = map(ToolCall, "fghij")
    trace = Trace(
        messages=[
            AIMessage(tool_calls=[f]),
            HumanMessage(tool_calls=[i]),
            AIMessage(tool_calls=[g, g]),
            ToolMessage(),
            HumanMessage("x"),
            HumanMessage(tool_calls=[j]),
            AIMessage("x"),
            AIMessage(tool_calls=[h], agent="b"),
        ],
        children=[Trace(messages=[AIMessage(tool_calls=[ToolCall("of_a_child")])])],
    )
    own = ActualCall(1, 0, f), ActualCall(3, 1, g), ActualCall(3, 1, g), ActualCall(8, 3, h, "b")
    child = ActualCall("0.1.1", 3, ToolCall("of_a_child"))
    assert trace.tool_calls() == trace.tool_calls("assistant") == (*own, child)
    assert trace.model_copy(update={"children": ()}).tool_calls() == own
    assert trace.tool_calls("user") == (ActualCall(2, 1, i), ActualCall(6, 3, j))
    assert [type(call) for call in trace.tool_calls("user")] == [ActualCall, ActualCall]


def test_tool_results_are_cut_at_8000_characters_unless_told_otherwise():
    trace = Trace(messages=[ToolMessage("x" * 8_001)])
    assert "[... 1 characters omitted ...]" in trace.render()
    assert f"| {'x' * 8_001}\n" in trace.render(tool_result_limit=8_001)


def test_the_response_is_what_the_agent_said_last():
    for messages, response in [
        ([HumanMessage("Hi"), AIMessage("Let me see."), AIMessage("Hello.")], "Hello."),
        ([AIMessage("Hello."), HumanMessage("Bye")], "Hello."),
        ([AIMessage("Let me see."), AIMessage(tool_calls=[ToolCall("f")])], ""),
        ([HumanMessage("Hi")], None),
        ([], None),
    ]:
        assert Trace(messages=messages).response == response

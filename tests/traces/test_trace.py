"""One recorded conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import Label, ToolDefinition, TraceSource, TraceWarning
from judgekit.traces.trace import ActualCall, Trace


@pytest.mark.parametrize(
    ("by_position", "by_keyword"),
    [
        (ToolDefinition("f"), ToolDefinition(name="f")),
        (Label("ok", True), Label(name="ok", value=True)),  # noqa: FBT003 - a label's value
        (TraceWarning("odd"), TraceWarning(message="odd")),
    ],
)
def test_constructors_take_values_by_position_as_by_keyword(by_position, by_keyword):
    assert by_position == by_keyword


@pytest.mark.parametrize(
    "record",
    [Trace(), TraceSource(format="x"), ToolDefinition("f"), Label("a", 1), TraceWarning("odd")],
    ids=lambda record: type(record).__name__,
)
def test_records_are_frozen_and_refuse_fields_they_do_not_know(record):
    with pytest.raises(ValidationError, match="frozen"):
        record.id = "x"
    with pytest.raises(ValidationError, match=r"(?s)mesages.*Extra inputs are not permitted"):
        type(record).model_validate({**record.model_dump(), "mesages": []})


def test_another_schema_version_is_an_error():
    with pytest.raises(ValidationError, match="schema_version"):
        Trace.model_validate({"schema_version": 2})


def test_the_value_of_a_label_keeps_its_type():
    for value in [True, False, 0, 1, 1.0, 0.5, "1", "yes"]:
        label = Label.model_validate_json(Label("a", value).model_dump_json())
        assert label.value == value
        assert type(label.value) is type(value)


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


@pytest.mark.parametrize(
    ("messages", "response"),
    [
        ([HumanMessage("Hi"), AIMessage("Let me see."), AIMessage("Hello.")], "Hello."),
        ([AIMessage("Hello."), HumanMessage("Bye")], "Hello."),
        ([AIMessage("Let me see."), AIMessage(tool_calls=[ToolCall("f")])], ""),
        ([AIMessage("")], ""),
        ([HumanMessage("Hi")], None),
        ([], None),
    ],
    ids=["the last", "also before the user's last", "none yet where it calls tools", "empty", "nobody", "nothing"],
)
def test_the_response_is_what_the_agent_said_last(messages, response):
    assert Trace(messages=messages).response == response

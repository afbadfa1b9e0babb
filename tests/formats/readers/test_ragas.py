"""Rows of ragas."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.readers.ragas import RagasReader
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Trace

READER = RagasReader()
UNREAD = "messages or tool calls not read, found 1"
MULTI_TURN = {
    "user_input": [
        {"type": "human", "content": "Weather in Paris and Rome?", "metadata": {"m": 1}},
        {
            "type": "ai",
            "content": "",
            "metadata": None,
            "tool_calls": [
                {"name": "weather", "args": {"city": "Paris"}},
                {"name": "weather", "args": {"city": "Rome"}, "id": "kept"},
            ],
        },
        {"type": "tool", "content": "12 C"},
        {"type": "tool", "content": "20 C", "status": "kept"},
        {"type": "ai", "content": "12 and 20", "tool_calls": None},
    ],
    "reference": "12 and 20",
    "reference_tool_calls": [{"name": "weather", "args": {"city": "Paris"}}, {"name": "f", "note": "kept"}],
    "reference_topics": ["weather"],
    "rubrics": {"score1": "bad"},
}


def test_a_multi_turn_row():
    assert READER.sample(MULTI_TURN, 3) == Sample(
        id="3",
        trace=Trace(
            id="3",
            messages=[
                HumanMessage("Weather in Paris and Rome?", metadata={"m": 1}),
                AIMessage(
                    tool_calls=[
                        ToolCall("weather", {"city": "Paris"}),
                        ToolCall("weather", {"city": "Rome"}, extra={"id": "kept"}),
                    ]
                ),
                ToolMessage("12 C"),
                ToolMessage("20 C", extra={"status": "kept"}),
                AIMessage("12 and 20"),
            ],
        ),
        reference="12 and 20",
        reference_tool_calls=[ExpectedCall("weather", {"city": "Paris"}), ExpectedCall("f", extra={"note": "kept"})],
        reference_topics=["weather"],
        fields={"rubrics": {"score1": "bad"}},
    )


def test_results_are_paired_by_position():
    messages = READER.sample(MULTI_TURN, 0).trace.messages
    pairs = pair_results(messages).calls
    assert {index: caller.call.args["city"] for index, caller in pairs.items()} == {2: "Paris", 3: "Rome"}


SINGLE_TURN = {
    "user_input": "Where?",
    "response": "Here",
    "retrieved_contexts": ["c"],
    "reference": "r",
    "reference_contexts": ["rc"],
}


@pytest.mark.parametrize(
    ("row", "sample"),
    [
        (
            SINGLE_TURN,
            Sample(
                id="0",
                trace=Trace(id="0", messages=[HumanMessage("Where?"), AIMessage("Here")]),
                documents=["c"],
                reference="r",
                fields={"reference_contexts": ["rc"]},
            ),
        ),
        ({"user_input": "Where?"}, Sample(id="0", trace=Trace(id="0", messages=[HumanMessage("Where?")]))),
        (
            {"user_input": "Where?", "response": ""},
            Sample(id="0", trace=Trace(id="0", messages=[HumanMessage("Where?"), AIMessage("")])),
        ),
        (
            {"user_input": [{"type": "human", "content": "q"}], "response": "kept", "reference_tool_calls": []},
            Sample(
                id="0",
                trace=Trace(id="0", messages=[HumanMessage("q")], warnings=[TraceWarning(UNREAD, path="response")]),
                fields={"response": "kept"},
                reference_tool_calls=[],
            ),
        ),
    ],
    ids=["single-turn", "a question alone", "an empty answer", "a response beside turns"],
)
def test_rows_of_other_shapes(row, sample):
    assert READER.sample(row, 0) == sample


def test_a_row_may_say_what_a_row_of_a_dataset_says():
    known = {"id": 7, "label": 1.0, "prediction": True, "domain": "d", "results": [], "other": "kept"}
    ranking = {"retrieved": ["a"], "relevance": {"a": 1}}
    sample = READER.sample({**SINGLE_TURN, **known, "ranking": ranking}, 0)
    assert (sample.id, sample.trace.id, sample.label, sample.prediction) == ("7", "7", "1", "true")
    assert (sample.domain, sample.ranking, sample.documents) == ("d", Ranking(["a"], {"a": 1}), ("c",))
    assert sample.fields == {"reference_contexts": ["rc"], "results": [], "other": "kept"}


@pytest.mark.parametrize("row", [MULTI_TURN, SINGLE_TURN], ids=["multi-turn", "single-turn"])
def test_nothing_of_a_row_is_lost(lost, row):
    assert {re.sub(r"\[\d\]", "[]", path) for path in lost(row, READER.sample(row, 0))} <= {".user_input[].type"}


@pytest.mark.parametrize("row", [MULTI_TURN, SINGLE_TURN], ids=["multi-turn", "single-turn"])
def test_nothing_of_a_changed_row_is_forgotten(forgotten, row):
    assert forgotten(READER, row) == []


def test_null_content_is_none_and_odd_values_are_kept():
    message = {"type": "ai", "content": None, "metadata": 5, "tool_calls": [{"name": "f", "args": "{"}]}
    trace = READER.sample({"user_input": [message], "id": {"a": 1}}, 0).trace
    assert trace.messages == (AIMessage("", tool_calls=[ToolCall("f", "{")], extra={"metadata": 5}),)
    assert [warning.path for warning in trace.warnings] == ["id", "user_input[0].metadata"]


def test_arguments_may_have_their_long_name():
    call = {"name": "f", "arguments": {"a": 1}}
    row = {"user_input": [{"type": "ai", "content": "", "tool_calls": [call]}], "reference_tool_calls": [call]}
    sample = READER.sample(row, 0)
    assert [made.call.args for made in sample.trace.tool_calls()] == [{"a": 1}]
    assert sample.reference_tool_calls is not None
    assert sample.reference_tool_calls[0].args == {"a": 1}


def test_a_row_without_messages_is_refused():
    with pytest.raises(TraceError, match=r"^user_input: contains no messages$"):
        READER.sample({"user_input": [], "reference": "r"}, 0)


def test_an_error_says_where_in_the_record_and_what_was_found():
    cases = [
        (
            {"user_input": [{"type": "system", "content": "x"}]},
            "user_input[0].type: expected one of human, ai, tool, fou",
        ),
        ({"user_input": [{"type": ["ai"]}]}, "user_input[0].type: expected one of human, ai, tool, found ["),
        ({"user_input": [{"type": "ai", "content": ["x"]}]}, "user_input[0].content: expected a string, found ["),
        ({"user_input": [{"type": "ai", "tool_calls": [{}]}]}, "user_input[0].tool_calls[0].name: expected a tool"),
        (
            {"user_input": [{"type": "ai", "tool_calls": [5]}]},
            "user_input[0].tool_calls[0]: expected an object, found 5",
        ),
        ({"user_input": ["Hi"]}, "user_input[0]: expected an object, found 'Hi'"),
        ({"user_input": 4}, "user_input: expected a string or a list of messages, found 4"),
        ({"user_input": "q", "response": ["a"]}, "response: expected a string, found ['a']"),
        (
            {"user_input": "q", "reference_tool_calls": [{"name": "f"}, {"name": "f", "args": "oops"}]},
            "reference_tool_calls[1]: arguments of an expected call must be a JSON object, found 'oops'",
        ),
        (
            {"user_input": "q", "retrieved_contexts": ["c"], "documents": ["d"]},
            "found both 'retrieved_contexts' and 'documents', which mean the same; keep one",
        ),
        ([], "the record: expected an object, found []"),
    ]
    for row, found in cases:
        with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
            READER.sample(row, 0)

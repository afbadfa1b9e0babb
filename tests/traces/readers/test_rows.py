"""Rows of datasets."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage
from judgekit.traces.readers.rows import RowsReader
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

READER = RowsReader()


def read(row: object) -> Sample:
    return READER.sample(row, 3)


def test_a_row_with_all_that_it_may_have():
    row = {
        "id": 7,
        "input": "Where is my order?",
        "response": "On its way.",
        "reference": "It is on its way.",
        "expected_output": "on its way",
        "label": "shipping",
        "prediction": "refund",
        "prediction_score": 0.5,
        "reference_tool_calls": [{"name": "find", "args": {"id": 7}}],
        "reference_topics": ["orders"],
        "documents": ["d"],
        "domain": "shop",
        "group": "g",
        "metadata": {"m": 1},
        "fields": {"own": 1},
        "task_time": 0,
        "language": "en",
        "nothing": None,
    }
    assert read(row) == Sample(
        id="7",
        trace=Trace(id="7", messages=[HumanMessage("Where is my order?"), AIMessage("On its way.")]),
        reference="It is on its way.",
        label="shipping",
        prediction="refund",
        prediction_score=0.5,
        reference_tool_calls=[ExpectedCall("find", {"id": 7})],
        reference_topics=["orders"],
        documents=["d"],
        domain="shop",
        group="g",
        metadata={"m": 1},
        fields={"own": 1, "expected_output": "on its way", "task_time": 0, "language": "en"},
    )


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"input": "q"}, [HumanMessage("q")]),
        ({"input": "q", "response": None, "output": None}, [HumanMessage("q")]),
        ({"input": "q", "response": ""}, [HumanMessage("q"), AIMessage("")]),
        ({"output": "a"}, [AIMessage("a")]),
        ({"response": "a", "output": "a"}, [AIMessage("a")]),
        ({"response": None, "output": "a"}, [AIMessage("a")]),
        ({"reference": "r"}, []),
        ({"input": {"q": "é"}, "output": ["a", 1]}, [HumanMessage('{"q": "é"}'), AIMessage('["a", 1]')]),
        ({"input": 0, "output": False}, [HumanMessage("0"), AIMessage("false")]),
        ({"input": []}, [HumanMessage("[]")]),
        (
            {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "output": "a"},
            [SystemMessage("s"), HumanMessage("q"), AIMessage("a")],
        ),
        ({"input": [{"messages": [{"role": "user"}]}]}, [HumanMessage('[{"messages": [{"role": "user"}]}]')]),
    ],
)
def test_what_was_asked_and_answered_becomes_a_conversation(row, messages):
    sample = read(row)
    assert list(sample.trace.messages) == messages
    assert (sample.id, sample.fields) == ("3", {})


def test_a_row_without_a_response_has_none_and_an_empty_one_is_empty():
    assert [read({"input": "q", **said}).trace.response for said in ({}, {"output": ""})] == [None, ""]


@pytest.mark.parametrize(
    ("row", "reference", "references"),
    [
        ({"reference": "r"}, "r", None),
        ({"reference": ["a", " ", ""]}, None, ("a", " ", "")),
        ({"reference": []}, None, ()),
        ({"reference": "r", "references": ["a"]}, "r", ("a",)),
        ({"expected_output": "e"}, "e", None),
        ({"expected_output": {"a": 1}}, '{"a": 1}', None),
        ({"expected_output": 42}, "42", None),
        ({"expected_output": "e", "reference": ["a"]}, None, ("a",)),
        ({"expected_output": "e", "references": ["a"]}, None, ("a",)),
        ({"expected_output": "e", "reference": ""}, "e", None),
        ({"expected_output": "e", "reference": []}, "e", None),
        ({"expected_output": ["e", "f"]}, None, ("e", "f")),
        ({"reference": 5}, "5", None),
        ({"reference": ["a", 5]}, None, ("a", "5")),
    ],
)
def test_the_reference_is_a_text_or_a_list_or_else_the_expected_output(row, reference, references):
    sample = read(row)
    assert (sample.reference, sample.references) == (reference, references)
    assert sample.fields == {name: row[name] for name in ("expected_output",) if name in row}


@pytest.mark.parametrize(
    ("label", "text"), [("a", "a"), (1, "1"), (1.0, "1"), (0.5, "0.5"), (True, "true"), (False, "false"), ("", "")]
)
def test_a_label_and_a_prediction_that_are_numbers_are_their_json(label, text):
    sample = read({"label": label, "prediction": label})
    assert (sample.label, sample.prediction) == (text, text)


def test_rows_of_the_published_indicators_need_no_conversation():
    rows = [
        {"results": [{"score": 0.85, "domain": "技术问答"}, {"score": 0.72, "domain": "文学创作"}]},
        {"task_quality": 0.9, "communication_rounds": 5, "task_time": 30},
        {"original_score": 0.9, "transferred_score": 0.75},
    ]
    for row in rows:
        sample = read(row)
        assert (sample.fields, sample.trace.messages) == (row, ())


NAN = float("nan")


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            {"response": "a", "output": "b"},
            "two responses that differ: 'response' is 'a' and 'output' is 'b'; keep one",
        ),
        ({"reference": ["a"], "references": ["b"]}, "'reference' is a list, and there are 'references' too; keep one"),
        ({"reference": {"a": 5}}, "reference: Input should be a valid string, found {'a': 5}"),
        ({"reference": ["a", {}]}, "references[1]: Input should be a valid string, found {}"),
        ({"label": ["a"]}, "label: Input should be a valid string, found ['a']"),
        ({"label": NAN}, "label: Input should be a valid string, found nan"),
        ({"task_time": "soon"}, "task_time: expected a finite number, found 'soon'"),
        ({"task_quality": NAN}, "task_quality: expected a finite number, found nan"),
        ({"task_quality": 10**400}, "task_quality: expected a finite number, found 1000"),
        ({"original_score": True}, "original_score: expected a finite number, found True"),
        ({"fields": 5, "label": "a"}, "fields: expected an object, found 5"),
        ({"fields": [], "task_time": 5}, "fields: expected an object, found []"),
        ({"prediction_score": NAN}, "prediction_score: Input should be a finite number, found nan"),
        ({"ranking": {"retrieved": ["d"], "relevance": {"d": NAN}}}, "ranking.relevance.d: Input should be a finite"),
        ({"input": [{"role": "robot"}]}, "input: messages[0].role: expected one of system, developer, user, "),
        ("text", "expected an object, found 'text'"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error_that_names_the_column(row, found):
    with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
        read(row)


def test_nothing_of_a_row_is_lost(lost):
    row = {"input": "q", "output": "a", "expected_output": ["e"], "label": "l", "any": {"deep": [1]}, "results": []}
    assert lost(row, read(row)) == set()

"""Dataset rows."""

import json
import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.readers.rows import RowsReader
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, Usage
from judgekit.traces.recording import TraceWarning
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


def test_what_was_asked_and_answered_becomes_a_conversation():
    cases = [
        ({"input": "q"}, [HumanMessage("q")]),
        ({"input": "q", "response": None, "output": None}, [HumanMessage("q")]),
        ({"input": "q", "response": ""}, [HumanMessage("q"), AIMessage("")]),
        ({"output": "a"}, [AIMessage("a")]),
        ({"response": "a", "output": "a"}, [AIMessage("a")]),
        ({"response": None, "output": "a"}, [AIMessage("a")]),
        ({"ranking": {"retrieved": ["d"], "relevance": {}}}, []),
        ({"input": 0, "output": False}, [HumanMessage("0"), AIMessage("false")]),
        (
            {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "output": "a"},
            [SystemMessage("s"), HumanMessage("q"), AIMessage("a")],
        ),
    ]
    for row, messages in cases:
        sample = read(row)
        assert list(sample.trace.messages) == messages
        assert (sample.id, sample.fields, sample.trace.warnings) == ("3", {}, ())


ONE = "an object with one string, read as that string"
JSON = "neither a string nor messages, read as its JSON text"


def test_an_object_is_its_one_text_or_its_json_with_a_warning():
    cases = [
        ({"question": "2+2?"}, "2+2?", ONE),
        ({"question": "2+2?", "unit": "m"}, '{"question": "2+2?", "unit": "m"}', JSON),
        ({"number": 4}, '{"number": 4}', JSON),
        (["a", 1], '["a", 1]', JSON),
        ([], "[]", JSON),
        ({}, "{}", JSON),
        ({"type": "unknown", "text": "a", "n": 1}, '{"type": "unknown", "text": "a", "n": 1}', JSON),
    ]
    for value, text, warning in cases:
        trace = read({"input": value, "response": value}).trace
        assert [(message.role, message.text) for message in trace.messages] == [("user", text), ("assistant", text)]
        assert trace.warnings == (TraceWarning(warning, path="input"), TraceWarning(warning, path="response"))


ASKED = {"role": "user", "content": "Where is order 7?"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": '{"id": 7}'}}],
}
SAID = {"role": "assistant", "content": "It was sent."}
CALL = ToolCall("find_order", {"id": 7}, id="c1")
CALLING = {
    "message": CALLED,
    "list of messages": [CALLED],
    "list of calls": CALLED["tool_calls"],
    "messages": {"messages": [CALLED]},
    "response": {"choices": [{"index": 0, "message": CALLED, "finish_reason": "tool_calls"}], "model": "m"},
    "choices": [{"index": 0, "message": CALLED, "finish_reason": "tool_calls"}],
    "anthropic blocks": [{"type": "tool_use", "id": "c1", "name": "find_order", "input": {"id": 7}}],
    "anthropic message": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "find_order", "input": {"id": 7}}],
    },
    "responses items": [{"type": "function_call", "call_id": "c1", "name": "find_order", "arguments": '{"id": 7}'}],
    "bedrock message": {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "c1", "name": "find_order", "input": {"id": 7}}}],
    },
    "langchain message": {
        "type": "ai",
        "data": {"content": "", "tool_calls": [{"name": "find_order", "args": {"id": 7}, "id": "c1"}]},
    },
    "gemini content": {
        "role": "model",
        "parts": [{"functionCall": {"id": "c1", "name": "find_order", "args": {"id": 7}}}],
    },
}


def test_calls_in_an_output_are_calls_in_the_format_of_any_provider():
    for output in CALLING.values():
        for write in [lambda value: value, json.dumps]:
            trace = read({"input": [ASKED], "output": write(output)}).trace
            asked, called = trace.messages
            assert (asked.role, asked.text, called.role) == ("user", "Where is order 7?", "assistant")
            assert [(call.name, call.args, call.id) for call in called.tool_calls] == [(CALL.name, CALL.args, CALL.id)]
            told = [] if write(output) is output else ["messages as JSON text, read as messages"]
            assert [warning.message for warning in trace.warnings] == told


def test_an_output_in_the_format_of_a_provider_is_its_text():
    cases = [
        SAID,
        [SAID],
        {"choices": [{"message": SAID}]},
        [{"index": 0, "message": SAID}],
        [{"type": "text", "text": "It was sent."}],
        {"type": "text", "text": "It was sent."},
        [{"type": "output_text", "text": "It was sent."}],
        {"id": "r", "object": "response", "output": [{"type": "message", **SAID}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "It was sent."}]}}]},
        {"output": {"message": {"role": "assistant", "content": [{"text": "It was sent."}]}}, "stopReason": "end_turn"},
        {"messages": [ASKED, SAID]},  # the whole conversation
    ]
    for output in cases:
        messages = read({"input": {"messages": [ASKED]}, "output": output}).trace.messages
        assert [(message.role, message.text) for message in messages] == [
            ("user", "Where is order 7?"),
            ("assistant", "It was sent."),
        ]


def test_an_answer_that_is_json_stays_the_text_that_it_is():
    for text in ('{"status": "sent"}', '[{"a": 1}]', '{"answer": "Paris"}', "[1, 2", '{"messages": 5}'):
        trace = read({"input": "q", "output": text}).trace
        assert (trace.response, trace.warnings) == (text, ())


def test_tools_and_usage_of_a_request_and_its_response_come_along():
    request = {"model": "m", "messages": [ASKED], "tools": [{"type": "function", "function": {"name": "find_order"}}]}
    response = {"model": "m-1", "choices": [{"message": SAID}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    trace = read({"input": request, "output": response}).trace
    assert [tool.name for tool in trace.tools] == ["find_order"]
    assert (trace.messages[-1].model, trace.messages[-1].usage) == ("m-1", Usage(input_tokens=3, output_tokens=2))
    assert trace.messages[-1].extra == {"request": {"model": "m"}}


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ([ASKED, SAID], SAID),
        ([ASKED, SAID], "It was sent."),
        ([{"role": "system", "content": "You help."}, ASKED], [ASKED, SAID]),
        ([ASKED], [{"role": "system", "content": "You help."}, ASKED, SAID]),
        ("Where is order 7?", [ASKED, SAID]),
    ],
)
def test_what_stands_in_input_and_output_is_read_once(given, output):
    messages = read({"input": given, "output": output}).trace.messages
    said = [message.text for message in messages if message.role != "system"]
    assert said == ["Where is order 7?", "It was sent."]


def test_a_call_in_the_input_and_in_the_output_counts_once():
    result = {"role": "tool", "tool_call_id": "c1", "content": "sent"}
    for given in ([ASKED, CALLED], [ASKED, CALLED, result], [ASKED, CALLED, result, SAID]):
        trace = read({"input": given, "output": CALLED}).trace
        assert [call.call for call in trace.tool_calls()] == [CALL]
        assert [warning.message for warning in trace.warnings] == [
            "the response is already in the messages, and is read once"
        ]


def test_a_call_that_is_made_again_counts_again():
    again = {**CALLED, "tool_calls": [{**CALLED["tool_calls"][0], "id": "c2"}]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "sent"}
    assert len(read({"input": [ASKED, CALLED, result], "output": again}).trace.tool_calls()) == 2


def test_an_error_or_an_id_is_no_answer():
    for output in ({"error": "timeout"}, {"id": "run-123"}, {"status": "ok"}):
        trace = read({"input": "q", "output": output}).trace
        assert (trace.response, [one.message for one in trace.warnings]) == (json.dumps(output), [JSON])


@pytest.mark.parametrize("roles", [("user",), ("system", "user")])
def test_an_output_without_a_message_of_the_agent_is_no_conversation(roles):
    trace = read({"input": "q", "output": [{"role": role, "content": "x"} for role in roles]}).trace
    assert [message.role for message in trace.messages] == ["user", "assistant"]
    assert [warning.message for warning in trace.warnings] == [JSON]


def test_json_text_and_pythons_text_in_cells():
    trace = read({"input": '{"question": "2+2?"}', "output": "{'answer': '4'}"}).trace
    assert [message.text for message in trace.messages] == ["2+2?", "{'answer': '4'}"]
    assert [warning.message for warning in trace.warnings] == [
        ONE,
        "a list or dict as Python prints it, read as plain text; write JSON instead",
    ]


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"Question": "q", "Answer": "a"}, "--column Question=input --column Answer=response"),
        ({"user message": "q", "bot-response": "a"}, "--column 'user message=input' --column bot-response=response"),
        ({"Input": "q", "Response": "a"}, "--column Input=input --column Response=response"),
        ({"inputs": "p", "query": "q", "answer": "a"}, "--column inputs=input --column answer=response"),
    ],
)
def test_columns_are_known_in_any_spelling(row, columns):
    assert READER.recognizes(row)
    with pytest.raises(TraceError, match=f"{re.escape(columns)}(;|$)"):
        read(row)


def test_an_answer_may_be_the_expected_one():
    with pytest.raises(TraceError, match="--column Answer=response; if 'Answer' is the expected answer, as in most"):
        read({"Question": "q", "Answer": "a"})
    with pytest.raises(TraceError, match=r"--column answer=response$"):
        read({"question": "q", "answer": "a", "reference": "r"})
    assert read({"input": "q", "reference": "a"}).reference == "a"


def test_results_are_scores_and_pieces_of_a_stream_are_no_answers():
    assert READER.recognizes({"results": [{"score": 1, "domain": "d"}, 0.5]})
    assert not READER.recognizes({"results": [{"input": "q", "output": "a"}]})
    assert not READER.recognizes({"model": "m", "input": "q", "tags": []})
    assert not READER.recognizes({"response": "It", "done": False})
    assert READER.recognizes({"response": "It.", "done": True})


def test_a_text_that_may_be_the_question_is_named():
    [warning] = read({"response": "a", "the_users_words": "Where is order 7?", "note": "of a test"}).trace.warnings
    assert warning.message == "no user message, and the text of 'the_users_words' is not read"


def test_what_is_said_again_in_another_column_is_no_loss():
    row = {"input": "q", "response": "a", "question": "q", "answer": "a", "error": False, "parent_company": "c"}
    assert read(row).trace.warnings == ()
    [warning] = read({**row, "observations": [{"role": "user", "content": "x"}]}).trace.warnings
    assert warning == TraceWarning("messages or tool calls not read, found 1", path="observations")


UNREAD = "the column {!r} is not read, although other evaluation systems use it"


def test_a_column_of_another_system_is_named_in_a_warning():
    cases = [
        ("expected", "r", "the column 'expected' is not read; to read it as reference: --column expected=reference"),
        (
            "Expected; Answer",
            "r",
            "the column 'Expected; Answer' is not read; to read it as reference: --column 'Expected; Answer=reference'",
        ),
        ("ideal", ["r"], "the column 'ideal' is not read; to read it as reference: --column ideal=reference"),
        (
            "retrieval_context",
            ["d"],
            "the column 'retrieval_context' is not read; to read it as documents: --column retrieval_context=",
        ),
        ("question", "q", "the column 'question' is not read; to read it as input: --column question=input"),
        (
            "referenceTopic",
            ["refunds"],
            "the column 'referenceTopic' is not read; to read it as reference_topics: --column referenceTopic=",
        ),
        ("scores", {"correct": 1}, UNREAD),
        ("observations", [{"type": "SPAN"}], UNREAD),
        ("trace_id", "t", UNREAD),
        ("traceId", "t", UNREAD),
        ("parent_run_id", "t", UNREAD),
        ("span_attributes", {"name": "llm"}, UNREAD),
        ("error", "timeout", UNREAD),
        ("expected_turns", 5, UNREAD),
        ("Score", 1, UNREAD),
        ("trajectory", [["calc", {"a": 1}]], UNREAD),
        ("history", [{"role": "user", "content": "Hi"}], "messages or tool calls not read, found 1"),
        ("steps", [{"tool_calls": [{"name": "f", "args": {}}]}], "messages or tool calls not read, found 1"),
    ]
    for column, value, found in cases:
        sample = read({"input": "a", "response": "b", column: value})
        assert sample.fields == {column: value}
        [warning] = sample.trace.warnings
        assert warning.message.startswith(found.format(column))
        assert warning.path == column


def test_a_column_of_ones_own_is_kept_without_a_word():
    row = {"language": "en", "difficulty": 3, "tags": ["a"], "topic": {"name": "refunds", "id": 5}, "turn": 1}
    row |= {"reference_id": 7, "preference": "b", "referrer": "r", "difference": 2, "reference_source": "wiki"}
    sample = read({"input": "a", "response": "b", **row})
    assert (sample.fields, sample.trace.warnings) == (row, ())


def test_a_row_that_lacks_what_it_needs_says_which_column_to_rename():
    cases = [
        (
            {"input": "q", "actual_output": "a", "expected_output": "e"},
            "this row has no response; if the column has another name: --column actual_output=response",
        ),
        (
            {"question": "q", "answer": "a"},
            "this row has no input and no response; if the column has another name: --column question=input --column answer=response",
        ),
        (
            {"instruction": "Say hi", "input": "", "output": "hi"},
            "this row has no input; if the column has another name: --column instruction=input --column input=context",
        ),
        (
            {"input": "q", "expectedOutput": "e"},
            "this row has no reference; if the column has another name: --column expectedOutput=reference",
        ),
        ({"reference": "r"}, "a row needs an 'input' or 'response', a prediction, a ranking"),
        ({"label": "l", "subset": "s"}, "a row needs an 'input' or 'response'"),
        ({"reference": "r", "log": [{"role": "user", "content": "q"}]}, "a row needs an 'input' or 'response'"),
        (
            {"results": [{"score": 1}], "sample": {"input": [{"role": "user", "content": "q"}]}},
            "a row needs an 'input' or 'response', a prediction, a ranking or measured numbers; sample: messages",
        ),
    ]
    for row, found in cases:
        with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
            read(row)
        assert READER.recognizes(row)


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


def test_a_row_that_does_not_fit_is_an_error_that_names_the_column():
    cases = [
        ({"response": "a", "output": "b"}, "two different responses: 'response' is 'a' and 'output' is 'b'; keep one"),
        ({"reference": ["a"], "references": ["b"]}, "found a list in 'reference' and also 'references'; keep one"),
        ({"response": "a", "reference": NAN}, "reference: Input should be a valid string, found nan"),
        ({"response": "a", "references": {"a": 5}}, "references: Input should be a list, found {'a': 5}"),
        ({"response": "a", "label": ["a"]}, "label: Input should be a valid string, found ['a']"),
        ({"response": "a", "label": NAN}, "label: Input should be a valid string, found nan"),
        ({"task_time": "soon"}, "task_time: expected a finite number, found 'soon'"),
        ({"task_quality": NAN}, "task_quality: expected a finite number, found nan"),
        ({"task_quality": 10**400}, "task_quality: expected a finite number, found 1000"),
        ({"original_score": True}, "original_score: expected a finite number, found True"),
        ({"fields": 5, "label": "a"}, "fields: expected an object, found 5"),
        ({"fields": [], "task_time": 5}, "fields: expected an object, found []"),
        ({"response": "a", "prediction_score": NAN}, "prediction_score: Input should be a finite number, found nan"),
        ({"ranking": {"retrieved": ["d"], "relevance": {"d": NAN}}}, "ranking.relevance.d: Input should be a finite"),
        ({"input": [{"role": "robot"}]}, "input: messages[0].role: expected one of system, developer, user, "),
        ("text", "expected an object, found 'text'"),
    ]
    for row, found in cases:
        with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
            read(row)


def test_nothing_of_a_row_is_lost(lost):
    row = {"input": "q", "output": "a", "expected_output": ["e"], "label": "l", "any": {"deep": [1]}, "results": []}
    assert lost(row, read(row)) == set()

"""OpenAI Chat Completions messages."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.pairing import pair_results
from judgekit.traces.readers.openai_chat import OpenAIChatReader
from judgekit.traces.reading import read
from judgekit.traces.sample import ExpectedCall, Ranking
from judgekit.traces.trace import ToolDefinition, TraceWarning

READER = OpenAIChatReader()
HI = {"role": "user", "content": "Hi"}


def function(name: str, arguments: object, identity: str | None = None) -> dict:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(**fields: object) -> dict:
    return {"role": "assistant", **fields}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}, "cache": 1}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
ODD_PARTS = [{"type": "image_url", "image_url": "http://a"}, {"type": "text", "text": None}, {"no": "type"}, 5]
MESSAGES = {
    "system": ({"role": "system", "content": "Be brief"}, SystemMessage("Be brief")),
    "developer": ({"role": "developer", "content": "Be brief"}, SystemMessage("Be brief", role="developer")),
    "named system": ({"role": "system", "content": "x", "name": "ops"}, SystemMessage("x", extra={"name": "ops"})),
    "user": ({"role": "user", "content": "Hi", "name": "ann"}, HumanMessage("Hi", name="ann")),
    "assistant": (assistant(content="Hi", name="router"), AIMessage("Hi", agent="router")),
    "tool": (
        {"role": "tool", "content": "1", "tool_call_id": "c", "name": "f"},
        ToolMessage("1", tool_call_id="c", name="f", is_error=None),
    ),
    "legacy function": ({"role": "function", "content": "1", "name": "f"}, ToolMessage("1", name="f")),
    "null content": (assistant(content=None), AIMessage("")),
    "empty content": (assistant(content=""), AIMessage("")),
    "no content": (assistant(), AIMessage("")),
    "empty part list": (assistant(content=[]), AIMessage("")),
    "tool calls null": (assistant(content="x", tool_calls=None), AIMessage("x")),
    "tool calls empty": (assistant(content="x", tool_calls=[]), AIMessage("x")),
    "parts": (
        {"role": "user", "content": ["a", {"type": "text", "text": "b", "cache_control": {}}, IMAGE, AUDIO]},
        HumanMessage(
            [
                TextPart("a"),
                TextPart("b", extra={"cache_control": {}}),
                MediaPart(kind="image", url="data:image/png;base64,AA", extra={"cache": 1, "detail": "low"}),
                OtherPart(AUDIO),
            ]
        ),
    ),
    "parts of no known kind": ({"role": "user", "content": ODD_PARTS}, HumanMessage([*map(OtherPart, ODD_PARTS)])),
    "refusal part": (assistant(content=[{"type": "refusal", "refusal": "no"}]), AIMessage([RefusalPart("no")])),
    "refusal beside null": (assistant(content=None, refusal="no"), AIMessage([RefusalPart("no")])),
    "refusal beside empty content": (assistant(content="", refusal="no"), AIMessage([RefusalPart("no")])),
    "refusal beside content": (assistant(content="a", refusal="b"), AIMessage([TextPart("a"), RefusalPart("b")])),
    "refusal null": (assistant(content="a", refusal=None), AIMessage("a")),
    "reasoning beside null": (assistant(content=None, reasoning_content="r"), AIMessage([ReasoningPart("r")])),
    "reasoning beside empty content": (assistant(content="", reasoning_content="r"), AIMessage([ReasoningPart("r")])),
    "reasoning beside content": (
        assistant(content="a", reasoning_content="r"),
        AIMessage([ReasoningPart("r"), TextPart("a")]),
    ),
    "reasoning beside parts": (
        assistant(content=["a"], reasoning_content="r", refusal="b"),
        AIMessage([ReasoningPart("r"), TextPart("a"), RefusalPart("b")]),
    ),
    "function calls": (
        assistant(content=None, tool_calls=[function("f", '{"a": 1}', "1"), function("g", {"b": 2})]),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1"), ToolCall("g", {"b": 2})]),
    ),
    "calls of no arguments": (
        assistant(
            tool_calls=[function("f", ""), function("f", None), function("f", "{}"), {"function": {"name": "f"}}]
        ),
        AIMessage(tool_calls=[ToolCall("f")] * 4),
    ),
    "broken arguments": (
        assistant(tool_calls=[function("f", '{"a": "cut')]),
        AIMessage(tool_calls=[ToolCall("f", '{"a": "cut')]),
    ),
    "custom call": (
        assistant(tool_calls=[{"id": "2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]),
        AIMessage(tool_calls=[ToolCall("sql", {"input": "select 1"}, id="2", extra={"type": "custom"})]),
    ),
    "extra keys of calls": (
        assistant(tool_calls=[{"index": 0, "type": "builtin", "function": {"name": "f", "parsed": 1}}]),
        AIMessage(tool_calls=[ToolCall("f", extra={"index": 0, "type": "builtin", "parsed": 1})]),
    ),
    "flat calls": (
        assistant(
            tool_calls=[{"name": "f", "arguments": '{"a": 1}', "id": "1"}, {"name": "g", "args": {"b": 2}, "x": 3}]
        ),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1"), ToolCall("g", {"b": 2}, extra={"x": 3})]),
    ),
    "flat call of no arguments": (assistant(tool_calls=[{"name": "f"}]), AIMessage(tool_calls=[ToolCall("f")])),
    "legacy function call": (
        assistant(content=None, function_call={"name": "f", "arguments": '{"a": 1}'}),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1})]),
    ),
    "calls of the user": (
        {"role": "user", "content": "x", "tool_calls": [function("f", "{}")]},
        HumanMessage("x", tool_calls=[ToolCall("f")]),
    ),
    "extra keys of messages": (
        assistant(content="x", annotations=[], audio=None, cost=0.5, id="m", timestamp="2025-01-02T03:04:05Z"),
        AIMessage(
            "x",
            id="m",
            extra={"annotations": [], "audio": None, "cost": 0.5, "timestamp": "2025-01-02T03:04:05Z"},
        ),
    ),
}


@pytest.mark.parametrize(("found", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_is_read_as_ours(found, message):
    assert READER.sample({"messages": [found]}, 0).trace.messages == (message,)


def test_ids_that_are_numbers_become_text():
    found = {"role": "tool", "tool_call_id": 7, "id": 1, "content": "x"}
    sample = READER.sample({"id": 5, "messages": [found]}, 0)
    assert sample.id == "5"
    assert sample.trace.messages == (ToolMessage("x", tool_call_id="7", id="1"),)


@given(st.data())
def test_any_content_reasoning_and_refusal_are_kept(data):
    text = st.none() | st.sampled_from(["", "x", "yy"])
    fields = {name: data.draw(text) for name in ("content", "reasoning_content", "refusal")}
    [message] = READER.sample([assistant(**fields)], 0).trace.messages
    parts = [] if isinstance(message.content, str) else message.content
    assert "".join(part.text for part in parts if part.type == "reasoning") == (fields["reasoning_content"] or "")
    assert "".join(part.text for part in parts if part.type == "refusal") == (fields["refusal"] or "")
    assert message.text == "\n".join(filter(None, (fields["content"], fields["refusal"])))


def test_the_example_of_the_documentation(tmp_path):
    """Parallel calls of two types, answered in the other order."""
    recorded = [
        {"role": "developer", "content": "Be brief"},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Weather?"}]},
        assistant(
            content=None,
            refusal=None,
            tool_calls=[
                function("get_weather", '{"city":"Paris"}', "call_1"),
                {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
            ],
        ),
        {"role": "tool", "tool_call_id": "call_2", "content": "1"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "12C"}]},
        assistant(content="12C in Paris", annotations=[], audio=None),
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(recorded))
    [sample] = read(path)
    assert sample.trace.warnings == ()
    pairs = pair_results(sample.trace.messages).calls
    assert {index: caller.call.name for index, caller in pairs.items()} == {3: "sql", 4: "get_weather"}
    assert [message.text for message in sample.trace.messages] == [
        "Be brief",
        "Weather?",
        "",
        "1",
        "12C",
        "12C in Paris",
    ]


def test_legacy_functions_without_ids_are_paired_by_name():
    messages = [assistant(function_call={"name": "f"}), {"role": "function", "name": "f", "content": "1"}]
    trace = READER.sample(messages, 0).trace
    assert trace.warnings == ()
    assert pair_results(trace.messages).calls[1].call is trace.messages[0].tool_calls[0]


def test_a_result_that_answers_no_call_stays_with_a_warning():
    trace = READER.sample([HI, {"role": "tool", "tool_call_id": "9", "content": "x"}], 0).trace
    assert trace.messages[1] == ToolMessage("x", tool_call_id="9")
    assert trace.warnings == (TraceWarning("a tool result that answers no call before it", where="messages[1]"),)


@pytest.mark.parametrize(
    ("document", "conversations"),
    [
        ([HI, HI], [2]),
        ({"messages": [HI]}, [1]),
        ([{"messages": [HI]}, {"messages": [HI, HI]}], [1, 2]),
        ([[HI], [HI, HI]], [1, 2]),
    ],
    ids=["bare list", "one row", "list of rows", "list of lists"],
)
def test_a_document_is_one_conversation_or_many(document, conversations):
    assert READER.recognises(document)
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    assert [len(sample.trace.messages) for sample in samples] == conversations
    assert [sample.id for sample in samples] == [str(index) for index in range(len(conversations))]


@pytest.mark.parametrize(
    ("row", "identity"),
    [({}, "7"), ({"id": "a"}, "a"), ({"id": 12}, "12"), ({"id": 0}, "0"), ({"id": None}, "7")],
)
def test_the_id_of_a_row_names_sample_and_trace_or_else_its_index(row, identity):
    sample = READER.sample({**row, "messages": [HI]}, 7)
    assert (sample.id, sample.trace.id) == (identity, identity)


def test_what_stands_beside_the_messages_is_read():
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
    row = {
        "messages": [HI],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": parameters, "strict": True},
            },
            {"type": "custom", "custom": {"name": "sql"}},
            {"type": "web_search", "name": "search", "size": 1},
            {"type": "builtin", "function": {"name": "g"}},
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        "model": "gpt-4.1",
        "temperature": 0,
    }
    trace = READER.sample(row, 0).trace
    assert trace.tools == (
        ToolDefinition("f", description="d", parameters=parameters, extra={"strict": True}),
        ToolDefinition("custom", extra={"type": "custom", "custom": {"name": "sql"}}),
        ToolDefinition("search", extra={"type": "web_search", "name": "search", "size": 1}),
        ToolDefinition("g", extra={"type": "builtin"}),
    )
    assert trace.usage == Usage(
        input_tokens=10,
        output_tokens=5,
        cached_tokens=4,
        reasoning_tokens=3,
        extra={
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    )
    assert trace.extra == {"model": "gpt-4.1", "temperature": 0}


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": 1}, Usage(input_tokens=1)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, Usage(extra={"prompt_tokens_details": None})),
        ({"input_tokens": 1}, Usage(extra={"input_tokens": 1})),
    ],
)
def test_usage_that_was_not_reported_is_not_invented(usage, read_as):
    assert READER.sample({"messages": [HI], "usage": usage}, 0).trace.usage == read_as


def test_references_may_stand_beside_the_messages():
    known = {
        "reference": "r",
        "references": ["a", "b"],
        "reference_tool_calls": [{"name": "f", "args": {"a": 1}, "compare_args": ["a"]}],
        "reference_topics": ["t"],
        "label": "l",
        "prediction": "p",
        "prediction_score": 0.5,
        "documents": ["d"],
        "ranking": {"retrieved": ["a"], "relevance": {"a": 1}},
        "fields": {"x": 1},
        "group": "g",
        "domain": "o",
        "metadata": {"m": 1},
    }
    sample = READER.sample({"messages": [HI], **known}, 0)
    assert sample.trace.extra == {}
    assert {name: getattr(sample, name) for name in known} == {
        **known,
        "references": ("a", "b"),
        "reference_tool_calls": (ExpectedCall("f", {"a": 1}, compare_args=["a"]),),
        "reference_topics": ("t",),
        "documents": ("d",),
        "ranking": Ranking(["a"], {"a": 1}),
    }


def test_columns_of_datasets_beside_the_messages_are_fields_and_all_others_stay_with_the_trace():
    kept = {"expected_output": "e", "results": [{"score": 1, "domain": "d"}], "task_time": 3, "task_quality": 0.5}
    sample = READER.sample({"messages": [HI], **kept, "model": "m", "output": "o", "label": None}, 0)
    assert sample.fields == kept
    assert (sample.reference, sample.label) == ("e", None)
    assert sample.trace.extra == {"model": "m", "output": "o"}


def test_the_predicted_output_of_a_request_is_no_prediction_of_a_sample():
    """The API has a parameter of the same name, whose value is an object."""
    predicted = {"type": "content", "content": "x"}
    sample = READER.sample({"messages": [HI], "prediction": predicted}, 0)
    assert sample.prediction is None
    assert sample.trace.extra == {"prediction": predicted}


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"messages": [{**HI, "role": "martian"}]}, "messages[0].role: Input should be 'system', 'developer', 'user'"),
        ([HI, {"content": "x"}], "[1].role: Field required, found {'content': 'x'}"),
        ({"messages": [{**HI, "content": 5}]}, "messages[0].content: Input should be a valid string, found 5"),
        ({"messages": []}, "messages: List should have at least 1 item"),
        (
            {"messages": [assistant(tool_calls=[{"id": "1"}])]},
            "a tool call of the type 'function' that names no function",
        ),
        (
            {"messages": [assistant(tool_calls=[{"name": 5}])]},
            "messages[0].tool_calls[0].name: Input should be a valid",
        ),
        ({"messages": [HI], "label": [5]}, "label: Input should be a valid string, found ['5']"),
        ({"messages": [HI], "references": "one"}, "references: Input should be a valid tuple, found 'one'"),
        (
            {"messages": [HI], "reference_tool_calls": [{"name": "f", "args": "oops"}]},
            "reference_tool_calls[0]: arguments of an expected call must be a JSON object, found 'oops'",
        ),
        (5, "the record: Input should be a valid dictionary"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_error_says_where_in_the_record_and_what_was_found(record, found):
    with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
        READER.sample(record, 0)


@pytest.mark.parametrize("arguments", ['{"a": "x"}', {"a": "x"}])
def test_nothing_of_a_row_is_lost(lost, arguments):
    """Only what says that a thing is what it is (a function, an image) is not repeated, and arguments are parsed."""
    row = {
        "id": "the id",
        "messages": [found for found, _ in MESSAGES.values()] + [assistant(tool_calls=[function("f", arguments, "9")])],
        "beside": {"deep": ["kept"]},
    }
    gone = {re.sub(r"\[\d+\]", "[]", path) for path in lost(row, READER.sample(row, 0))}
    assert gone <= {".messages[].tool_calls[].function.arguments", ".messages[].function_call.arguments"} | {
        ".messages[].tool_calls[].arguments",
        ".messages[].tool_calls[].type",
        ".messages[].role",
    }


def test_recorded_requests_are_read_without_a_loss(shared_data, lost):
    paths = sorted(shared_data.glob("traces/lingua/snapshots/*/chat-completions/*request.json"))
    assert paths
    for path in paths:
        request = json.loads(path.read_text())
        [sample] = read(path, on_error="raise")
        assert sample.trace.source.format == "openai-chat"
        assert sample.trace.warnings == ()
        assert len(sample.trace.messages) == len(request["messages"])
        recorded = [
            json.loads(call["function"]["arguments"])
            for message in request["messages"]
            for call in message.get("tool_calls") or ()
        ]
        assert [made.call.args for made in sample.trace.tool_calls()] == recorded
        for message, found in zip(sample.trace.messages, request["messages"], strict=True):
            if isinstance(found["content"], str):
                assert message.text == found["content"]
        gone = {re.sub(r"\[\d+\]", "[]", where) for where in lost(request, sample)}
        assert gone <= {
            ".messages[].tool_calls[].function.arguments",  # parsed
            ".messages[].tool_calls[].type",
            ".messages[].content[].type",
            ".tools[].type",
        }

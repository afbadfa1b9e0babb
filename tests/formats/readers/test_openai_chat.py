"""Conversations with an API like OpenAI's Chat Completions."""

import json
import re
from collections import Counter
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.openai_chat import OpenAIChatChunksReader, OpenAIChatReader
from judgekit.formats.reading import read
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.recording import ToolDefinition, TraceWarning
from judgekit.traces.sample import ExpectedCall, Ranking, Sample

READER = OpenAIChatReader()
HI = {"role": "user", "content": "Hi"}


def function(name: str, arguments: object, identity: str | None = None) -> dict:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(**fields: object) -> dict:
    return {"role": "assistant", **fields}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}, "cache": 1}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
ODD_PARTS = [{"type": "image_url", "image_url": 5}, {"type": "text", "text": [1]}, {"type": [1]}, {"no": "type"}, 5]
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
    "empty part list": (assistant(content=[]), AIMessage("")),
    "parts": (
        {"role": "user", "content": ["a", {"type": "text", "text": "b", "cache_control": {}}, IMAGE, AUDIO]},
        HumanMessage(
            [
                TextPart("a"),
                TextPart("b", extra={"cache_control": {}}),
                MediaPart(
                    kind="image", url="data:image/png;base64,AA", extra={"cache": 1, "image_url": {"detail": "low"}}
                ),
                MediaPart(kind="audio", data="AA", extra={"input_audio": {"format": "wav"}}),
            ]
        ),
    ),
    "parts of no known kind": ({"role": "user", "content": ODD_PARTS}, HumanMessage([*map(OtherPart, ODD_PARTS)])),
    "one part of text": ({"role": "user", "content": [{"type": "text", "text": "a"}]}, HumanMessage("a")),
    "media": (
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": "http://a"},
                {"type": "image_url", "image_url": {"url": "AA"}},
                {"type": "video_url", "video_url": {"url": "http://v"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
                {"type": "file", "file": {"file_id": "f-1"}},
            ],
        },
        HumanMessage(
            [
                MediaPart(kind="image", url="http://a"),
                MediaPart(kind="image", data="AA"),
                MediaPart(kind="video", url="http://v"),
                MediaPart(kind="file", url="data:application/pdf;base64,AA", name="a.pdf"),
                MediaPart(kind="file", extra={"file": {"file_id": "f-1"}}),
            ]
        ),
    ),
    "spoken reply": (
        assistant(content=None, audio={"id": "a", "data": "AA", "transcript": "Hi"}),
        AIMessage([TextPart("Hi"), MediaPart(kind="audio", data="AA", extra={"id": "a"})]),
    ),
    "refusal part": (assistant(content=[{"type": "refusal", "refusal": "no"}]), AIMessage([RefusalPart("no")])),
    "refusal beside null": (assistant(content=None, refusal="no"), AIMessage([RefusalPart("no")])),
    "reasoning beside content": (
        assistant(content="a", reasoning_content="r"),
        AIMessage([ReasoningPart("r"), TextPart("a")]),
    ),
    "reasoning beside parts": (
        assistant(content=["a"], reasoning_content="r", refusal="b"),
        AIMessage([ReasoningPart("r"), TextPart("a"), RefusalPart("b")]),
    ),
    "reasoning in two fields": (
        assistant(content="a", reasoning_content="r", reasoning="r"),
        AIMessage([ReasoningPart("r"), TextPart("a")]),
    ),
    "thinking blocks": (
        assistant(
            content="a",
            reasoning_content="r",
            thinking_blocks=[
                {"type": "thinking", "thinking": "r", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
            ],
        ),
        AIMessage(
            [
                ReasoningPart("r", extra={"type": "thinking", "signature": "s"}),
                ReasoningPart("", extra={"type": "redacted_thinking", "data": "x"}),
                TextPart("a"),
            ]
        ),
    ),
    "reasoning details": (
        assistant(
            content="a",
            reasoning="one two",
            reasoning_details=[
                {"type": "reasoning.text", "text": "one "},
                {"type": "reasoning.summary", "summary": "two"},
                {"type": "reasoning.encrypted", "data": "x"},
            ],
        ),
        AIMessage(
            [
                ReasoningPart("one ", extra={"type": "reasoning.text"}),
                ReasoningPart("two", extra={"type": "reasoning.summary"}),
                ReasoningPart("", extra={"type": "reasoning.encrypted", "data": "x"}),
                TextPart("a"),
            ]
        ),
    ),
    "thinking among the parts": (
        assistant(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"type": "thinking", "thinking": "c", "signature": "s"},
                "d",
            ]
        ),
        AIMessage(
            [
                ReasoningPart("ab", extra={"type": "thinking", "thinking": [{"type": "text"}, {"type": "text"}]}),
                ReasoningPart("c", extra={"type": "thinking", "signature": "s"}),
                TextPart("d"),
            ]
        ),
    ),
    "result of another type": ({"role": "tool", "content": {"a": ["é"]}}, ToolMessage('{"a": ["é"]}')),
    "result that is a list of values": (
        {"role": "tool", "content": [{"city": "Paris"}, 5]},
        ToolMessage('[{"city": "Paris"}, 5]'),
    ),
    "a call in the content and beside it": (
        assistant(
            content=[
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}, "cache_control": {"b": 2}},
                {"type": "tool_use", "id": "2", "name": "g", "input": {}},
            ],
            tool_calls=[function("f", '{"a": 1}', "1")],
        ),
        AIMessage(
            "a",
            tool_calls=[ToolCall("f", {"a": 1}, id="1"), ToolCall("g", id="2")],
            extra={"content": [{}, {"cache_control": {"b": 2}}, {}]},
        ),
    ),
    "a call in the content that differs from that of its id": (
        assistant(
            content=[{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 2}}],
            tool_calls=[function("f", '{"a": 1}', "1")],
        ),
        AIMessage(
            [OtherPart({"type": "tool_use", "id": "1", "name": "f", "input": {"a": 2}})],
            tool_calls=[ToolCall("f", {"a": 1}, id="1")],
        ),
    ),
    "two calls of one id in the content": (
        assistant(content=[{"type": "tool_use", "id": "1", "name": "f", "input": {"a": a}} for a in (1, 2)]),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1"), ToolCall("f", {"a": 2}, id="1")]),
    ),
    "doubly encoded arguments": (
        assistant(tool_calls=[function("f", '"{\\"a\\": 1}"')]),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, args_raw='"{\\"a\\": 1}"')]),
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
        AIMessage(tool_calls=[ToolCall("f", extra={"index": 0, "type": "builtin", "function": {"parsed": 1}})]),
    ),
    "flat calls": (
        assistant(
            tool_calls=[{"name": "f", "arguments": '{"a": 1}', "id": "1"}, {"name": "g", "args": {"b": 2}, "x": 3}]
        ),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1"), ToolCall("g", {"b": 2}, extra={"x": 3})]),
    ),
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
        AIMessage("x", id="m", extra={"annotations": [], "cost": 0.5, "timestamp": "2025-01-02T03:04:05Z"}),
    ),
}


def test_a_message_is_read_as_ours():
    for found, message in MESSAGES.values():
        assert READER.sample({"messages": [found]}, 0).trace.messages == (message,)


def test_a_part_that_cannot_be_read_is_told():
    use = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    parts = [{"type": "image_url", "image_url": 5}, {"type": "text", "text": [1]}, {"text": "x"}, use]
    trace = READER.sample([{"role": "system", "content": parts}, HI], 0).trace
    kinds = ["of type 'image_url'", "of type 'text'", "without a type", "of type 'tool_use'"]
    assert [(one.message, one.path) for one in trace.warnings] == [
        (f"unreadable part {kind}, kept as is", f"messages[0].content[{index}]") for index, kind in enumerate(kinds)
    ]


def test_a_call_in_the_content_that_differs_from_that_of_its_id_is_told():
    used = {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 2}}
    trace = READER.sample([HI, assistant(content=[used], tool_calls=[function("f", '{"a": 1}', "1")])], 0).trace
    [warning] = trace.warnings
    assert "differs from the call" in warning.message
    assert warning.path == "messages[1].content[0]"


def test_what_is_left_over_is_kept_even_if_it_cannot_be_encoded():
    left = {"args": {"x": "\ud800"}}
    sample = READER.sample({"messages": [{"role": "user", "content": "Hi"}], "custom": left}, 0)
    assert sample.trace.extra == {"custom": left}


@given(st.data())
def test_any_content_reasoning_and_refusal_are_kept(data):
    text = st.none() | st.sampled_from(["", "x", "yy"])
    fields = {name: data.draw(text) for name in ("content", "reasoning_content", "refusal")}
    [message] = READER.sample([assistant(**fields)], 0).trace.messages
    parts = [] if isinstance(message.content, str) else message.content
    assert "".join(part.text for part in parts if part.type == "reasoning") == (fields["reasoning_content"] or "")
    assert "".join(part.text for part in parts if part.type == "refusal") == (fields["refusal"] or "")
    assert message.text == "\n".join(filter(None, (fields["content"], fields["refusal"])))


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
    assert READER.recognizes(document)
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    assert [len(sample.trace.messages) for sample in samples] == conversations
    assert [sample.id for sample in samples] == [str(index) for index in range(len(conversations))]


@pytest.mark.parametrize(
    ("row", "identity"), [({}, "7"), ({"id": "a"}, "a"), ({"id": 12}, "12"), ({"id": 0}, "0"), ({"id": None}, "7")]
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
            {"type": "custom", "custom": {"name": "sql", "format": "text"}},
            {"type": "web_search", "name": "search", "size": 1},
            {"type": "code_execution"},
            {"type": "builtin", "function": {"name": "g"}},
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        "model": "gpt-x",
        "temperature": 0,
    }
    trace = READER.sample(row, 0).trace
    assert trace.tools == (
        ToolDefinition("f", description="d", parameters=parameters, extra={"function": {"strict": True}}),
        ToolDefinition("sql", extra={"type": "custom", "custom": {"format": "text"}}),
        ToolDefinition("search", extra={"type": "web_search", "size": 1}),
        ToolDefinition("code_execution", extra={"type": "code_execution"}),
        ToolDefinition("g", extra={"type": "builtin"}),
    )
    assert trace.usage == Usage(
        input_tokens=10,
        output_tokens=5,
        cached_tokens=4,
        reasoning_tokens=3,
        extra={"total_tokens": 15, "prompt_tokens_details": {"audio_tokens": 0}},
    )
    assert trace.extra == {"model": "gpt-x", "temperature": 0}


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": 1}, Usage(input_tokens=1)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, None),
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
    sample = READER.sample({"messages": [HI], **kept, "model": "m", "size": "o", "label": None}, 0)
    assert sample.fields == kept
    assert (sample.reference, sample.label) == ("e", None)
    assert (sample.trace.extra, sample.trace.warnings) == ({"model": "m", "size": "o"}, ())


def test_the_predicted_output_of_a_request_is_no_prediction_of_a_sample():
    """The API has a parameter of the same name, whose value is an object."""
    predicted = {"type": "content", "content": "x"}
    sample = READER.sample({"messages": [HI], "prediction": predicted}, 0)
    assert sample.prediction is None
    assert sample.trace.extra == {"prediction": predicted}


def test_an_error_says_where_in_the_record_and_what_was_found():
    cases = [
        ({"messages": [{**HI, "role": "martian"}]}, "messages[0].role: expected one of system, developer, user, ass"),
        ([HI, {"content": "x"}], "messages[1].role: expected one of system, developer, user, ass"),
        ({"messages": [{**HI, "content": 5}]}, "messages[0].content: expected a string or a list of parts, found 5"),
        ({"messages": []}, "contains no messages"),
        (
            {"messages": [assistant(tool_calls=[{"id": "1"}])]},
            "messages[0].tool_calls[0].name: expected a tool name, found nothing",
        ),
        (
            {"messages": [assistant(tool_calls=[function(5, "")])]},
            "messages[0].tool_calls[0].function.name: expected a tool name, found 5",
        ),
        ({"messages": [assistant(tool_calls={})]}, "messages[0].tool_calls: expected a list, found {}"),
        ({"messages": [assistant(tool_calls=[7])]}, "messages[0].tool_calls[0]: expected an object, found 7"),
        ({"messages": [HI, 7]}, "messages[1]: expected an object, found 7"),
        (
            {"messages": [HI], "response": {"choices": [{"index": 0}]}},
            "response.choices[0].message: expected the assistant's message, found nothing",
        ),
        (
            {"request": {"messages": [HI]}, "response": {"choices": [{"message": HI}]}},
            "response.choices[0].message.role",
        ),
        ({"messages": [HI], "label": [5]}, "label: Input should be a valid string, found ['5']"),
        ({"messages": [HI], "references": "one"}, "references: Input should be a list, found 'one'"),
        (
            {"messages": [HI], "reference_tool_calls": [{"name": "f", "args": "oops"}]},
            "reference_tool_calls[0]: arguments of an expected call must be a JSON object, found 'oops'",
        ),
        *(
            (
                {"messages": [{"role": "user", "content": [{"type": kind, "content": "x"}]}]},
                "messages[0].content[0].type: expected a Chat Completions part (try format=anthropic or vercel)",
            )
            for kind in ("tool_result", "tool-call", "tool-result")
        ),
        (5, "the record: expected an object, found 5"),
    ]
    for record, found in cases:
        with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
            READER.sample(record, 0)


RESPONSE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 5,
    "model": "gpt-5-nano",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []},
            "logprobs": {"content": [{"token": "Hello", "logprob": -0.5}]},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
REPLY = AIMessage(
    "Hello",
    id="chatcmpl-1",
    model="gpt-5-nano",
    finish_reason="stop",
    usage=Usage(input_tokens=3, output_tokens=2, extra={"total_tokens": 5}),
    extra={"annotations": []},
)


def samples_of(document: object, reader: OpenAIChatReader = READER) -> list[Sample]:
    assert reader.recognizes(document)
    return [reader.sample(record, index) for index, record in enumerate(reader.records(document))]


def test_the_response_is_the_last_message_after_those_of_the_request():
    [sample] = samples_of({"request": {"model": "gpt-5", "messages": [HI], "temperature": 0}, "response": RESPONSE})
    assert sample.id == sample.trace.id == "chatcmpl-1"
    assert sample.trace.messages == (HumanMessage("Hi"), REPLY)
    assert sample.trace.usage is None
    left = {"object": "chat.completion", "created": 5, "choices": [{"index": 0, "logprobs": ANY}]}
    assert sample.trace.extra == {"request": {"model": "gpt-5", "temperature": 0}, "response": left}


def test_a_request_and_its_response_may_be_written_in_many_ways():
    cases = [
        (RESPONSE, [REPLY], "chatcmpl-1"),
        ({"messages": [HI], **RESPONSE}, [HumanMessage("Hi"), REPLY], "chatcmpl-1"),
        ({"id": "a", "messages": [HI], "response": RESPONSE}, [HumanMessage("Hi"), REPLY], "a"),
        ({"id": {"$oid": "a"}, "messages": [HI], "response": RESPONSE}, [HumanMessage("Hi"), REPLY], "chatcmpl-1"),
        ({"request": {"messages": [HI]}, "response": None}, [HumanMessage("Hi")], "0"),
        ({"request": {"messages": [HI]}, "error": "timeout"}, [HumanMessage("Hi")], "0"),
        (
            {"messages": [HI], "response": {"id": "r", "choices": [{"message": assistant(id="m")}]}},
            [HumanMessage("Hi"), AIMessage(id="m")],
            "m",
        ),
        ({"messages": [HI], "response": "text"}, [HumanMessage("Hi"), AIMessage("text")], "0"),
        ({"messages": [HI], "output": "text"}, [HumanMessage("Hi"), AIMessage("text")], "0"),
        ({"messages": [HI], "system": "s"}, [SystemMessage("s"), HumanMessage("Hi")], "0"),
        ({"messages": [{"role": "system", "content": "t"}], "system": "s"}, [SystemMessage("t")], "0"),
        ({"custom_id": "a", "url": "u", "body": {"messages": [HI]}}, [HumanMessage("Hi")], "a"),
        ({"id": "b", "custom_id": "a", "response": {"status_code": 200, "body": RESPONSE}}, [REPLY], "a"),
        ({"messages": [HI], "choices": ["A", "B"]}, [HumanMessage("Hi")], "0"),
    ]
    for row, messages, identity in cases:
        [sample] = samples_of(row)
        assert (sample.id, list(sample.trace.messages)) == (identity, messages)


@pytest.mark.parametrize("wrapped", [None, "messages", "request"], ids=["response", "flat", "pair"])
@pytest.mark.parametrize(("identity", "name"), [("x", "x"), (None, "[0-9a-f]{12}")])
def test_each_choice_is_a_sample_of_one_group_and_usage_counts_once(forgotten, wrapped, identity, name):
    choices = [{"index": k, "message": assistant(content=f"say {k}"), "finish_reason": "stop"} for k in range(3)]
    document = {**RESPONSE, "id": identity, "choices": choices}
    if wrapped == "messages":
        document = {"messages": [HI], **document}
    elif wrapped:
        document = {"request": {"messages": [HI]}, "response": document}
    samples = samples_of(document)
    assert [sample.trace.response for sample in samples] == ["say 0", "say 1", "say 2"]
    assert [sample.trace.messages[-1].usage for sample in samples] == [REPLY.usage, None, None]
    assert {len(sample.trace.messages) for sample in samples} == {2 if wrapped else 1}
    assert {sample.trace.messages[-1].id for sample in samples} == {identity}
    [group] = {sample.group for sample in samples}
    assert re.fullmatch(name, group)
    assert [sample.id for sample in samples] == [f"{group}#{k}" for k in range(3)]
    assert forgotten(READER, document) == []


def chunk(delta: dict | None = None, identity: str | None = "a", **fields: object) -> dict:
    choice = {"index": 0, "delta": delta, "finish_reason": fields.pop("finish_reason", None)}
    choices = [] if delta is None else [choice]
    return {"id": identity, "object": "chat.completion.chunk", "model": "m", "choices": choices, **fields}


def call_delta(index: int | None, name: str | None = None, arguments: str = "", identity: str | None = None) -> dict:
    call = {"index": index, "id": identity, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


CHUNKS = OpenAIChatChunksReader()
STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "ha"}),
    chunk({"reasoning_content": "ha"}),
    chunk({"content": "Hel"}),
    chunk({"content": "l"}),
    chunk({"content": "l"}),
    chunk({"content": None}, finish_reason="stop"),
    chunk(usage={"prompt_tokens": 3, "completion_tokens": 2}),
]
STREAMED = AIMessage(
    [ReasoningPart("haha"), TextPart("Helll")],
    id="a",
    model="m",
    finish_reason="stop",
    usage=Usage(input_tokens=3, output_tokens=2),
)


@pytest.mark.parametrize(
    "stream",
    [
        STREAM,
        [{**one, "id": ""} if number else one for number, one in enumerate(STREAM)],
        [{"id": "", "choices": [], "object": "", "prompt_filter_results": []}, *STREAM],
        [*STREAM[:-1], chunk({"role": "assistant", "content": ""}, usage=STREAM[-1]["usage"])],
    ],
    ids=["as OpenAI", "id once", "as Azure", "as OpenRouter"],
)
def test_chunks_are_put_together(stream):
    [sample] = samples_of(stream, CHUNKS)
    assert sample.trace.messages == (STREAMED,)
    assert sample.id == "a"


def test_chunks_may_be_the_response_of_a_request():
    [sample] = samples_of({"request": {"messages": [HI]}, "response": STREAM})
    assert sample.trace.messages == (HumanMessage("Hi"), STREAMED)


def test_chunks_of_many_responses_are_told_apart_by_id_and_by_their_ends(tmp_path):
    other = [{**one, "id": "b"} for one in STREAM]
    mixed = [one for pair in zip(STREAM, other, strict=True) for one in pair] + STREAM
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, mixed)))
    samples = list(read(path, on_error="raise"))
    assert [sample.id for sample in samples] == ["a", "b", "a"]
    assert {sample.trace.source.format for sample in samples} == {"openai-chat-chunks"}
    assert [sample.trace.messages[0].content for sample in samples] == [STREAMED.content] * 3


@pytest.mark.parametrize(
    "deltas",
    [
        [call_delta(0, "f", "", "1"), call_delta(0, None, '{"a"'), call_delta(0, None, ": 1}"), call_delta(1, "g")],
        [call_delta(0, "f", '{"a": 1}', "1"), call_delta(0, "g", "", "2")],
        [call_delta(None, "f", '{"a": 1}', "1"), call_delta(None, "g", "", "2")],
        [call_delta(None, "f", '{"a": 1}'), call_delta(None, "g")],
        [
            call_delta(0, "f", '{"a": ', "1"),
            call_delta(1, "g", "{", "2"),
            call_delta(0, "", "1}"),
            call_delta(1, "", "}"),
        ],
        [call_delta(0, "f", '{"a"', "1"), call_delta(0, "f", ": 1}", "1"), call_delta(1, "g", "", "2")],
    ],
    ids=["by index", "one index", "no index", "no index and no id", "mixed", "repeated names"],
)
def test_calls_in_chunks_are_told_apart(deltas):
    [sample] = samples_of([chunk(delta) for delta in deltas], CHUNKS)
    assert [(one.call.name, one.call.args) for one in sample.trace.tool_calls()] == [("f", {"a": 1}), ("g", {})]


F, G, REPEATED = ("f", {"a": 1}), ("g", {"a": 1}), "pieces of calls with one index and no id"


@pytest.mark.parametrize(
    ("deltas", "calls", "unclear"),
    [
        ([call_delta(0, "f", '{"a": 1}'), call_delta(0, "g", '{"a": 1}')], [F, G], 0),
        ([call_delta(0, "f", '{"a": 1}'), call_delta(0, "f", '{"a": 2}')], [F, ("f", {"a": 2})], 0),
        ([call_delta(0, "f", '{"a"'), call_delta(0, None, ": 1}"), call_delta(0, "g", '{"a": 1}')], [F, G], 0),
        (
            [call_delta(0, "f", '{"a"'), call_delta(0, "f", ": 1}"), call_delta(0, "f", '{"a": 2}')],
            [F, ("f", {"a": 2})],
            0,
        ),
        ([call_delta(0, "f", "{}"), call_delta(0, "g", "{}")], [("f", {}), ("g", {})], 0),
        (
            [
                call_delta(0, "f"),
                call_delta(0, "f", '{"a"'),
                call_delta(0, "f", '{"a": 1'),
                call_delta(0, "f", '{"a": 1}'),
            ],
            [F],
            0,
        ),
        ([call_delta(0, "f", '{"a"'), call_delta(0, None, '{"a": 1}'), call_delta(0, "f", '{"a": 1}')], [F], 0),
        (
            [call_delta(0, "f", '{"a"', "1"), call_delta(0, "f", '{"a": 1}', "1"), call_delta(0, "f", '{"a": 1}', "1")],
            [F],
            0,
        ),
        ([call_delta(0, "f", '{"a": 1}'), call_delta(0, "f", '{"a": 1}')], [F], 1),
        ([call_delta(0, "f"), call_delta(0, "g")], [("fg", {})], 1),
        ([call_delta(0, "f", "", "1"), call_delta(0, "g", '{"a": 1}')], [("fg", {"a": 1})], 0),
    ],
    ids=[
        *("two", "one name", "in pieces", "repeated names", "no arguments", "cumulative", "cumulative and repeated"),
        *("cumulative with ids", "once or twice", "two names or one", "a name in pieces"),
    ],
)
def test_calls_in_chunks_of_one_index_are_told_apart_or_said_to_be_unclear(deltas, calls, unclear):
    [sample] = samples_of([chunk(delta) for delta in deltas], CHUNKS)
    assert [(one.call.name, one.call.args) for one in sample.trace.tool_calls()] == calls
    told = [warning.message for warning in sample.trace.warnings if warning.message.startswith(REPEATED)]
    assert [message.rpartition(" ")[2] for message in told] == [str(unclear)] * bool(unclear)
    assert "unclear" not in sample.model_dump_json(exclude={"trace": {"warnings"}})


def test_the_same_choices_for_two_requests_are_two_groups():
    choices = [{"message": assistant(content=text)} for text in ("yes", "no")]
    rows = [{"messages": [{**HI, "content": text}], "choices": choices} for text in ("1 < 2?", "2 < 1?")]
    assert len({sample.group for sample in samples_of(rows)}) == 2


def test_streamed_choices_are_samples_of_one_group():
    stream = [chunk({"content": text}) for text in ("a", "b", "c", "d")]
    for number, one in enumerate(stream):
        one["choices"][0]["index"] = number % 2
    samples = samples_of(stream, CHUNKS)
    assert [(sample.id, sample.group, sample.trace.response) for sample in samples] == [
        ("a#0", "a", "ac"),
        ("a#1", "a", "bd"),
    ]


def test_usage_that_is_told_again_in_each_chunk_counts_once_and_nothing_is_forgotten(forgotten):
    stream = [
        {**one, "usage": {"prompt_tokens": 3, "completion_tokens": number}, "obfuscation": "x" * number}
        for number, one in enumerate([*STREAM, chunk(call_delta(0, "f", '{"a": [1]}', "1"))])
    ]
    [sample] = samples_of(stream[:-2], CHUNKS)
    assert sample.trace.messages[0].usage == Usage(input_tokens=3, output_tokens=6)
    for one in stream:  # ids and lengths that only hold a stream together are not values
        del one["id"]
    assert [path for path in forgotten(CHUNKS, stream, most=60) if not path.endswith((".index", ".role"))] == []


def test_a_stream_that_is_not_whole_says_so(no_question):
    stream = [*STREAM[:-2], chunk(None, error={"message": "x"})]
    expected = ["the stream ends before the response is complete", "the response reports an error: {'message': 'x'}"]
    pair = {"request": {"messages": [HI]}, "response": stream}
    for document, reader, unasked in ((stream, CHUNKS, [no_question.message]), (pair, READER, [])):
        [sample] = samples_of(document, reader)
        assert [warning.message for warning in sample.trace.warnings] == [*expected, *unasked]
        assert "breaks_off" not in str(sample.trace.extra)


def thought(text: str) -> dict:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("deltas", "parts"),
    [
        (
            [{"content": [thought("a ")]}, {"content": [thought("b")]}, {"content": "c "}, {"content": "d"}],
            [("reasoning", "a b"), ("text", "c d")],
        ),
        (
            [
                *({"thinking_blocks": [{"type": "thinking", "thinking": text}]} for text in ("a ", "b")),
                {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "s"}]},
                {"thinking_blocks": [{"type": "thinking", "thinking": "c"}]},
                {"content": "d"},
            ],
            [("reasoning", "a b"), ("reasoning", "c"), ("text", "d")],
        ),
    ],
    ids=["as Mistral", "as litellm"],
)
def test_parts_that_are_streamed_piece_by_piece_are_joined(deltas, parts):
    [sample] = samples_of([chunk(delta) for delta in deltas], CHUNKS)
    assert [(part.type, part.text) for part in sample.trace.messages[0].content] == parts


@pytest.mark.parametrize(
    ("document", "found"),
    [([chunk({}), 5], "[1]: expected a chunk, found 5"), ([chunk(None, None)], "contains no messages")],
)
def test_chunks_of_no_response_are_an_error(document, found):
    with pytest.raises(TraceError, match=f"^{re.escape(found)}$"):
        CHUNKS.records(document)


def test_what_stands_beside_an_answered_conversation_is_named_in_a_warning():
    cases = [
        ("output", "It was sent.", "messages or tool calls not read, found 1"),
        ("output_message", {"role": "assistant", "content": "x"}, "messages or tool calls not read, found "),
        ("ideal", "4", "the column 'ideal' is not read; to read it as reference: --column ideal=reference"),
        (
            "expected",
            [{"name": "f", "args": {}}],
            "the column 'expected' is not read; to read it as reference_tool_calls: --column expected=reference_tool",
        ),
        (
            "reference_toolcalls",
            [{"name": "f", "args": {}}],
            "the column 'reference_toolcalls' is not read; to read it as reference_tool_calls: --column reference_tool",
        ),
        ("refrence", "4", "the column 'refrence' is not read; to read it as reference: --column refrence=reference"),
        ("scores", {"correct": 1}, "the column 'scores' is not read, although other evaluation systems use it"),
        ("history", [HI, {**HI, "content": "Before"}], "messages or tool calls not read, found 1"),
        ("metadata", {"calls": [{"tool_calls": [{"function": {"name": "f"}}]}]}, "messages or tool calls not read"),
    ]
    for column, value, found in cases:
        row = {"messages": [HI, {"role": "assistant", "content": "Hello"}], column: value}
        [warning] = READER.sample(row, 0).trace.warnings
        assert (warning.message[: len(found)], warning.path) == (found, column)


def test_a_text_that_may_be_the_answer_is_named():
    [warning] = READER.sample({"messages": [HI], "bot_said": "Hello to you"}, 0).trace.warnings
    assert warning.message == "no final answer, and the text of 'bot_said' is not read"


@pytest.mark.parametrize("response", ['{"choices": [{"message": {"role": "assistant"}}]}', "{}"])
def test_json_text_beside_messages_is_no_answer_but_named(response):
    trace = READER.sample({"messages": [HI], "response": response}, 0).trace
    assert len(trace.messages) == 1
    assert [warning.path for warning in trace.warnings] == ["response"]


def test_whether_a_tool_failed_is_known_where_a_recorder_says_so():
    failed = {"role": "tool", "tool_call_id": "1", "content": "boom", "is_error": True}
    assert READER.sample([HI, failed], 0).trace.messages[-1].is_error is True


@pytest.mark.parametrize("field", ["items", "blocks", "body", "utterance"])
def test_an_empty_message_with_a_text_elsewhere_is_named(field):
    said = [{"content_type": "text", "text": "Hello you"}] if field in ("items", "blocks") else "Hello you"
    [warning] = READER.sample([{"role": "user", field: said}, {"role": "assistant", "content": "Yo"}], 0).trace.warnings
    assert warning == TraceWarning("messages or tool calls not read, found 1", path="messages[0].extra")


@pytest.mark.parametrize(
    "extra",
    [
        {"function_calls": [{"name": "f", "arguments": "{}"}]},
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}, "params": {"a": 1}}]},
        {"content": None, "tool_calls": [{"id": "1", "name": "f", "kwargs": {"a": 1}}]},
        {"steps": [{"action": {"tool_name": "f", "tool_input": {"a": 1}}}]},
        {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}", "response": "21C"}}]},
    ],
)
def test_calls_and_results_in_unknown_places_of_a_message_are_named(extra):
    trace = READER.sample([HI, {"role": "assistant", "content": "Hello", **extra}], 0).trace
    assert [warning.path for warning in trace.warnings] == ["messages[1].extra"]


def test_what_repeats_the_conversation_is_kept_without_a_word():
    said = {"role": "assistant", "content": "Hello"}
    row = {"messages": [HI, said], "output": "Hello", "prompt": "Hi", "history": [HI], "last": said}
    assert READER.sample(row, 0).trace.warnings == ()


@pytest.mark.parametrize("response", [{"error": {"message": "boom"}}, [{"type": "ping"}]])
def test_an_answer_that_cannot_be_read_is_told(response):
    asked = [{"role": "user", "content": "Hi"}]
    for row in ({"request": {"messages": asked}, "response": response}, {"messages": asked, "response": response}):
        (warning,) = READER.sample(row, 0).trace.warnings
        assert (warning.message[:18], warning.path) == ("contains no answer", "response")
    answered = [*asked, {"role": "assistant", "content": "Hello"}]
    assert not READER.sample({"messages": answered, "response": {"latency": 1}}, 0).trace.warnings


def test_a_custom_id_beside_messages_is_no_batch():
    row = {"custom_id": "k", "messages": [{"role": "user", "content": "Hi"}], "params": {"temperature": 0}}
    (record,) = READER.records(row)
    assert [message.text for message in READER.sample(record, 0).trace.messages] == ["Hi"]


def with_ids(stream: list[dict], name: str, last: str | None = None) -> list[dict]:
    """Return a stream whose chunks each have an id of their own. All streams may share the last one's."""
    own = [{**one, "id": f"{name}{number}"} for number, one in enumerate(stream)]
    return own if last is None else [*own[:-1], {**own[-1], "id": last}]


GROQ = [
    chunk({"reasoning": "To find"}),
    chunk({"reasoning": " it"}),
    chunk({"executed_tools": [{"index": 0, "type": "search", "arguments": "{}"}]}),
    chunk({"executed_tools": [{"index": 0, "type": "search", "arguments": "{}", "output": "12C"}]}),
    chunk({"content": "It is "}),
    chunk({"content": "12C."}),
    chunk({}, finish_reason="stop", x_groq={"usage": {"prompt_tokens": 5}}),
]
MIXED = "chunks with different ids, read as one response; responses streamed at the same time get mixed"


def told(sample: Sample) -> list[str]:
    return [one.message for one in sample.trace.warnings]


def test_chunks_with_an_id_each_are_one_response_to_their_request(forgotten):
    document = {"request": {"messages": [HI]}, "response": with_ids(GROQ, "a", "stub")}
    [sample] = samples_of(document)
    [asked, answer] = sample.trace.messages
    assert (asked, answer.text, answer.id, answer.finish_reason) == (HumanMessage("Hi"), "It is 12C.", "a0", "stop")
    assert answer.content[0] == ReasoningPart("To find it")
    assert [one.get("output") for one in answer.extra["executed_tools"]] == [None, "12C"]
    assert (sample.id, told(sample)) == ("a0", [])
    assert forgotten(READER, document) == []


@pytest.mark.parametrize("last", [None, "stub"])
def test_chunks_with_an_id_each_are_told_apart_by_their_ends_and_that_is_told(tmp_path, last):
    lines = [*with_ids(GROQ, "a", last), *STREAM, *with_ids(GROQ, "b", last), *with_ids(STREAM, "c")]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    samples = list(read(path, on_error="raise"))
    assert [sample.trace.response for sample in samples] == ["It is 12C.", "Helll", "It is 12C.", "Helll"]
    assert [MIXED in told(sample) for sample in samples] == [True, False, True, True]


def test_chunks_with_an_id_each_begin_a_response_with_their_first_choice_after_an_end():
    second = [{**one, "model": "m2"} for one in STREAM]  # its first chunk only has the role, its last only the usage
    lines = [*with_ids(STREAM, "a"), *with_ids(second, "b")]
    answers = [sample.trace.messages[-1] for sample in samples_of(lines, CHUNKS)]
    assert [(one.id, one.model, one.text) for one in answers] == [("a0", "m", "Helll"), ("b0", "m2", "Helll")]
    assert [one.usage.input_tokens for one in answers] == [3, 3]


def test_a_list_of_chunks_is_a_stream_of_its_own():
    broken_off = with_ids(GROQ[:-1], "a")
    first, second = samples_of([broken_off, with_ids(GROQ, "b", "stub")], CHUNKS)
    assert (first.trace.response, second.trace.response) == ("It is 12C.", "It is 12C.")
    assert "the stream ends before the response is complete" in told(first)


def test_a_response_of_one_chunk_between_those_of_others_stays_whole():
    whole = chunk({"role": "assistant", "content": "Yes"}, "c", finish_reason="stop")
    other = [{**one, "id": "b"} for one in STREAM]
    mixed = [one for pair in zip(STREAM, other, strict=True) for one in (pair[0], whole, pair[1])]
    document = [one if one is not whole else {**whole, "id": f"c{number}"} for number, one in enumerate(mixed)]
    texts = Counter(sample.trace.response for sample in samples_of(document, CHUNKS))
    assert texts == {"Helll": 2, "Yes": len(STREAM)}


def test_responses_of_one_chunk_each_stay_apart_also_where_nothing_is_said():
    whole = [
        chunk({"role": "assistant", "content": text}, text or "x", finish_reason="stop") for text in ("a", "", "b")
    ]
    samples = samples_of(whole, CHUNKS)
    assert [(sample.id, sample.trace.response) for sample in samples] == [("a", "a"), ("x", ""), ("b", "b")]
    assert MIXED not in told(samples[0])


def test_an_id_that_is_none_is_told_once():
    (sample,) = samples_of({"id": True, "messages": [HI, assistant(content="Hello")]})
    assert (sample.id, sample.trace.extra) == ("0", {"id": True})
    assert sample.trace.warnings == (TraceWarning("expected an id, found True; kept as is", path="id"),)
    empty, number = (
        samples_of(
            {
                "id": given,
                "messages": [HI],
                "response": {"id": "r1", "choices": [{"message": assistant(content="Hello")}]},
            }
        )[0].id
        for given in ("", 0)
    )
    assert (empty, number) == ("r1", "0")


def test_nothing_is_forgotten_and_nothing_crashes(intact, crashes):
    row = {"messages": [found for found, _ in MESSAGES.values()], "tools": [{"function": {"name": "f"}}], "model": "m"}
    intact(READER, row, {"request": row, "response": RESPONSE})
    assert crashes(CHUNKS, STREAM) == []

"""Conversations with Anthropic's API."""

import json

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.anthropic import AnthropicReader, AnthropicStreamReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import ToolDefinition

READER = AnthropicReader()
HI = {"role": "user", "content": "Hi"}
CALLING = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]}
ANSWER = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "one", "is_error": True}]}
REQUEST = {
    "model": "claude-x",
    "max_tokens": 9,
    "system": "Be brief",
    "messages": [HI, CALLING, ANSWER],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "temperature": 0.5,
}
RESPONSE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-1",
    "content": [{"type": "text", "text": "It failed."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2, "service_tier": "standard"},
}
EVENTS = [
    {"type": "message_start", "message": {**RESPONSE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "failed."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
ASKED = [
    SystemMessage("Be brief"),
    HumanMessage("Hi"),
    AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1")]),
    ToolMessage("one", tool_call_id="1", is_error=True),
]
SAID = AIMessage(
    "It failed.",
    id="msg_1",
    model="claude-x-1",
    finish_reason="end_turn",
    usage=Usage(
        input_tokens=7,
        output_tokens=2,
        cached_tokens=4,
        extra={"input_tokens": 3, "cache_read_input_tokens": 4, "service_tier": "standard"},
    ),
)
PAIR = {"request": REQUEST, "response": RESPONSE}
DOCUMENTS = {
    "request": (REQUEST, [ASKED]),
    "response": (RESPONSE, [[SAID]]),
    "pair": (PAIR, [[*ASKED, SAID]]),
    "pair with a streamed response": ({"request": REQUEST, "response": EVENTS}, [[*ASKED, SAID]]),
    "pair with several streams": ({"request": REQUEST, "response": EVENTS * 2}, [[*ASKED, SAID, SAID]]),
    "pair with an error": ({"request": REQUEST, "response": {"type": "error", "error": {"message": "x"}}}, [ASKED]),
    "messages": ([HI, CALLING, ANSWER], [ASKED[1:]]),
    "messages with a response among them": ([HI, RESPONSE], [[HumanMessage("Hi"), SAID]]),
    "row": ({"messages": [HI, CALLING, ANSWER]}, [ASKED[1:]]),
    "requests": ([REQUEST, REQUEST], [ASKED, ASKED]),
    "responses": ([RESPONSE, RESPONSE], [[SAID], [SAID]]),
    "lists of messages": ([[HI, CALLING], [HI]], [ASKED[1:3], ASKED[1:2]]),
    "text alone with instructions beside": (
        {"messages": [HI], "system": [{"type": "text", "text": "Be brief"}]},
        [ASKED[:2]],
    ),
    "text alone for a model of theirs": ({"messages": [HI], "max_tokens": 9, "model": "claude-x"}, [ASKED[1:2]]),
    "text alone through Bedrock": ({"messages": [HI], "anthropic_version": "bedrock-2023-05-31"}, [ASKED[1:2]]),
}


def test_requests_and_responses_are_read():
    for document, conversations in DOCUMENTS.values():
        assert detect(document).name == "anthropic"
        samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
        assert [[*sample.trace.messages] for sample in samples] == conversations
        assert [sample.id for sample in samples] == [str(index) for index in range(len(samples))]


def test_parameters_and_tools_of_the_request_come_along():
    trace = READER.sample({"id": 7, **PAIR, "reference": "ok"}, 0).trace
    assert trace.id == "7"
    assert trace.tools == (ToolDefinition("f", parameters={"type": "object"}),)
    assert trace.extra == {"request": {"model": "claude-x", "max_tokens": 9, "temperature": 0.5}}
    assert trace.warnings == ()


def test_a_request_without_messages_is_refused():
    with pytest.raises(TraceError, match="messages: expected messages, found"):
        READER.sample({"messages": [], "anthropic_version": "x"}, 0)


def test_a_line_of_a_batch_is_named_by_its_custom_id():
    lines = [
        {"custom_id": "a", "params": REQUEST},
        {"custom_id": "b", "result": {"type": "succeeded", "message": RESPONSE}},
    ]
    assert detect(lines[0]).name == detect(lines[1]).name == "anthropic"
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(lines))]
    assert [sample.id for sample in samples] == ["a", "b"]
    assert [[*sample.trace.messages] for sample in samples] == [ASKED, [SAID]]
    assert samples[1].trace.extra == {"batch": {"result": {"type": "succeeded"}}}


@pytest.mark.parametrize(
    ("events", "problems"),
    [
        (EVENTS, []),
        ([{"type": "ping"}, *EVENTS], []),
        (EVENTS[:4], ["the stream ends before the response is complete"]),
        (
            [*EVENTS[:4], {"type": "error", "error": {"type": "overloaded_error"}}],
            [
                "the stream reports an error: {'type': 'overloaded_error'}",
                "the stream ends before the response is complete",
            ],
        ),
        (
            [*EVENTS[:4], {"type": "text", "text": "failed.", "snapshot": "It failed."}, *EVENTS[4:]],
            ["1 SDK events that repeat API events, dropped"],
        ),
    ],
    ids=["whole", "ping before", "broken off", "error", "of the SDK"],
)
def test_a_stream_that_is_not_whole_says_so(events, problems, no_question):
    assert AnthropicStreamReader().records([]) == []
    [record] = AnthropicStreamReader().records(events)
    streamed = AnthropicStreamReader().sample(record, 0).trace
    paired = READER.sample({"request": REQUEST, "response": events}, 0).trace
    for trace, unasked in ((streamed, [no_question.message]), (paired, [])):
        assert trace.messages[-1].text == "It failed."
        assert [warning.message for warning in trace.warnings] == [*problems, *unasked]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "lists.jsonl", "lists.json"])
def test_recorded_events_are_responses_one_after_another(tmp_path, name):
    path = tmp_path / name
    both = [EVENTS, EVENTS] if name.startswith("lists") else [*EVENTS, *EVENTS]
    path.write_text(json.dumps(both) if name.endswith(".json") else "\n".join(map(json.dumps, both)))
    assert [sample.trace.messages for sample in read(path)] == [(SAID,), (SAID,)]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, PAIR, [REQUEST, RESPONSE])
    intact(AnthropicStreamReader(), [{"type": "message_start", "message": RESPONSE}, *EVENTS[2:4]])

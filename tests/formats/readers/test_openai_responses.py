"""Conversations with OpenAI's Responses API."""

import json

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.openai_responses import OpenAIResponsesReader, OpenAIResponsesStreamReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import ToolDefinition

READER = OpenAIResponsesReader()
STREAM = OpenAIResponsesStreamReader()
HI = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "id": "fc", "call_id": "1", "name": "f", "arguments": '{"a": 1}'}
RESULT = {"type": "function_call_output", "call_id": "1", "output": "2"}
SAID = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}
REQUEST = {
    "model": "gpt-5",
    "instructions": "Be brief",
    "input": [HI, CALL, RESULT],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
    "temperature": 0.5,
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 0,
    "model": "gpt-5-nano",
    "status": "completed",
    "instructions": None,
    "output": [{"type": "reasoning", "id": "rs", "summary": []}, SAID],
    "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
    "tools": [],
}
EVENTS = [
    {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Do"},
    {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": SAID},
    {"type": "response.completed", "sequence_number": 3, "response": RESPONSE},
]
SHAPES = {
    "a request": REQUEST,
    "a request of one text": {"model": "m", "input": "Hi", "instructions": "x"},
    "a request of texts": {"model": "m", "input": [HI]},
    "a response": RESPONSE,
    "a pair": {"request": REQUEST, "response": RESPONSE},
    "a pair with a stream": {"request": REQUEST, "response": EVENTS},
    "a pair with an error": {"request": REQUEST, "response": {"error": "Error: 400"}},
    "a row of items": {"input": [HI, SAID], "reference": "r"},
    "a row of texts with a reference": {"input": [HI], "reference": "r"},
    "items as messages": {"messages": [HI, CALL, RESULT]},
    "a list of items": [HI, CALL, RESULT, SAID],
    "a list of lists": [[HI, SAID], [HI, SAID]],
    "a list of rows": [REQUEST, REQUEST],
}


def sample(record: object):
    return READER.sample(record, 0)


def test_each_shape_is_recognized_and_read_without_a_loss(forgotten, crashes):
    for document in SHAPES.values():
        assert detect(document).name == "openai-responses"
        for record in READER.records(document):
            assert sample(record).trace.messages
        # A stream's events repeat each other; the response holds all of them.
        assert all(place.startswith(".response[") for place in forgotten(READER, document))
        assert crashes(READER, document) == []
    assert crashes(STREAM, EVENTS) == []


def test_a_pair_is_one_conversation():
    made = sample({"request": REQUEST, "response": RESPONSE})
    assert made.id == "resp_1"
    system, human, call, result, answer = made.trace.messages
    assert (system, human) == (SystemMessage("Be brief"), HumanMessage("Hi"))
    assert (call, result) == (
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1", extra={"id": "fc"})]),
        ToolMessage("2", tool_call_id="1"),
    )
    assert (answer.text, answer.model, answer.finish_reason) == ("Done", "gpt-5-nano", "completed")
    assert answer.usage == Usage(input_tokens=9, output_tokens=5, extra={"total_tokens": 14})
    assert made.trace.usage is None
    assert made.trace.tools == (ToolDefinition("f", parameters={"type": "object"}, extra={"strict": True}),)
    assert made.trace.extra == {
        "request": {"model": "gpt-5", "temperature": 0.5},
        "response": {"object": "response", "tools": []},
    }


FAILED = {**RESPONSE, "status": "failed", "output": [], "error": {"code": "server_error"}}


@pytest.mark.parametrize("response", [{"error": {"code": "server_error"}}, FAILED])
def test_a_request_that_failed_keeps_its_error_and_nobody_answers(response):
    trace = sample({"request": REQUEST, "response": response}).trace
    assert trace.messages[-1].role == "tool"
    assert trace.extra["response"]["error"] == {"code": "server_error"}
    told = [(one.message, one.path) for one in trace.warnings]
    assert told == [("contains no answer: {'code': 'server_error'}", "response")]
    with pytest.raises(TraceError, match=r"contains no answer: {'code': 'server_error'}"):
        sample(FAILED)


def test_a_response_is_named_by_its_source_and_those_of_a_conversation_are_a_group():
    cases = [
        ([HI, SAID], "0", None),
        (RESPONSE, "resp_1", None),
        ({"id": "row", "request": REQUEST, "response": RESPONSE}, "row", None),
        ({**REQUEST, "conversation": {"id": "conv_1"}}, "0", "conv_1"),
        ({**REQUEST, "conversation": "conv_1"}, "0", "conv_1"),
        ({**RESPONSE, "conversation": {"id": "conv_1"}}, "resp_1", "conv_1"),
        ({"request": REQUEST, "response": {**RESPONSE, "conversation": {"id": "conv_1"}}}, "resp_1", "conv_1"),
    ]
    for record, identity, group in cases:
        made = sample(record)
        assert (made.id, made.group) == (identity, group)


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt"])
def test_history_that_stands_with_the_provider_is_told(name):
    trace = sample({**REQUEST, name: "it"}).trace
    [warning] = trace.warnings
    assert warning.message == f"part of the history is not in the file, only this {name}"
    assert warning.path == name
    assert trace.extra[name] == "it"


USE = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
FOREIGN = {
    "a call of Anthropic's as an item": (USE, "unknown item type 'tool_use', kept as is"),
    "a result of Anthropic's as an item": (
        {"type": "tool_result", "tool_use_id": "1", "content": "x"},
        "unknown item type 'tool_result', kept as is",
    ),
    "a call of Anthropic's as a part": (
        {"role": "assistant", "content": [USE]},
        "unreadable part of type 'tool_use', kept as is",
    ),
    "a result of Anthropic's as a part": (
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
        "unreadable part of type 'tool_result', kept as is",
    ),
    "unreadable part without a type": (
        {"role": "user", "content": [{"text": "x"}]},
        "unreadable part without a type, kept as is",
    ),
    "calls of Chat Completions": (
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        "Chat Completions calls, which do not belong in an item; kept as is",
    ),
}


def test_items_and_parts_of_other_apis_are_told():
    for item, told in FOREIGN.values():
        for wrapped in [lambda items: items, lambda items: {**REQUEST, "input": items}]:
            trace = sample(wrapped([HI, CALL, RESULT, item])).trace
            [warning] = trace.warnings
            assert warning.message == told
            assert warning.path.startswith("input[3]")


@pytest.mark.parametrize("empty", [{"model": "m", "input": []}, {"object": "response", "output": []}, []])
def test_a_conversation_without_messages_is_refused(empty):
    with pytest.raises(TraceError, match=r"input: expected messages in input or output"):
        sample(empty)


@pytest.mark.parametrize("lines", [EVENTS + EVENTS, [EVENTS, EVENTS], [{"type": "keepalive"}, *EVENTS, *EVENTS]])
def test_a_stream_in_lines_is_as_good_as_its_response(tmp_path, lines, no_question):
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    samples = list(read(path, on_error="raise"))
    expected = sample(RESPONSE).trace.messages
    assert [made.trace.messages for made in samples] == [expected, expected]
    assert samples[0].trace.source.format == "openai-responses-stream"
    told = [warning.message for warning in samples[-1].trace.warnings]
    assert told == ["4 streamed events; only finished items are kept", no_question.message]


def test_a_stream_that_breaks_off_keeps_what_was_finished():
    trace = STREAM.sample(EVENTS[:3], 0).trace
    assert trace.messages[-1].text == "Done"
    assert "the stream ends before the response is complete" in trace.warnings[0].message
    told = STREAM.sample([*EVENTS[:3], {"type": "error", "message": "x"}], 0).trace.warnings[0].message
    assert "an error: {'type': 'error', 'message': 'x'}" in told


@pytest.mark.parametrize("document", [EVENTS, [EVENTS[-1]], EVENTS[-1], [{"type": "keepalive"}, *EVENTS]])
def test_events_are_not_taken_for_pairs(document):
    assert detect(document).name == "openai-responses-stream"


def test_the_list_of_the_agents_sdk(shared_data, lost):
    """A handoff, then two parallel calls. One of them failed, which this list does not record."""
    path = shared_data / "traces/openai-agents/openai_agents_to_input_list.json"
    [made] = read(path, on_error="raise")
    assert made.trace.source.format == "openai-responses"
    assert [message.role for message in made.trace.messages] == [
        "user",
        *["assistant", "tool"] * 2,
        "tool",
        "assistant",
    ]
    assert [call.call.name for call in made.trace.tool_calls()] == ["transfer_to_billing", "get_weather2", "fails"]
    assert {message.is_error for message in made.trace.messages if message.role == "tool"} == {None}
    assert made.trace.warnings == ()
    gone = lost({"input": json.loads(path.read_text())}, made)
    assert {place.rpartition(".")[2] for place in gone} <= {"type", "arguments"}


def test_the_events_of_several_responses_in_a_pair_are_all_read():
    def events(text: str) -> list[dict]:
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        whole = {"id": text, "object": "response", "status": "completed", "output": [message]}
        return [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
            {"type": "response.completed", "response": whole},
        ]

    made = sample({"request": {"model": "m", "input": "q"}, "response": [*events("one"), *events("two")]})
    assert made.trace.messages[0].text == "q"
    assert made.trace.response == "one\ntwo"


def spoken(role: str, *parts: dict) -> dict:
    return {"object": "realtime.item", "type": "message", "role": role, "content": list(parts)}


def test_what_is_spoken_in_realtime_is_text_and_its_response_ends():
    question = spoken(
        "user", {"type": "input_audio", "transcript": "Where is it?"}, {"type": "input_audio", "transcript": None}
    )
    answer = spoken(
        "assistant",
        {"type": "output_audio", "transcript": "On its way.", "audio": "UklG"},
        {"type": "audio", "transcript": ""},
    )
    call = {"object": "realtime.item", "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"object": "realtime.response", "status": "completed", "output": [call, answer]}
    events = [
        {"type": "response.created", "response": {"object": "realtime.response"}},
        {"type": "response.done", "response": done},
    ]
    assert detect(events).name == "openai-responses-stream"
    trace = STREAM.sample(events, 0).trace
    assert trace.warnings[0].message == "2 streamed events; only finished items are kept"
    [message] = trace.messages
    assert (message.text, message.tool_calls[0].name, message.finish_reason) == ("On its way.", "f", "completed")
    assert [part.type for part in message.content] == ["text", "media", "media"]
    assert detect(done).name == detect([question, answer]).name == "openai-responses"
    assert [message.text for message in READER.sample([question, answer], 0).trace.messages] == [
        "Where is it?",
        "On its way.",
    ]

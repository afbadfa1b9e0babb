"""Messages of pydantic-ai."""

import re
from datetime import UTC, datetime

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.pydantic_ai import PydanticAIReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from judgekit.traces.trace import Trace

READER = PydanticAIReader()
SAID = {"content": "weather?", "timestamp": "2026-01-01T00:00:00Z", "part_kind": "user-prompt"}
CALL = {"tool_name": "weather", "args": '{"city": "a"}', "tool_call_id": "c1", "part_kind": "tool-call", "id": None}
RETURN = {"tool_name": "weather", "content": {"rain": 1}, "tool_call_id": "c1", "part_kind": "tool-return"}


def request(*parts: dict, **more: object) -> dict:
    return {"kind": "request", "parts": list(parts), **more}


def response(*parts: dict, **more: object) -> dict:
    return {"kind": "response", "parts": list(parts), **more}


def trace_of(*messages: dict) -> Trace:
    return READER.sample(list(messages), 0).trace


CONVERSATION = [
    request(
        {"content": "sys", "part_kind": "system-prompt"}, SAID, instructions="be kind", conversation_id="C", run_id="r"
    ),
    response(
        {"content": "hm", "signature": "s", "part_kind": "thinking"},
        {"content": "Let me see", "part_kind": "text"},
        CALL,
        usage={
            "input_tokens": 52,
            "output_tokens": 9,
            "cache_read_tokens": 5,
            "cache_write_tokens": 1,
            "details": {"reasoning_tokens": 3},
        },
        model_name="m",
        finish_reason="tool_call",
        provider_name="openai",
        provider_response_id="resp",
        timestamp="2026-01-01T00:00:01Z",
        conversation_id="C",
    ),
    request({**RETURN, "outcome": "success"}, instructions="be kind"),
    response({"content": "Rain", "part_kind": "text"}),
    request({**SAID, "content": "thanks"}, instructions="be brief"),
]


def test_a_conversation_is_read_as_ours():
    sample = READER.sample(CONVERSATION, 0)
    assert sample.id == "C"
    assert sample.trace.messages == (
        SystemMessage("be kind", extra={"request": {"conversation_id": "C", "run_id": "r"}}),
        SystemMessage("sys"),
        HumanMessage("weather?", timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
        AIMessage(
            [ReasoningPart("hm", extra={"signature": "s"}), TextPart("Let me see")],
            id="resp",
            timestamp=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
            tool_calls=[ToolCall("weather", {"city": "a"}, id="c1")],
            model="m",
            finish_reason="tool_call",
            usage=Usage(
                input_tokens=52, output_tokens=9, cached_tokens=5, reasoning_tokens=3, extra={"cache_write_tokens": 1}
            ),
            extra={"provider_name": "openai", "conversation_id": "C"},
        ),
        ToolMessage('{"rain": 1}', tool_call_id="c1", name="weather", is_error=False),
        AIMessage("Rain"),
        SystemMessage("be brief"),
        HumanMessage("thanks", timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
    )


@pytest.mark.parametrize(
    ("part", "is_error"),
    [
        (RETURN, None),
        ({**RETURN, "outcome": "success"}, False),
        ({**RETURN, "outcome": "retried", "retry": {"attempt": 1}}, True),
        ({**RETURN, "outcome": "failed"}, True),
        ({**RETURN, "outcome": "denied"}, True),
        ({**RETURN, "part_kind": "retry-prompt", "content": [{"msg": "bad"}]}, True),
    ],
)
def test_a_result_failed_where_its_version_says_so(part, is_error):
    [*_, result] = trace_of(response(CALL), request(part)).messages
    assert (result.role, result.tool_call_id, result.is_error) == ("tool", "c1", is_error)


@pytest.mark.parametrize("kind", ["retry-prompt", "retry-feedback"])
def test_what_the_library_says_of_an_answer_of_no_use_is_said_to_the_agent_and_no_result(kind):
    [*_, said] = trace_of(response(CALL), request({"content": "No.", "part_kind": kind, "tool_call_id": "x"})).messages
    assert said == HumanMessage("No.", extra={"part_kind": kind, "tool_call_id": "x"})


@pytest.mark.parametrize("name", ["final_result", "final_result_City", "custom"])
def test_an_output_tool_gives_the_answer_and_makes_no_call(name):
    processed = {**RETURN, "tool_name": name, "content": "Final result processed."}
    trace = trace_of(response({**CALL, "tool_name": name, "args": {"city": "Rome"}}), request(processed))
    assert trace.response == '{"city": "Rome"}'
    assert trace.tool_calls() == ()
    assert trace.messages[0].content[0].extra == {"tool_name": name, "tool_call_id": "c1"}
    assert trace.extra["messages"][1]["parts"] == [processed]


@pytest.mark.parametrize("outcome", [None, "success"])
def test_an_answer_that_was_not_used_is_neither_an_answer_nor_answered(outcome):
    call = {**CALL, "tool_name": "final_result"}
    first, second = ({**call, "args": {"city": city}, "tool_call_id": city} for city in "ab")
    processed, unused = (
        {**RETURN, "tool_name": "final_result", "tool_call_id": identity, "content": content, "outcome": outcome}
        for identity, content in (("a", "Final result processed."), ("b", "Output tool not used - ..."))
    )
    trace = trace_of(response(first, second), request(processed, unused))
    [message] = trace.messages
    assert message.text == '{"city": "a"}'
    assert message.content[1].data["tool_call_id"] == "b"
    assert [part["content"] for part in trace.extra["messages"][1]["parts"]] == [
        processed["content"],
        unused["content"],
    ]


def test_an_answer_that_was_not_valid_is_answered_by_words():
    output = {**CALL, "tool_name": "final_result", "args": {"city": 1}}
    refused = {**RETURN, "tool_name": "final_result", "content": [{"msg": "no text"}], "outcome": "retried"}
    roles = [message.role for message in trace_of(response(output), request(refused), response(output)).messages]
    assert roles == ["assistant", "user", "assistant"]


def test_tools_of_the_provider_stand_within_its_reply():
    search = {"tool_name": "web_search", "args": {"q": 1}, "tool_call_id": "w", "part_kind": "builtin-tool-call"}
    found = {"tool_name": "web_search", "content": "hit", "tool_call_id": "w", "part_kind": "builtin-tool-return"}
    assert trace_of(response(search, found, {"content": "So", "part_kind": "text"}, model_name="m")).messages == (
        AIMessage(tool_calls=[ToolCall("web_search", {"q": 1}, id="w", metadata={"executor": "provider"})], model="m"),
        ToolMessage("hit", tool_call_id="w", name="web_search"),
        AIMessage("So", model="m"),
    )


CONTENTS = {
    "text": ("x", TextPart("x")),
    "text content": ({"kind": "text-content", "content": "x"}, TextPart("x")),
    "url": (
        {"kind": "image-url", "url": "http://i", "media_type": "image/png", "identifier": "1"},
        MediaPart(kind="image", url="http://i", mime_type="image/png", extra={"identifier": "1"}),
    ),
    "document": ({"kind": "document-url", "url": "http://d"}, MediaPart(kind="file", url="http://d")),
    "binary": (
        {"kind": "binary", "data": "YWI=", "media_type": "audio/wav"},
        MediaPart(kind="audio", data="YWI=", mime_type="audio/wav"),
    ),
    "cache point": ({"kind": "cache-point", "ttl": "5m"}, OtherPart({"kind": "cache-point", "ttl": "5m"})),
}


@pytest.mark.parametrize(("found", "part"), CONTENTS.values(), ids=CONTENTS)
def test_the_kinds_of_content(found, part):
    [user, result] = trace_of(
        request({**SAID, "content": ["see", found]}, {**RETURN, "content": [found, {"kind": "x"}]})
    ).messages
    assert user.content == (TextPart("see"), part)
    assert result.content == (part, OtherPart({"kind": "x"}))


def test_the_kinds_of_parts_of_a_response():
    image = {"kind": "binary", "data": "YWI=", "media_type": "image/png"}
    file = {"part_kind": "file", "content": image, "id": "f"}
    summary = {"part_kind": "compaction", "content": "so far"}
    [message] = trace_of(
        response(file, summary, {"part_kind": "speech", "transcript": "Hi", "speaker": "assistant"})
    ).messages
    assert message.content == (
        MediaPart(kind="image", data="YWI=", mime_type="image/png", extra={"part": {"part_kind": "file", "id": "f"}}),
        OtherPart(summary),
        TextPart("Hi", extra={"part_kind": "speech", "speaker": "assistant"}),
    )


@pytest.mark.parametrize("args", [None, "", "{bad", '"{}"', [1]])
def test_arguments_of_any_form_are_kept(args):
    [message] = trace_of(response({**CALL, "args": args})).messages
    [call] = message.tool_calls
    assert (call.args, call.args_error is None) == ({}, args in (None, "", '"{}"'))


@pytest.mark.parametrize(
    ("document", "conversations"),
    [
        (CONVERSATION, 1),
        ({"messages": CONVERSATION, "id": "x"}, 1),
        ([CONVERSATION, CONVERSATION], 2),
        ([{"messages": CONVERSATION}], 1),
        ([request(instructions="x"), response(CALL)], 1),
    ],
)
def test_conversations_are_recognized_alone_and_in_rows(document, conversations):
    assert READER.recognizes(document)
    records = READER.records(document)
    assert len([READER.sample(record, index) for index, record in enumerate(records)]) == conversations


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([request()], "messages: expected messages, found none"),
        ([{"kind": "letter"}], "messages[0].kind: expected request or response, found 'letter'"),
        ([request({**SAID, "content": 5})], "messages[0].parts[0].content: expected a string or a list, found 5"),
        ([response({"content": {}, "part_kind": "text"})], "messages[0].parts[0].content: expected a string, found {}"),
        ([response({**CALL, "tool_name": 5})], "messages[0].parts[0].tool_name: expected a tool name, found 5"),
    ],
)
def test_an_error_says_where_in_the_record_and_what_was_found(messages, error):
    with pytest.raises(TraceError, match=f"^{re.escape(error)}"):
        READER.sample(messages, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, CONVERSATION)


def test_parts_of_an_unknown_kind_are_kept_and_told():
    unknown = {"part_kind": "dream", "content": "sheep"}
    asked = {
        "content": ["a", {"kind": "dream", "content": "sheep"}, {"kind": "cache-point"}],
        "part_kind": "user-prompt",
    }
    trace = trace_of(request(asked, unknown), response(unknown))
    assert [(one.path, one.message) for one in trace.warnings] == [
        ("messages[0].parts[0].content[1]", "unreadable part of type 'dream', kept as is"),
        ("messages[0].parts[1]", "unreadable part of type 'dream', kept as is"),
        ("messages[1].parts[0]", "unreadable part of type 'dream', kept as is"),
    ]
    assert trace.messages[-1].content == (OtherPart(unknown),)

"""Blocks of Anthropic's messages."""

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.blocks.anthropic import read_messages, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.anthropic import read_events, split_responses
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart


def user(*blocks: object) -> dict:
    return {"role": "user", "content": [*blocks]}


def assistant(*blocks: object, **fields: object) -> dict:
    return {"role": "assistant", "content": [*blocks], **fields}


def text(text: str, **fields: object) -> dict:
    return {"type": "text", "text": text, **fields}


def call(name: str, identity: str, **fields: object) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": {"a": 1}, **fields}


def result(identity: str, **fields: object) -> dict:
    return {"type": "tool_result", "tool_use_id": identity, **fields}


def read(*messages: dict) -> list:
    return read_messages(FieldTracker({"messages": list(messages)}).objects("messages"))


PROVIDER = {"metadata": {"executor": "provider"}}
FOUND = {"type": "web_search_result", "url": "http://a", "title": "A"}
FAILED = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
MESSAGES = {
    "text": ({"role": "user", "content": "Hi"}, [HumanMessage("Hi")]),
    "no content": ({"role": "assistant", "content": None}, [AIMessage("")]),
    "empty content": (user(), [HumanMessage("")]),
    "system role": ({"role": "system", "content": [text("Be brief")]}, [SystemMessage("Be brief")]),
    "texts": (
        user("a", text("b", cache_control={"type": "ephemeral"})),
        [HumanMessage([TextPart("a"), TextPart("b", extra={"cache_control": {"type": "ephemeral"}})])],
    ),
    "thinking and a call": (
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "redacted_thinking", "data": "D"},
            text("ok"),
            call("f", "1", caller={"type": "direct"}),
            id="m",
            type="message",
            model="claude",
            stop_reason="tool_use",
            stop_sequence=None,
            container={"id": "c"},
            usage={"input_tokens": 2, "output_tokens": 1},
        ),
        [
            AIMessage(
                [
                    ReasoningPart("hm", extra={"signature": "S"}),
                    ReasoningPart("", extra={"type": "redacted_thinking", "data": "D"}),
                    TextPart("ok"),
                ],
                tool_calls=[ToolCall("f", {"a": 1}, id="1", extra={"caller": {"type": "direct"}})],
                id="m",
                model="claude",
                finish_reason="tool_use",
                usage=Usage(input_tokens=2, output_tokens=1, extra={"input_tokens": 2}),
                extra={"container": {"id": "c"}},
            )
        ],
    ),
    "arguments cut off": (
        assistant({**call("f", "1"), "input": '{"a": "cut'}),
        [AIMessage(tool_calls=[ToolCall("f", '{"a": "cut', id="1")])],
    ),
    "results and text in their order": (
        user(
            result("2", content=[text("boom")], is_error=True),
            text("wait"),
            result("1", content="65F"),
            text("and now?"),
        ),
        [
            ToolMessage("boom", tool_call_id="2", is_error=True),
            HumanMessage("wait"),
            ToolMessage("65F", tool_call_id="1", is_error=False),
            HumanMessage("and now?"),
        ],
    ),
    "results of all kinds": (
        user(
            result("1"),
            result("2", content=[{"type": "image", "source": {"type": "url", "url": "http://a"}}]),
            result(
                "3", content=[{"type": "search_result", "source": "s", "title": "t", "content": [text("a"), text("b")]}]
            ),
            result("4", content=[{"type": "tool_reference", "tool_name": "f"}]),
            result("5", content={"a": [1]}, cache_control={"type": "ephemeral"}),
        ),
        [
            ToolMessage("", tool_call_id="1", is_error=False),
            ToolMessage([MediaPart(kind="image", url="http://a")], tool_call_id="2", is_error=False),
            ToolMessage(
                [TextPart("a\nb", extra={"type": "search_result", "source": "s", "title": "t"})],
                tool_call_id="3",
                is_error=False,
            ),
            ToolMessage([OtherPart({"type": "tool_reference", "tool_name": "f"})], tool_call_id="4", is_error=False),
            ToolMessage('{"a": [1]}', tool_call_id="5", is_error=False, extra={"cache_control": {"type": "ephemeral"}}),
        ],
    ),
    "tools of the provider": (
        assistant(
            text("Let me see."),
            call("web_search", "s1") | {"type": "server_tool_use"},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [FOUND]},
            call("web_search", "s2") | {"type": "server_tool_use"},
            {"type": "web_search_tool_result", "tool_use_id": "s2", "content": FAILED},
            call("ask", "m1", server_name="x") | {"type": "mcp_tool_use"},
            {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": True, "content": [text("no")]},
            text("Done", citations=[{"url": "http://a"}]),
            model="claude",
            stop_reason="end_turn",
        ),
        [
            AIMessage(
                "Let me see.",
                model="claude",
                tool_calls=[ToolCall("web_search", {"a": 1}, id="s1", extra={"type": "server_tool_use"}, **PROVIDER)],
            ),
            ToolMessage(
                '[{"type": "web_search_result", "url": "http://a", "title": "A"}]',
                tool_call_id="s1",
                is_error=False,
                extra={"type": "web_search_tool_result"},
            ),
            AIMessage(
                model="claude",
                tool_calls=[ToolCall("web_search", {"a": 1}, id="s2", extra={"type": "server_tool_use"}, **PROVIDER)],
            ),
            ToolMessage(
                '{"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}',
                tool_call_id="s2",
                is_error=True,
                extra={"type": "web_search_tool_result"},
            ),
            AIMessage(
                model="claude",
                tool_calls=[
                    ToolCall("ask", {"a": 1}, id="m1", extra={"type": "mcp_tool_use", "server_name": "x"}, **PROVIDER)
                ],
            ),
            ToolMessage("no", tool_call_id="m1", is_error=True, extra={"type": "mcp_tool_result"}),
            AIMessage(
                [TextPart("Done", extra={"citations": [{"url": "http://a"}]})], model="claude", finish_reason="end_turn"
            ),
        ],
    ),
    "instructions amid": (
        user(text("Hi"), {"type": "mid_conv_system", "content": [text("Be brief")]}, text("Go on")),
        [HumanMessage("Hi"), SystemMessage("Be brief", extra={"type": "mid_conv_system"}), HumanMessage("Go on")],
    ),
    "media": (
        user(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
            {"type": "image", "source": {"type": "file", "file_id": "f1"}},
            {"type": "document", "title": "T", "source": {"type": "url", "url": "http://a.pdf"}},
            {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "long"}},
            {"type": "document", "source": {"type": "content", "content": "short"}},
            {"type": "container_upload", "file_id": "f2"},
            {"type": "image"},
        ),
        [
            HumanMessage(
                [
                    MediaPart(kind="image", data="AA", mime_type="image/png"),
                    MediaPart(kind="image", extra={"source": {"type": "file", "file_id": "f1"}}),
                    MediaPart(kind="file", url="http://a.pdf", name="T", extra={"type": "document"}),
                    TextPart(
                        "long",
                        extra={
                            "type": "document",
                            "title": "T",
                            "source": {"type": "text", "media_type": "text/plain"},
                        },
                    ),
                    TextPart("short", extra={"type": "document", "source": {"type": "content"}}),
                    MediaPart(kind="file", extra={"type": "container_upload", "file_id": "f2"}),
                    OtherPart({"type": "image"}),
                ]
            )
        ],
    ),
    "blocks of no known kind": (
        assistant({"type": "compaction", "content": "so far"}, 5, {"type": "text", "text": None}),
        [
            AIMessage(
                [OtherPart({"type": "compaction", "content": "so far"}), OtherPart(5), OtherPart({"type": "text"})]
            )
        ],
    ),
    "what stands beside": (
        user(result("1", cache=1)) | {"id": "x"},
        [ToolMessage("", tool_call_id="1", is_error=False, extra={"cache": 1, "message": {"id": "x"}})],
    ),
}


def test_a_message_is_read_as_ours():
    for found, messages in MESSAGES.values():
        assert read(found) == messages


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (
            {"role": "tool", "content": ""},
            r"messages\[0\]\.role: expected one of system, user, assistant, found 'tool'",
        ),
        ({"role": "user", "content": 5}, r"messages\[0\]\.content: expected a string or a list of blocks, found 5"),
        (assistant({"type": "tool_use", "id": "1"}), r"messages\[0\]\.content\[0\]\.name: expected a tool name"),
    ],
)
def test_what_scores_depend_on_is_refused_with_its_place(found, error):
    with pytest.raises(TraceError, match=error):
        read(found)


def test_an_error_flag_that_cannot_be_read_is_no_success():
    [message] = read(user(result("1", is_error="yes")))
    assert (message.is_error, message.extra) == (None, {"is_error": "yes"})


def test_input_tokens_include_those_of_the_cache_and_the_counts_are_kept():
    counts = {"input_tokens": 5, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100}
    found = FieldTracker(
        {**counts, "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}, "speed": "fast"}
    )
    assert read_usage(found) == Usage(
        input_tokens=115, output_tokens=7, cached_tokens=100, reasoning_tokens=3, extra={**counts, "speed": "fast"}
    )
    assert read_usage(FieldTracker({"cache_read_input_tokens": 100})).input_tokens is None
    assert read_usage(None) is None


START = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}


def delta(index: int, kind: str, **fields: object) -> dict:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def block(index: int, kind: str, **fields: object) -> dict:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def test_events_make_the_response_that_would_have_come_in_one_piece():
    odd = delta(0, "sound_delta", sound="la")
    events = [
        START,
        {"type": "ping"},
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="h"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="S"),
        odd,
        {"type": "content_block_stop", "index": 0},
        block(1, "text", text=""),
        delta(1, "text_delta", text="Let me "),
        delta(1, "text_delta", text="see"),
        delta(1, "citations_delta", citation={"url": "http://a"}),
        block(2, "tool_use", id="1", name="f", input={}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"a"'),
        delta(2, "input_json_delta", partial_json=": 1}"),
        block(3, "tool_use", id="2", name="g", input={}),
        block(4, "compaction", content=None),
        delta(4, "compaction_delta", content="so far"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
        START,
        delta(0, "text_delta", text="again"),
    ]
    warnings = []
    first, second = [read_events(one, "", warnings) for one in split_responses(events)]
    assert first == [
        AIMessage(
            [
                ReasoningPart("hm", extra={"signature": "S"}),
                TextPart("Let me see", extra={"citations": [{"url": "http://a"}]}),
                OtherPart({"type": "compaction", "content": "so far"}),
            ],
            tool_calls=[ToolCall("f", '{"a": 1}', id="1"), ToolCall("g", id="2")],
            id="m",
            finish_reason="tool_use",
            usage=Usage(output_tokens=9),
            extra={"events": [odd]},
        )
    ]
    assert [message.text for message in second] == ["again"]
    assert [warning.message for warning in warnings] == ["the stream ends before the response is complete"]


def test_blocks_of_a_stream_stand_in_the_order_of_their_numbers():
    [message] = read_events([START, *(block(n, "tool_use", id=str(n), name="f", input={}) for n in range(11))], "", [])
    assert [one.id for one in message.tool_calls] == [str(n) for n in range(11)]


def test_the_last_counts_of_a_stream_hold():
    began = {**START, "message": {**START["message"], "usage": {"input_tokens": 3, "output_tokens": 1}}}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    [message] = read_events([began, ended], "", [])
    assert (message.usage.input_tokens, message.usage.output_tokens) == (3, 9)

"""Conversations of LangChain and LangGraph."""

import re

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.langchain import LangChainReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart

READER = LangChainReader()
CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
SHAPES = {
    "model_dump": lambda message: message,
    "messages_to_dict": lambda message: {"type": message["type"], "data": message},
    "dumpd": lambda message: {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", CLASSES[message["type"]]],
        "kwargs": {name: value for name, value in message.items() if value},
    },
}
EMPTY = {"additional_kwargs": {}, "response_metadata": {}, "name": None}
HI = {"type": "human", "content": "Hi", **EMPTY, "example": False}
CALL = {"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
CONVERSATION = [
    {"type": "system", "content": "Be kind", **EMPTY},
    {**HI, "id": "h", "name": "ann"},
    {
        "type": "ai",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Look:"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        ],
        "additional_kwargs": {},
        "response_metadata": {"model_name": "m", "stop_reason": "tool_use", "system_fingerprint": "fp"},
        "name": "helper",
        "id": "a",
        "tool_calls": [CALL],
        "invalid_tool_calls": [
            {"name": "mul", "args": "{bad", "id": "c2", "error": "boom", "type": "invalid_tool_call"}
        ],
        "usage_metadata": {
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_token_details": {"cache_read": 3},
            "output_token_details": {"reasoning": 1},
        },
    },
    {
        "type": "tool",
        "content": "no",
        **EMPTY,
        "name": "mul",
        "tool_call_id": "c2",
        "status": "error",
        "artifact": {"rows": 1},
    },
    {"type": "tool", "content": "1", **EMPTY, "name": "add", "tool_call_id": "c1", "status": "success"},
]


def ai(content: object = "", **more: object) -> dict:
    return {"type": "ai", "content": content, **more}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_three_shapes_are_read_alike(shape, intact):
    document = [shape(message) for message in CONVERSATION]
    assert READER.recognizes(document)
    trace = READER.sample(document, 0).trace
    assert trace.messages == (
        SystemMessage("Be kind"),
        HumanMessage("Hi", id="h", name="ann"),
        AIMessage(
            [ReasoningPart("hm", extra={"signature": "s"}), TextPart("Look:")],
            id="a",
            tool_calls=[
                ToolCall("add", {"a": 1}, id="c1"),
                ToolCall("mul", id="c2", args_raw="{bad", args_error="boom"),
            ],
            agent="helper",
            model="m",
            finish_reason="tool_use",
            usage=Usage(
                input_tokens=5, output_tokens=2, cached_tokens=3, reasoning_tokens=1, extra={"total_tokens": 7}
            ),
            extra={"response_metadata": {"system_fingerprint": "fp"}},
        ),
        ToolMessage("no", tool_call_id="c2", name="mul", is_error=True, extra={"artifact": {"rows": 1}}),
        ToolMessage("1", tool_call_id="c1", name="add", is_error=False),
    )
    assert (trace.warnings, trace.extra) == ((), {})
    intact(READER, document)


OLDER = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ADD = ToolCall("add", {"a": 1}, id="c1")
CALLS = {
    "older messages": (ai(additional_kwargs={"tool_calls": [OLDER]}), [ADD]),
    "both places": (ai(additional_kwargs={"tool_calls": [OLDER]}, tool_calls=[CALL]), [ADD]),
    "before there were several": (
        ai(additional_kwargs={"function_call": {"name": "add", "arguments": '{"a": 1}'}}),
        [ToolCall("add", {"a": 1})],
    ),
    "blocks alone": (ai([{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]), [ADD]),
    "blocks of the standard": (ai([CALL], tool_calls=[CALL]), [ADD]),
    "blocks of Responses": (
        ai([{"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}], tool_calls=[CALL]),
        [ADD],
    ),
    "a block that says more": (
        ai([{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}, "index": 2}], tool_calls=[CALL]),
        [ADD.model_copy(update={"extra": {"block": {"index": 2}}})],
    ),
    "the same call made twice": (ai(tool_calls=[CALL, CALL]), [ADD, ADD]),
}


def test_a_call_counts_once_wherever_it_stands():
    for message, calls in CALLS.values():
        [reply] = READER.sample([message], 0).trace.messages
        assert list(reply.tool_calls) == calls


def test_tools_of_the_provider_stand_within_its_reply():
    use = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"q": 1}}
    hit = {"type": "web_search_tool_result", "tool_use_id": "w", "content": [{"title": "t"}]}
    provided = {"metadata": {"executor": "provider"}, "extra": {"type": "server_tool_use"}}
    assert READER.sample([ai([use, hit, {"type": "text", "text": "So"}], name="n")], 0).trace.messages == (
        AIMessage(tool_calls=[ToolCall("web_search", {"q": 1}, id="w", **provided)], agent="n"),
        ToolMessage('[{"title": "t"}]', tool_call_id="w", extra={"type": "web_search_tool_result"}),
        AIMessage("So", agent="n"),
    )


def test_results_among_what_the_user_says_are_results():
    blocks = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "1", "is_error": True},
        {"type": "text", "text": "ok?"},
    ]
    assert READER.sample([ai(tool_calls=[CALL]), {**HI, "content": blocks}], 0).trace.messages[1:] == (
        ToolMessage("1", tool_call_id="c1", is_error=True),
        HumanMessage("ok?"),
    )


BLOCKS = {
    "text": ("x", TextPart("x")),
    "Bedrock": ({"text": "x"}, TextPart("x")),
    "cited": ({"type": "text", "text": "x", "annotations": [1]}, TextPart("x", extra={"annotations": [1]})),
    "refusal": ({"type": "refusal", "refusal": "no"}, RefusalPart("no")),
    "reasoning": ({"type": "reasoning", "reasoning": "hm"}, ReasoningPart("hm")),
    "summary": (
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        ReasoningPart("hm", extra={"type": "reasoning", "id": "r", "summary": [{"type": "summary_text"}]}),
    ),
    "Bedrock's reasoning": (
        {"type": "reasoning_content", "reasoning_content": {"text": "hm", "signature": "s"}},
        ReasoningPart("hm", extra={"type": "reasoning_content", "reasoning_content": {"signature": "s"}}),
    ),
    "redacted": (
        {"type": "redacted_thinking", "data": "x8f"},
        ReasoningPart("", extra={"type": "redacted_thinking", "data": "x8f"}),
    ),
    "image": ({"type": "image", "url": "http://i"}, MediaPart(kind="image", url="http://i")),
    "data": (
        {"type": "audio", "base64": "YWI=", "mime_type": "audio/wav"},
        MediaPart(kind="audio", data="YWI=", mime_type="audio/wav"),
    ),
    "OpenAI's image": (
        {"type": "image_url", "image_url": {"url": "http://i", "detail": "low"}},
        MediaPart(kind="image", url="http://i", extra={"image_url": {"detail": "low"}}),
    ),
    "Anthropic's document": (
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "YWI="},
            "title": "t",
        },
        MediaPart(
            kind="file", data="YWI=", mime_type="application/pdf", extra={"source": {"type": "base64"}, "title": "t"}
        ),
    ),
    "non-standard": (
        {"type": "non_standard", "value": {"a": 1}},
        OtherPart({"type": "non_standard", "value": {"a": 1}}),
    ),
}


def test_the_kinds_of_blocks():
    for block, part in BLOCKS.values():
        messages = READER.sample([ai(["-", block]), {**HI, "content": ["-", block]}], 0).trace.messages
        assert [message.content for message in messages] == [(TextPart("-"), part)] * 2


def test_what_else_the_model_said_beside_its_content():
    [message] = READER.sample(
        [ai("x", additional_kwargs={"reasoning_content": "hm", "refusal": "no", "y": 1})], 0
    ).trace.messages
    assert message.content == (ReasoningPart("hm"), TextPart("x"), RefusalPart("no"))
    assert message.extra == {"additional_kwargs": {"y": 1}}


def test_other_kinds_of_messages():
    remove = {"type": "remove", "content": "", "id": "gone"}
    document = [
        {"type": "chat", "role": "user", "content": "a"},
        {"type": "AIMessageChunk", "content": "b", "tool_call_chunks": []},
        {"type": "function", "name": "f", "content": {"odd": 1}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain_core", "messages", "ai", "AIMessageChunk"],
            "kwargs": {"content": "c"},
        },
        remove,
    ]
    trace = READER.sample(document, 0).trace
    assert [(message.role, message.text) for message in trace.messages] == [
        ("user", "a"),
        ("assistant", "b"),
        ("tool", '{"odd": 1}'),
        ("assistant", "c"),
    ]
    assert trace.messages[3].extra == {"id": ["langchain_core", "messages", "ai", "AIMessageChunk"]}
    assert trace.extra["messages"][4] == remove
    assert [warning.path for warning in trace.warnings] == ["messages[4]", "messages[2]"]


@pytest.mark.parametrize("shape", [SHAPES["model_dump"], SHAPES["messages_to_dict"]])
def test_streamed_pieces_are_not_put_together_which_is_told(shape):
    pieces = [{"type": "AIMessageChunk", "content": text, "id": identity} for text, identity in ("a1", "b1", "c2")]
    question = {"type": "human", "content": "q"}
    trace = READER.sample([shape(piece) for piece in (question, *pieces)], 0).trace
    assert len(trace.messages) == 4
    assert [warning.path for warning in trace.warnings] == ["messages[2]"]


def test_the_status_of_a_result_is_unknown_where_it_is_not_given():
    result = {"type": "tool", "content": "x", "tool_call_id": "c1"}
    assert READER.sample([ai(tool_calls=[CALL]), result], 0).trace.messages[1].is_error is None


def test_a_content_that_is_null_is_empty():
    assert READER.sample([HI, {"type": "ai", "content": None, "tool_calls": [CALL]}], 0).trace.messages == (
        HumanMessage("Hi"),
        AIMessage(tool_calls=[ToolCall("add", {"a": 1}, id="c1")]),
    )


def test_lists_and_states_are_recognized():
    cases = [
        ([HI], 1),
        ([[HI]], 1),
        ([[HI], [HI]], 2),
        ({"messages": [HI], "remaining_steps": 3}, 1),
        ({"messages": [[HI]]}, 1),
        ({"values": {"messages": [HI], "x": 1}, "next": []}, 1),
        ([{"messages": [HI]}, {"messages": [HI]}], 2),
    ]
    for document, conversations in cases:
        assert READER.recognizes(document)
        records = READER.records(document)
        assert len([READER.sample(record, index) for index, record in enumerate(records)]) == conversations


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], "messages: expected LangChain messages, found none"),
        ([{"type": "martian", "content": ""}], "messages[0].type: expected a LangChain message, found 'martian'"),
        ([ai(5)], "messages[0].content: expected a string or a list of blocks, found 5"),
        ([ai(tool_calls=[{"id": "c"}])], "messages[0].tool_calls[0].name: expected a tool name, found nothing"),
        (
            [{"type": "chat", "role": "critic", "content": ""}],
            "messages[0].role: expected one of user, human, assistant",
        ),
    ],
)
def test_an_error_says_where_in_the_record_and_what_was_found(messages, error):
    with pytest.raises(TraceError, match=f"^{re.escape(error)}"):
        READER.sample(messages, 0)

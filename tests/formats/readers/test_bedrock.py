"""Conversations with Amazon Bedrock's Converse API."""

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.bedrock import BedrockReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from judgekit.traces.recording import ToolDefinition

READER = BedrockReader()


def user(*blocks: object) -> dict:
    return {"role": "user", "content": [*blocks]}


def assistant(*blocks: object) -> dict:
    return {"role": "assistant", "content": [*blocks]}


def call(name: str, identity: str, **fields: object) -> dict:
    return {"toolUse": {"toolUseId": identity, "name": name, "input": {"a": 1}, **fields}}


def result(identity: str, *content: object, **fields: object) -> dict:
    return {"toolResult": {"toolUseId": identity, "content": [*content], **fields}}


HI = user({"text": "Hi"})
REQUEST = {
    "modelId": "us.anthropic.claude-x",
    "system": [{"text": "Be brief"}, {"cachePoint": {"type": "default"}}],
    "messages": [HI, assistant(call("f", "1")), user(result("1", {"text": "no"}, status="error"))],
    "inferenceConfig": {"maxTokens": 9},
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": "f",
                    "description": "d",
                    "inputSchema": {"json": {"type": "object"}},
                    "strict": True,
                }
            },
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"any": {}},
    },
}
RESPONSE = {
    "output": {"message": assistant({"text": "It failed."})},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 9, "cacheReadInputTokens": 4},
    "metrics": {"latencyMs": 5},
}
ASKED = [
    SystemMessage([TextPart("Be brief"), OtherPart({"cachePoint": {"type": "default"}})]),
    HumanMessage("Hi"),
    AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1")]),
    ToolMessage("no", tool_call_id="1", is_error=True),
]
USAGE = Usage(
    input_tokens=7,
    output_tokens=2,
    cached_tokens=4,
    extra={"inputTokens": 3, "cacheReadInputTokens": 4, "totalTokens": 9},
)
SAID = AIMessage("It failed.", finish_reason="end_turn", usage=USAGE)
ERROR = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"RetryAttempts": 4}}
PAIR = {"request": REQUEST, "response": RESPONSE}
DOCUMENTS = {
    "request": (REQUEST, [ASKED]),
    "response": (RESPONSE, [[SAID]]),
    "pair": (PAIR, [[*ASKED, SAID.model_copy(update={"model": "us.anthropic.claude-x"})]]),
    "both in one": ({**REQUEST, **RESPONSE}, [[*ASKED, SAID.model_copy(update={"model": "us.anthropic.claude-x"})]]),
    "pair with an error": ({"request": REQUEST, "response": ERROR}, [ASKED]),
    "messages": (REQUEST["messages"], [ASKED[1:]]),
    "rows": ([{"messages": [HI]}, RESPONSE], [[HumanMessage("Hi")], [SAID]]),
}


def test_requests_and_responses_are_read():
    for document, conversations in DOCUMENTS.values():
        assert detect(document).name == "bedrock"
        samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
        assert [[*sample.trace.messages] for sample in samples] == conversations


def test_an_error_in_place_of_the_answer_is_told_and_kept():
    trace = READER.sample({"request": REQUEST, "response": ERROR}, 0).trace
    warnings = [(warning.message, warning.path) for warning in trace.warnings]
    assert warnings == [("contains no answer: {'Code': 'ThrottlingException'}", "response")]
    assert trace.extra["response"] == ERROR


@pytest.mark.parametrize("tools", ["[]", ["x"]])
def test_tools_that_are_none_are_kept(tools):
    trace = READER.sample({**REQUEST, "toolConfig": {"tools": tools}}, 0).trace
    assert (trace.tools, [warning.path for warning in trace.warnings]) == ((), ["toolConfig.tools"])
    assert trace.extra["toolConfig"] == {"tools": tools}


def test_parameters_and_tools_of_the_request_come_along():
    trace = READER.sample(PAIR, 0).trace
    assert trace.tools == (
        ToolDefinition("f", description="d", parameters={"type": "object"}, extra={"toolSpec": {"strict": True}}),
        ToolDefinition("cachePoint", extra={"cachePoint": {"type": "default"}}),
    )
    assert trace.extra == {
        "request": {"inferenceConfig": {"maxTokens": 9}, "toolConfig": {"toolChoice": {"any": {}}}},
        "response": {"metrics": {"latencyMs": 5}},
    }


PROVIDER = {"metadata": {"executor": "provider"}, "extra": {"toolUse": {"type": "server_tool_use"}}}
NODE_BYTES = {"type": "Buffer", "data": [1, 2]}
MESSAGES = {
    "reasoning": (
        assistant(
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}},
            {"reasoningContent": {"redactedContent": "AA"}},
            {"text": "ok"},
        ),
        [
            AIMessage(
                [
                    ReasoningPart("hm", extra={"reasoningContent": {"reasoningText": {"signature": "S"}}}),
                    ReasoningPart("", extra={"reasoningContent": {"redactedContent": "AA"}}),
                    TextPart("ok"),
                ]
            )
        ],
    ),
    "results and text in their order": (
        user(
            result("2", {"json": {"b": [1]}}, status="success"),
            {"text": "wait"},
            result("1", {"text": "a"}, {"image": {"format": "png", "source": {"bytes": "AA"}}}),
            {"text": "and now?"},
        ),
        [
            ToolMessage('{"b": [1]}', tool_call_id="2", is_error=False),
            HumanMessage("wait"),
            ToolMessage(
                [
                    TextPart("a"),
                    MediaPart(kind="image", data="AA", mime_type="image/png", extra={"image": {"format": "png"}}),
                ],
                tool_call_id="1",
                is_error=None,
            ),
            HumanMessage("and now?"),
        ],
    ),
    "tools of the provider": (
        assistant(call("f", "1", type="server_tool_use"), result("1", {"text": "x"}), {"text": "ok"}),
        [
            AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="1", **PROVIDER)]),
            ToolMessage("x", tool_call_id="1"),
            AIMessage("ok"),
        ],
    ),
    "media": (
        user(
            {"image": {"format": "png", "source": {"bytes": NODE_BYTES}}},
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://a", "bucketOwner": "b"}}}},
            {
                "document": {
                    "format": "pdf",
                    "name": "d",
                    "source": {"bytes": {"__bytes_encoded__": True, "data": "AA"}},
                }
            },
            {"document": {"format": "txt", "name": "d", "source": {"text": "long"}}},
        ),
        [
            HumanMessage(
                [
                    MediaPart(
                        kind="image",
                        mime_type="image/png",
                        extra={"image": {"format": "png", "source": {"bytes": NODE_BYTES}}},
                    ),
                    MediaPart(
                        kind="video",
                        url="s3://a",
                        mime_type="video/mp4",
                        extra={"video": {"format": "mp4", "source": {"s3Location": {"bucketOwner": "b"}}}},
                    ),
                    MediaPart(kind="file", name="d", data="AA", extra={"document": {"format": "pdf"}}),
                    TextPart("long", extra={"document": {"format": "txt", "name": "d"}}),
                ]
            )
        ],
    ),
    "texts in other blocks": (
        assistant(
            {"citationsContent": {"content": [{"text": "a "}, {"text": "b"}], "citations": [{"title": "t"}]}},
            {"searchResult": {"source": "s", "title": "t", "content": [{"text": "a"}, {"text": "b"}]}},
            {"guardContent": {"text": {"text": "c", "qualifiers": ["query"]}}},
            {"guardContent": {"image": {"format": "png"}}},
            {"fromTomorrow": {"x": 1}},
            "d",
            5,
        ),
        [
            AIMessage(
                [
                    TextPart("a b", extra={"citationsContent": {"citations": [{"title": "t"}]}}),
                    TextPart("a\nb", extra={"searchResult": {"source": "s", "title": "t"}}),
                    TextPart("c", extra={"guardContent": {"text": {"qualifiers": ["query"]}}}),
                    OtherPart({"guardContent": {"image": {"format": "png"}}}),
                    OtherPart({"fromTomorrow": {"x": 1}}),
                    TextPart("d"),
                    OtherPart(5),
                ]
            )
        ],
    ),
    "system role": ({"role": "system", "content": [{"text": "Be brief"}]}, [SystemMessage("Be brief")]),
    "no content": (user(), [HumanMessage("")]),
}
ALL_BLOCKS = [found for found, _ in MESSAGES.values()]


def test_a_message_is_read_as_ours():
    for message, messages in MESSAGES.values():
        assert [*READER.sample([message], 0).trace.messages] == messages


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (
            [{"role": "tool", "content": []}],
            r"messages\[0\]\.role: expected one of system, user, assistant, found 'tool'",
        ),
        ([{"role": "user", "content": "Hi"}], r"messages\[0\]\.content: expected a list, found 'Hi'"),
        (
            [assistant({"toolUse": {"input": {"a": 1}}})],
            r"messages\[0\]\.content\[0\]\.toolUse\.name: expected a tool name",
        ),
        ({"messages": []}, "messages: expected messages, found"),
        ({"response": {"output": {}}}, r"response\.output\.message: expected a message, found nothing"),
    ],
)
def test_what_scores_depend_on_is_refused_with_its_place(record, error):
    with pytest.raises(TraceError, match=error):
        READER.sample(record, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, PAIR, {**REQUEST, **RESPONSE}, ALL_BLOCKS)

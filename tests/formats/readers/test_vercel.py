"""Messages of the Vercel AI SDK."""

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.vercel import VercelReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from judgekit.traces.pairing import pair_results

READER = VercelReader()
PROVIDED = {"executor": "provider"}


def text(said: str, **more: object) -> dict:
    return {"type": "text", "text": said, **more}


def tool(state: str, **more: object) -> dict:
    return {"type": "tool-get-weather", "toolCallId": "c", "state": state, "input": {"city": "Paris"}, **more}


def assistant(*parts: dict, **more: object) -> dict:
    return {"role": "assistant", "parts": list(parts), **more}


def call(state: str, /, **extra: object) -> ToolCall:
    return ToolCall("get-weather", {"city": "Paris"}, id="c", extra={"state": state, **extra})


def result(content: str, **more: object) -> ToolMessage:
    return ToolMessage(content, tool_call_id="c", name="get-weather", **more)


STEP = {"type": "step-start"}
DENIED = {"id": "a", "approved": False, "reason": "no"}
CALL = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {"a": 1}}
APPROVAL = {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}
CALLED = ToolCall("f", {"a": 1}, id="c")


def answered(output: object, **more: object) -> dict:
    part = {"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": output, **more}
    return {"role": "tool", "content": [part]}


def answer(content: object, **more: object) -> ToolMessage:
    return ToolMessage(content, tool_call_id="c", name="f", **more)


MESSAGES = {
    "texts": (
        [{"id": "s", "role": "system", "parts": [text("x")]}, {"id": "u", "role": "user", "parts": [text("Hi")]}],
        [SystemMessage("x", id="s"), HumanMessage("Hi", id="u")],
    ),
    "parts of a user": (
        [
            {
                "role": "user",
                "metadata": {"at": 1},
                "parts": [
                    text("Hi"),
                    {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,AA"},
                    {"type": "data-chart", "data": {"x": 1}},
                ],
            }
        ],
        [
            HumanMessage(
                [
                    TextPart("Hi"),
                    MediaPart(kind="image", url="data:image/png;base64,AA", mime_type="image/png", name="a.png"),
                    OtherPart({"type": "data-chart", "data": {"x": 1}}),
                ],
                metadata={"at": 1},
            )
        ],
    ),
    "each step is a message": (
        [
            assistant(
                STEP,
                {"type": "reasoning", "text": "hm", "state": "done"},
                text("Let me see", state="done"),
                tool("output-available", output={"temp": 12}, callProviderMetadata={"p": 1}),
                STEP,
                text("12C"),
                id="m",
                metadata={"a": 1},
            )
        ],
        [
            AIMessage(
                [ReasoningPart("hm", extra={"state": "done"}), TextPart("Let me see", extra={"state": "done"})],
                id="m",
                metadata={"a": 1},
                tool_calls=[call("output-available", callProviderMetadata={"p": 1})],
            ),
            result('{"temp": 12}', is_error=False),
            AIMessage("12C", id="m"),
        ],
    ),
    "a call without a result yet": (
        [assistant(tool("input-available"))],
        [AIMessage(tool_calls=[call("input-available")])],
    ),
    "an error, and arguments that could not be read": (
        [
            assistant(
                {
                    "type": "dynamic-tool",
                    "toolName": "mcp_x",
                    "toolCallId": "c",
                    "state": "output-error",
                    "input": None,
                    "rawInput": '{"a":',
                    "errorText": "parse",
                }
            )
        ],
        [
            AIMessage(
                tool_calls=[ToolCall("mcp_x", '{"a":', id="c", extra={"type": "dynamic-tool", "state": "output-error"})]
            ),
            ToolMessage("parse", tool_call_id="c", name="mcp_x", is_error=True),
        ],
    ),
    "a call that the user denied": (
        [assistant(tool("output-denied", approval=DENIED))],
        [
            AIMessage(tool_calls=[call("output-denied", approval=DENIED)]),
            result("no", is_error=True, metadata={"denied": True}),
        ],
    ),
    "a result that is not the last word": (
        [assistant(tool("output-available", output="so far", preliminary=True, resultProviderMetadata={"x": 1}))],
        [
            AIMessage(tool_calls=[call("output-available", preliminary=True)]),
            result("so far", metadata={"preliminary": True}, extra={"resultProviderMetadata": {"x": 1}}),
        ],
    ),
    "a tool of the provider": (
        [assistant(tool("output-available", output="x", providerExecuted=True), text("So"))],
        [
            AIMessage(
                tool_calls=[
                    ToolCall(
                        "get-weather",
                        {"city": "Paris"},
                        id="c",
                        metadata=PROVIDED,
                        extra={"state": "output-available", "providerExecuted": True},
                    )
                ]
            ),
            result("x", is_error=False),
            AIMessage("So"),
        ],
    ),
    "model messages": (
        [
            {"role": "system", "content": "x"},
            {"role": "user", "content": [text("Hi"), {"type": "image", "image": "AA", "mediaType": "image/png"}]},
            {"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}, text("a"), CALL]},
            {**answered({"type": "json", "value": {"b": 2}}), "providerOptions": {"p": 1}},
        ],
        [
            SystemMessage("x"),
            HumanMessage([TextPart("Hi"), MediaPart(kind="image", data="AA", mime_type="image/png")]),
            AIMessage([ReasoningPart("hm"), TextPart("a")], tool_calls=[CALLED]),
            answer('{"b": 2}', is_error=False, extra={"providerOptions": {"p": 1}}),
        ],
    ),
    "results of every kind": (
        [
            {"role": "assistant", "content": [{**CALL, "args": {"a": 1}, "input": None}] * 6},
            answered({"type": "text", "value": "x"}),
            answered({"type": "error-text", "value": "bad"}),
            answered({"type": "error-json", "value": [1]}),
            answered({"type": "execution-denied", "reason": "no"}),
            answered(
                {
                    "type": "content",
                    "value": [text("x"), {"type": "image-data", "data": "AA", "mediaType": "image/png"}],
                }
            ),
            {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f", "result": 5, "isError": True}],
            },
        ],
        [
            AIMessage(tool_calls=[CALLED] * 6),
            answer("x", is_error=False),
            answer("bad", is_error=True),
            answer("[1]", is_error=True),
            answer("no", is_error=True),
            answer([TextPart("x"), MediaPart(kind="image", data="AA", mime_type="image/png")], is_error=False),
            answer("5", is_error=True),
        ],
    ),
    "a call and its result by the provider, and more text": (
        [
            {
                "role": "assistant",
                "content": [{**CALL, "providerExecuted": True}, answered("x")["content"][0], text("a")],
            }
        ],
        [
            AIMessage(
                tool_calls=[ToolCall("f", {"a": 1}, id="c", metadata=PROVIDED, extra={"providerExecuted": True})]
            ),
            answer("x"),
            AIMessage("a"),
        ],
    ),
    "an approval": (
        [
            {"role": "assistant", "content": [CALL, APPROVAL]},
            {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}]},
            answered({"type": "text", "value": "x"}),
        ],
        [
            AIMessage([OtherPart(APPROVAL)], tool_calls=[CALLED]),
            HumanMessage([OtherPart({"type": "tool-approval-response", "approvalId": "a", "approved": True})]),
            answer("x", is_error=False),
        ],
    ),
}


def plain(message):
    """Return the value without fields that only repeat a result type or medium."""
    extra = {name: value for name, value in message.extra.items() if name != "output" or set(value) - {"type"}}
    content = message.content
    if not isinstance(content, str):
        content = tuple(
            part.model_copy(update={"extra": {}}) if isinstance(part, MediaPart) else part for part in content
        )
    return message.model_copy(update={"extra": extra, "content": content})


def test_messages_are_read_as_ours():
    for found, messages in MESSAGES.values():
        assert detect(found).name == "vercel"
        [record] = READER.records(found)
        made = READER.sample(record, 0).trace.messages
        assert list(map(plain, made)) == messages
        assert pair_results(made).orphans == ()


def test_a_call_that_was_still_being_written_was_not_made():
    part = tool("input-streaming", input={"city": "Pa"})
    trace = READER.sample([{"role": "user", "parts": [text("q")]}, assistant(text("a"), part)], 0).trace
    assert trace.messages[1:] == (AIMessage([TextPart("a"), OtherPart(part)]),)
    [warning] = trace.warnings
    assert (warning.message[:35], warning.path) == ("an unfinished call, kept as a part ", "messages[1].parts[1]")


@pytest.mark.parametrize(
    ("document", "identities"),
    [
        ({"id": "chat", "messages": [assistant(tool("input-available"))]}, ["chat"]),
        ([{"messages": [assistant(STEP)]}, {"messages": [assistant(STEP)]}], ["0", "1"]),
        ([[assistant(STEP)], [assistant(STEP)]], ["0", "1"]),
    ],
    ids=["a row", "rows", "lists"],
)
def test_each_shape_is_recognized(document, identities):
    assert detect(document).name == "vercel"
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    assert [sample.id for sample in samples] == identities


def test_an_error_says_where_and_what_was_found():
    cases = [
        ({"role": "martian"}, "messages[0].role: expected one of system, user, assistant, tool, found 'martian'"),
        ({"role": "user", "content": 5}, "messages[0].content: expected a string or a list of parts, found 5"),
        (assistant(tool("gone")), "messages[0].parts[0].state: expected one of input-streaming"),
        (
            assistant({**tool("input-available"), "type": "dynamic-tool"}),
            "messages[0].parts[0].toolName: expected a tool name",
        ),
        ({"role": "tool", "content": []}, "messages[0].content: expected results"),
        ({"role": "tool", "content": "x"}, "messages[0].content: expected a list, found 'x'"),
        ({"role": "tool", "content": [text("x")]}, "messages[0].content[0].type: expected tool-result or tool-app"),
        (answered({"value": 1}), "messages[0].content[0].output.type: expected a result type, found nothing"),
    ]
    for message, found in cases:
        with pytest.raises(TraceError) as error:
            READER.sample([message], 0)
        assert str(error.value).startswith(found)


def test_parts_of_an_unknown_kind_are_told_and_those_of_data_and_sources_are_not():
    parts = [{"type": "dream", "text": "sheep"}, {"type": "data-chart", "data": {}}, {"type": "source-url", "url": "u"}]
    trace = READER.sample([{"role": "user", "parts": [text("q")]}, assistant(STEP, *parts)], 0).trace
    assert trace.messages[-1].content == tuple(map(OtherPart, parts))
    assert [(one.path, one.message) for one in trace.warnings] == [
        ("messages[1].parts[1]", "unreadable part of type 'dream', kept as is")
    ]


def test_calls_as_version_4_wrote_them_are_not_read_and_told():
    call = {"state": "result", "toolCallId": "c", "toolName": "f", "args": {"a": 1}, "result": {"b": 2}}
    alone = {"role": "assistant", "content": "So", "toolInvocations": [call]}
    in_parts = assistant(STEP, {"type": "tool-invocation", "toolInvocation": call}, text("So"))
    unread = ["messages or tool calls not read, found 1", "unreadable part of type 'tool-invocation', kept as is"]
    for message, name, problem in zip((alone, in_parts), ("openai-chat", "vercel"), unread, strict=True):
        reader = detect([{"role": "user", "content": "q"}, message])
        trace = reader.sample([{"role": "user", "content": "q"}, message], 0).trace
        assert (reader.name, trace.tool_calls()) == (name, ())
        assert problem in [warning.message for warning in trace.warnings]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, *(found for found, _ in MESSAGES.values()), most=30)

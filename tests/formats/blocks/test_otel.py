"""Parts of OpenTelemetry's messages."""

import pytest
from pydantic import JsonValue

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.blocks.otel import read_instructions, read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart

TEXT = {"type": "text", "content": "Hi"}
CALL = {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}
ANSWER = {"type": "tool_call_response", "id": "c1", "response": "12C"}
SEARCH = {"type": "server_tool_call", "id": "s", "name": "search", "server_tool_call": {"type": "web", "query": "x"}}
FOUND = {"type": "server_tool_call_response", "id": "s", "server_tool_call_response": {"type": "web", "hits": 2}}
COMPACTED = {"type": "compaction", "id": "k", "content": "so far"}


def message(role: str, *parts: JsonValue, **fields: JsonValue) -> dict:
    return {"role": role, "parts": list(parts), **fields}


def test_parts_become_messages() -> None:
    cases = {
            "system": (message("system", TEXT), [SystemMessage("Hi")]),
            "user": (message("user", TEXT, name="ann"), [HumanMessage("Hi", name="ann")]),
            "assistant": (
                message("assistant", {"type": "reasoning", "content": "hm"}, TEXT, CALL, finish_reason="stop", name="A"),
                [
                    AIMessage(
                        [ReasoningPart("hm"), TextPart("Hi")],
                        tool_calls=[ToolCall("f", {"a": 1}, id="c1")],
                        finish_reason="stop",
                        agent="A",
                    )
                ],
            ),
            "tool": (message("tool", ANSWER), [ToolMessage("12C", tool_call_id="c1")]),
            "text of a tool": (message("tool", TEXT, name="f"), [ToolMessage("Hi", name="f")]),
            "result in a user's message": (
                message("user", {**ANSWER, "name": "f"}, TEXT),
                [ToolMessage("12C", tool_call_id="c1", name="f"), HumanMessage("Hi")],
            ),
            "result in another key": (
                message("user", {"type": "tool_call_response", "id": "c1", "name": "f", "result": {"t": 12}}),
                [ToolMessage('{"t": 12}', tool_call_id="c1", name="f")],
            ),
            "result that was not captured": (
                message("tool", {"type": "tool_call_response", "id": "c1"}),
                [ToolMessage("", tool_call_id="c1")],
            ),
            "server's tool": (
                message("assistant", SEARCH, FOUND, TEXT),
                [
                    AIMessage(
                        tool_calls=[
                            ToolCall("search", {"type": "web", "query": "x"}, id="s", metadata={"executor": "provider"})
                        ]
                    ),
                    ToolMessage('{"type": "web", "hits": 2}', tool_call_id="s"),
                    AIMessage("Hi"),
                ],
            ),
            "broken arguments": (
                message("assistant", {**CALL, "arguments": '{"a"'}),
                [AIMessage(tool_calls=[ToolCall("f", '{"a"', id="c1")])],
            ),
            "media": (
                message(
                    "user",
                    {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA=="},
                    {"type": "uri", "modality": "video", "uri": "http://x/v"},
                    {"type": "file", "modality": "audio", "file_id": "f1"},
                    {"type": "image-url", "url": "http://x/i"},
                ),
                [
                    HumanMessage(
                        [
                            MediaPart(kind="image", data="AA==", mime_type="image/png"),
                            MediaPart(kind="video", url="http://x/v"),
                            MediaPart(kind="audio", extra={"type": "file", "file_id": "f1"}),
                            MediaPart(kind="image", url="http://x/i", extra={"type": "image-url"}),
                        ]
                    )
                ],
            ),
            "other parts": (message("user", COMPACTED, {"type": "new", "x": 1}), [HumanMessage([OtherPart(COMPACTED), OtherPart({"type": "new", "x": 1})])]),
            "unknown fields": (
                message("user", {**TEXT, "x": 1}, y=2),
                [HumanMessage([TextPart("Hi", extra={"x": 1})], extra={"y": 2})],
            ),
            "OpenAI's": ({"role": "user", "content": "Hi"}, [HumanMessage("Hi")]),
            "no parts": (message("assistant"), [AIMessage("")]),
        }.values()  # fmt: skip
    for source, expected in cases:
        assert read_message(FieldTracker.of(source)) == expected


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (message("robot", TEXT), "role: expected system, developer, user, assistant or tool, found 'robot'"),
        (message("user", {"type": "text", "content": 5}), "parts[0].content: expected a string"),
        (message("user", {"type": "text"}), "is content capture enabled?"),
        (message("assistant", {"type": "tool_call", "id": "c"}), "parts[0].name: expected a tool name"),
        ({"role": "user", "parts": "Hi"}, "parts: expected a list"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(source: JsonValue, error: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_message(FieldTracker.of(source))
    assert error in str(refused.value)


def test_instructions_of_many_parts_are_one_message() -> None:
    found = FieldTracker({"s": [TEXT, {"type": "text", "content": "Bye"}]})
    assert read_instructions(found.items("s")) == [SystemMessage([TextPart("Hi"), TextPart("Bye")])]
    assert read_instructions([]) == []


def test_all_counts_of_tokens_are_taken_and_unknown_ones_kept() -> None:
    counts = {"input_tokens": 5, "output_tokens": 4, "cache_read.input_tokens": 3, "reasoning_tokens": 2, "audio": 1}
    attributes = FieldTracker({f"gen_ai.usage.{name}": count for name, count in counts.items()} | {"x": 1})
    expected = Usage(input_tokens=5, output_tokens=4, cached_tokens=3, reasoning_tokens=2, extra={"audio": 1})
    assert read_usage(attributes) == expected
    assert attributes.leftover() == {"x": 1}
    assert read_usage(FieldTracker({"ai.usage.promptTokens": 5})) == Usage(input_tokens=5)
    assert read_usage(FieldTracker({"x": 1})) is None


def test_a_call_that_pydantic_ai_marks_as_built_in_was_run_by_the_provider() -> None:
    [said] = read_message(FieldTracker(message("assistant", {**CALL, "builtin": True})))
    assert said.tool_calls[0].metadata == {"executor": "provider"}

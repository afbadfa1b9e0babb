"""Warnings about conversations of any format."""

import json

from hypothesis import given
from hypothesis import strategies as st

from judgekit.formats.detect import detect
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import build_sample, unpaired_warnings
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.trace import Trace

CHAT = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes"}}]}
HI = {"role": "user", "content": "Hi"}
BLOCKS = {"role": "assistant", "content": [{"text": "Yes"}]}
CLAUDE = {
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Yes"}],
    "stop_reason": "end_turn",
}
CONTENT = {"role": "model", "parts": [{"text": "Yes"}]}
RESPONSE = {
    "id": "r",
    "object": "response",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}],
}
PARTS = {"role": "assistant", "parts": [{"type": "text", "text": "Yes"}]}
SPAN = {"trace_id": "t", "span_id": "1", "name": "chat"}
SAID = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Yes"}]}])}
ASKED = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}])}
CONVERSATIONS = {
    "openai-chat": (CHAT, {"request": {"messages": [HI]}, "response": CHAT}),
    "anthropic": (CLAUDE, {"request": {"max_tokens": 9, "messages": [HI]}, "response": CLAUDE}),
    "bedrock": (
        {"output": {"message": BLOCKS}, "stopReason": "end_turn"},
        {"messages": [{"role": "user", "content": [{"text": "Hi"}]}, BLOCKS]},
    ),
    "gemini": (
        {"candidates": [{"content": CONTENT}]},
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, CONTENT]},
    ),
    "openai-responses": (RESPONSE, {"request": {"model": "m", "input": "Hi"}, "response": RESPONSE}),
    "vercel": ([PARTS], [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}, PARTS]),
    "langchain": (
        [{"type": "ai", "content": "Yes"}],
        [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Yes"}],
    ),
    "sharegpt": (
        {"conversations": [{"from": "gpt", "value": "Yes"}]},
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]},
    ),
    "otel": ([{**SPAN, "attributes": SAID}], [{**SPAN, "attributes": {**ASKED, **SAID}}]),
}
"""Two documents of some formats: a bare response, and one with a question."""


def test_a_conversation_without_a_message_of_the_user_is_told_and_one_with_is_not(no_question):
    for name, alone, whole in [(name, *both) for name, both in CONVERSATIONS.items()]:
        for document, told in ((alone, (no_question,)), (whole, ())):
            reader = detect(document)
            assert reader.name == name
            [record] = reader.records(document)
            assert reader.sample(record, 0).trace.warnings == told


def test_messages_beside_the_conversation_are_told_unless_a_child_says_them():
    beside = {"notes": {"log": [{"role": "assistant", "content": "Deep"}]}}
    child = Trace(id="1", messages=[HumanMessage("Dig"), AIMessage("Deep")])
    outer = Trace(id="0", messages=[HumanMessage("Go")], children=[child])
    said = {"messages": [HumanMessage("Hi")]}
    traces = [build_sample(FieldTracker(beside), 0, {**said, "children": one}).trace for one in ([], [child], [outer])]
    assert [[one.path for one in trace.warnings] for trace in traces] == [["notes"], [], []]


IDS = st.sampled_from([None, "", "a", "b", "c"])
CALLS = st.lists(st.builds(ToolCall, name=st.just("f"), id=IDS), max_size=3)
RESULT = st.builds(ToolMessage, tool_call_id=IDS, requestor=st.sampled_from(["assistant"] * 4 + ["user"]))


@given(st.lists(st.builds(AIMessage, tool_calls=CALLS) | st.builds(HumanMessage, tool_calls=CALLS) | RESULT))
def test_there_is_a_warning_for_each_result_that_no_call_is_paired_with(messages):
    orphans = pair_results(messages).orphans
    assert [one.path for one in unpaired_warnings(messages)] == [f"messages[{index}]" for index in orphans]

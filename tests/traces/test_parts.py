"""Parts of long recordings: each message in one of them, calls with their results, and nothing unread that is not counted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.images import ImageSettings
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, SystemMessage, TextPart, ToolCall, ToolMessage
from judgekit.traces.parts import LongRecording
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch, walk_messages

texts = st.builds(lambda text, times: f"{text}\n" * times, st.text(max_size=12), st.integers(0, 150))


@st.composite
def traces(draw, depth=2, name="agent"):
    """Conversations with calls, missing results, and sub-agents of sub-agents."""
    messages = [SystemMessage(draw(texts))] if draw(st.booleans()) else []
    children = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(HumanMessage(draw(texts)))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"{name}-{turn}-{step}-{number}" for number in range(draw(st.integers(0, 2)))]
            calls = [ToolCall("search", {"q": draw(st.text(max_size=40))}, id=one) for one in ids]
            messages.append(AIMessage(draw(texts), tool_calls=calls))
            messages += [ToolMessage(draw(texts), tool_call_id=one) for one in ids if draw(st.integers(0, 4))]
            for one in ids:
                if depth and draw(st.integers(0, 4)) == 0:
                    child = draw(traces(depth=depth - 1, name=one))
                    call_id = draw(st.sampled_from([one, "unknown"]))
                    children.append(child.model_copy(update={"metadata": {"call_id": call_id}}))
    messages.append(AIMessage(draw(texts)))
    return Trace(messages=messages, children=children)


@given(traces(), st.integers(300, 3_000))
def test_each_message_is_in_exactly_one_part_and_coverage_adds_up(trace, budget):
    recording = LongRecording(trace, budget, None)
    numbers = [branch.number(index) for branch, index in walk_messages(Branch(trace))]
    assert [number for part in recording.parts for number in part.numbers] == numbers
    characters = sum(len(passage.text) + passage.omitted_characters for passage in recording._passages)
    shown = sum(min(passage.limit, len(passage.text)) for part in recording.parts for passage in part.passages)
    digest = recording.digest("")
    assert (digest.characters, digest.characters - digest.omitted) == (characters, shown)
    for rendering in (digest, *(part.rendering for part in recording.parts)):
        assert rendering.size <= 4 * budget
    for part in recording.parts:
        headers = set(re.findall(rf"^\[{part.rendering[1:13]} ([\d.]+)\]", part.rendering, re.MULTILINE))
        assert {str(number) for number in part.numbers} <= headers
        if len(part.numbers) > 1:
            assert all(passage.omitted == passage.omitted_characters for passage in part.passages)


@pytest.mark.parametrize("size", [100, 900, 1_500, 1_900])
def test_a_call_stands_with_its_result(size):
    calls = [AIMessage("", tool_calls=[ToolCall("look", {"n": number}, id=f"{number}")]) for number in range(9)]
    results = [ToolMessage("x" * size, tool_call_id=f"{number}") for number in range(9)]
    trace = Trace(messages=[HumanMessage("Hi"), *(one for pair in zip(calls, results, strict=True) for one in pair)])
    for part in LongRecording(trace, 700, None).parts:
        for number in part.numbers:
            if number > 1 and number % 2:
                assert f"{number - 1}] calls look" in part.rendering
                assert f"(called in {number - 1})" in part.rendering


def test_a_message_larger_than_a_part_is_alone_and_cut_and_all_parts_repeat_the_head():
    turns = [one for at in range(20) for one in (HumanMessage(f"Wish {at}."), AIMessage("word " * 200))]
    messages = [SystemMessage("Be kind."), *turns, AIMessage("a" * 20_000), AIMessage("The end.")]
    recording = LongRecording(Trace(messages=messages), 2_000, None)
    assert [42] in [list(part.numbers) for part in recording.parts]
    assert 12_000 < recording.digest("").omitted < 15_000
    for rendering in (recording.digest(""), *(part.rendering for part in recording.parts)):
        assert all(text in rendering for text in ("Be kind.", "Wish 0.", "Wish 19.", "The end."))


def test_images_are_shown_in_the_part_of_their_message():
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    content = [TextPart(text="Look."), MediaPart(kind="image", mime_type="image/png", data=pixel)]
    turns = [one for _ in range(6) for one in (HumanMessage(content), AIMessage("word " * 300))]
    recording = LongRecording(Trace(messages=turns), 1_000, ImageSettings())
    assert len(recording.parts) > 3
    assert sum(len(part.rendering.images) for part in recording.parts) == 6
    assert recording.digest("").hidden_media == {}
    assert LongRecording(Trace(messages=turns), 1_000, None).digest("").hidden_media != {}


def test_too_small_a_budget_says_so():
    calls = [ToolCall("a_tool_with_a_name", {}, id=f"{number}") for number in range(50)]
    with pytest.raises(ValueError, match="100 tokens are too few even for the headers of message 1"):
        LongRecording(Trace(messages=[AIMessage("", tool_calls=calls)]), 100, None)

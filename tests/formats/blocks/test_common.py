"""Pieces that messages of most APIs share."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import content_items, media_kind, read_call, read_counts, read_parts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.traces.message import OtherPart, TextPart, ToolCall, Usage


def test_a_media_type_is_of_a_kind():
    kinds = {"image/png": "image", "audio/wav": "audio", "video/mp4": "video", "application/pdf": "file", None: "file"}
    assert {mime_type: media_kind(mime_type) for mime_type in kinds} == kinds


@pytest.mark.parametrize(("content", "items"), [("Hi", ["Hi"]), ("", []), (None, []), (["Hi", 7], ["Hi", 7])])
def test_a_content_is_a_text_or_a_list(content, items):
    found = FieldTracker({"content": content})
    assert content_items(found) == items
    assert found.leftover() == {}


def test_any_other_content_is_refused():
    with pytest.raises(TraceError, match=re.escape("m.content: expected a string or a list of parts, found 7")):
        content_items(FieldTracker({"content": 7}, "m"), "a list of parts")


def test_parts_that_are_no_objects_are_texts_or_kept():
    items = FieldTracker({"content": ["Hi", 7, {"text": "you"}]}).items("content")
    made = read_parts(items, lambda found: TextPart(found.text("text") or ""))
    assert made == [TextPart("Hi"), OtherPart(7), TextPart("you")]


def test_a_call_has_its_arguments_and_what_is_left_of_it():
    found = FieldTracker({"id": 7, "name": "f", "arguments": '{"a": 1}', "index": 0})
    call = read_call(found, provided=True)
    assert call == ToolCall("f", {"a": 1}, id="7", metadata={"executor": "provider"}, extra={"index": 0})
    assert found.leftover() == {}


def test_the_object_around_a_call_has_what_is_left_of_both():
    outer = FieldTracker({"call": {"name": "f", "input": {}, "x": 1}, "y": 2})
    call = read_call(outer.object("call"), args=("input",), outer=outer)
    assert call == ToolCall("f", extra={"call": {"x": 1}, "y": 2})


def test_a_call_without_a_name_is_refused():
    with pytest.raises(TraceError, match=re.escape("c.function: expected a tool name, found nothing")):
        read_call(FieldTracker({"id": "1"}, "c"), name="function")


def test_counts_may_be_in_objects_and_others_are_kept():
    found = FieldTracker({"prompt": 9, "output_tokens": 2, "details": {"cached": 4, "x": 1}, "total": 11})
    assert read_counts(found, input="prompt", cached="details.cached", reasoning="more.thoughts") == Usage(
        input_tokens=9, output_tokens=2, cached_tokens=4, extra={"details": {"x": 1}, "total": 11}
    )
    assert read_counts(None) is None


def test_two_counts_may_be_in_the_same_object():
    found = FieldTracker({"details": {"cached": 4, "thoughts": 3}})
    assert read_counts(found, cached="details.cached", reasoning="details.thoughts") == Usage(
        cached_tokens=4, reasoning_tokens=3
    )

"""The names and kinds in a record by which readers recognize it."""

import pytest

from judgekit.formats.readers.marks import candidates, is_plain_chat, names_in
from judgekit.formats.readers.openai_chat import OpenAIChatReader
from judgekit.formats.readers.tau2 import Tau2Reader

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = {"role": "user", "content": "Hi"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
OF_OTHERS = {"role": "tool", "content": "x", "function": "f"}


def test_a_call_in_openais_form_decides_unless_the_record_has_other_fields():
    plain = [CHAT, CALLING, OF_OTHERS]
    assert names_in({"id": 1, "messages": plain}) == {"id", "messages"}
    assert "function" in names_in({"id": 1, "messages": plain[::-1]})
    assert "function" in names_in({"source": 1, "messages": plain})
    assert "function" in names_in({"model": "claude-x", "messages": plain})


def test_messages_of_texts_and_parts_of_text_have_no_marks():
    assert names_in({"source": 1, "messages": [PARTS, CALLING, CHAT]}) == {"source", "messages"}


def test_parts_before_the_first_call_are_no_reason_to_stop_at_it():
    assert "function" in names_in({"id": 1, "messages": [PARTS, CALLING, OF_OTHERS]})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {}}]},
        {"role": "user", "content": [{"type": "image", "source": {}}]},
        {"role": "user", "content": {"text": "Hi"}},
        {"role": "model", "content": "Hi"},
        {"role": "user", "content": "Hi", "turn_idx": 0},
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "requestor": "user"}]},
        {"role": "assistant", "tool_calls": "f"},
        {"role": "assistant", "content": None, "audio": {"id": "a"}},
        {"role": "assistant", "content": "Hi", "turn_idx": None},
        "Hi",
    ],
)
def test_other_messages_are_not_plain(message):
    assert not is_plain_chat({"messages": [CHAT, message]})


def test_only_records_with_messages_and_the_usual_fields_are_plain():
    assert is_plain_chat({"messages": [CHAT], "reference": "r"})
    assert is_plain_chat({"messages": [PARTS, CALLING], "model": "gpt-x"})
    assert is_plain_chat({"messages": [CHAT, {**CALLING, "refusal": None, "audio": None, "function_call": None}]})
    assert not is_plain_chat({"messages": [CHAT], "source": "shop"})
    assert not is_plain_chat({"metadata": {"trace": {}}, "messages": [CHAT]})  # may be an object of records
    assert not any(map(is_plain_chat, ({"messages": []}, {"messages": "Hi"}, {}, [CHAT], None)))


def test_a_dotted_name_counts_with_its_first_part_and_a_kind_with_its_words():
    assert names_in({"gen_ai.system": "x", "type": "tool_use"}) == {
        *("gen_ai.system", "gen_ai", "type"),
        *("tool_use", "tool", "use"),
    }


def test_readers_without_a_mark_in_a_value_are_left_out():
    readers = (Tau2Reader(), OpenAIChatReader())
    assert candidates({"simulations": []}, readers, Tau2Reader.marks) == [readers[0]]
    assert candidates({"messages": [CHAT]}, readers, Tau2Reader.marks) == []
    assert candidates(['{"simulations": []}'], readers, Tau2Reader.marks) == [readers[0]]  # a text may hold JSON

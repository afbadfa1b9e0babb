"""The usual messages of OpenAI Chat, which take a shorter way than others."""

from hypothesis import given
from hypothesis import strategies as st

from judgekit.formats.blocks.openai_chat import read_messages
from judgekit.formats.blocks.plain_chat import read_plain
from judgekit.formats.field_tracker import FieldTracker

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": [1.5, null]}'}}
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
USUAL = [
    {"role": "system", "content": "Be kind"},
    {"role": "developer", "content": PARTS},
    {"role": "user", "content": "Hi", "name": "ann"},
    {"role": "user", "content": PARTS[:1], "name": None, "tool_calls": None},
    {"role": "assistant", "content": "Hello", "refusal": None, "audio": None, "function_call": None},
    {"role": "assistant", "content": PARTS, "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {"function": CALL["function"]}]},
    {"role": "assistant", "tool_calls": [{"id": None, "function": {"name": "f", "arguments": '{"a": "Inf"}'}}]},
    {"role": "assistant", "content": "Hello", "id": "m"},
    {"role": "tool", "content": "4", "tool_call_id": "c", "name": "f", "id": "m", "is_error": True},
    {"role": "tool", "content": PARTS, "tool_call_id": None},
]
UNUSUAL = [
    {"role": "user", "content": ""} | {"extra": 1},
    {"role": "user", "content": 5},
    {"role": "user", "content": []},
    {"role": "user", "content": [{**PARTS[0], "cache": True}]},
    {"role": "assistant", "content": "", "refusal": "No"},
    {"role": "assistant", "content": "", "tool_calls": [{**CALL, "index": 0}]},
    {"role": "assistant", "content": "", "tool_calls": [{**CALL, "type": "custom"}]},
    {"role": "assistant", "content": "", "tool_calls": [{"id": 1, "function": CALL["function"]}]},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "", "arguments": "{}"}}]},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
    *(
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
        for arguments in (
            *("{", "", "5", '"{}"', '{"a": 1e999}', '{"a": NaN}', '{"a": "Infinity"}', '{"a": "\\ud800"}'),
            '{"a": "\ud800"}',
        )
    ),
    {"role": "tool", "content": "4", "is_error": "yes"},
    {"role": "user", "content": "4", "id": 5},
    {"role": "function", "content": "4"},
    {"role": "robot", "content": "4"},
    {"content": "4"},
    "Hi",
    None,
]


FIELDS = ("content", "id", "name", "tool_call_id", "is_error", "tool_calls", "refusal", "x")
VALUES = (
    None,
    "",
    "a",
    "\u00fc",
    "\ud800",
    0,
    1.5,
    True,
    [],
    {},
    PARTS,
    [{"type": "text", "text": "\ud800"}],
    [CALL],
    [None],
)


def test_a_usual_message_is_read_as_one_with_another_field():
    for message in USUAL:
        is_read_as_with_another_field(message)


@given(
    st.sampled_from(("system", "developer", "user", "assistant", "tool")),
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(VALUES), max_size=3),
)
def test_whatever_is_read_is_read_as_with_another_field(role, fields):
    message = {"role": role, **fields}
    if read_plain(message) is not None:
        is_read_as_with_another_field(message)


def is_read_as_with_another_field(message):
    assert read_plain(message) is not None
    [usual] = read_messages(FieldTracker({"messages": [message]}))
    [other] = read_messages(FieldTracker({"messages": [{**message, "another": 1}]}))
    assert other.extra == {"another": 1}
    assert repr(usual) == repr(other.model_copy(update={"extra": {}}))
    assert type(usual).model_validate(usual.model_dump(exclude_unset=True)) == usual


def test_another_message_is_left_to_the_general_way():
    for message in UNUSUAL:
        assert read_plain(message) is None


def test_messages_share_nothing_that_can_be_changed():
    message, other = read_plain(USUAL[2]), read_plain(USUAL[2])
    assert message.metadata is not other.metadata
    assert message.extra is not other.extra

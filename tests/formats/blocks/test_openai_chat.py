"""Messages of OpenAI Chat Completions: usual ones are read together, and as if each were read alone."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_message, read_messages
from judgekit.formats.field_tracker import FieldTracker

odd = st.sampled_from([None, "", "x", 5, True, {"a": "x"}, ["x"], [{"type": "text", "text": "x"}]])


def objects(fields: dict[str, st.SearchStrategy]) -> st.SearchStrategy:
    """Objects with some of these fields, most of them of the usual type, and at times another field."""
    usual = {name: value | value | value | odd for name, value in fields.items()}
    return st.fixed_dictionaries({}, optional={**usual, "name": odd, "zz": odd})


texts = st.sampled_from(["Hi", "", '{"a": 1}', '{"a": 1e999}', "{"])
function = objects({"name": st.just("f"), "arguments": texts})
call = objects({"id": texts, "type": st.just("function"), "function": function})
parts = st.lists(objects({"type": st.just("text"), "text": texts}), max_size=2)
fields = {
    "content": texts | parts,
    "tool_calls": st.lists(call, max_size=2),
    "tool_call_id": texts,
    "id": texts,
    "refusal": st.none(),
}
role = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "critic"])
message = st.builds(lambda one, said: {"role": said, **one}, objects(fields), role)


def outcome(read: Callable[[FieldTracker], object], found: list[dict]) -> tuple[object, object]:
    row = FieldTracker({"messages": found})
    try:
        return read(row), (row.warnings, row.leftover())
    except TraceError as error:
        return str(error), None


@given(st.lists(message, max_size=4))
def test_messages_are_read_together_as_they_are_read_alone(found):
    together = outcome(read_messages, found)
    assert together == outcome(lambda row: [read_message(one) for one in row.objects("messages")], found)

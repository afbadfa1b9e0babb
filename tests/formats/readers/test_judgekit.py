"""judgekit's own format."""

import pytest

from judgekit.errors import TraceError
from judgekit.formats.readers.judgekit import JudgekitReader
from judgekit.traces.message import HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall, Trace

READER = JudgekitReader()
MESSAGES = [{"role": "user", "content": "Hi"}]
TRACE = Trace(messages=[HumanMessage("Hi")])


@pytest.mark.parametrize(
    ("record", "sample"),
    [
        (
            {"id": "a", "trace": {"messages": MESSAGES}, "reference": "x", "reference_tool_calls": [{"name": "f"}]},
            Sample(id="a", trace=TRACE, reference="x", reference_tool_calls=[ExpectedCall("f")]),
        ),
        ({"trace": {"messages": MESSAGES}}, Sample(id="7", trace=TRACE)),
        ({"id": None, "trace": {"messages": MESSAGES}}, Sample(id="7", trace=TRACE)),
        ({"schema_version": 1, "messages": MESSAGES}, Sample(id="7", trace=TRACE)),
        (
            {"schema_version": 1, "id": "t", "messages": MESSAGES},
            Sample(id="t", trace=Trace(id="t", messages=TRACE.messages)),
        ),
    ],
    ids=["sample", "without an id", "id null", "bare trace", "bare trace with an id"],
)
def test_a_record_is_a_sample_or_a_trace_and_without_an_id_is_named_by_its_index(record, sample):
    assert READER.sample(record, 7) == sample


def test_broken_arguments_of_a_call_are_kept():
    call = {"name": "f", "args": '{"a": '}
    sample = READER.sample({"trace": {"messages": [{"role": "assistant", "tool_calls": [call]}]}}, 0)
    [actual] = sample.trace.tool_calls()
    assert actual == ActualCall(1, 0, ToolCall("f", '{"a": '))
    assert actual.call.args_raw == '{"a": '


def test_an_error_says_where_in_the_record_and_what_was_found():
    cases = [
        ({"id": "a", "trace": {}, "refrence": "x"}, "refrence: Extra inputs are not permitted, found 'x'"),
        ({"id": 0, "trace": {}}, "id: Input should be a valid string, found 0"),
        ({"trace": {"messages": [{"role": "user", "contnt": "x"}]}}, "trace.messages[0].contnt: Extra inputs"),
        ({"trace": {"messages": [{"role": "user", "content": 5}]}}, "trace.messages[0].content: Input should be a"),
        ({"trace": {"messages": [{"role": "users"}]}}, "trace.messages[0]: Input tag 'users' found"),
        ({"schema_version": 1, "messages": [{"role": "user", "content": 5}]}, "messages[0].content: Input should be a"),
        ({"schema_version": 2, "messages": []}, "schema_version: Input should be 1, found 2"),
        (
            {"trace": {"messages": [{"role": "assistant", "tool_calls": [{}]}]}},
            "trace.messages[0].tool_calls[0].name: ",
        ),
        (
            {"trace": {}, "reference_tool_calls": [{"name": "f"}, {"name": "f", "args": "oops"}]},
            "reference_tool_calls[1]: arguments of an expected call must be a JSON object, found 'oops'",
        ),
        ("text", "expected an object, found 'text'"),
        ([1], "expected an object, found [1]"),
    ]
    for record, problem in cases:
        with pytest.raises(TraceError) as raised:
            READER.sample(record, 0)
        assert str(raised.value).startswith(problem)


def test_many_problems_are_counted():
    with pytest.raises(TraceError, match=r"^a: .*; b: .*; c: .*; and 2 more$"):
        READER.sample({"trace": {}, **dict.fromkeys("abcde", 0)}, 0)

"""Which format a recording has."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.traces.detect import detect
from judgekit.traces.readers import READERS

CHAT = {"role": "user", "content": "Hi"}
CASES = [
    ("judgekit", {"id": "a", "trace": {"messages": []}}),
    ("judgekit", [{"id": "a", "trace": {}}]),
    ("judgekit", {"schema_version": 1, "messages": [CHAT]}),
    ("tau2", {"simulations": [], "tasks": [], "info": {}}),
    ("ragas", {"user_input": [{"type": "human", "content": "Hi"}]}),
    ("ragas", {"user_input": "Hi", "response": "Hello", "messages": [CHAT]}),
    ("ragas", [{"user_input": "Hi"}]),
    ("openai-chat", {"messages": [CHAT]}),
    ("openai-chat", [CHAT]),
    ("openai-chat", [{"messages": [CHAT]}]),
    ("openai-chat", [[CHAT], [CHAT]]),
    ("openai-chat", {"messages": [CHAT], "reference": "r", "label": "l"}),
    ("rows", {"input": "Hi"}),
    ("rows", {"output": None}),
    ("rows", {"id": 1, "references": ["r"]}),
    ("rows", {"task_time": 0}),
    ("rows", [{"id": 1, "ranking": {}}]),
    ("rows", {"question": "q", "label": 1}),
    ("rows", {"input": "q", "model": "m", "output": "a"}),
    ("rows", {"input": "q", "model": "m", "output": {"a": 1}, "expected_output": {"a": 1}}),
    ("rows", {"results": [{"score": 1, "domain": "d"}]}),
]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_the_format_is_found_out(name, value):
    assert detect(value).name == name
    assert READERS[name].name == name


UNKNOWN = [
    ({"a": 1, "b": 2}, "an object with the keys 'a', 'b'"),
    ({}, "an empty object"),
    ([], "an empty list"),
    ([{"a": 1}], "a list whose first item is an object with the keys 'a'"),
    ([[]], "a list whose first item is an empty list"),
    ({"messages": []}, "an object with the keys 'messages'"),
    ({"messages": [{"content": "no role"}]}, "an object with the keys 'messages'"),
    ({"trace": "text"}, "an object with the keys 'trace'"),
    ({"messages": [], "input": "Hi"}, "an object with the keys 'messages', 'input'"),
    ({"id": 1, "metadata": {}, "domain": "d", "group": "g"}, "an object with the keys 'id', 'metadata', 'domain'"),
    ({"model": "m", "input": [CHAT]}, "an object with the keys 'model', 'input'"),  # a request to a model
    ({"model": "m", "output": [{"type": "message"}]}, "an object with the keys 'model', 'output'"),  # and its reply
    ({"eval": {}, "results": {"scores": []}}, "an object with the keys 'eval', 'results'"),  # the log of an evaluation
    ({"simulations": {}, "tasks": []}, "an object with the keys 'simulations', 'tasks'"),
    (None, "None"),
    (5, "5"),
    ("text", "'text'"),
    ({str(number): 0 for number in range(20)}, "'0', '1', '2', '3', '4', '5', '6', '7'. Tried"),
]


@pytest.mark.parametrize(("value", "seen"), UNKNOWN, ids=lambda value: repr(value)[:30])
def test_an_unknown_format_is_an_error_that_says_what_was_seen_and_tried(value, seen):
    with pytest.raises(TraceError, match=f"^no known format: found .*{re.escape(seen)}") as raised:
        detect(value)
    assert [line.split(":")[0].strip() for line in str(raised.value).splitlines()[1:]] == list(READERS)

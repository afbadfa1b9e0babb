"""Detection of a recording's format."""

import json
import re
import shlex

import pytest

from judgekit.errors import TraceError
from judgekit.formats import detect as detection
from judgekit.formats.detect import detect
from judgekit.formats.readers import READERS

CHAT = {"role": "user", "content": "Hi"}
CHUNK = {"id": "a", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
CREATED = {"type": "response.created", "response": {"object": "response", "output": []}}
PING = {"type": "ping"}
STARTED = {"type": "message_start", "message": {"role": "assistant", "content": []}}
CASES = [
    ("judgekit", {"id": "a", "trace": {"messages": []}}),
    ("judgekit", {"schema_version": 1, "messages": [CHAT]}),
    ("tau2", {"simulations": [], "tasks": [], "info": {}}),
    ("ragas", {"user_input": "Hi", "response": "Hello", "messages": [CHAT]}),
    ("ragas", [{"user_input": "Hi"}]),
    ("openai-chat", [[CHAT], [CHAT]]),
    ("openai-chat", {"messages": [CHAT], "reference": "r", "label": "l"}),
    ("openai-chat", {"request": {"messages": [CHAT]}, "response": None}),
    ("openai-chat", {"request": {"messages": [CHAT]}, "response": {"error": "400"}}),
    ("openai-chat", {"custom_id": "a", "body": {"messages": [CHAT]}, "url": "/v1/chat/completions"}),
    ("openai-chat", {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": [{"message": CHAT}]}}}),
    ("openai-responses", {"custom_id": "a", "body": {"model": "m", "input": [CHAT]}, "url": "/v1/responses"}),
    ("openai-responses-stream", [{"type": "keepalive"}, CREATED]),
    ("openai-responses-stream", [CREATED]),
    ("openai-responses-stream", [[CREATED], [CREATED]]),
    ("anthropic", {"custom_id": "a", "params": {"model": "claude-x", "max_tokens": 9, "messages": [CHAT]}}),
    ("anthropic", {"messages": [CHAT], "max_tokens": 9, "system": "s"}),
    ("anthropic", {"messages": [CHAT], "model": "claude-x", "system": "s"}),
    ("anthropic-stream", [[PING, STARTED], [STARTED]]),
    ("gemini", {"model": "gemini-x", "contents": ["a", "b"]}),
    ("gemini", {"model": "models/x", "contents": "a"}),
    ("gemini", {"contents": "a", "generationConfig": {}}),
    ("gemini", {"request": {"model": "gemini-x", "contents": "a"}, "response": {"error": {"code": 400}}}),
    ("openai-chat", [{"choices": [{"message": CHAT}]}]),
    ("openai-chat-chunks", CHUNK),
    ("openai-chat-chunks", {**CHUNK, "object": "chat.completion.chunk", "choices": []}),
    ("openai-chat-chunks", [{"choices": [], "prompt_filter_results": []}, CHUNK]),
    ("openai-chat-chunks", [[CHUNK], [CHUNK]]),
    ("openai-responses", {"model": "m", "input": [CHAT]}),
    ("rows", {"input": "Hi", "output": None}),
    ("rows", {"response": "a"}),
    ("rows", {"id": 1, "references": ["r"]}),
    ("rows", {"task_time": 0}),
    ("rows", [{"id": 1, "ranking": {}}]),
    ("rows", {"question": "q", "label": 1}),
    ("rows", {"input": "q", "model": "m", "output": {"a": 1}, "expected_output": {"a": 1}}),
    ("rows", {"results": [{"score": 1, "domain": "d"}]}),
]


def test_the_format_is_found_out():
    for name, value in CASES:
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
    ({"model": "m", "output": [{"type": "message"}]}, "an object with the keys 'model', 'output'"),  # a reply
    ({"eval": {}, "results": {"scores": []}}, "an object with the keys 'eval', 'results'"),  # the log of an evaluation
    ({"input": "q", "other": 1}, "an object with the keys 'input', 'other'"),
    ({"output": "a", "other": 1}, "an object with the keys 'output', 'other'"),
    ({"results": {"a": 1}}, "an object with the keys 'results'"),
    ({"error": "400 Invalid file data"}, "an object with the keys 'error'"),
    ({"contents": "a"}, "an object with the keys 'contents'"),
    ({"choices": ["A", "B"]}, "an object with the keys 'choices'"),
    ({"simulations": {}, "tasks": []}, "an object with the keys 'simulations', 'tasks'"),
    (None, "None"),
    (5, "5"),
    ("text", "'text'"),
    ({str(number): [] for number in range(20)}, "'0', '1', '2', '3', '4', '5', '6', '7'. Known formats:"),
]


def test_an_unknown_format_is_an_error_that_says_what_was_seen_and_which_are_known():
    for value, seen in UNKNOWN:
        with pytest.raises(TraceError, match=f"^unknown format: found .*{re.escape(seen)}") as raised:
            detect(value)
        assert named(raised.value)
        assert named(raised.value) <= set(READERS)


def named(error: TraceError) -> set[str]:
    """Return the formats that a message names: their shapes, one per line, or else their names."""
    first, *shapes = str(error).splitlines()
    if shapes:
        return {shape.split(":")[0].strip() for shape in shapes}
    return set(first.split("Known formats: ")[1].split(" (")[0].split(", "))


def test_the_nearest_formats_are_those_that_have_a_key_in_common_and_else_all_are_named():
    with pytest.raises(TraceError, match="Closest formats:\n") as near:
        detect({"simulations": {}})
    assert named(near.value) == {"tau2"}
    with pytest.raises(TraceError, match="Closest formats:\n") as nearest:
        detect({"role": None, "content": [], "meta": {}, "user": {}})  # "user" is no key, but a role in many formats
    assert str(nearest.value).splitlines()[1].startswith("  haystack: ")
    assert len(named(nearest.value)) == 5
    with pytest.raises(TraceError, match=r"Closest formats:\n.*--column question=input") as flat:
        detect([{"color": "q", "size": "a"}])
    assert named(flat.value) == {"rows"}
    with pytest.raises(TraceError, match=r"Known formats: .*\(judgekit formats shows") as far:
        detect({"none of these": []})
    assert named(far.value) == set(READERS)


class Fake:
    """A reader that recognizes everything."""

    shape = ""
    joins_lines = False

    def __init__(self, name: str) -> None:
        self.name = name

    def recognizes(self, value: object) -> bool:
        return True


def test_two_formats_that_both_fit_are_an_error_that_names_them(monkeypatch):
    monkeypatch.setattr(detection, "READERS", {name: Fake(name) for name in ("one", "two", "rows")})
    with pytest.raises(TraceError, match=r"^may be one or two: found an object with the keys 'trace'; choose one"):
        detect({"trace": []})


def test_a_fallback_is_taken_only_where_no_other_fits(monkeypatch):
    for names, name in ((("rows", "one", "openai-chat"), "one"), (("openai-chat", "rows"), "openai-chat")):
        monkeypatch.setattr(detection, "READERS", {name: Fake(name) for name in names})
        assert detect({"trace": []}).name == name


def test_a_record_is_offered_to_the_reader_of_its_file_before_others(monkeypatch):
    monkeypatch.setattr(detection, "READERS", {name: Fake(name) for name in ("one", "two", "rows")})
    assert detection.RecordReaders(Fake("one")).reader_of({"trace": []}).name == "one"


def test_a_fallback_only_takes_records_whose_fields_no_other_reader_recognizes(monkeypatch):
    """The rows of a table may be followed by records of another format, which may have an installed reader."""
    one = Fake("one")
    one.recognizes = lambda record: "special" in record
    monkeypatch.setattr(detection, "installed_readers", lambda: [one])
    readers = detection.RecordReaders(READERS["rows"])
    plain, special = {"input": "Hi", "response": "Hello"}, {"input": "Hi", "response": "Hello", "special": 1}
    assert [readers.reader_of(record).name for record in (plain, special, plain)] == ["rows", "one", "rows"]


@pytest.mark.parametrize("name", ["my rows", "it's; echo $HOME `id`", 'a"b'])
def test_a_command_in_an_error_holds_the_name_of_a_field_as_one_word(name):
    with pytest.raises(TraceError) as records:
        detect({name: [{"a": 1}]})
    command = str(records.value).partition(" holds the records: ")[2].partition(" > records.jsonl")[0]
    assert shlex.split(command) == ["jq", "-c", f".{json.dumps(name)}[]", "FILE"]
    with pytest.raises(TraceError) as messages:
        detect({name: [{"role": 5}], "other": 1})
    option = str(messages.value).partition(" holds the conversation: ")[2].partition(". ")[0]
    assert shlex.split(option) == ["--column", f"{name}=messages"]

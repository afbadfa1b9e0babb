"""Reading recorded conversations from a file."""

import gzip
import json
import os
import re
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.readers import READERS
from judgekit.formats.reading import Recordings, read
from judgekit.formats.writing import write as write_samples
from judgekit.traces.message import ToolCall
from judgekit.traces.recording import TraceSource, TraceWarning
from judgekit.traces.sample import Sample

BOM = b"\xef\xbb\xbf"


def chat(text: str = "Hi", **beside: object) -> dict:
    return {"messages": [{"role": "user", "content": text}], **beside}


def calling(arguments: str, text: str = "x") -> str:
    """Return a row as text, since Python's own writer does not write all of them."""
    call = f'{{"name": "f", "arguments": {arguments}}}'
    said = f'{{"role": "assistant", "content": "{text}", "tool_calls": [{call}]}}'
    return f'{{"messages": [{{"role": "user", "content": "Hi"}}, {said}]}}'


GOOD = json.dumps(chat())


@pytest.fixture
def write(tmp_path):
    """Write a file, compressed if its name says so."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        found = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(found) if name.endswith(".gz") else found)
        return path

    return write_file


TEXTS = ["one", "zwei\u2028", "drei é"]
LINES = "\n".join(json.dumps(chat(text), ensure_ascii=False) for text in TEXTS).encode()
DOCUMENT = json.dumps([chat(text) for text in TEXTS], indent=1).encode()
FILES = {
    "lines": ("a.jsonl", LINES),
    "lines, last one ended": ("a.jsonl", LINES + b"\n"),
    "lines, packed": ("a.jsonl.gz", LINES),
    "lines of another name": ("a.ndjson", LINES),
    "lines in a .json": ("a.json", LINES),
    "lines in a .json, packed": ("a.json.gz", LINES),
    "lines in a .json, after blank ones": ("a.json", b"\n \n" + LINES),
    "lines with a BOM in a .json": ("a.json", BOM + LINES),
    "a document": ("a.json", DOCUMENT),
    "a document, packed": ("a.json.gz", DOCUMENT),
    "a document without a name": ("recorded", DOCUMENT),
    "a document with a BOM": ("a.json", BOM + DOCUMENT),
    "BOM": ("a.jsonl", BOM + LINES),
    "BOM on a line of its own": ("a.jsonl", BOM + b"\n" + LINES),
    "blank lines": ("a.jsonl", b"\n  \n" + LINES.replace(b"\n", b"\n\t\n\n") + b"\n\n"),
    "CRLF": ("a.jsonl", LINES.replace(b"\n", b"\r\n") + b"\r\n"),
    "CRLF in a document": ("a.json", DOCUMENT.replace(b"\n", b"\r\n")),
}


def test_the_same_conversations_are_read_from_every_kind_of_file(write):
    for name, content in FILES.values():
        for format_name in [None, "openai-chat"]:
            path = write(name, content)
            for given_path in (path, str(path)):
                samples = list(read(given_path, format_name))
                assert [sample.trace.messages[0].text for sample in samples] == TEXTS
                assert [sample.id for sample in samples] == ["0", "1", "2"]
                assert [sample.trace.source for sample in samples] == [
                    TraceSource(format="openai-chat", path=str(path), index=index) for index in range(3)
                ]


@settings(max_examples=settings.default.max_examples // 2)
@given(samples=st.lists(st.from_type(Sample), min_size=1, max_size=3))
def test_samples_that_are_written_as_lines_are_read_back_unchanged(tmp_path_factory, samples):
    path = tmp_path_factory.getbasetemp() / "round_trip.jsonl"
    write_samples(samples, path)
    assert list(read(path)) == samples
    path.write_text("".join(f"{sample.model_dump_json()}\n" for sample in samples), encoding="utf-8")  # with defaults
    assert list(read(path)) == samples


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_the_source_that_a_trace_names_stays(write, name):
    source = {"format": "other", "path": "elsewhere", "index": 4}
    row = {"id": "a", "trace": {**chat(), "source": source}}
    [sample] = read(write(name, json.dumps(row)))
    assert sample.trace.source == TraceSource(format="other", path="elsewhere", index=4)


UNREADABLE = {
    "empty": ("a.jsonl", "", "is empty"),
    "empty document": ("a.json", "", "is empty"),
    "blank lines only": ("a.jsonl", "\n \n", "has only blank lines"),
    "blank lines only, packed": ("a.jsonl.gz", "\n \n", "has only blank lines"),
    "nothing packed": ("a.jsonl.gz", "", "has only blank lines"),
    "blank document": ("a.json", "\n \n", "not JSON: the text ends"),
    "BOM only": ("a.json", BOM, "not JSON: the text ends"),
    "not JSON": ("a.json", "hello", "not JSON: "),
    "cut document": ("a.json", DOCUMENT[:-3], "not JSON: "),
    "another encoding": ("a.json", GOOD.encode("utf-32"), "not JSON: "),
    "broken UTF-8": ("a.json", b'{"messages": "\xff\\u0041"}', "not UTF-8: byte 0xff at offset 14; set its encoding"),
    "nested without end": ("a.json", "[" * 100_000, "nested more than 200 levels deep"),
    "nested without end, escaped": ("a.json", '["\\u0041",' + "[" * 100_000, "nested more than 200 levels deep"),
}


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(write):
    for name, content, found in UNREADABLE.values():
        path = write(name, content)
        with pytest.raises(TraceError, match=f"^{re.escape(f'{path}: {found}')}") as raised:
            list(read(path))
        assert (raised.value.path, raised.value.index, raised.value.line) == (path, None, None)


def test_a_missing_file_and_a_folder_of_references_are_errors_at_once(write, tmp_path):
    with pytest.raises(TraceError, match=f"^{re.escape(str(tmp_path))}/none.jsonl: does not exist$"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match=f"^{re.escape(str(tmp_path))}: is a folder; pass a file$"):
        read(write("a.jsonl", GOOD), references=tmp_path)


def test_what_is_wrong_with_the_references_file_is_said_at_once(write, tmp_path):
    path = write("a.jsonl", GOOD)
    with pytest.raises(TraceError, match=r"none.jsonl: does not exist$"):
        read(path, references=tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match=r"r.jsonl: has only blank lines$"):
        read(path, references=write("r.jsonl", "\n"))
    with pytest.raises(TraceError, match=r"r.jsonl \(line 2\): not JSON: "):
        list(read(path, references=write("r.jsonl", '{"id": "a"}\n{'), on_error="raise"))


@pytest.mark.parametrize(
    ("name", "content", "where", "seen"),
    [
        ("a.json", '{"a": []}', "", "an object with the keys 'a'"),
        ("a.json", "[]", "", "an empty list"),
        ("a.json", "5", "", "5"),
        ("a.jsonl", '\n{"a": []}\n{"b": 1}', " (line 2)", "an object with the keys 'a'"),
    ],
)
def test_an_unknown_format_is_an_error_that_says_what_was_seen_and_tried(write, name, content, where, seen):
    path = write(name, content)
    with pytest.raises(TraceError) as raised:
        read(path)
    known = (
        f"{', '.join(READERS)} (judgekit formats shows what they look like); name a reader of your own with --format"
    )
    assert str(raised.value) == f"{path}{where}: unknown format: found {seen}. Known formats: {known}"


def test_the_first_line_of_a_jsonl_file_that_is_no_json_is_named_with_the_likely_reason(write):
    path = write("a.jsonl", DOCUMENT)
    hint = "; if the file is a single JSON document, give it the suffix .json"
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))} \\(line 1\\): not JSON: .*{re.escape(hint)}$"):
        read(path)
    path = write("b.jsonl", "{'a': 1}")
    with pytest.raises(TraceError, match=r"^.* \(line 1\): not JSON: (?!.*suffix).*$"):
        read(path)


def test_the_format_is_that_of_the_first_line_that_has_one(write):
    path = write("a.jsonl", f'broken\n{{"a": 1}}\n{GOOD}\n')
    met: list[TraceError] = []
    assert [sample.id for sample in read(path, on_error=met.append)] == ["2"]
    assert [(error.index, error.line) for error in met] == [(0, 1), (1, 2)]


def test_an_unknown_format_name_is_an_error_that_names_the_nearest(write):
    path = write("a.jsonl", GOOD)
    with pytest.raises(
        ConfigError,
        match=f"^no format is called 'openai_chat'. Did you mean 'openai-chat'\\? Known: {', '.join([*READERS][:10])}, and {len(READERS) - 10} more. For your own, give package.module:NAME$",
    ):
        read(path, "openai_chat")


def test_a_format_that_is_given_is_not_guessed(write):
    path = write("a.json", json.dumps({"user_input": "Hi", **chat()}))
    assert next(read(path)).trace.source.format == "ragas"
    assert next(read(path, "openai-chat")).trace.source.format == "openai-chat"


def test_a_document_without_conversations_is_an_error(write):
    path = write("a.json", json.dumps({"simulations": [], "tasks": []}))
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: contains no conversations$"):
        read(path)


def test_a_document_that_has_not_the_given_format_is_an_error_that_names_the_file(write):
    path = write("a.json", '{"version": 2, "status": "success", "eval": {}}')
    with pytest.raises(TraceError, match=rf"^{re.escape(str(path))}: samples: the log contains none"):
        read(path, "inspect")


BROKEN = '{"messages": [{"role": "user", "content": 5}]}'
MIXED = {
    "a.jsonl": (f"{GOOD}\n\n{BROKEN}\n{{oops\n{GOOD}\n", [(1, 3), (2, 4)], ["0", "3"]),
    "a.jsonl.gz": (f"{GOOD}\n\n{BROKEN}\n{{oops\n{GOOD}\n", [(1, 3), (2, 4)], ["0", "3"]),
    "a.json": (f"[{GOOD}, {BROKEN}, 7, {GOOD}]", [(1, None), (2, None)], ["0", "3"]),
}
CONTENT_PATH = "messages[0].content: expected a string or a list of parts, found 5"


@pytest.mark.parametrize(("name", "content", "broken", "good"), [(name, *case) for name, case in MIXED.items()])
class TestABrokenRecordAmongGoodOnes:
    def test_is_given_to_a_callable_and_the_rest_is_read(self, write, name, content, broken, good):
        path = write(name, content)
        met: list[TraceError] = []
        assert [sample.id for sample in read(path, on_error=met.append)] == good
        assert [(error.path, error.index, error.line) for error in met] == [(path, *where) for where in broken]
        line = broken[0][1]
        assert str(met[0]).startswith(f"{path}{f' (line {line})' if line else ', record 1'}: {CONTENT_PATH}")

    def test_is_a_warning_where_the_samples_are_asked_for(self, write, name, content, broken, good):
        path = write(name, content)
        with pytest.warns(UserWarning, match=r"record|line") as met:
            assert [sample.id for sample in read(path)] == good
        assert len(met) == len(broken)
        assert CONTENT_PATH in str(met[0].message)
        assert {one.filename for one in met} == {__file__}

    def test_is_raised_when_it_is_reached_and_not_before(self, write, name, content, broken, good):
        samples = read(write(name, content), on_error="raise")
        assert next(samples).id == good[0]
        with pytest.raises(TraceError, match=re.escape(CONTENT_PATH)) as raised:
            next(samples)
        assert (raised.value.index, raised.value.line) == broken[0]


def test_a_broken_record_of_our_own_format_is_explained_too(write):
    rows = [{"id": "a", "trace": chat()}, {"id": "b", "trace": chat(contnt=1)}, {"trace": chat()}]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    met: list[TraceError] = []
    assert [sample.id for sample in read(path, on_error=met.append)] == ["a", "2"]
    assert [str(error) for error in met] == [f"{path} (line 2): trace.contnt: Extra inputs are not permitted, found 1"]


DAMAGES = {
    "cut off": (lambda packed: packed[:-10], "Compressed file ended before"),
    "no block of any kind": (lambda packed: packed[:10] + b"\xff" * 64, "invalid block type"),
    "wrong checksum": (lambda packed: packed[:-8] + bytes(8), "CRC check failed"),
}


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz"])
@pytest.mark.parametrize(("damage", "found"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_packed_file_is_an_error_that_names_it(write, name, damage, found):
    path = write(name, f"{GOOD}\n" * 3)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: cannot be read: .*{found}"):
        list(read(path))


def test_a_record_is_there_before_the_rest_of_the_file_is_read(write):
    """The file is truncated, which shows only at its end."""
    whole = write("a.jsonl.gz", "".join(f"{json.dumps(chat(str(number) * 99))}\n" for number in range(1_500)))
    whole.write_bytes(whole.read_bytes()[:-10])
    samples = read(whole)
    assert next(samples).trace.messages[0].text == "0" * 99
    with pytest.warns(UserWarning, match="cannot be read"):
        assert len(list(samples)) > 1_000
    with pytest.raises(TraceError, match="cannot be read"):
        list(read(whole, on_error="raise"))
    recordings = Recordings(whole)
    list(recordings.samples(lambda _: None))
    assert [error.path for error in recordings.failed] == [whole]


def test_memory_holds_one_line_of_many(write):
    rows = "".join(f"{json.dumps(chat(str(number % 10) * 20_000))}\n" for number in range(300))
    path = write("a.jsonl", rows)
    del rows
    next(read(path))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(path)) == 300
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 10


def nested(depth: int, escape: str = "") -> str:
    return f'{{"messages": [{{"role": "user", "content": "x{escape}"}}], "deep": {"[" * depth}{"]" * depth}}}'


def test_a_record_that_is_nested_deeply_is_read_or_reported(write):
    for depth in [300, 900, 5_000, 100_000]:
        for escape in ["", "\\u0041"]:
            path = write("a.jsonl", f"{GOOD}\n{nested(depth, escape)}\n{GOOD}\n")
            met: list[TraceError] = []
            ids = [sample.id for sample in read(path, on_error=met.append)]
            assert ids in (["0", "2"], ["0", "1", "2"])
            assert [(error.index, error.line) for error in met] == ([(1, 2)] if len(ids) == 2 else [])
            assert all(
                re.search(
                    "nested too deeply|nested more than 200 levels deep|validation depth|Recursion error", str(error)
                )
                for error in met
            )


def test_a_record_of_a_hundred_levels_is_read(write):
    deep = '{"a":' * 100 + "1" + "}" * 100
    [sample] = read(write("a.jsonl", calling(deep)))
    assert [made.call for made in sample.trace.tool_calls()] == [ToolCall("f", json.loads(deep))]
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


REPLACED = TraceWarning("lone surrogates, which are not valid text, replaced by U+FFFD")


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("a\\ud800b", "a\ufffdb"),
        ("\\udc00\\ud800", "\ufffd\ufffd"),
        ("é\\ud83d", "é\ufffd"),
        ("\\ud83d\\ude00\\ud83d", "\U0001f600\ufffd"),
    ],
)
def test_lone_surrogates_in_text_and_keys_are_replaced_with_a_warning(write, escaped, text):
    row = f'{{"messages": [{{"role": "user", "content": "{escaped}", "k{escaped}": ["{escaped}"]}}]}}'
    [sample] = read(write("a.jsonl", f"{row}\n"))
    [message] = sample.trace.messages
    assert message.text == text
    assert message.extra == {f"k{text}": [text]}
    assert sample.trace.warnings == (REPLACED,)


@pytest.mark.parametrize(
    ("recorded", "raw", "error"),
    [
        ('{"q": "\\ud800"}', '{"q": "\\ud800"}', "not valid JSON: it contains a lone surrogate"),
        ('"{\\"q\\": \\"\\\\ud800\\"}"', '{"q": "\\ud800"}', "not JSON: "),
        ('{"q": NaN}', '{"q": NaN}', "not valid JSON: it contains nan"),
        ('{"q": 1e999}', '{"q": Infinity}', "not valid JSON: it contains inf"),
        ('"oops"', "oops", "not JSON: "),
    ],
)
def test_broken_arguments_are_kept_and_the_record_is_read(write, recorded, raw, error):
    path = write("a.jsonl", calling(recorded, text="\\ud800"))
    [sample] = read(path)
    [call] = [made.call for made in sample.trace.tool_calls()]
    assert (call.args, call.args_raw) == ({}, raw)
    assert call.args_error.startswith(error)
    assert sample.trace.warnings == (REPLACED,)
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_score_that_is_no_finite_number_is_reported(write, number):
    path = write("a.jsonl", GOOD.replace("}]}", f'}}], "prediction_score": {number}}}'))
    with pytest.raises(TraceError, match=r"prediction_score: Input should be a finite number, found (nan|inf)$"):
        list(read(path, on_error="raise"))


# --- many files


@pytest.fixture
def folder(write, tmp_path) -> Path:
    """Return a folder with files of several formats and containers, and with other files."""
    for name in ("sub/deeper", ".git", "sub/.hidden"):
        (tmp_path / name).mkdir(parents=True)
    own = Sample.model_validate({"id": "own", "trace": {"messages": [{"role": "user", "content": "b"}]}})
    write("a.jsonl", f"{json.dumps(chat('a0'))}\n{json.dumps(chat('a1', id='named'))}\n")
    write("b.jsonl.gz", own.model_dump_json())
    write("sub/c.csv", "input,output\nc0,x\nc1,y\n")
    write("sub/deeper/d.json", json.dumps([chat("d0"), chat("d1")]))
    for name in ("README.md", "LICENSE", "notes.txt", "run.log", ".git/a.json", "sub/.hidden/a.jsonl", ".e.jsonl"):
        write(name, "no recording")
    return tmp_path


FOUND = {
    "a.jsonl": [("0", "a0", 0), ("named", "a1", 1)],
    "b.jsonl.gz": [("own", "b", None)],
    "sub/c.csv": [("3", "c0", 0), ("4", "c1", 1)],
    "sub/deeper/d.json": [("5", "d0", 0), ("6", "d1", 1)],
}


@pytest.mark.parametrize("pattern", ["", "**/*.[jc]s*"])
def test_a_folder_or_a_pattern_is_all_its_files_each_of_its_own_format_and_ids_are_numbered_on(folder, pattern):
    recordings = Recordings(folder / pattern)
    samples = [
        (one.id, one.trace.messages[0].text, one.trace.source and one.trace.source.index)
        for one in recordings.samples("raise")
    ]
    assert samples == [one for found in FOUND.values() for one in found]
    assert [str(path.relative_to(folder)) for path in recordings.formats] == list(FOUND)
    assert list(recordings.formats.values()) == ["openai-chat", "judgekit", "rows", "openai-chat"]


def test_one_of_many_files_that_cannot_be_read_is_told_and_the_rest_is_read(write, folder):
    write("a2.json", "{oops")
    write("a3.jsonl.gz", gzip.compress(GOOD.encode() * 9)[:-9])
    (folder / "a3.jsonl.gz").write_bytes((folder / "a3.jsonl.gz").read_bytes()[:-9])
    write("a4.jsonl", f"{BROKEN}\n{GOOD}\n")
    met: list[TraceError] = []
    recordings = Recordings(folder)
    ids = [sample.id for sample in recordings.samples(met.append)]
    assert ids == ["0", "named", "3", "own", "5", "6", "7", "8"]
    assert [(error.path.name, error.index) for error in met] == [
        ("a2.json", None),
        ("a3.jsonl.gz", None),
        ("a4.jsonl", 0),
    ]
    assert recordings.failed == met[:2]
    with pytest.raises(TraceError, match=r"a2\.json: not JSON"):
        list(read(folder, on_error="raise"))


def test_where_no_file_can_be_read_it_is_an_error(write, tmp_path):
    with pytest.raises(TraceError, match=r"contains no readable files; known suffixes: \.json"):
        read(tmp_path)
    with pytest.raises(TraceError, match=r"\*\.csv: does not exist$"):
        read(tmp_path / "*.csv")
    write("a.json", "{oops")
    write("b.json", "5")
    met: list[TraceError] = []
    with pytest.raises(TraceError, match=r"^none of 2 files could be read; first error: .*a\.json: not JSON"):
        list(read(tmp_path, on_error=met.append))
    assert len(met) == 2


def test_a_file_whose_name_is_a_pattern_is_that_file(write):
    assert [sample.id for sample in read(write("[a]*.jsonl", GOOD))] == ["0"]


def test_ids_that_repeat_over_files_stay(write, tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        write(name, json.dumps(chat(id="same")))
    assert [sample.id for sample in read(tmp_path)] == ["same", "same"]


CHUNK = json.dumps(
    {"object": "chat.completion.chunk", "id": "a", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
)


def test_lines_that_belong_together_are_one_conversation_without_those_that_cannot_be_read(write):
    path = write("a.jsonl", f"{CHUNK}\n{{oops\n{CHUNK}\n")
    met: list[TraceError] = []
    assert [sample.trace.response for sample in read(path, on_error=met.append)] == ["HelHel"]
    assert [(error.index, error.line) for error in met] == [(0, 2)]


def test_a_pipe_is_read_like_standard_input(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LINES,))
    writer.start()
    assert [sample.trace.messages[0].text for sample in read(path)] == TEXTS
    writer.join()


def test_columns_of_other_names_are_renamed_in_objects_one_behind_another(write):
    path = write("a.json", "\n".join(json.dumps({"question": text, "output": "x"}, indent=1) for text in TEXTS))
    samples = list(read(path, columns={"question": "input"}, on_error="raise"))
    assert [sample.trace.messages[0].text for sample in samples] == TEXTS


CALLED = {
    "messages": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "12 C"}]},
    ]
}


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize(
    "first", [{"messages": [{"role": "user", "content": "Hi"}]}, {"messages": []}, {"nothing": "known"}]
)
def test_the_format_is_that_of_the_first_record_which_says_it(write, name, first):
    rows = [first, CALLED]
    content = json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows))
    *_, last = read(write(name, content), on_error=lambda _: None)
    assert (last.trace.source.format, [message.role for message in last.trace.messages]) == (
        "anthropic",
        ["user", "assistant", "tool"],
    )


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_format_of_which_there_is_nothing_is_an_error(write, name):
    path = write(name, GOOD)
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: contains no conversations$"):
        list(read(path, format="otel"))


HI = {"role": "user", "content": "Hi"}
APIS = {
    "openai-chat": {
        "request": {"messages": [HI]},
        "response": {"choices": [{"message": {"role": "assistant", "content": "Yo"}}]},
    },
    "anthropic": {
        "request": {"model": "claude-x", "max_tokens": 9, "messages": [HI]},
        "response": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yo"}]},
    },
    "bedrock": {
        "request": {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
        "response": {
            "output": {"message": {"role": "assistant", "content": [{"text": "Yo"}]}},
            "stopReason": "end_turn",
        },
    },
    "gemini": {
        "request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yo"}]}}]},
    },
    "openai-responses": {
        "request": {"model": "m", "input": "Hi"},
        "response": {
            "object": "response",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yo"}]}],
        },
    },
    "langchain": {"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Yo"}]},
    "sharegpt": {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yo"}]},
    "ragas": {"user_input": "Hi", "response": "Yo"},
    "rows": {"input": "Hi", "response": "Yo"},
}


def test_each_record_of_a_file_is_read_in_its_own_format(write):
    for first in APIS:
        for name in ["a.jsonl", "a.json"]:
            order = [first, *APIS, *reversed(APIS)]
            rows = [json.dumps(APIS[one]) for one in order]
            path = write(name, "\n".join(rows) if name == "a.jsonl" else f"[{', '.join(rows)}]")
            samples = list(read(path, on_error="raise"))
            assert [sample.trace.source.format for sample in samples] == order
            assert {tuple(message.text for message in sample.trace.messages) for sample in samples} == {("Hi", "Yo")}


def test_a_format_that_is_named_holds_for_every_record(write):
    path = write("a.jsonl", "\n".join(json.dumps(APIS[one]) for one in ("openai-chat", "bedrock")))
    problems: list[TraceError] = []
    samples = list(read(path, "openai-chat", on_error=problems.append))
    assert {sample.trace.source.format for sample in samples} <= {"openai-chat"}
    assert len(samples) + len(problems) == 2


def test_a_record_of_a_log_among_records_of_other_formats_is_told(write):
    span = {"trace_id": "t", "span_id": "s", "attributes": {"gen_ai.input.messages": "[]"}}
    rows = [APIS["openai-chat"]] * 100 + [span]
    problems: list[TraceError] = []
    samples = list(read(write("a.jsonl", "\n".join(map(json.dumps, rows))), on_error=problems.append))
    assert (len(samples), [error.index for error in problems]) == (100, [100])
    assert problems[0].problem == "is a record of otel, whose records belong together; move them to a file of their own"


def test_a_record_that_no_format_has_is_told_in_the_words_of_the_others(write):
    rows = [APIS["openai-chat"], {"messages": []}, {"messages": [{"content": "x"}]}]
    problems: list[TraceError] = []
    assert len(list(read(write("a.jsonl", "\n".join(map(json.dumps, rows))), on_error=problems.append))) == 1
    assert [error.problem.partition(":")[0] for error in problems] == ["contains no messages", "messages[0].role"]


def test_the_answers_of_a_batch_are_read_though_the_first_failed(write):
    failed = {"id": "b", "custom_id": "k", "response": None, "error": {"code": 1}}
    body = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}
    good = {"custom_id": "l", "response": {"status_code": 200, "body": body}, "reference": "Hi"}
    problems: list[TraceError] = []
    path = write("a.jsonl", "\n".join(map(json.dumps, [failed, good])))
    (made,) = read(path, on_error=problems.append)
    assert (made.id, made.trace.response, made.reference) == ("l", "Hello", "Hi")
    assert [one.index for one in problems] == [0]


@pytest.mark.parametrize("case", ["a record", "unknown format", "references"])
def test_an_error_that_is_kept_holds_no_file_open(write, case):
    many = f"{GOOD}\n" * 2_000
    broken = write("a.jsonl", f"{BROKEN}\n{many}")
    unknown = write("b.jsonl", '{"none of": "these"}\n' * 2_000)
    references = write("r.jsonl", '{"neither": "id", "nor": "input"}\n' + '{"id": "a", "reference": "r"}\n' * 2_000)
    wrong = {
        "a record": lambda: list(read(broken, on_error="raise")),
        "unknown format": lambda: read(unknown),
        "references": lambda: list(read(write("c.jsonl", many), references=references, on_error="raise")),
    }
    with pytest.raises(TraceError) as raised:
        wrong[case]()
    held = []
    for descriptor in Path("/dev/fd").iterdir():
        with suppress(FileNotFoundError):  # that of this listing
            held.append(descriptor.readlink())
    assert [path for path in held if path.parent == broken.parent] == [], raised.value


@pytest.mark.parametrize("arguments", ['{"a":1,"a":2}', '{"a":{"x y":[{"a":1,"a":2}]}}', '{"a":1,"b":2,"a":1,"b":3}'])
def test_arguments_that_repeat_a_key_have_a_warning(write, arguments):
    chat = json.loads(calling(json.dumps(arguments)))
    chat["reference_tool_calls"] = [{"name": "f", "args": arguments}, {"name": "f", "args": {"a": 1}}]
    [sample] = read(write("a.json", json.dumps(chat)))
    keys = "'a', 'b'" if "b" in arguments else "'a'"
    text = f"the arguments repeat a key, whose last value is read: {keys}"
    places = ("messages[1].tool_calls[0]", "reference_tool_calls[0]")
    assert sample.trace.warnings == tuple(TraceWarning(text, path=path) for path in places)
    assert sample.trace.messages[1].tool_calls[0].args_raw == arguments


def test_arguments_that_repeat_a_key_have_one_warning_when_they_are_read_again(write, tmp_path):
    [sample] = read(write("a.jsonl", calling(json.dumps('{"a":1,"a":2}'))))
    write_samples([sample], tmp_path / "own.jsonl")
    [again] = read(tmp_path / "own.jsonl")
    assert again == sample
    own = json.loads(sample.model_dump_json())
    own["trace"] = {**own["trace"], "warnings": [], "children": [{**own["trace"], "warnings": []}]}
    [changed] = read(write("b.jsonl", json.dumps(own)))
    places = ["messages[1].tool_calls[0]", "children[0].messages[1].tool_calls[0]"]
    assert [warning.path for warning in changed.trace.warnings] == places

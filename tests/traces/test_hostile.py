"""Files that somebody broke, beside good ones: each is reported with its place, and ends nothing."""

import gzip
import json
import os

import pytest

from judgekit.errors import JudgekitError, TraceError
from judgekit.formats.reading import read

GOOD = json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]})
DEEP = "[" * 100_000 + "]" * 100_000
DEEP_OBJECT = '{"a":' * 100_000 + "1" + "}" * 100_000


def spans(text):
    pairs = (("gen_ai.input.messages", text), ("gen_ai.operation.name", "chat"))
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in pairs]
    span = {"traceId": "1", "spanId": "2", "name": "chat", "attributes": attributes}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


BAD = {
    "deep.json": DEEP,
    "deep.jsonl": f'{{"messages": {DEEP}}}',
    "deep_object.jsonl": f'{{"messages": [{{"role": "user", "content": {DEEP_OBJECT}}}]}}',
    "deep_and_a_surrogate.jsonl": f'{{"id": "\\ud800", "messages": {DEEP}}}',
    "deep_text.json": spans(DEEP),
    "deep_text_of_objects.json": spans(DEEP_OBJECT),
    "deep_sharegpt.jsonl": json.dumps({"conversations": [{"from": "function_call", "value": DEEP_OBJECT}]}),
    "deep_cell.csv": f'input,response,reference_topics\na,b,"{DEEP}"\n',
    "no_json.jsonl": "{not JSON",
    "broken_off.json": GOOD[:-10],
    "nul.jsonl": "\0\0\0",
    "scalar.json": "7",
    "infinite.jsonl": '{"messages": [{"role": "user", "content": 1e999}]}',
    "digits.jsonl": f'{{"messages": [{{"role": "user", "content": {"9" * 5_000}}}]}}',
    "no_role.jsonl": '{"messages": [{"role": 7, "content": "x"}]}',
    "blank.jsonl": "\n\n",
    "empty.jsonl": "",
    "no_utf8.jsonl": b'{"messages": [{"role": "user", "content": "\xff\xfe caf\xe9"}]}',
    "utf16.jsonl": b"\xff\xfe{\0",
    "no_gzip.jsonl.gz": b"\x1f\x8b\x08\0broken",
    "cut.jsonl.gz": gzip.compress(GOOD.encode() * 50)[:-20],
    "no_zstd.jsonl.zst": b"\x28\xb5\x2f\xfd broken",
    "no_zip.eval": b"PK\x03\x04 broken",
    "no_parquet.parquet": b"PAR1 broken PAR1",
    "no_arrow.arrow": b"ARROW1 broken",
    "open_quote.csv": 'input,response\n"never closed,x\n',
}
"""One file for each kind of damage."""


@pytest.fixture
def folder(tmp_path):
    for place, (name, content) in enumerate(BAD.items()):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / f"{place:02}.jsonl").write_text(GOOD)
    return tmp_path


def test_all_good_files_are_read_and_every_bad_one_is_reported_with_its_place(folder):
    problems: list[TraceError] = []
    samples = list(read(folder, on_error=problems.append))
    reported = {os.path.basename(str(problem.path)) for problem in problems}  # noqa: PTH119 - paths and their texts
    assert [one.trace.response for one in samples if "hello" in (one.trace.response or "")] == ["hello"] * len(BAD)
    kept = {os.path.basename(one.trace.source.path) for one in samples if one.trace.warnings or one.trace.extra}  # noqa: PTH119
    assert BAD.keys() - reported - kept == set()
    assert all(str(problem) for problem in problems)


def test_alone_it_is_an_error_or_read_with_a_warning(folder):
    for name in BAD:
        problems: list[TraceError] = []
        try:
            samples = list(read(folder / name, on_error=problems.append))
        except JudgekitError as error:
            problems.append(error)
            samples = []
        assert problems or any(one.trace.warnings for one in samples)
        assert all(name in str(problem) for problem in problems)


def test_a_file_whose_name_is_no_utf8_is_read(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9.jsonl"
    try:
        with open(name, "w") as file:  # noqa: PTH123 - bytes
            file.write(f"{GOOD}\n{{broken\n")
    except OSError:
        pytest.skip("the file system takes names in UTF-8 alone")
    problems: list[TraceError] = []
    [sample] = read(tmp_path, on_error=problems.append)
    assert sample.trace.source.path.endswith("/caf%E9.jsonl")
    assert "caf%E9.jsonl" in str(problems[0])
    assert sample.model_dump_json()

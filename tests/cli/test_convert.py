"""``judgekit convert``."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from judgekit.formats.reading import read


@pytest.fixture
def cli(cli) -> Callable[..., tuple]:
    """Runs ``judgekit convert`` as the shell would."""
    return partial(cli, "convert")


def chat(said: str, **beside: object) -> str:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": said},
    ]
    return json.dumps({"messages": messages, **beside})


@pytest.fixture
def recorded() -> Path:
    path = Path("a.jsonl")
    path.write_text(f"{chat('a', id='x', reference='r')}\n{chat('b')}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("output", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_our_own_format_loses_nothing(cli, recorded, output):
    assert cli(recorded, "-o", output) == (0, "", f"wrote {output}: 2 conversations\n")
    assert list(read(output)) == list(read(recorded))


def test_what_has_no_place_is_said_counted_by_kind(cli, recorded):
    ended = cli(recorded, "-o", "out.jsonl", "--to", "ragas")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "wrote out.jsonl: 2 conversations",
        "ragas has no place for these:",
        "  2 x system messages",
        "  2 x system: text",
        "  1 x id",
    ]
    assert [one.reference for one in read("out.jsonl", "ragas")] == ["r", None]


def test_standard_output_holds_the_lines_alone(cli, recorded):
    ended = cli(recorded, "-o", "-", "--to", "openai-chat")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert [(row["id"], row["messages"][2]["content"]) for row in rows] == [("x", "a"), ("1", "b")]
    assert ended.err == "wrote standard output: 2 conversations\n"


def test_what_cannot_be_read_is_said_and_the_rest_is_written(cli, recorded):
    Path("b.jsonl").write_text(f"{{oops\n{chat('c')}\n")
    Path("c.json").write_text("{oops")
    ended = cli(".", "-o", "out.jsonl")
    assert ended.code == 1
    assert ended.err.splitlines()[:2] == ["wrote out.jsonl: 3 conversations", "not read: 1 record, 1 file"]
    assert [one.id for one in read("out.jsonl")] == ["x", "1", "3"]


@pytest.mark.parametrize("output", ["a.jsonl", "./a.jsonl"])
def test_a_file_that_is_read_is_not_written(cli, recorded, output):
    before = recorded.read_text()
    for source in (recorded, ".", "*.jsonl"):
        ended = cli(source, "-o", output)
        assert (ended.code, recorded.read_text()) == (2, before)
        assert "is an input file; choose another" in ended.err


def test_where_nothing_can_be_read_or_written_it_is_an_error_and_nothing_is_touched(cli, recorded):
    Path("older.jsonl").write_text("older")
    Path("b.jsonl").write_text('{"messages": [{"role": "user", "content": 5}]}\n')
    for words, said in (
        (("b.jsonl", "-o", "older.jsonl"), "judgekit: none of 1 records could be read; first error: b.jsonl (line 1)"),
        ((recorded, "-o", "older.jsonl", "--to", "tau2"), "judgekit: no format to write is called 'tau2'"),
        ((recorded, "-o", "missing/a.jsonl"), "judgekit: --output missing/a.jsonl: cannot be written: "),
    ):
        ended = cli(*words)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(said)
    assert Path("older.jsonl").read_text() == "older"


@pytest.mark.processes
def test_where_nobody_reads_on_the_output_it_ends_quietly(recorded):
    command = [sys.executable, "-c", "from judgekit.cli import main; main()", "convert", str(recorded), "-o", "-"]
    recorded.write_text(recorded.read_text() * 5_000)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_the_definition_of_an_eval_is_no_recording(cli):
    Path("eval.json").write_text(json.dumps({"id": "eval_1", "object": "eval", "testing_criteria": []}))
    ended = cli("eval.json", "-o", "out.jsonl")
    assert ended.code == 2
    assert "is the definition of an eval, which has graders and no samples; score its output items" in ended.err

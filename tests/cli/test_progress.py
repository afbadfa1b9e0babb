"""What the command line says of how far it is."""

import gzip
import json
from contextlib import contextmanager

import pytest

from judgekit.cli import run as commands
from judgekit.cli.asked import Asked
from judgekit.runs.progress import Tally
from judgekit.runs.recorder import Recorder
from judgekit.runs.rows import Row
from judgekit.runs.store import RUNS, Store
from judgekit.score import Score

SPAN = {"traceId": "a", "spanId": "b", "name": "chat", "attributes": {"gen_ai.operation.name": "chat"}}


@pytest.fixture
def begun(monkeypatch) -> list[tuple[int | None, int, int]]:
    """The total of each progress that is shown, and what was there when it began."""
    found = []

    @contextmanager
    def progress(tally: Tally, _):
        found.append((tally.total, tally.done, tally.failed))
        yield

    monkeypatch.setattr(commands, "progress", progress)
    return found


def test_what_was_there_before_counts_at_once(cli, conversations, begun):
    f1, accuracy = ("--scorer", "tool_call_f1"), ("--scorer", "tool_call_accuracy")
    cli("run", conversations(5), *f1, *accuracy)
    store = Store(RUNS)
    recorder = Recorder(store, store.record(1))
    recorder.row(Row(index=1, sample_id="s1", score=Score.failed("tool_call_f1", "broken")))
    recorder.flush()
    cli("resume")
    cli("resume", "--retry-failed")
    cli("score", 1, "--scorer", "max_tokens:8")
    assert begun == [(10, 0, 0), (10, 10, 1), (10, 9, 0), (5, 0, 0)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"file": "own.jsonl"}, 5),
        ({"file": "own.jsonl", "format": "judgekit"}, 5),
        ({"file": "own.jsonl", "limit": 3}, 3),
        ({"file": "own.jsonl", "limit": 4, "sample": 2}, 2),
        ({"file": "own.jsonl", "sample": 9}, 5),
        ({"file": "folder"}, 10),
        ({"file": "spans.jsonl"}, None),
        ({"file": "own.jsonl", "format": "otel"}, None),
        ({"file": "own.jsonl.gz"}, None),
        ({"file": "broken.jsonl"}, None),
        ({"file": "unknown.jsonl"}, None),
        ({"file": "-"}, None),
        ({"file": "-", "limit": 7}, 7),
    ],
    ids=str,
)
def test_how_many_samples_there_will_be_is_known_of_lines_that_are_samples(conversations, tmp_path, asked, expected):
    lines = conversations(5, "own.jsonl").read_text()
    (tmp_path / "folder").mkdir()
    for name in "ab":
        (tmp_path / "folder" / f"{name}.jsonl").write_text(lines)
    (tmp_path / "own.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "spans.jsonl").write_text(json.dumps(SPAN) + "\n")
    (tmp_path / "broken.jsonl").write_text("{\n")
    (tmp_path / "unknown.jsonl").write_text('{"x": [1]}\n')
    assert Asked.model_validate(asked).expected() == expected

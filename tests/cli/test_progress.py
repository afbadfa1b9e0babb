"""What the command line says of how far it is."""

from contextlib import contextmanager

import pytest

from judgekit.jobs import session
from judgekit.runs.progress import Tally
from judgekit.runs.recorder import Recorder
from judgekit.runs.rows import Row
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.score import Score


@pytest.fixture
def begun(monkeypatch) -> list[tuple[int | None, int, int]]:
    """The total of each progress that is shown, and what was there when it began."""
    found = []

    @contextmanager
    def progress(tally: Tally, _):
        found.append((tally.total, tally.done, tally.failed))
        yield

    monkeypatch.setattr(session, "progress", progress)
    return found


def test_what_was_there_before_counts_at_once(cli, conversations, begun):
    f1, accuracy = ("--scorer", "tool_call_f1"), ("--scorer", "tool_call_accuracy")
    cli("run", conversations(5), *f1, *accuracy)
    store = RunStore(DEFAULT_RUNS_PATH)
    recorder = Recorder(store, store.record(1))
    recorder.add_row(Row(index=1, sample_id="s1", score=Score.failed("tool_call_f1", "broken")))
    recorder.flush()
    cli("resume")  # nothing is missing, so there is no progress to show
    cli("resume", "--retry-failed")
    cli("score", 1, "--scorer", "max_tokens:8")
    assert begun == [(10, 0, 0), (10, 9, 0), (5, 0, 0)]

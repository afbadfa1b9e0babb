"""Fixtures of the tests of runs: a folder of their own, and a run of given rows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.traces.sample import Sample


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _run_of(*rows: Row, stop_reason: str = "", path: Path | None = None, keeps_text: bool = True) -> Run:
    scorers = [
        ScorerRecord(name=name, signature=None, identity=None, judged=False)
        for name in dict.fromkeys(row.scorer for row in rows)
    ]
    store = RunStore(path)
    record = store.begin(RunRecord(started_at=now(), scorers=scorers, keeps_text=keeps_text, count_precision="exactly"))
    recorder = Recorder(store, record)
    for row in rows:
        recorder.add_sample(row.index, Sample(id=row.sample_id, group=row.group, domain=row.domain))
        recorder.add_row(row)
    recorder.flush()
    return Run(store, store.change(record.model_copy(update={"ended_at": now(), "stop_reason": stop_reason})))


@pytest.fixture(scope="session")
def run_of() -> Callable[..., Run]:
    """A run of these rows, in memory, or in a file."""
    return _run_of

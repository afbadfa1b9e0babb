"""The rows of each sample, and the samples that most deserve a look."""

import sqlite3
from pathlib import Path

import pytest

from judgekit import HumanMessage, Sample, Score
from judgekit.errors import StoreError
from judgekit.reports import listing
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.score import JudgeCall

FILE = Path("runs.sqlite")
NAMES = ("first", "second")
SCORES = (
    lambda name, number: Score.scored(name, number / 40, label="ok"),
    lambda name, number: Score.scored(name, 1, warnings=["odd"]),
    lambda name, number: Score.skipped(name, "does not apply"),
    lambda name, number: Score.failed(name, "broken", error="ValueError"),
    lambda name, number: Score.abstained(name, "unsure"),
    lambda name, number: Score.scored(name, 0.5, calls=[JudgeCall(judge="j/m", prompt="p@1")]),
    lambda name, number: Score.scored(name, 0.25, aggregate="macro_mean", details={"domain": "a"}),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """A run of every kind of score, with two damaged scores and a damaged sample."""
    store = RunStore(FILE)
    scorers = [ScorerRecord(name=name, signature=name, identity=name, judged=False) for name in NAMES]
    record = store.begin(RunRecord(started_at=now(), scorers=scorers))
    recorder = Recorder(store, record)
    for number in range(40):
        said = [HumanMessage("Hi")]
        one = Sample.of(said, id=f"s{number}", group=f"g{number // 2}", domain="ab"[number % 2], label="x")
        recorder.add_sample(number, one)
        for place, name in enumerate(NAMES[: 1 + number % 3]):
            recorder.add_row(Row.of(number, one, SCORES[(number + 3 * place) % len(SCORES)](name, number)))
    recorder.flush()
    with store.transaction() as db:
        db.execute("UPDATE scores SET value = 0.9 WHERE sample IN (7, 21) AND scorer = 0")
        db.execute("UPDATE samples SET domain = 'c' WHERE number = 12")
    return Run.stored(path=FILE)


def test_the_rows_by_sample_are_all_rows(run):
    samples = list(run.scored_samples())
    assert [row for sample in samples for row in sample.rows] == list(run)
    assert [sample.number for sample in samples] == list(range(40))
    assert {sample.number for sample in samples if sample.usage is None} == {12}  # it is damaged


@pytest.mark.parametrize("limit", [1, 5, 17, 100])
def test_the_samples_that_most_deserve_a_look_come_first(run, limit, monkeypatch):
    included, left_out = {2, 30}, {5, 9, 30}
    concern: dict[int, float] = {}
    for row in run:
        value = row.score.value if row.score.value is not None else 2.0 if row.score.status == "skipped" else -1.0
        concern[row.index] = min(concern.get(row.index, value), value, -2.0 if row.index in included else value)
    ranked = sorted(concern.keys() - left_out, key=lambda number: (concern[number], number))
    assert {7, 12, 21} <= {number for number in ranked if concern[number] == -1}  # they are damaged
    monkeypatch.setattr(listing, "MAX_LISTED", limit)
    listed = listing.Listing.of(run, included=included, left_out=left_out)
    assert [entry.number for entry in listed.entries] == sorted(ranked[:limit])
    assert listed.samples == 40


def test_a_file_is_not_read_with_the_checksums_of_another_schema(run):
    with sqlite3.connect(FILE) as db:
        db.execute("PRAGMA user_version = 1")
    db.close()
    with pytest.raises(StoreError, match=r"written by an older judgekit \(schema 1\); name another file"):
        Run.stored(path=FILE)

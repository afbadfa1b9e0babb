"""Copies of a recording count once, whatever their ids and groups."""

import pytest

from judgekit import AIMessage, Sample, Score, compare, run
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.scoring import FunctionScorer

PASSED = [True, True, False, True, False, True, True, True, False, True, True, True] * 5


def recorded(number: int, copy: int = 0, group: str | None = None) -> Sample:
    """One of several copies of a recording, which pass if it does."""
    return Sample.of([AIMessage(f"Hi {number}")], id=f"s{number}-{copy}", group=group, label=str(PASSED[number]))


def judged(samples: list[Sample]) -> Run:
    return run(samples, [FunctionScorer(lambda sample: float(sample.label == "True"), "passed", "1")])


@pytest.fixture(scope="module")
def alone() -> Run:
    """A run without copies."""
    return judged([recorded(number) for number in range(len(PASSED))])


@pytest.mark.parametrize(("copies", "named"), [(2, ""), (3, "named")])
def test_copies_leave_the_interval_as_it_is(alone: Run, copies: int, named: str) -> None:
    samples = [
        recorded(number, copy, f"task {number} of file {copy}" if named else None)
        for copy in range(copies)
        for number in range(len(PASSED))
    ]
    interval, wanted = judged(samples).summary["passed"].interval, alone.summary["passed"].interval
    assert interval is not None
    assert wanted is not None
    assert interval.low == pytest.approx(wanted.low, abs=0.02)
    assert interval.high == pytest.approx(wanted.high, abs=0.02)
    assert interval.method == f"modified Wilson, {len(PASSED)} groups"


def test_pass_hat_k_counts_tasks_with_the_same_recordings_once() -> None:
    trials = [recorded(number, 0, f"task {number // 2}") for number in range(len(PASSED))]
    copied = [recorded(number, 1, f"other task {number // 2}") for number in range(len(PASSED))]
    one, both = (judged(samples).summary["passed"].trials for samples in (trials, trials + copied))
    for few, more in zip(one, both, strict=True):
        assert few.pass_hat_k.value == more.pass_hat_k.value
        assert few.pass_hat_k.interval is not None
        assert more.pass_hat_k.interval is not None
        assert more.pass_hat_k.interval.low == pytest.approx(few.pass_hat_k.interval.low, abs=0.03)


def test_pairs_are_joined_by_copies_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgekit.analysis.difference._DRAWS", 20)
    copied = [recorded(number, copy) for copy in range(2) for number in range(len(PASSED))]
    others = [
        one.model_copy(update={"trace": Sample.of([AIMessage(f"answer {place}")]).trace})
        for place, one in enumerate(copied)
    ]
    for a, b in ((copied, copied), (copied, others), (others, copied)):
        (found,) = compare(judged(a), judged(b))
        assert found.interval is not None
        assert "60 groups" in found.interval.method


def test_a_run_says_how_many_are_copies_and_equal_trials_are_none(alone: Run) -> None:
    assert (alone.copies, alone.notes) == (0, ())
    copied = judged([recorded(0, copy) for copy in range(3)] + [recorded(1)])
    assert copied.notes == ("2 samples are copies of others: in intervals, samples with the same recording count once",)
    assert copied.notes[0] in str(copied)
    assert judged([recorded(0, copy, "task") for copy in range(3)]).copies == 0
    assert judged([recorded(0, copy, f"task {copy % 2}") for copy in range(4)]).copies == 2


def test_copies_are_recognized_without_text_and_not_across_runs() -> None:
    store = RunStore(None)
    scorer = ScorerRecord(name="s", signature=None, identity=None, judged=False)
    hashes = []
    for _ in range(2):
        record = store.begin(RunRecord(started_at=now(), scorers=[scorer], keeps_text=False))
        recorder = Recorder(store, record)
        for number in range(2):
            sample = recorded(0, number)
            recorder.add_sample(number, sample)
            recorder.add_row(Row.of(number, sample, Score.scored("s", 1)))
        recorder.flush()
        assert {row.unit for row in Run(store, record)} == {"recording of #0"}
        hashes += [one.hash for one in store.copied_recordings(record.number)]
    assert len({*hashes}) == 2

"""How many samples a run has that was stopped, however many were read until then."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgekit.analysis.gates import check_gates
from judgekit.errors import BudgetError, TraceError
from judgekit.jobs.api import arun, run
from judgekit.runs.counting import count_samples
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, SampleCount
from judgekit.runs.runner import Task
from judgekit.runs.store import RunStore, now
from judgekit.scoring import scorer
from judgekit.traces.sample import Sample

NUMBER = 50


def generated(number: int = NUMBER) -> Iterator[Sample]:
    return (Sample(id=str(index)) for index in range(number))


def written() -> str:
    Path("samples.jsonl").write_text("".join(f"{sample.model_dump_json()}\n" for sample in generated()))
    return "samples.jsonl"


def spent_after(number: int):
    asked: list[str] = []

    @scorer
    async def judged(sample: Sample) -> float:
        asked.append(sample.id)
        place = len(asked)
        await asyncio.sleep(0.001)
        if place > number:
            raise BudgetError("spent")
        return 1.0

    return judged


@scorer
def fine(sample: Sample) -> float:
    return 1.0


@pytest.mark.parametrize("ran", [run, lambda *given, **named: asyncio.run(arun(*given, **named))], ids=["run", "arun"])
@pytest.mark.parametrize(
    ("make", "concurrency"), [(generated, 1), (generated, 32), (lambda: list(generated()), 4), (written, 4)]
)
def test_a_spent_budget_leaves_the_same_share_whatever_was_under_way(ran, make, concurrency):
    found = ran(make(), [spent_after(5)], concurrency=concurrency)
    assert str(found).splitlines()[0] == "judged  1.00 (n=5 of 50; 45 missing)"
    assert found.samples == SampleCount(NUMBER, "exactly")
    assert found.store.counts(found.number).samples <= 5 + concurrency  # those that are counted are not kept
    assert not check_gates(found, ["judged >= 0.5"], min_coverage=0.11).met
    assert check_gates(found, ["judged >= 0.5", "judged.coverage == 10%"], min_coverage=0.1).met
    assert [row.index for row in found] == list(range(5))


def test_what_is_left_of_samples_that_cannot_be_read_is_not_known():
    def reading() -> Iterator[Sample]:
        yield from generated(20)
        raise TraceError("cut off")

    found = run(reading(), [spent_after(5)], concurrency=1)
    assert (found.stop_reason, found.samples) == ("spent", SampleCount(20, "at least"))
    assert "n=5 of at least 20; at least 15 missing" in str(found)


def test_samples_are_counted_once_though_some_are_held_already():
    store = RunStore()
    record = store.begin(RunRecord(started_at=now()))
    store._db.execute("INSERT INTO samples (run, number, id, checksum) VALUES (1, 0, 'a', 0), (1, 7, 'h', 0)")
    left = (Task(number, Sample(id="x"), ()) for number in range(4, 10))
    assert count_samples(store, record.number, left, is_complete=lambda: True) == SampleCount(7, "exactly")


def test_records_that_cannot_be_read_are_told_though_the_run_did_not_reach_them():
    path = Path(written())
    path.write_text(path.read_text() + "no JSON\n")
    with pytest.warns(UserWarning, match=r"^1 record could not be read: samples.jsonl \(line 51\)"):
        found = run(path, [spent_after(5)], concurrency=1)
    assert (found.samples, found.record.notes) == (SampleCount(50, "exactly"), ("1 record could not be read",))


def test_counting_lets_others_work():
    ticks = 0

    async def work() -> None:
        nonlocal ticks
        task = asyncio.create_task(arun(generated(1_500), [spent_after(5)], concurrency=1))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)
        assert (await task).samples == SampleCount(1_500, "exactly")

    asyncio.run(work())
    assert ticks > 100


def test_a_run_that_is_canceled_while_it_counts_has_ended(tmp_path):
    path = tmp_path / "runs.sqlite"

    async def work() -> None:
        far = asyncio.Event()

        def endless() -> Iterator[Sample]:
            for sample in generated(10**9):
                if sample.id == "100":
                    far.set()
                yield sample

        task = asyncio.create_task(arun(endless(), [spent_after(5)], concurrency=1, store=path))
        await far.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    found = Run.stored(path=path)
    assert (found.stop_reason, len(found), found.samples.count_precision) == ("spent", 5, "at least")

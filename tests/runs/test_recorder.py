"""Runs are written beside the event loop: neither the disk nor another program's lock stops it."""

import asyncio
import sqlite3
import threading
import time
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.jobs.api import arun
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.score import Score
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

RUNS = Path("kept/runs.sqlite")


def samples(number: int) -> list[Sample]:
    return [Sample.of([HumanMessage("Hi"), AIMessage("Hello")], id=str(index)) for index in range(number)]


def locked(path: Path) -> threading.Thread:
    """Holds the right to write for a while, as another program does."""
    begun = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            begun.set()
            time.sleep(0.8)

    holding = threading.Thread(target=hold)
    holding.start()
    begun.wait()
    return holding


async def longest_pause(work: asyncio.Task) -> float:
    """The longest time for which nothing else had its turn, until the work is done."""
    longest, last = 0.0, time.perf_counter()
    while not work.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    return longest


@pytest.mark.parametrize("when", ["at its begin", "while it scores"])
def test_a_lock_of_another_program_stops_neither_the_loop_nor_a_deadline(when):
    """A judge with a timeout of half a second, and a lock that lasts longer."""
    RunStore(RUNS)
    number = 50 if when == "while it scores" else 4
    begun = threading.Event()

    @scorer
    async def judged(_: Sample) -> float:
        begun.set()
        async with asyncio.timeout(0.5):
            await asyncio.sleep(0.05)
        return 1.0

    async def scored() -> tuple[Run, float]:
        if when == "at its begin":
            lock = await asyncio.to_thread(locked, RUNS)
        work = asyncio.create_task(arun(samples(number), [judged], concurrency=2, store=RUNS))
        pause = asyncio.create_task(longest_pause(work))
        if when != "at its begin":
            await asyncio.to_thread(begun.wait)
            lock = await asyncio.to_thread(locked, RUNS)
        found = await work
        await asyncio.to_thread(lock.join)
        return found, await pause

    found, longest = asyncio.run(scored())
    assert found.summary["judged"].counts == {"scored": number}
    assert longest < 0.6
    assert len(Run.stored(path=RUNS)) == number


def recorder(store: RunStore) -> Recorder:
    known = [ScorerRecord(name="s", signature=None, identity=None, judged=False)]
    return Recorder(store, store.begin(RunRecord(started_at=now(), scorers=known)))


def row(index: int, score: Score | None = None) -> Row:
    return Row(index=index, sample_id=str(index), score=score or Score.scored("s", 1))


def test_what_is_canceled_again_and_again_is_written_all_the_same():
    store = RunStore(RUNS)
    writer = recorder(store)

    async def work() -> None:
        async with writer.writing():
            for index, sample in enumerate(samples(50)):
                writer.add_sample(index, sample)
                writer.add_row(row(index))
            await asyncio.sleep(60)

    async def canceled() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0.01)
        lock = await asyncio.to_thread(locked, RUNS)
        for _ in range(5):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task
        lock.join()

    asyncio.run(canceled())
    assert len(Run.stored(path=RUNS)) == 50


def test_what_is_scored_faster_than_it_is_written_waits():
    """So that a program that is killed loses no more than what came since the last write began."""
    store = RunStore(RUNS)
    writer, added, most = recorder(store), 0, 0

    async def work() -> None:
        nonlocal added, most
        async with writer.writing():
            lock = await asyncio.to_thread(locked, RUNS)
            while lock.is_alive():
                writer.add_row(row(added))
                added += 1
                if writer._writing is not None and not writer._writing.done():
                    most = max(most, writer._waiting.scores)
                await writer.yield_control()

    asyncio.run(work())
    assert len(Run.stored(path=RUNS)) == added
    assert most == 500


@pytest.mark.parametrize("characters", [10, 100_000])
def test_conversations_short_and_long_are_kept_compressed_and_whole(characters):
    sample = Sample.of([HumanMessage("word " * (characters // 5)), AIMessage("Hello")], id="s")
    asyncio.run(arun([sample], [scorer(lambda _: 1.0, name="one")], store=RUNS))
    found = Run.stored(path=RUNS)
    assert list(found.conversations()) == [(0, sample)]
    with closing(sqlite3.connect(RUNS)) as db:
        (body,) = db.execute("SELECT sample FROM conversations").fetchone()
    assert Sample.model_validate_json(zlib.decompress(body)) == sample

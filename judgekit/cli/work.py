"""Scoring for a run that was begun: what is missing of it, in this process and in others."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Self

from judgekit.cli.asked import Asked
from judgekit.errors import JudgekitError, StoreError
from judgekit.runs.problems import Problems
from judgekit.runs.rows import Row, RunRecord
from judgekit.runs.runner import Task, score_into
from judgekit.runs.store import Store
from judgekit.score import Status
from judgekit.scoring import Scorer
from judgekit.traces.sample import Sample

_BLOCK = 512
"""Samples about which the store is asked at once, and which one process takes before the next one's turn."""
_LOOK = 0.1
"""Seconds between looks at how far the processes are."""
_GRACE = 10
"""Seconds in which they are to end."""


@dataclass(frozen=True)
class Share:
    """Every ``of``-th block of samples, from the block ``number`` on."""

    number: int = 0
    of: int = 1


class Missing:
    """The scores of a run that are still to be made.

    Args:
        store: Where the run is.
        run: Its number.
        scorers: Those who are to score, by their place in the run.
        again: Scores with such a status are made again.
        share: Which samples are looked at.
    """

    def __init__(
        self,
        store: Store,
        run: int,
        scorers: Iterable[tuple[int, Scorer]],
        again: Collection[Status] = (),
        share: Share = Share(),
    ) -> None:
        self._store, self._run, self._again = store, run, again
        self._scorers = tuple(scorers)
        self._share = share
        self._block = -1
        self._done: dict[int, set[int]] = {}

    def of(self, index: int) -> Sequence[Scorer]:
        """Who has yet to score a sample."""
        block = index // _BLOCK
        if block % self._share.of != self._share.number:
            return ()
        if block != self._block:
            self._block, first = block, block * _BLOCK
            self._done = self._store.done(self._run, first, first + _BLOCK - 1, but=self._again)
        done = self._done.get(index, ())
        return [scorer for place, scorer in self._scorers if place not in done]

    def any(self, index: int) -> bool:
        """Whether somebody has."""
        return bool(self.of(index))

    def tasks(self, samples: Iterable[tuple[int, Sample]]) -> Iterator[Task]:
        """What is to be done about samples."""
        for index, sample in samples:
            if scorers := self.of(index):
                yield Task(index, sample, scorers)


@dataclass(frozen=True)
class Errand:
    """What is to be scored of a run.

    Attributes:
        path: The file it is kept in.
        record: The run.
        places: The scorers, by their place in the run.
        again: Scores with such a status are made again.
        kept: Whether the samples are those that are kept with the run, or read from its files.
    """

    path: Path
    record: RunRecord
    places: Sequence[int]
    again: Collection[Status] = ()
    kept: bool = False

    def tasks(
        self, store: Store, scorers: Sequence[Scorer], problems: Problems, share: Share = Share()
    ) -> Iterator[Task]:
        """What is still to be done; the scorers are those at its places."""
        missing = Missing(store, self.record.number, zip(self.places, scorers, strict=True), self.again, share)
        if self.kept:
            return missing.tasks(store.conversations(self.record.number, missing.any))
        return missing.tasks(Asked.of(self.record).samples(problems, missing.any))


class Processes:
    """Processes that score shares of a run. As a context: when it is left, they end."""

    def __init__(self, errand: Errand, number: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._stop = spawn.Event()
        self._counts = spawn.Array("q", 2 * number, lock=False)
        self._pipes: list[Connection] = []
        self._running: list[BaseProcess] = []
        # Ctrl-C reaches all processes, as SIGTERM may. These inherit that it is ignored: the first of them decides.
        heeded = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            for place in range(number):
                ours, theirs = spawn.Pipe(duplex=False)
                told = (errand, Share(place, number), self._stop, self._counts, theirs)
                process = spawn.Process(target=_score_share, args=told, daemon=True)
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._running.append(process)
        finally:
            for one, handler in heeded.items():
                signal.signal(one, handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for process, pipe in zip(self._running, self._pipes, strict=True):
            process.join(_GRACE)
            process.kill()
            process.join()
            process.close()
            pipe.close()

    @property
    def scored(self) -> int:
        """How many scores they have made so far."""
        return sum(self._counts[::2])

    @property
    def failed(self) -> int:
        """How many of these failed."""
        return sum(self._counts[1::2])

    async def finish(self, stopping: Callable[[], bool]) -> Problems:
        """Waits for them, and says what they could not read.

        Raises:
            JudgekitError: That which ended one of them.
        """
        waiting = list(self._pipes)
        problems = Problems()
        error: Exception | None = None
        while waiting:
            if stopping() or error is not None:
                self._stop.set()
            for pipe in [pipe for pipe in waiting if pipe.poll()]:
                waiting.remove(pipe)
                try:
                    told = pipe.recv()
                except EOFError:
                    if stopping():  # the signal reached it as it began
                        continue
                    told = StoreError("a process that scored beside this one has died")
                if isinstance(told, Exception):
                    error = error or told
                else:
                    problems.join(told)
            await asyncio.sleep(_LOOK)
        if error is not None:
            raise error
        return problems


def _score_share(errand: Errand, share: Share, stop: Event, counts: "SynchronizedArray[int]", pipe: Connection) -> None:
    """Scores a share, in a process of its own, and sends back what could not be read, or the error that ended it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    problems = Problems()

    def count(row: Row) -> None:
        counts[2 * share.number] += 1
        counts[2 * share.number + 1] += row.score.status == "failed"

    def until_stopped(tasks: Iterable[Task]) -> Iterator[Task]:
        for task in tasks:
            if stop.is_set():
                return
            yield task

    try:
        asked, store = Asked.of(errand.record), Store(errand.path)
        settings = asked.settings()
        scorers = [settings.build(asked.scorers[place]) for place in errand.places]
        work = until_stopped(errand.tasks(store, scorers, problems, share))
        asyncio.run(score_into(store, errand.record, work, scorers, concurrency=1, emit=count))
        pipe.send(problems)
    except (JudgekitError, OSError) as error:
        pipe.send(error)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)

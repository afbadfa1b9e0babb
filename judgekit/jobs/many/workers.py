"""Worker processes that make scores of a job next to this process."""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event

from judgekit.errors import JudgekitError, WorkerError
from judgekit.jobs.many.job import ScoringJob
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally
from judgekit.runs.rows import Row
from judgekit.runs.runner import score_run
from judgekit.runs.store import RunStore
from judgekit.shards import Shard

_POLL = 0.1
"""Seconds between checks of the processes."""
_GRACE = 10
"""Seconds to wait for a process that may have died."""
_END = 2.0
"""Seconds that processes have to end, all together, once they have scored or work was canceled."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _safe_path() -> Generator[None]:
    """Let processes that start meanwhile import no module of Python from the working directory."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


@dataclass(frozen=True)
class WorkerExecutor:
    """An executor that scores in worker processes, each of which scores a shard of the samples and writes to the run's file.

    Args:
        worker_count: The number of worker processes.
        shard_count: The number of shards, if this process scores the last one.
    """

    worker_count: int
    shard_count: int

    async def execute(self, job: ScoringJob, tally: Tally, should_stop: Callable[[], bool]) -> ReadingProblems:
        """See `judgekit.jobs.many.scoring.Execute`."""
        workers = _Workers(job, [Shard(index, self.shard_count) for index in range(self.worker_count)])
        tally.worker_counts = workers.counts
        try:
            return await workers.finish(should_stop)
        finally:
            await asyncio.to_thread(workers.end)


class _Workers:
    """Worker processes that are under way."""

    def __init__(self, job: ScoringJob, shards: Sequence[Shard]) -> None:
        spawn = multiprocessing.get_context("spawn")
        with _safe_path():  # a process that tracks what is shared starts too
            self._stop = spawn.Event()
        self._counts = spawn.Array("q", 2 * len(shards), lock=False)
        self._running: dict[Connection, BaseProcess] = {}
        # Ctrl-C reaches all processes, as SIGTERM may. Workers inherit that both are ignored, so this process decides.
        is_main = threading.current_thread() is threading.main_thread()
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS} if is_main else {}
        try:
            for shard in shards:
                ours, theirs = spawn.Pipe(duplex=False)
                arguments = (job, shard, self._stop, self._counts, theirs)
                process = spawn.Process(target=_score_shard, args=arguments, daemon=True)
                with _safe_path():
                    process.start()
                theirs.close()
                self._running[ours] = process
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of scores that were made so far, and of those that failed."""
        return sum(self._counts[::2]), sum(self._counts[1::2])

    def end(self) -> None:
        """End all processes, and kill those that take too long."""
        self._stop.set()
        deadline = time.monotonic() + _END
        for pipe, process in self._running.items():
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.join()
            process.close()
            pipe.close()

    async def finish(self, should_stop: Callable[[], bool]) -> ReadingProblems:
        """Wait for all processes, and return the records that they could not read.

        Raises:
            JudgekitError: The error that ended one of them.
        """
        waiting = list(self._running)
        problems = ReadingProblems()
        error: Exception | None = None
        while waiting:
            if should_stop() or error is not None:
                self._stop.set()
            for pipe in [pipe for pipe in waiting if pipe.poll()]:
                waiting.remove(pipe)
                try:
                    outcome = pipe.recv()
                except EOFError:
                    if should_stop():  # the signal reached the worker as it began
                        continue
                    outcome = _death_of(self._running[pipe])
                if isinstance(outcome, Exception):
                    error = error or outcome
                else:
                    problems.merge(outcome)
            await asyncio.sleep(_POLL)
        if error is not None:
            raise error
        return problems


def _death_of(process: BaseProcess) -> WorkerError:
    process.join(_GRACE)
    advice = "; in a script, use workers under if __name__ == '__main__'" if process.exitcode == 1 else ""
    return WorkerError(f"a worker process has died{advice}")


def _score_shard(
    job: ScoringJob, shard: Shard, stop: Event, counts: "SynchronizedArray[int]", pipe: Connection
) -> None:
    """Score a shard in a worker process, and send back the unreadable records, or the error that ended it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    problems = ReadingProblems()

    def count(row: Row) -> None:
        counts[2 * shard.index] += 1
        counts[2 * shard.index + 1] += row.score.status == "failed"

    try:
        options, store = RunOptions.from_record(job.record), RunStore(job.path)
        settings = options.load_config()
        specs = [options.scorers[index] for index in job.scorer_indexes]
        scorers = [settings.build(spec) for spec in specs if spec is not None]
        tasks = job.tasks(store, scorers, problems, shard)
        running = score_run(
            *(store, job.record, tasks, scorers),
            concurrency=1,
            should_stop=stop.is_set,
            emit=count,
            textless=job.textless,
        )
        asyncio.run(running)
        pipe.send(problems)
    except (JudgekitError, OSError) as error:
        pipe.send(error)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)

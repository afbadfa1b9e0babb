"""Ray: workers on the machines of a cluster make the scores of a job."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, JudgekitError, WorkerError, count_text, truncated
from judgekit.jobs.building import BuiltScorers
from judgekit.jobs.many.job import ScoringJob
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally
from judgekit.runs.recorder import Recorder
from judgekit.runs.runner import Task, score_run
from judgekit.runs.schema import PART_TABLES
from judgekit.runs.store import RunStore
from judgekit.scoring import Scorer
from judgekit.shards import Shard

_BLOCKS_PER_WORKER = 8
"""Blocks are shards of the recordings, enough to share the work evenly."""
_ATTEMPTS = 3
"""The number of workers that may die over one block, or as they start."""
_POLL = 0.1
"""Seconds between checks of whether to stop."""
_ANSWER = 10.0
"""Seconds in which a cluster has to answer."""
_REASON = 300
"""The most characters of Ray's reason why a worker died."""


class _Outcome(NamedTuple):
    """The outcome of a block.

    Attributes:
        rows: The rows of each table of a file of runs.
        problems: The records that could not be read.
        counts: The numbers of scores, of those that failed, of requests to judges and of cached replies.
        cost_usd: The cost of the requests; ``None`` if unknown.
        error: The error that ended the block early.
    """

    rows: Mapping[str, Sequence[tuple[object, ...]]]
    problems: ReadingProblems
    counts: tuple[int, int, float, float]
    cost_usd: float | None
    error: Exception | None


@dataclass
class _Block:
    """A shard of the recordings, and the number of workers that died while they scored it."""

    shard: Shard
    deaths: int = 0


class Worker:
    """A worker of a cluster, which scores one block after another. It builds the scorers with its own environment.

    Args:
        job: The job.
        folder: The folder that relative paths start from, if it exists there.
        done: For each sample, the indexes of the scorers that have scored it.
    """

    def __init__(self, job: ScoringJob, folder: str, done: Mapping[int, Collection[int]]) -> None:
        self._job, self._folder, self._done = job, Path(folder), done
        self._is_stopping = False

    async def ready(self) -> None:
        """Return when the worker has started."""

    async def stop(self) -> None:
        """Begin no other sample."""
        self._is_stopping = True

    async def score(self, shard: str) -> _Outcome:
        """Score the missing scores of a shard."""
        problems, tally = ReadingProblems(), Tally()
        rows: Mapping[str, Sequence[tuple[object, ...]]] = {}
        error: Exception | None = None

        with tempfile.TemporaryDirectory() as folder:
            try:
                if self._folder.is_dir():
                    os.chdir(self._folder)
                store = RunStore(Path(folder) / "runs.sqlite")
                record = store.begin(self._job.record)
                try:
                    await self._score(store, record.number, shard, problems, tally)
                finally:
                    rows = {table: list(store.table_rows(record.number, table)) for table in PART_TABLES}
            except (JudgekitError, OSError) as ending:
                error = ending
        counts = tally.done, tally.failed, tally.requests, tally.cached
        return _Outcome(rows, problems, counts, tally.cost_usd, error)

    async def _score(self, store: RunStore, number: int, shard: str, problems: ReadingProblems, tally: Tally) -> None:
        job = self._job
        options = RunOptions.from_record(job.record).model_copy(update={"shard": shard})
        settings = options.load_config()
        scorers = [settings.build(spec) for index in job.scorer_indexes if (spec := options.scorers[index]) is not None]
        indexed = list(zip(job.scorer_indexes, scorers, strict=True))

        def missing(sample: int) -> Sequence[Scorer]:
            scored = self._done.get(sample, ())
            return [scorer for index, scorer in indexed if index not in scored]

        def tasks() -> Iterator[Task]:
            samples = options.samples(problems, lambda sample: bool(missing(sample)), keeps_text=job.record.keeps_text)
            for sample_number, sample in samples:
                yield Task(sample_number, sample, missing(sample_number))

        await score_run(
            *(store, job.record.model_copy(update={"number": number})),
            *(tasks(), scorers),
            concurrency=BuiltScorers(options, scorers, settings).concurrency,
            should_stop=lambda: self._is_stopping,
            emit=tally.add,
            textless=job.textless,
        )


@dataclass(frozen=True)
class RayExecutor:
    """An executor that scores in the workers of a Ray cluster, and writes what they made into the run.

    Args:
        store: The store of the run.
        worker_count: The number of workers; by default, one for each CPU of the cluster.
        say: Called with a line on the cluster that is used.
    """

    store: RunStore
    worker_count: int | None
    say: Callable[[str], object]

    async def execute(self, job: ScoringJob, tally: Tally, should_stop: Callable[[], bool]) -> ReadingProblems:
        """See `judgekit.jobs.many.scoring.Execute`.

        Raises:
            WorkerError: Workers cannot start, or a block was given up since its workers died.
            JudgekitError: The error that ended a worker.
        """
        ray = _load()
        number, last = job.record.number, 2**63 - 1
        done = self.store.scored_by_sample(number, 0, last, except_statuses=job.retried)
        async with _cluster(ray, self.say) as cpus:
            recorder = Recorder(self.store, job.record)
            tally.workers = self.worker_count or cpus
            pool = _Pool(ray, recorder, tally, (job, str(Path.cwd()), ray.put(done)))
            count = tally.workers * _BLOCKS_PER_WORKER
            async with recorder.writing():
                await pool.run([_Block(Shard(index, count)) for index in range(count)], should_stop)
        return pool.problems


class _Pool:
    """The workers of a job. A block whose worker or machine dies is given to another worker.

    Args:
        ray: Ray.
        recorder: Records the rows that workers made.
        tally: Counts them, and says how many workers there are.
        job: The arguments of each worker.
    """

    def __init__(self, ray: Any, recorder: Recorder, tally: Tally, job: Sequence[object]) -> None:
        self.problems = ReadingProblems()
        self._ray, self._recorder, self._tally, self._job = ray, recorder, tally, job
        self._kind = ray.remote(Worker).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        self._blocks = asyncio.Queue[_Block]()
        self._actors = set[Any]()
        self._failed_starts = 0
        self._error: Exception | None = None  # no other block is begun
        self._lost: Exception | None = None  # the other blocks are scored

    async def run(self, blocks: Iterable[_Block], should_stop: Callable[[], bool]) -> None:
        """Score all blocks.

        Raises:
            JudgekitError: See `RayExecutor.execute`.
        """
        for block in blocks:
            self._blocks.put_nowait(block)
        serving = [asyncio.create_task(self._serve()) for _ in range(self._tally.workers)]
        scored = asyncio.create_task(self._blocks.join())
        try:
            while not scored.done():
                await asyncio.wait({scored, *serving}, timeout=_POLL, return_when=asyncio.FIRST_COMPLETED)
                for task in (scored, *serving):
                    if task.done():
                        task.result()  # which raises its error
                if should_stop() or self._error is not None:
                    self._stop()
        finally:
            for task in (scored, *serving):
                task.cancel()
            await asyncio.gather(scored, *serving, return_exceptions=True)
        if (error := self._error or self._lost) is not None:
            raise error

    def _stop(self) -> None:
        """Let workers end the samples that they have begun, and give them no other block."""
        with suppress(asyncio.QueueEmpty):
            while True:
                self._blocks.get_nowait()
                self._blocks.task_done()
        for actor in self._actors:
            actor.stop.remote()

    async def _serve(self) -> None:
        """Give blocks to a worker, and start another worker when it dies."""
        while True:
            actor = self._kind.remote(*self._job)
            self._actors.add(actor)
            try:
                if await self._has_started(actor):
                    await self._feed(actor)
            finally:
                self._actors.discard(actor)
                self._ray.kill(actor)

    async def _has_started(self, actor: Any) -> bool:
        try:
            await actor.ready.remote()
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= _ATTEMPTS:
                raise WorkerError(f"workers of the Ray cluster cannot start: {_reason(error)}") from error
            return False
        self._failed_starts = 0
        return True

    async def _feed(self, actor: Any) -> None:
        """Give blocks to a worker until it dies."""
        is_alive = True
        while is_alive:
            block = await self._blocks.get()
            try:
                self._record(await actor.score.remote(str(block.shard)))
            except self._ray.exceptions.RayError as error:
                is_alive = False
                self._give_back(block, error)
            finally:
                self._blocks.task_done()

    def _record(self, outcome: _Outcome) -> None:
        for table, rows in outcome.rows.items():
            self._recorder.add_rows(table, rows)
        self.problems.merge(outcome.problems)
        self._tally.add_counts(*outcome.counts, cost_usd=outcome.cost_usd)
        self._error = self._error or outcome.error

    def _give_back(self, block: _Block, error: Exception) -> None:
        """Let another worker score the block, unless it may be what kills them."""
        block.deaths += 1
        if block.deaths < _ATTEMPTS:
            self._blocks.put_nowait(block)
            return
        self._lost = self._lost or WorkerError(
            f"block {block.shard} of the recordings was given up: {_ATTEMPTS} workers died while they scored it, the "
            f"last one with: {_reason(error)}"
        )


def _reason(error: Exception) -> str:
    return truncated(" ".join(str(error).split()), _REASON)


def _load() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise ConfigError(f"Ray cannot be imported ({error}): {install_command('ray')}") from error
    with suppress(AttributeError):  # the lines of lost machines would stand in the progress; Ray has no other switch
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001 - as Ray's own debugger does
    return ray


@asynccontextmanager
async def _cluster(ray: Any, say: Callable[[str], object]) -> AsyncGenerator[int]:
    """Connect to the cluster of the program or of ``RAY_ADDRESS``, or else start one here, and yield the number of its CPUs."""
    if ray.is_initialized():
        yield _cpus(ray)
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address := os.environ.get("RAY_ADDRESS"):
        await _check_address(address)
        context = await asyncio.to_thread(ray.init, address="auto", **quiet)
        where = f"the cluster at {context['gcs_address']}"
    else:
        await asyncio.to_thread(ray.init, address="local", include_dashboard=False, **quiet)
        where = "a cluster on this machine, which was started for this run"
    try:
        say(f"Ray: {where}, with {count_text(_cpus(ray), 'CPU')}")
        yield _cpus(ray)
    finally:
        await asyncio.to_thread(ray.shutdown)


async def _check_address(address: str) -> None:
    """Check that something answers at ``host:port``, since Ray would try for minutes, which no signal ends."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()) or "/" in host:
        return
    try:
        async with asyncio.timeout(_ANSWER):
            _, writer = await asyncio.open_connection(host, int(port))
    except OSError as error:
        raise WorkerError(
            f"RAY_ADDRESS: no cluster answers at {address} ({error or type(error).__name__}); start it, or unset RAY_ADDRESS "
            "to start one on this machine"
        ) from error
    writer.close()


def _cpus(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 0)))

"""Sessions of runs: they begin or resume a run, make its missing scores, and end it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from judgekit.errors import STOPS_JUDGE, JudgeError, StoreError
from judgekit.jobs.building import THIS_PROCESS, Workers
from judgekit.jobs.executors import Executor, InProcessExecutor
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.jobs.job import ScoringJob
from judgekit.runs.counting import TaskSource, acount_samples, count_samples
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally, progress
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, SampleCount
from judgekit.runs.store import RunStore, now
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer, scorer_prompts
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    from rich.console import Console

_COUNTING_SECONDS = 10.0
"""Seconds for counting the remaining samples when a run stops, since an iterator may not end."""


@dataclass
class Session:
    """A session that makes the missing scores of a run, until all are made or an error or a signal stops it.

    Attributes:
        store: The store of the run.
        record: The run as it begins or resumes.
        scorers: The scorers that have to score.
        before: The run as it was; ``None`` for a new run.
        first_scorer: The place of the first of the scorers in the run.
        concurrency: The number of samples that are scored at once.
        workers: The workers. If they are processes, this process is one of them, unless it asks judges.
        samples: The samples with their numbers, if they are given in Python.
        from_store: Whether the samples are read from the store instead.
        retried: The statuses of scores to retry.
        problems: The records that could not be read.
        complete: The run, if it is finished and has nothing to score.
        keeps_run: Whether the run is kept although an error ended the session.
    """

    store: RunStore
    record: RunRecord
    scorers: Sequence[Scorer]
    before: RunRecord | None = None
    first_scorer: int = 0
    concurrency: int = 1
    workers: Workers = THIS_PROCESS
    samples: Iterator[tuple[int, Sample]] | None = None
    from_store: bool = False
    retried: Collection[ScoreStatus] = ()
    problems: ReadingProblems = field(default_factory=ReadingProblems)
    complete: Run | None = None
    keeps_run: bool = False

    def run(self, console: "Console | None" = None, interrupts: InterruptHandler | None = None) -> Run:
        """Score, and return the run.

        Args:
            console: Shows the progress.
            interrupts: Stops the session when a signal comes.

        Raises:
            KeyboardInterrupt: The session was interrupted before anything was scored.
            JudgekitError: Nothing could be scored, or nothing more. Scores made before are kept.
        """
        if self.complete is not None:
            return self.complete
        stopped: BaseException | None = None
        self._console, self._interrupts = console, interrupts or InterruptHandler()
        with self._begun():
            try:
                self._interrupts.run(self._score)
            except (KeyboardInterrupt, *STOPS_JUDGE) as error:
                stopped = error
            self._end(KeyboardInterrupt() if self._interrupts.is_stopping() else stopped)
            self._count()
        return Run(self.store, self.record)

    async def arun(self, console: "Console | None" = None) -> Run:
        """Score, and return the run, as `run` does. Files are used in threads."""
        if self.complete is not None:
            return self.complete
        stopped: BaseException | None = None
        self._console, self._interrupts = console, InterruptHandler()
        async with _in_thread(self._begun()):
            try:
                await self._score()
            except STOPS_JUDGE as error:
                stopped = error
            await asyncio.to_thread(self._end, stopped)
        if self._is_to_be_counted:
            count = await acount_samples(self.store, self.record.number, self._source, seconds=self._counting)
            await asyncio.to_thread(self._write_count, count)
        return Run(self.store, self.record)

    @property
    def _places(self) -> range:
        return range(self.first_scorer, self.first_scorer + len(self.scorers))

    @contextmanager
    def _begun(self) -> Generator[None]:
        """Record that the run is under way. An error ends the run, or undoes it if nothing was scored."""
        beginning = (
            self.store.beginning(self.record)
            if self.before is None
            else self.store.resuming(self.before, self.record, self.first_scorer)
        )
        with beginning as self.record:
            self._prepare()
            try:
                yield
            except BaseException as error:
                self.keeps_run = self.store.is_current and not self._is_empty
                if self.keeps_run and not isinstance(error, StoreError):  # else the file itself may be unusable
                    self._write_end(error)
                    if isinstance(error, Exception):
                        self._count()
                if self.keeps_run and self.store.path is not None:
                    error.add_note(f"saved as run {self.record.number} in {self.store.path}")
                raise

    def _prepare(self) -> None:
        shared = [place for place, one in zip(self._places, self.scorers, strict=True) if self.workers.can_score(one)]
        own = [place for place in self._places if place not in shared]
        scorers = [self.scorers[place - self.first_scorer] for place in own or self._places]
        is_new = self.before is None
        job = ScoringJob(self.store.path, self.record, own or self._places, self.retried, self.from_store, is_new)
        self._source = TaskSource(job.tasks(self.store, scorers, self.problems, given=self.samples))
        self._parts: list[tuple[Executor, ScoringJob]] = []
        if own:
            self._parts.append((InProcessExecutor(self.store, self._source, scorers, self.concurrency), job))
        if shared and self.workers.engine == "ray":
            from judgekit.jobs.ray_executor import RayExecutor  # noqa: PLC0415 - Ray is an extra

            executor = RayExecutor(self.store, self.workers.count, self._say)
            self._parts.append((executor, replace(job, scorer_indexes=shared)))
        elif shared:
            from judgekit.jobs.workers import BlockClaims, WorkerExecutor  # noqa: PLC0415 - most runs have no workers

            claims, part = BlockClaims(), replace(job, scorer_indexes=shared)
            others = (self.workers.count or 1) - (not own)
            self._parts.append((WorkerExecutor(others, claims), part))  # first, since processes take a while to start
            if not own:
                tasks = part.tasks(self.store, scorers, self.problems, claims.claim)
                self._parts.append((InProcessExecutor(self.store, tasks, scorers, self.concurrency), part))

    def _say(self, line: str) -> None:
        if self._console is not None:
            self._console.print(line, soft_wrap=True, markup=False)

    async def _score(self) -> None:
        """Score with all executors at once. A judge that stops does not end the work of other executors."""
        tally, stopped = self._tally(), list[JudgeError]()

        async def execute(executor: Executor, job: ScoringJob) -> None:
            try:
                self.problems.merge(await executor.execute(job, tally, self._interrupts.is_stopping))
            except STOPS_JUDGE as error:
                stopped.append(error)

        with nullcontext() if self._console is None else progress(tally, self._console):
            try:
                async with asyncio.TaskGroup() as group:
                    for part in self._parts:
                        group.create_task(execute(*part))
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from errors.exceptions[0].__cause__
        if stopped:
            raise stopped[0]

    def _tally(self) -> Tally:
        """Return the tally of all scores of the run, including existing ones."""
        under_way: Callable[[], int] | None = None
        if any(map(scorer_prompts, self.scorers)):
            from judgekit.judges.limits.rate_limit import requests_in_flight  # noqa: PLC0415 - else not needed

            under_way = requests_in_flight
        there = self.store.counts(self.record.number)
        again = there.failed if self.retried else 0
        return Tally(
            total=None if self.record.count_precision == "at least" else self.record.samples * len(self.scorers),
            done=0 if self.first_scorer else there.scores - again,  # added scorers have none yet
            failed=0 if self.first_scorer else there.failed - again,
            in_flight=under_way,
        )

    @property
    def _is_empty(self) -> bool:
        return self.store.is_empty(self.record.number, self.first_scorer)

    def _end(self, stopped: BaseException | None) -> None:
        """Record that the run has ended.

        Raises:
            BaseException: The error that stopped it, if nothing was scored.
            TraceError: No record could be read.
        """
        if self._is_empty:
            if stopped is not None:
                raise stopped
            if not self.record.options.get("shard"):  # those of other shards may be readable
                self.problems.check_any_read(0)
        self._write_end(stopped)

    def _write_end(self, stopped: BaseException | None) -> None:
        if isinstance(stopped, KeyboardInterrupt | asyncio.CancelledError):
            why = "interrupted"
        else:
            why = "" if stopped is None else str(stopped) or type(stopped).__name__
        ended = {"ended_at": now(), "stop_reason": why, "read_to_end": self.record.read_to_end or stopped is None}
        self.record = self.record.model_copy(update=ended)
        if self._is_to_be_counted:
            self._change()
        else:
            self._write_count(SampleCount(self.store.counts(self.record.number).samples, "exactly"))

    @property
    def _is_to_be_counted(self) -> bool:
        """Whether there may be samples that are not counted yet, or records that cannot be read."""
        is_known = self.samples is not None and self.record.count_precision == "exactly"
        return bool(self.record.stop_reason) and not self.from_store and not is_known

    @property
    def _counting(self) -> float:
        return inf if self.samples is None else _COUNTING_SECONDS

    def _count(self) -> None:
        if self._is_to_be_counted:
            with self._interrupts.abort_on_signal():
                count = count_samples(self.store, self.record.number, self._source, seconds=self._counting)
            self._write_count(count)

    def _write_count(self, count: SampleCount) -> None:
        """Record the number of samples of the run, and the records that could not be read."""
        self.problems.merge(ReadingProblems())  # records that several processes could not read count once
        known: dict[str, object] = {} if self.record.count_precision == "exactly" else count._asdict()
        if not self.from_store:
            known["unread_records"] = len(self.problems.unread_records)
            known["notes"] = tuple(self.problems.notes(self.record.inputs))
        self._change(**known)

    def _change(self, **known: object) -> None:
        self.record = self.store.change(self.record.model_copy(update=known))


@asynccontextmanager
async def _in_thread(context: AbstractContextManager[None]) -> AsyncGenerator[None]:
    """Enter and leave a context in a thread, since its use of files may take a while."""
    await asyncio.to_thread(context.__enter__)
    try:
        yield
    except BaseException as error:
        await asyncio.to_thread(context.__exit__, type(error), error, error.__traceback__)
        raise
    await asyncio.to_thread(context.__exit__, None, None, None)

"""Scoring by several executors at once: this process, worker processes, and the workers of a Ray cluster."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from judgekit.errors import STOPS_JUDGE, JudgeError
from judgekit.jobs.building import Workers
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.jobs.many.job import ScoringJob
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally
from judgekit.runs.rows import RunRecord
from judgekit.runs.runner import Task, score_run
from judgekit.runs.store import RunStore
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer


class SharedSession(Protocol):
    """The part of a `judgekit.jobs.session.Session` that its executors need."""

    store: RunStore
    record: RunRecord
    scorers: Sequence[Scorer]
    before: RunRecord | None
    first_scorer: int
    concurrency: int
    workers: Workers
    from_store: bool
    retried: Collection[ScoreStatus]
    problems: ReadingProblems
    interrupts: InterruptHandler

    def print_line(self, line: str) -> None:
        """Print a line where the progress is shown."""
        ...


class Executor(Protocol):
    """An object that makes the missing scores of a job and writes them into its run."""

    async def execute(self, job: ScoringJob, tally: Tally, should_stop: Callable[[], bool]) -> ReadingProblems:
        """Score until all is done or work is to stop, and return the records that could not be read.

        Args:
            job: The scores to make. A job can be sent to other processes, which build its scorers from their specs.
            tally: Counts the scores, for the progress bar.
            should_stop: Returns whether to begin no other sample.

        Raises:
            JudgekitError: No other sample can be scored.
        """
        ...


@dataclass(frozen=True)
class InProcessExecutor:
    """An executor that scores in this process, with scorers that may be any objects.

    Args:
        store: The store of the run.
        tasks: The samples with missing scores.
        scorers: All scorers of the tasks.
        concurrency: The number of samples that are scored at once.
    """

    store: RunStore
    tasks: Iterable[Task]
    scorers: Sequence[Scorer]
    concurrency: int

    async def execute(self, job: ScoringJob, tally: Tally, should_stop: Callable[[], bool]) -> ReadingProblems:
        """See `Executor`."""
        await score_run(
            self.store,
            job.record,
            self.tasks,
            self.scorers,
            concurrency=self.concurrency,
            should_stop=should_stop,
            emit=tally.add,
            textless=job.textless,
            is_new=job.is_new,
        )
        return ReadingProblems()


async def score_with_workers(session: SharedSession, tally: Tally, own_tasks: Iterable[Task]) -> None:
    """Make the missing scores of a session with its workers, and in this process with the scorers that need it.

    A judge that stops does not end the work of other executors.

    Args:
        session: The session.
        tally: Counts the scores, for the progress bar.
        own_tasks: The samples with the scores that only this process can make.
    """
    stopped = list[JudgeError]()

    async def execute(executor: Executor, job: ScoringJob) -> None:
        try:
            session.problems.merge(await executor.execute(job, tally, lambda: session.interrupts.signal is not None))
        except STOPS_JUDGE as error:
            stopped.append(error)

    try:
        async with asyncio.TaskGroup() as group:
            for executor, job in _executors(session, own_tasks):
                group.create_task(execute(executor, job))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    if stopped:
        raise stopped[0]


def _executors(session: SharedSession, own_tasks: Iterable[Task]) -> Sequence[tuple[Executor, ScoringJob]]:
    """Return the executors of a session, each with its job."""
    store, workers = session.store, session.workers
    scorers = dict(enumerate(session.scorers, session.first_scorer))
    shared = [index for index, scorer in scorers.items() if workers.can_score(scorer)]
    own = [index for index in scorers if index not in shared]
    is_new = session.before is None
    job = ScoringJob(store.path, session.record, own, session.retried, session.from_store, is_new)
    executors: list[tuple[Executor, ScoringJob]] = []
    if own:
        own_scorers = [scorers[index] for index in own]
        executors.append((InProcessExecutor(store, own_tasks, own_scorers, session.concurrency), job))
    shared_job = replace(job, scorer_indexes=shared)
    if shared and workers.engine == "ray":
        from judgekit.jobs.many.ray import RayExecutor  # noqa: PLC0415 - Ray is an extra

        executors.append((RayExecutor(store, workers.count, session.print_line), shared_job))
    elif shared:
        from judgekit.jobs.many.workers import BlockClaims, WorkerExecutor  # noqa: PLC0415 - only for processes

        claims = BlockClaims()
        others = (workers.count or 1) - (not own)
        executors.append((WorkerExecutor(others, claims), shared_job))  # first, since processes take a while to start
        if not own:
            tasks = shared_job.tasks(store, session.scorers, session.problems, claims.claim)
            executors.append((InProcessExecutor(store, tasks, session.scorers, session.concurrency), shared_job))
    return executors

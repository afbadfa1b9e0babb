"""Scoring by several executors at once: this process, worker processes, and the workers of a Ray cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

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
from judgekit.shards import Shard


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


Execute: TypeAlias = Callable[[ScoringJob, Tally, Callable[[], bool]], Awaitable[ReadingProblems]]
"""Makes the missing scores of a job, counts them, and writes them into its run, until all is done or work is to stop.

It returns the records that could not be read, and raises a `JudgekitError` if no other sample can be scored. A job can be
sent to other processes, which build its scorers from their specs.
"""


async def score_with_workers(session: SharedSession, tally: Tally, own_tasks: Iterable[Task]) -> None:
    """Make the missing scores of a session with its workers, and in this process with the scorers that need it.

    A judge that stops does not end the work of other executors.

    Args:
        session: The session.
        tally: Counts the scores, for the progress bar.
        own_tasks: The samples with the scores that only this process can make.
    """
    stopped = list[JudgeError]()

    async def work(execute: Execute, job: ScoringJob) -> None:
        try:
            session.problems.merge(await execute(job, tally, lambda: session.interrupts.signal is not None))
        except STOPS_JUDGE as error:
            stopped.append(error)

    try:
        async with asyncio.TaskGroup() as group:
            for execute, job in _executors(session, own_tasks):
                group.create_task(work(execute, job))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    if stopped:
        raise stopped[0]


def _executors(session: SharedSession, own_tasks: Iterable[Task]) -> Sequence[tuple[Execute, ScoringJob]]:
    """Return the executors of a session, each with its job."""

    def in_this_process(tasks: Iterable[Task], scorers: Sequence[Scorer]) -> Execute:
        async def execute(job: ScoringJob, tally: Tally, should_stop: Callable[[], bool]) -> ReadingProblems:
            await score_run(
                *(store, job.record, tasks, scorers),
                concurrency=session.concurrency,
                should_stop=should_stop,
                emit=tally.add,
                textless=job.textless,
            )
            return ReadingProblems()

        return execute

    store, workers = session.store, session.workers
    scorers = dict(enumerate(session.scorers, session.first_scorer))
    shared = [index for index, scorer in scorers.items() if workers.can_score(scorer)]
    own = [index for index in scorers if index not in shared]
    job = ScoringJob(store.path, session.record, own, session.retried, session.from_store)
    executors: list[tuple[Execute, ScoringJob]] = []
    if own:
        executors.append((in_this_process(own_tasks, [scorers[index] for index in own]), job))
    shared_job = replace(job, scorer_indexes=shared)
    if shared and workers.engine == "ray":
        from judgekit.jobs.many.ray import RayExecutor  # noqa: PLC0415 - Ray is an extra

        executors.append((RayExecutor(store, workers.count, session.print_line).execute, shared_job))
    elif shared:
        from judgekit.jobs.many.workers import WorkerExecutor  # noqa: PLC0415 - only for processes

        count = workers.count or 1
        execute = WorkerExecutor(count - (not own), count).execute
        executors.append((execute, shared_job))  # first, since processes take a while to start
        if not own:
            tasks = shared_job.tasks(store, session.scorers, session.problems, Shard(count - 1, count))
            executors.append((in_this_process(tasks, session.scorers), shared_job))
    return executors

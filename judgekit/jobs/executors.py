"""Executors: they make the scores of a job."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from judgekit.jobs.interrupts import take_until
from judgekit.jobs.job import ScoringJob
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally
from judgekit.runs.runner import Task, score_run
from judgekit.runs.store import RunStore
from judgekit.scoring import Scorer


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
            take_until(self.tasks, should_stop),
            self.scorers,
            concurrency=self.concurrency,
            emit=tally.add,
            textless=job.textless,
            is_new=job.is_new,
        )
        return ReadingProblems()

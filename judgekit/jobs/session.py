"""Sessions of runs: they begin or resume a run, make its missing scores, and end it."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from judgekit.errors import STOPS_JUDGE, StoreError
from judgekit.follow_ups import SampleScores
from judgekit.jobs.building import THIS_PROCESS, Workers
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.jobs.missing import MissingScores
from judgekit.jobs.options import RunOptions
from judgekit.runs.counting import count_samples
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.progress import Tally, progress
from judgekit.runs.results import Run
from judgekit.runs.rows import RunDescription, RunRecord, SampleCount
from judgekit.runs.runner import Task, score_run
from judgekit.runs.store import RunStore, now
from judgekit.score import Score, ScoreStatus
from judgekit.scoring import Scorer, scorer_prompts
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    from rich.console import Console

_COUNTING_SECONDS = 10.0
"""Seconds for counting the remaining samples when a run stops, since an iterator may not end."""
_TERMINATED_COUNTING_SECONDS = 1.0
"""Seconds for it after SIGTERM."""


@dataclass
class Session:
    """A session that makes the missing scores of a run, until all are made or an error or a signal stops it.

    Attributes:
        store: The store of the run.
        record: The run as it begins or resumes.
        options: The options of the run.
        scorers: The scorers that have to score.
        before: The run as it was; ``None`` for a new run.
        first_scorer: The index of the first of the scorers in the run.
        concurrency: The number of samples that are scored at once.
        workers: The workers. If they are processes, this process is one of them, unless it asks judges.
        samples: The samples with their numbers, if they are given in Python.
        from_store: Whether the samples are read from the store instead.
        retried: The statuses of scores to retry.
        description: What people call the run; ``None`` leaves that as it is.
        problems: The records that could not be read.
        complete: The run, if it is finished and has nothing to score.
        keeps_run: Whether the run is kept although an error ended the session.
        console: Shows the progress, if there is one.
        interrupts: Stops the session when a signal comes.
    """

    store: RunStore
    record: RunRecord
    options: RunOptions
    scorers: Sequence[Scorer]
    before: RunRecord | None = None
    first_scorer: int = 0
    concurrency: int = 1
    workers: Workers = THIS_PROCESS
    samples: Iterator[tuple[int, Sample]] | None = None
    from_store: bool = False
    retried: Collection[ScoreStatus] = ()
    description: RunDescription | None = None
    problems: ReadingProblems = field(default_factory=ReadingProblems)
    complete: Run | None = None
    keeps_run: bool = False
    console: "Console | None" = None
    interrupts: InterruptHandler = field(default_factory=InterruptHandler)
    _tasks: Iterator[Task] = field(default_factory=lambda: iter(()), init=False)
    _began: float = field(default=0.0, init=False)
    _read_to_end: bool = field(default=False, init=False)
    _is_canceled: bool = field(default=False, init=False)

    def run(self) -> Run:
        """Score, and return the run.

        Raises:
            KeyboardInterrupt: The session was interrupted before anything was scored.
            JudgekitError: Nothing could be scored, or nothing more. Scores made before are kept.
        """
        if self.complete is not None:
            return self.complete
        with self._begun():
            self.interrupts.run(self._score)
        if self._has_uncounted_samples:
            self._count()
        return self._finished_run()

    async def arun(self) -> Run:
        """Score, and return the run, as `run` does. Files are used in threads."""
        if self.complete is not None:
            return self.complete
        async with _in_thread(self._begun()):
            await self._score()
        if self._has_uncounted_samples:
            try:
                await asyncio.to_thread(self._count)
            except asyncio.CancelledError:
                self._is_canceled = True
                raise
        return await asyncio.to_thread(self._finished_run)

    @contextmanager
    def _begun(self) -> Generator[None]:
        """Record that the run is under way, and then its end. An error ends the run, or undoes it if nothing was scored."""
        self.record = self.store.begin(self.record) if self.before is None else self.store.change(self.record)
        if self.description is not None:
            self.store.describe(self.record.number, self.description)
        self._tasks = self._missing_tasks()
        self._began = monotonic()
        if (before := self.before) is not None:  # the time until the last stamp counts, if that session was killed
            ended = before.ended_at or self.store.stamped_at(before.number) or before.started_at
            worked = (ended - before.started_at).total_seconds()
            self._began -= worked if before.worked_seconds is None else before.worked_seconds
        stopped: BaseException | None = None
        try:
            try:
                yield
            except (KeyboardInterrupt, *STOPS_JUDGE) as error:
                stopped = error
            self._end(stopped if self.interrupts.signal is None else KeyboardInterrupt())
        except BaseException as error:
            self.keeps_run = self.store.is_current and not self.store.is_empty(self.record.number, self.first_scorer)
            if self.keeps_run and not isinstance(error, StoreError):  # else the file itself may be unusable
                self._write_end(error)
                if isinstance(error, Exception) and self._has_uncounted_samples:
                    self._count()
            with suppress(StoreError):  # the first error says why there is no run, or why it does not resume
                if self.before is None:
                    self.store.discard(self.record.number)
                else:
                    self.store.restore(self.before, self.first_scorer)
            if self.keeps_run and self.store.path is not None:
                error.add_note(f"saved as run {self.record.number} in {self.store.path}")
            raise

    def _missing_tasks(self) -> Iterator[Task]:
        """Yield each sample with missing scores, with the scorers that this process has to make them with."""
        scorers = dict(enumerate(self.scorers, self.first_scorer))
        if self.workers.has_others:
            own = {index: scorer for index, scorer in scorers.items() if not self.workers.can_score(scorer)}
            scorers = own or scorers  # if workers make all scores, this only counts the samples
        missing: MissingScores | None = None
        if self.before is not None and not self.store.is_empty(self.record.number, min(scorers)):
            missing = MissingScores(self.store, self.record.number, scorers, self.retried)
        samples = self.samples
        if samples is None and self.from_store:
            samples = self.store.conversations(self.record.number, missing.has_any if missing else lambda _: True)
        elif samples is None:
            wanted = missing.has_any if missing else None
            samples = self.options.samples(self.problems, wanted, keeps_text=self.record.keeps_text)
        everything = list(scorers.values())
        for number, sample in samples:
            if todo := everything if missing is None else missing.of(number):
                yield Task(number, sample, todo, partial(self._stored_scores, number))
        self._read_to_end = True

    def _stored_scores(self, number: int) -> SampleScores:
        """Return the scores that a sample has from before, for scorers that follow others."""
        stored = () if self.before is None else self.store.sample_scores(self.before, number)
        return SampleScores(stored, self._human_scores.get(number, ()))

    @cached_property
    def _human_scores(self) -> Mapping[int, Sequence[Score]]:
        """The values of the human labels on a run, by sample."""
        from judgekit.analysis.labels import label_value  # noqa: PLC0415 - only for runs with labels
        from judgekit.analysis.stored_labels import stored_labels  # noqa: PLC0415

        scores: dict[int, list[Score]] = defaultdict(list)
        records = {scorer.name: scorer for scorer in self.record.scorers}
        for label in stored_labels(Run(self.store, self.record)) if self.store.labeled_runs() else ():
            grade = label_value(label, records[label.scorer]) if label.scorer in records else None
            if label.number is not None and isinstance(grade, float):
                scores[label.number].append(Score.scored(label.scorer, grade, reason=label.reason))
        return scores

    async def _score(self) -> None:
        tally = self._tally()
        with nullcontext() if self.console is None else progress(tally, self.console):
            if self.workers.has_others:
                from judgekit.jobs.many.scoring import score_with_workers  # noqa: PLC0415 - most runs have no workers

                await score_with_workers(self, tally, self._tasks)
                return
            await score_run(
                self.store,
                self.record,
                self._tasks,
                self.scorers,
                concurrency=self.concurrency,
                should_stop=lambda: self.interrupts.signal is not None,
                emit=tally.add,
            )

    def _tally(self) -> Tally:
        """Return the tally of all scores of the run, including existing ones."""
        total = None if self.record.count_precision == "at least" else self.record.samples * len(self.scorers)
        tally = Tally(total)
        if self.before is not None and not self.first_scorer:  # added scorers have no scores yet
            counts = self.store.counts(self.record.number)
            retried = counts.failed if self.retried else 0
            tally = Tally(total, done=counts.scores - retried, failed=counts.failed - retried)
        if any(map(scorer_prompts, self.scorers)):
            from judgekit.judges.limits.rate_limit import requests_in_flight  # noqa: PLC0415 - else not needed

            tally.in_flight = requests_in_flight
        return tally

    def _end(self, stopped: BaseException | None) -> None:
        """Record that the run has ended.

        Raises:
            BaseException: The error that stopped it, if nothing was scored.
            TraceError: No record could be read.
        """
        if self.store.is_empty(self.record.number, self.first_scorer):
            if stopped is not None:
                raise stopped
            if not self.options.shard:  # those of other shards may be readable
                self.problems.check_any_read(0)
        self._write_end(stopped)

    def _write_end(self, stopped: BaseException | None) -> None:
        if isinstance(stopped, KeyboardInterrupt | asyncio.CancelledError):
            why = "interrupted"
        else:
            why = "" if stopped is None else str(stopped) or type(stopped).__name__
        ended = {"ended_at": now(), "stop_reason": why, "read_to_end": self.record.read_to_end or stopped is None}
        self.record = self.record.model_copy(update={**ended, "worked_seconds": monotonic() - self._began})
        if self._has_uncounted_samples:
            self.record = self.store.change(self.record)
        else:
            self._write_count(SampleCount(self.store.counts(self.record.number).samples, "exactly"))

    @property
    def _has_uncounted_samples(self) -> bool:
        """Whether the run stopped and may have samples that are not counted yet, or records that cannot be read."""
        is_counted = self.samples is not None and self.record.count_precision == "exactly"
        return bool(self.record.stop_reason) and not self.from_store and not is_counted

    @property
    def _counting(self) -> float:
        if self.interrupts.signal == signal.SIGTERM:
            return _TERMINATED_COUNTING_SECONDS
        return inf if self.samples is None else _COUNTING_SECONDS

    def _count(self) -> None:
        end = monotonic() + self._counting
        with self.interrupts.abort_on_signal():
            count = count_samples(
                self.store,
                self.record.number,
                self._tasks,
                is_complete=lambda: self._read_to_end,
                should_end=lambda: self._is_canceled or monotonic() > end,
            )
        self._write_count(count)

    def _write_count(self, count: SampleCount) -> None:
        """Record the number of samples of the run, and the records that could not be read."""
        update: dict[str, object] = {} if self.record.count_precision == "exactly" else count._asdict()
        if not self.from_store:
            update["unread_records"] = 0
            if self.problems:
                self.problems.deduplicate()  # several processes may have found the same
                update["unread_records"] = len(self.problems.unread_records)
            update["notes"] = tuple(self.problems.notes(self.record.inputs))
        self.record = self.store.change(self.record.model_copy(update=update))

    def _finished_run(self) -> Run:
        """Return the run. If it is finished, its results are written once, for lists of runs."""
        run = Run(self.store, self.record)
        if not self.record.stop_reason:
            with suppress(StoreError):  # lists of runs then count the rows
                self.store.write_results(self.record.number, run.results())
        return run

    def print_line(self, line: str) -> None:
        """Print a line where the progress is shown."""
        if self.console is not None:
            self.console.print(line, soft_wrap=True, markup=False)


@asynccontextmanager
async def _in_thread(context: AbstractContextManager[None]) -> AsyncGenerator[None]:
    """Enter and leave a context in a thread, since its use of files may take a while."""
    await asyncio.to_thread(context.__enter__)
    try:
        yield
    except BaseException as error:
        if not await asyncio.to_thread(context.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(context.__exit__, None, None, None)

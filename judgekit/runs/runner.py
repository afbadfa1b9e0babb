"""Runs scorers over samples."""

import asyncio
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import NamedTuple

from judgekit.errors import BudgetError, ConfigError, JudgeDownError, StoreError
from judgekit.runs.counting import Source, acount_samples, count_samples
from judgekit.runs.given import Given
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, SampleCount, ScorerRecord, questions_of
from judgekit.runs.store import Store, now
from judgekit.score import JudgeCall, ledger, remembering_outages
from judgekit.scoring import Scorer, attempt, wait_for
from judgekit.traces.sample import Sample

_LONGEST_WITHOUT_REST = 0.02
"""Seconds."""
_COUNTING = 10.0
"""Seconds for counting the samples that are left when a run stops: a generator may have no end."""


class Task(NamedTuple):
    """A sample with its number, and who is to score it."""

    number: int
    sample: Sample
    scorers: Sequence[Scorer]


def tasks(samples: Iterable[Sample], scorers: Sequence[Scorer]) -> Iterator[Task]:
    """Each sample for all scorers."""
    return (Task(number, sample, scorers) for number, sample in enumerate(samples))


async def arun(
    samples: Iterable[Sample] | Path | str,
    scorers: Sequence[Scorer],
    *,
    concurrency: int = 16,
    store: Path | str | None = None,
    progress: bool = False,
) -> Run:
    """Scores every sample with every scorer.

    An error in one score makes it a failed score, and the rest goes on.

    Args:
        samples: Samples, or the path of recordings, as `read` takes it. They are taken one by one as there is room, so
            that a file is read while it is scored. Of records that cannot be read the run has a note, and Python warns
            in the end. When the run stops early, what is left of a file is read to count its samples, and of other
            samples without a length those that come within ten seconds are taken and counted.
        scorers: Each with a name of its own.
        concurrency: Samples that are scored at once.
        store: A SQLite file to keep the run in; in memory if not given.
        progress: Shows how far the run is, on a terminal, in a notebook, or as a line now and then.

    Raises:
        ConfigError: Something else is given, two scorers have one name, or no sample may be scored.
        TraceError: The recordings, or all records in them, cannot be read.
        StoreError: The file cannot be used.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A budget that
            is spent after something was scored is no error: the run ends when what is under way is done, and says so in
            ``stopped``. A judge that is down is none either: its scorers stop, the others go on, and ``stopped`` says so.
            Where an error comes before the first score, no run is kept; after it, the run ends with the error in ``stopped``.
    """
    given, stopped = await asyncio.to_thread(Given.of, samples, scorers), None
    source = Source(Task(number, sample, given.scorers) for number, sample in given.samples)
    with _starting(given, store) as (kept, begun):
        try:
            await _score_given(given, kept, begun, source, concurrency, progress=progress)
        except (BudgetError, JudgeDownError) as error:
            stopped = error
        record, count = _ended(kept, begun, stopped)
    if count.samples_known != "exactly":
        count = await acount_samples(kept, record.number, source, seconds=inf if given.inputs else _COUNTING)
    return _counted(given, kept, record, count)


def run(
    samples: Iterable[Sample] | Path | str,
    scorers: Sequence[Scorer],
    *,
    concurrency: int = 16,
    store: Path | str | None = None,
    progress: bool = False,
) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done; before anything is scored, it is raised.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    given, stopped = Given.of(samples, scorers), None
    source = Source(Task(number, sample, given.scorers) for number, sample in given.samples)
    with _starting(given, store) as (kept, begun):
        try:
            wait_for(lambda: _score_given(given, kept, begun, source, concurrency, progress=progress))
        except (KeyboardInterrupt, BudgetError, JudgeDownError) as error:
            stopped = error
        record, count = _ended(kept, begun, stopped)
    if count.samples_known != "exactly":
        count = count_samples(kept, record.number, source, seconds=inf if given.inputs else _COUNTING)
    return _counted(given, kept, record, count)


@contextmanager
def _starting(given: Given, path: Path | str | None) -> Generator[tuple[Store, RunRecord]]:
    must_differ([scorer.name for scorer in given.scorers])
    store = Store(path)
    record = RunRecord(
        started_at=now(),
        inputs=given.inputs,
        scorers=[ScorerRecord.of(scorer) for scorer in given.scorers],
        samples=given.count.samples,
        samples_known=given.count.samples_known,
        version=version("judgekit"),
    )
    with store.starting(record) as record:
        try:
            yield store, record
        except BaseException as error:
            if not isinstance(error, StoreError) and not store.is_empty(record.number):
                _ended(store, record, error)
                if store.path is not None:
                    error.add_note(f"run {record.number} is kept in {store.path}")
            raise


async def _score_given(
    given: Given, store: Store, record: RunRecord, source: Source[Task], concurrency: int, *, progress: bool
) -> None:
    with given.shown() if progress else nullcontext() as emit:
        await score_into(store, record, source, given.scorers, concurrency=concurrency, emit=emit)
    given.problems.must_have_read_some(store.count(record.number))


def _ended(store: Store, record: RunRecord, stopped: BaseException | None) -> tuple[RunRecord, SampleCount]:
    """Write that a run has ended, and return of how many samples, as far as that is known.

    Raises:
        BaseException: What stopped it, if nothing came of it.
    """
    if stopped is not None and store.is_empty(record.number):
        raise stopped
    if isinstance(stopped, KeyboardInterrupt | asyncio.CancelledError):
        why = "interrupted"
    else:
        why = "" if stopped is None else str(stopped) or type(stopped).__name__
    ended = {"ended_at": now(), "stopped": why, "read_to_end": stopped is None}
    record = store.change(record.model_copy(update=ended))
    if stopped is None:
        return record, SampleCount(store.counts(record.number).samples, "exactly")
    return record, SampleCount(record.samples, record.samples_known)


def _counted(given: Given, store: Store, record: RunRecord, count: SampleCount) -> Run:
    """Return the run, after writing how many samples it has, and warning of those that could not be read."""
    notes = given.problems.notes(given.inputs)
    run = Run(store, store.change(record.model_copy(update={**count._asdict(), "notes": tuple(notes)})))
    if notes or given.problems:
        warnings.warn(": ".join(filter(None, ("; ".join(notes), str(given.problems)))), stacklevel=3)
    return run


async def score_into(
    store: Store,
    record: RunRecord,
    tasks: Iterable[Task],
    scorers: Sequence[Scorer],
    *,
    concurrency: int,
    emit: Callable[[Row], object] | None = None,
) -> None:
    """Scores, and writes samples and scores into a run that was begun. See `score_each`."""
    recorder = Recorder(store, record)

    def known() -> Iterator[Task]:
        for task in tasks:
            recorder.sample(task.number, task.sample)
            yield task

    def keep(row: Row) -> None:
        recorder.row(row)
        if emit is not None:
            emit(row)

    async with recorder.writing():
        await score_each(known(), scorers, keep, concurrency=concurrency, begin=recorder.begin)


async def score_each(
    tasks: Iterable[Task],
    scorers: Sequence[Scorer],
    emit: Callable[[Row], object],
    *,
    concurrency: int,
    begin: Callable[[int, str, list[JudgeCall]], object] = lambda _index, _scorer, _calls: None,
) -> None:
    """Scores each sample with its scorers and hands on each row as soon as it is there, in any order.

    Scorers that ask a judge, those with ``prompts``, and the others of one sample do not wait for each other. A scorer
    whose judge is down scores no further sample.

    Args:
        tasks: The samples. No more of them are taken when nothing more may be spent, or the judges of all scorers are
            down.
        scorers: All that score any of the samples.
        emit: Takes the rows.
        concurrency: Samples that are scored at once.
        begin: Takes, before a score is made, the number of its sample, its scorer, and the ledger of its judge calls.

    Raises:
        BudgetError: Nothing more may be spent. What was under way is done.
        JudgeDownError: The judge of a scorer is down. What the others could score is done.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is the number of samples at once, found {concurrency}")
    source = _Source(tasks, len(scorers))
    try:
        with remembering_outages():
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(_work(source, partial(_score, source=source, begin=begin, emit=emit)))
    except ExceptionGroup as errors:  # scores fail on their own: this is no sample's own fault
        error = errors.exceptions[0]
        raise error from error.__cause__
    if stops := [*filter(None, [source.spent]), *source.down.values()]:
        raise type(stops[0])("; ".join(dict.fromkeys(map(str, stops)))) from stops[0]


class _Source:
    """The tasks, until the budget is spent, or the judges of all scorers are down."""

    def __init__(self, tasks: Iterable[Task], scorers: int) -> None:
        self._tasks = iter(tasks)
        self._scorers = scorers
        self.spent: BudgetError | None = None
        self.down: dict[str, JudgeDownError] = {}
        """By the names of the scorers."""

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        if self.spent is not None or len(self.down) == self._scorers:
            raise StopIteration
        return next(self._tasks)


async def _work(source: _Source, score: Callable[[Task, Sequence[Scorer]], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    rested = loop.time()
    for task in source:
        judged = [scorer for scorer in task.scorers if questions_of(scorer)]
        others = [scorer for scorer in task.scorers if scorer not in judged] if judged else task.scorers
        try:
            if judged and others:
                both = (score(task, judged), score(task, others))
                for problem in await asyncio.gather(*both, return_exceptions=True):
                    if problem is not None:
                        raise problem
            else:
                await score(task, judged or others)
        except BudgetError as error:
            source.spent = source.spent or error
            return
        if loop.time() - rested > _LONGEST_WITHOUT_REST:
            await asyncio.sleep(0)  # scorers that wait for nothing would never let Ctrl-C through
            rested = loop.time()


async def _score(
    task: Task,
    scorers: Sequence[Scorer],
    source: _Source,
    begin: Callable[[int, str, list[JudgeCall]], object],
    emit: Callable[[Row], object],
) -> None:
    # One question after another, while other samples run beside: a provider's prefix cache can then help.
    for scorer in scorers:
        if scorer.name in source.down:
            continue
        try:
            with ledger() as calls:
                begin(task.number, scorer.name, calls)
                score = await attempt(scorer, task.sample)
        except JudgeDownError as error:
            source.down.setdefault(scorer.name, error)
        else:
            emit(Row.of(task.number, task.sample, score))


def must_differ(names: Sequence[str]) -> None:
    """Checks that there are scorers, by their names, and that their rows can be told apart.

    Raises:
        ConfigError: They cannot.
    """
    if not names:
        raise ConfigError("there is nothing to score with: give at least one scorer")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ConfigError(
            f"two scorers are called {twice[0]!r}; give one of them another name: as= in a config file or on the command line, name= in Python"
        )

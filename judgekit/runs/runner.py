"""Runs scorers over samples."""

import asyncio
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from judgekit.errors import BudgetError, ConfigError, TraceError
from judgekit.runs.given import Given
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord, questions_of
from judgekit.runs.store import Store, now
from judgekit.score import JudgeCall, ledger
from judgekit.scoring import Scorer, attempt, wait_for
from judgekit.traces.sample import Sample

_LONGEST_WITHOUT_REST = 0.02
"""Seconds."""


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
            in the end.
        scorers: Each with a name of its own.
        concurrency: Samples that are scored at once.
        store: A SQLite file to keep the run in; in memory if not given.
        progress: Shows how far the run is, on a terminal, in a notebook, or as a line now and then.

    Raises:
        ConfigError: Something else is given, two scorers have one name, or no sample may be scored.
        TraceError: The recordings, or all records in them, cannot be read.
        StoreError: The file cannot be used.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A budget that
            is spent is no error: the run ends when what is under way is done, and says so in ``stopped``.
    """
    given = await asyncio.to_thread(Given.of, samples, scorers)
    kept, record = _begun(given, store)
    stopped = ""
    try:
        await _score_given(given, kept, record, concurrency, progress=progress)
    except BudgetError as error:
        stopped = str(error)
    return _ended(given, kept, record, stopped)


def run(
    samples: Iterable[Sample] | Path | str,
    scorers: Sequence[Scorer],
    *,
    concurrency: int = 16,
    store: Path | str | None = None,
    progress: bool = False,
) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    given = Given.of(samples, scorers)
    kept, record = _begun(given, store)
    stopped = ""
    try:
        wait_for(lambda: _score_given(given, kept, record, concurrency, progress=progress))
    except KeyboardInterrupt:
        stopped = "interrupted"
    except BudgetError as error:
        stopped = str(error)
    return _ended(given, kept, record, stopped)


def _begun(given: Given, path: Path | str | None) -> tuple[Store, RunRecord]:
    must_differ([scorer.name for scorer in given.scorers])
    store = Store(path)
    known = [ScorerRecord.of(scorer) for scorer in given.scorers]
    begun = RunRecord(started_at=now(), inputs=given.inputs, scorers=known, version=version("judgekit"))
    return store, store.begin(begun)


async def _score_given(given: Given, store: Store, record: RunRecord, concurrency: int, *, progress: bool) -> None:
    """Scores what a run in Python is given. A run that could read nothing is forgotten."""
    todo = (Task(number, sample, given.scorers) for number, sample in given.samples)
    try:
        with given.shown() if progress else nullcontext() as emit:
            await score_into(store, record, todo, concurrency=concurrency, emit=emit)
        given.problems.must_have_read_some(store.count(record.number))
    except (ConfigError, TraceError):
        if not store.counts(record.number).samples:
            store.forget(record.number)
        raise


def _ended(given: Given, store: Store, record: RunRecord, stopped: str) -> Run:
    notes = given.problems.notes(given.inputs)
    ended = {"ended_at": now(), "stopped": stopped, "read_to_end": not stopped, "notes": tuple(notes)}
    run = Run(store, store.change(record.model_copy(update=ended)))
    if notes or given.problems:
        warnings.warn(": ".join(filter(None, ("; ".join(notes), str(given.problems)))), stacklevel=3)
    return run


async def score_into(
    store: Store,
    record: RunRecord,
    tasks: Iterable[Task],
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
        await score_each(known(), keep, concurrency=concurrency, begin=recorder.begin)


async def score_each(
    tasks: Iterable[Task],
    emit: Callable[[Row], object],
    *,
    concurrency: int,
    begin: Callable[[int, str, list[JudgeCall]], object] = lambda _index, _scorer, _calls: None,
) -> None:
    """Scores each sample with its scorers and hands on each row as soon as it is there, in any order.

    Before a score is made, ``begin`` is given its sample's number, its scorer and the ledger of the calls that it takes.
    Scorers that ask a judge, those with ``prompts``, and the others of one sample do not wait for each other.

    Raises:
        BudgetError: Nothing more may be spent. What was under way is done.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is the number of samples at once, found {concurrency}")
    source = _Source(tasks)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(_work(source, partial(_score, begin=begin, emit=emit)))
    except ExceptionGroup as errors:  # scores fail on their own: this is no sample's own fault
        error = errors.exceptions[0]
        raise error from error.__cause__
    if source.spent is not None:
        raise source.spent


class _Source:
    """The tasks, until the budget is spent."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self.spent: BudgetError | None = None

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        if self.spent is not None:
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
    begin: Callable[[int, str, list[JudgeCall]], object],
    emit: Callable[[Row], object],
) -> None:
    # One question after another, while other samples run beside: a provider's prefix cache can then help.
    for scorer in scorers:
        with ledger() as calls:
            begin(task.number, scorer.name, calls)
            score = await attempt(scorer, task.sample)
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

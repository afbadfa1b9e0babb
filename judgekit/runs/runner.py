"""Runs scorers over samples."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from judgekit.errors import BudgetError, ConfigError
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
    samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16, store: Path | str | None = None
) -> Run:
    """Scores every sample with every scorer.

    An error in one score makes it a failed score, and the rest goes on.

    Args:
        samples: Taken one by one as there is room, so that a file is read while it is scored.
        scorers: Each with a name of its own.
        concurrency: Samples that are scored at once.
        store: A SQLite file to keep the run in; in memory if not given.

    Raises:
        ConfigError: There is no scorer, or two have one name, or no sample may be scored.
        StoreError: The file cannot be used.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A budget that
            is spent is no error: the run ends when what is under way is done, and says so in ``stopped``.
    """
    kept, record = _begun(scorers, store)
    stopped = ""
    try:
        await score_into(kept, record, tasks(samples, scorers), concurrency=concurrency)
    except BudgetError as error:
        stopped = str(error)
    return _ended(kept, record, stopped)


def run(
    samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16, store: Path | str | None = None
) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    kept, record = _begun(scorers, store)
    stopped = ""
    try:
        wait_for(lambda: score_into(kept, record, tasks(samples, scorers), concurrency=concurrency))
    except KeyboardInterrupt:
        stopped = "interrupted"
    except BudgetError as error:
        stopped = str(error)
    return _ended(kept, record, stopped)


def _begun(scorers: Sequence[Scorer], path: Path | str | None) -> tuple[Store, RunRecord]:
    must_differ([scorer.name for scorer in scorers])
    store = Store(path)
    known = [ScorerRecord.of(scorer) for scorer in scorers]
    return store, store.begin(RunRecord(started_at=now(), scorers=known, version=version("judgekit")))


def _ended(store: Store, record: RunRecord, stopped: str) -> Run:
    return Run(
        store,
        store.change(record.model_copy(update={"ended_at": now(), "stopped": stopped, "read_to_end": not stopped})),
    )


async def score_into(
    store: Store,
    record: RunRecord,
    tasks: Iterable[Task],
    *,
    concurrency: int,
    emit: Callable[[Row], object] = lambda _: None,
) -> None:
    """Scores, and writes samples and scores into a run that was begun. See `score_each`."""
    recorder = Recorder(store, record)

    def known() -> Iterator[Task]:
        for task in tasks:
            recorder.sample(task.number, task.sample)
            yield task

    def keep(row: Row) -> None:
        recorder.row(row)
        emit(row)

    async with recorder.writing():
        await score_each(known(), keep, concurrency=concurrency, begin=recorder.begin)


async def score_each(
    tasks: Iterable[Task],
    emit: Callable[[Row], object],
    *,
    concurrency: int,
    begin: Callable[[int, str, list[JudgeCall]], object] = lambda *_: None,
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

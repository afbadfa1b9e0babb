"""Runs scorers over samples."""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from judgekit.errors import BudgetError, ConfigError
from judgekit.runs.counting import Source, acount_samples, count_samples
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, SampleCount, ScorerRecord, questions_of
from judgekit.runs.store import Store, now
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
    samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16, store: Path | str | None = None
) -> Run:
    """Scores every sample with every scorer.

    An error in one score makes it a failed score, and the rest goes on.

    Args:
        samples: Taken one by one as there is room, so that a file is read while it is scored. When the run stops early,
            those that are left are taken too, for ten seconds at most, and counted; those of a list need not be.
        scorers: Each with a name of its own.
        concurrency: Samples that are scored at once.
        store: A SQLite file to keep the run in; in memory if not given.

    Raises:
        ConfigError: There is no scorer, or two have one name, or no sample may be scored.
        StoreError: The file cannot be used.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A budget that
            is spent after something was scored is no error: the run ends when what is under way is done, and says so in
            ``stopped``. Where an error comes before the first score, no run is kept.
    """
    source, stopped = Source(tasks(samples, scorers)), None
    with _starting(samples, scorers, store) as (kept, begun):
        try:
            await score_into(kept, begun, source, concurrency=concurrency)
        except BudgetError as error:
            stopped = error
        record = _ended(kept, begun, stopped)
    if record.samples_known != "exactly":
        count = await acount_samples(kept, record.number, source, seconds=_COUNTING)
        record = kept.change(record.model_copy(update=count._asdict()))
    return Run(kept, record)


def run(
    samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16, store: Path | str | None = None
) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done; before anything is scored, it is raised.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    source, stopped = Source(tasks(samples, scorers)), None
    with _starting(samples, scorers, store) as (kept, begun):
        try:
            wait_for(lambda: score_into(kept, begun, source, concurrency=concurrency))
        except (KeyboardInterrupt, BudgetError) as error:
            stopped = error
        record = _ended(kept, begun, stopped)
    if record.samples_known != "exactly":
        count = count_samples(kept, record.number, source, seconds=_COUNTING)
        record = kept.change(record.model_copy(update=count._asdict()))
    return Run(kept, record)


@contextmanager
def _starting(
    samples: Iterable[Sample], scorers: Sequence[Scorer], path: Path | str | None
) -> Generator[tuple[Store, RunRecord]]:
    must_differ([scorer.name for scorer in scorers])
    store = Store(path)
    record = RunRecord(
        started_at=now(),
        scorers=[ScorerRecord.of(scorer) for scorer in scorers],
        samples=len(samples) if isinstance(samples, Sized) else 0,
        samples_known="exactly" if isinstance(samples, Sized) else "at least",
        version=version("judgekit"),
    )
    with store.starting(record) as record:
        yield store, record


def _ended(store: Store, record: RunRecord, stopped: BaseException | None) -> RunRecord:
    """Write that a run has ended.

    Raises:
        BaseException: What stopped it, if nothing came of it.
    """
    if stopped is not None and store.is_empty(record.number):
        raise stopped
    why = "interrupted" if isinstance(stopped, KeyboardInterrupt) else str(stopped or "")
    ended = {"ended_at": now(), "stopped": why, "read_to_end": stopped is None}
    if stopped is None:
        ended |= SampleCount(store.counts(record.number).samples, "exactly")._asdict()
    return store.change(record.model_copy(update=ended))


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
        await score_each(known(), keep, concurrency=concurrency)


async def score_each(tasks: Iterable[Task], emit: Callable[[Row], object], *, concurrency: int) -> None:
    """Scores each sample with its scorers and hands on each row as soon as it is there, in any order.

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
                group.create_task(_work(source, emit))
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


async def _work(source: _Source, emit: Callable[[Row], object]) -> None:
    loop = asyncio.get_running_loop()
    rested = loop.time()
    for task in source:
        judged = [scorer for scorer in task.scorers if questions_of(scorer)]
        others = [scorer for scorer in task.scorers if scorer not in judged] if judged else task.scorers
        try:
            if judged and others:
                both = (_score(task, judged, emit), _score(task, others, emit))
                for problem in await asyncio.gather(*both, return_exceptions=True):
                    if problem is not None:
                        raise problem
            else:
                await _score(task, judged or others, emit)
        except BudgetError as error:
            source.spent = source.spent or error
            return
        if loop.time() - rested > _LONGEST_WITHOUT_REST:
            await asyncio.sleep(0)  # scorers that wait for nothing would never let Ctrl-C through
            rested = loop.time()


async def _score(task: Task, scorers: Sequence[Scorer], emit: Callable[[Row], object]) -> None:
    # One question after another, while other samples run beside: a provider's prefix cache can then help.
    for scorer in scorers:
        emit(Row.of(task.number, task.sample, await attempt(scorer, task.sample)))


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

"""Runs scorers over samples."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from judgekit.errors import BudgetError, ConfigError
from judgekit.runs.conduct import Efforts
from judgekit.runs.results import Row, Run
from judgekit.scoring import Scorer, attempt, wait_for
from judgekit.traces.sample import Sample

_LONGEST_WITHOUT_REST = 0.02
"""Seconds."""


async def arun(samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16) -> Run:
    """Scores every sample with every scorer.

    An error in one score makes it a failed score, and the rest goes on.

    Args:
        samples: Taken one by one as there is room, so that a file is read while it is scored.
        scorers: Each with a name of its own.
        concurrency: Samples that are scored at once.

    Raises:
        ConfigError: There is no scorer, or two have one name, or no sample may be scored.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A budget that
            is spent is no error: the run ends when what is under way is done, and says so in ``stopped``.
    """
    stopped, efforts = "", Efforts()
    with _kept() as rows:
        try:
            await score_each(samples, scorers, rows.append, done=efforts.add, concurrency=concurrency)
        except BudgetError as error:
            stopped = str(error)
    return Run(_in_order(rows), stopped, efforts)


def run(samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    stopped, efforts = "", Efforts()
    with _kept() as rows:
        try:
            wait_for(lambda: score_each(samples, scorers, rows.append, done=efforts.add, concurrency=concurrency))
        except KeyboardInterrupt:
            stopped = "interrupted"
        except BudgetError as error:
            stopped = str(error)
    return Run(_in_order(rows), stopped, efforts)


class _Rows(list[Row]):
    """Rows that the garbage collector does not look through again and again while more of them come."""

    def append(self, row: Row, /) -> None:
        super().append(row)
        if len(self) % 2_000 == 0:
            gc.freeze()


@contextmanager
def _kept() -> Generator[_Rows]:
    try:
        yield _Rows()
    finally:
        gc.unfreeze()


def _in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: row.index))


async def score_each(
    samples: Iterable[Sample],
    scorers: Sequence[Scorer],
    emit: Callable[[Row], object],
    *,
    done: Callable[[Sample], object] = lambda _: None,
    concurrency: int = 16,
) -> None:
    """Scores every sample with every scorer and hands on each row as soon as its sample is done, in any order.

    The rows of one sample come together, in the order of the scorers, and then the sample, as ``done``. See `arun`. Scorers that ask a judge, those with
    ``prompts``, are tried after all others.

    Raises:
        BudgetError: Nothing more may be spent. What was under way is done.
    """
    must_differ(scorers)
    if concurrency < 1:
        raise ConfigError(f"concurrency is the number of samples at once, found {concurrency}")
    # Those that ask a judge come last, so that their requests follow one another closely: see `_work`.
    in_turn = sorted(enumerate(scorers), key=lambda placed: bool(getattr(placed[1], "prompts", ())))
    source = _Source(samples)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(_work(source, in_turn, emit, done))
    except ExceptionGroup as errors:  # scores fail on their own: this is no sample's own fault
        error = errors.exceptions[0]
        raise error from error.__cause__
    if source.spent is not None:
        raise source.spent


class _Source:
    """The samples with their numbers, until the budget is spent."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._numbered = enumerate(samples)
        self.spent: BudgetError | None = None

    def __iter__(self) -> Iterator[tuple[int, Sample]]:
        return self

    def __next__(self) -> tuple[int, Sample]:
        if self.spent is not None:
            raise StopIteration
        return next(self._numbered)


async def _work(
    source: _Source,
    in_turn: Sequence[tuple[int, Scorer]],
    emit: Callable[[Row], object],
    done: Callable[[Sample], object],
) -> None:
    loop = asyncio.get_running_loop()
    rested = loop.time()
    for index, sample in source:
        try:
            # One question after another, while other samples run beside: a provider's prefix cache can then help.
            scores = {place: await attempt(scorer, sample) for place, scorer in in_turn}
        except BudgetError as error:
            source.spent = source.spent or error
            return
        for place in range(len(scores)):
            emit(Row(sample_id=sample.id, index=index, score=scores[place]))
        done(sample)
        if loop.time() - rested > _LONGEST_WITHOUT_REST:
            await asyncio.sleep(0)  # scorers that wait for nothing would never let Ctrl-C through
            rested = loop.time()


def must_differ(scorers: Sequence[Scorer]) -> None:
    """Checks that there are scorers, and that their rows can be told apart.

    Raises:
        ConfigError: They cannot.
    """
    if not scorers:
        raise ConfigError("there is nothing to score with: give at least one scorer")
    twice = [name for name, times in Counter(scorer.name for scorer in scorers).items() if times > 1]
    if twice:
        raise ConfigError(
            f"two scorers are called {twice[0]!r}; give one of them another name: as= in a config file or on the command line, name= in Python"
        )

"""Runs scorers over samples."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from judgekit.errors import ConfigError
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
    """
    with _kept() as rows:
        await score_each(samples, scorers, rows.append, concurrency=concurrency)
    return Run(_in_order(rows))


def run(samples: Iterable[Sample], scorers: Sequence[Scorer], *, concurrency: int = 16) -> Run:
    """The sync twin of `arun`. Ctrl-C stops it and keeps what is done, in a run that is ``interrupted``.

    Under a running event loop, as in a notebook, it uses a thread of its own.
    """
    interrupted = False
    with _kept() as rows:
        try:
            wait_for(lambda: score_each(samples, scorers, rows.append, concurrency=concurrency))
        except KeyboardInterrupt:
            interrupted = True
    return Run(_in_order(rows), interrupted)


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
    samples: Iterable[Sample], scorers: Sequence[Scorer], emit: Callable[[Row], object], *, concurrency: int = 16
) -> None:
    """Scores every sample with every scorer and hands on each row as soon as its sample is done, in any order.

    The rows of one sample come together, in the order of the scorers. See `arun`.
    """
    must_differ(scorers)
    if concurrency < 1:
        raise ConfigError(f"concurrency is the number of samples at once, found {concurrency}")
    numbered = enumerate(samples)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(_work(numbered, scorers, emit))
    except ExceptionGroup as errors:  # scores fail on their own: this came from the samples or from emit
        error = errors.exceptions[0]
        raise error from error.__cause__


async def _work(
    numbered: Iterator[tuple[int, Sample]], scorers: Sequence[Scorer], emit: Callable[[Row], object]
) -> None:
    loop = asyncio.get_running_loop()
    rested = loop.time()
    for index, sample in numbered:
        # One question after another, while other samples run beside: a provider's prefix cache can then help.
        scores = [await attempt(scorer, sample) for scorer in scorers]
        for score in scores:
            emit(Row(sample_id=sample.id, index=index, score=score))
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
        raise ConfigError(f"two scorers are called {twice[0]!r}; give one of them another name with name=")

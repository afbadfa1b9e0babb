"""Counts all samples of a run that was stopped, so that the share that was scored does not depend on how many were read."""

import asyncio
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from math import inf
from threading import Timer

from judgekit.runs.rows import SampleCount
from judgekit.runs.runner import Task
from judgekit.runs.store import Store

_SILENT = 1.0  # seconds
_NOTICE = "counting the samples that the run did not reach; Ctrl-C ends the counting\n"


class Source(Iterator[Task]):
    """Tasks that are taken one by one; those that are left when a run stops can be counted.

    Attributes:
        broken: Whether an error came instead of a task. A generator that has raised one ends there.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self.broken = False

    def __next__(self) -> Task:
        try:
            return next(self._tasks)
        except StopIteration:
            raise
        except BaseException:
            self.broken = True
            raise


def count_samples(store: Store, run: int, left: Source, *, seconds: float = inf) -> SampleCount:
    """Return how many samples a run has: those that it holds, and those that are left, which are not kept.

    Ctrl-C, an error and the end of the given seconds end the counting: then there are at least as many as were counted.
    """
    count = SampleCount()
    with suppress(KeyboardInterrupt):
        for count in _counts(store, run, left, seconds):  # noqa: B007 - the last one is returned
            pass
    return count


async def acount_samples(store: Store, run: int, left: Source, *, seconds: float = inf) -> SampleCount:
    """The async twin of `count_samples`."""
    count = SampleCount()
    for count in _counts(store, run, left, seconds):  # noqa: B007 - the last one is returned
        await asyncio.sleep(0)
    return count


def _counts(store: Store, run: int, left: Source, seconds: float) -> Generator[SampleCount]:
    """Count one sample after another; the last count is exact if nothing came between."""
    samples, end = store.counts(run).samples, time.monotonic() + seconds
    yield SampleCount(samples)
    notice = Timer(_SILENT, sys.stderr.write, [_NOTICE])  # reading may wait for another program
    notice.daemon = True
    notice.start()
    try:
        for task in left:
            samples += not store.has_sample(run, task.number)
            yield SampleCount(samples)
            if time.monotonic() > end:
                return
    except Exception:  # noqa: BLE001 - what cannot be read cannot be counted, and the run is stopped already
        return
    finally:
        notice.cancel()
    if not left.broken:
        yield SampleCount(samples, "exactly")

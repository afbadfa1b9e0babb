"""The count of all samples of a stopped run, so that the scored share does not depend on how many were read."""

import asyncio
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from math import inf
from threading import Timer

from judgekit.runs.rows import SampleCount
from judgekit.runs.runner import Task
from judgekit.runs.store import RunStore

_SILENT = 1.0  # seconds
_NOTICE = "counting the samples that the run did not reach; press Ctrl-C to skip this\n"


def count_samples(
    store: RunStore, run: int, remaining: Iterator[Task], is_complete: Callable[[], bool], *, seconds: float = inf
) -> SampleCount:
    """Return the number of samples in a run: those in its file, and the remaining ones, which are not kept.

    Ctrl-C, an error or the end of ``seconds`` ends the counting. The count is a lower bound then. So it is unless
    ``is_complete`` says at its end that all samples were read.
    """
    count = SampleCount()
    with suppress(KeyboardInterrupt):
        for count in _counts(store, run, remaining, is_complete, seconds):  # noqa: B007 - the last one is returned
            pass
    return count


async def acount_samples(
    store: RunStore, run: int, remaining: Iterator[Task], is_complete: Callable[[], bool], *, seconds: float = inf
) -> SampleCount:
    """Count samples like `count_samples`, without blocking the event loop."""
    count = SampleCount()
    for count in _counts(store, run, remaining, is_complete, seconds):  # noqa: B007 - the last one is returned
        await asyncio.sleep(0)
    return count


def _counts(
    store: RunStore, run: int, remaining: Iterator[Task], is_complete: Callable[[], bool], seconds: float
) -> Generator[SampleCount]:
    """Yield the count after each sample; the last count is exact if all samples were reached."""
    samples, end = store.counts(run).samples, time.monotonic() + seconds
    yield SampleCount(samples)
    notice = Timer(_SILENT, sys.stderr.write, [_NOTICE])  # reading may block
    notice.daemon = True
    notice.start()
    try:
        for task in remaining:
            samples += not store.has_sample(run, task.number)
            yield SampleCount(samples)
            if time.monotonic() > end:
                return
    except Exception:  # noqa: BLE001 - unreadable samples cannot be counted, and the run has stopped anyway
        return
    finally:
        notice.cancel()
    if is_complete():
        yield SampleCount(samples, "exactly")

"""The count of all samples of a stopped run, so that the scored share does not depend on how many were read."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Timer

from judgekit.runs.rows import SampleCount
from judgekit.runs.runner import Task
from judgekit.runs.store import RunStore

_SILENT = 1.0  # seconds
_NOTICE = "counting the samples that the run did not reach; press Ctrl-C to skip this\n"


def count_samples(
    store: RunStore,
    run: int,
    remaining: Iterator[Task],
    *,
    is_complete: Callable[[], bool],
    should_end: Callable[[], bool] = lambda: False,
) -> SampleCount:
    """Return the number of samples in a run: those in its file, and the remaining ones, which are not kept.

    Ctrl-C or an error ends the counting, or that it ``should_end``. The count is a lower bound then. So it is unless
    ``is_complete`` says at its end that all samples were read.
    """
    samples = store.counts(run).samples
    notice = Timer(_SILENT, sys.stderr.write, [_NOTICE])  # reading may block
    notice.daemon = True
    notice.start()
    with suppress(KeyboardInterrupt, Exception):  # unreadable samples cannot be counted, and the run has stopped anyway
        for task in remaining:
            samples += not store.has_sample(run, task.number)
            if should_end():
                break
        else:
            notice.cancel()
            return SampleCount(samples, "exactly" if is_complete() else "at least")
    notice.cancel()
    return SampleCount(samples)

"""Runs in Python, sync and async. What they need is imported when they are called."""

import asyncio
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from judgekit.jobs.building import Named
    from judgekit.jobs.plan import RunPlan
    from judgekit.jobs.resume import Which
    from judgekit.jobs.session import Session
    from judgekit.runs.problems import Problems
    from judgekit.runs.results import Run
    from judgekit.scoring import Scorer
    from judgekit.traces.sample import Sample


def run(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[Named] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """Score every sample with every scorer, and return the run.

    An error in one score makes it a failed score, and the rest goes on. Ctrl-C stops the run and keeps what is done; before
    anything is scored, it is raised. Under a running event loop, as in a notebook, a thread of its own is used.

    Args:
        data: Samples, or the path of recordings, as `read` takes it. They are taken one by one as there is room, so
            that a file is read while it is scored. Of records that cannot be read the run has a note, and Python warns
            in the end. When the run stops early, what is left of a file is read to count its samples, and of other
            samples without a length those that come within ten seconds are taken and counted.
        scorers: Each with a name of its own: objects such as ``ToolCallF1()``, or texts as behind ``--scorer``, such as
            ``"tool_call_f1"`` or ``"rouge:rouge1"``. If not given, those of the config.
        config: A config file, for scorers that are texts and their judges, and for ``store_text``. If not given, scorers
            that are texts use ``judgekit.toml`` of the working directory, if it is there.
        judge: The judge of scorers that are texts, in place of that of the config or of ``JUDGEKIT_JUDGE``: a model such
            as ``openai/gpt-4.1-mini``, or a name from the config.
        concurrency: Samples that are scored at once. If not given, the most requests that a judge of the config takes at
            once, and at least 16 if there are scorers that are objects.
        workers: Processes for the scorers that ask no judge. More than 1 need such scorers to be texts, ``data`` a path,
            and a ``store``; a script calls this under ``if __name__ == "__main__":``.
        store: A SQLite file to keep the run in; in memory if not given.
        progress: Shows how far the run is, on a terminal, in a notebook, or as a line now and then.

    Raises:
        ConfigError: Something else is given, two scorers have one name, or no sample may be scored.
        TraceError: The recordings, or all records in them, cannot be read.
        StoreError: The file cannot be used.
        JudgekitError: No further sample could be scored: a key is refused, a model unknown, a disk full. A judge that is
            down, or whose budget or quota is spent, is no error after something was scored: its scorers stop, the others
            go on, and ``stopped`` says so. Where an error comes before the first score, no run is kept; after it, the run
            ends with the error in ``stopped``, and `resume` goes on with it.
    """
    from judgekit.jobs.starting import started  # noqa: PLC0415 - see above

    return _finish(started(data, scorers, config, judge, concurrency, workers, store), progress=progress)


async def arun(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[Named] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """The async twin of `run`."""
    from judgekit.jobs.starting import started  # noqa: PLC0415 - see above

    session = await asyncio.to_thread(started, data, scorers, config, judge, concurrency, workers, store)
    return await _afinish(session, progress=progress)


def resume(
    run: "Which" = "last",
    *,
    data: "Iterable[Sample] | None" = None,
    scorers: "Iterable[Scorer]" = (),
    retry_failed: bool = False,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """Score what is missing of a run that was stopped or broke off, and return the run.

    Args:
        run: The run, its number in the store, or ``"last"``.
        data: The samples, if they were given in Python and not all are kept with the run. They must be the same.
        scorers: The scorers of the run that were given as objects. They must have the same signatures.
        retry_failed: Makes failed scores again.
        concurrency: As in `run`.
        workers: As in `run`.
        store: The file of the run, if its number is given; ``.judgekit/runs.sqlite`` if not given.
        progress: As in `run`.

    Raises:
        ConfigError: Recordings, samples, a scorer, a judge or a prompt are not what they were, or are missing.
        JudgekitError: As in `run`.
    """
    from judgekit.jobs.resume import resumed  # noqa: PLC0415 - see above

    return _finish(resumed(run, store, data, scorers, retry_failed, concurrency, workers), progress=progress)


async def aresume(
    run: "Which" = "last",
    *,
    data: "Iterable[Sample] | None" = None,
    scorers: "Iterable[Scorer]" = (),
    retry_failed: bool = False,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """The async twin of `resume`."""
    from judgekit.jobs.resume import resumed  # noqa: PLC0415 - see above

    session = await asyncio.to_thread(resumed, run, store, data, scorers, retry_failed, concurrency, workers)
    return await _afinish(session, progress=progress)


def add_scorers(
    run: "Which",
    scorers: "Iterable[Named]",
    *,
    data: "Iterable[Sample] | None" = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """Score the samples of a finished run with more scorers, and return the run. Its other scores stay as they are.

    Args:
        run: The run, its number in the store, or ``"last"``.
        scorers: Objects, or texts as behind ``--scorer``, which are built with the config of the run.
        data: The samples, if they were given in Python and are not kept with the run. They must be the same.
        judge: The judge of scorers that are texts; that of the run if not given.
        concurrency: As in `run`.
        workers: As in `run`.
        store: The file of the run, if its number is given; ``.judgekit/runs.sqlite`` if not given.
        progress: As in `run`.

    Raises:
        ConfigError: The run is not finished, has a scorer of that name, or its recordings are not what they were.
        JudgekitError: As in `run`.
    """
    from judgekit.jobs.resume import extended  # noqa: PLC0415 - see above

    return _finish(extended(run, store, scorers, data, judge, concurrency, workers), progress=progress)


async def aadd_scorers(
    run: "Which",
    scorers: "Iterable[Named]",
    *,
    data: "Iterable[Sample] | None" = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """The async twin of `add_scorers`."""
    from judgekit.jobs.resume import extended  # noqa: PLC0415 - see above

    session = await asyncio.to_thread(extended, run, store, scorers, data, judge, concurrency, workers)
    return await _afinish(session, progress=progress)


def plan(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[Named] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
) -> "RunPlan":
    """Return what `run` would ask of its judges. Nothing is sent or kept, and no key is needed.

    Scorers that ask no judge do score, so that what they would skip or fail is known.

    Raises:
        ConfigError: As in `run`.
        TraceError: The recordings cannot be read.
    """
    from judgekit.jobs.plan import planned  # noqa: PLC0415 - see above
    from judgekit.jobs.starting import described  # noqa: PLC0415
    from judgekit.scoring import wait_for  # noqa: PLC0415

    built, samples = described(data, scorers, config, judge)
    found = wait_for(lambda: planned(built, samples))
    _warn(found.problems, stacklevel=3)
    return found


async def aplan(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[Named] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
) -> "RunPlan":
    """The async twin of `plan`."""
    from judgekit.jobs.plan import planned  # noqa: PLC0415 - see above
    from judgekit.jobs.starting import described  # noqa: PLC0415

    found = await planned(*await asyncio.to_thread(described, data, scorers, config, judge))
    _warn(found.problems, stacklevel=3)
    return found


def _finish(session: "Session", *, progress: bool) -> "Run":
    found = session.run(_console() if progress else None)
    _warn(session.problems, found.record.notes, stacklevel=4)
    return found


async def _afinish(session: "Session", *, progress: bool) -> "Run":
    found = await session.arun(_console() if progress else None)
    _warn(session.problems, found.record.notes, stacklevel=4)
    return found


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - takes longer than all else here

    return Console(stderr=True, highlight=False)


def _warn(problems: "Problems", notes: Iterable[str] = (), *, stacklevel: int) -> None:
    """Warn the caller of a public function of what could not be read."""
    if told := ": ".join(filter(None, ("; ".join(notes), str(problems)))):
        warnings.warn(told, stacklevel=stacklevel)

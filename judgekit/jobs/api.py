"""Runs in Python, sync and async. Each function imports its dependencies when it is called."""

import asyncio
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.threads import with_arguments_of

if TYPE_CHECKING:
    from rich.console import Console

    from judgekit.jobs.building import Engine, ScorerOrText
    from judgekit.jobs.options import SampleChoice
    from judgekit.jobs.plan import RunPlan
    from judgekit.jobs.resume import RunReference
    from judgekit.jobs.session import Session
    from judgekit.runs.problems import ReadingProblems
    from judgekit.runs.results import Run
    from judgekit.scoring import Scorer
    from judgekit.traces.sample import Sample


def run(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[ScorerOrText] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    engine: "Engine" = "processes",
    store: Path | str | None = None,
    shard: str | None = None,
    run_id: str | None = None,
    sample: "SampleChoice | None" = None,
    progress: bool = False,
) -> "Run":
    """Score every sample with every scorer, and return the run.

    An error in one score makes it a failed score, and the others continue. Ctrl-C stops the run and keeps its scores;
    if there are none yet, it raises `KeyboardInterrupt`. If an event loop is running, as in a notebook, the run uses a
    thread of its own.

    Args:
        data: Samples, or the path of recordings, as for `read`. They are taken one by one as capacity allows, so that a
            file is read while it is scored. The run has a note on records that cannot be read, and Python warns of them
            at the end. If the run stops early, the rest of a file is read to count its samples; other samples without a
            length are taken and counted for up to ten seconds.
        scorers: Objects such as ``ToolCallF1()``, or texts as after ``--scorer``, such as ``"tool_call_f1"`` or
            ``"rouge:rouge1"``, with different names. If not given, those of the config.
        config: A config file, for scorers that are texts and their judges, and for ``store_text``. If not given,
            scorers that are texts use ``judgekit.toml`` in the working directory, if it exists.
        judge: The judge of scorers that are texts, which overrides the config and ``JUDGEKIT_JUDGE``: a model as
            ``provider/model``, or a name from the config.
        concurrency: The number of samples that are scored at once. If not given, the highest concurrency of the
            config's judges, and at least 16 if there are scorers that are objects.
        workers: The number of processes for the scorers that ask no judge; by default 1, or with Ray one for each CPU of
            the cluster. More than 1 requires that these scorers are texts, ``data`` is a path, and there is a ``store``;
            a script calls this under ``if __name__ == "__main__":``.
        engine: What starts the workers: ``"processes"`` on this machine, or ``"ray"``. Ray uses the cluster that the
            program is connected to or ``RAY_ADDRESS`` names, or else starts one on this machine.
        store: A SQLite file to keep the run in; in memory if not given.
        shard: The part of the recordings to score, such as ``"3/16"``, where other processes score the others;
            `merge_runs` makes one run of them. If the store has this shard, it is resumed.
        run_id: The id that all shards of a run share, and with it their budgets.
        sample: The number of samples to draw at random from a file; or as a float the share of them to score, such as
            0.01, drawn by a hash of their ids; or shares by domain, with that of all other domains under an empty name.
        progress: Whether to show the progress, on a terminal or as an occasional line.

    Returns:
        The run, which yields a `Row` per score and prints its summary.

    Raises:
        ConfigError: An argument is invalid, two scorers have the same name, or no sample may be scored.
        TraceError: The recordings, or all records in them, cannot be read.
        StoreError: The file cannot be used.
        JudgekitError: No other sample could be scored: a key is rejected, a model unknown, a disk full. A judge that is
            down, or whose budget or quota is spent, is not an error once something was scored: its scorers stop, the
            others continue, and ``stop_reason`` says so. If an error occurs before the first score, no run is kept; after
            it, the run ends with the error in ``stop_reason``, and `resume` continues it.
    """
    from judgekit.jobs.building import Workers  # noqa: PLC0415 - see above
    from judgekit.jobs.starting import start_session  # noqa: PLC0415

    session = start_session(
        data,
        scorers,
        config=config,
        judge=judge,
        concurrency=concurrency,
        workers=Workers(workers, engine),
        store=store,
        shard=shard,
        run_id=run_id,
        sample=sample,
    )
    return _finish(session, progress=progress)


@with_arguments_of(run)
async def arun(*args: Any, **options: Any) -> "Run":
    """Score every sample with every scorer, and return the run; the async version of `run`, with its arguments."""
    from judgekit.jobs.starting import start_session  # noqa: PLC0415 - see above

    return await _arun(start_session, *args, **options)


def resume(
    run: "RunReference" = "last",
    *,
    data: "Iterable[Sample] | None" = None,
    scorers: "Iterable[Scorer]" = (),
    retry_failed: bool = False,
    concurrency: int | None = None,
    workers: int | None = None,
    engine: "Engine" = "processes",
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """Make the missing scores of a run that stopped early, and return the run.

    Args:
        run: The run, its number in the store, or ``"last"``.
        data: The samples, if they were given in Python and not all are kept with the run. They must be the same.
        scorers: The scorers of the run that were given as objects. They must have the same signatures.
        retry_failed: Whether to make failed scores again.
        concurrency: As in `run`.
        workers: As in `run`.
        engine: As in `run`.
        store: The file of the run, if its number is given; ``.judgekit/runs.sqlite`` if not given.
        progress: As in `run`.

    Raises:
        ConfigError: Recordings, samples, a scorer, a judge or a prompt have changed, or are missing.
        JudgekitError: As in `run`.
    """
    from judgekit.jobs.building import Workers  # noqa: PLC0415 - see above
    from judgekit.jobs.resume import resume_session  # noqa: PLC0415

    chosen = Workers(workers, engine)
    return _finish(resume_session(run, store, data, scorers, retry_failed, concurrency, chosen), progress=progress)


@with_arguments_of(resume)
async def aresume(*args: Any, **options: Any) -> "Run":
    """Make the missing scores of a run that stopped early; the async version of `resume`, with its arguments."""
    from judgekit.jobs.resume import resume_session  # noqa: PLC0415 - see above

    return await _arun(resume_session, *args, **options)


def add_scorers(
    run: "RunReference",
    scorers: "Iterable[ScorerOrText]",
    *,
    data: "Iterable[Sample] | None" = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    engine: "Engine" = "processes",
    store: Path | str | None = None,
    progress: bool = False,
) -> "Run":
    """Score the samples of a finished run with more scorers, and return the run. Its other scores stay as they are.

    Args:
        run: The run, its number in the store, or ``"last"``.
        scorers: Objects, or texts as after ``--scorer``, which are built with the config of the run.
        data: The samples, if they were given in Python and are not kept with the run. They must be the same.
        judge: The judge of scorers that are texts; that of the run if not given.
        concurrency: As in `run`.
        workers: As in `run`.
        engine: As in `run`.
        store: The file of the run, if its number is given; ``.judgekit/runs.sqlite`` if not given.
        progress: As in `run`.

    Raises:
        ConfigError: The run is not finished, has a scorer of the same name, or its recordings have changed.
        JudgekitError: As in `run`.
    """
    from judgekit.jobs.building import Workers  # noqa: PLC0415 - see above
    from judgekit.jobs.resume import extension_session  # noqa: PLC0415

    chosen = Workers(workers, engine)
    return _finish(extension_session(run, scorers, store, data, judge, concurrency, chosen), progress=progress)


@with_arguments_of(add_scorers)
async def aadd_scorers(*args: Any, **options: Any) -> "Run":
    """Score the samples of a finished run with more scorers; the async version of `add_scorers`, with its arguments."""
    from judgekit.jobs.resume import extension_session  # noqa: PLC0415 - see above

    return await _arun(extension_session, *args, **options)


def merge_runs(paths: "Iterable[Path | str]", *, store: Path | str | None = None) -> "Run":
    """Combine all shards of a run into one run, and return it.

    Its rows, their order and its numbers are those of a run of everything in one process. If shards are unfinished,
    so is the run: `resume` makes the missing scores.

    Args:
        paths: The files in which the shards are stored, in any order.
        store: The file to keep the run in; ``.judgekit/runs.sqlite`` if not given.

    Raises:
        ConfigError: A shard is missing or there twice, or the files hold shards of different runs, of other recordings
            or with other scorers or options.
        StoreError: A file cannot be used, or a row in it is damaged.
        TraceError: No record could be read.
    """
    from judgekit.jobs.many.merging import merge_shards  # noqa: PLC0415 - see above
    from judgekit.runs.store import DEFAULT_RUNS_PATH  # noqa: PLC0415

    return merge_shards(paths, store or DEFAULT_RUNS_PATH)


def plan(
    data: "Iterable[Sample] | Path | str",
    scorers: "Iterable[ScorerOrText] | None" = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
) -> "RunPlan":
    """Return the requests that `run` would send to its judges. Nothing is sent or stored, and no key is needed.

    Scorers that ask no judge do score, so that the plan shows their skipped and failed scores.

    Args:
        data: As in `run`.
        scorers: As in `run`.
        config: As in `run`.
        judge: As in `run`.

    Raises:
        ConfigError: As in `run`.
        TraceError: The recordings cannot be read.
    """
    from judgekit.jobs.plan import make_plan  # noqa: PLC0415 - see above
    from judgekit.jobs.starting import build_run  # noqa: PLC0415
    from judgekit.scoring import run_sync  # noqa: PLC0415

    built, samples = build_run(data, scorers, config, judge)
    planned = run_sync(lambda: make_plan(built, samples))
    _warn(planned.problems, stacklevel=3)
    return planned


@with_arguments_of(plan)
async def aplan(*args: Any, **options: Any) -> "RunPlan":
    """Return the requests that `arun` would send to its judges; the async version of `plan`, with its arguments."""
    from judgekit.jobs.plan import make_plan  # noqa: PLC0415 - see above
    from judgekit.jobs.starting import build_run  # noqa: PLC0415

    planned = await make_plan(*await asyncio.to_thread(build_run, *args, **options))
    _warn(planned.problems, stacklevel=3)
    return planned


def _finish(session: "Session", *, progress: bool) -> "Run":
    session.console = _console() if progress else None
    run = session.run()
    _warn(session.problems, run.record.notes, stacklevel=4)
    return run


async def _arun(
    make_session: "Callable[..., Session]",
    *args: Any,
    workers: int | None = None,
    engine: "Engine" = "processes",
    progress: bool = False,
    **options: Any,
) -> "Run":
    from judgekit.jobs.building import Workers  # noqa: PLC0415 - see above

    session = await asyncio.to_thread(make_session, *args, workers=Workers(workers, engine), **options)
    session.console = _console() if progress else None
    run = await session.arun()
    _warn(session.problems, run.record.notes, stacklevel=4)
    return run


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - the slowest import here

    return Console(stderr=True, highlight=False)


def _warn(problems: "ReadingProblems", notes: Iterable[str] = (), *, stacklevel: int) -> None:
    """Warn the caller of a public function of records that could not be read."""
    if warning := ": ".join(filter(None, ("; ".join(notes), str(problems)))):
        warnings.warn(warning, stacklevel=stacklevel)

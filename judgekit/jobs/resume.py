"""Resuming a run that stopped early, and adding scorers to a finished one."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from judgekit.errors import ConfigError, join_limited
from judgekit.formats.file_lists import STANDARD_STREAM
from judgekit.jobs.building import THIS_PROCESS, BuiltScorers, ScorerOrText, Workers, build_scorers, split_scorers
from judgekit.jobs.options import RunOptions
from judgekit.jobs.session import Session
from judgekit.registry import allow_code, of_stored_run
from judgekit.runs.hashes import hash_media, lacks_media
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, ScorerRecord, changed_paths, identity_differences
from judgekit.runs.runner import check_scorer_names
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer, check_scorers
from judgekit.specs import JUDGE_VARIABLE
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_samples

_DIFFERENCES_SHOWN = 5

RunReference: TypeAlias = Run | int | Literal["last"]
"""A run, its number in the store, or the last run there."""


def resume_session(
    run: RunReference = "last",
    store: Path | str | None = None,
    data: Iterable[Sample] | None = None,
    scorers: Iterable[Scorer] = (),
    retry_failed: bool = False,  # noqa: FBT001, FBT002 - called in a thread
    concurrency: int | None = None,
    workers: Workers = THIS_PROCESS,
) -> Session:
    """Return the session that resumes a run; see `judgekit.resume`."""
    runs, before = _open_run(run, store)
    options = RunOptions.from_record(before)
    by_name = {scorer.name: scorer for scorer in check_scorers(scorers)}
    names = [scorer.name for scorer in before.scorers]
    if len(names) != len(options.scorers):
        raise ConfigError(f"run {before.number} is damaged: its options do not have its scorers")
    if unknown := next((name for name in by_name if name not in names), None):
        raise ConfigError.unknown(f"scorer of run {before.number}", unknown, names)
    if missing := [name for name, spec in zip(names, options.scorers, strict=True) if not (spec or name in by_name)]:
        raise ConfigError(
            f"run {before.number} cannot be resumed by itself: {join_limited(missing, separator=', ')} was passed as an object in "
            "Python; pass the same one there: judgekit.resume(run, scorers=[...])"
        )
    specs = [None if name in by_name else spec for name, spec in zip(names, options.scorers, strict=True)]
    given = [by_name[name] for name in names if name in by_name]
    built = build_stored(options, options.model_copy(update={"scorers": specs}), given)
    _must_be_as_before(before, built.scorers)
    again: tuple[ScoreStatus, ...] = ("failed",) if retry_failed else ()
    complete = _complete_run(runs, before, again)
    numbered, from_store = (
        _samples_of(runs, before, built, options, data, workers) if complete is None else (None, True)
    )
    built.check_workers(workers, runs.path, given=numbered is not None, from_store=from_store)
    expected = {} if before.count_precision == "exactly" else options.expected_samples()._asdict()
    return Session(
        runs,
        before.model_copy(update={"ended_at": None, "stop_reason": "", **expected}),
        options,
        built.scorers,
        before,
        concurrency=built.concurrency if concurrency is None else concurrency,
        workers=workers,
        samples=numbered,
        from_store=from_store,
        retried=again,
        complete=complete,
    )


def extension_session(
    run: RunReference,
    scorers: Iterable[ScorerOrText],
    store: Path | str | None = None,
    data: Iterable[Sample] | None = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: Workers = THIS_PROCESS,
) -> Session:
    """Return the session that adds scorers to a finished run; see `judgekit.add_scorers`."""
    runs, before = _open_run(run, store)
    options = RunOptions.from_record(before)
    if before.unfinished:
        raise ConfigError(f"run {before.number} is not finished; finish it with judgekit resume {before.number}")
    specs, objects = split_scorers(scorers)
    asking = judge or options.judge or os.environ.get(JUDGE_VARIABLE) or None
    specs = [spec and spec.with_judge(asking) for spec in specs]
    allow_code(*(spec.name.rpartition(":")[0] for spec in specs if spec), *([judge.partition(":")[0]] if judge else []))
    built = build_stored(options, options.model_copy(update={"scorers": specs}), objects, judge)
    check_scorer_names([*(scorer.name for scorer in before.scorers), *(scorer.name for scorer in built.scorers)])
    numbered, from_store = _samples_of(runs, before, built, options, data, workers)
    built.check_workers(workers, runs.path, given=numbered is not None, from_store=from_store)
    options = options.model_copy(update={"scorers": (*options.scorers, *specs)})
    added = {
        "scorers": (*before.scorers, *map(ScorerRecord.of, built.scorers)),
        "added": (*before.added, len(before.scorers)),
        "options": options.model_dump(mode="json", by_alias=True),
        "ended_at": None,
    }
    return Session(
        runs,
        before.model_copy(update=added),
        options,
        built.scorers,
        before,
        first_scorer=len(before.scorers),
        concurrency=built.concurrency if concurrency is None else concurrency,
        workers=workers,
        samples=numbered,
        from_store=from_store,
    )


def build_stored(
    stored: RunOptions,
    options: RunOptions,
    objects: Iterable[Scorer],
    judge: str | None = None,
    *,
    is_planned: bool = False,
) -> BuiltScorers:
    """Build scorers with the options of a stored run, which may be somebody else's: its own code is not imported.

    Unless it ``is_planned``, their judges are checked.
    """
    with of_stored_run():
        if stored.format is not None and ":" in stored.format:
            from judgekit.formats.readers import reader_named  # noqa: PLC0415 - loads all readers

            reader_named(stored.format)
        built = build_scorers(options, objects, judge=judge)
        if not is_planned:
            built.check_judges()
        return built


def _open_run(run: RunReference, path: Path | str | None) -> tuple[RunStore, RunRecord]:
    """Return the store of a run, open for writing, and the current record of the run."""
    if isinstance(run, Run):
        store = run.store if run.store.path is None else RunStore(run.store.path)
        return store, store.record(run.number)
    if run != "last" and not isinstance(run, int):  # pyright: ignore[reportUnnecessaryIsInstance] - users may give anything
        raise ConfigError(f"expected a Run, its number, or 'last', found {run!r}")
    path = path or DEFAULT_RUNS_PATH
    RunStore(path, read_only=True)  # raises an error if there is no such file, instead of creating it
    store = RunStore(path)
    return store, store.record(None if run == "last" else run)


def _complete_run(store: RunStore, record: RunRecord, retried: Collection[ScoreStatus]) -> Run | None:
    """Return a run if it is finished and has no scores to make again."""
    if record.unfinished:
        return None
    run = Run(store, record)
    is_complete = not any(
        line.missing or line.damaged_samples or any(line.counts[status] for status in retried) for line in run.summary
    )
    return run if is_complete else None


def _must_be_as_before(record: RunRecord, scorers: Sequence[Scorer]) -> None:
    """Check that new scores are comparable with those made before."""
    for before, now in zip(record.scorers, map(ScorerRecord.of, scorers), strict=True):
        if before.signature is None or before.signature != now.signature:
            differs = join_limited(identity_differences(before.identity, now.identity), _DIFFERENCES_SHOWN, "; ")
            raise ConfigError(
                f"run {record.number} cannot be resumed: {before.name} has changed: "
                f"{differs or 'its code cannot be compared'}; start a new run with judgekit run"
            )


def _samples_of(
    store: RunStore,
    record: RunRecord,
    built: BuiltScorers,
    options: RunOptions,
    samples: Iterable[Sample] | None,
    workers: Workers,
) -> tuple[Iterator[tuple[int, Sample]] | None, bool]:
    """Return the samples if they are given, and whether they are read from the store, which keeps all of them.

    For judges that are shown images, it does not keep recordings that have any. Other machines cannot read it.

    Raises:
        ConfigError: The samples differ from those of the run, or are missing.
    """
    number = record.number
    hashed = built.show_images and any(lacks_media(sample) for _, sample in store.conversations(number))
    is_readable = workers.engine != "ray" or options.file is None
    if record.read_to_end and is_readable and not hashed and store.has_all_conversations(number):
        return None, True
    if options.file is None:
        if not record.keeps_text:
            raise ConfigError(f"run {number} stores no text to compare samples with; start a new run")
        if samples is None:
            raise ConfigError(
                f"run {number} scored samples that were passed in Python: pass the same there, "
                "judgekit.resume(run, data=samples)"
            )
        return _compared(store, number, enumerate(check_samples(samples))), False
    if samples is not None:
        raise ConfigError(f"run {number} reads {options.file} by itself: omit data")
    if Path(options.file) == STANDARD_STREAM:
        raise ConfigError(
            f"run {number} read standard input, which cannot be read again; start a new run with judgekit run"
        )
    if changed := changed_paths(record.inputs, options.input_files()):
        raise ConfigError(
            f"run {number} cannot be resumed: {join_limited(changed, _DIFFERENCES_SHOWN, ', ')} "
            "changed, appeared or disappeared since it started; start a new run with judgekit run"
        )
    return None, False


def _compared(store: RunStore, run: int, numbered: Iterator[tuple[int, Sample]]) -> Iterator[tuple[int, Sample]]:
    """Yield numbered samples, each compared with the one that the run keeps, if it has reached it."""
    kept = store.conversations(run)
    expected = next(kept, None)
    for number, sample in numbered:
        if expected is not None and expected[0] == number:
            if expected[1].model_dump_json() != hash_media(sample).model_dump_json():
                raise ConfigError(f"data[{number}] is not the sample that run {run} started with; start a new run")
            expected = next(kept, None)
        yield number, sample
    if expected is not None:
        raise ConfigError(f"data ends before sample {expected[0]} of run {run}: pass all samples that it started with")

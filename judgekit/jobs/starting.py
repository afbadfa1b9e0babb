"""New runs: their samples, scorers and stores."""

import os
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path

from judgekit.distribution import own_version
from judgekit.errors import ConfigError, join_limited, path_text
from judgekit.jobs.building import THIS_PROCESS, BuiltScorers, ScorerOrText, Workers, build_scorers, split_scorers
from judgekit.jobs.options import RunOptions, SampleChoice
from judgekit.jobs.session import Session
from judgekit.runs.results import Run
from judgekit.runs.rows import (
    Input,
    RunDescription,
    RunRecord,
    SampleCount,
    ScorerRecord,
    changed_paths,
    check_comparable,
    identity_differences,
)
from judgekit.runs.runner import check_scorer_names
from judgekit.runs.store import RunStore, now
from judgekit.specs import JUDGE_VARIABLE
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_samples


def start_session(
    data: Iterable[Sample] | Path | str,
    scorers: Iterable[ScorerOrText] | None = None,
    *,
    config: Path | str | None = None,
    judge: str | None = None,
    concurrency: int | None = None,
    workers: Workers = THIS_PROCESS,
    store: Path | str | None = None,
    shard: str | None = None,
    run_id: str | None = None,
    sample: SampleChoice | None = None,
) -> Session:
    """Return the session of a new run that is described in Python; see `judgekit.run`."""
    built, samples = build_run(data, scorers, config, judge, shard=shard, run_id=run_id, sample=sample)
    built.check_judges()
    return new_session(built, store, samples, run_id=run_id, concurrency=concurrency, workers=workers)


def build_run(
    data: Iterable[Sample] | Path | str,
    scorers: Iterable[ScorerOrText] | None = None,
    config: Path | str | None = None,
    judge: str | None = None,
    *,
    shard: str | None = None,
    run_id: str | None = None,
    sample: SampleChoice | None = None,
) -> tuple[BuiltScorers, Iterable[Sample] | None]:
    """Return the options and scorers of a run that is described in Python, and its samples if given."""
    specs, objects = ((), ()) if scorers is None else split_scorers(scorers)
    if scorers is not None and not specs:  # an empty list does not mean those of the config
        check_scorer_names(())
    samples = None if isinstance(data, Path | str) else data
    options = RunOptions(
        file=path_text(data) if isinstance(data, Path | str) else None,
        config=None if config is None else path_text(config),
        judge=judge or os.environ.get(JUDGE_VARIABLE) or None,
        scorers=specs,
        shard=shard,
        sample=sample,
    )
    options.check_sampling(run_id)
    config_read = options.load_config() if options.reads_config else None
    return build_scorers(options, objects, judge=judge, config=config_read), samples


def new_session(
    built: BuiltScorers,
    path: Path | str | None,
    samples: Iterable[Sample] | None = None,
    *,
    run_id: str | None = None,
    concurrency: int | None = None,
    workers: Workers = THIS_PROCESS,
    description: RunDescription | None = None,
) -> Session:
    """Return the session of a new run, of the file that the options name or of given samples.

    If the store has this shard of the run ``run_id``, it is resumed, since schedulers repeat a command that died.

    Raises:
        ConfigError: The run cannot be scored, or not by so many workers.
        TraceError: There is no such file.
    """
    if workers != THIS_PROCESS:
        built.check_workers(workers, path, given=samples is not None)
    options = built.options
    if samples is not None:
        count = SampleCount(len(samples), "exactly") if isinstance(samples, Sized) else SampleCount()
    else:
        count = options.expected_samples()
    stored_options = options.model_dump(mode="json", by_alias=True)
    runs = RunStore(path)
    inputs = options.input_files()
    if run_id is not None and (before := _same_shard(runs, run_id, stored_options, inputs)) is not None:
        from judgekit.jobs.resume import resume_session  # noqa: PLC0415 - loads what reads files

        return resume_session(Run(runs, before), scorers=built.objects, concurrency=concurrency, workers=workers)
    record = RunRecord(
        started_at=now(),
        inputs=inputs,
        scorers=[ScorerRecord.of(scorer) for scorer in built.scorers],
        options=stored_options,
        version=own_version(),
        keeps_text=built.config is None or built.config.store_text,
        samples=count.samples,
        count_precision=count.count_precision,
    )
    if run_id is not None:
        record = record.model_copy(update={"id": run_id})
        check_comparable(record.scorers)
    return Session(
        runs,
        record,
        options,
        built.scorers,
        concurrency=built.concurrency if concurrency is None else concurrency,
        workers=workers,
        samples=None if samples is None else enumerate(check_samples(samples)),
        description=description,
    )


def _same_shard(store: RunStore, run_id: str, options: JsonObject, inputs: Sequence[Input]) -> RunRecord | None:
    """Return the record of this shard of a run, if the store has it.

    Raises:
        ConfigError: It has other options, or read other files.
    """
    shards = (record for record in store.records() if record.id == run_id)
    record = next((record for record in shards if record.options.get("shard") == options["shard"]), None)
    if record is not None and record.options != options:
        differs = join_limited(identity_differences(record.options, options), separator="; ")
        raise ConfigError(
            f"{store.path} has shard {options['shard']} of run {run_id} with other options: {differs}; "
            "repeat the command that began it, or choose another --run-id"
        )
    if record is not None and (changed := changed_paths(record.inputs, inputs)):
        raise ConfigError(
            f"{join_limited(changed, separator=', ')} changed since shard {options['shard']} of run {run_id} began; "
            "choose another --run-id"
        )
    return record

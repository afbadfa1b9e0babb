"""Merging the shards of a run, each in the file of the process that scored it, into one run."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast, get_args

from pydantic import JsonValue

from judgekit.errors import ConfigError, StoreError, TraceError, count_text, join_limited
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import unread_notes
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import CountPrecision, RunRecord, check_comparable, identity_differences
from judgekit.runs.schema import PART_TABLES
from judgekit.runs.store import RunStore, now
from judgekit.shards import Shard

_ROWS_AT_ONCE = 1_000
_SHOWN = 8
_DAMAGE_ADVICE = (
    "resume the run there, which repeats damaged scores, or score the shard again; cached replies cost nothing"
)


class _ShardRun(NamedTuple):
    shard: Shard
    run: Run

    @property
    def path(self) -> Path | None:
        return self.run.store.path

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The settings that all shards of a run must have in common."""
        record = self.run.record
        return {
            "options": {name: value for name, value in record.options.items() if name != "shard"},
            "store_text": record.keeps_text,
            "inputs": {file.path: file.sha256 for file in record.inputs},
            "scorers": {scorer.name: scorer.model_dump(mode="json") for scorer in record.scorers},
        }


def merge_shards(paths: Iterable[Path | str], store: Path | str) -> Run:
    """Merge the shards of a run into one run; see `judgekit.merge_runs`."""
    shards = _complete(_found(paths))
    record = _merged(shards)
    if record.unread_records and not any(len(shard.run) for shard in shards):
        raise TraceError(f"none of the {count_text(record.unread_records, 'record')} could be read")
    target = RunStore(store)
    if there := next(
        (stored for stored in target.records() if stored.id == record.id and not stored.options.get("shard")), None
    ):
        raise ConfigError(
            f"{target.path} already contains run {record.id}, as run {there.number}; delete it with "
            f"judgekit runs --remove {there.number}, or name another file"
        )
    begun = target.begin(record.model_copy(update={"ended_at": None, "stop_reason": "merging was interrupted"}))
    try:
        recorder = Recorder(target, begun)
        for table in PART_TABLES:
            _copy(table, shards, recorder)
    except BaseException:
        with suppress(StoreError):  # the first error says why there is no run
            target.remove([begun.number])
        raise
    run = Run(target, target.change(record.model_copy(update={"number": begun.number})))
    if not run.record.unfinished:
        target.write_results(run.number, run.results())
    return run


def _found(paths: Iterable[Path | str]) -> Sequence[_ShardRun]:
    """Return the shards in files, in order.

    Raises:
        ConfigError: A file contains none, or they belong to several runs.
    """
    shard_runs: list[_ShardRun] = []
    for path in paths:
        store = RunStore(path, read_only=True)
        runs = [Run(store, store.record(number)) for number in store.numbers()]
        shards = [
            _ShardRun(Shard.parse(text), run) for run in runs if (text := RunOptions.from_record(run.record).shard)
        ]
        if not shards:
            raise ConfigError(f"{path}: contains no shard of a run; judgekit run --shard makes one")
        shard_runs += shards
    if not shard_runs:
        raise ConfigError("no files: name those of the shards")
    ids = {shard_run.run.record.id: shard_run.path for shard_run in shard_runs}
    if len(ids) > 1:
        named = join_limited((f"{name} (in {path})" for name, path in ids.items()), _SHOWN, ", ")
        raise ConfigError(f"shards of several runs: {named}; merge those of one, each with a --store of its own")
    return sorted(shard_runs, key=lambda shard_run: shard_run.shard.index)


def _complete(shards: Sequence[_ShardRun]) -> Sequence[_ShardRun]:
    """Return the shards if they are all shards of one run.

    Raises:
        ConfigError: One is missing or there twice, or they differ in more than the shard.
    """
    first = shards[0]
    counts = {shard.shard.count: shard for shard in shards}
    if len(counts) > 1:
        named = join_limited((f"{shard.shard} (in {shard.path})" for shard in counts.values()), _SHOWN, ", ")
        raise ConfigError(
            f"the recordings were split into different numbers of shards: {named}; score all shards of one split"
        )
    by_index: dict[int, _ShardRun] = {}
    for shard_run in shards:
        if (before := by_index.setdefault(shard_run.shard.index, shard_run)) is not shard_run:
            raise ConfigError(
                f"shard {shard_run.shard} is there twice: run {before.run.number} in {before.path} and run {shard_run.run.number} "
                f"in {shard_run.path}; leave out one of them"
            )
    if missing := [str(index + 1) for index in range(first.shard.count) if index not in by_index]:
        raise ConfigError(
            f"{count_text(len(missing), 'shard')} of {first.shard.count} missing: "
            f"{join_limited(missing, _SHOWN, ', ')}; score them, and name their files too"
        )
    check_comparable(first.run.scorers)
    for shard_run in shards[1:]:
        if shard_run.settings != first.settings:
            these, others = (cast("JsonValue", dict(shard.settings)) for shard in (first, shard_run))
            raise ConfigError(
                f"shard {shard_run.shard} in {shard_run.path} is not of the same run as shard {first.shard} in {first.path}: "
                f"{join_limited(identity_differences(these, others), _SHOWN, '; ')}"
            )
    return shards


def _merged(shards: Sequence[_ShardRun]) -> RunRecord:
    """Return the record of the merged run."""
    records = [shard_run.run.record for shard_run in shards]
    unfinished = [
        (shard_run.shard, shard_run.run.stop_reason or shard_run.run.record.unfinished)
        for shard_run in shards
        if shard_run.run.record.unfinished
    ]
    unread = sum(record.unread_records for record in records)
    others = dict.fromkeys(note for record in records for note in record.notes[bool(record.unread_records) :])
    precisions: Sequence[CountPrecision] = get_args(CountPrecision)
    merged: dict[str, object] = {
        "started_at": min(record.started_at for record in records),
        "worked_seconds": None,
        "ended_at": max((record.ended_at for record in records if record.ended_at), default=now()),
        "stop_reason": join_limited((f"shard {shard}: {why}" for shard, why in unfinished), _SHOWN),
        "read_to_end": all(record.read_to_end for record in records),
        "samples": sum(shard_run.run.samples.samples for shard_run in shards),
        "count_precision": max((record.count_precision for record in records), key=precisions.index),
        "options": {**records[0].options, "shard": None},
        "unread_records": unread,
        "notes": (*unread_notes(unread), *others),
        "version": ", ".join(sorted({record.version for record in records})),
    }
    return records[0].model_copy(update=merged)


def _copy(table: str, shards: Sequence[_ShardRun], recorder: Recorder) -> None:
    for shard_run in shards:
        try:
            lines = shard_run.run.store.table_rows(shard_run.run.number, table)
            while rows := list(islice(lines, _ROWS_AT_ONCE)):
                strangers = [row[1] for row in rows if row[1] not in shard_run.shard] if table == "samples" else ()
                if strangers:
                    raise StoreError(f"{shard_run.path}: sample {strangers[0]} belongs to another shard")
                recorder.add_rows(table, rows)
                recorder.flush()
        except StoreError as error:
            raise StoreError(f"shard {shard_run.shard} cannot be merged: {error}; {_DAMAGE_ADVICE}") from error

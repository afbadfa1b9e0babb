"""The recorder of a run, which writes scores into its file as they are made."""

import asyncio
import random
import sqlite3
import time
import zlib
from asyncio import shield, wrap_future
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TypeAlias, cast

from pydantic_core import to_json

from judgekit.runs.hashes import SampleHashes, hash_media, recording_hash
from judgekit.runs.reader import CALLS_ADAPTER
from judgekit.runs.rows import Row, RunRecord, sample_labels
from judgekit.runs.schema import COMPRESSION_LEVEL, ScoreRow, checksum, is_intact
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.runs.usage import ConversationUsage
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample

_AT_ONCE = 0.1  # seconds; scores made within them are written together
STAMP_SECONDS = 10
"""Seconds between the stamps that tell a running run from one whose process was killed."""
_MOST_WAITING = 500  # rows that may wait for a running write before scoring waits for it too
_TOGETHER = 50  # rows of one statement
_ID_BITS = 62

_TableRow: TypeAlias = tuple[object, ...]


@dataclass
class _Attempt:
    """A score in progress, with the judge calls that were paid for it so far."""

    calls: list[JudgeCall]
    id: int
    written: int = 0


@dataclass
class _Batch:
    """Rows that are written together, by table.

    Attributes:
        rows: The rows of each table.
        kept_calls: The run and id of attempts whose calls are kept with a score by now.
        scores: The number of scores.
    """

    rows: dict[str, list[_TableRow]] = field(default_factory=lambda: defaultdict(list))
    kept_calls: list[_TableRow] = field(default_factory=list[_TableRow])
    scores: int = 0


class Recorder:
    """A writer of samples, scores and judge calls into a run, in batches of a tenth of a second.

    A process that is killed loses no more than one batch and the work in progress. Within `writing`, a thread writes on
    its own connection, so that neither the disk nor a lock held by another program blocks the event loop.
    """

    def __init__(self, store: RunStore, record: RunRecord, textless: TextRemover | None = None) -> None:
        self._store = store
        self._run, self._id = record.number, record.id
        self._textless = None if record.keeps_text else textless or TextRemover()
        self._indexes = {scorer.name: index for index, scorer in enumerate(record.scorers)}
        self._scorers = record.scorers
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._waiting = _Batch()
        self._writing: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._background: RunStore | None = None
        self._random = random.Random()  # noqa: S311 - not seeded by programs, so that processes differ

    def add_sample(self, index: int, sample: Sample) -> None:
        """Record a sample; its scores follow."""
        usage = ConversationUsage.of(sample)
        if usage is not None and self._textless is not None:
            usage = usage._replace(agent=None)  # the name is text of the recording
        labels = {_text(name): label for name, label in sample_labels(sample).items()}
        texts = {
            name: _text(label.value) if isinstance(label.value, str) else label.value for name, label in labels.items()
        }
        self._add(
            "samples",
            index,
            *map(_text, (sample.id, sample.trace.id, sample.group, sample.domain)),
            _json(texts) if labels else None,
            _json({name: label.source for name, label in labels.items()}) if labels else None,
            _json(usage) if usage else None,
            *SampleHashes.of(sample, keeps_text=self._textless is None),
            recording_hash(sample, self._id),
        )
        if self._textless is None and (body := _body(hash_media(sample))) is not None:
            self._add("conversations", index, body)

    def add_ledger(self, index: int, scorer: str, calls: list[JudgeCall]) -> None:
        """Register the ledger of a score in progress. Its calls were paid for, whether or not the score is kept."""
        self._attempts[index, self._indexes[scorer]] = _Attempt(calls, self._random.getrandbits(_ID_BITS))

    def add_row(self, row: Row) -> None:
        """Record a score with the calls that were paid for it. The calls of a score that it replaces are kept."""
        score = row.score if self._textless is None else self._textless.score(row.score)
        try:
            "".join(filter(None, (score.label, score.error, score.aggregate))).encode()  # UTF-8 may not hold them
            columns = (
                score.status,
                None if score.value is None else float(score.value) + 0.0,  # SQLite returns 0.0 for -0.0
                None if score.confidence is None else float(score.confidence) + 0.0,
                score.label,
                score.error,
                None if score.aggregate == "mean" else score.aggregate,
                _json(score.warnings) if score.warnings else None,
                self._calls(score.calls) if score.calls else None,
                _json((score.reason, score.details)),
            )
        except ValueError as error:
            reason = f"the score cannot be written: {error}" if self._textless is None else ""
            failed = Score.failed(score.scorer, reason, error="StoreError", calls=row.score.calls)
            self.add_row(row.model_copy(update={"score": failed}))
            return
        scorer = self._indexes[score.scorer]
        self._add("scores", row.index, scorer, *columns)
        self._waiting.scores += 1
        attempt = self._attempts.pop((row.index, scorer), None)
        if attempt is not None and attempt.written:
            self._waiting.kept_calls.append((self._run, attempt.id))
        for number, call in enumerate(row.score.calls if self._textless is None else ()):
            if call.exchange is not None and (body := _body(call.exchange)) is not None:
                self._add("exchanges", row.index, scorer, number, body)

    def add_rows(self, table: str, rows: Iterable[_TableRow]) -> None:
        """Record rows of a table that another process wrote into a run of its own."""
        for _, *values in rows:
            self._add(table, *values)

    def _calls(self, calls: Iterable[JudgeCall]) -> str:
        return _written(calls if self._textless is None else map(self._textless.call, calls))

    def _add(self, table: str, *values: object) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiting.rows[table].append((self._run, *values))

    def _take_waiting(self) -> _Batch:
        """Return the waiting rows, including calls that were paid since for scores in progress."""
        for (index, scorer), attempt in self._attempts.items():
            if attempt.written < len(attempt.calls):
                attempt.written = len(attempt.calls)
                calls = self._calls(attempt.calls)
                self._waiting.rows["unscored_calls"].append((self._run, attempt.id, index, scorer, calls))
        waiting, self._waiting = self._waiting, _Batch()
        return waiting

    def _write_in_background(self, batch: _Batch) -> None:
        """Write from the thread. An error is raised to whoever adds something next."""
        if self._failure is not None or not batch.rows:
            return
        try:
            if self._store.path is not None and self._background is None:
                self._background = self._store.reopen()
            self._write(self._background or self._store, batch)
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the run
            self._failure = error

    def _write(self, store: RunStore, batch: _Batch) -> None:
        with store.transaction() as db:
            keys = {row[:3] for row in batch.rows.get("scores", ())}
            samples = cast("set[int]", {sample for _, sample, _ in keys})
            replaced = [old for old in store.score_rows(self._run, samples) if old[:3] in keys]
            _insert(db, "unscored_calls", list(self._replaced_calls(replaced)))
            db.execute("DELETE FROM results WHERE run = ?", (self._run,))  # they are no longer those of the rows
            db.executemany("DELETE FROM unscored_calls WHERE run = ? AND id = ?", batch.kept_calls)
            db.executemany(
                "DELETE FROM exchanges WHERE run = ? AND sample = ? AND scorer = ?", [old[:3] for old in replaced]
            )
            for table, rows in batch.rows.items():
                _insert(db, table, rows)

    def _replaced_calls(self, replaced: Iterable[ScoreRow]) -> Iterator[_TableRow]:
        """Yield the paid calls of scores that are replaced; an empty text if they are damaged."""
        for old in replaced:
            calls = old.calls if is_intact(old) else "" if self._scorers[old.scorer].judged else None
            if calls is not None:
                yield old.run, self._random.getrandbits(_ID_BITS), old.sample, old.scorer, calls

    def flush(self) -> None:
        """Write all waiting rows."""
        if (batch := self._take_waiting()).rows:
            self._write(self._store, batch)

    async def yield_control(self) -> None:
        """Let other coroutines run; if many rows wait for a running write, wait until it is done."""
        if self._writing is not None and self._waiting.scores >= _MOST_WAITING:
            await asyncio.wait((self._writing,))
        else:
            await asyncio.sleep(0)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Write every tenth of a second while samples are scored, and write the rest at the end."""
        with ThreadPoolExecutor(1, "judgekit-runs") as thread:
            regularly = asyncio.create_task(self._write_regularly(thread))
            try:
                yield
            finally:
                regularly.cancel()
                await shield(wrap_future(thread.submit(self._write_in_background, self._take_waiting())))
        if self._failure is not None:
            raise self._failure

    async def _write_regularly(self, thread: ThreadPoolExecutor) -> None:
        stamped = -inf
        while self._failure is None:
            if time.monotonic() - stamped >= STAMP_SECONDS:
                self._add("stamps", int(time.time()))
                stamped = time.monotonic()
            await asyncio.sleep(_AT_ONCE)
            if (batch := self._take_waiting()).rows:
                self._writing = wrap_future(thread.submit(self._write_in_background, batch))
                await asyncio.wait((self._writing,))


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[_TableRow]) -> None:
    """Write rows with checksums, many with each statement; after each one, a thread waits for its turn to run Python."""
    for first in range(0, len(rows), _TOGETHER):
        some = [(*row, checksum(row)) for row in rows[first : first + _TOGETHER]]
        places = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
        db.execute(f"INSERT OR REPLACE INTO {table} VALUES {places}", [*chain.from_iterable(some)])  # noqa: S608 - our own names


def _written(calls: Iterable[JudgeCall]) -> str:
    """Return calls as JSON. Names that UTF-8 cannot hold are escaped, so that no paid call is lost."""
    calls = tuple(calls)
    try:
        return CALLS_ADAPTER.dump_json(calls).decode()
    except ValueError:
        texts = ("judge", "prompt", "model", "system_fingerprint", "error")
        escaped = (call.model_copy(update={name: _text(getattr(call, name)) for name in texts}) for call in calls)
        return CALLS_ADAPTER.dump_json(tuple(escaped)).decode()


def _body(record: FrozenModel) -> bytes | None:
    """Return a record as compressed JSON; ``None`` if UTF-8 cannot hold it."""
    try:
        return zlib.compress(record.model_dump_json(exclude_none=True).encode(), COMPRESSION_LEVEL)
    except ValueError:  # lone surrogates
        return None


def _json(value: object) -> str:
    return to_json(value, inf_nan_mode="constants").decode()


def _text(text: str | None) -> str | None:
    """Return a name with escapes for what UTF-8 cannot hold."""
    return None if text is None else text.encode(errors="backslashreplace").decode()

"""Writes a run into the file where it is kept, as its scores are made."""

import asyncio
import random
import sqlite3
import zlib
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pydantic_core import to_json

from judgekit.runs.conduct import Conduct
from judgekit.runs.hashes import Hashes
from judgekit.runs.reading import CALLS
from judgekit.runs.rows import Row, RunRecord, labels_of
from judgekit.runs.schema import checksum, is_intact, upsert
from judgekit.runs.store import Store
from judgekit.runs.textless import Textless
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import Record
from judgekit.traces.sample import Sample

_AT_ONCE = 0.1  # seconds; scores made within them are written together
_MOST_WAITING = 500  # rows that may wait for a running write before scoring waits for it too
_COMPRESSION = 1
_SAMPLE = upsert(
    "samples",
    (
        *("run", "number", "id", "trace_id", "group", "domain", "labels", "label_sources", "conduct"),
        *("references_hash", "material_hash", "first_message_hash", "checksum"),
    ),
)
_CONVERSATION = upsert("conversations", ("run", "number", "sample", "checksum"))
_SCORE = "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NO_EXCHANGES = "DELETE FROM exchanges WHERE run = ? AND sample = ? AND scorer = ?"
_EXCHANGE = "INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?, ?, ?, ?)"
_CALLS = "INSERT OR REPLACE INTO unscored_calls VALUES (?, ?, ?, ?, ?, ?)"
_KEPT_CALLS = "DELETE FROM unscored_calls WHERE run = ? AND id = ?"
_OLD_SCORE = "SELECT * FROM scores WHERE run = ? AND sample = ? AND scorer = ?"

_Line: TypeAlias = tuple[object, ...]


@dataclass
class _Attempt:
    """A score that is being made, and the judge calls that were paid for it so far."""

    calls: list[JudgeCall]
    id: int
    written: int = 0


class Recorder:
    """Writes samples, scores and what was paid for them into a run; those of a tenth of a second together.

    What is killed loses no more than that, and what was under way. Within `writing` a thread writes, on a connection of
    its own: neither the disk nor another program that locks the file stops the event loop.
    """

    def __init__(self, store: Store, record: RunRecord, textless: Textless | None = None) -> None:
        self._store = store
        self._run = record.number
        self._textless = None if record.keeps_text else textless or Textless()
        self._places = {one.name: place for place, one in enumerate(record.scorers)}
        self._judged = {place for place, one in enumerate(record.scorers) if one.judged}
        self._is_new = store.is_empty(record.number)
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._waiting: dict[str, list[_Line]] = {}
        self._rows = 0
        self._writing: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._beside: Store | None = None
        self._random = random.Random()  # noqa: S311 - not the one that programs seed: processes that write one run must differ

    def _new_id(self) -> int:
        return self._random.getrandbits(62)

    def sample(self, index: int, sample: Sample) -> None:
        """Takes what is to be known of a sample; its scores come after it."""
        trace = sample.trace
        conduct = Conduct.of(sample)
        if conduct is not None and self._textless is not None:
            conduct = conduct._replace(agent=None)  # a name that the recording gives
        known = {_text(name): label for name, label in labels_of(sample).items()}
        labels = {name: _text(value) if isinstance(value := one.value, str) else value for name, one in known.items()}
        self._add(
            _SAMPLE,
            index,
            _text(sample.id),
            _text(trace.id),
            _text(sample.group),
            _text(sample.domain),
            _json(labels) if labels else None,
            _json({name: one.source for name, one in known.items()}) if known else None,
            _json(conduct) if conduct else None,
            *Hashes.of(sample, keeps_text=self._textless is None),
        )
        if self._textless is None:
            self._add(_CONVERSATION, index, sample)

    def begin(self, index: int, scorer: str, calls: list[JudgeCall]) -> None:
        """Take the ledger of a score that is being made: what is in it was paid, whether or not the score is kept."""
        self._attempts[index, self._places[scorer]] = _Attempt(calls, self._new_id())

    def row(self, row: Row) -> None:
        """Takes a score, which has the calls that were paid for it. Those of a score in its place stay with the run."""
        score = row.score if self._textless is None else self._textless.score(row.score)
        try:
            line = self._line(score)
        except ValueError as error:
            reason = f"the score cannot be written: {error}" if self._textless is None else ""
            line = self._line(Score.failed(score.scorer, reason, error="StoreError", calls=score.calls))
        place = self._places[score.scorer]
        self._add(_SCORE, row.index, place, *line)
        self._rows += 1
        attempt = self._attempts.pop((row.index, place), None)
        if attempt is not None and attempt.written:
            self._add(_KEPT_CALLS, attempt.id)
        if not self._is_new:  # else there are none of a score that this one takes the place of
            self._add(_NO_EXCHANGES, row.index, place)
        for number, call in enumerate(row.score.calls if self._textless is None else ()):
            if call.exchange is not None:
                self._add(_EXCHANGE, row.index, place, number, call.exchange)

    def _line(self, score: Score) -> _Line:
        return (
            _encoded(score.status),
            _number(score.value),
            _number(score.confidence),
            _encoded(score.label),
            _encoded(score.error),
            None if score.aggregate == "mean" else _encoded(score.aggregate),
            _json(score.warnings) if score.warnings else None,
            self._calls(score.calls) if score.calls else None,
            _json((score.reason, score.details)),
        )

    def _calls(self, calls: Iterable[JudgeCall]) -> str:
        return _written(calls if self._textless is None else map(self._textless.call, calls))

    def _add(self, sql: str, *values: object) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiting.setdefault(sql, []).append((self._run, *values))

    def _taken(self) -> dict[str, list[_Line]]:
        """Take the waiting rows, with the calls that were paid since for scores that are still being made."""
        for (index, place), attempt in self._attempts.items():
            if attempt.written < len(attempt.calls):
                attempt.written = len(attempt.calls)
                self._add(_CALLS, attempt.id, index, place, self._calls(attempt.calls))
        waiting, self._waiting, self._rows = self._waiting, {}, 0
        return waiting

    def _write(self, store: Store, waiting: dict[str, list[_Line]]) -> None:
        rows = {sql: lines if sql in _DELETES else list(_rows(lines)) for sql, lines in waiting.items()}
        with store.transaction() as db:
            if not self._is_new:  # else there is no score that another could take the place of
                db.executemany(_CALLS, list(_rows(self._old_calls(db, waiting.get(_SCORE, ())))))
            for sql, lines in rows.items():
                db.executemany(sql, lines)

    def _old_calls(self, db: sqlite3.Connection, scores: Sequence[_Line]) -> Iterator[_Line]:
        """Yield the paid calls of scores that others replace; an empty text where they are damaged."""
        for run, sample, place, *_ in scores:
            old: _Line | None = db.execute(_OLD_SCORE, (run, sample, place)).fetchone()
            if (
                old is not None
                and (calls := old[10] if is_intact(old) else "" if place in self._judged else None) is not None
            ):
                yield run, self._new_id(), sample, place, calls

    def flush(self) -> None:
        """Writes what waits."""
        if waiting := self._taken():
            self._write(self._store, waiting)

    async def rest(self) -> None:
        """Lets others have their turn; where much waits for a write that is under way, until that is done."""
        if self._writing is not None and self._rows >= _MOST_WAITING:
            await asyncio.wait((self._writing,))
        else:
            await asyncio.sleep(0)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Writes every tenth of a second, beside what is scored, and all of it in the end."""
        with ThreadPoolExecutor(1, "judgekit-runs") as thread:
            regularly = asyncio.create_task(self._regularly(thread))
            try:
                yield
            finally:
                regularly.cancel()
                await _uncancelled(self._end(thread))
        if self._failure is not None:
            raise self._failure

    async def _regularly(self, thread: ThreadPoolExecutor) -> None:
        while self._failure is None:
            await asyncio.sleep(_AT_ONCE)
            await self._write_in(thread)

    async def _end(self, thread: ThreadPoolExecutor) -> None:
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        if self._failure is None:
            await self._write_in(thread)

    async def _write_in(self, thread: ThreadPoolExecutor) -> None:
        if not (waiting := self._taken()):
            return
        self._writing = asyncio.get_running_loop().run_in_executor(thread, self._write_beside, waiting)
        await asyncio.wait((self._writing,))

    def _write_beside(self, waiting: dict[str, list[_Line]]) -> None:
        """Writes from the thread. Whoever adds something next is told of an error."""
        try:
            if self._store.path is not None and self._beside is None:
                self._beside = self._store.second()
            self._write(self._beside or self._store, waiting)
        except Exception as error:  # noqa: BLE001 - it is raised where the run is
            self._failure = error


_DELETES = {_NO_EXCHANGES, _KEPT_CALLS}


def _rows(lines: Iterable[_Line]) -> Iterator[_Line]:
    """Lines as a table holds them: records as compressed JSON, and each with its checksum."""
    for line in lines:
        if isinstance(record := line[-1], Record):
            try:
                body = record.model_dump_json().encode()
            except ValueError:  # lone surrogates stand in no file
                continue
            line = (*line[:-1], zlib.compress(body, _COMPRESSION))  # noqa: PLW2901
        yield (*line, checksum(line))


async def _uncancelled(work: Coroutine[object, object, None]) -> None:
    """Finishes the work, however often that is cancelled, before it ends as cancelled."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


def _written(calls: Iterable[JudgeCall]) -> str:
    """Calls as a file can hold them: what was paid is kept, whatever a judge is called."""
    calls = tuple(calls)
    try:
        return CALLS.dump_json(calls).decode()
    except ValueError:
        texts = ("judge", "prompt", "model", "system_fingerprint", "error")
        held = (call.model_copy(update={name: _text(getattr(call, name)) for name in texts}) for call in calls)
        return CALLS.dump_json(tuple(held)).decode()


def _json(value: object) -> str:
    return to_json(value, inf_nan_mode="constants").decode()


def _number(value: float | None) -> float | None:
    """The number as a file gives it back, where -0.0 is 0.0."""
    return None if value is None else float(value) + 0.0


def _encoded(text: str | None) -> str | None:
    """The text, if a file can hold it."""
    return None if text is None else text.encode().decode()


def _text(text: str | None) -> str | None:
    """A name as a file can hold it."""
    return None if text is None else text.encode(errors="backslashreplace").decode()

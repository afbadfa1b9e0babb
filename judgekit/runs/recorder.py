"""The recorder of a run, which writes scores into its file as they are made."""

import asyncio
import random
import sqlite3
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeAlias, cast

from pydantic_core import to_json

from judgekit.runs.hashed_media import hash_media
from judgekit.runs.hashes import SampleHashes
from judgekit.runs.reader import CALLS_ADAPTER
from judgekit.runs.rows import Row, RunRecord, sample_labels
from judgekit.runs.schema import Compressor, is_intact, upsert, with_checksums
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.runs.usage import ConversationUsage
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample

_AT_ONCE = 0.1  # seconds; scores made within them are written together
_MOST_WAITING = 500  # rows that may wait for a running write before scoring waits for it too
_TOGETHER = 50  # rows of one statement
_LONG = 2**16  # bytes; the writing thread compresses longer records
_DICTIONARY_BYTES = 2**15  # the most that zlib looks back
_WITH_ONE_DICTIONARY = 1_000  # conversations that are lost if the dictionary is damaged
_SAMPLE = upsert(
    "samples",
    (
        *("run", "number", "id", "trace_id", "group", "domain", "labels", "label_sources", "usage"),
        *("references_hash", "fields_hash", "first_message_hash", "checksum"),
    ),
)
_DICTIONARY = "INSERT INTO dictionaries VALUES (?)"
_CONVERSATION = upsert("conversations", ("run", "number", "dictionary", "sample", "checksum"))
_SCORE = "INSERT OR REPLACE INTO scores VALUES (?)"
_NO_EXCHANGES = "DELETE FROM exchanges WHERE run = ? AND sample = ? AND scorer = ?"
_EXCHANGE = "INSERT OR REPLACE INTO exchanges VALUES (?)"
_CALLS = "INSERT OR REPLACE INTO unscored_calls VALUES (?)"
_KEPT_CALLS = "DELETE FROM unscored_calls WHERE run = ? AND id = ?"
_INSERT = {
    "samples": _SAMPLE,
    "dictionaries": _DICTIONARY,
    "conversations": _CONVERSATION,
    "scores": _SCORE,
    "exchanges": _EXCHANGE,
    "unscored_calls": _CALLS,
}

_Line: TypeAlias = tuple[object, ...]


@dataclass
class _Attempt:
    """A score in progress, with the judge calls that were paid for it so far."""

    calls: list[JudgeCall]
    id: int
    written: int = 0


class Recorder:
    """A writer of samples, scores and judge calls into a run, in batches of a tenth of a second.

    A process that is killed loses no more than one batch and the work in progress. Within `writing`, a thread writes on
    its own connection, so that neither the disk nor a lock held by another program blocks the event loop. A run that
    ``is_new`` has no scores to replace, even if other processes write into it too.
    """

    def __init__(
        self, store: RunStore, record: RunRecord, textless: TextRemover | None = None, *, is_new: bool = False
    ) -> None:
        self._store = store
        self._run = record.number
        self._textless = None if record.keeps_text else textless or TextRemover()
        self._places = {one.name: place for place, one in enumerate(record.scorers)}
        self._judged = {place for place, one in enumerate(record.scorers) if one.judged}
        self._exchange_compressors = [Compressor(one.exchange_dictionary) for one in record.scorers]
        self._conversations = 0
        self._dictionary = 0
        self._compressor = Compressor()
        self._is_new = is_new or store.is_empty(record.number)
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._waiting: dict[str, list[_Line]] = defaultdict(list)
        self._rows = 0
        self._writing: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._background: RunStore | None = None
        self._random = random.Random()  # noqa: S311 - not seeded by programs, so that processes differ

    def _new_id(self) -> int:
        return self._random.getrandbits(62)

    def add_sample(self, index: int, sample: Sample) -> None:
        """Record a sample; its scores follow."""
        usage = ConversationUsage.of(sample)
        if usage is not None and self._textless is not None:
            usage = usage._replace(agent=None)  # the name is text of the recording
        known = {_text(name): label for name, label in sample_labels(sample).items()}
        labels = {name: _text(value) if isinstance(value := one.value, str) else value for name, one in known.items()}
        self._add(
            _SAMPLE,
            index,
            *map(_text, (sample.id, sample.trace.id, sample.group, sample.domain)),
            _json(labels) if labels else None,
            _json({name: one.source for name, one in known.items()}) if known else None,
            _json(usage) if usage else None,
            *SampleHashes.of(sample, keeps_text=self._textless is None),
        )
        if self._textless is not None or (not self._is_new and self._store.has_conversation(self._run, index)):
            return
        if (body := _body(hash_media(sample))) is not None:
            if not self._conversations % _WITH_ONE_DICTIONARY:  # they have much in common, such as the system message
                dictionary = body[-_DICTIONARY_BYTES:]
                self._dictionary, self._compressor = self._new_id(), Compressor(dictionary)
                self._add(_DICTIONARY, self._dictionary, dictionary)
            self._conversations += 1
            self._add(_CONVERSATION, index, self._dictionary, self._packed(body, self._compressor))

    def add_ledger(self, index: int, scorer: str, calls: list[JudgeCall]) -> None:
        """Register the ledger of a score in progress. Its calls were paid for, whether or not the score is kept."""
        self._attempts[index, self._places[scorer]] = _Attempt(calls, self._new_id())

    def add_row(self, row: Row) -> None:
        """Record a score with the calls that were paid for it. The calls of a score that it replaces are kept."""
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
        if not self._is_new:  # a new run has none to replace
            self._add(_NO_EXCHANGES, row.index, place)
        for number, call in enumerate(row.score.calls if self._textless is None else ()):
            if call.exchange is not None and (body := _body(call.exchange)) is not None:
                self._add(_EXCHANGE, row.index, place, number, self._packed(body, self._exchange_compressors[place]))

    def add_rows(self, table: str, rows: Iterable[_Line]) -> None:
        """Record rows of a table that another process wrote into a run of its own."""
        for _, *values in rows:
            self._add(_INSERT[table], *values)
            if table == "scores" and not self._is_new:
                self._add(_NO_EXCHANGES, *values[:2])

    def _line(self, score: Score) -> _Line:
        return (
            score.status,
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
        self._waiting[sql].append((self._run, *values))

    def _packed(self, body: bytes, compressor: Compressor) -> bytes | Callable[[], bytes]:
        """Return a record compressed for a file.

        The writing thread compresses a long record. For short ones, two threads that take turns would cost more than
        they save.
        """
        if self._store.path is None:
            return body
        return partial(compressor.compress, body) if len(body) > _LONG else compressor.compress(body)

    def _take_waiting(self) -> dict[str, list[_Line]]:
        """Return the waiting rows, including calls that were paid since for scores in progress."""
        for (index, place), attempt in self._attempts.items():
            if attempt.written < len(attempt.calls):
                attempt.written = len(attempt.calls)
                self._add(_CALLS, attempt.id, index, place, self._calls(attempt.calls))
        waiting, self._waiting, self._rows = self._waiting, defaultdict(list), 0
        return waiting

    def _write(self, store: RunStore, waiting: dict[str, list[_Line]]) -> None:
        for sql in _RECORDS.intersection(waiting):
            waiting[sql] = [(*line[:-1], pack()) if callable(pack := line[-1]) else line for line in waiting[sql]]
        with store.transaction() as db:
            if not self._is_new:  # a new run has no scores to replace
                _insert(db, _CALLS, list(self._old_calls(store, waiting.get(_SCORE, ()))))
            for sql, lines in waiting.items():
                if sql in _DELETES:
                    db.executemany(sql, lines)
                else:
                    _insert(db, sql, lines)

    def _old_calls(self, store: RunStore, scores: Sequence[_Line]) -> Iterator[_Line]:
        """Yield the paid calls of scores that are replaced; an empty text if they are damaged."""
        for run, sample, place, *_ in cast("Sequence[tuple[int, int, int]]", scores):
            old = store.score_line(run, sample, place)
            if (
                old is not None
                and (calls := old[10] if is_intact(old) else "" if place in self._judged else None) is not None
            ):
                yield run, self._new_id(), sample, place, calls

    def flush(self) -> None:
        """Write all waiting rows."""
        if waiting := self._take_waiting():
            self._write(self._store, waiting)

    async def yield_control(self) -> None:
        """Let other coroutines run; if many rows wait for a running write, wait until it is done."""
        if self._writing is not None and self._rows >= _MOST_WAITING:
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
                await _uncanceled(self._end(thread))
        if self._failure is not None:
            raise self._failure

    async def _write_regularly(self, thread: ThreadPoolExecutor) -> None:
        while self._failure is None:
            await asyncio.sleep(_AT_ONCE)
            await self._write_in(thread)

    async def _end(self, thread: ThreadPoolExecutor) -> None:
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        if self._failure is None:
            await self._write_in(thread)

    async def _write_in(self, thread: ThreadPoolExecutor) -> None:
        if not (waiting := self._take_waiting()):
            return
        self._writing = asyncio.get_running_loop().run_in_executor(thread, self._write_in_background, waiting)
        await asyncio.wait((self._writing,))

    def _write_in_background(self, waiting: dict[str, list[_Line]]) -> None:
        """Write from the thread. An error is raised to whoever adds something next."""
        try:
            if self._store.path is not None and self._background is None:
                self._background = self._store.reopen()
            self._write(self._background or self._store, waiting)
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the run
            self._failure = error


_DELETES = {_NO_EXCHANGES, _KEPT_CALLS}
_RECORDS = {_CONVERSATION, _EXCHANGE}


def _insert(db: sqlite3.Connection, sql: str, rows: Sequence[_Line]) -> None:
    """Write rows with checksums, many with each statement; after each one, a thread waits for its turn to run Python."""
    for first in range(0, len(rows), _TOGETHER):
        some = with_checksums(rows[first : first + _TOGETHER])
        row = f"({', '.join('?' * len(some[0]))})"
        db.execute(sql.replace("(?)", ", ".join([row] * len(some))), [*chain.from_iterable(some)])


async def _uncanceled(work: Coroutine[object, object, None]) -> None:
    """Finish the work, however often it is canceled, and then pass on the cancellation."""
    task, canceled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            canceled = error
    task.result()
    if canceled is not None:
        raise canceled


def _written(calls: Iterable[JudgeCall]) -> str:
    """Return calls as JSON. Names that UTF-8 cannot hold are escaped, so that no paid call is lost."""
    calls = tuple(calls)
    try:
        return CALLS_ADAPTER.dump_json(calls).decode()
    except ValueError:
        texts = ("judge", "prompt", "model", "system_fingerprint", "error")
        held = (call.model_copy(update={name: _text(getattr(call, name)) for name in texts}) for call in calls)
        return CALLS_ADAPTER.dump_json(tuple(held)).decode()


def _body(record: FrozenModel) -> bytes | None:
    """Return a record as JSON; ``None`` if UTF-8 cannot hold it."""
    try:
        return record.model_dump_json(exclude_none=True).encode()
    except ValueError:  # lone surrogates
        return None


def _json(value: object) -> str:
    return to_json(value, inf_nan_mode="constants").decode()


def _number(value: float | None) -> float | None:
    """Return the number as SQLite returns it, with 0.0 for -0.0."""
    return None if value is None else float(value) + 0.0


def _encoded(text: str | None) -> str | None:
    """Return the text, or raise an error if UTF-8 cannot hold it."""
    return None if text is None else text.encode().decode()


def _text(text: str | None) -> str | None:
    """Return a name with escapes for what UTF-8 cannot hold."""
    return None if text is None else text.encode(errors="backslashreplace").decode()

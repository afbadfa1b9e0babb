"""Writes a run into the file where it is kept, as its scores are made."""

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic_core import to_json

from judgekit.errors import StoreError
from judgekit.runs.conduct import Conduct
from judgekit.runs.hashes import Hashes
from judgekit.runs.rows import Row, RunRecord, labels_of, without_text
from judgekit.runs.store import CALLS, Store
from judgekit.score import Score
from judgekit.traces.message import Record
from judgekit.traces.sample import Sample

_AT_ONCE = 0.1
"""Seconds in which scores are written together."""
_COMPRESSION = 1
_SAMPLE = "INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CONVERSATION = "INSERT OR IGNORE INTO conversations VALUES (?, ?, ?)"
_SCORE = "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NO_EXCHANGES = "DELETE FROM exchanges WHERE run = ? AND sample = ? AND scorer = ?"
_EXCHANGE = "INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?, ?, ?)"


class Recorder:
    """Writes samples and scores into a run; those of a tenth of a second together.

    What is killed loses no more than that, and what was under way.
    """

    def __init__(self, store: Store, record: RunRecord) -> None:
        self._store = store
        self._run = record.number
        self._text = record.keeps_text
        self._places = {one.name: place for place, one in enumerate(record.scorers)}
        self._waiting: dict[str, list[tuple[object, ...]]] = {}
        self._failure: StoreError | None = None

    def sample(self, index: int, sample: Sample) -> None:
        """Takes what is to be known of a sample; its scores come after it."""
        trace = sample.trace
        conduct = Conduct.of(sample)
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
            _json(conduct) if conduct else None,
            _json({name: one.source for name, one in known.items()}) if known else None,
            *Hashes.of(sample, keeps_text=self._text),
        )
        if self._text:
            self._add_text(_CONVERSATION, sample, index)

    def row(self, row: Row) -> None:
        """Takes a score."""
        score = row.score if self._text else without_text(row.score)
        try:
            line = self._line(score)
        except ValueError as error:
            line = self._line(Score.failed(score.scorer, f"the score cannot be written: {error}", error="StoreError"))
        place = self._places[score.scorer]
        self._add(_SCORE, row.index, place, *line)
        self._add(_NO_EXCHANGES, row.index, place)  # those of a score that this one takes the place of
        for number, call in enumerate(row.score.calls if self._text else ()):
            if call.exchange is not None:
                self._add_text(_EXCHANGE, call.exchange, row.index, place, number)

    @staticmethod
    def _line(score: Score) -> tuple[object, ...]:
        return (
            score.status,
            score.value,
            _encoded(score.label),
            _encoded(score.error),
            None if score.aggregate == "mean" else _encoded(score.aggregate),
            _json(score.warnings) if score.warnings else None,
            CALLS.dump_json(tuple(score.calls)).decode() if score.calls else None,
            _json((score.reason, score.details)),
            score.confidence,
        )

    def _add(self, sql: str, *values: object) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiting.setdefault(sql, []).append((self._run, *values))

    def _add_text(self, sql: str, record: Record, *key: object) -> None:
        try:
            body = record.model_dump_json().encode()
        except ValueError:  # lone surrogates stand in no file
            return
        self._add(sql, *key, zlib.compress(body, _COMPRESSION))

    def flush(self) -> None:
        """Writes what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            with self._store.transaction() as db:
                for sql, lines in waiting.items():
                    db.executemany(sql, lines)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Writes every tenth of a second, in turn with what is scored, and all of it in the end."""

        async def regularly() -> None:
            while True:
                await asyncio.sleep(_AT_ONCE)
                try:
                    self.flush()
                except StoreError as error:
                    self._failure = error  # whoever writes next is told
                    return

        task = asyncio.create_task(regularly())
        try:
            yield
        finally:
            task.cancel()
            if self._failure is None:
                self.flush()
        if self._failure is not None:
            raise self._failure


def _json(value: object) -> str:
    return to_json(value, inf_nan_mode="constants").decode()


def _encoded(text: str | None) -> str | None:
    """The text, if a file can hold it."""
    if text is not None:
        text.encode()
    return text


def _text(text: str | None) -> str | None:
    """A name as a file can hold it."""
    return None if text is None else text.encode(errors="backslashreplace").decode()

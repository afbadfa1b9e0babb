"""Writes a run into the file where it is kept, as its scores are made."""

import asyncio
import secrets
import zlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic_core import to_json

from judgekit.errors import StoreError
from judgekit.runs.conduct import Conduct
from judgekit.runs.hashes import Hashes
from judgekit.runs.rows import Row, RunRecord, labels_of, without_text
from judgekit.runs.store import CALLS, Store
from judgekit.score import JudgeCall, Score
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
_CALLS = "INSERT OR REPLACE INTO unscored_calls (run, id, sample, scorer, calls) VALUES (?, ?, ?, ?, ?)"
_KEPT_CALLS = "DELETE FROM unscored_calls WHERE run = ? AND id = ?"
_OLD_CALLS = """
    INSERT INTO unscored_calls (run, sample, scorer, calls)
    SELECT run, sample, scorer, calls FROM scores WHERE run = ? AND sample = ? AND scorer = ? AND calls IS NOT NULL
"""


@dataclass
class _Attempt:
    """A score that is being made, and the judge calls that were paid for it so far."""

    calls: list[JudgeCall]
    id: int = field(default_factory=lambda: secrets.randbits(62))
    written: int = 0


class Recorder:
    """Writes samples, scores and what was paid for them into a run; those of a tenth of a second together.

    What is killed loses no more than that, and what was under way.
    """

    def __init__(self, store: Store, record: RunRecord) -> None:
        self._store = store
        self._run = record.number
        self._text = record.keeps_text
        self._places = {one.name: place for place, one in enumerate(record.scorers)}
        self._is_new = store.is_empty(record.number)
        self._attempts: dict[tuple[int, int], _Attempt] = {}
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

    def begin(self, index: int, scorer: str, calls: list[JudgeCall]) -> None:
        """Take the ledger of a score that is being made: what is in it was paid, whether or not the score is kept."""
        self._attempts[index, self._places[scorer]] = _Attempt(calls)

    def row(self, row: Row) -> None:
        """Takes a score, which has the calls that were paid for it. Those of a score in its place stay with the run."""
        score = row.score if self._text else without_text(row.score)
        try:
            line = self._line(score)
        except ValueError as error:
            reason = f"the score cannot be written: {error}"
            line = self._line(Score.failed(score.scorer, reason, error="StoreError", calls=score.calls))
        place = self._places[score.scorer]
        if not self._is_new:  # else there is no score that this one could take the place of
            self._add(_OLD_CALLS, row.index, place)
        self._add(_SCORE, row.index, place, *line)
        attempt = self._attempts.pop((row.index, place), None)
        if attempt is not None and attempt.written:
            self._add(_KEPT_CALLS, attempt.id)
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
            _calls(score.calls) if score.calls else None,
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
        for (index, place), attempt in self._attempts.items():
            if attempt.written < len(attempt.calls):
                attempt.written = len(attempt.calls)
                self._add(_CALLS, attempt.id, index, place, _calls(attempt.calls))
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


def _calls(calls: Iterable[JudgeCall]) -> str:
    """Calls as a file can hold them: what was paid is kept, whatever a judge is called."""
    try:
        return CALLS.dump_json(tuple(calls)).decode()
    except ValueError:
        texts = ("judge", "prompt", "model", "system_fingerprint", "error")
        held = (call.model_copy(update={name: _text(getattr(call, name)) for name in texts}) for call in calls)
        return CALLS.dump_json(tuple(held)).decode()


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

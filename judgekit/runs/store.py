"""Where runs are kept: one SQLite file."""

import os
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from judgekit.database import BARRED, code, connect, make_folder, schema_version, share
from judgekit.errors import StoreError
from judgekit.runs.conduct import Conduct, Efforts
from judgekit.runs.hashes import Hashes
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.score import Exchange, JudgeCall, Score, Status
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Sample

RUNS = Path(".judgekit/runs.sqlite")
"""Where the command line keeps its runs."""

_APPLICATION_ID = int.from_bytes(b"jrun")
_MIGRATIONS = (
    (
        "CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL) STRICT",
        """
        CREATE TABLE scorers (
            run INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, signature TEXT, record TEXT NOT NULL,
            PRIMARY KEY (run, place), UNIQUE (run, name)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE samples (
            run INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, trace_id TEXT, "group" TEXT, domain TEXT,
            labels TEXT, conduct TEXT,
            PRIMARY KEY (run, number)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE conversations (
            run INTEGER NOT NULL, number INTEGER NOT NULL, sample BLOB NOT NULL, PRIMARY KEY (run, number)
        ) STRICT
        """,
        """
        CREATE TABLE scores (
            run INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL, status TEXT NOT NULL, value REAL,
            label TEXT, error TEXT, aggregate TEXT, warnings TEXT, calls TEXT, explanation TEXT NOT NULL,
            PRIMARY KEY (run, sample, scorer)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE exchanges (
            run INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL, call INTEGER NOT NULL,
            exchange BLOB NOT NULL,
            PRIMARY KEY (run, sample, scorer, call)
        ) STRICT
        """,
    ),
    ("ALTER TABLE scores ADD COLUMN confidence REAL",),
    ("ALTER TABLE samples ADD COLUMN label_sources TEXT",),
    (
        "ALTER TABLE samples ADD COLUMN references_hash INTEGER",
        "ALTER TABLE samples ADD COLUMN material_hash INTEGER",
        "ALTER TABLE samples ADD COLUMN first_message_hash INTEGER",
    ),
    (
        """
        CREATE TABLE unscored_calls (
            id INTEGER PRIMARY KEY, run INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL,
            calls TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX unscored_calls_of_run ON unscored_calls (run)",
    ),
)
"""Each takes a file from one version of the schema to the next, statement by statement. They are added to, and never changed."""

_PARTS = ("scorers", "samples", "conversations", "scores", "exchanges", "unscored_calls")
"""Tables of what belongs to a run."""
_READ_AT_ONCE = 64
"""Conversations."""
_ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk; what was scored until then is kept",
    sqlite3.SQLITE_BUSY: "another program is writing in it; try again when it is done",
    sqlite3.SQLITE_CORRUPT: "it is damaged: move it away, or name another file",
    sqlite3.SQLITE_NOTADB: "it is no database: name another file",
    **dict.fromkeys(BARRED, "it and its folder must be writable; or name another file"),
}
CALLS = TypeAdapter(tuple[JudgeCall, ...])
_ROWS = """
    SELECT sample, id, trace_id, "group", domain, labels, name, status, value, label, error, aggregate, warnings, calls,
        explanation, confidence, label_sources
    FROM scores JOIN samples ON samples.run = scores.run AND number = sample
        JOIN scorers ON scorers.run = scores.run AND place = scorer
    WHERE scores.run = ?
"""


class Counts(NamedTuple):
    """How much there is of a run."""

    samples: int = 0
    scores: int = 0
    failed: int = 0


class Store:
    """A file of runs.

    Args:
        path: The file, made where there is none; ``None`` keeps them in memory.
        read_only: Changes nothing; the file must be there.

    Raises:
        StoreError: It cannot be used, is from a newer judgekit, or not judgekit's.
    """

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        self.path = None if path is None else Path(path)
        with self._explained():
            self._db = self._open(read_only=read_only)
        weakref.finalize(self, self._db.close)

    def _open(self, *, read_only: bool) -> sqlite3.Connection:
        path = self.path
        if path is None:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if path.is_dir():
                raise StoreError(f"{path}: cannot hold runs: it is a folder; name a file in it")
            if read_only and not path.exists():
                raise StoreError(f"{path}: there are no runs yet; judgekit run makes them")
            if not read_only:
                make_folder(path)
            # What cannot be written is read as if nobody ever wrote it. Elsewhere others may, while rows are read.
            db = connect(path, read_only=read_only and not _is_writable(path.parent))
        try:
            self._inode = None if path is None else path.stat().st_ino
            self._prepare(db, read_only=read_only)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection, *, read_only: bool) -> None:
        newest = len(_MIGRATIONS)
        db.execute("BEGIN")
        version = schema_version(db, self.path, _APPLICATION_ID, newest)
        db.execute("COMMIT")
        if read_only:
            db.execute("PRAGMA query_only = ON")
            if not version:  # somebody is making it just now
                raise StoreError(f"{self.path}: there are no runs yet; judgekit run makes them")
            if version < newest:
                raise StoreError(f"{self.path}: is of schema {version}; judgekit run brings it up to date")
            return
        share(db)  # where it cannot, one process at a time writes and reads
        db.execute("PRAGMA synchronous = FULL")
        if version < newest:
            db.execute("BEGIN IMMEDIATE")
            version = schema_version(db, self.path, _APPLICATION_ID, newest)  # others may have been here meanwhile
            for sql in chain.from_iterable(_MIGRATIONS[version:]):
                db.execute(sql)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {newest}")
            db.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            advice = _ADVICE.get(code(error), "name another file")
            raise StoreError(f"{self.path}: the file of runs cannot be used: {error}; {advice}") from error

    @contextmanager
    def _undamaged(self, what: str) -> Generator[None]:
        try:
            yield
        except (ValueError, TypeError, zlib.error) as error:
            raise StoreError(f"{self.path}: {what} is damaged: {error}") from error

    @property
    def is_there(self) -> bool:
        """Whether the file is still the one that was opened."""
        if self.path is None:
            return True
        try:
            return self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The database, to be written to: all that is done, or nothing."""
        with self._explained():
            if not self.is_there:
                raise StoreError(f"{self.path}: was deleted or replaced while it was in use; run again")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:  # of some errors, as of a full disk, SQLite has done it by itself
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _select(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with self._explained():
            for line in self._db.execute(sql, values):  # noqa: UP028 - that would close it, perhaps after the database
                yield line

    def begin(self, record: RunRecord) -> RunRecord:
        """Begins a run, and says its number."""
        with self.transaction() as db:
            number = db.execute("INSERT INTO runs (record) VALUES ('') RETURNING number").fetchone()[0]
            record = record.model_copy(update={"number": number})
            self._put_record(db, record)
        return record

    @contextmanager
    def starting(self, record: RunRecord) -> Generator[RunRecord]:
        """Begin a run. If an error ends it before anything is scored, it is forgotten."""
        record = self.begin(record)
        try:
            yield record
        except BaseException:
            with suppress(StoreError):  # the first error says why there is no run
                self.forget(record.number)
            raise

    @contextmanager
    def going_on(self, before: RunRecord, record: RunRecord, first: int = 0) -> Generator[RunRecord]:
        """Write that a run goes on, perhaps with more scorers.

        If an error ends it before anything came of the scorers from the place ``first`` on, the run is as it was before.
        """
        record = self.change(record)
        try:
            yield record
        except BaseException:
            with suppress(StoreError):  # the first error says why it does not go on
                self._put_back(before, first)
            raise

    def _put_back(self, before: RunRecord, first: int) -> None:
        added = (before.number, len(before.scorers))
        with self.transaction() as db:
            if self.is_empty(before.number, first):
                db.execute("DELETE FROM scorers WHERE run = ? AND place >= ?", added)
                db.execute("DELETE FROM unscored_calls WHERE run = ? AND scorer >= ?", added)
                self._put_record(db, before)

    def change(self, record: RunRecord) -> RunRecord:
        """Writes what is known of a run anew: it ended, or goes on, perhaps with more scorers.

        Scorers that another program added to it meanwhile stay.

        Raises:
            StoreError: They stand where this one's would.
        """
        with self.transaction() as db:
            there = self.record(record.number)
            pairs = zip(there.scorers, record.scorers, strict=False)
            if any((one.name, one.signature) != (other.name, other.signature) for one, other in pairs):
                raise StoreError(
                    f"{self.path}: another program has just added scorers to run {record.number}; try again"
                )
            if len(there.scorers) > len(record.scorers):
                record = record.model_copy(update={"scorers": there.scorers, "asked": there.asked})
            self._put_record(db, record)
        return record

    @staticmethod
    def _put_record(db: sqlite3.Connection, record: RunRecord) -> None:
        said = record.model_dump_json(exclude={"number", "scorers"})
        db.execute("UPDATE runs SET record = ? WHERE number = ?", (said, record.number))
        lines = (
            (record.number, place, one.name, one.signature, one.model_dump_json())
            for place, one in enumerate(record.scorers)
        )
        db.executemany("INSERT OR REPLACE INTO scorers VALUES (?, ?, ?, ?, ?)", lines)

    def records(self) -> Sequence[RunRecord]:
        """All runs, the oldest first."""
        return [self._record(number, said) for number, said in self._select("SELECT * FROM runs ORDER BY number")]

    def record(self, number: int | None = None) -> RunRecord:
        """What is known of a run, or of the last one.

        Raises:
            StoreError: There is none.
        """
        sql = "SELECT * FROM runs WHERE ?1 IS NULL OR number = ?1 ORDER BY number DESC LIMIT 1"
        found = next(self._select(sql, number), None)
        if found is None:
            wanted = "holds no runs" if number is None else f"holds no run {number}"
            raise StoreError(f"{self.path}: {wanted}; judgekit runs lists those that are there")
        return self._record(*found)

    def _record(self, number: int, said: str) -> RunRecord:
        lines = self._select("SELECT record FROM scorers WHERE run = ? ORDER BY place", number)
        with self._undamaged(f"run {number}"):
            scorers = [ScorerRecord.model_validate_json(line) for (line,) in lines]
            return RunRecord.model_validate({**from_json(said), "number": number, "scorers": scorers})

    def done(self, run: int, first: int, last: int, *, but: Collection[Status] = ()) -> dict[int, set[int]]:
        """Which scorers, by place, have scored each of the samples ``first`` to ``last``, scores of a status aside."""
        found: dict[int, set[int]] = {}
        sql = "SELECT sample, scorer, status FROM scores WHERE run = ? AND sample BETWEEN ? AND ?"
        for sample, scorer, status in self._select(sql, run, first, last):
            if status not in but:
                found.setdefault(sample, set()).add(scorer)
        return found

    def lowest(self, run: int, scorer: str, most: int) -> Iterator[Row]:
        """The rows with the lowest values of a scorer, the lowest first."""
        sql = f"{_ROWS} AND name = ? AND value IS NOT NULL ORDER BY value, sample LIMIT ?"
        return self._rows(sql, run, scorer, most)

    def count(self, run: int) -> int:
        """How many scores a run has."""
        return int(next(self._select("SELECT count(*) FROM scores WHERE run = ?", run))[0])

    def rows(
        self,
        run: int,
        *,
        scorer: str | None = None,
        statuses: Collection[Status] | None = None,
        numbers: Collection[int] | None = None,
    ) -> Iterator[Row]:
        """The rows of a run, read one by one: by sample, and within a sample in the order of the scorers."""
        sql = _ROWS
        values: list[object] = [run]
        if numbers is not None:  # as one value: there may be more of them than a statement may have
            sql += " AND sample IN (SELECT value FROM json_each(?))"
            values.append(to_json(sorted(numbers)).decode())
        for column, wanted in (("name", None if scorer is None else [scorer]), ("status", statuses)):
            if wanted is not None:
                sql += f" AND {column} IN ({', '.join('?' * len(wanted))})"
                values += wanted
        return self._rows(f"{sql} ORDER BY sample, scorer", *values)

    def _rows(self, sql: str, *values: object) -> Iterator[Row]:
        with self._undamaged("a score"):
            for line in self._select(sql, *values):
                yield self._row(*line)

    def _row(
        self,
        index: int,
        sample_id: str,
        trace_id: str | None,
        group: str | None,
        domain: str | None,
        labels: str | None,
        scorer: str,
        status: Status,
        value: float | None,
        label: str | None,
        error: str | None,
        aggregate: str | None,
        warnings: str | None,
        calls: str | None,
        explanation: str,
        confidence: float | None,
        label_sources: str | None,
    ) -> Row:
        def explain() -> tuple[str, JsonObject]:
            with self._undamaged(f"the score of sample {index}"):
                return cast("tuple[str, JsonObject]", from_json(explanation))

        score = Score.kept(
            explain,
            scorer=scorer,
            status=status,
            value=value,
            label=label,
            error=error,
            aggregate="mean" if aggregate is None else aggregate,
            warnings=tuple(from_json(warnings)) if warnings else (),
            calls=CALLS.validate_json(calls) if calls else (),
            confidence=confidence,
        )
        return Row.model_construct(
            index=index,
            sample_id=sample_id,
            score=score,
            trace_id=trace_id,
            group=group,
            domain=domain,
            labels=from_json(labels) if labels else {},
            label_sources=from_json(label_sources) if label_sources else {},
        )

    def counts(self, run: int) -> Counts:
        """How much there is of a run."""
        sql = """
            SELECT (SELECT count(*) FROM samples WHERE run = ?1), count(*), total(status = 'failed')
            FROM scores WHERE run = ?1
        """
        return Counts(*map(int, next(self._select(sql, run))))

    def unscored_calls(self, run: int, first: int = 0) -> Iterator[tuple[str, Sequence[JudgeCall]]]:
        """The judge calls of attempts that gave no score, or one that was made again, each with its scorer.

        They are those of the scorers from the place ``first`` on.
        """
        sql = """
            SELECT name, calls FROM unscored_calls JOIN scorers ON scorers.run = unscored_calls.run AND place = scorer
            WHERE unscored_calls.run = ? AND scorer >= ? ORDER BY sample, scorer, id
        """
        for scorer, calls in self._select(sql, run, first):
            with self._undamaged(f"what was paid for run {run}"):
                found = CALLS.validate_json(calls)
            yield scorer, found

    def has_sample(self, run: int, number: int) -> bool:
        """Return whether a run holds the sample of this number."""
        return any(self._select("SELECT 1 FROM samples WHERE run = ? AND number = ?", run, number))

    def is_empty(self, run: int, first: int = 0) -> bool:
        """Return whether nothing came of a run's scorers from the place ``first`` on: no scores, and nothing was paid."""
        if any(self._select("SELECT 1 FROM scores WHERE run = ? AND scorer >= ? LIMIT 1", run, first)):
            return False
        return not any(call.is_paid for _, calls in self.unscored_calls(run, first) for call in calls)

    def forget(self, run: int) -> None:
        """Delete a run if nothing came of it. The next run gets its number, unless another run has begun since."""
        with self.transaction() as db:
            if self.is_empty(run):
                db.execute("DELETE FROM runs WHERE number = ?", (run,))
                for table in _PARTS:
                    db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 - our own names
                db.execute("UPDATE sqlite_sequence SET seq = ?1 - 1 WHERE name = 'runs' AND seq = ?1", (run,))

    def remove(self, runs: Collection[int]) -> None:
        """Deletes all that is kept of runs for good, and gives its space back.

        Nothing of them is left in the file or in SQLite's log. Judges' replies are also in their cache, which stays.

        Raises:
            StoreError: The file cannot be used, or another program reads in it, so that words may be left in the log.
        """
        with self.transaction() as db:
            db.executemany("DELETE FROM runs WHERE number = ?", [(run,) for run in runs])
            for table in _PARTS:
                db.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT number FROM runs)")  # noqa: S608 - our own names
        with self._explained():
            self._db.execute("VACUUM")
            is_read = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_read:
            raise StoreError(
                f"{self.path}: the runs are deleted, but words of them may be in {self.path}-wal until the program "
                "that reads in it now has ended"
            )

    def duplicate_ids(self, run: int) -> Iterator[str]:
        """Ids that more than one sample has."""
        for (found,) in self._select("SELECT id FROM samples WHERE run = ? GROUP BY id HAVING count(*) > 1", run):
            yield found

    def hashes(self, run: int) -> Iterator[tuple[int, Hashes]]:
        """The hashes of all samples, with their numbers, in order."""
        sql = "SELECT number, references_hash, material_hash, first_message_hash FROM samples WHERE run = ? ORDER BY number"
        for number, *hashes in self._select(sql, run):
            yield number, Hashes(*hashes)

    def conducts(self, run: int) -> Iterator[tuple[int, Conduct]]:
        """What each conversation took that has a score, with the sample's number."""
        sql = """
            SELECT number, conduct FROM samples WHERE run = ? AND conduct IS NOT NULL
                AND EXISTS (SELECT 1 FROM scores WHERE scores.run = samples.run AND sample = number)
        """
        for number, conduct in self._select(sql, run):
            with self._undamaged(f"run {run}"):
                found = Conduct(*from_json(conduct))
            yield number, found

    def efforts(self, run: int) -> Efforts:
        """What the conversations took that have a score."""
        found = Efforts()
        for _, conduct in self.conducts(run):
            found.add(conduct)
        return found

    def keeps_all(self, run: int) -> bool:
        """Whether all samples of a run are kept, and not only what is known of them."""
        sql = "SELECT (SELECT count(*) FROM samples WHERE run = ?) = (SELECT count(*) FROM conversations WHERE run = ?)"
        return bool(next(self._select(sql, run, run))[0])

    def conversations(self, run: int, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[tuple[int, Sample]]:
        """The samples that are kept and wanted, with their numbers."""
        sql = "SELECT number, sample FROM conversations WHERE run = ? AND number > ? ORDER BY number LIMIT ?"
        last = -1
        # A statement that is left open would keep this connection from writing as soon as another one has written.
        while block := list(self._select(sql, run, last, _READ_AT_ONCE)):
            for number, body in block:
                last = number
                if not wanted(number):
                    continue
                with self._undamaged(f"sample {number} of run {run}"):
                    sample = Sample.model_validate_json(zlib.decompress(body))
                yield number, sample

    def exchanges(self, run: int) -> Iterator[tuple[int, str, int, Exchange]]:
        """What judges were sent and replied: the sample's number, the scorer, which of the score's calls it was."""
        sql = """
            SELECT sample, name, call, exchange FROM exchanges
                JOIN scorers ON scorers.run = exchanges.run AND place = scorer
            WHERE exchanges.run = ? ORDER BY sample, scorer, call
        """
        for number, scorer, call, body in self._select(sql, run):
            with self._undamaged(f"a judge's reply about sample {number} of run {run}"):
                exchange = Exchange.model_validate_json(zlib.decompress(body))
            yield number, scorer, call, exchange


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def now() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)

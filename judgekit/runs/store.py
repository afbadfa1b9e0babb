"""The SQLite file that holds runs."""

import sqlite3
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic_core import to_json

from judgekit.errors import StoreError
from judgekit.runs.reader import RunReader
from judgekit.runs.rows import RunDescription, RunRecord, ScorerResult
from judgekit.runs.schema import OTHER_TABLES, PART_TABLES, IssueRow, LabelRow, checksum

DEFAULT_RUNS_PATH = Path(".judgekit/runs.sqlite")
"""The file in which the command line keeps its runs."""


class RunStore(RunReader):
    """A file of runs, which are begun, changed and removed here. A `Recorder` writes their scores.

    Args:
        path: The file, which is created if missing; ``None`` keeps runs in memory.
        read_only: Whether to change nothing; the file must exist.

    Raises:
        StoreError: The file cannot be used, is from a newer judgekit, or is not one of judgekit's.
    """

    def reopen(self) -> "RunStore":
        """Return another connection to the file, for another thread.

        Raises:
            StoreError: The file cannot be used, or another one has taken its place.
        """
        self._check_current()
        return RunStore(self.path)

    def _check_current(self) -> None:
        if not self.is_current:
            raise StoreError(f"{self.path}: was deleted or replaced while it was in use; run again")

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Yield the database for writing. All changes are made, or none."""
        with self._explaining_errors():
            self._check_current()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:  # after some errors, such as a full disk, SQLite has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def begin(self, record: RunRecord) -> RunRecord:
        """Begin a run, and return its record with its number."""
        with self.transaction() as db:
            number = db.execute("INSERT INTO runs (record, checksum) VALUES ('', 0) RETURNING number").fetchone()[0]
            record = record.model_copy(update={"number": number})
            self._put_record(db, record)
        return record

    def restore(self, previous: RunRecord, first_scorer: int) -> None:
        """Restore the record of a run if the scorers from the index ``first_scorer`` on have produced nothing."""
        with self.transaction() as db:
            if self.is_empty(previous.number, first_scorer):
                added = (previous.number, len(previous.scorers))
                db.execute("DELETE FROM unscored_calls WHERE run = ? AND scorer >= ?", added)
                self._put_record(db, previous)

    def change(self, record: RunRecord) -> RunRecord:
        """Update the record of a run.

        Scorers that another program has added to it meanwhile are kept.

        Raises:
            StoreError: They have taken the indexes of this one's.
        """
        with self.transaction() as db:
            stored = self.record(record.number)
            pairs = zip(stored.scorers, record.scorers, strict=False)
            if any((old.name, old.signature) != (new.name, new.signature) for old, new in pairs):
                raise StoreError(
                    f"{self.path}: another program has just added scorers to run {record.number}; try again"
                )
            if len(stored.scorers) > len(record.scorers):
                record = record.model_copy(update={"scorers": stored.scorers, "options": stored.options})
            self._put_record(db, record)
        return record

    def write_results(self, run: int, results: Iterable[ScorerResult]) -> None:
        """Write the results of a finished run, which lists of runs read."""
        rows = [(run, index, *columns) for index, columns in enumerate(results)]
        with self.transaction() as db:
            db.execute("DELETE FROM results WHERE run = ?", (run,))
            db.executemany(
                "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(*row, checksum(row)) for row in rows]
            )

    def describe(self, run: int, description: RunDescription) -> None:
        """Replace the name, the note and the tags of a run."""
        row = (run, description.name, description.note, to_json(description.tags).decode())
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?)", (*row, checksum(row)))

    def write_issues(self, run: int, scorer: str, rows: Iterable[IssueRow]) -> None:
        """Replace the issues of a run's failures, as one scorer analyzed them."""
        store = RunStore(self.path) if self.read_only else self
        with store.transaction() as db:
            db.execute("DELETE FROM issues WHERE run = ? AND scorer = ?", (run, scorer))
            db.executemany("INSERT INTO issues VALUES (?, ?, ?, ?, ?, ?)", [(*row, checksum(row)) for row in rows])

    def add_labels(self, rows: Iterable[LabelRow]) -> None:
        """Add human labels, within a `transaction`. One given no later than the last of the file is dated right after it."""
        last = self._db.execute("SELECT coalesce(max(given_at), 0) FROM labels").fetchone()[0]
        for row in rows:
            last = max(row.given_at, last + 1)
            dated = row._replace(given_at=last)
            self._db.execute(f"INSERT INTO labels VALUES ({', '.join('?' * 14)})", (*dated, checksum(dated)))  # noqa: S608

    @staticmethod
    def _put_record(db: sqlite3.Connection, record: RunRecord) -> None:
        body = record.model_dump_json(exclude={"number"})
        values = (body, checksum((record.number, body)), record.number)
        db.execute("UPDATE runs SET record = ?, checksum = ? WHERE number = ?", values)

    def discard(self, run: int) -> None:
        """Delete a run that produced nothing. The next run gets its number, unless another run has begun since."""
        with self.transaction() as db:
            if self.is_empty(run):
                self._delete(db, [run])
                db.execute("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'runs' AND seq = ?", (run,))

    def remove(self, runs: Collection[int]) -> None:
        """Delete everything stored for runs permanently, and reclaim the space.

        Nothing of them, or of people's labels on their samples, is left in the file or in SQLite's log. Replies of judges
        remain in the reply cache.

        Raises:
            StoreError: The file cannot be used, or another program is reading it, so that text may remain in the log.
        """
        with self.transaction() as db:
            self._delete(db, runs)
        with self._explaining_errors():
            self._db.execute("VACUUM")
            is_read = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_read:
            raise StoreError(
                f"{self.path}: the runs are deleted, but parts of their text may be in {self.path}-wal until another "
                "program stops reading it"
            )

    @staticmethod
    def _delete(db: sqlite3.Connection, runs: Collection[int]) -> None:
        numbers = [(run,) for run in runs]
        db.executemany("DELETE FROM runs WHERE number = ?", numbers)
        for table in (*PART_TABLES, *OTHER_TABLES):
            db.executemany(f"DELETE FROM {table} WHERE run = ?", numbers)  # noqa: S608 - our own names


def now() -> datetime:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)

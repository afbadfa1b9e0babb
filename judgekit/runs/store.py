"""Where runs are kept: one SQLite file."""

import sqlite3
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from judgekit.errors import StoreError
from judgekit.runs.reading import StoredRuns
from judgekit.runs.rows import RunRecord
from judgekit.runs.schema import PARTS, checksum

RUNS = Path(".judgekit/runs.sqlite")
"""Where the command line keeps its runs."""


class Store(StoredRuns):
    """A file of runs, which are begun, changed and removed. Their scores are written by a `Recorder`.

    Args:
        path: The file, made where there is none; ``None`` keeps them in memory.
        read_only: Changes nothing; the file must be there.

    Raises:
        StoreError: It cannot be used, is from a newer judgekit, or not judgekit's.
    """

    def second(self) -> "Store":
        """Return another connection to the file, for another thread.

        Raises:
            StoreError: It cannot be used, or another file is in its place.
        """
        self._must_be_there()
        return Store(self.path)

    def _must_be_there(self) -> None:
        if not self.is_there:
            raise StoreError(f"{self.path}: was deleted or replaced while it was in use; run again")

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The database, to be written to: all that is done, or nothing."""
        with self._explained():
            self._must_be_there()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:  # of some errors, as of a full disk, SQLite has done it by itself
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def begin(self, record: RunRecord) -> RunRecord:
        """Begins a run, and says its number."""
        with self.transaction() as db:
            number = db.execute("INSERT INTO runs (record, checksum) VALUES ('', 0) RETURNING number").fetchone()[0]
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
        with self.transaction() as db:
            if self.is_empty(before.number, first):
                added = (before.number, len(before.scorers))
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
                record = record.model_copy(update={"scorers": there.scorers, "options": there.options})
            self._put_record(db, record)
        return record

    @staticmethod
    def _put_record(db: sqlite3.Connection, record: RunRecord) -> None:
        said = record.model_dump_json(exclude={"number"})
        values = (said, checksum((record.number, said)), record.number)
        db.execute("UPDATE runs SET record = ?, checksum = ? WHERE number = ?", values)

    def forget(self, run: int) -> None:
        """Delete a run if nothing came of it. The next run gets its number, unless another run has begun since."""
        with self.transaction() as db:
            if self.is_empty(run):
                db.execute("DELETE FROM runs WHERE number = ?", (run,))
                for table in PARTS:
                    db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 - our own names
                db.execute("UPDATE sqlite_sequence SET seq = ?1 - 1 WHERE name = 'runs' AND seq = ?1", (run,))

    def remove(self, runs: Collection[int]) -> None:
        """Deletes all that is kept of runs for good, and gives its space back.

        Nothing of them is left in the file or in SQLite's log. Judges' replies are also in their cache, which stays.

        Raises:
            StoreError: The file cannot be used, or another program reads in it, so that words may be left in the log.
        """
        with self.transaction() as db:
            numbers = [(run,) for run in runs]
            db.executemany("DELETE FROM runs WHERE number = ?", numbers)
            for table in PARTS:
                db.executemany(f"DELETE FROM {table} WHERE run = ?", numbers)  # noqa: S608 - our own names
        with self._explained():
            self._db.execute("VACUUM")
            is_read = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if is_read:
            raise StoreError(
                f"{self.path}: the runs are deleted, but words of them may be in {self.path}-wal until the program "
                "that reads in it now has ended"
            )


def now() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)

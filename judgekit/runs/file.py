"""A file of runs: opened, and read with its checksums. All that is said of damaged rows starts here."""

import os
import sqlite3
import weakref
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from judgekit.database import ACCESS_CODES, DATABASE_ERRORS, connect, enable_wal, result_code, schema_version
from judgekit.errors import StoreError
from judgekit.locations import require_local
from judgekit.runs.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from judgekit.runs.units import CopiedRecording, RunUnits

_COPIED = """
    WITH counted AS (
        SELECT recording_hash AS hash, "group", count(*) AS samples, min(number) AS first FROM samples
        WHERE run = ? AND recording_hash IS NOT NULL GROUP BY recording_hash, "group"
    )
    SELECT * FROM counted WHERE hash IN (SELECT hash FROM counted GROUP BY hash HAVING sum(samples) > 1) ORDER BY first
"""
_ADVICE = {
    sqlite3.SQLITE_FULL: "free some disk space; the scores so far are saved",
    sqlite3.SQLITE_BUSY: "another program is writing to it; try again when it is done",
    sqlite3.SQLITE_CORRUPT: "it is damaged: move it away, or name another file",
    sqlite3.SQLITE_NOTADB: "it is not a database: name another file",
    **dict.fromkeys(ACCESS_CODES, "it and its folder must be writable; or name another file"),
}


class RunFile:
    """An open file of runs; see `judgekit.runs.store.RunStore`."""

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        self.path = None if path is None else require_local(path, "runs are kept in a SQLite file, which must be local")
        self.read_only = read_only
        self._units: tuple[object, RunUnits] | None = None
        path = self.path
        if path is not None and path.is_dir():
            raise StoreError(f"{path}: cannot hold runs: it is a folder; name a file in it")
        if path is not None and read_only and not path.exists():
            raise StoreError(f"{path}: there are no runs yet; judgekit run creates one")
        with self._explaining_errors():
            # A file that cannot be written is opened as immutable. Otherwise, others may write while rows are read.
            folder = Path() if path is None else path.parent
            may_write = os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
            self._db = connect(path, read_only=read_only and not may_write)
            self._db.text_factory = partial(str, errors="replace")  # damaged bytes do not match their checksum
            close = weakref.finalize(self, self._db.close)
            try:
                self._inode = None if path is None else path.stat().st_ino
                self._prepare(self._db, read_only=read_only)
            except BaseException:
                close()
                raise

    def _prepare(self, db: sqlite3.Connection, *, read_only: bool) -> None:
        db.execute("BEGIN")
        version = schema_version(db, self.path, APPLICATION_ID, SCHEMA_VERSION)
        db.execute("COMMIT")
        if read_only:
            db.execute("PRAGMA query_only = ON")
            if not version:  # another process is creating it
                raise StoreError(f"{self.path}: there are no runs yet; judgekit run creates one")
            return
        enable_wal(db)  # without it, only one process at a time can write or read
        db.execute("PRAGMA synchronous = FULL")
        if not version:
            db.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables meanwhile.
            for sql in () if schema_version(db, self.path, APPLICATION_ID, SCHEMA_VERSION) else SCHEMA:
                db.execute(sql)
            db.execute("COMMIT")

    @contextmanager
    def _explaining_errors(self) -> Generator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            advice = _ADVICE.get(result_code(error), "name another file")
            raise StoreError(f"{self.path}: the runs file cannot be used: {error}; {advice}") from error

    @contextmanager
    def _reading(self, what: str) -> Generator[None]:
        try:
            yield
        except (ValueError, TypeError, zlib.error) as error:
            raise StoreError(f"{self.path}: {what} is damaged: {error}") from error

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{self.path}: {what} is damaged: its checksum does not match")

    @property
    def version(self) -> tuple[int, int]:
        """Numbers that change whenever the file is changed, by this connection or by others. Those of another one differ."""
        return next(self._select("PRAGMA data_version"))[0], self._db.total_changes

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        if self.path is None:
            return True
        try:
            return self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def copied_recordings(self, run: int) -> Sequence[CopiedRecording]:
        """Return the recordings that several samples have, by group."""
        return [CopiedRecording(*row) for row in self._select(_COPIED, run)]

    def _run_units(self, run: int) -> RunUnits:
        """Return the units of a run, which are read again when the file has changed."""
        key = (run, *self.version)
        if self._units is None or self._units[0] != key:
            self._units = key, RunUnits(self.copied_recordings(run))
        return self._units[1]

    def _select(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with self._explaining_errors():
            for row in self._db.execute(sql, values):  # noqa: UP028 - yield from might close the cursor too late
                yield row

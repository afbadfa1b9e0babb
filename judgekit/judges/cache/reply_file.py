"""The SQLite file of stored replies: opens it, and explains what is wrong with it."""

import logging
import sqlite3
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from judgekit.database import (
    ACCESS_CODES,
    CORRUPTION_CODES,
    DATABASE_ERRORS,
    connect,
    enable_wal,
    result_code,
    schema_version,
)
from judgekit.errors import StoreError

CLAIM_LEASE_SECONDS = 10.0
"""Seconds after which a claim ends if it is not renewed."""

log = logging.getLogger("judgekit")

_APPLICATION_ID = int.from_bytes(b"judg")
_SCHEMA_VERSION = 1
_REPLIES = (
    "TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, judge TEXT NOT NULL, prompt TEXT NOT NULL,"
    " digests TEXT NOT NULL, reply TEXT NOT NULL, at TEXT NOT NULL, checksum BLOB NOT NULL) STRICT"
)
_CLAIMS = (
    "TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL)"
    " STRICT, WITHOUT ROWID"  # one page to write instead of two
)
_TRIGGER = "answered AFTER INSERT ON replies BEGIN DELETE FROM claims WHERE key = NEW.key; END"
_SCHEMA = (
    f"CREATE {_REPLIES}",
    f"CREATE {_CLAIMS}",
    f"CREATE TRIGGER IF NOT EXISTS {_TRIGGER}",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_NOW = "(julianday('now') - 2440587.5) * 86400"  # seconds since 1970
NEW_LEASE_SQL = f"{_NOW} + :lease"
ENDED_CLAIM_SQL = f"NOT (until > {_NOW} AND until <= {_NOW} + 2 * :lease)"
"""Whether a claim has ended. One that ends later than any new one dates from before the clock was set back."""

_LOG = ("-wal", "-shm")
"""The suffixes of the files that SQLite keeps next to a database."""
_ADVICE = {
    **dict.fromkeys(CORRUPTION_CODES, "name another file, or if it is a damaged cache, move it away"),
    sqlite3.SQLITE_FULL: "free some disk space and try again; the replies so far are saved",
    sqlite3.SQLITE_BUSY: "another program is writing to it; try again when it is done",
}


class ReplyFile:
    """A SQLite file that processes may share. One thread uses it at a time.

    Args:
        path: The file, which is created if it does not exist.
        read_only: Create and change nothing, neither the file nor its neighbors.

    Raises:
        StoreError: The file cannot be used, was written by a newer judgekit, or is not judgekit's.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path.absolute()
        self._read_only = read_only
        with self._explained():
            if self._path.is_dir():
                raise StoreError(f"{path}: cannot be used as a cache: it is a folder; name a file in it")
            self._open()

    def _open(self) -> None:
        # The log of a file that was deleted alone would be taken for the log of the new file.
        logs = [path for path in (Path(f"{self._path.resolve()}{ending}") for ending in _LOG) if path.exists()]
        # In this order, since SQLite creates a log after its file.
        if logs and not self._read_only and not self._path.exists():
            for log_file in logs:
                log_file.unlink(missing_ok=True)
        self._db = connect(self._path, read_only=self._read_only)
        weakref.finalize(self, self._db.close)  # an event loop that ends drops what a thread opens for it
        try:
            self._db.text_factory = bytes  # a damaged row may not be text
            self._db.execute("BEGIN")
            version = schema_version(
                self._db, self._path, _APPLICATION_ID, _SCHEMA_VERSION, f"CREATE TRIGGER {_TRIGGER}"
            )
            self._db.execute("COMMIT")
            if self._read_only:
                if not version:  # a new file, which must stay as it is
                    self._db.execute(f"CREATE TEMPORARY {_REPLIES}")
                return
            unshared = enable_wal(self._db)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("BEGIN IMMEDIATE")
            for sql in _SCHEMA if not version else ():
                self._db.execute(sql)
            # This also tests whether the file can be written.
            self._db.execute(f"DELETE FROM claims WHERE {ENDED_CLAIM_SQL}", {"lease": CLAIM_LEASE_SECONDS})  # noqa: S608 - our own SQL
            self._db.execute("COMMIT")
            if unshared is not None:
                _warn_once(
                    f"{self._path}: SQLite cannot use a write-ahead log here ({unshared}), as on network file systems; the cache"
                    " works but is slow, and only one machine should use it"
                )
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            code = result_code(error)
            advice = _ADVICE.get(code, "name another file")
            if code in ACCESS_CODES and self._read_only:
                advice = "it must be readable, with the -wal and -shm files that SQLite may have left next to it"
            elif code in ACCESS_CODES:
                advice = "it and its folder must be writable; cache_mode='replay' only reads"
            raise StoreError(f"{self._path}: cannot be used as a cache: {error}; {advice}") from error

    def _execute(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Run a statement, as a transaction of its own or a part of one, and return its rows."""
        with self._explained():
            return self._db.execute(sql, values).fetchall()

    def close(self) -> None:
        """Close the file, with a checkpoint if no other program has it open."""
        self._db.close()


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)

"""The SQLite file that replies are kept in: how it is opened, written to, and replaced where it is corrupt or gone."""

import logging
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from judgekit.database import BARRED, CORRUPT, DATABASE_ERRORS, code, connect, make_folder, schema_version, share
from judgekit.errors import StoreError

LEASE = 10.0
"""Seconds that a claim holds if it is not renewed."""

Result = TypeVar("Result")

log = logging.getLogger("judgekit")

_APPLICATION_ID = int.from_bytes(b"judg")
_SCHEMA_VERSION = 1
_REPLIES = (
    "TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, judge TEXT NOT NULL, prompt TEXT NOT NULL,"
    " digests TEXT NOT NULL, reply TEXT NOT NULL, at TEXT NOT NULL, checksum BLOB NOT NULL) STRICT"
)
_SCHEMA = (
    f"CREATE {_REPLIES}",
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) STRICT",
    "CREATE TRIGGER IF NOT EXISTS answered AFTER INSERT ON replies BEGIN DELETE FROM claims WHERE key = NEW.key; END",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_SWEEP = "DELETE FROM claims WHERE "
ENDED = "NOT (until > :now AND until <= :latest)"

_LOG = ("-wal", "-shm")
"""Ends of the names of the files that SQLite has beside its own."""
_DATABASES = {".sqlite", ".sqlite3", ".db"}
_GONE = "%s: was deleted or replaced while it was in use; a new cache is begun there if there is none"
_ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk and do the same again, what was answered is kept",
    sqlite3.SQLITE_BUSY: "another program is writing in it, do the same again when it is done",
}


class ReplyFile:
    """The file, which processes may share. One thread uses it; another one may do single statements at once meanwhile.

    Replies can be had again: a corrupt file is renamed and a new one is begun, as where the file was deleted while it
    was in use. The log says so.

    Args:
        path: The file, made where there is none.
        read_only: Makes and changes nothing, neither in the file nor beside it.

    Raises:
        StoreError: It cannot be used, or is from a newer judgekit, or not judgekit's.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path.absolute()
        self._read_only = read_only
        self._is_logged = False
        self._lock = Lock()
        with self._explained():
            if self._path.is_dir():
                raise StoreError(f"{path}: cannot be used as a cache: it is a folder; name a file in it")
            if not read_only:
                make_folder(self._path)
            try:
                self._open()
            except DATABASE_ERRORS as error:
                self._set_aside(error)
                self._open()

    def _open(self) -> None:
        if not self._read_only:
            self._clear()
        self._db = connect(self._path, read_only=self._read_only)
        self._quick = connect(self._path, read_only=self._read_only)
        try:
            self._inode = self._path.stat().st_ino
            self._prepare()
            self._quick.execute("PRAGMA busy_timeout = 0")  # not before, since each pragma may have to wait
        except BaseException:
            self.close()
            raise

    def _clear(self) -> None:
        """Delete the log that a file left behind when it alone was deleted: SQLite would take it for the new file's."""
        left = [one for one in (Path(f"{self._path.resolve()}{ending}") for ending in _LOG) if one.exists()]
        if left and not self._path.exists():  # in this order, since SQLite makes the log of a new file after the file
            for one in left:
                one.unlink(missing_ok=True)

    def _prepare(self) -> None:
        self._db.text_factory = self._quick.text_factory = bytes  # a damaged row need not be text
        self._db.execute("BEGIN")
        version = schema_version(self._db, self._path, _APPLICATION_ID, _SCHEMA_VERSION)
        self._db.execute("COMMIT")
        if self._read_only:
            if not version:  # a new file, which is to stay as it is
                self._db.execute(f"CREATE TEMPORARY {_REPLIES}")
            return
        unshared = share(self._db)
        self._is_logged = unshared is None  # else each write waits for the disk
        for db in (self._db, self._quick):
            db.execute("PRAGMA synchronous = NORMAL")
        self._quick.execute("PRAGMA wal_autocheckpoint = 0")  # it takes long; writes of the other connection do it
        self._db.execute("BEGIN IMMEDIATE")
        for sql in _SCHEMA if not version else ():
            self._db.execute(sql)
        self._db.execute(f"{_SWEEP}{ENDED}", lease())  # this also tells whether the file can be written
        self._db.execute("COMMIT")
        if unshared is not None:
            _warn_once(
                f"{self._path}: SQLite has no write-ahead log here ({unshared}), as on network file systems; the cache"
                " works, but slowly, and only one machine should use it"
            )

    def _set_aside(self, error: Exception) -> None:
        """Renames a corrupt file, so that a new one can take its place.

        Raises:
            StoreError: It is not corrupt, or by its name not a database, or may not be changed.
        """
        if code(error) not in CORRUPT or self._read_only or self._path.suffix.lower() not in _DATABASES:
            raise self._unusable(error) from error
        self.close()
        path = self._path.resolve()
        aside = f"{path}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        with suppress(FileNotFoundError):
            if path.stat().st_ino != self._inode:
                return  # another process was faster, and the file that is here now is a new one
            for ending in _LOG:
                with suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{aside}{ending}")
            path.rename(aside)
            log.warning("%s: is corrupt (%s); it was renamed to %s, and a new cache is begun", path, error, aside)

    def _unusable(self, error: Exception) -> StoreError:
        advice = _ADVICE.get(code(error), "name another file")
        if code(error) in BARRED:
            advice = "it and its folder must be writable; cache_mode='replay' only reads"
            if self._read_only:
                advice = "it must be readable, with the -wal and -shm files that SQLite may have left beside it"
        return StoreError(f"{self._path}: cannot be used as a cache: {error}; {advice}")

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise self._unusable(error) from error

    def _do(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Return the rows of a statement, which is its own transaction or a part of one."""
        is_part = self._db.in_transaction
        try:
            return self._db.execute(sql, values).fetchall()
        except DATABASE_ERRORS as error:
            if is_part:
                raise
            with self._explained():
                self._set_aside(error)
                self._open()
                return self._db.execute(sql, values).fetchall()

    def _at_once(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Return the rows of a statement, also while another thread writes.

        Raises:
            sqlite3.Error: It would have to wait, or cannot be done.
        """
        with self._lock:
            return self._quick.execute(sql, values).fetchall()

    def _written_at_once(self, sql: str, values: Sequence[object] | Mapping[str, object]) -> bool:
        """Return whether a statement that returns a row where it writes one did so, into the file that is there."""
        try:
            return self._is_logged and bool(self._at_once(sql, values)) and self._is_there()
        except DATABASE_ERRORS:
            return False

    def write(self, work: Callable[[], Result]) -> Result:
        """Return the result of work that is one transaction, or a part of one.

        It is done again in a new file if this one turns out to be corrupt, deleted or replaced.
        """
        if self._db.in_transaction:
            return work()
        with self._explained():
            try:
                result = self._transaction(work)
                if self._is_there():
                    return result
                log.warning(_GONE, self._path)
                self.close()
            except DATABASE_ERRORS as error:
                self._set_aside(error)
            make_folder(self._path)
            self._open()
            return self._transaction(work)

    def _transaction(self, work: Callable[[], Result]) -> Result:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # of some errors, as of a full disk, SQLite has done it by itself
                self._db.execute("ROLLBACK")
            raise
        return result

    def _is_there(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Closes the file."""
        self._db.close()
        with self._lock:
            self._quick.close()


def lease() -> dict[str, float]:
    """The times of a claim that is made now. One that ends after ``latest`` is from before the clock was set back."""
    now = time.time()
    return {"now": now, "until": now + LEASE, "latest": now + 2 * LEASE}


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)

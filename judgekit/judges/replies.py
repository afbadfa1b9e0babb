"""Where replies are kept: a SQLite file that grows, and that processes share."""

import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from pydantic import AwareDatetime, Field, ValidationError

from judgekit.database import BARRED, CORRUPT, code, connect, make_folder, schema_version, share
from judgekit.errors import StoreError
from judgekit.judges.client import Reply, Request
from judgekit.traces.message import Record

LEASE = 10.0
"""Seconds that a claim holds if it is not renewed."""

_log = logging.getLogger("judgekit")

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
_SELECT = "SELECT key, judge, prompt, digests, reply, at, checksum FROM replies WHERE "
_COUNT = "SELECT count(*) FROM replies WHERE "
_DELETE = "DELETE FROM replies WHERE "
_PUT = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)"
_WHICH = "(prompt GLOB :prompt OR substr(prompt, 1, instr(prompt || '@', '@') - 1) GLOB :prompt) AND judge GLOB :judge"
_CLAIM = (
    "INSERT INTO claims SELECT :key, :owner, :until WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = :key)"
    " ON CONFLICT (key) DO UPDATE SET owner = :owner, until = :until WHERE "
)
_SWEEP = "DELETE FROM claims WHERE "
_ENDED = "NOT (until > :now AND until <= :latest)"

_DATABASES = {".sqlite", ".sqlite3", ".db"}
_ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk and do the same again, what was answered is kept",
    sqlite3.SQLITE_BUSY: "another program is writing in it, do the same again when it is done",
}


class Replies(Protocol):
    """Replies by the key of their request."""

    def get(self, key: str, /) -> Reply | None:
        """The reply to the request with this key."""
        ...

    def digests(self, prompt: str | None = None, /) -> Iterable[Mapping[str, str]]:
        """The hashed parts of all requests, or of those of one prompt, to say how another request differs."""
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...


class Recorded(Record):
    """A reply with the request that it answers; a line of a cassette.

    ``sample`` is a note for people; a line with ``about`` alone is one too.
    """

    about: str | None = None
    key: str = ""
    digests: dict[str, str] = Field(default_factory=dict[str, str])
    judge: str = ""
    prompt: str = ""
    sample: str | None = None
    at: AwareDatetime | None = None
    reply: Reply | None = None


class Added(NamedTuple):
    """How many replies were new, how many were there, and how many there are others than were to be added."""

    new: int
    same: int
    other: int


class CachedReplies:
    """The replies in a SQLite file, which processes may share, and the claims of those that are about to ask for more.

    Replies can be had again: a corrupt file is renamed and a new one begun, and a reply that is damaged is none. Both
    are said in the log.

    Args:
        path: The file, made where there is none.
        read_only: Makes and changes nothing, neither in the file nor beside it.

    Raises:
        StoreError: It cannot be used, or is from a newer judgekit, or not judgekit's.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path.absolute()
        self._read_only = read_only
        self._owner = uuid4().hex
        self._parts: list[tuple[str, dict[str, str]]] | None = None
        with self._explained():
            if self._path.is_dir():
                raise StoreError(f"{path}: cannot be used as a cache: it is a folder; name a file in it")
            if not read_only:
                make_folder(self._path)
            try:
                self._open()
            except sqlite3.DatabaseError as error:
                self._set_aside(error)
                self._open()

    def _open(self) -> None:
        self._db = connect(self._path, read_only=self._read_only)
        self._db.text_factory = bytes  # a damaged row need not be text
        try:
            self._inode = self._path.stat().st_ino
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("BEGIN")
        version = schema_version(self._db, self._path, _APPLICATION_ID, _SCHEMA_VERSION)
        self._db.execute("COMMIT")
        if self._read_only:
            if not version:  # a new file, which is to stay as it is
                self._db.execute(f"CREATE TEMPORARY {_REPLIES}")
            return
        unshared = share(self._db)
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("BEGIN IMMEDIATE")
        for sql in _SCHEMA if not version else ():
            self._db.execute(sql)
        self._db.execute(f"{_SWEEP}{_ENDED}", _lease())  # this also tells whether the file can be written
        self._db.execute("COMMIT")
        if unshared is not None:
            _warn_once(
                f"{self._path}: SQLite has no write-ahead log here ({unshared}), as on network file systems; the cache"
                " works, but slowly, and only one machine should use it"
            )

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Renames a corrupt file, so that a new one can take its place.

        Raises:
            StoreError: It is not corrupt, or by its name not a database, or may not be changed.
        """
        if code(error) not in CORRUPT or self._read_only or self._path.suffix.lower() not in _DATABASES:
            raise self._unusable(error) from error
        self._db.close()
        path = self._path.resolve()
        aside = f"{path}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        with suppress(FileNotFoundError):
            if path.stat().st_ino != self._inode:
                return  # another process was faster, and the file that is here now is a new one
            for ending in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{aside}{ending}")
            path.rename(aside)
            _log.warning("%s: is corrupt (%s); it was renamed to %s, and a new cache is begun", path, error, aside)

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
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _do(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """The rows of a statement, which is its own transaction."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            with self._explained():
                self._set_aside(error)
                self._open()
                return self._db.execute(sql, values).fetchall()

    def get(self, key: str, /) -> Reply | None:
        """The reply to the request with this key."""
        rows = self._do(f"{_SELECT}key = ?", (key,))
        if not rows:
            return None
        if (reply := self._intact(rows[0])) is None and not self._read_only:
            self._do(f"{_DELETE}key = ? AND checksum IS ?", (key, rows[0][-1]))
        return reply

    def _intact(self, row: Sequence[Any]) -> Reply | None:
        """The reply in a row, if it is what was written."""
        try:
            if _checksum(row[:-1]) == row[-1]:
                return Reply.model_validate_json(row[4])
        except (TypeError, ValidationError):
            pass
        _log.warning("%s: a reply that was kept is damaged, and not used", self._path)
        return None

    def claim(self, key: str, /) -> bool:
        """Whether this request is now to be sent from here: it has no reply, and nobody else is about to get it one."""
        return bool(self._do(f"{_CLAIM}{_ENDED} RETURNING 1", {**_lease(), "key": key, "owner": self._owner}))

    def renew(self) -> None:
        """Holds on to all that was claimed from here."""
        self._do("UPDATE claims SET until = :until WHERE owner = :owner", {**_lease(), "owner": self._owner})

    def release(self, key: str, /) -> None:
        """Gives a claim back: there is no reply."""
        self._do("DELETE FROM claims WHERE key = ? AND owner = ?", (key, self._owner))

    def put(self, request: Request, reply: Reply, /) -> None:
        """Keeps a reply, in the place of an older one and of the claim."""
        self._put(request.key, request.judge, request.prompt, request.digests, reply, datetime.now(UTC))

    def _put(self, key: str, judge: str, prompt: str, digests: Mapping[str, str], reply: Reply, at: datetime) -> None:
        said = json.dumps(reply.model_dump(exclude_defaults=True), ensure_ascii=False)
        row = [
            text.encode(errors="replace")  # a lone surrogate stands in no file
            for text in (key, judge, prompt, json.dumps(digests), said, _written(at))
        ]
        values = (*(text.decode() for text in row), _checksum(row))
        self._do(_PUT, values)

    def add(self, lines: Iterable[Recorded], *, replace: bool) -> Added:
        """Keeps replies that were recorded elsewhere.

        Args:
            lines: The replies.
            replace: Whether another reply to the same request, that was there before, makes place.
        """
        new = same = other = 0
        for line in lines:
            if line.reply is None:
                continue
            kept = self.get(line.key)
            if kept == line.reply:
                same += 1
                continue
            new += kept is None
            other += kept is not None
            if kept is None or replace:
                at = line.at or datetime.now(UTC)
                self._put(line.key, line.judge, line.prompt, line.digests, line.reply, at)
        return Added(new, same, other)

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keeps other processes from writing until the context ends."""
        self._do("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._do("COMMIT")

    def prune(self, prompt: str, judge: str, before: datetime | None, *, dry_run: bool) -> int:
        """Throws replies away and gives back the space they took.

        Args:
            prompt: A pattern for the prompt, with or without its version, such as ``agent_goal*``.
            judge: A pattern for the judge, such as ``openai/*``.
            before: Replies that were kept later stay; ``None`` for all.
            dry_run: Leaves all as it is.

        Returns:
            How many replies these are.
        """
        which = {"prompt": prompt, "judge": judge, "before": None if before is None else _written(before)}
        found = self._do(f"{_COUNT if dry_run else _DELETE}{_WHICH} AND (:before IS NULL OR at < :before)", which)
        if not dry_run:
            found = self._do("SELECT changes()")
            self._do("VACUUM")
            self._do("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(found[0][0])

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[Recorded]:
        """The replies with their requests, by prompt and judge, always in the same order. For the patterns see `prune`.

        What is damaged is left out, with a warning in the log.
        """
        sql = f"{_SELECT}{_WHICH} ORDER BY prompt, judge, key"
        with self._explained():
            for row in self._db.execute(sql, {"prompt": prompt, "judge": judge}):
                if (reply := self._intact(row)) is not None:
                    key, judge_, prompt_, digests, _, at, _ = row
                    yield Recorded(
                        key=key.decode(),
                        digests=json.loads(digests),
                        judge=judge_.decode(),
                        prompt=prompt_.decode(),
                        at=datetime.fromisoformat(at.decode()),
                        reply=reply,
                    )

    def digests(self, prompt: str | None = None, /) -> list[dict[str, str]]:
        """The hashed parts of all requests, or of those of one prompt, whatever its version."""
        if self._parts is None or not self._read_only:  # where one request is not found, thousands may not be
            rows = self._do(f"{_SELECT}digests <> '{{}}'")
            intact = (row for row in rows if self._intact(row) is not None)
            self._parts = [(row[2].decode().partition("@")[0], json.loads(row[3])) for row in intact]
        return [digests for name, digests in self._parts if prompt in (None, name)]

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


def _lease() -> dict[str, float]:
    """The times of a claim that is made now. One that ends after ``latest`` is from before the clock was set back."""
    now = time.time()
    return {"now": now, "until": now + LEASE, "latest": now + 2 * LEASE}


def _written(at: datetime) -> str:
    """A time as text that sorts by time."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _checksum(row: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"\n".join(row)).digest()


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)

"""The stored replies of judges, in a SQLite file that processes share."""

import hashlib
import json
import logging
import sqlite3
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import AwareDatetime, Field, ValidationError

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
from judgekit.judges.request import Reply, Request
from judgekit.traces.message import FrozenModel

CLAIM_LEASE_SECONDS = 10.0
"""Seconds after which a claim ends if it is not renewed."""

_log = logging.getLogger("judgekit")

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
_NEW_LEASE = f"{_NOW} + :lease"
_ENDED_CLAIM = f"NOT (until > {_NOW} AND until <= {_NOW} + 2 * :lease)"
"""Whether a claim has ended. One that ends later than any new one dates from before the clock was set back."""

_LOG = ("-wal", "-shm")
"""The suffixes of the files that SQLite keeps next to a database."""
_ADVICE = {
    **dict.fromkeys(CORRUPTION_CODES, "name another file, or if it is a damaged cache, move it away"),
    sqlite3.SQLITE_FULL: "free some disk space and try again; the replies so far are saved",
    sqlite3.SQLITE_BUSY: "another program is writing to it; try again when it is done",
}

_SELECT = "SELECT key, judge, prompt, digests, reply, at, checksum FROM replies WHERE "
_GET = f"{_SELECT}key = ?"
_COUNT = "SELECT count(*) FROM replies WHERE "
_DELETE = "DELETE FROM replies WHERE "
_REPLACE = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING 1"
_ADD = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING 1"
_WHICH = "(prompt GLOB :prompt OR substr(prompt, 1, instr(prompt || '@', '@') - 1) GLOB :prompt) AND judge GLOB :judge"
_GRANT = (
    f"INSERT INTO claims SELECT :key, :token, {_NEW_LEASE} WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = :key)"  # noqa: S608 - our own SQL
    f" ON CONFLICT (key) DO UPDATE SET owner = :token, until = excluded.until WHERE {_ENDED_CLAIM} RETURNING 1"
)
_RENEW = f"UPDATE claims SET until = {_NEW_LEASE} WHERE key = :key AND owner = :token"  # noqa: S608 - as above
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""The form of times in the file, which sorts by time."""


class Claim(NamedTuple):
    """The right to send a request while others wait for its reply. The token identifies the holder."""

    key: str
    token: str


class RecordedReply(FrozenModel):
    """A reply with the request that it answers; a line of a cassette.

    ``sample`` is a note for people, and so is a line with ``note`` alone.
    """

    note: str | None = None
    key: str = ""
    digests: dict[str, str] = Field(default_factory=dict[str, str])
    judge: str = ""
    prompt: str = ""
    sample: str | None = None
    recorded_at: AwareDatetime | None = None
    reply: Reply | None = None


class BusyError(Exception):
    """Another connection is writing to the file, and this one does not wait."""


class ReplyDatabase:
    """The replies in a SQLite file that processes may share, and the claims on requests under way.

    One thread uses it at a time. Damaged replies are ignored, with a warning in the log.

    Args:
        path: The file, which is created if it does not exist.
        read_only: Create and change nothing, neither the file nor its neighbors.
        waits: Whether to wait for those who write to the file, and to move SQLite's log into it when that is long. If not,
            nothing takes longer than some microseconds, and a `BusyError` is raised.

    Raises:
        StoreError: The file cannot be used, was written by a newer judgekit, or is not judgekit's.
    """

    def __init__(self, path: Path, *, read_only: bool = False, waits: bool = True) -> None:
        self._path = path.absolute()
        self._read_only = read_only
        self._waits = True
        with self._explained():
            if self._path.is_dir():
                raise StoreError(f"{path}: cannot be used as a cache: it is a folder; name a file in it")
            self._open()
            if not waits:
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._waits = waits

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
            self._db.execute(f"DELETE FROM claims WHERE {_ENDED_CLAIM}", {"lease": CLAIM_LEASE_SECONDS})  # noqa: S608 - our own SQL
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
            if code == sqlite3.SQLITE_BUSY and not self._waits:
                raise BusyError from error
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

    def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        rows = self._execute(_GET, (key,))
        if not rows:
            return None
        if (reply := self._intact(rows[0])) is None and not self._read_only:
            self._execute(f"{_DELETE}key = ? AND checksum IS ?", (key, rows[0][-1]))
        return reply

    def _intact(self, row: Sequence[Any]) -> Reply | None:
        """Return the reply in a row, or ``None`` if it is damaged."""
        with suppress(TypeError, ValidationError):
            if _checksum(row[:-1]) == row[-1]:
                return Reply.model_validate_json(row[4])
        _log.warning("%s: ignoring a damaged reply", self._path)
        return None

    def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted, and the request is to be sent from here."""
        if (kept := self.get(claim.key)) is not None:
            return kept
        if self._execute(_GRANT, {**claim._asdict(), "lease": CLAIM_LEASE_SECONDS}):
            return True
        return self.get(claim.key) or False  # another process may have stored it just now

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of those claims that still hold."""
        for claim in claims:
            self._execute(_RENEW, {**claim._asdict(), "lease": CLAIM_LEASE_SECONDS})

    def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        self._execute("DELETE FROM claims WHERE key = ? AND owner = ?", claim)

    def put(
        self, request: Request | RecordedReply, reply: Reply, /, at: datetime | None = None, *, replace: bool = False
    ) -> Reply:
        """Store a reply, as of now or another time, and end all claims on it.

        Returns:
            The reply that stands: an earlier one, unless it is to be replaced.
        """
        answer = json.dumps(reply.model_dump(exclude_defaults=True), ensure_ascii=False)
        time = f"{(at or datetime.now(UTC)).astimezone(UTC):{_TIME}}"
        texts = request.key, request.judge, request.prompt, json.dumps(request.digests), answer, time
        encoded = [text.encode(errors="replace") for text in texts]  # lone surrogates cannot be encoded
        row = (*(text.decode() for text in encoded), _checksum(encoded))
        while not self._execute(_REPLACE if replace else _ADD, row):
            if (stands := self.get(request.key)) is not None:  # a damaged one is deleted
                return stands
        return reply

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep other processes from writing until the context ends."""
        self._execute("BEGIN IMMEDIATE")
        with self._explained():
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    def prune(self, prompt: str, judge: str, before: datetime | None, *, dry_run: bool) -> int:
        """Delete replies, and free their disk space.

        Args:
            prompt: A pattern for the prompt, with or without its version, such as ``agent_goal*``.
            judge: A pattern for the judge, such as ``openai/*``.
            before: Delete only replies that were stored before this time; ``None`` for all.
            dry_run: Delete nothing.

        Returns:
            The number of these replies.
        """
        which = {"prompt": prompt, "judge": judge, "before": before and f"{before.astimezone(UTC):{_TIME}}"}
        rows = self._execute(f"{_COUNT if dry_run else _DELETE}{_WHICH} AND (:before IS NULL OR at < :before)", which)
        if not dry_run:
            rows = self._execute("SELECT changes()")
            self._execute("VACUUM")
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(rows[0][0])

    def recorded(self, prompt: str = "*", judge: str = "*") -> Iterator[RecordedReply]:
        """Yield the replies with their requests, sorted by prompt, judge and key. See `prune` for the patterns.

        Damaged replies are left out, with a warning in the log.
        """
        sql = f"{_SELECT}{_WHICH} ORDER BY prompt, judge, key"
        with self._explained():
            for row in self._db.execute(sql, {"prompt": prompt, "judge": judge}):
                if (reply := self._intact(row)) is not None:
                    key, judge_, prompt_, digests, _, at, _ = row
                    yield RecordedReply(
                        key=key.decode(),
                        digests=json.loads(digests),
                        judge=judge_.decode(),
                        prompt=prompt_.decode(),
                        recorded_at=datetime.fromisoformat(at.decode()),
                        reply=reply,
                    )

    def close(self) -> None:
        """Close the file, with a checkpoint if no other program has it open."""
        self._db.close()


def _checksum(row: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"\n".join(row)).digest()


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)

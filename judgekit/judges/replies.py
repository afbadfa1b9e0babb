"""Where replies are kept: a SQLite file that grows, or a JSONL file that a team commits."""

import json
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from pydantic import Field, ValidationError

from judgekit.errors import StoreError, explain
from judgekit.judges.client import Reply, Request
from judgekit.traces.message import Record

_SCHEMA_VERSION = 1


class Replies(Protocol):
    """Replies by the key of their request."""

    def get(self, key: str, /) -> Reply | None:
        """The reply to the request with this key."""
        ...

    def put(self, request: Request, reply: Reply, /) -> None:
        """Keeps a reply."""
        ...

    def digests(self) -> Iterable[dict[str, str]]:
        """The hashed parts of all requests, to say how a request that is not among them differs."""
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...


class Recorded(Record):
    """A line of a JSONL file of replies. ``sample`` is a note for people; a line with ``about`` alone is one too."""

    about: str | None = None
    key: str = ""
    digests: dict[str, str] = Field(default_factory=dict[str, str])
    prompt: str = ""
    sample: str | None = None
    reply: Reply | None = None


class RecordedReplies:
    """The replies of a JSONL file, which is not written to.

    Raises:
        StoreError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, Recorded] = {}
        number = 0
        try:
            with path.open(encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    recorded = Recorded.model_validate_json(line)
                    self._lines[recorded.key] = recorded
                    if recorded.reply is None and recorded.about is None:
                        raise StoreError(f"{path}, line {number}: has no reply")
        except ValidationError as error:
            raise StoreError(f"{path}, line {number}: {explain(error)}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def get(self, key: str, /) -> Reply | None:
        """The reply to the request with this key."""
        found = self._lines.get(key)
        return found.reply if found else None

    def put(self, _request: Request, _reply: Reply, /) -> None:
        """Refused: the file is what somebody recorded."""
        raise StoreError(f"{self._path}: a recorded file is only read; use cache_mode='replay', or a SQLite cache")

    def digests(self) -> Iterable[dict[str, str]]:
        """The hashed parts of all requests."""
        return [line.digests for line in self._lines.values() if line.digests]

    def close(self) -> None:
        """Nothing is held open."""


class CachedReplies:
    """The replies in a SQLite file, which may be shared by processes.

    Raises:
        StoreError: It cannot be used, or is from a newer judgekit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._explained():
            if not path.parent.exists():
                path.parent.mkdir(parents=True, exist_ok=True)  # another process may be making it
                if path.parent.name == ".judgekit":  # ours; a folder of the user's own is theirs to commit
                    (path.parent / ".gitignore").write_text("*\n")
            self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            found = f"written by a newer judgekit (schema {version})"
            raise StoreError(f"{self._path}: {found}; update, or use another file")
        with suppress(sqlite3.OperationalError):  # SQLite does not wait for another process that is writing
            self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, digests TEXT NOT NULL, prompt TEXT NOT NULL,"
            " reply TEXT NOT NULL, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT, WITHOUT ROWID"
        )
        self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:  # ValueError: a row that is not what was written
            raise StoreError(f"{self._path}: cannot be used as a cache: {error}; remove it or name another") from error

    def get(self, key: str, /) -> Reply | None:
        """The reply to the request with this key."""
        with self._explained():
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return Reply.model_validate_json(row[0]) if row else None

    def put(self, request: Request, reply: Reply, /) -> None:
        """Keeps a reply, in the place of an older one."""
        row = (request.key, json.dumps(request.digests), request.prompt, reply.model_dump_json())
        with self._explained():
            self._db.execute("INSERT OR REPLACE INTO replies (key, digests, prompt, reply) VALUES (?, ?, ?, ?)", row)

    def digests(self) -> Iterable[dict[str, str]]:
        """The hashed parts of all requests."""
        with self._explained():
            return [json.loads(digests) for (digests,) in self._db.execute("SELECT digests FROM replies")]

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

"""The spending of budgets: what a store of it does, and one in a SQLite file or in memory."""

import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

from judgekit.database import DATABASE_ERRORS, connect, enable_wal, schema_version
from judgekit.errors import StoreError
from judgekit.judges.limits.budget import Amount, Budget

RESERVATION_LEASE_SECONDS = 5.0
"""Seconds after which other processes stop waiting for one that does not renew its lease."""

_APPLICATION_ID = int.from_bytes(b"jbud")
_SCHEMA_VERSION = 1
_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS budgets (
        name TEXT PRIMARY KEY, requests INTEGER NOT NULL, tokens INTEGER NOT NULL, usd REAL NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS under_way (
        budget TEXT NOT NULL, owner TEXT NOT NULL, requests INTEGER NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (budget, owner)
    ) STRICT
    """,
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_SPENT = "SELECT requests, tokens, usd FROM budgets WHERE name = ?"
_PUT = (
    "INSERT INTO budgets VALUES (?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, usd = excluded.usd"
)
_LEASE = (
    "INSERT INTO under_way VALUES (?, ?, ?, ?)"
    " ON CONFLICT (budget, owner) DO UPDATE SET requests = excluded.requests, until = excluded.until"
)
_END = "DELETE FROM under_way WHERE budget = ? AND owner = ?"
_SWEEP = "DELETE FROM under_way WHERE until < ?"
_OTHERS = "SELECT count(*) FROM under_way WHERE budget = ? AND owner != ? AND until > ?"


class BudgetRefusal(NamedTuple):
    """The limit that a request would exceed, and whether requests under way may leave room for it."""

    limit: str
    may_fit_later: bool


class Spending(Protocol):
    """The spending of budgets, by their names. Its methods block, except `settle`; the thread of a `BudgetClient` calls them.

    A reservation counts as spent until it is settled, so that reservations of a process that died are charged.
    """

    def amount(self, name: str) -> Amount:
        """Return the spending of a budget, including reservations."""
        ...

    def reserve(self, name: str, budget: Budget, amount: Amount) -> BudgetRefusal | None:
        """Reserve the most that a request may take, unless that would exceed a limit."""
        ...

    def settle(self, name: str, reserved: Amount, used: Amount) -> None:
        """Replace a reservation with the amount that the request took, at the latest with the next `flush`.

        What is not recorded until the process dies stays charged in full. It does not block, and any thread may call it.
        """
        ...

    def flush(self) -> None:
        """Record what was settled."""
        ...

    def renew(self) -> None:
        """Renew the lease of the requests under way from here, and record what was settled."""
        ...

    def reset(self, name: str) -> None:
        """Set the spending of a budget to zero."""
        ...

    def by_budget(self) -> dict[str, Amount]:
        """Return the spending of all budgets, by name."""
        ...

    def close(self) -> None:
        """Record what was settled, and close the file or connection."""
        ...


class SQLiteSpending:
    """Spending in a SQLite file that processes share, or in memory.

    Args:
        path: The file, which is created if it does not exist; ``None`` keeps the amounts in memory.

    Raises:
        StoreError: The file cannot be used, was written by a newer judgekit, or is not judgekit's.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._owner = uuid4().hex
        self._lock = threading.Lock()
        self._settled: list[tuple[str, Amount, Amount]] = []
        self._under_way = Counter[str]()
        with self._explained():
            self._db = connect(path)
        weakref.finalize(self, self._db.close)
        with self._transaction() as db:
            schema_version(db, path, _APPLICATION_ID, _SCHEMA_VERSION)
            for sql in _SCHEMA:
                db.execute(sql)
            db.execute(_SWEEP, (time.time(),))
        with self._explained():
            enable_wal(self._db)  # if that fails, processes take turns
            self._db.execute("PRAGMA synchronous = NORMAL")  # each renewal waits for the disk

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise StoreError(
                f"{self._path}: the budgets file cannot be used: {error}; it and its folder must be writable. If it is "
                "damaged, move it away; judgekit then forgets what was spent"
            ) from error

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Begin a transaction with what was settled, and renew the leases at its end."""
        with self._lock, self._explained():
            settled, under_way = self._settled[:], self._under_way.copy()  # settled requests may be added meanwhile
            try:
                with self._db as db:
                    db.execute("BEGIN IMMEDIATE")
                    self._write_settled(settled)
                    yield db
                    self._write_leases()
            except BaseException:
                self._under_way = under_way
                raise
            del self._settled[: len(settled)]

    def _write_settled(self, settled: Sequence[tuple[str, Amount, Amount]]) -> None:
        spent: dict[str, Amount] = {}
        for name, reserved, used in settled:
            spent[name] = (spent.get(name) or _spent_amount(self._db, name)).plus(used).plus(reserved, -1)
            self._under_way[name] -= 1
        for name, amount in spent.items():
            self._db.execute(_PUT, (name, *amount))

    def _write_leases(self) -> None:
        until = time.time() + RESERVATION_LEASE_SECONDS
        for name, requests in [*self._under_way.items()]:
            if requests > 0:
                self._db.execute(_LEASE, (name, self._owner, requests, until))
            else:
                self._db.execute(_END, (name, self._owner))
                del self._under_way[name]

    def amount(self, name: str) -> Amount:
        """Return the spending of a budget, including reservations."""
        with self._transaction() as db:
            return _spent_amount(db, name)

    def reserve(self, name: str, budget: Budget, amount: Amount) -> BudgetRefusal | None:
        """Reserve the most that a request may take, unless that would exceed a limit."""
        with self._transaction() as db:
            spent = _spent_amount(db, name)
            if (limit := budget.limit_exceeded_by(spent, amount)) is not None:
                ((others,),) = db.execute(_OTHERS, (name, self._owner, time.time()))
                return BudgetRefusal(limit, may_fit_later=bool(others or self._under_way[name]))
            db.execute(_PUT, (name, *spent.plus(amount)))
            self._under_way[name] += 1
            return None

    def settle(self, name: str, reserved: Amount, used: Amount) -> None:
        """Replace a reservation with the amount that the request took, in the next transaction."""
        self._settled.append((name, reserved, used))

    def flush(self) -> None:
        """Record what was settled."""
        if self._settled:
            with self._transaction():
                pass

    def renew(self) -> None:
        """Renew the lease of the requests under way from here, and write all to the disk, so that it survives a power cut."""
        with self._transaction():
            pass
        with self._lock, self._explained():
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def reset(self, name: str) -> None:
        """Delete the spending of a budget."""
        with self._transaction() as db:
            db.execute("DELETE FROM budgets WHERE name = ?", (name,))

    def by_budget(self) -> dict[str, Amount]:
        """Return the spending of all budgets, by name."""
        with self._transaction() as db:
            return {name: Amount(*amount) for name, *amount in db.execute("SELECT * FROM budgets ORDER BY name")}

    def close(self) -> None:
        """Record what was settled, unless the file cannot be written, and close it."""
        with suppress(StoreError):
            self.flush()
        self._db.close()


def _spent_amount(db: sqlite3.Connection, name: str) -> Amount:
    row = db.execute(_SPENT, (name,)).fetchone()
    return Amount(*row) if row else Amount()

"""Stores of replies that do not block the event loop."""

import sqlite3
from asyncio import shield, wrap_future
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from judgekit.database import BUSY_SECONDS, result_code
from judgekit.errors import StoreError
from judgekit.judges.cache.replies import Claim, ReplyDatabase
from judgekit.judges.request import Reply, Request

PUTS_PER_CHECKPOINT = 100
"""The number of replies after which SQLite's log is copied into the file: some 4 MB."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ReplySource(Protocol):
    """Replies by the key of their request."""

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        ...

    async def digests(self, prompt: str | None = None, /) -> Iterable[Mapping[str, str]]:
        """Return the hashed parts of all requests, or of those of a prompt, to find how another request differs."""
        ...

    async def aclose(self) -> None:
        """Finish pending writes, and close the store."""
        ...


class ReplyStore(ReplySource, Protocol):
    """Replies that processes share, so that each request is paid for once and has one reply.

    The holder of the claim on a request sends it, and the others wait for its reply. A claim ends after `CLAIM_LEASE_SECONDS` seconds
    unless it is renewed. The first reply that is put stands: a holder that stalled until its claim ended, so that
    another was faster, uses the other's reply. An operation that has begun is finished even if the caller is canceled.
    """

    async def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted: if not, another claim holds."""
        ...

    async def put(self, request: Request, reply: Reply, /, *, replace: bool = False) -> Reply:
        """Store a reply and end all claims on it; return the reply that stands, which may be an earlier one.

        With ``replace``, the reply replaces an earlier one.
        """
        ...

    async def release(self, claim: Claim, /) -> None:
        """Give up a claim, if it still holds, without a reply."""
        ...

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims that still hold. It blocks; a thread calls it, so no event loop can stall it."""
        ...


def _without_blocking(
    operation: Callable[Concatenate[ReplyDatabase, Arguments], Result],
) -> "Callable[Concatenate[SQLiteReplyStore, Arguments], CoroutineType[Any, Any, Result]]":
    """Return an operation of a file as one of its store."""

    async def run(store: "SQLiteReplyStore", /, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        if store.lock.acquire(blocking=False):
            try:
                store.file.set_busy_timeout(0)
                return operation(store.file, *args, **named)
            except StoreError as error:
                if not isinstance(error.__cause__, Exception) or result_code(error.__cause__) != sqlite3.SQLITE_BUSY:
                    raise
            finally:
                store.lock.release()

        return await store.in_thread(lambda: operation(store.file, *args, **named))

    return run  # type: ignore[return-value]  # for mypy, an async function returns no CoroutineType


class SQLiteReplyStore:
    """The store in a SQLite file.

    What would wait for another program or for the disk is done in a thread, which finishes it even if the caller is
    canceled.

    Args:
        path: The file, which is created if it does not exist.
        read_only: Create and change nothing, neither the file nor its neighbors.

    Raises:
        StoreError: The file cannot be used; see `ReplyDatabase`.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.file = ReplyDatabase(path, read_only=read_only)
        self.thread = ThreadPoolExecutor(1, "judgekit")
        self.lock = Lock()
        self._put_count = 0

    get = _without_blocking(ReplyDatabase.get)
    claim = _without_blocking(ReplyDatabase.claim)
    release = _without_blocking(ReplyDatabase.release)
    _put = _without_blocking(ReplyDatabase.put)

    async def put(self, request: Request, reply: Reply, /, *, replace: bool = False) -> Reply:
        """Store a reply; see `ReplyStore.put`."""
        self._put_count += 1
        if self._put_count % PUTS_PER_CHECKPOINT == 0:
            self.thread.submit(self._locked, self.file.checkpoint)
        return await self._put(request, reply, replace=replace)

    async def digests(self, prompt: str | None = None, /) -> Iterable[Mapping[str, str]]:
        """Return the hashed parts of all requests, or of those of a prompt."""
        return await self.in_thread(lambda: self.file.digests(prompt))

    async def in_thread(self, operation: Callable[[], Result]) -> Result:
        """Return the outcome of an operation that may take long."""
        return await shield(wrap_future(self.thread.submit(self._locked, operation)))

    def _locked(self, operation: Callable[[], Result]) -> Result:
        with self.lock:
            self.file.set_busy_timeout(BUSY_SECONDS)
            return operation()

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims."""
        self._locked(lambda: self.file.renew(claims))

    async def aclose(self) -> None:
        """Finish pending writes, and close the file. It blocks, since an event loop that ends waits for no thread."""
        self.thread.shutdown()
        with self.lock:
            self.file.close()

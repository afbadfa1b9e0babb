"""Stores of replies that do not block the event loop."""

from asyncio import Future, get_running_loop, wrap_future
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeAlias, TypeVar

from judgekit.database import DATABASE_ERRORS
from judgekit.judges.cache.replies import Claim, ReplyDatabase
from judgekit.judges.request import Reply, Request

Result = TypeVar("Result")
_Job: TypeAlias = tuple[Callable[[], Any], Future[Any]]
_End: TypeAlias = tuple[Future[Any], Any, Exception | None]


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

    def peek(self, key: str, /) -> Reply | None:
        """Return the stored reply if that takes no wait; else, or if there is none, ``None``."""
        ...

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


class SQLiteReplyStore:
    """The store in a SQLite file. Operations that may wait run in a thread, all pending writes in one transaction.

    Reads, and writes while nothing else writes, run directly, since that takes less time than to wake a thread.

    Args:
        path: The file, which is created if it does not exist.
        read_only: Create and change nothing, neither the file nor its neighbors.

    Raises:
        StoreError: The file cannot be used; see `ReplyDatabase`.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._file = ReplyDatabase(path, read_only=read_only)
        self._thread = ThreadPoolExecutor(1, "judgekit")
        self._lock = Lock()
        self._waiting: list[_Job] = []

    def peek(self, key: str, /) -> Reply | None:
        """Return the stored reply if that takes no wait."""
        try:
            return self._file.get_nowait(key)
        except DATABASE_ERRORS:
            return None

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        try:
            return self._file.get_nowait(key)
        except DATABASE_ERRORS:
            return await wrap_future(self._thread.submit(self._file.get, key))

    async def digests(self, prompt: str | None = None, /) -> list[dict[str, str]]:
        """Return the hashed parts of all requests, or of the requests of a prompt in any version."""
        return await wrap_future(self._thread.submit(self._file.digests, prompt))

    async def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted."""
        return self._file.claim_nowait(claim) or await self._write(partial(self._file.claim, claim))

    async def put(self, request: Request, reply: Reply, /, *, replace: bool = False) -> Reply:
        """Store a reply and end all claims on it; return the reply that stands."""
        if not replace and self._file.put_nowait(request, reply):
            return reply
        return await self._write(partial(self._file.put, request, reply, replace=replace))

    async def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        await self._write(partial(self._file.release, claim))

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims."""
        self._thread.submit(self._file.renew, claims).result()

    async def aclose(self) -> None:
        """Finish pending writes, and close the file. It blocks, since an event loop that ends waits for no thread."""
        self._thread.submit(self._write_waiting)
        self._thread.submit(self._file.close).result()
        self._thread.shutdown(wait=False)

    async def _write(self, work: Callable[[], Result]) -> Result:
        loop = get_running_loop()
        done: Future[Result] = loop.create_future()
        with self._lock:
            self._waiting.append((work, done))
            is_first = len(self._waiting) == 1
        if is_first:
            self._thread.submit(self._write_waiting)
        return await done

    def _write_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if waiting:
            self._write_together(waiting)

    def _write_together(self, jobs: Sequence[_Job]) -> None:
        try:
            results = self._file.write(lambda: [work() for work, _ in jobs])
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            if len(jobs) > 1:  # each in its own transaction, to find the one that failed
                for job in jobs:
                    self._write_together([job])
                return
            ends: list[_End] = [(jobs[0][1], None, error)]
        else:
            ends = [(done, result, None) for (_, done), result in zip(jobs, results, strict=True)]
        for loop in {done.get_loop() for done, _, _ in ends}:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, [end for end in ends if end[0].get_loop() is loop])


def _settle(ends: Iterable[_End]) -> None:
    for done, result, error in ends:
        if done.cancelled():
            continue
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

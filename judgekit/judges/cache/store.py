"""Stores of replies that do not block the event loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from judgekit.judges.cache.replies import BusyError, Claim, RecordedReply
from judgekit.judges.request import Reply, Request
from judgekit.threads import finish_in_thread

Result = TypeVar("Result")

RecordedDigests: TypeAlias = Sequence[tuple[str, Mapping[str, str]]]
"""The hashed parts of requests, each with the name of its prompt."""


class ReplySource(Protocol):
    """Replies by the key of their request."""

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        ...

    async def digests(self) -> RecordedDigests:
        """Return the hashed parts of all requests, to find how another request differs."""
        ...

    async def aclose(self) -> None:
        """Finish pending writes, and close the store."""
        ...


class Replies(Protocol):
    """Replies that processes share, so that each request is paid for once and has one reply. Its methods block.

    The holder of the claim on a request sends it, and the others wait for its reply. A claim ends after
    `CLAIM_LEASE_SECONDS` seconds unless it is renewed. The first reply that is put stands: a holder that stalled until its
    claim ended, so that another was faster, uses the other's reply.
    """

    def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        ...

    def recorded(self) -> Iterable[RecordedReply]:
        """Return the replies with their requests."""
        ...

    def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted: if not, another claim holds."""
        ...

    def put(
        self, request: Request | RecordedReply, reply: Reply, /, at: datetime | None = None, *, replace: bool = False
    ) -> Reply:
        """Store a reply, as of now or another time, and end all claims on it.

        Returns:
            The reply that stands: an earlier one, unless it is to be replaced.
        """
        ...

    def release(self, claim: Claim, /) -> None:
        """Give up a claim, if it still holds, without a reply."""
        ...

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims that still hold."""
        ...

    def close(self) -> None:
        """Close the file or connections."""
        ...


class ReplyStore:
    """Shared replies that do not block the event loop. What was begun is finished even if the caller is canceled.

    Args:
        replies: The replies, which threads use and the store closes.
        threads: The number of operations at once.
        at_once: The same replies for the event loop, if they raise `BusyError` where they would wait: a thread costs
            more than looking up, claiming and storing a reply in a file.
    """

    def __init__(self, replies: Replies, threads: int = 1, at_once: Replies | None = None) -> None:
        self._replies = replies
        self._threads = ThreadPoolExecutor(threads, "judgekit")
        self._at_once = at_once

    async def _do(self, operation: Callable[[Replies], Result]) -> Result:
        if self._at_once is not None:
            with suppress(BusyError):
                return operation(self._at_once)
        return await finish_in_thread(self._threads, partial(operation, self._replies))

    async def get(self, key: str, /) -> Reply | None:
        """Return the reply to the request with this key."""
        return await self._do(lambda replies: replies.get(key))

    async def digests(self) -> RecordedDigests:
        """Return the hashed parts of all requests."""
        return await finish_in_thread(self._threads, lambda: recorded_digests(self._replies.recorded()))

    async def claim(self, claim: Claim, /) -> Reply | bool:
        """Return the stored reply, or else whether the claim is granted."""
        return await self._do(lambda replies: replies.claim(claim))

    async def put(self, request: Request, reply: Reply, /, *, replace: bool = False) -> Reply:
        """Store a reply, and return the one that stands."""
        return await self._do(lambda replies: replies.put(request, reply, replace=replace))

    async def release(self, claim: Claim, /) -> None:
        """Give up a claim without a reply."""
        await self._do(lambda replies: replies.release(claim))

    def renew(self, claims: Iterable[Claim], /) -> None:
        """Extend the leases of claims. It blocks; a thread calls it, so no event loop can stall it."""
        self._threads.submit(self._replies.renew, claims).result()

    async def aclose(self) -> None:
        """Finish pending writes, and close the replies. It blocks, since an event loop that ends waits for no thread."""
        self._threads.shutdown()
        if self._at_once is not None:
            self._at_once.close()
        self._replies.close()


def recorded_digests(lines: Iterable[RecordedReply]) -> RecordedDigests:
    """Return the hashed parts of requests, each with the name of its prompt."""
    return [(line.prompt.partition("@")[0], line.digests) for line in lines if line.digests]


class ImportCounts(NamedTuple):
    """The numbers of replies that were new, that were stored before, and that differ from the stored reply."""

    added: int
    unchanged: int
    conflicting: int


def add_replies(replies: Replies, lines: Iterable[RecordedReply], *, replace: bool) -> ImportCounts:
    """Store replies that were recorded elsewhere.

    Args:
        replies: Where they are stored.
        lines: The replies.
        replace: Whether to replace a stored reply to the same request that differs.
    """
    new = same = other = 0
    for line in lines:
        if line.reply is None:
            continue
        kept = replies.get(line.key)
        if kept == line.reply:
            same += 1
            continue
        new += kept is None
        other += kept is not None
        if kept is None or replace:
            replies.put(line, line.reply, line.recorded_at, replace=replace)
    return ImportCounts(new, same, other)

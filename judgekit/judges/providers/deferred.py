"""A client that is created when it is needed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from judgekit.judges.request import Client, Reply, Request
from judgekit.threads import run_in_thread


@dataclass
class DeferredClient:
    """A client that a thread creates before the first request, since packages and a TLS context take a second.

    A run whose replies are all cached does without it.
    """

    connect: Callable[[], Client]
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _client: Client | None = field(default=None, init=False, repr=False)

    async def open(self) -> Client:
        """Return the client; the first requests wait until there is one."""
        async with self._connecting:
            if self._client is None:
                self._client = await run_in_thread(self.connect)
            return self._client

    async def complete(self, request: Request, /) -> Reply:
        """Return the client's reply to a request."""
        return await (await self.open()).complete(request)

    async def aclose(self) -> None:
        """Close the client, if there is one."""
        if self._client is not None:
            await self._client.aclose()

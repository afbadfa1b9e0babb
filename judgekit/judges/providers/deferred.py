"""A client that is created when it is needed."""

import asyncio
from collections.abc import Callable

from judgekit.judges.request import Client, Reply, Request
from judgekit.threads import run_in_thread


class DeferredClient:
    """A client that a thread creates before the first request, since packages and a TLS context take a second.

    A run whose replies are all cached does without it.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._client: Client | None = None

    async def connected(self) -> Client:
        """Return the client, which is created on first use; concurrent callers wait for it."""
        async with self._connecting:
            if self._client is None:
                self._client = await run_in_thread(self._connect)
            return self._client

    async def complete(self, request: Request, /) -> Reply:
        """Return the client's reply to a request."""
        return await (self._client or await self.connected()).complete(request)

    async def aclose(self) -> None:
        """Close the client, if there is one."""
        if self._client is not None:
            await self._client.aclose()

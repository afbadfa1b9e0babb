"""The layer that holds back: at most so many requests at once."""

import asyncio
from dataclasses import dataclass, field

from judgekit.judges.client import Client, Reply, Request


@dataclass(frozen=True)
class RateLimit:
    """Lets ``concurrency`` requests through at once; the others wait their turn."""

    inner: Client
    concurrency: int
    _turns: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_turns", asyncio.Semaphore(self.concurrency))

    async def complete(self, request: Request, /) -> Reply:
        """The reply, when it was this request's turn."""
        async with self._turns:
            return await self.inner.complete(request)

    async def aclose(self) -> None:
        """Closes what is inside."""
        await self.inner.aclose()

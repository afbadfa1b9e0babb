"""The layer that refuses to send more than the user allows."""

from dataclasses import dataclass
from itertools import count

from judgekit.errors import BudgetError
from judgekit.judges.client import Client, Reply, Request


@dataclass(frozen=True)
class Budget:
    """Refuses what would pass ``max_requests``; ``None`` is no limit. What is under way may finish.

    ``sent`` counts, and is shared by all clients of a judge.
    """

    inner: Client
    max_requests: int | None
    sent: "count[int]"

    async def complete(self, request: Request, /) -> Reply:
        """The reply, if the request may still be sent."""
        if self.max_requests is not None and next(self.sent) >= self.max_requests:
            raise BudgetError(f"the judge's limit of {self.max_requests} requests (max_requests) is spent")
        return await self.inner.complete(request)

    async def aclose(self) -> None:
        """Closes what is inside."""
        await self.inner.aclose()

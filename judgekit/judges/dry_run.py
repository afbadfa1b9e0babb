"""The client of a dry run, which replaces all layers: it reports each request instead of sending it."""

from dataclasses import dataclass, field

from judgekit.errors import PlannedError
from judgekit.judges.cache.cache import cached_reply
from judgekit.judges.cache.store import ReplySource
from judgekit.judges.limits.budget_client import estimated_usage
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.price_list import ListPrice
from judgekit.judges.request import Reply, Request
from judgekit.score import JudgeCall, record_calls


@dataclass
class DryRunClient:
    """A client that answers from stored replies, and records any other request with its estimated usage.

    ``replies`` are those of the cache, or ``None`` if it is not read.
    """

    replies: ReplySource | None
    price: Price | None
    _planned: set[str] = field(default_factory=set[str], init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """Return the stored reply.

        Raises:
            PlannedError: The request would be sent.
        """
        if self.replies is not None and (kept := await cached_reply(self.replies, request)) is not None:
            return kept
        again = request.key in self._planned  # equal requests are sent once
        self._planned.add(request.key)
        usage = estimated_usage(request)
        cost = None if self.price is None else self.price.of(usage)
        error = PlannedError(f"{request.judge} would be asked")
        record_calls(
            JudgeCall(
                judge=request.judge,
                prompt=request.prompt,
                cached=again,
                usage=usage,
                cost_usd=cost,
                price_list=self.price.source if isinstance(self.price, ListPrice) else None,
                tier="flex" if request.tier == "flex" else None,
                error=type(error).__name__,
            )
        )
        raise error

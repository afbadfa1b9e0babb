"""The layer that refuses to spend more than the user allows."""

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import Field

from judgekit.errors import BudgetError
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.price import Price
from judgekit.score import JudgeCall, ledger
from judgekit.traces.message import Record, Usage

_LIKELY_OUTPUT = 500


class Limits(Record):
    """What a judge may spend at most. Cached replies cost nothing; a request that is under way may be asked again."""

    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)


def likely_usage(request: Request) -> Usage:
    """About how many tokens a request will take: its words, and its limit of output or else a few hundred."""
    return Usage(input_tokens=request.input_tokens, output_tokens=request.output_limit or _LIKELY_OUTPUT)


def likely_tokens(request: Request) -> int:
    """About how many tokens a request will take, in and out."""
    return _total(likely_usage(request))


def _total(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


class Share(NamedTuple):
    """What is set aside for a request."""

    tokens: int
    usd: float


@dataclass
class Spending:
    """What a judge spent, and what is set aside for its requests that are under way. Shared by all its clients."""

    limits: Limits
    price: Price | None
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def share(self, request: Request) -> Share:
        """What a request will likely take."""
        usage = likely_usage(request)
        usd = None if self.price is None else self.price.of(usage)
        return Share(_total(usage), usd or 0.0)

    def reserve(self, share: Share) -> str | None:
        """Sets aside what a request will likely take, or else says which limit it would pass."""
        with self._lock:
            if (passed := self._passed(share)) is None:
                self._add(share.tokens, share.usd, 1)
            return passed

    def settle(self, share: Share, calls: Iterable[JudgeCall]) -> None:
        """Puts what a request took in the place of what was set aside; that stands for what nobody knows."""
        with self._lock:
            self._add(share.tokens, share.usd, -1)
            for call in calls:
                if not call.is_request:
                    continue
                tokens, usd = call.tokens_paid, call.usd_paid
                self._add(share.tokens if tokens is None else tokens, share.usd if usd is None else usd, 1)

    def _passed(self, share: Share) -> str | None:
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return f"{limits.requests:,} requests (spent: {self.requests:,})"
        if limits.tokens is not None and self.tokens + share.tokens > limits.tokens:
            return f"{limits.tokens:,} tokens (spent: {self.tokens:,})"
        if limits.usd is not None and round(self.usd + share.usd, 12) > limits.usd:
            return f"${limits.usd:g} (spent: ${self.usd:g})"
        return None

    def _add(self, tokens: int, usd: float, times: int) -> None:
        self.requests += times
        self.tokens += times * tokens
        self.usd = round(self.usd + times * usd, 12)  # so that sums of cents are exact


@dataclass
class Budget:
    """Refuses a request that would likely pass a limit, before it is sent.

    More is set aside than most requests take, so one that does not fit waits for those under way, and is refused when
    there are none.
    """

    inner: Client
    spending: Spending
    _under_way: int = field(default=0, init=False)
    _line: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """The reply, if the request may be sent.

        Raises:
            BudgetError: It would pass a limit.
        """
        share = self.spending.share(request)
        async with self._line:  # whoever holds it is the first in line
            while (passed := self.spending.reserve(share)) is not None:
                if not self._under_way:
                    raise BudgetError(f"{request.judge}: one more request would pass the budget of {passed}")
                self._settled.clear()
                await self._settled.wait()
            self._under_way += 1
        with ledger() as calls:  # all that is sent for this request, failed attempts too
            try:
                return await self.inner.complete(request)
            finally:
                self.spending.settle(share, calls)
                self._under_way -= 1
                self._settled.set()

    async def aclose(self) -> None:
        """Closes what is inside."""
        await self.inner.aclose()

"""The layer that refuses to spend more than the user allows."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.errors import BudgetError
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.price import Price
from judgekit.judges.spending import LEASE, Amount, Limits, Refusal, Spending
from judgekit.score import JudgeCall, current_run, ledger
from judgekit.traces.message import Usage

FILE = "budgets.sqlite"
"""The file beside the cache that holds what runs and named budgets have spent."""
NAMED = "named "
"""How the names of named budgets begin in it."""
_LIKELY_OUTPUT = 500
_MOST_TOKENS = 10**12
"""More than any reply has. A limit in ``params`` may be any number, and the file holds 64 bits."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between looks at what other processes have left."""


def likely_usage(request: Request) -> Usage:
    """Return about how many tokens a request takes: those of its words, and the limit of ``params`` or else 500."""
    limit = _LIKELY_OUTPUT if request.max_output_tokens else request.output_limit or _LIKELY_OUTPUT
    return Usage(input_tokens=request.input_tokens, output_tokens=limit)


def likely_tokens(request: Request) -> int:
    """Return about how many tokens a request takes, in and out."""
    usage = likely_usage(request)
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def most_taken(request: Request, price: Price | None) -> Amount:
    """Return the most that a request may take, provided that the server keeps to its output limit."""
    sent, limit = request.most_input_tokens, min(request.output_limit or 0, _MOST_TOKENS)
    usage = Usage(input_tokens=sent, output_tokens=limit)
    cached = usage.model_copy(update={"cached_tokens": sent})  # which may cost more where the user says so
    usd = 0.0 if price is None else max(price.of(usage) or 0.0, price.of(cached) or 0.0)
    return Amount(1, sent + limit, usd)


def taken(share: Amount, calls: Iterable[JudgeCall]) -> Amount:
    """Return what judge calls took. What is not known is counted as it was reserved for each of them."""
    total = Amount()
    for call in calls:
        if call.is_request:
            tokens, usd = call.tokens_paid, call.usd_paid
            total = total.plus(Amount(1, share.tokens if tokens is None else tokens, share.usd if usd is None else usd))
    return total


@dataclass
class Budget:
    """Reserves the most that a request may take, and refuses a request that would pass a limit before it is sent.

    A request that does not fit waits for those under way, also of other processes, and is refused when there are none.
    One that follows a reply that was paid for and cannot be used goes before others, since without it there is no score.

    Args:
        inner: Sends each request once, and writes it into the ledger.
        limits: The limits.
        price: The price of tokens, if there is a limit in US dollars.
        judge: A name that judges of one run have in common if they share a budget.
        folder: Where the file is that runs and named budgets are kept in.
        own: What was spent outside of runs.
    """

    inner: Client
    limits: Limits
    price: Price | None
    judge: str
    folder: Path
    own: Spending
    _kept: Spending | None = field(default=None, init=False, repr=False)
    _thread: ThreadPoolExecutor = field(init=False, repr=False)
    _under_way: int = field(default=0, init=False)
    _renewal: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)
    _line: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _ahead: int = field(default=0, init=False)
    _nobody_ahead: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "judgekit-budget")  # of one thread, which keeps the order
        self._nobody_ahead.set()

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, if the request may be sent.

        Raises:
            BudgetError: It would pass a limit.
        """
        name, share = self._name(), most_taken(request, self.price)
        async with self._turn(request):
            pause = _FIRST_PAUSE
            while (refusal := await self._reserve(name, share)) is not None:
                if not (self._under_way or self._settled.is_set() or refusal.may_fit_later):
                    budget = "the budget" if self.limits.name is None else f"the budget {self.limits.name!r}"
                    found = f"{request.judge}: one more request would pass {budget} of {refusal.limit}"
                    own = request.max_output_tokens if self.limits.limit_tokens else None
                    lower = f", or lower max_output_tokens ({own:,}), which each request reserves" if own else ""
                    raise BudgetError(f"{found}: raise it to go on{lower}")
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._settled.wait()
                pause = min(2 * pause, _LONGEST_PAUSE)
                if not request.is_follow_up:
                    await self._nobody_ahead.wait()
            self._under_way += 1
        if self._renewal is None:
            self._renew_later()
        with ledger() as calls:
            try:
                return await self.inner.complete(request)
            finally:
                self._settle(name, share, calls)
                self._under_way -= 1
                self._settled.set()
                if not self._under_way:
                    self._rest()

    @asynccontextmanager
    async def _turn(self, request: Request) -> AsyncGenerator[None]:
        """Let requests reserve one by one, in the order in which they come, and those ahead of the line at any time."""
        if not request.is_follow_up:
            async with self._line:
                await self._nobody_ahead.wait()
                yield
            return
        self._ahead += 1
        self._nobody_ahead.clear()
        try:
            yield
        finally:
            self._ahead -= 1
            if not self._ahead:
                self._nobody_ahead.set()

    def _name(self) -> str | None:
        """Return the budget that counts here, as the file calls it, or ``None`` if it is the judge's own."""
        if self.limits.name is not None:
            return NAMED + self.limits.name
        return f"run {run} {self.judge}" if (run := current_run()) is not None else None

    def _spending(self, name: str | None) -> Spending:
        if name is None:
            return self.own
        if self._kept is None:
            self._kept = Spending(self.folder / FILE)
        return self._kept

    async def _reserve(self, name: str | None, share: Amount) -> Refusal | None:
        self._settled.clear()

        def reserve() -> Refusal | None:
            return self._spending(name).reserve(name or "", self.limits, share)

        job = self._thread.submit(reserve)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            self._thread.submit(self._take_back, job, name, share)
            raise

    def _take_back(self, job: "Future[Refusal | None]", name: str | None, share: Amount) -> None:
        if not job.cancelled() and job.exception() is None and job.result() is None:
            self._spending(name).settle(name or "", share, Amount())

    def _settle(self, name: str | None, share: Amount, calls: Iterable[JudgeCall]) -> None:
        # Nobody waits for it: the next reservation comes after it, and if it fails, the request stays charged in full.
        self._thread.submit(lambda: self._spending(name).settle(name or "", share, taken(share, calls)))

    def _renew_later(self) -> None:
        self._renewal = asyncio.get_running_loop().call_later(LEASE / 3, self._renew)

    def _renew(self) -> None:
        for spending in filter(None, (self.own, self._kept)):
            self._thread.submit(spending.renew)
        self._renew_later()

    def _rest(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None

    async def aclose(self) -> None:
        """Close the file, when all is settled, and what is inside."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._kept is not None:
            self._kept.close()
        await self.inner.aclose()

"""The layer that keeps spending within a budget."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from judgekit.errors import BudgetError
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.price import Price
from judgekit.judges.spending import RESERVATION_LEASE_SECONDS, Amount, BudgetRefusal, Limits, Spending
from judgekit.score import JudgeCall, current_run, ledger
from judgekit.traces.message import Usage

NAMED_BUDGET_PREFIX = "named "
"""The prefix of named budgets among the names in a store."""
_LIKELY_OUTPUT = 500
_MOST_TOKENS = 10**12
"""More tokens than any reply has. A limit in ``params`` may be any number, but the file stores 64 bits."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between checks of how much other processes have left."""


def estimated_usage(request: Request) -> Usage:
    """Return the estimated usage of a request: the tokens of its text, and the limit of ``params`` or else 500."""
    limit = _LIKELY_OUTPUT if request.max_output_tokens else request.output_limit or _LIKELY_OUTPUT
    return Usage(input_tokens=request.input_tokens, output_tokens=limit)


def estimated_tokens(request: Request) -> int:
    """Return the estimated number of input and output tokens of a request."""
    usage = estimated_usage(request)
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def max_amount(request: Request, price: Price | None) -> Amount:
    """Return the most that a request may take, provided that the server respects the output limit."""
    sent, limit = request.most_input_tokens, min(request.output_limit or 0, _MOST_TOKENS)
    usage = Usage(input_tokens=sent, output_tokens=limit)
    cached = usage.model_copy(update={"cached_tokens": sent})  # cached input may cost more, at a price set by the user
    usd = 0.0 if price is None else max(price.of(usage) or 0.0, price.of(cached) or 0.0)
    return Amount(1, sent + limit, usd)


def amount_spent(amount: Amount, calls: Iterable[JudgeCall]) -> Amount:
    """Return the amount that judge calls took. An unknown amount counts as the share that was reserved."""
    total = Amount()
    for call in calls:
        if call.is_request:
            tokens, usd = call.tokens_paid, call.usd_paid
            total = total.plus(
                Amount(1, amount.tokens if tokens is None else tokens, amount.usd if usd is None else usd)
            )
    return total


@dataclass
class Budget:
    """A layer that reserves the most that each request may take, and refuses requests that would exceed a limit.

    A request that does not fit waits for requests under way, including those of other processes, and is refused if
    there are none. A request that follows a paid but unusable reply goes first, since without it there is no score.

    Args:
        inner: Sends each request once, and records it in the ledger.
        limits: The limits.
        price: The price of tokens, if there is a limit in US dollars.
        judge: A name that is equal for judges that share a budget within a run.
        open_shared: Opens the spending of runs and of named budgets; the thread of the budget calls it.
        unnamed_spending: The spending outside of runs.
    """

    inner: Client
    limits: Limits
    price: Price | None
    judge: str
    open_shared: Callable[[], Spending]
    unnamed_spending: Spending
    _shared_spending: Spending | None = field(default=None, init=False, repr=False)
    _thread: ThreadPoolExecutor = field(init=False, repr=False)
    _in_flight: int = field(default=0, init=False)
    _renewal: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)
    _queue_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _urgent: int = field(default=0, init=False)
    _no_urgent: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "judgekit-budget")  # one thread, which keeps the order
        self._no_urgent.set()

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, if the budget allows the request.

        Raises:
            BudgetError: The request would exceed a limit.
        """
        name, share = self._name(), max_amount(request, self.price)
        async with self._turn(request):
            pause = _FIRST_PAUSE
            while (refusal := await self._reserve(name, share)) is not None:
                if not (self._in_flight or self._settled.is_set() or refusal.may_fit_later):
                    budget = "the budget" if self.limits.name is None else f"the budget {self.limits.name!r}"
                    found = f"{request.judge}: one more request would exceed {budget} of {refusal.limit}"
                    own = request.max_output_tokens if self.limits.limit_tokens else None
                    lower = f", or lower max_output_tokens ({own:,}), which each request reserves" if own else ""
                    raise BudgetError(f"{found}: raise it to continue{lower}")
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._settled.wait()
                pause = min(2 * pause, _LONGEST_PAUSE)
                if not request.is_follow_up:
                    await self._no_urgent.wait()
            self._in_flight += 1
        if self._renewal is None:
            self._renew_later()
        with ledger() as calls:
            try:
                return await self.inner.complete(request)
            finally:
                self._settle(name, share, calls)
                self._in_flight -= 1
                self._settled.set()
                if not self._in_flight:
                    self._rest()

    @asynccontextmanager
    async def _turn(self, request: Request) -> AsyncGenerator[None]:
        """Let requests reserve one by one, in order of arrival, and follow-up requests at any time."""
        if not request.is_follow_up:
            async with self._queue_lock:
                await self._no_urgent.wait()
                yield
            return
        self._urgent += 1
        self._no_urgent.clear()
        try:
            yield
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._no_urgent.set()

    def _name(self) -> str | None:
        """Return the name of the current budget in the file, or ``None`` for the judge's own budget."""
        if self.limits.name is not None:
            return NAMED_BUDGET_PREFIX + self.limits.name
        return f"run {run} {self.judge}" if (run := current_run()) is not None else None

    def _spending(self, name: str | None) -> Spending:
        if name is None:
            return self.unnamed_spending
        if self._shared_spending is None:
            self._shared_spending = self.open_shared()
        return self._shared_spending

    async def _reserve(self, name: str | None, share: Amount) -> BudgetRefusal | None:
        self._settled.clear()

        def reserve() -> BudgetRefusal | None:
            return self._spending(name).reserve(name or "", self.limits, share)

        job = self._thread.submit(reserve)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            self._thread.submit(self._release, job, name, share)
            raise

    def _release(self, job: "Future[BudgetRefusal | None]", name: str | None, share: Amount) -> None:
        if not job.cancelled() and job.exception() is None and job.result() is None:
            self._spending(name).settle(name or "", share, Amount())

    def _settle(self, name: str | None, share: Amount, calls: Iterable[JudgeCall]) -> None:
        # Nothing waits for this: the next reservation runs after it, and if it fails, the request is charged in full.
        self._thread.submit(lambda: self._spending(name).settle(name or "", share, amount_spent(share, calls)))

    def _renew_later(self) -> None:
        self._renewal = asyncio.get_running_loop().call_later(RESERVATION_LEASE_SECONDS / 3, self._renew)

    def _renew(self) -> None:
        for spending in filter(None, (self.unnamed_spending, self._shared_spending)):
            self._thread.submit(spending.renew)
        self._renew_later()

    def _rest(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None

    async def aclose(self) -> None:
        """Close the file once all is settled, and the inner client."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._shared_spending is not None:
            self._shared_spending.close()
        await self.inner.aclose()

"""The layer that keeps spending within a budget."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from judgekit.errors import BudgetError, StoreError
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.spending import RESERVATION_LEASE_SECONDS, BudgetRefusal, Spending
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Layer, Reply, Request
from judgekit.score import JudgeCall, current_run, ledger
from judgekit.threads import finish_in_thread
from judgekit.traces.message import Usage

NAMED_BUDGET_PREFIX = "named "
"""The prefix of named budgets among the names in a store."""
_LIKELY_OUTPUT = 500
_TYPED_OUTPUT = 10
"""Estimated tokens of the answer to a question to a decision model."""
_MOST_TOKENS = 10**12
"""More tokens than any reply has. A limit in ``params`` may be any number, but the file stores 64 bits."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between checks of how much other processes have left."""


def estimated_usage(request: Request) -> Usage:
    """Return the estimated usage of a request: the tokens of its text, and the limit of ``params`` or 500 an answer."""
    if request.typed_questions:
        return Usage(input_tokens=request.input_tokens, output_tokens=_TYPED_OUTPUT * len(request.typed_questions))
    likely = _LIKELY_OUTPUT * request.answers
    limit = likely if request.max_output_tokens else request.output_limit or likely
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
    written = usage.model_copy(update={"extra": {"cache_write_tokens": sent}})
    usd = 0.0 if price is None else max(price.of(most) or 0.0 for most in (usage, cached, written))
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
class BudgetClient:
    """A layer that reserves the most that each request may take, and refuses requests that would exceed a limit.

    A request that does not fit waits for requests under way, including those of other processes, and is refused if
    there are none; those behind it wait too. A request that follows a paid but unusable reply goes first, since without
    it there is no score.

    Args:
        inner: Sends each request once, and records it in the ledger.
        budget: The budget.
        price: The price of tokens, if there is a limit in US dollars.
        judge: A name that is equal for judges that share a budget within a run.
        open_shared: Opens the spending of runs and of named budgets; the thread of the budget calls it.
        unnamed_spending: The spending outside of runs.
    """

    inner: Layer
    budget: Budget
    price: Price | None
    judge: str
    open_shared: Callable[[], Spending]
    unnamed_spending: Spending
    _shared_spending: Spending | None = field(default=None, init=False, repr=False)
    _thread: ThreadPoolExecutor = field(init=False, repr=False)
    _line: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _follow_ups: int = field(default=0, init=False)
    _change: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _in_flight: int = field(default=0, init=False)
    _renewal: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "judgekit-budget")  # one thread, which keeps the order

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, if the budget allows the request.

        Raises:
            BudgetError: The request would exceed a limit.
        """
        name, share = self._name(), max_amount(request, self.price)
        await self._wait_for_room(request, name, share)
        with ledger() as calls:
            try:
                return await self.inner.complete(request)
            finally:
                self._settle(name, share, amount_spent(share, calls))

    def _name(self) -> str | None:
        """Return the name of the current budget in the file, or ``None`` for the judge's own budget."""
        if self.budget.name is not None:
            return NAMED_BUDGET_PREFIX + self.budget.name
        return f"run {run} {self.judge}" if (run := current_run.get()) is not None else None

    def _spending(self, name: str | None) -> Spending:
        if name is None:
            return self.unnamed_spending
        if self._shared_spending is None:
            self._shared_spending = self.open_shared()
        return self._shared_spending

    async def _wait_for_room(self, request: Request, name: str | None, share: Amount) -> None:
        """Reserve the share of a request as soon as it fits."""
        self._follow_ups += request.is_follow_up
        try:
            async with nullcontext() if request.is_follow_up else self._line:
                pause = _FIRST_PAUSE
                while True:
                    change = self._change
                    if request.is_follow_up or not self._follow_ups:
                        if (refusal := await self._reserve(name, share)) is None:
                            break
                        if not (refusal.may_fit_later or self._in_flight):
                            raise self._refusal(request, refusal.limit)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await change.wait()
                    pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self._follow_ups -= request.is_follow_up
            self._note_change()
        self._in_flight += 1
        if self._renewal is None:
            self._renew_later()

    async def _reserve(self, name: str | None, share: Amount) -> BudgetRefusal | None:
        outcome: list[BudgetRefusal | None] = []

        def reserve() -> None:
            outcome.append(self._spending(name).reserve(name or "", self.budget, share))

        try:
            await finish_in_thread(self._thread, reserve)
        except asyncio.CancelledError:
            with suppress(RuntimeError):  # the budget is closed
                self._thread.submit(self._release, outcome, name, share)
            raise
        return outcome[0]

    def _release(self, outcome: list[BudgetRefusal | None], name: str | None, share: Amount) -> None:
        """Return the share of a request that was canceled while it reserved."""
        if outcome == [None]:
            spending = self._spending(name)
            spending.settle(name or "", share, Amount())
            _flush(spending)

    def _refusal(self, request: Request, limit: str) -> BudgetError:
        budget = "the budget" if self.budget.name is None else f"the budget {self.budget.name!r}"
        problem = f"{request.judge}: one more request would exceed {budget} of {limit}"
        own = request.max_output_tokens
        lower = f", or lower max_output_tokens ({own:,}), which each request reserves" if own else ""
        return BudgetError(f"{problem}: raise it to continue{lower}")

    def _settle(self, name: str | None, share: Amount, used: Amount) -> None:
        """Settle a request, which is charged in full if that is never recorded."""
        self._in_flight -= 1
        spending = self._spending(name)
        spending.settle(name or "", share, used)
        if not self._in_flight:  # otherwise the next reservation or renewal records it
            with suppress(RuntimeError):  # the budget is closed
                self._thread.submit(_flush, spending)
        self._note_change()

    def _note_change(self) -> None:
        """Let requests that wait try again."""
        change, self._change = self._change, asyncio.Event()
        with suppress(RuntimeError):  # the loop is closed
            change.set()

    def _renew_later(self) -> None:
        self._renewal = asyncio.get_running_loop().call_later(RESERVATION_LEASE_SECONDS / 3, self._renew)

    def _renew(self) -> None:
        self._renewal = None
        if self._in_flight:
            if self._shared_spending is not None:
                with suppress(RuntimeError):  # the budget is closed
                    self._thread.submit(self._shared_spending.renew)
            self._renew_later()

    async def aclose(self) -> None:
        """Record what was settled, and close the file. Requests that wait fail."""
        closing = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        await asyncio.wrap_future(closing)
        if self._renewal is not None:
            self._renewal.cancel()
        self._note_change()

    def _close(self) -> None:
        if self._shared_spending is not None:
            self._shared_spending.close()


def _flush(spending: Spending) -> None:
    with suppress(StoreError):  # the next time records it too
        spending.flush()

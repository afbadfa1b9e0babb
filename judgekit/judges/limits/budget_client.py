"""The layer that keeps spending within a budget."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field

from judgekit.errors import BudgetError, StoreError
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.spending import RESERVATION_LEASE_SECONDS, BudgetRefusal, Spending
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Layer, Reply, Request
from judgekit.score import JudgeCall, current_run, ledger
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
_MOST_TOGETHER = 64
"""The most requests that reserve together. After a refusal, those behind it are sent again."""
_FLUSH_SECONDS = 0.05
"""Seconds within which settlements are recorded that no reservation takes along."""


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


@dataclass(eq=False)
class _Waiting:
    """A request in line."""

    request: Request
    name: str | None
    share: Amount
    done: asyncio.Future[None]
    is_reserved: bool = False


@dataclass
class BudgetClient:
    """A layer that reserves the most that each request may take, and refuses requests that would exceed a limit.

    Requests that wait at the same time reserve together, in one job of a thread, which also records what was settled
    since the last one: a reservation is an upper bound, so settlements may be late.

    A request that does not fit waits for requests under way, including those of other processes, and is refused if
    there are none. A request that follows a paid but unusable reply goes first, since without it there is no score.

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
    _is_closed: bool = field(default=False, init=False)
    _in_flight: int = field(default=0, init=False)
    _line: deque[_Waiting] = field(default_factory=deque[_Waiting], init=False, repr=False)
    _urgent: deque[_Waiting] = field(default_factory=deque[_Waiting], init=False, repr=False)
    _is_reserving: bool = field(default=False, init=False)
    _has_changed: bool = field(default=False, init=False)
    _retry: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _renewal: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)
    _flush: threading.Timer | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "judgekit-budget")  # one thread, which keeps the order

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, if the budget allows the request.

        Raises:
            BudgetError: The request would exceed a limit.
        """
        name, share = self._name(), max_amount(request, self.price)
        await self._reserve(request, name, share)
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

    async def _reserve(self, request: Request, name: str | None, share: Amount) -> None:
        waiting = _Waiting(request, name, share, asyncio.get_running_loop().create_future())
        if request.is_follow_up:
            self._urgent.append(waiting)
            self._retry_soon()
        else:
            self._line.append(waiting)
            if self._retry is None:  # else the first in line waits for room
                self._reserve_soon()
        try:
            await waiting.done
        except asyncio.CancelledError:
            if waiting.done.cancelled():
                with suppress(RuntimeError):  # the budget is closed
                    self._thread.submit(self._release, waiting)  # after its reservation, if that is under way
                self._retry_soon()
            elif waiting.done.exception() is None:
                self._settle(name, share, Amount())
            raise

    def _release(self, waiting: _Waiting) -> None:
        if waiting.is_reserved:
            self._record(waiting.name, waiting.share, Amount())

    def _retry_soon(self) -> None:
        self._has_changed = True
        self._reserve_soon()

    def _reserve_soon(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if not self._is_reserving:
            self._is_reserving = True
            asyncio.get_running_loop().call_soon(self._reserve_waiting)  # requests that come until then are included

    def _reserve_waiting(self) -> None:
        self._has_changed = False
        if batch := _first_in_line(self._urgent) or _first_in_line(self._line):
            try:
                self._thread.submit(self._reserve_together, batch)
            except RuntimeError as error:  # the budget is closed
                self._end_reserving(batch, 0, None, error)
        else:
            self._is_reserving = False

    def _reserve_together(self, batch: list[_Waiting]) -> None:
        name, shares = batch[0].name, [waiting.share for waiting in batch]
        number, refusal, error = 0, None, None
        try:
            number, refusal = self._spending(name).reserve(name or "", self.budget, shares)
        except Exception as failure:  # noqa: BLE001 - it is raised where requests wait
            error = failure
        for waiting in batch[:number]:
            waiting.is_reserved = True
        with suppress(RuntimeError):  # the loop is closed
            batch[0].done.get_loop().call_soon_threadsafe(self._end_reserving, batch, number, refusal, error)

    def _end_reserving(
        self, batch: list[_Waiting], number: int, refusal: BudgetRefusal | None, error: Exception | None
    ) -> None:
        """Send the first requests of a batch; the next one does not fit, or they failed."""
        self._is_reserving = False
        for waiting in batch[:number]:
            if not waiting.done.done():
                self._in_flight += 1
                waiting.done.set_result(None)
        if number and self._renewal is None:
            self._renew_later()
        others, waits = batch[number:], False
        if error is not None:
            while others:
                _fail(others.pop(), _copied(error))
        elif refusal is not None and not self._has_changed:  # else the next one may fit now
            waits = bool(self._in_flight or refusal.may_fit_later)
            if not waits:
                refused = others.pop(0)
                _fail(refused, self._refusal(refused.request, refusal.limit))
        line = self._urgent if batch[0].request.is_follow_up else self._line
        line.extendleft(reversed(others))
        if waits:
            self._retry = asyncio.get_running_loop().call_later(self._pause, self._reserve_soon)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self._pause = _FIRST_PAUSE
            self._reserve_soon()

    def _refusal(self, request: Request, limit: str) -> BudgetError:
        budget = "the budget" if self.budget.name is None else f"the budget {self.budget.name!r}"
        problem = f"{request.judge}: one more request would exceed {budget} of {limit}"
        own = request.max_output_tokens
        lower = f", or lower max_output_tokens ({own:,}), which each request reserves" if own else ""
        return BudgetError(f"{problem}: raise it to continue{lower}")

    def _settle(self, name: str | None, share: Amount, used: Amount) -> None:
        self._in_flight -= 1
        self._has_changed = True
        with suppress(RuntimeError):  # no thread can start, or the loop is closed
            self._record(name, share, used)
            if self._retry is not None:
                self._reserve_soon()

    def _record(self, name: str | None, share: Amount, used: Amount) -> None:
        """Settle a request, which is charged in full if that is never recorded."""
        self._spending(name).settle(name or "", share, used)
        if name is not None:
            self._flush_later(_FLUSH_SECONDS)

    def _flush_later(self, seconds: float, *, daemon: bool = False) -> None:
        if self._flush is None and not self._is_closed:
            self._flush = threading.Timer(seconds, self._flush_soon)  # the loop may not run any more by then
            self._flush.daemon = daemon
            self._flush.start()

    def _flush_soon(self) -> None:
        self._flush = None
        try:
            self._thread.submit(self._flush_now)
        except RuntimeError:
            if not self._is_closed:  # the interpreter exits
                self._flush_now()

    def _flush_now(self) -> None:
        try:
            if self._shared_spending is not None:
                self._shared_spending.flush()
        except StoreError:
            self._flush_later(_LONGEST_PAUSE, daemon=True)  # the process may exit before

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
        if self._is_closed:
            return
        self._is_closed = True
        closing = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        await asyncio.wrap_future(closing)
        if self._renewal is not None:
            self._renewal.cancel()
        if self._flush is not None:
            self._flush.cancel()
        self._reserve_soon()

    def _close(self) -> None:
        if self._shared_spending is not None:
            self._shared_spending.close()


def _first_in_line(line: deque[_Waiting]) -> list[_Waiting]:
    """Take the first requests of one budget out of a line, without those that were canceled."""
    batch: list[_Waiting] = []
    while line and len(batch) < _MOST_TOGETHER and (not batch or line[0].name == batch[0].name):
        waiting = line.popleft()
        if not waiting.done.done():
            batch.append(waiting)
    return batch


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)


def _copied(error: Exception) -> Exception:
    try:
        copied = copy(error)
    except Exception:  # noqa: BLE001 - some errors cannot be made from their arguments
        return error
    copied.__cause__ = error.__cause__
    return copied

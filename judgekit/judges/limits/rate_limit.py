"""The layer that limits the rate of requests, for all judges of an account together."""

import asyncio
import threading
from bisect import insort
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from judgekit.errors import (
    AuthenticationError,
    BudgetError,
    JudgeRejectedError,
    ModelError,
    OverloadError,
    QuotaError,
    RateLimitError,
    UnreachableError,
)
from judgekit.judges.limits.budget_client import estimated_tokens
from judgekit.judges.limits.concurrency import ConcurrencyLimit
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS
from judgekit.judges.request import Layer, Reply, Request
from judgekit.judges.retry import Circuit

if TYPE_CHECKING:
    from judgekit.judges.limits.redis_rates import RedisRates


class Limits(NamedTuple):
    """The limits that a judge sets on its account."""

    concurrency: int
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(eq=False)
class _Waiting:
    """A request in line; it looks again whether it may start when something has changed."""

    is_follow_up: bool
    loop: asyncio.AbstractEventLoop
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Account:
    """The requests of an account at once and per minute, of all its judges and event loops in this process.

    Follow-ups to paid but unusable replies go first, the others as they came. The strictest limits of the judges whose
    clients are open apply. If the rates are ``shared``, they are those of all machines. Any thread may use it.
    """

    shared: "RedisRates | None" = None
    _circuits: WeakKeyDictionary[asyncio.AbstractEventLoop, Circuit] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, Circuit], init=False, repr=False
    )
    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit, init=False)
    per_minute: tuple[int | None, int | None] = field(default=(None, None), init=False)
    """The limits on requests and on tokens."""
    _free_at: list[float] = field(default_factory=lambda: [0.0, 0.0], init=False)
    """The times at which the next request may start, and the next token be used."""
    _paused_until: float = field(default=0.0, init=False)
    _limits: list[Limits] = field(default_factory=list[Limits], init=False)
    _failures: dict[str, Exception] = field(default_factory=dict[str, Exception], init=False)
    _line: list[_Waiting] = field(default_factory=list[_Waiting], init=False, repr=False)
    # The garbage collector may close an abandoned request in any thread, even in one that holds the lock.
    _lock: "threading.RLock" = field(default_factory=threading.RLock, init=False, repr=False)

    def circuit(self) -> Circuit:
        """Return the circuit of the running event loop."""
        with self._lock:
            return self._circuits.setdefault(asyncio.get_running_loop(), Circuit())

    def add_limits(self, limits: Limits) -> None:
        """Apply the limits of another judge too."""
        with self._lock:
            self._limits.append(limits)
            self._apply_limits()

    def remove_limits(self, limits: Limits) -> None:
        """Stop applying the limits of a judge."""
        with self._lock:
            self._limits.remove(limits)
            if self._limits:
                self._apply_limits()
                self._wake()

    def _apply_limits(self) -> None:
        self.concurrency.maximum = min(limits.concurrency for limits in self._limits)
        requests, tokens = (filter(None, rates) for rates in list(zip(*self._limits, strict=True))[1:])
        self.per_minute = min(requests, default=None), min(tokens, default=None)

    async def acquire(self, judge: str, tokens: int, *, is_follow_up: bool = False) -> int:
        """Wait until another request may start.

        Args:
            judge: The judge of the request.
            tokens: The estimated number of tokens of the request.
            is_follow_up: Whether it follows a paid but unusable reply.

        Returns:
            The time of the start, for `finish`.

        Raises:
            JudgeError: The account turned away all waiting requests, or those for this judge.
        """
        waiting, slot = _Waiting(is_follow_up, asyncio.get_running_loop()), None
        with self._lock:
            insort(self._line, waiting, key=lambda other: not other.is_follow_up)
            failures = {name: self._failures.get(name) for name in ("", judge)}
        try:
            while True:
                waiting.changed.clear()
                for name, failure in failures.items():
                    if (new := self._failures.get(name)) is not None and new is not failure:
                        raise copy(new)
                wait = None
                with self._lock:
                    if self._first(waiting.loop) is waiting and self.concurrency.free:
                        wait = self._wait(slot)
                        if wait == 0 and (self.shared is None or slot is not None):
                            self._use(self._seconds(1, tokens), monotonic())
                            return self.concurrency.acquire()
                if wait is not None and self.shared is not None and slot is None:
                    slot = monotonic() + await self.shared.take(judge, self._seconds(1, tokens))
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await waiting.changed.wait()
        except BaseException:
            if slot is not None:
                self.adjust(-1, -tokens)
            raise
        finally:
            with self._lock:
                self._line.remove(waiting)
                self._wake()

    def _first(self, loop: asyncio.AbstractEventLoop) -> _Waiting | None:
        """Return the first request in line of an event loop, since another loop may be blocked."""
        return next((waiting for waiting in self._line if waiting.loop is loop), None)

    def _wait(self, slot: float | None) -> float:
        """Return the seconds until the next request may start, in its ``slot`` if all machines share the rates."""
        free = [at for at, limit in zip(self._free_at, self.per_minute, strict=True) if limit]
        return max(0.0, max(self._paused_until, *(free if slot is None else [slot]), 0.0) - monotonic())

    def _seconds(self, requests: int, tokens: int) -> list[float | None]:
        """Return the seconds that requests and tokens take; ``None`` without a limit."""
        pairs = zip((requests, tokens), self.per_minute, strict=True)
        return [None if limit is None else units * 60 / limit for units, limit in pairs]

    def _use(self, seconds: list[float | None], now: float = 0.0) -> None:
        self._free_at = [max(at, now) + (more or 0.0) for at, more in zip(self._free_at, seconds, strict=True)]

    def finish(self, sent: int, error: BaseException | None) -> None:
        """Count a request that ended, successfully or with an error."""
        with self._lock:
            self.concurrency.release()
            if error is None:
                self.concurrency.succeeded(sent)
            elif isinstance(error, RateLimitError):
                self.concurrency.rate_limited(sent)
            self._wake()

    def adjust(self, requests: int, tokens: int) -> None:
        """Use more requests and tokens than were counted, or less (negative)."""
        with self._lock:
            seconds = self._seconds(requests, tokens)
            if self.shared is not None:
                self.shared.adjust(seconds)
            else:
                self._use(seconds)

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, monotonic() + seconds)
        if self.shared is not None:
            self.shared.pause(seconds)

    def fail_waiting(self, failure: Exception, judge: str = "") -> None:
        """Fail all waiting requests with an error, or only those for one judge."""
        with self._lock:
            self._failures[judge] = failure
            self._wake()
        if self.shared is not None:
            self.shared.fail_waiting(failure, judge)

    def _wake(self) -> None:
        """Let the first request in line of each event loop look again whether it may start."""
        for loop in {waiting.loop for waiting in self._line}:
            if (first := self._first(loop)) is not None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(first.changed.set)


_accounts: dict[object, Account] = {}
"""The accounts of this process by name. They are never dropped, since a limit also holds for the next judge."""
_lock = threading.Lock()


def get_account(name: object, share: "Callable[[], RedisRates] | None" = None) -> Account:
    """Return the account with a name; ``share`` makes the rates that machines share. Any thread may call this."""
    with _lock:
        if name not in _accounts:
            _accounts[name] = Account(share and share())
        return _accounts[name]


def requests_in_flight() -> int:
    """Return the number of requests that are with providers now, for all accounts. Any thread may call this."""
    with _lock:
        return sum(account.concurrency.in_flight for account in _accounts.values())


@dataclass(frozen=True)
class RateLimit:
    """A layer that sends a request when the limits of its account allow it.

    If a key is rejected, or the server cannot be reached, all waiting requests fail; if a quota is spent, or a model is
    not found or rejects all requests, those for the same model fail.
    """

    inner: Layer
    account: Account

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, once it is the turn of this request."""
        account = self.account
        limits_tokens = account.per_minute[1] is not None
        expected = estimated_tokens(request) if limits_tokens else 0
        sent = await account.acquire(request.judge, expected, is_follow_up=request.is_follow_up)
        try:
            reply = await self.inner.complete(request)
        except BaseException as error:
            self._react(request, error, expected)
            account.finish(sent, error)
            raise
        usage = reply.usage
        if limits_tokens and usage and usage.input_tokens is not None and usage.output_tokens is not None:
            account.adjust(0, usage.input_tokens + usage.output_tokens - expected)
        account.finish(sent, None)
        return reply

    def _react(self, request: Request, error: BaseException, expected: int) -> None:
        account = self.account
        if isinstance(error, OverloadError):
            if error.retry_after is not None and error.retry_after <= MAX_RETRY_AFTER_SECONDS:
                account.pause(error.retry_after)
        elif isinstance(error, AuthenticationError):
            account.fail_waiting(error)
        elif isinstance(error, QuotaError | ModelError | JudgeRejectedError):
            account.fail_waiting(error, request.judge)
        elif isinstance(error, BudgetError):
            account.adjust(-1, -expected)
        elif isinstance(error, UnreachableError):
            account.adjust(-1, -expected)
            account.fail_waiting(error)

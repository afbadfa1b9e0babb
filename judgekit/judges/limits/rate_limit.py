"""The layer that limits the rate of requests, for all judges of an account together."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from judgekit.errors import AuthenticationError, OverloadError, QuotaError, RateLimitError, UnreachableError
from judgekit.judges.limits.budget_client import estimated_tokens
from judgekit.judges.limits.concurrency import ConcurrencyLimit
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS
from judgekit.judges.request import Layer, Reply, Request
from judgekit.judges.retry import Circuit

if TYPE_CHECKING:
    from judgekit.judges.limits.redis_rates import RedisRates


@dataclass
class Throttle:
    """A limit on units per minute, spread evenly."""

    per_minute: float
    free_at: float = 0.0
    """The time at which the next unit may be used."""

    def consume(self, units: float, now: float) -> None:
        """Use units, for whose share of the minute the next ones have to wait."""
        self.free_at = max(self.free_at, now) + units * 60 / self.per_minute

    def adjust(self, units: float) -> None:
        """Use more units, or return some (negative), once their number is known."""
        self.free_at += units * 60 / self.per_minute


@dataclass(eq=False)
class Account:
    """The limits of an account at a provider: requests at once, requests and tokens per minute, and its circuit.

    Requests at once are limited for this process. If the rates are ``shared``, they are those of all machines.
    """

    concurrency: ConcurrencyLimit
    shared: "RedisRates | None" = None
    requests: Throttle | None = None
    tokens: Throttle | None = None
    circuit: Circuit = field(default_factory=Circuit, init=False)
    _paused_until: float = field(default=0.0, init=False)
    _failures: dict[str, Exception] = field(default_factory=dict[str, Exception], init=False)
    _line: dict[object, int] = field(default_factory=dict[object, int], init=False, repr=False)
    _queue_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    changed: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def apply_limits(self, concurrency: int, requests_a_minute: int | None, tokens_a_minute: int | None) -> None:
        """Apply the limits of another judge too; the strictest hold."""
        self.concurrency.maximum = min(self.concurrency.maximum, concurrency)
        self.concurrency.limit = min(self.concurrency.limit, float(concurrency))
        if self.shared is not None:
            self.shared.apply_limits(requests_a_minute, tokens_a_minute)
            return
        if requests_a_minute is not None:
            self.requests = _lower_limit(self.requests, requests_a_minute)
        if tokens_a_minute is not None:
            self.tokens = _lower_limit(self.tokens, tokens_a_minute)

    async def acquire(self, judge: str, tokens: int) -> int:
        """Wait until another request may start; first come, first served.

        Args:
            judge: The judge of the request.
            tokens: The estimated number of tokens of the request.

        Returns:
            The time of the start, for the `ConcurrencyLimit` of the account.

        Raises:
            JudgeError: The account turned away all waiting requests, or those for this judge.
        """
        turn, names = object(), ("", judge)
        self._line[turn] = tokens
        failures = [self._failures.get(name) for name in names]
        try:
            async with self._queue_lock:  # its holder is the first in line
                while failures == [*map(self._failures.get, names)] and (wait := await self._wait(judge)) != 0:
                    self.changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self.changed.wait()
                for name, failure in zip(names, failures, strict=True):
                    if (new := self._failures.get(name)) is not None and new is not failure:
                        raise copy(new)
                for throttle, units in ((self.requests, 1), (self.tokens, tokens)):
                    if throttle is not None:
                        throttle.consume(units, asyncio.get_running_loop().time())
                return self.concurrency.acquire()
        finally:
            del self._line[turn]

    async def _wait(self, judge: str) -> float | None:
        """Return the seconds until the first in line may start; ``None`` if that is unknown."""
        if not self.concurrency.free:
            return None
        free_at = [self._paused_until, *(limit.free_at for limit in (self.requests, self.tokens) if limit is not None)]
        wait = max(0.0, max(free_at) - asyncio.get_running_loop().time())
        if self.shared is None or wait:
            return wait
        return await self.shared.take(judge, [*islice(self._line.values(), self.concurrency.free)])

    def refund(self, tokens: int) -> None:
        """Return the units of a request that never reached the server."""
        self._adjust(-1, -tokens)

    def correct(self, tokens: int) -> None:
        """Use more tokens for a request than were estimated, or less (negative)."""
        self._adjust(0, tokens)

    def _adjust(self, requests: int, tokens: int) -> None:
        if self.shared is not None:
            self.shared.adjust(requests, tokens)
        for throttle, units in ((self.requests, requests), (self.tokens, tokens)):
            if throttle is not None:
                throttle.adjust(units)

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)
        if self.shared is not None:
            self.shared.pause(seconds)

    def fail_waiting(self, failure: Exception, judge: str = "") -> None:
        """Fail all waiting requests with an error, or only those for one judge."""
        self._failures[judge] = failure
        if self.shared is not None:
            self.shared.fail_waiting(failure, judge)
        self.changed.set()


def _lower_limit(throttle: Throttle | None, a_minute: int) -> Throttle:
    if throttle is None:
        return Throttle(a_minute)
    return Throttle(min(throttle.per_minute, a_minute), throttle.free_at)


# Judges share accounts by name, separately in each event loop. An account is dropped with the last of its judges.
_accounts: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[object, Account]] = WeakKeyDictionary()
_lock = threading.Lock()


def get_account(name: object, concurrency: int, share: "Callable[[], RedisRates] | None" = None) -> Account:
    """Return the account with a name in the running event loop; ``share`` makes the rates that machines share."""
    with _lock:
        accounts = _accounts.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        if (account := accounts.get(name)) is None:
            account = accounts[name] = Account(ConcurrencyLimit(concurrency), share and share())
        return account


def requests_in_flight() -> int:
    """Return the number of requests that are with providers now, for all accounts. Any thread may call this."""
    with _lock:
        return sum(account.concurrency.in_flight for accounts in _accounts.values() for account in accounts.values())


@dataclass(frozen=True)
class RateLimit:
    """A layer that sends a request when the limits of its account allow it.

    If a key is rejected, or the server cannot be reached, all waiting requests fail; if a quota is spent, those for the
    same model fail, since other models may have quotas of their own.
    """

    inner: Layer
    account: Account

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, once it is the turn of this request."""
        account = self.account
        limits_tokens = account.tokens is not None if account.shared is None else account.shared.limits_tokens
        expected = estimated_tokens(request) if limits_tokens else 0
        sent = await account.acquire(request.judge, expected)
        try:
            reply = await self.inner.complete(request)
        except OverloadError as error:
            if error.retry_after is not None and error.retry_after <= MAX_RETRY_AFTER_SECONDS:
                account.pause(error.retry_after)
            if isinstance(error, RateLimitError):
                account.concurrency.rate_limited(sent)
            raise
        except AuthenticationError as error:
            account.fail_waiting(error)
            raise
        except QuotaError as error:
            account.fail_waiting(error, request.judge)
            raise
        except UnreachableError as error:
            account.refund(expected)
            account.fail_waiting(error)
            raise
        finally:
            account.concurrency.release()
            account.changed.set()
        account.concurrency.succeeded(sent)
        usage = reply.usage
        if limits_tokens and usage and usage.input_tokens is not None and usage.output_tokens is not None:
            account.correct(usage.input_tokens + usage.output_tokens - expected)
        return reply

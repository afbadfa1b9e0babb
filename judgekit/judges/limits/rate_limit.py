"""The layer that limits the rate of requests, for all judges of an account together."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

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


@dataclass
class Throttle:
    """A limit on units per minute, spread evenly; ``None`` is no limit."""

    per_minute: int | None = None
    free_at: float = 0.0
    """The time at which the next unit may be used."""

    def consume(self, units: float, now: float) -> None:
        """Use units, for whose share of the minute the next ones have to wait."""
        if self.per_minute is not None:
            self.free_at = max(self.free_at, now)
            self.adjust(units)

    def adjust(self, units: float) -> None:
        """Use more units, or return some (negative), once their number is known."""
        if self.per_minute is not None:
            self.free_at += units * 60 / self.per_minute


class Limits(NamedTuple):
    """The limits that a judge sets on its account."""

    concurrency: int
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(eq=False)
class _Waiting:
    """A request in line, with its estimated tokens; it looks again whether it may start when something has changed."""

    tokens: int
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Queue:
    """The requests of an account that wait in one event loop: follow-ups first, then as they came.

    If the rates are ``shared``, they are those of all machines.
    """

    account: "Account"
    shared: "RedisRates | None" = None
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    circuit: Circuit = field(default_factory=Circuit, init=False)
    _failures: dict[str, Exception] = field(default_factory=dict[str, Exception], init=False)
    _follow_ups: deque[_Waiting] = field(default_factory=deque[_Waiting], init=False, repr=False)
    _line: deque[_Waiting] = field(default_factory=deque[_Waiting], init=False, repr=False)

    def __post_init__(self) -> None:
        self.account.queues.add(self)

    @property
    def limits_tokens(self) -> bool:
        """Whether there is a limit on tokens."""
        return self.account.tokens.per_minute is not None if self.shared is None else self.shared.limits_tokens

    async def acquire(self, judge: str, tokens: int, *, is_follow_up: bool = False) -> int:
        """Wait until another request may start.

        Args:
            judge: The judge of the request.
            tokens: The estimated number of tokens of the request.
            is_follow_up: Whether it follows a paid but unusable reply.

        Returns:
            The time of the start, for `Account.finish`.

        Raises:
            JudgeError: The account turned away all waiting requests, or those for this judge.
        """
        waiting, names, is_due = _Waiting(tokens), ("", judge), self.shared is None
        self.loop = asyncio.get_running_loop()
        line = self._follow_ups if is_follow_up else self._line
        line.append(waiting)
        failures = [self._failures.get(name) for name in names]
        try:
            while True:
                waiting.changed.clear()
                for name, failure in zip(names, failures, strict=True):
                    if (new := self._failures.get(name)) is not None and new is not failure:
                        raise copy(new)
                wait = None
                if self._first() is waiting:
                    if is_due and (sent := self.account.start(tokens)) is not None:
                        return sent
                    wait = self.account.wait()
                    if wait == 0 and not is_due and self.shared is not None:
                        free = max(1, self.account.concurrency.free)  # another thread may just have taken the last
                        ahead = islice(chain(self._follow_ups, self._line), free)
                        wait = await self.shared.take(judge, [other.tokens for other in ahead])
                        is_due = wait == 0
                if wait != 0:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await waiting.changed.wait()
        finally:
            line.remove(waiting)
            self.wake_first()

    def _first(self) -> _Waiting | None:
        return next(chain(self._follow_ups, self._line), None)

    def wake_first(self) -> None:
        """Let the first in line look again whether it may start."""
        if (first := self._first()) is not None:
            first.changed.set()

    def adjust(self, requests: int, tokens: int) -> None:
        """Use more requests and tokens than were counted, or less (negative)."""
        self.account.adjust(requests, tokens)
        if self.shared is not None:
            self.shared.adjust(requests, tokens)

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds."""
        self.account.pause(seconds)
        if self.shared is not None:
            self.shared.pause(seconds)

    def fail_waiting(self, failure: Exception, judge: str = "") -> None:
        """Fail all waiting requests with an error, or only those for one judge."""
        self._failures[judge] = failure
        if self.shared is not None:
            self.shared.fail_waiting(failure, judge)
        self.wake()

    def wake(self) -> None:
        """Do as `wake_first`, soon. Any thread may call this."""
        # Whoever joins the line later looks at the account after joining, so it misses nothing.
        if self.loop is not None and (self._follow_ups or self._line):
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self.wake_first)


@dataclass(eq=False)
class Account:
    """The requests of an account at once and per minute, of all its judges and event loops in this process.

    The strictest limits of the judges whose clients are open apply. Any thread may use it.
    """

    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit, init=False)
    requests: Throttle = field(default_factory=Throttle, init=False)
    tokens: Throttle = field(default_factory=Throttle, init=False)
    queues: WeakSet[Queue] = field(default_factory=WeakSet[Queue], init=False, repr=False)
    _paused_until: float = field(default=0.0, init=False)
    _limits: list[Limits] = field(default_factory=list[Limits], init=False)
    # The garbage collector may close an abandoned request in any thread, even in one that holds the lock.
    _lock: "threading.RLock" = field(default_factory=threading.RLock, init=False, repr=False)

    def queue(self, share: "Callable[[], RedisRates] | None" = None) -> Queue:
        """Return the queue of the running event loop; ``share`` makes the rates that machines share."""
        loop = asyncio.get_running_loop()
        with self._lock:
            queue = next((queue for queue in self.queues if queue.loop is loop), None)
            return queue or Queue(self, share and share(), loop)

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
        self.requests.per_minute, self.tokens.per_minute = min(requests, default=None), min(tokens, default=None)

    def wait(self) -> float | None:
        """Return the seconds until another request may start; ``None`` if that is unknown."""
        with self._lock:
            if not self.concurrency.free:
                return None
            throttled = [throttle.free_at for throttle in (self.requests, self.tokens) if throttle.per_minute]
            return max(0.0, max(self._paused_until, *throttled, 0.0) - monotonic())

    def start(self, tokens: int) -> int | None:
        """Count a request that starts now, and return its time for `finish`; ``None`` if it has to wait."""
        with self._lock:
            if self.wait() != 0:
                return None
            self.requests.consume(1, monotonic())
            self.tokens.consume(tokens, monotonic())
            return self.concurrency.acquire()

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
            self.requests.adjust(requests)
            self.tokens.adjust(tokens)

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, monotonic() + seconds)

    def _wake(self) -> None:
        for queue in self.queues:
            queue.wake()


_accounts: dict[object, Account] = {}
"""The accounts of this process by name. They are never dropped, since a limit also holds for the next judge."""
_lock = threading.Lock()


def get_account(name: object) -> Account:
    """Return the account with a name. Any thread may call this."""
    with _lock:
        return _accounts.setdefault(name, Account())


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
    queue: Queue

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply, once it is the turn of this request."""
        queue, problem = self.queue, None
        limits_tokens = queue.limits_tokens
        expected = estimated_tokens(request) if limits_tokens else 0
        sent = await queue.acquire(request.judge, expected, is_follow_up=request.is_follow_up)
        try:
            reply = await self.inner.complete(request)
            usage = reply.usage
            if limits_tokens and usage and usage.input_tokens is not None and usage.output_tokens is not None:
                queue.adjust(0, usage.input_tokens + usage.output_tokens - expected)
        except BaseException as error:
            problem = error
            self._react(request, error, expected)
            raise
        else:
            return reply
        finally:
            queue.account.finish(sent, problem)
            queue.wake_first()

    def _react(self, request: Request, error: BaseException, expected: int) -> None:
        queue = self.queue
        if isinstance(error, OverloadError):
            if error.retry_after is not None and error.retry_after <= MAX_RETRY_AFTER_SECONDS:
                queue.pause(error.retry_after)
        elif isinstance(error, AuthenticationError):
            queue.fail_waiting(error)
        elif isinstance(error, QuotaError | ModelError | JudgeRejectedError):
            queue.fail_waiting(error, request.judge)
        elif isinstance(error, BudgetError):
            queue.adjust(-1, -expected)
        elif isinstance(error, UnreachableError):
            queue.adjust(-1, -expected)
            queue.fail_waiting(error)

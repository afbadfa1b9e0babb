"""The layer that holds back, for all judges of an account together."""

import asyncio
import threading
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakValueDictionary

from judgekit.errors import AuthenticationError, OverloadError, QuotaError, RateLimitError, UnreachableError
from judgekit.judges.breaker import Circuit
from judgekit.judges.budget import likely_tokens
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.completion import LONGEST_WAIT
from judgekit.judges.concurrency import Concurrency


@dataclass
class Pace:
    """Lets so many units a minute through, evenly."""

    a_minute: float
    free_at: float = 0.0
    """When the next unit may be used."""

    def take(self, units: float, now: float) -> None:
        """Uses units; what comes next has to wait until they have had their time."""
        self.free_at = max(self.free_at, now) + units * 60 / self.a_minute

    def correct(self, units: float) -> None:
        """Takes more, or gives back, once it is known how many it were."""
        self.free_at += units * 60 / self.a_minute


@dataclass(eq=False)
class Account:
    """The limits of an account at a provider: requests at once, requests and tokens in a minute, and its circuit."""

    concurrency: Concurrency
    requests: Pace | None = None
    tokens: Pace | None = None
    circuit: Circuit = field(default_factory=Circuit, init=False)
    _paused_until: float = field(default=0.0, init=False)
    _failures: dict[str, Exception] = field(default_factory=dict[str, Exception], init=False)
    _line: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def bears(self, concurrency: int, requests_a_minute: int | None, tokens_a_minute: int | None) -> None:
        """Takes another judge's limits into account: the strictest hold."""
        self.concurrency.most = min(self.concurrency.most, concurrency)
        self.concurrency.limit = min(self.concurrency.limit, float(concurrency))
        self.requests = _slower(self.requests, requests_a_minute)
        self.tokens = _slower(self.tokens, tokens_a_minute)

    async def enter(self, judge: str, tokens: int) -> int:
        """Waits until one request more may go; first come, first served.

        Args:
            judge: Who is asked.
            tokens: About how many tokens it takes.

        Returns:
            What its `Concurrency` wants to know of when that was.

        Raises:
            JudgeError: The account turned away all that waited, or those that waited for this judge.
        """
        before = self._failures_of(judge)
        async with self._line:  # whoever holds it is the first in line
            while self._failures_of(judge) == before and (wait := self._wait()) != 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
            for failure in self._failures_of(judge) - before:
                raise copy(failure)
            for pace, units in ((self.requests, 1), (self.tokens, tokens)):
                if pace is not None:
                    pace.take(units, _now())
            return self.concurrency.enter()

    def _failures_of(self, judge: str) -> set[Exception]:
        return {failure for name in ("", judge) if (failure := self._failures.get(name)) is not None}

    def _wait(self) -> float | None:
        """Seconds until the first in line may go; ``None`` if nobody knows."""
        if self.concurrency.is_full:
            return None
        free_at = [self._paused_until, *(pace.free_at for pace in (self.requests, self.tokens) if pace is not None)]
        return max(0.0, max(free_at) - _now())

    def leave(self) -> None:
        """Makes room after a request, however it ended."""
        self.concurrency.leave()
        self._changed.set()

    def give_back(self, tokens: int) -> None:
        """Takes a request that never reached the server off what was used of the minute."""
        for pace, units in ((self.requests, 1), (self.tokens, tokens)):
            if pace is not None:
                pace.correct(-units)

    def pause(self, seconds: float) -> None:
        """Lets nothing go for a while."""
        self._paused_until = max(self._paused_until, _now() + seconds)

    def turn_away(self, failure: Exception, judge: str = "") -> None:
        """Give all that wait an error instead, or those alone that wait for one judge."""
        self._failures[judge] = failure
        self._changed.set()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _slower(pace: Pace | None, a_minute: int | None) -> Pace | None:
    if pace is None or a_minute is None:
        return pace if a_minute is None else Pace(a_minute)
    return Pace(min(pace.a_minute, a_minute), pace.free_at)


# Judges of one account find each other here, in each event loop apart; it is gone with the last of them.
_accounts: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[object, Account]] = WeakKeyDictionary()
_lock = threading.Lock()


def account_named(name: object, concurrency: int) -> Account:
    """The account of this name in the running event loop."""
    with _lock:
        accounts = _accounts.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        if (known := accounts.get(name)) is None:
            known = accounts[name] = Account(Concurrency(concurrency))
        return known


def requests_under_way() -> int:
    """How many requests are with providers now, of all accounts. Any thread may ask."""
    with _lock:
        return sum(account.concurrency.under_way for accounts in _accounts.values() for account in accounts.values())


@dataclass(frozen=True)
class RateLimit:
    """Sends a request when the account can bear it.

    A key that fails, or a server that cannot be reached, turns away all that wait; a quota that is spent, all that wait for
    the same model, since others may have quotas of their own.
    """

    inner: Client
    account: Account

    async def complete(self, request: Request, /) -> Reply:
        """The reply, when it was this request's turn."""
        account = self.account
        expected = 0 if account.tokens is None else likely_tokens(request)
        sent = await account.enter(request.judge, expected)
        try:
            reply = await self.inner.complete(request)
        except OverloadError as error:
            if error.retry_after is not None and error.retry_after <= LONGEST_WAIT:
                account.pause(error.retry_after)
            if isinstance(error, RateLimitError):
                account.concurrency.limited(sent)
            raise
        except AuthenticationError as error:
            account.turn_away(error)
            raise
        except QuotaError as error:
            account.turn_away(error, request.judge)
            raise
        except UnreachableError as error:
            account.give_back(expected)
            account.turn_away(error)
            raise
        finally:
            account.leave()
        account.concurrency.succeeded(sent)
        usage = reply.usage
        if account.tokens and usage and usage.input_tokens is not None and usage.output_tokens is not None:
            account.tokens.correct(usage.input_tokens + usage.output_tokens - expected)
        return reply

    async def aclose(self) -> None:
        """Closes what is inside."""
        await self.inner.aclose()

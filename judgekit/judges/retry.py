"""The layer that retries requests where that can help, and stops when a server is down or a quota is spent."""

import asyncio
import random
from copy import copy
from dataclasses import dataclass, replace

from judgekit.errors import (
    BudgetError,
    FlexUnavailableError,
    JudgeDownError,
    JudgeError,
    JudgeRejectedError,
    LostError,
    OverloadError,
    QuotaError,
    RateLimitError,
    TruncatedError,
    UnreachableError,
)
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS
from judgekit.judges.request import Layer, Reply, Request
from judgekit.score import known_outages

_RATE_LIMITED_ATTEMPTS = 10
_FIRST_WAIT = 0.5
"""Seconds until the second attempt to connect. Each later wait is twice as long."""


@dataclass(eq=False)
class Circuit:
    """The state of the connection to a server, shared by all judges of an account.

    Attributes:
        answers: The number of attempts that the server answered, errors included.
        probe: Done when the request that tries to reconnect is. The result is the error if the server is down.
    """

    answers: int = 0
    probe: asyncio.Future[JudgeDownError | None] | None = None


@dataclass(frozen=True)
class Retry:
    """A layer that attempts a request up to ``attempts`` times while its provider is overloaded or cannot be reached.

    The waits are random, grow each time, and are never shorter than the provider asks for. Rate limit errors are
    retried up to ten times, since many requests may share the limit, unless ``attempts`` is 1. A truncated reply is
    requested once more, with twice the output limit. Where the flex tier has no capacity, the request is sent at the full
    price.

    When a request cannot connect, it alone tries to reconnect, while the others wait for the outcome. If the server
    answers no request in that time, not even on an open connection, it is down: the waiting requests and all later ones
    of this run fail (see `judgekit.score.outage_memory`). So do all later requests of this run to a judge whose quota
    is spent, or that rejects every request; other models of the account may have quotas of their own.
    """

    inner: Layer
    circuit: Circuit
    attempts: int

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the first successful attempt.

        Raises:
            JudgeDownError: The server is down.
            QuotaError: The quota is spent.
        """
        try:
            return await self._attempt(request)
        except TruncatedError:
            roomier = request.with_doubled_limit()
            if roomier is None:
                raise
        return await self._attempt(roomier)

    async def _attempt(self, request: Request) -> Reply:
        attempts = 0
        while True:
            await self._wait_until_up(request)
            attempts, answers, wait = attempts + 1, self.circuit.answers, 0.0
            try:
                return await self._send(request)
            except JudgeDownError:
                raise
            except UnreachableError as error:
                if self.circuit.probe is None:
                    if (reply := await self._reconnect(request, error, answers)) is not None:
                        return reply
                    wait = _wait(attempts)
                if attempts >= self.attempts:
                    await self._wait_until_up(request)
                    raise
            except OverloadError as error:
                if isinstance(error, FlexUnavailableError) and request.tier == "flex":
                    request, attempts = replace(request, tier="full"), 0
                    continue
                is_patient = isinstance(error, RateLimitError) and self.attempts > 1
                limit = max(self.attempts, _RATE_LIMITED_ATTEMPTS) if is_patient else self.attempts
                named = error.retry_after or 0.0
                if attempts >= limit or named > MAX_RETRY_AFTER_SECONDS:
                    raise
                wait = _wait(attempts, named)
            await asyncio.sleep(wait)

    async def _wait_until_up(self, request: Request) -> None:
        while (probe := self.circuit.probe) is not None:
            await asyncio.wait((probe,))
            if (down := probe.result()) is not None:
                raise copy(down)
        outages = known_outages()
        for outage in (self.circuit, (self.circuit, request.judge)):
            if outage in outages:
                raise copy(outages[outage])

    async def _reconnect(self, request: Request, error: UnreachableError, answers: int) -> Reply | None:
        """Return the reply once the server can be reached; ``None`` if meanwhile it only answers other requests."""
        loop = asyncio.get_running_loop()
        probe = self.circuit.probe = loop.create_future()
        down, started, wait = None, loop.time(), _FIRST_WAIT
        try:
            for _ in range(self.attempts - 1):
                await asyncio.sleep(wait)
                wait = min(2 * wait, MAX_RETRY_AFTER_SECONDS)
                try:
                    return await self._send(request)
                except UnreachableError as again:
                    error = again
            if self.circuit.answers > answers:
                return None
            tried = "once" if self.attempts == 1 else f"{self.attempts} times in {loop.time() - started:.1f} s"
            down = JudgeDownError(f"the judge is down: start its server, or check its base_url. {error}; tried {tried}")
            known_outages()[self.circuit] = copy(down)
            raise down from error
        finally:
            self.circuit.probe = None
            probe.set_result(down)

    async def _send(self, request: Request) -> Reply:
        try:
            reply = await self.inner.complete(request)
        except (UnreachableError, LostError, BudgetError):  # the server has not answered
            raise
        except JudgeError as error:
            self.circuit.answers += 1
            if isinstance(error, QuotaError | JudgeRejectedError):
                known_outages()[self.circuit, request.judge] = copy(error)
            raise
        self.circuit.answers += 1
        return reply


def _backoff(attempt: int) -> float:
    return random.uniform(0, min(0.5 * 2 ** min(attempt - 1, 8), MAX_RETRY_AFTER_SECONDS))  # noqa: S311 - no secret


def _wait(attempt: int, named: float = 0.0) -> float:
    """Return the seconds to wait after an attempt, at least those that the provider names."""
    return max(_backoff(attempt), named * random.uniform(1, 1.1))  # noqa: S311 - so that not all retry at once

"""The circuit breaker: the layer that stops sending requests to a server that is down or once a quota is spent."""

import asyncio
from copy import copy
from dataclasses import dataclass

from judgekit.errors import JudgeDownError, JudgeError, LostError, QuotaError, UnreachableError
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS
from judgekit.judges.request import Client, Reply, Request
from judgekit.score import known_outages

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
class CircuitBreaker:
    """A layer that sends requests as long as the server can be reached.

    When a request cannot connect, it alone retries, up to ``attempts`` in all, while the others wait for the result. If
    the server answers no request in that time, not even on an open connection, it is down: the waiting requests and all
    later ones of this run fail (see `judgekit.score.outage_memory`). So do all later requests of this run to a
    judge whose quota is spent; other models of the account may have quotas of their own.
    """

    inner: Client
    circuit: Circuit
    attempts: int

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply.

        Raises:
            JudgeDownError: The server is down.
            QuotaError: The quota is spent.
        """
        attempts = 0
        while True:
            await self._must_be_up()
            if (spent := known_outages().get((self.circuit, request.judge))) is not None:
                raise copy(spent)
            attempts, answers = attempts + 1, self.circuit.answers
            try:
                return await self._send(request)
            except UnreachableError as error:
                if self.circuit.probe is None:
                    return await self._reconnect(request, error, answers)
                if attempts == self.attempts:
                    await self._must_be_up()
                    raise

    async def _must_be_up(self) -> None:
        while (probe := self.circuit.probe) is not None:
            await asyncio.wait((probe,))
            if (found := probe.result()) is not None:
                raise copy(found)
        if (known := known_outages().get(self.circuit)) is not None:
            raise copy(known)

    async def _reconnect(self, request: Request, error: UnreachableError, answers: int) -> Reply:
        loop = asyncio.get_running_loop()
        probe = self.circuit.probe = loop.create_future()
        found, started, wait = None, loop.time(), _FIRST_WAIT
        try:
            for _ in range(self.attempts - 1):
                await asyncio.sleep(wait)
                wait = min(2 * wait, MAX_RETRY_AFTER_SECONDS)
                try:
                    return await self._send(request)
                except UnreachableError as again:
                    error = again
            if self.circuit.answers > answers:
                raise error
            tried = "once" if self.attempts == 1 else f"{self.attempts} times in {loop.time() - started:.1f} s"
            found = JudgeDownError(
                f"{error}; tried {tried}. The judge is down: start its server, or check its base_url"
            )
            known_outages()[self.circuit] = copy(found)
            raise found from error
        finally:
            self.circuit.probe = None
            probe.set_result(found)

    async def _send(self, request: Request) -> Reply:
        try:
            reply = await self.inner.complete(request)
        except (UnreachableError, LostError):
            raise
        except JudgeError as error:
            self.circuit.answers += 1
            if isinstance(error, QuotaError):
                known_outages()[self.circuit, request.judge] = copy(error)
            raise
        self.circuit.answers += 1
        return reply

    async def aclose(self) -> None:
        """Close the inner client."""
        await self.inner.aclose()

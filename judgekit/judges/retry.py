"""The layer that retries requests where that can help: a limited number of times, with exponential back-off."""

import random
from dataclasses import dataclass

import tenacity

from judgekit.errors import JudgeDownError, OverloadError, RateLimitError, TruncatedError, UnreachableError
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS
from judgekit.judges.request import Client, Reply, Request

_RATE_LIMITED_ATTEMPTS = 10
_backoff = tenacity.wait_random_exponential(multiplier=0.5, max=MAX_RETRY_AFTER_SECONDS)


@dataclass(frozen=True)
class Retry:
    """A layer that attempts a request up to ``attempts`` times while its provider is overloaded or connections fail.

    The waits are random, grow each time, and are never shorter than the provider asks for.

    Rate limit errors are retried up to ten times, since many requests may share the limit, unless ``attempts`` is 1. A
    truncated reply is requested once more, with twice the output limit.
    """

    inner: Client
    attempts: int

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the first successful attempt."""
        try:
            return await self._ask(request)
        except TruncatedError:
            roomier = request.with_doubled_limit()
            if roomier is None:
                raise
        return await self._ask(roomier)

    async def _ask(self, request: Request) -> Reply:
        asking = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_is_temporary), stop=self._gives_up, wait=_wait, reraise=True
        )
        return await asking(self.inner.complete, request)

    def _gives_up(self, state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        patient = isinstance(error, RateLimitError) and self.attempts > 1
        return state.attempt_number >= max(self.attempts, _RATE_LIMITED_ATTEMPTS if patient else 0)

    async def aclose(self) -> None:
        """Close the inner client."""
        await self.inner.aclose()


def _is_temporary(error: BaseException) -> bool:
    if isinstance(error, OverloadError):
        return (error.retry_after or 0) <= MAX_RETRY_AFTER_SECONDS
    return isinstance(error, UnreachableError) and not isinstance(error, JudgeDownError)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    named = (error.retry_after or 0.0) if isinstance(error, OverloadError) else 0.0
    return max(_backoff(state), named * random.uniform(1, 1.1))  # noqa: S311 - so that not all retry at once

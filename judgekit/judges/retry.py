"""The layer that asks again, where that can help: a finite number of times, with waits that grow."""

from dataclasses import dataclass

import tenacity

from judgekit.errors import OverloadError
from judgekit.judges.client import Client, Reply, Request

_LONGEST_WAIT = 60.0
_backoff = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT)


@dataclass(frozen=True)
class Retry:
    """Asks up to ``attempts`` times while the provider is overloaded; waits as long as it says, or at random.

    A provider that wants a wait of more than a minute is not waited for.
    """

    inner: Client
    attempts: int

    async def complete(self, request: Request, /) -> Reply:
        """The first reply there is."""
        asking = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_may_pass),
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=_wait,
            reraise=True,
        )
        return await asking(self.inner.complete, request)

    async def aclose(self) -> None:
        """Closes what is inside."""
        await self.inner.aclose()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, OverloadError) and (error.retry_after or 0) <= _LONGEST_WAIT


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    told = error.retry_after if isinstance(error, OverloadError) else None
    return _backoff(state) if told is None else told

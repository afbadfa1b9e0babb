"""The layer next to the provider: writes each request into the ledger and checks that the reply is what was asked for."""

from dataclasses import dataclass
from time import perf_counter

from judgekit.errors import JudgeError, ReplyError
from judgekit.judges.client import Client, Reply, Request
from judgekit.score import JudgeCall, record


@dataclass(frozen=True)
class Ladder:
    """Lets a reply through only if the request accepts it."""

    inner: Client

    async def complete(self, request: Request, /) -> Reply:
        """The provider's reply, if it is what was asked for."""
        started = perf_counter()
        call = JudgeCall(judge=f"{request.provider}/{request.model}", prompt=request.prompt)
        try:
            reply = await self.inner.complete(request)
        except JudgeError as error:
            record(call.model_copy(update={"seconds": perf_counter() - started, "error": type(error).__name__}))
            raise
        paid = {"seconds": perf_counter() - started, "usage": reply.usage, "cost_usd": reply.cost_usd}
        try:
            request.accept(reply.text)
        except ValueError as error:
            record(call.model_copy(update={**paid, "error": ReplyError.__name__}))
            raise ReplyError(str(error), text=reply.text) from error
        record(call.model_copy(update=paid))
        return reply

    async def aclose(self) -> None:
        """Closes the provider."""
        await self.inner.aclose()

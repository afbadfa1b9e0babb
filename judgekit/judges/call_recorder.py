"""The layer next to the provider, which records every request and checks its reply."""

from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from judgekit.errors import FilterError, JudgeError, RefusalError, TruncatedError, count_text
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Layer, Reply, Request, possible_usage
from judgekit.score import JudgeCall, record_calls
from judgekit.traces.message import Usage


@dataclass(frozen=True)
class CallRecorder:
    """A layer that records every request in the ledger, and whose replies are answers.

    Attributes:
        inner: The client of the provider.
        price: The price of tokens, for replies whose cost the client leaves out.
    """

    inner: Layer
    price: Price | None = None

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the provider, if it answers the request."""
        started = perf_counter()
        reply: Reply | None = None
        problem: str | None = None
        try:
            reply = await self.inner.complete(request)
            if (usage := possible_usage(reply.usage, reply.text)) != reply.usage:
                reply = reply.model_copy(update={"usage": usage, "cost_usd": reply.cost_usd or None})
            if reply.cost_usd is None and self.price is not None:
                reply = reply.model_copy(update={"cost_usd": self.price.of(reply.usage, reply.service_tier)})
            if reply.finish_reason != "stop":
                raise _no_answer(reply, request)
            request.answer(reply)
        except BaseException as error:
            problem = type(error).__name__
            raise
        else:
            return reply
        finally:
            record_calls(
                JudgeCall(
                    judge=request.judge,
                    prompt=request.prompt,
                    model=reply.model if reply else None,
                    system_fingerprint=reply.system_fingerprint if reply else None,
                    usage=reply.usage if reply else None,
                    cost_usd=reply.cost_usd if reply else None,
                    price_list=reply.price_list if reply else None,
                    saved_usd=reply.saved_usd if reply else None,
                    tier=_billed_tier(request, reply),
                    seconds=perf_counter() - started,
                    error=problem,
                    exchange=request.exchange(reply.text if reply else None),
                )
            )


def _billed_tier(request: Request, reply: Reply | None) -> Literal["flex", "full"] | None:
    if request.tier == "default" or reply is None:
        return None
    return "flex" if reply.service_tier == "flex" else "full"


def _no_answer(reply: Reply, request: Request) -> JudgeError:
    if reply.finish_reason == "filter":
        return FilterError(f"{request.judge}: the provider's content filter withheld the reply")
    if reply.finish_reason == "refusal":
        return RefusalError(f"{request.judge}: the judge declined: {reply.text}")
    return TruncatedError(f"{request.judge}: the reply was cut off {_limit_reached(reply, request)}")


def _limit_reached(reply: Reply, request: Request) -> str:
    """Return the limit that cut a reply off, what its tokens went into, and what to change."""
    setting, usage = request.output_limit_setting, reply.usage or Usage()
    where, advice = "at the server's own limit", "set a higher one with params.max_tokens"
    if setting is not None:
        where, advice = f"at the limit of {request.output_limit:,} tokens ({setting})", "raise the limit"
    if usage.output_tokens is not None:
        where += f", after {count_text(usage.output_tokens, 'token')}"
    if usage.reasoning_tokens is not None:
        where += f", {f'{usage.reasoning_tokens:,}' if usage.reasoning_tokens else 'none'} of them reasoning"
        advice += ", or let the judge reason less" if usage.reasoning_tokens else ""
    return f"{where}; {advice}"

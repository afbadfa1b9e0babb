"""The layer next to the provider, which constrains the form of replies as strictly as the model supports."""

import asyncio
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import get_args

from judgekit.errors import STOPS, FilterError, FormatError, JudgeError, RefusalError, TruncatedError, count_text
from judgekit.judges.request import ChatMessage, Layer, OutputMode, Reply, Request
from judgekit.score import JudgeCall, record_calls
from judgekit.traces.message import Usage
from judgekit.traces.rendering import compact_json

_NEXT_MODE: dict[OutputMode, OutputMode] = dict(pairwise(get_args(OutputMode)))
_FIRST_REQUEST_SECONDS = 1.0
"""Seconds that other requests wait for the first. Providers reject an unsupported form of reply at once."""


@dataclass
class SchemaSupport:
    """The constraint that a model supports, as found by one request for all others of its judge."""

    output_mode: OutputMode = "json_schema"
    is_confirmed: bool = False


@dataclass
class StructuredOutput:
    """A layer that requests JSON by schema, else any JSON, else by instructions alone, and records every request.

    The other requests wait up to a second for the first, so that not all of them try an unsupported step or a rejected
    key.
    """

    inner: Layer
    schema_support: SchemaSupport
    _first: asyncio.Event | None = field(default=None, init=False, repr=False)
    _failure: Exception | None = field(default=None, init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the provider, if it answers the request."""
        if self.schema_support.is_confirmed:
            return await self._complete_with_fallback(request)
        if self._first is None:
            self._first = asyncio.Event()
            try:
                return await self._complete_with_fallback(request)
            except STOPS as error:
                self._failure = error
                raise
            finally:
                self._first.set()
        if not self._first.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_REQUEST_SECONDS):
                    await self._first.wait()
            if self._failure is not None:
                raise copy(self._failure)
        return await self._complete_with_fallback(request)

    async def _complete_with_fallback(self, request: Request) -> Reply:
        while True:
            step = self.schema_support.output_mode
            try:
                reply = await self._ask(request if step == "json_schema" else _with_output_mode(request, step))
            except FormatError:
                if step not in _NEXT_MODE:
                    raise
                if self.schema_support.output_mode == step:  # no other request has stepped down meanwhile
                    self.schema_support.output_mode = _NEXT_MODE[step]
            else:
                self.schema_support.is_confirmed = True
                return reply

    async def _ask(self, request: Request) -> Reply:
        started = perf_counter()
        reply: Reply | None = None
        problem: str | None = None
        try:
            reply = await self.inner.complete(request)
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
                    seconds=perf_counter() - started,
                    error=problem,
                    exchange=request.exchange(reply.text if reply else None),
                )
            )


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


def _with_output_mode(request: Request, step: OutputMode) -> Request:
    *before, (role, question) = request.messages
    form = f"Answer with one JSON object and nothing else. Its JSON Schema:\n{compact_json(request.schema)}"
    return replace(request, output_mode=step, messages=(*before, ChatMessage(role, f"{question}\n\n{form}")))

"""The layer that constrains the form of replies as strictly as the model supports."""

import asyncio
import re
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import get_args

from judgekit.errors import (
    STOPS,
    ContextError,
    FormatError,
    JudgeError,
    JudgeRejectedError,
    OverloadError,
    RejectedError,
    UnreachableError,
)
from judgekit.judges.providers.deferred import DeferredClient
from judgekit.judges.request import ChatMessage, Client, Layer, OutputMode, Reply, Request
from judgekit.score import known_outages
from judgekit.traces.rendering import compact_json

_NEXT_MODE: dict[OutputMode, OutputMode] = dict(pairwise(get_args(OutputMode)))
_MOST_REJECTIONS = 3
_IDENTIFIER = re.compile(r"(?=\S*\d)[\w:.+-]{12,}")
"""Numbers of requests and times, by which rejections alike may differ."""
_FIRST_REQUEST_SECONDS = 0.2
"""Seconds that other requests wait for the first one. Providers reject an unsupported form of reply at once."""
_WAVE_SECONDS = 0.05
"""Seconds between the waves in which the others then leave, each four times as large as the one before."""


@dataclass
class SchemaSupport:
    """The constraint and the output limit that a model supports, as found by one request for all others of its judge."""

    output_mode: OutputMode = "json_schema"
    is_confirmed: bool = False
    output_limit_name: str | None = None


@dataclass(eq=False)
class StructuredOutput:
    """A layer that requests JSON by schema, else any JSON, else by instructions alone.

    Until the model replies, the first request goes ahead, and the others follow in growing waves, so that not all of them
    try an unsupported step, a rejected key or a rejected parameter. After three rejections alike, the judge stops.

    Args:
        inner: Sends each request once.
        schema_support: What the model supports.
        provider: The client that ``inner`` uses, to create it first if it is deferred.
    """

    inner: Layer
    schema_support: SchemaSupport
    provider: Client | None = None
    _trial: asyncio.Future[Exception | None] | None = field(default=None, init=False, repr=False)
    _followers: int = field(default=0, init=False)
    _is_open: bool = field(default=False, init=False)
    _rejections: Counter[str] = field(default_factory=Counter[str], init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the provider, if it answers the request."""
        if isinstance(self.provider, DeferredClient):
            await self.provider.open()  # which takes about as long as others wait for a trial
        if (stopped := known_outages().get(self)) is not None:  # since this request passed the outer layers
            raise copy(stopped)
        while not (self._is_open or self.schema_support.is_confirmed):
            if (trial := self._trial) is None:
                trial, self._followers = asyncio.get_running_loop().create_future(), 0
                self._trial = trial
                return await self._try(request, trial)
            self._followers += 1
            wave = (self._followers.bit_length() - 1) // 2
            await asyncio.wait((trial,), timeout=_FIRST_REQUEST_SECONDS + wave * _WAVE_SECONDS)
            if not trial.done():
                return await self._try(request, trial)
            if (failure := trial.result()) is not None:
                raise copy(failure)
        return await self._complete_with_fallback(request)

    async def _try(self, request: Request, trial: asyncio.Future[Exception | None]) -> Reply:
        failure = None
        try:
            return await self._complete_with_fallback(request)
        except (*STOPS, UnreachableError) as error:
            failure = error
            if isinstance(error, JudgeError) and not isinstance(error, UnreachableError):
                known_outages()[self] = error
            raise
        finally:
            if not trial.done():
                self._trial = None
                trial.set_result(failure)

    async def _complete_with_fallback(self, request: Request) -> Reply:
        support = self.schema_support
        while True:
            step, limit_name = support.output_mode, support.output_limit_name
            try:
                sent = request if limit_name is None else replace(request, output_limit_name=limit_name)
                reply = await self.inner.complete(sent if step == "json_schema" else _with_output_mode(sent, step))
            except FormatError as error:
                if step not in _NEXT_MODE or request.typed_questions:
                    self._count_rejection(request, error)
                    raise
                if support.output_mode == step:  # no other request has stepped down meanwhile
                    support.output_mode = _NEXT_MODE[step]
            except ContextError:
                self._is_open = True
                raise
            except RejectedError as error:
                other = error.output_limit_name
                if request.max_output_tokens is None or other is None or limit_name is not None:
                    self._count_rejection(request, error)
                    raise
                support.output_limit_name = other
            except (OverloadError, UnreachableError, *STOPS):
                raise
            except BaseException:
                self._is_open = True
                raise
            else:
                support.is_confirmed = True
                return reply

    def _count_rejection(self, request: Request, error: RejectedError) -> None:
        """Stop the judge if it never replied, and rejected three requests alike.

        Raises:
            JudgeRejectedError: It did.
        """
        if self._is_open or self.schema_support.is_confirmed or request.images:  # then it may be about the sample
            return
        alike = _IDENTIFIER.sub("", str(error))
        self._rejections[alike] += 1
        if self._rejections[alike] == _MOST_REJECTIONS:
            self._rejections.clear()
            raise JudgeRejectedError(
                f"{error} {_MOST_REJECTIONS} requests were rejected alike, and none was answered. The judge stops: check "
                "its model, params and base_url"
            ) from error


def _with_output_mode(request: Request, step: OutputMode) -> Request:
    *before, (role, question) = request.messages
    form = f"Answer with one JSON object and nothing else. Its JSON Schema:\n{compact_json(request.schema)}"
    return replace(request, output_mode=step, messages=(*before, ChatMessage(role, f"{question}\n\n{form}")))

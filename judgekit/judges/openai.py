"""The OpenAI provider: Chat Completions, of OpenAI or of any compatible server. One attempt per request.

https://platform.openai.com/docs/api-reference/chat. Works with the SDK's versions 2 and 3: nothing of their HTTP
clients is touched, and the reply is read here, since the SDK lets broken replies through.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, ValidationError

from judgekit.errors import (
    AuthenticationError,
    ContextError,
    FilterError,
    JudgeError,
    OverloadError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplyError,
    TruncatedError,
)
from judgekit.judges.client import Reply, Request
from judgekit.traces.message import Usage
from judgekit.traces.rendering import cut_middle

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.shared_params.response_format_json_schema import JSONSchema

_OVERLOADED = {408, 409, 425, 500, 502, 503, 504}
_RATE_LIMITED = {429, 529}


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Details(BaseModel):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Completion(BaseModel):
    """What is used of a reply; real servers leave out and add what they like."""

    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens. ``cached`` input costs what other input does, if not given."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage | None) -> float | None:
        """The cost of a request, or ``None`` where its tokens are unknown."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = usage.cached_tokens or 0
        cached_price = self.input if self.cached is None else self.cached
        paid = (usage.input_tokens - cached) * self.input + cached * cached_price + usage.output_tokens * self.output
        return paid / 1_000_000


class OpenAIClient:
    """Answers requests over HTTP, without the SDK's own retries.

    Args:
        base_url: The server, such as ``https://api.openai.com/v1``.
        api_key: The key; passed on explicitly, since the SDK would read the environment unseen.
        timeout: Seconds for one attempt as a whole, also where the server drips its reply byte by byte.
        price: What tokens cost, where known.
    """

    def __init__(self, *, base_url: str, api_key: str, timeout: float, price: Price | None) -> None:
        import openai  # noqa: PLC0415 - half a second, for those who ask

        self._timeout = timeout
        self._price = price
        self._sdk: AsyncOpenAI = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=timeout)

    async def complete(self, request: Request, /) -> Reply:
        """The reply of the server, classified."""
        import openai  # noqa: PLC0415 - loaded when the client was made

        where = f"{request.provider}/{request.model} at {request.base_url}"
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request)
        except TimeoutError as error:
            raise OverloadError(f"{where}: no reply within {self._timeout:g} s") from error
        except openai.APIStatusError as error:
            raise _refused(error, f"{where}: HTTP {error.status_code}: {self._shown(error.response.text)}") from error
        except openai.APIConnectionError as error:
            raise OverloadError(f"{where}: {error} {error.__cause__ or ''}".rstrip()) from error
        return self._read(body, where)

    async def _send(self, request: Request) -> bytes:
        schema: JSONSchema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        raw = await self._sdk.chat.completions.with_raw_response.create(
            model=request.model,
            messages=cast("list[ChatCompletionMessageParam]", [turn._asdict() for turn in request.messages]),
            response_format={"type": "json_schema", "json_schema": schema},
            extra_body=request.params,
        )
        return bytes(raw.content)  # its text would have what is not UTF-8 replaced

    def _read(self, body: bytes, where: str) -> Reply:
        try:
            completion = _Completion.model_validate_json(body)
        except ValidationError as error:
            said = self._shown(body.decode(errors="replace"))
            raise OverloadError(f"{where}: the reply is no completion: {said}") from error
        if not completion.choices:
            raise OverloadError(f"{where}: the reply holds no choices")
        choice = completion.choices[0]
        if choice.finish_reason == "content_filter":
            raise FilterError(f"{where}: the provider's content filter withheld the reply")
        if choice.message.refusal:
            raise RefusalError(f"{where}: the judge declined: {choice.message.refusal}")
        if choice.finish_reason == "length":
            raise TruncatedError(f"{where}: the reply was cut off at the token limit")
        if not choice.message.content:
            raise ReplyError(f"{where}: the reply is empty", text="")
        usage = None if completion.usage is None else _usage(completion.usage)
        cost = None if self._price is None else self._price.of(usage)
        return Reply(text=choice.message.content, model=completion.model, usage=usage, cost_usd=cost)

    def _shown(self, said: str) -> str:
        """What a server said, cut to fit a message, and without the key, which some servers repeat."""
        return cut_middle(" ".join(said.split()).replace(self._sdk.api_key, "***"), 500)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._sdk.close()


def _usage(found: _Usage) -> Usage:
    prompt, completion = found.prompt_tokens_details, found.completion_tokens_details
    return Usage(
        input_tokens=found.prompt_tokens,
        output_tokens=found.completion_tokens,
        cached_tokens=prompt.cached_tokens if prompt else None,
        reasoning_tokens=completion.reasoning_tokens if completion else None,
    )


def _refused(error: "APIStatusError", said: str) -> JudgeError:
    status, code = error.status_code, error.code or ""
    if status in (401, 403):
        return AuthenticationError(said)
    if status in _RATE_LIMITED and code != "insufficient_quota":
        return RateLimitError(said, retry_after=_retry_after(error.response.headers.get))
    if status in _OVERLOADED or status > 504:
        return OverloadError(said, retry_after=_retry_after(error.response.headers.get))
    if code == "context_length_exceeded":
        return ContextError(said)
    if code == "content_filter":
        return FilterError(said)
    return RejectedError(said)


def _retry_after(header: Callable[[str], str | None]) -> float | None:
    """Seconds to wait, as the two common headers say them."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(header(name) or "none") * unit)
        except ValueError:
            continue  # missing, or a date, which is left to the waits that grow
    return None

"""Parsing of chat completions, and of providers' errors into typed errors.

https://platform.openai.com/docs/api-reference/chat/object. Real servers omit and add fields freely, and their SDKs let
malformed replies through, so both are parsed here.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import from_json

from judgekit import errors
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.price_list import ListPrice
from judgekit.judges.providers.secrets import SecretMask
from judgekit.judges.request import OUTPUT_LIMITS, Reply, TokenLogprob, possible_usage
from judgekit.traces.message import Usage
from judgekit.traces.rendering import cut_middle

MAX_RETRY_AFTER_SECONDS = 60.0
"""The longest wait in seconds. A provider that asks for a longer one is not retried."""

_OVERLOADED = {408, 409, 425}
_TIMED_OUT = {504, 524}  # the model may have answered after the gateway gave up
_RATE_LIMITED = {429, 529}
_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_TOO_LONG = re.compile(
    r"context[ _]?(length|window|size)|maximum context|too many (input )?tokens|(prompt|input|request) is too (long|large)"
    r"|input tokens? (count )?.{0,40}exceed",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile("request too large", re.IGNORECASE)  # for the account's tokens per minute
_FILTERED = re.compile(r"content[ _](filter|policy|management)|moderation|flagged", re.IGNORECASE)
_UNHELD = re.compile(
    r"response[ _]?(format|schema)|json[ _]?(schema|object|mode)|structured[ _]?outputs?|guided[ _]|parse grammar",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|invalid model\b|not a valid model|model .{0,200}\b(does not exist|not exist|not found)"
    r"|llm provider not provided|unmapped llm provider",
    re.IGNORECASE,
)
_OTHER_ENDPOINT = re.compile(
    r"v1/(?:responses|completions)\b|responses (?:api|endpoint)|not a chat model", re.IGNORECASE
)
_LIMIT = re.compile(r"\bmax_(?:completion_)?tokens\b")
_OTHER_LIMIT = re.compile(
    rf"\b(?:use|try|mean|replaced by|renamed to|in favou?r of)\W{{1,3}}({_LIMIT.pattern})", re.IGNORECASE
)
_UNKNOWN_PARAMETER = re.compile(
    r"unsupported|not (?:supported|permitted|allowed|recogni[sz]ed)|un(?:recogni[sz]ed|known|expected)|extra[ _](?:inputs?|forbidden|fields?)",
    re.IGNORECASE,
)
_LIMIT_TOO_HIGH = re.compile(r"too (?:large|high|big)|at most|maximum|exceed|less than", re.IGNORECASE)
_STATUS = re.compile("[45][0-9]{2}")
_SHOWN = 500

Value = TypeVar("Value")


def _or_none(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        return None


_IfRead: TypeAlias = Annotated[Value | None, WrapValidator(_or_none)]
"""A field that is not essential, and may have any shape: ``None`` if it cannot be parsed."""
_Count: TypeAlias = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    type: str = ""
    text: str | None = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Token(BaseModel):
    token: str
    logprob: float
    top_logprobs: list["_Token"] | None = None


class _Logprobs(BaseModel):
    content: list[_Token] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _IfRead[_Logprobs] = None


class _Details(BaseModel):
    cached_tokens: _IfRead[_Count] = None
    cache_write_tokens: _IfRead[_Count] = None
    reasoning_tokens: _IfRead[_Count] = None


class _Usage(BaseModel):
    prompt_tokens: _IfRead[_Count] = None
    completion_tokens: _IfRead[_Count] = None
    total_tokens: _IfRead[_Count] = None
    prompt_tokens_details: _IfRead[_Details] = None
    completion_tokens_details: _IfRead[_Details] = None
    cost: _IfRead[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = None  # US dollars, if the provider reports it


class _Completion(BaseModel):
    choices: list[_Choice]
    model: _IfRead[str] = None
    system_fingerprint: _IfRead[str] = None
    service_tier: _IfRead[str] = None
    usage: _IfRead[_Usage] = None


def parse_completion(body: bytes, masked: SecretMask, where: str, price: Price | None) -> Reply:
    """Return the reply in a completion.

    Args:
        body: The body of the response.
        masked: Masks secrets in the body. If it holds any, logprobs are dropped, since their tokens spell the secret.
        where: The server, for errors.
        price: The price of tokens, if known. A cost that the provider reports is used if the price is unknown, and
            instead of a price from a list.

    Raises:
        JudgeError: The body is not a completion.
    """
    masked_body = masked.body(body)
    try:
        completion = _Completion.model_validate_json(masked_body)
    except ValidationError as error:
        raise no_completion_error(masked_body, masked, where) from error
    if not completion.choices:
        raise no_completion_error(masked_body, masked, where)
    choice = completion.choices[0]
    content = choice.message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content if part.type == "text")
    counted = None if completion.usage is None else _usage(completion.usage)
    usage = possible_usage(counted, content or "")
    cost = None if price is None else price.of(usage, completion.service_tier)
    price_list = price.source if isinstance(price, ListPrice) and cost is not None else None
    reported = None if completion.usage is None else completion.usage.cost
    if usage != counted:  # then a cost of 0 is no cost either
        reported = reported or None
    if reported is not None and (cost is None or price_list):
        cost, price_list = reported, None
    reply = Reply(
        text=content or "",
        model=completion.model,
        system_fingerprint=completion.system_fingerprint,
        usage=usage,
        cost_usd=cost,
        price_list=price_list,
        service_tier=completion.service_tier,
        saved_usd=None if price is None else price.saved(usage, completion.service_tier),
    )
    if choice.finish_reason == "error":
        raise errors.LostError(f"{where}: the provider aborted the reply: {shorten_server_text(reply.text)}")
    if choice.finish_reason == "content_filter":
        return reply.model_copy(update={"finish_reason": "filter"})
    if choice.message.refusal:
        return reply.model_copy(update={"text": choice.message.refusal, "finish_reason": "refusal"})
    if choice.finish_reason == "length":
        return reply.model_copy(update={"finish_reason": "length"})
    if choice.logprobs and choice.logprobs.content and masked_body == body:
        return reply.model_copy(update={"logprobs": tuple(map(_logprob, choice.logprobs.content))})
    return reply


def no_completion_error(body: bytes, masked: SecretMask, where: str, expected: str = "completion") -> errors.JudgeError:
    """Return the error for a body, without secrets, that is not what was expected."""
    text = body.decode(errors="replace")
    code = str(_fields(text).get("code"))
    if _STATUS.fullmatch(code):  # an error with a success status
        return http_status_error(int(code), body, lambda _: None, masked, where)
    return errors.LostError(f"{where}: the reply is not a {expected}, found {shorten_server_text(text) or 'nothing'}")


def _usage(usage: _Usage) -> Usage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    output = usage.completion_tokens
    if output is not None and usage.prompt_tokens is not None and usage.total_tokens is not None:
        output = max(
            output, usage.total_tokens - usage.prompt_tokens
        )  # xAI and Gemini count reasoning only in the total
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=output,
        cached_tokens=prompt.cached_tokens if prompt else None,
        reasoning_tokens=completion.reasoning_tokens if completion else None,
        extra={"cache_write_tokens": prompt.cache_write_tokens} if prompt and prompt.cache_write_tokens else {},
    )


def _logprob(token: _Token) -> TokenLogprob:
    return TokenLogprob(
        token=token.token, logprob=token.logprob, top_logprobs=tuple(map(_logprob, token.top_logprobs or ()))
    )


def http_status_error(
    status: int, body: bytes, header: Callable[[str], str | None], masked: SecretMask, where: str
) -> errors.JudgeError:
    """Return the error for an HTTP status other than success.

    Args:
        status: The status.
        body: The body of the response.
        header: Returns a header of the response by its lower-case name.
        masked: Masks secrets in the message.
        where: The server, for the message.
    """
    text = masked.body(body).decode(errors="replace")
    error = _fields(text)
    codes = {str(error.get("code")), str(error.get("type"))}
    message = str(error.get("message") or text)[:2_000]
    answer = f"HTTP {status}: {shorten_server_text(text)}"
    problem = f"{where}: {answer}"
    if status == 403 and _FILTERED.search(message):
        return errors.FilterError(problem)
    if status in (401, 403):
        return errors.AuthenticationError(problem)
    if status == 402 or codes & _SPENT:
        return errors.QuotaError(problem)
    wait = retry_after(header)
    if status in _RATE_LIMITED:
        if _TOO_LARGE.search(message):
            return errors.ContextError(problem)
        if wait is not None and wait > MAX_RETRY_AFTER_SECONDS:
            return errors.QuotaError(f"{where}: it asks to wait for {wait:.0f} s. {answer}")
        if "resource_unavailable" in codes:
            return errors.FlexUnavailableError(problem, status=status)
        return errors.RateLimitError(problem, status=status, retry_after=wait)
    if _UNHELD.search(message) and status <= 501:
        return errors.FormatError(problem)
    if status in _TIMED_OUT:
        return errors.LostError(problem, status=status, retry_after=wait)
    if status in _OVERLOADED or (status >= 500 and status != 501):
        return errors.OverloadError(problem, status=status, retry_after=wait)
    if status < 400:
        address = _address(masked(header("location") or ""))
        return errors.ModelError(
            f"{where}: it redirects to {address!r}, which judgekit does not follow. Check the base_url. {answer}"
        )
    if _OTHER_ENDPOINT.search(message):
        return errors.ModelError(
            f"{where}: the server does not offer this model at chat/completions. Choose another. {answer}"
        )
    if "model_not_found" in codes or _NO_MODEL.search(message):
        return errors.ModelError(
            f"{where}: the provider does not know this model: it may be retired, or its name misspelled. Choose another. {answer}"
        )
    if status in (404, 405):
        return errors.ModelError(f"{where}: check the model name and the base_url. {answer}")
    if status == 413 or "context_length_exceeded" in codes or _TOO_LONG.search(message):
        return errors.ContextError(problem)
    if _FILTERED.search(" ".join((*codes, message))):
        return errors.FilterError(problem)
    return errors.RejectedError(problem, output_limit_name=_other_limit_name(message))


def _other_limit_name(message: str) -> str | None:
    """Return the output limit that a server expects, if it does not know the one that it was sent."""
    if (suggested := _OTHER_LIMIT.search(message)) is not None:
        return str(suggested[1])
    named: list[str] = list(dict.fromkeys(_LIMIT.findall(message)))
    if not named or _LIMIT_TOO_HIGH.search(message) or not _UNKNOWN_PARAMETER.search(message):
        return None
    return next(name for name in (*named[1:], *OUTPUT_LIMITS) if name != named[0])


def _fields(text: str) -> Mapping[str, object]:
    """Return the fields of an error body, in any of the usual shapes."""
    try:
        body: object = from_json(text)
    except ValueError:
        return {}
    if isinstance(body, list) and body:  # Gemini wraps its errors in a list
        body = cast("list[object]", body)[0]
    if not isinstance(body, dict):
        return {}
    fields = cast("dict[str, Any]", body)
    inner = fields.get("error")
    if isinstance(inner, dict):
        return cast("dict[str, object]", inner)
    return {**fields, "message": inner} if inner else fields


def retry_after(header: Callable[[str], str | None]) -> float | None:
    """Return the seconds that the provider asks to wait, if it does.

    They are given in milliseconds, in seconds, or as a date relative to the provider's own; 0 for a date in the past.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(header(name) or "none") * unit
        except ValueError:
            continue
        if not math.isnan(seconds):
            return max(0.0, seconds)
    until = _date(header("retry-after"))
    if until is None:
        return None
    return max(0.0, (until - (_date(header("date")) or datetime.now(UTC))).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _address(location: str) -> str:
    """Return an address without its user, password and query, which may hold a key."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return "..."
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def shorten_server_text(text: str) -> str:
    """Return the text of a server on one line, shortened to fit a message."""
    return " ".join(cut_middle(text, _SHOWN).split())

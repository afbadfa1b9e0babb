"""The OpenAI provider: Chat Completions, of OpenAI or of any compatible server. One attempt per request.

Works with the SDK's versions 2 and 3, and with aiohttp below it where that is installed.
"""

import asyncio
import re
import sys
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import JsonValue

from judgekit.errors import ConfigError, JudgeError, LostError, UnreachableError
from judgekit.judges.client import Reply, Request
from judgekit.judges.completion import read_completion, refused
from judgekit.judges.connection import chain_of, reason_of, was_sent
from judgekit.judges.price import Price
from judgekit.traces.message import JsonObject

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CONNECTING = 5.0
"""Seconds to reach a server, at most."""

_HEADERS = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"),
    "user-agent",
}
_ACCOUNT = {"openai-organization", "openai-project"}


class OpenAIClient:
    """Answers requests over HTTP, without the SDK's own retries.

    What the SDK finds in the environment is not sent, but for the organization and the project, to OpenAI itself.

    Args:
        base_url: The server, such as ``https://api.openai.com/v1``.
        api_key: The key.
        timeout: Seconds for one attempt as a whole, also where the server drips its reply byte by byte.
        price: What tokens cost, where known.

    Raises:
        ConfigError: No connection can be set up, such as with an address, a proxy or certificates that cannot be used.
    """

    def __init__(self, *, base_url: str, api_key: str | None, timeout: float, price: Price | None) -> None:
        self._timeout = timeout
        self._price = price
        self._key = api_key or "no-key"
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        try:
            self._sdk = _connect(base_url, self._key, timeout)
        except Exception as error:  # whatever proxies and certificates of the environment, or the address, lead to
            raise ConfigError(f"{base_url}: no connection can be set up: {error}") from error

    async def complete(self, request: Request, /) -> Reply:
        """The reply of the server.

        Raises:
            JudgeError: There is none.
        """
        import openai  # noqa: PLC0415 - loaded when the client was made

        where = f"{request.judge} at {request.base_url}"
        handled = sys.exception()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request)
        except TimeoutError as error:
            raise LostError(f"{where}: no reply within {self._timeout:g} s") from error
        except openai.APIStatusError as error:
            raise self._refused(error, where) from None  # it repeats what the server said, perhaps with the key
        except Exception as error:  # not all that the transports raise goes through the SDK's hands
            chain = chain_of(error, handled)
            if not was_sent(chain):
                raise UnreachableError(f"{where}: {reason_of(chain)}") from error
            cause = error.__cause__ or error
            raise LostError(f"{where}: {str(cause) or type(cause).__name__}") from error
        with suppress(JudgeError):
            return read_completion(body, where, self._price)
        return read_completion(self._hidden(body), where, self._price)  # whose error shows what was said

    async def _send(self, request: Request) -> bytes:
        turns: list[JsonValue] = [turn._asdict() for turn in request.messages]
        body = {"model": request.model, "messages": turns, **request.params, **response_format(request)}
        # The SDK's method for completions would look through all of the body, and make objects of the reply.
        return await self._sdk.post(self._url, cast_to=bytes, body=body)

    def _refused(self, error: Any, where: str) -> JudgeError:
        said = self._hidden(error.response.content).decode(errors="replace")
        return refused(error.status_code, said, error.response.headers.get, where)

    def _hidden(self, body: bytes) -> bytes:
        """What a server said, without the key, which some servers repeat."""
        return body.replace(self._key.encode(), b"***")

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._sdk.close()


def _connect(base_url: str, api_key: str, timeout: float) -> "AsyncOpenAI":
    import openai  # noqa: PLC0415 - half a second, for those who ask

    is_openai = (urlsplit(base_url).hostname or "").endswith(".openai.com")
    trim = partial(_trim, _HEADERS | _ACCOUNT if is_openai else _HEADERS, f"Bearer {api_key}")
    # Where a server refers to another, it is for the user to name that one: conversations go to nobody else.
    options: dict[str, Any] = {"follow_redirects": False, "event_hooks": {"request": [trim]}}
    try:
        http = openai.DefaultAioHttpClient(**options)
    except RuntimeError:  # aiohttp is not installed
        http = openai.DefaultAsyncHttpxClient(**options)
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        timeout=openai.Timeout(timeout, connect=min(_CONNECTING, timeout / 2)),
        http_client=http,
    )


async def _trim(needed: AbstractSet[str], authorization: str, request: Any) -> None:
    """Takes out of a request what the SDK put in from the environment."""
    kept = {name: value for name, value in request.headers.items() if name in needed}
    request.headers = type(request.headers)({**kept, "authorization": authorization})


def response_format(request: Request) -> JsonObject:
    """What holds the model to the form of its reply, as a parameter of Chat Completions."""
    if request.step == "text":
        return {}
    if request.step == "json_object":
        return {"response_format": {"type": "json_object"}}
    name = re.sub(r"[^\w-]", "_", request.schema_name, flags=re.ASCII)[:64]  # no other names are taken
    schema: JsonObject = {"name": name, "schema": request.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}

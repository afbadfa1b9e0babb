"""The OpenAI provider: Chat Completions, of OpenAI or of any compatible server. Each request is attempted once.

It works with versions 2 and 3 of the SDK, and uses aiohttp if that is installed.
"""

import asyncio
import re
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import JsonValue

from judgekit.errors import ConfigError, JudgeError, LostError, ReplyError, UnreachableError
from judgekit.judges.bodies import ACCEPT_ENCODING, read_body
from judgekit.judges.client import Reply, Request
from judgekit.judges.completion import http_status_error, parse_completion
from judgekit.judges.connection import Connection, connection_failure, error_chain, proxy_passwords, request_was_sent
from judgekit.judges.secrets import SecretMask
from judgekit.traces.message import JsonObject

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CONNECTING = 5.0
"""The maximum number of seconds to connect to a server."""

_HEADERS = {"accept", "connection", "content-length", "content-type", "host", "user-agent"}
_ACCOUNT = {"openai-organization", "openai-project"}


class OpenAIClient:
    """A client that sends requests over HTTP, without the SDK's own retries.

    Values that the SDK finds in the environment are not sent, except the organization and the project to OpenAI itself.

    Args:
        connection: The settings of the connection. At most ``max_reply_bytes`` of a reply are read, decompressed.

    Raises:
        ConfigError: The connection cannot be set up, because the address, a proxy or a certificate cannot be used.
    """

    def __init__(self, connection: Connection) -> None:
        self._timeout = connection.timeout
        self._price = connection.price
        key = connection.api_key or "no-key"
        self._masked = SecretMask((key, *connection.extras.secrets, *proxy_passwords()))
        self._url = f"{connection.base_url.rstrip('/')}/chat/completions"
        try:
            self._sdk = _connect(connection, key)
        except Exception as error:  # noqa: BLE001 - proxies and certificates may raise anything
            problem = ConfigError(f"{connection.base_url}: cannot set up a connection: {self._masked(str(error))}")
        else:
            return
        raise problem  # outside the handler, so that no error is chained that may show a password

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the server.

        Raises:
            JudgeError: There is no usable reply.
        """
        where = f"{request.judge} at {request.base_url}"
        handled = sys.exception()
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request)
        except Exception as error:  # noqa: BLE001 - the SDK does not wrap all errors of its transports
            problem = self._problem(error, handled, where)
        else:
            return parse_completion(body, self._masked, where, self._price)
        raise problem  # outside the handler, so that no error is chained that may show a key

    async def _send(self, request: Request) -> bytes:
        turns: list[JsonValue] = [turn._asdict() for turn in request.messages]
        # OpenAI's reasoning models reject max_tokens, and many compatible servers know only that.
        is_openai = (urlsplit(self._url).hostname or "").endswith((".openai.com", ".openai.azure.com"))
        params = request.params_with_limit("max_completion_tokens" if is_openai else "max_tokens")
        body = {"model": request.model, "messages": turns, **params, **response_format(request)}
        # The SDK's method for completions would traverse the whole body, and build objects from the reply.
        return await self._sdk.post(self._url, cast_to=bytes, body=body)

    def _problem(self, error: Exception, handled: BaseException | None, where: str) -> JudgeError:
        import openai  # noqa: PLC0415 - already imported when the client was created

        if isinstance(error, openai.APIStatusError):
            return http_status_error(
                error.status_code, error.response.content, error.response.headers.get, self._masked, where
            )
        chain = error_chain(error, handled)
        if isinstance(chain[-1], ReplyError):
            return ReplyError(f"{where}: {chain[-1]}", text="")
        if isinstance(error, TimeoutError):
            return LostError(f"{where}: no reply within {self._timeout:g} s")
        if not request_was_sent(chain):
            return UnreachableError(f"{where}: {self._masked(connection_failure(chain))}")
        cause = error.__cause__ or error
        return LostError(f"{where}: {self._masked(str(cause)) or type(cause).__name__}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()


def _connect(connection: Connection, api_key: str) -> "AsyncOpenAI":
    import openai  # noqa: PLC0415 - takes half a second

    base_url, timeout, extras = connection.base_url, connection.timeout, connection.extras
    is_openai = (urlsplit(base_url).hostname or "").endswith(".openai.com")
    own = {name.lower(): value for name, value in extras.headers.items()}
    sent = {"authorization": f"Bearer {api_key}", **own, "accept-encoding": ACCEPT_ENCODING}
    trim = partial(_trim, _HEADERS | _ACCOUNT if is_openai else _HEADERS, sent)
    # No redirects: conversations go only to the server that the user names.
    hooks = {"request": [trim], "response": [partial(read_body, connection.max_reply_bytes)]}
    options: dict[str, Any] = {"follow_redirects": False, "event_hooks": hooks}
    try:
        http = openai.DefaultAioHttpClient(**options)
    except RuntimeError:  # aiohttp is not installed
        http = openai.DefaultAsyncHttpxClient(**options)
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        timeout=openai.Timeout(timeout, connect=min(_CONNECTING, timeout / 2)),
        default_query=extras.query,
        http_client=http,
    )


async def _trim(needed: AbstractSet[str], sent: Mapping[str, str], request: Any) -> None:
    """Remove headers that the SDK took from the environment, and set those of the judge."""
    kept = {name: value for name, value in request.headers.items() if name in needed}
    request.headers = type(request.headers)({**kept, **sent})


def response_format(request: Request) -> JsonObject:
    """Return the parameter of Chat Completions that holds the model to the form of its reply."""
    if request.step == "text":
        return {}
    if request.step == "json_object":
        return {"response_format": {"type": "json_object"}}
    name = re.sub(r"[^\w-]", "_", request.schema_name, flags=re.ASCII)[:64]  # other names are rejected
    schema: JsonObject = {"name": name, "schema": request.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}

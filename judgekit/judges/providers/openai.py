"""The OpenAI provider: Chat Completions, of OpenAI or of any compatible server. Each request is attempted once.

It uses the HTTP client of the SDK, on aiohttp if that is installed, and no more of the SDK: that would
traverse each body, send headers that it finds in the environment, and decompress replies of any size.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import date
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from judgekit.distribution import own_version
from judgekit.errors import ConfigError, JudgeError, LostError, ModelError, ReplyError, UnreachableError, join_limited
from judgekit.judges.providers.bodies import ACCEPT_ENCODING, read_body
from judgekit.judges.providers.completion import http_status_error, parse_completion, shorten_server_text
from judgekit.judges.providers.connection import (
    Connection,
    connection_failure,
    error_chain,
    request_was_sent,
)
from judgekit.judges.providers.secrets import SecretMask, proxy_passwords
from judgekit.judges.request import Reply, Request
from judgekit.traces.images import Image
from judgekit.traces.message import JsonObject

_CONNECTING = 5.0
"""The maximum number of seconds to connect to a server."""

_MOST_MODELS, _MODELS_SHOWN = 1_000, 10
_LOOKUP = 10.0
"""The maximum number of seconds to look up a model, which is not worth a longer wait."""

_OPENAI = (".openai.com", ".openai.azure.com")
"""Hosts whose reasoning models reject ``max_tokens``. Many other servers know only that."""

_SCHEMA_NAME = "answer"
"""The name of all schemas: OpenAI counts it as part of the prefix that its cache can share."""

_ACCOUNT = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
"""The headers that OpenAI itself is sent from the environment, and their variables."""


class OpenAIClient:
    """A client that sends requests over HTTP, without retries.

    Args:
        connection: The settings of the connection. At most ``max_reply_bytes`` of a reply are read, decompressed.

    Raises:
        ConfigError: The connection cannot be set up, because the address, a proxy or a certificate cannot be used.
    """

    _route = "chat/completions"

    def __init__(self, connection: Connection) -> None:
        self._timeout = connection.timeout
        self._price = connection.price
        self._host = urlsplit(connection.base_url).hostname or ""
        self._max_reply_bytes = connection.max_reply_bytes
        key = connection.api_key or "no-key"
        self._masked = SecretMask((key, *connection.extras.secrets, *proxy_passwords()))
        try:
            self._http = _connect(connection, key)
            self._base_url = connection.base_url.rstrip("/")
            self._empty = self._http.build_request("GET", f"{self._base_url}/{self._route}")  # GET sets no length
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
        where, handled = f"{request.judge} at {request.base_url}", sys.exception()
        try:
            async with asyncio.timeout(self._timeout):
                status, header, body = await self._send(request)
        except Exception as error:  # noqa: BLE001 - HTTP clients and their transports raise errors of many kinds
            problem = self._problem(error, handled, where)
        else:
            if status // 100 == 2:
                return self._read(body, where)
            problem = http_status_error(status, body, header, self._masked, where)
            if isinstance(problem, ModelError) and status >= 400 and (models := await self._models_like(request.model)):
                problem = ModelError(f"{problem} Models of this server: {self._masked(models)}")
        raise problem  # outside the handler, so that no error is chained that may show a key

    async def _send(self, request: Request) -> tuple[int, Callable[[str], str | None], bytes]:
        """Return the status, a function for the headers, and the body of the response."""
        empty, body = self._empty, to_json(self._content(request))
        sent = type(empty)("POST", empty.url, headers=empty.headers, content=body, extensions=empty.extensions)
        response = await self._http.send(sent, stream=True)
        body = await read_body(self._max_reply_bytes, response)
        return response.status_code, response.headers.get, body

    def _content(self, request: Request) -> JsonObject:
        params = request.sent_params("max_completion_tokens" if self._host.endswith(_OPENAI) else "max_tokens")
        form = response_format(request)
        content: JsonObject = {"model": request.model, "messages": chat_messages(request), **params, **form}
        if request.prefix_key and self._host.endswith(_OPENAI):  # many other servers reject what they do not know
            content.setdefault("prompt_cache_key", request.prefix_key)
        return content

    def _read(self, body: bytes, where: str) -> Reply:
        return parse_completion(body, self._masked, where, self._price)

    async def find_shutdown_date(self, model: str) -> date | None:
        """Return the date on which the server will shut down a model, or did; ``None`` if it does not say."""
        try:
            return date.fromisoformat((await self._look_up(f"models/{quote(model, safe=':')}"))["shutdown_date"])
        except Exception:  # noqa: BLE001 - most servers have no such date, many no such route
            return None

    async def _models_like(self, model: str) -> str:
        """Return the names of the server's models that can chat, the most similar ones first; empty if it lists none."""
        try:
            listed = (await self._look_up("models"))["data"][:_MOST_MODELS]
            chat = [each for each in listed if each.get("capabilities", {}).get("chat_completion") is not False]
            names = {shorten_server_text(each["id"]) for each in chat} - {model}
        except Exception:  # noqa: BLE001 - many servers have no such route
            return ""
        return join_limited(get_close_matches(model, sorted(names), max(1, len(names)), 0), _MODELS_SHOWN, ", ")

    async def _look_up(self, path: str) -> Any:
        async with asyncio.timeout(min(self._timeout, _LOOKUP)):
            lookup = self._http.build_request("GET", f"{self._base_url}/{path}")
            response = await self._http.send(lookup, stream=True)
            body = await read_body(self._max_reply_bytes, response)
        return from_json(body) if response.is_success else None

    def _problem(self, error: Exception, handled: BaseException | None, where: str) -> JudgeError:
        chain = error_chain(error, handled)
        if isinstance(chain[-1], ReplyError):
            return ReplyError(f"{where}: {chain[-1]}", text="")
        if isinstance(error, TimeoutError):
            return LostError(f"{where}: no reply within {self._timeout:g} s")
        if not request_was_sent(chain):
            return UnreachableError(f"{where}: {self._masked(connection_failure(chain))}")
        return LostError(f"{where}: {self._masked(str(error)) or type(error).__name__}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _connect(connection: Connection, api_key: str) -> Any:
    """Return an HTTP client of httpx or httpx2, with the headers and query parameters of every request."""
    import openai  # noqa: PLC0415 - takes half a second

    is_openai = (urlsplit(connection.base_url).hostname or "").endswith(".openai.com")
    headers = {
        "accept": "application/json",
        "accept-encoding": ACCEPT_ENCODING,
        "authorization": f"Bearer {api_key}",
        "content-type": "application/json",
        "user-agent": f"judgekit/{own_version()}",
        **{name: os.environ[key] for name, key in _ACCOUNT.items() if is_openai and os.environ.get(key)},
        **{name.lower(): text for name, text in connection.extras.headers.items()},
    }
    options: dict[str, Any] = {
        "headers": headers,
        "params": connection.extras.query or None,
        "follow_redirects": False,  # conversations go only to the server that the user names
        "timeout": openai.Timeout(connection.timeout, connect=min(_CONNECTING, connection.timeout / 2)),
        "verify": _tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    }
    try:
        return openai.DefaultAioHttpClient(**options)
    except RuntimeError:  # aiohttp is not installed
        return openai.DefaultAsyncHttpxClient(**options)


@cache
def _tls_context(_file: str | None, _folder: str | None) -> Any:
    """Return the certificates that the HTTP library trusts, loaded once for each value of the variables that name them."""
    import openai  # noqa: PLC0415 - takes half a second

    # httpx or httpx2, by openai's version
    library = openai.DefaultAsyncHttpxClient.mro()[1].__module__.partition(".")[0]
    return import_module(library).create_ssl_context()


def chat_messages(request: Request) -> list[JsonValue]:
    """Return the messages in the form of Chat Completions, with images in their places."""
    if not request.images:
        return [message._asdict() for message in request.messages]
    return [
        {"role": message.role, "content": [_part(part) for part in request.content(message)]}
        if message.role == "user"
        else message._asdict()
        for message in request.messages
    ]


def _part(part: str | Image) -> JsonValue:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    detail: JsonObject = {} if part.detail == "auto" else {"detail": part.detail}
    return {"type": "image_url", "image_url": {"url": part.url, **detail}}


def response_format(request: Request) -> JsonObject:
    """Return the parameter of Chat Completions that holds the model to the form of its reply."""
    if request.output_mode == "text":
        return {}
    if request.output_mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema: JsonObject = {"name": _SCHEMA_NAME, "schema": request.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}

"""The litellm provider: any model that litellm can reach. An extra, ``litellm``, imported on first use.

Each request is attempted once. The errors that litellm raises differ between its versions and between providers, so the
HTTP response among an error's causes is read instead.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast
from weakref import WeakKeyDictionary

from judgekit import errors
from judgekit.distribution import install_command
from judgekit.judges.offline import is_local_address
from judgekit.judges.providers.completion import http_status_error, parse_completion, shorten_server_text
from judgekit.judges.providers.connection import (
    Connection,
    connection_failure,
    error_chain,
    request_was_sent,
)
from judgekit.judges.providers.openai import chat_messages, response_format
from judgekit.judges.providers.secrets import SecretMask, environment_secrets, proxy_passwords
from judgekit.judges.request import Reply, Request

_QUIET = {
    "LITELLM_MODE": "PRODUCTION",  # or it reads a .env file
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # or it fetches a table of prices
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # or it fetches a table of headers
}
"""Environment variables that are set before litellm is imported, unless the user has set them."""

_OWN = {400, 401, 402, 403, 404, 429}
"""Statuses of errors without an HTTP response. litellm's other statuses stand for a reply that it could not parse."""

_NO_KEY = re.compile(
    r"missing credentials|missing .{0,40}\bapi[ _]key|api[ _]key is not set|locate credentials", re.IGNORECASE
)


_Rule: TypeAlias = Literal["", "one address", "offline"]


class LitellmClient:
    """A client that sends requests through litellm, without litellm's own retries and cache.

    Callbacks that a program has registered with litellm are not called, and no redirect is followed. With some providers,
    litellm sends a request again by itself if the connection breaks before the reply.

    Args:
        connection: The settings of the connection, with headers but no query. Without a ``base_url``, requests go to
            the provider's own server; without an ``api_key``, litellm reads the provider's own environment variable.
            litellm reads and decompresses a whole reply before its length is known.

    Raises:
        ConfigError: litellm cannot be imported, or the connection has query parameters.
    """

    def __init__(self, connection: Connection) -> None:
        extras = connection.extras
        if extras.query:
            raise errors.ConfigError(
                "litellm does not support query: use its own parameters, such as params = {api_version = ...}"
            )
        self._litellm, self._unlogged = _load()
        _warm_up()
        self._base_url = connection.base_url or None
        self._key = connection.api_key
        self._masked = SecretMask((self._key or "", *extras.secrets, *environment_secrets(), *proxy_passwords()))
        self._headers = dict(extras.headers)
        self._max_reply_bytes = connection.max_reply_bytes
        self._timeout = connection.timeout
        self._price = connection.price
        self._rule: _Rule = "offline" if connection.offline else "one address"

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply of the model.

        Raises:
            JudgeError: There is no usable reply.
        """
        where = f"{request.judge} at {self._base_url}" if self._base_url else request.judge
        handled = sys.exception()
        _asking.setdefault(asyncio.get_running_loop(), set()).add(self)
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request, where)
        except TimeoutError:
            problem: errors.JudgeError = errors.LostError(f"{where}: no reply within {self._timeout:g} s")
        except errors.JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - litellm may raise anything, and quotes the server
            problem = self._refused(error_chain(error, handled), where)
        else:
            if len(body) > self._max_reply_bytes:
                reason = f"the reply has more than {self._max_reply_bytes:,} bytes (max_reply_bytes)"
                raise errors.ReplyError(f"{where}: {reason}", text="")
            return parse_completion(body, self._masked, where, self._price)
        raise problem  # outside the handler, so that no error is chained that may show a key

    async def _send(self, request: Request, where: str) -> bytes:
        model, provider, _, _ = self._litellm.get_llm_provider(request.model, api_base=self._base_url)
        form = response_format(request)
        allowed = list(cast("list[str]", request.params.get("allowed_openai_params", [])))
        supported = self._litellm.get_supported_openai_params(model, provider)
        if (
            form and supported and "response_format" not in [*supported, *allowed]
        ):  # litellm may be configured to drop it silently
            raise errors.FormatError(f"{where}: litellm does not support response_format for this model")
        if provider in self._litellm.openai_compatible_providers:
            allowed.append("max_retries")  # litellm loses it for some of them, and sends requests three times
        before, rule = self._unlogged.set(True), _rule.set(self._rule)
        try:
            completion = await self._litellm.acompletion(
                **{
                    **request.sent_params("max_tokens"),  # litellm knows each provider's name for it
                    **form,
                    "model": request.model,
                    "messages": chat_messages(request),
                    "api_base": self._base_url,
                    "api_key": self._key,
                    "extra_headers": self._headers or None,
                    "timeout": self._timeout,
                    "num_retries": 0,  # also stands for max_retries
                    "caching": False,
                    "allowed_openai_params": allowed,
                }
            )
        finally:
            self._unlogged.reset(before)
            _rule.reset(rule)
        return _as_provider_json(completion.model_dump(warnings=False)).encode()

    def _refused(self, chain: list[BaseException], where: str) -> errors.JudgeError:
        causes = {kind.__name__: cause for cause in chain for kind in type(cause).__mro__}
        if (offline := causes.get("OfflineError")) is not None:
            return errors.OfflineError(f"{where}: {self._masked(str(offline))}")
        if (status_error := causes.get("HTTPStatusError")) is not None:
            response: Any = cast("Any", status_error).response
            return http_status_error(response.status_code, response.content, response.headers.get, self._masked, where)
        text, root = str(chain[0]), str(chain[-1])
        text = self._masked(text if root in text else f"{text} {root}")
        problem = f"{where}: {shorten_server_text(text)}"
        if not request_was_sent(chain):
            return errors.UnreachableError(f"{where}: {self._masked(connection_failure(chain))}")
        if (missing := causes.get("ModuleNotFoundError")) is not None:
            return errors.ModelError(
                f"{where}: {self._masked(str(missing))}. litellm needs this package for this model: install it"
            )
        if _NO_KEY.search(text):
            return errors.AuthenticationError(problem)
        if (status := getattr(chain[0], "status_code", None)) in _OWN:
            return http_status_error(status, text.encode(errors="replace"), lambda _: None, self._masked, where)
        return errors.LostError(problem)

    async def aclose(self) -> None:
        """Close the connections, unless another client uses litellm in this event loop."""
        loop = asyncio.get_running_loop()
        asking = _asking.get(loop, set())
        last = asking == {self}
        asking.discard(self)
        if not last:
            return
        cache = self._litellm.in_memory_llm_clients_cache
        of_this_loop = cache.update_cache_key_with_event_loop("")
        closing: list[Any] = []
        for key in [key for key in list(cache.cache_dict) if key.endswith(of_this_loop)]:
            closing.append(cache.cache_dict[key])
            cache.delete_cache(key)  # or litellm uses it again, though it is closed
        for client in closing:
            await client.close()


_asking: WeakKeyDictionary[asyncio.AbstractEventLoop, set[LitellmClient]] = WeakKeyDictionary()
"""The clients in each event loop. In a loop, litellm has one HTTP client per server, which it never closes."""


_rule: ContextVar[_Rule] = ContextVar("rule", default="")
"""Whether the current request of this task or thread follows no redirect, or does not leave this machine either."""

_SENDERS = (
    *(("httpx", kind, "send", "follow_redirects") for kind in ("AsyncClient", "Client")),
    ("requests", "Session", "send", "allow_redirects"),
    ("aiohttp", "ClientSession", "_request", "allow_redirects"),
)
"""The method of each HTTP client that litellm's providers use, and its argument that follows redirects."""


@cache
def _restrict_clients() -> None:
    """Let HTTP clients keep to the rule while a request of judgekit is sent, whoever made the clients.

    litellm makes and shares dozens of them, and has no setting for this. Some of its providers ignore an address that
    they are given, or ask another one for keys first.
    """
    for library, kind, method, follow in _SENDERS:
        client = getattr(import_module(library), kind)
        setattr(client, method, _restricted(getattr(client, method), follow))


def _restricted(send: Callable[..., object], follow: str) -> Callable[..., object]:
    @wraps(send)
    def sent(client: object, *arguments: object, **options: object) -> object:
        if not (rule := _rule.get()):
            return send(client, *arguments, **options)
        url = str(getattr(arguments[-1], "url", arguments[-1]))  # aiohttp is given the address, the others a request
        if rule == "offline" and not is_local_address(url):
            raise errors.OfflineError(f"would ask {url.partition('?')[0]}, and offline mode only allows this machine")
        return send(client, *arguments, **{**options, follow: False})

    return sent


def _load() -> tuple[Any, ContextVar[bool]]:
    """Return litellm, and a variable that, if set, keeps it from holding every reply until it is logged.

    The import takes seconds, so a thread runs it before the first timeout begins.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        litellm: Any = import_module("litellm")
    except ImportError as error:
        raise errors.ConfigError(f"litellm cannot be imported ({error}): {install_command('litellm')}") from error
    litellm.suppress_debug_info = True  # or it prints an advertisement with every error
    litellm.disable_hf_tokenizer_download = True  # or it downloads one to count tokens that a provider did not
    _restrict_clients()
    internal = sys.modules.get("litellm._internal_context")
    unlogged: ContextVar[bool] = getattr(internal, "is_internal_call", ContextVar("unlogged"))
    return litellm, unlogged


@cache
def _warm_up() -> None:
    """Let litellm answer one mock request, since it loads much of its code with the first."""

    def answer() -> None:
        litellm, unlogged = _load()
        unlogged.set(True)
        question = [{"role": "user", "content": "?"}]
        mock = {"mock_response": "!", "num_retries": 0}
        asyncio.run(litellm.acompletion("openai/m", question, api_key="no-key", **mock))

    with suppress(Exception), ThreadPoolExecutor(1) as thread:  # if this fails, the first request is slow
        import_module("openai.resources.chat")
        thread.submit(answer).result()


def _as_provider_json(completion: dict[str, Any]) -> str:
    """Return a completion as the provider sent it: without zeros for uncounted tokens, and with its refusal."""
    usage: dict[str, Any] = completion.get("usage") or {}
    completion["usage"] = {name: value for name, value in usage.items() if value} or None
    for choice in completion["choices"]:
        choice["message"].setdefault("refusal", _own_fields(choice["message"]).get("refusal"))
        if _own_fields(choice).get("native_finish_reason") == "error":
            choice["finish_reason"] = "error"
    return json.dumps(completion)


def _own_fields(part: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a provider that litellm has no field for."""
    return part.get("provider_specific_fields") or {}

"""The litellm provider: any model that litellm can reach. An extra, ``judgekit[litellm]``, imported when it is used.

One attempt per request. What litellm makes of a provider's refusal differs from version to version and from provider to
provider; the HTTP reply that it was made of is still among the error's causes, and is what is read here.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

from judgekit.errors import (
    AuthenticationError,
    ConfigError,
    FormatError,
    JudgeError,
    LostError,
    ModelError,
    UnreachableError,
)
from judgekit.judges.client import Reply, Request
from judgekit.judges.completion import read_completion, refused, shown
from judgekit.judges.connection import chain_of, reason_of, was_sent
from judgekit.judges.openai import response_format
from judgekit.judges.price import Price

_QUIET = {
    "LITELLM_MODE": "PRODUCTION",  # or it reads a .env file
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # or it fetches a table of prices
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # or it fetches a table of headers
}
"""What litellm is told through the environment before it is imported, where the user did not say otherwise."""

_OWN = {400, 401, 402, 403, 404, 429}
"""The statuses of refusals that came without an HTTP error. litellm's others stand for a reply that it could not read."""

_NO_KEY = re.compile(
    r"missing credentials|missing .{0,40}\bapi[ _]key|api[ _]key is not set|locate credentials", re.IGNORECASE
)


class _Clients(Protocol):
    cache_dict: MutableMapping[str, Any]

    def update_cache_key_with_event_loop(self, key: str) -> str: ...
    def delete_cache(self, key: str) -> None: ...


class _Completion(Protocol):
    def model_dump(self, *, warnings: bool) -> dict[str, Any]: ...


class _Litellm(Protocol):
    """What is used of the module."""

    suppress_debug_info: bool
    disable_hf_tokenizer_download: bool | None
    openai_compatible_providers: Sequence[str]
    in_memory_llm_clients_cache: _Clients

    def get_llm_provider(self, model: str, *, api_base: str | None) -> tuple[str, str, str | None, str | None]: ...
    def get_supported_openai_params(self, model: str, custom_llm_provider: str) -> list[str] | None: ...
    async def acompletion(self, **arguments: object) -> _Completion: ...


class LitellmClient:
    """Answers requests through litellm, without its own retries and cache.

    What a program has litellm call after each of its requests is not called after these. litellm follows a server that
    refers to another, and to some providers it sends a request a second time, unasked, if the connection breaks off
    before the reply.

    Args:
        base_url: The server; empty for the provider's own.
        api_key: The key; if ``None``, litellm finds it in the environment under the provider's own name.
        timeout: Seconds for one attempt as a whole, also where the server drips its reply byte by byte.
        price: What tokens cost, where known.

    Raises:
        ConfigError: litellm cannot be imported.
    """

    def __init__(self, *, base_url: str, api_key: str | None, timeout: float, price: Price | None) -> None:
        self._litellm = _load()
        internal = sys.modules.get("litellm._internal_context")
        self._unlogged: ContextVar[bool] = getattr(internal, "is_internal_call", ContextVar("unlogged"))
        """Unless it is set, litellm keeps every reply, to log it when there is time."""
        self._base_url = base_url or None
        self._key = api_key
        self._timeout = timeout
        self._price = price

    async def complete(self, request: Request, /) -> Reply:
        """The reply of the model.

        Raises:
            JudgeError: There is none.
        """
        where = f"{request.judge} at {self._base_url}" if self._base_url else request.judge
        handled = sys.exception()
        _asking.setdefault(asyncio.get_running_loop(), set()).add(self)
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request, where)
        except TimeoutError as error:
            raise LostError(f"{where}: no reply within {self._timeout:g} s") from error
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever litellm raises, and it repeats what the server said
            raise self._refused(chain_of(error, handled), where) from None
        with suppress(JudgeError):
            return read_completion(body.encode(), where, self._price)
        return read_completion(self._hidden(body).encode(), where, self._price)  # whose error shows what was said

    async def _send(self, request: Request, where: str) -> str:
        model, provider, _, _ = self._litellm.get_llm_provider(request.model, api_base=self._base_url)
        form = response_format(request)
        allowed = list(cast("list[str]", request.params.get("allowed_openai_params", [])))
        known = self._litellm.get_supported_openai_params(model, provider)
        if form and known and "response_format" not in [*known, *allowed]:  # litellm may be set to leave it out unseen
            raise FormatError(f"{where}: litellm knows no response_format for this model")
        if provider in self._litellm.openai_compatible_providers:
            allowed.append("max_retries")  # or it gets lost on the way to some of them, which are asked three times
        before = self._unlogged.set(True)
        try:
            completion = await self._litellm.acompletion(
                **{
                    **request.params,
                    **form,
                    "model": request.model,
                    "messages": [turn._asdict() for turn in request.messages],
                    "api_base": self._base_url,
                    "api_key": self._key,
                    "timeout": self._timeout,
                    "num_retries": 0,  # means max_retries as well
                    "caching": False,
                    "allowed_openai_params": allowed,
                }
            )
        finally:
            self._unlogged.reset(before)
        return _as_sent(completion.model_dump(warnings=False))

    def _refused(self, chain: list[BaseException], where: str) -> JudgeError:
        causes = {kind.__name__: cause for cause in chain for kind in type(cause).__mro__}
        if (status_error := causes.get("HTTPStatusError")) is not None:
            response: Any = cast("Any", status_error).response
            return refused(response.status_code, self._hidden(response.text), response.headers.get, where)
        said, root = str(chain[0]), str(chain[-1])
        said = self._hidden(said if root in said else f"{said} {root}")
        found = f"{where}: {shown(said)}"
        if not was_sent(chain):
            return UnreachableError(f"{where}: {self._hidden(reason_of(chain))}")
        if (missing := causes.get("ModuleNotFoundError")) is not None:
            return ModelError(f"{where}: {missing}. litellm needs this package for this model: install it")
        if _NO_KEY.search(said):
            return AuthenticationError(found)
        if (status := getattr(chain[0], "status_code", None)) in _OWN:
            return refused(status, said, lambda _: None, where)
        return LostError(found)

    def _hidden(self, said: str) -> str:
        """What a server said, without the key, which some servers repeat."""
        return said.replace(self._key, "***") if self._key else said

    async def aclose(self) -> None:
        """Closes the connections, if no other client asks through litellm in this event loop."""
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
            cache.delete_cache(key)  # or it is given, closed, to who asks next
        for client in closing:
            await client.close()


_asking: WeakKeyDictionary[asyncio.AbstractEventLoop, set[LitellmClient]] = WeakKeyDictionary()
"""Who asks in which loop. In a loop, litellm has one HTTP client for all who ask the same server, and never closes it."""


def _load() -> _Litellm:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        litellm = cast("_Litellm", import_module("litellm"))  # three seconds, for those who ask
    except ImportError as error:
        raise ConfigError(f"litellm cannot be imported ({error}): pip install 'judgekit[litellm]'") from error
    litellm.suppress_debug_info = True  # or it prints an advertisement with every error
    litellm.disable_hf_tokenizer_download = True  # or it fetches one to count what a provider did not
    return litellm


def _as_sent(completion: dict[str, Any]) -> str:
    """A completion as the provider sent it: no zeros for tokens that it did not count, a refusal where it belongs."""
    usage: dict[str, Any] = completion.get("usage") or {}
    completion["usage"] = {name: value for name, value in usage.items() if value} or None
    for choice in completion["choices"]:
        choice["message"].setdefault("refusal", _own_fields(choice["message"]).get("refusal"))
        if _own_fields(choice).get("native_finish_reason") == "error":
            choice["finish_reason"] = "error"
    return json.dumps(completion)


def _own_fields(part: dict[str, Any]) -> dict[str, Any]:
    """Where litellm puts what it has no field for."""
    return part.get("provider_specific_fields") or {}

"""Requests with JSON to other systems, with secrets masked in errors."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue
from pydantic_core import to_json

from judgekit.errors import AuthenticationError, ExportError
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS, retry_after
from judgekit.judges.providers.secrets import SecretMask, environment_secrets
from judgekit.traces.rendering import cut_middle

if TYPE_CHECKING:
    import httpx

_SHOWN = 500
_RETRIED = {408, 429, 500, 502, 503, 504}
_PAUSE_SECONDS = 2.0


class JsonClient:
    """A client of one server.

    Args:
        address: The address of the server, which paths are appended to.
        headers: The headers of all requests.
        auth: The name and password for basic authentication.
        secrets: What errors must not show, apart from the secrets of the environment.
    """

    def __init__(
        self,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        import httpx  # noqa: PLC0415 - takes a while

        self._masked = SecretMask([*environment_secrets(), *secrets])
        try:
            parts = httpx.URL(address)
        except httpx.InvalidURL as error:
            raise ExportError(self._masked(f"{address!r} is no address: {error}")) from error
        if parts.scheme not in ("http", "https") or not parts.host:
            raise ExportError(self._masked(f"{address!r} is no address: expected http://host or https://host"))
        self.address = str(parts.copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/")
        self._target = address.rstrip("/")
        self._client = httpx.AsyncClient(headers=headers, auth=auth, timeout=30)

    async def post(self, path: str, body: JsonValue, *, accepted: Iterable[int] = ()) -> "httpx.Response":
        """Return the response to a request, whose status is of success or ``accepted``. A busy server is asked again once.

        Raises:
            AuthenticationError: The server refuses the key.
            ExportError: The server refuses the request, or cannot be reached.
        """
        response = await self._send(path, body)
        if response.status_code in _RETRIED:
            pause = retry_after(response.headers.get) or _PAUSE_SECONDS
            await asyncio.sleep(min(pause, MAX_RETRY_AFTER_SECONDS))
            response = await self._send(path, body)
        if response.is_success or response.status_code in accepted:
            return response
        problem = f"{self.address}{path}: HTTP {response.status_code}: {cut_middle(response.text, _SHOWN)}"
        kind = AuthenticationError if response.status_code in (401, 403) else ExportError
        raise kind(self._masked(problem))

    async def _send(self, path: str, body: JsonValue) -> "httpx.Response":
        import httpx  # noqa: PLC0415

        try:
            return await self._client.post(
                f"{self._target}{path}", content=to_json(body), headers={"Content-Type": "application/json"}
            )
        except httpx.TransportError as error:
            raise ExportError(self._masked(f"{self.address}: {type(error).__name__}: {error}")) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

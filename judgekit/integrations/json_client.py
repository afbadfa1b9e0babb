"""Requests with JSON to other systems: retried, and with secrets masked in errors."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import tenacity
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import to_json

from judgekit.errors import AuthenticationError, ExportError
from judgekit.judges.providers.completion import MAX_RETRY_AFTER_SECONDS, retry_after
from judgekit.judges.providers.secrets import SecretMask, environment_secrets
from judgekit.traces.rendering import cut_middle

if TYPE_CHECKING:
    import httpx

_ATTEMPTS = 6
_SHOWN = 500
_RETRIED = {408, 429, 500, 502, 503, 504}
_backoff = tenacity.wait_random_exponential(multiplier=0.5, max=MAX_RETRY_AFTER_SECONDS)

Item = TypeVar("Item", bound=JsonValue)
Model = TypeVar("Model", bound=BaseModel)


class _RetriedError(Exception):
    """A response, or none, after which a retry may help."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        super().__init__(problem)
        self.wait = wait


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
        """Return the response to a request, whose status is of success or ``accepted``.

        Raises:
            AuthenticationError: The server refuses the key.
            ExportError: The server refuses the request, or cannot be reached.
        """
        content = to_json(body)
        asking = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_RetriedError),
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=_wait,
            reraise=True,
        )
        try:
            response: httpx.Response = await asking(self._attempt, path, content)
        except _RetriedError as error:
            raise ExportError(self._masked(f"{self.address}: {error}")) from None
        if response.is_success or response.status_code in accepted:
            return response
        problem = f"{self.address}{path}: HTTP {response.status_code}: {cut_middle(response.text, _SHOWN)}"
        kind = AuthenticationError if response.status_code in (401, 403) else ExportError
        raise kind(self._masked(problem))

    async def _attempt(self, path: str, content: bytes) -> "httpx.Response":
        import httpx  # noqa: PLC0415

        try:
            response = await self._client.post(
                f"{self._target}{path}", content=content, headers={"Content-Type": "application/json"}
            )
        except httpx.TransportError as error:
            raise _RetriedError(f"{type(error).__name__}: {error}") from error
        if response.status_code in _RETRIED:
            wait = retry_after(response.headers.get) or 0.0
            if wait <= MAX_RETRY_AFTER_SECONDS:
                raise _RetriedError(f"HTTP {response.status_code}: {cut_middle(response.text, _SHOWN)}", wait)
        return response

    def parsed(self, response: "httpx.Response", model: type[Model]) -> Model:
        """Return the JSON of a response."""
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            problem = f"{self.address}: cannot read the response: {cut_middle(response.text, _SHOWN)}"
            raise ExportError(self._masked(problem)) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    named = error.wait if isinstance(error, _RetriedError) else 0.0
    return max(_backoff(state), named * random.uniform(1, 1.1))  # noqa: S311 - so that not all retry at once


def split_by_size(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    """Yield the items in parts whose JSON has at most ``most`` bytes, as far as single items allow it."""
    part: list[Item] = []
    size = 0
    for item in items:
        more = len(to_json(item)) + 1
        if part and size + more > most:
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part

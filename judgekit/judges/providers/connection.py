"""Connections to providers: their settings, and the classification of their errors for all HTTP clients."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from judgekit.judges.providers.bodies import MAX_REPLY_BYTES
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.secrets import NO_EXTRAS, RequestExtras

_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
"""Errors of httpx, in both of its versions, that occur before a request is sent."""

_NOT_SENT_BY_AIOHTTP = {"ClientConnectorError", "ConnectionTimeoutError"}
"""The corresponding errors of aiohttp. Errors that other packages derive from them are not conclusive."""


@dataclass(frozen=True)
class Connection:
    """The settings of a connection to a provider.

    Attributes:
        base_url: The server, such as ``https://api.openai.com/v1``; empty for the default of the client.
        api_key: The key; ``None`` if there is none, or the client finds it by itself.
        timeout: Seconds for one attempt as a whole, even if the server sends its reply byte by byte.
        price: The price of tokens, if known.
        extras: Query parameters and headers of every request.
        max_reply_bytes: The maximum size of a reply, decompressed.
        offline: Whether no request may leave this machine, whatever address the client would ask.
    """

    base_url: str
    api_key: str | None = field(repr=False)
    timeout: float
    price: Price | None = None
    extras: RequestExtras = field(default=NO_EXTRAS, repr=False)
    max_reply_bytes: int = MAX_REPLY_BYTES
    offline: bool = False


def error_chain(error: BaseException, handled: BaseException | None) -> list[BaseException]:
    """Return an error and its causes, up to an error that the caller was handling when it sent the request."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause is not handled and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def request_was_sent(chain: Sequence[BaseException]) -> bool:
    """Return whether a request had been sent when it failed, by the error and its causes."""
    names = {name for cause in chain for name in _names(cause)}
    return names.isdisjoint(_NOT_SENT_BY_AIOHTTP if "ClientConnectionError" in names else _NOT_SENT)


def connection_failure(chain: Sequence[BaseException]) -> str:
    """Return why a request was not sent, such as ``ConnectionRefusedError: [Errno 111] Connect call failed``.

    The reason is that of the operating system, or else of the HTTP client.
    """
    system = [cause for cause in chain if isinstance(cause, OSError) and str(cause)]
    client = [cause for cause in chain if _names(cause) & (_NOT_SENT | _NOT_SENT_BY_AIOHTTP)]
    cause = (system or client)[-1]
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}

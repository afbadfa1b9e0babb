"""Who may use the server: only the browser of the person who started it, and only pages of its own."""

import secrets
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN_PATH = "/open"
_OWN_PAGES = {b"same-origin", b"none"}  # none: an address that a person entered or opened
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_FRAMES = b"frame-ancestors 'none'"
_NOTHING = b"default-src 'none'; frame-ancestors 'none'"
_OPENED = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>judgekit</title><a href="/">judgekit</a>'


def _token() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """The addresses of a server, and its secrets.

    Attributes:
        host: The host name or address in its URL.
        port: Its port.
        token: Opens the pages: the URL that is opened has it, and becomes a cookie. Other users of the machine lack it.
        write_token: Is in each page, and in a header of each request that writes. Pages of other servers lack it.
    """

    host: str
    port: int
    token: str = field(default_factory=_token, repr=False)
    write_token: str = field(default_factory=_token, repr=False)

    @property
    def url(self) -> str:
        """The URL that opens the pages."""
        return f"http://{self.host}:{self.port}{OPEN_PATH}?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the server answers: a foreign name may have been made to lead here."""
        names: Iterable[str] = LOOPBACK if self.host in LOOPBACK else (self.host,)
        return frozenset(f"{name}:{self.port}".lower() for name in names)

    @property
    def cookie(self) -> str:
        """The name of the cookie. Servers on other ports of this machine get it too, so each has its own."""
        return f"judgekit-{self.port}"


class Guard:
    """Refuses requests that are not from the pages of the person who started the server."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        response = self._answer(scope)
        await (self._app if response is None else response)(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that opens the pages or is refused; ``None`` for others."""
        access = self._access
        headers: dict[bytes, list[bytes]] = {}
        for name, text in scope["headers"]:
            headers.setdefault(name.lower(), []).append(text)
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in access.hosts:
            return _refused("this server does not have that name")
        if any(origin.lower() != b"http://" + hosts[0].lower() for origin in origins):
            return _refused("requests of other pages are refused")
        method, path = scope["method"], scope["path"]
        if path == OPEN_PATH and method == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if len(given) != 1 or not _is_equal(given[0], access.token):
                return _refused("this is not the address that judgekit view printed")
            # The browser goes on by itself: a redirect of a link in a file or another page would lack the cookie.
            opened = Response(_OPENED, media_type="text/html")
            opened.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
            return opened
        if any(site not in _OWN_PAGES for site in headers.get(b"sec-fetch-site", [])):
            return _refused("requests of other pages are refused")
        if not any(_is_equal(token, access.token) for token in _cookies(headers.get(b"cookie", []), access.cookie)):
            return _refused("open the address that judgekit view printed")
        if method in ("GET", "HEAD"):
            return None
        if method != "POST":
            return PlainTextResponse("only GET and POST are answered", 405)
        tokens = headers.get(b"x-judgekit-token", [])
        if len(tokens) != 1 or not _is_equal(tokens[0].decode("latin-1"), access.write_token):
            return _refused("only the pages of this server may write")
        kinds = [kind.partition(b";")[0].strip().lower() for kind in headers.get(b"content-type", [])]
        return None if kinds == [b"application/json"] else PlainTextResponse("expected application/json", 415)


def _refused(why: str) -> Response:
    return PlainTextResponse(f"refused: {why}", 403)


def _is_equal(given: str, secret: str) -> bool:
    return compare_digest(given.encode(), secret.encode())


def _cookies(headers: Iterable[bytes], name: str) -> list[str]:
    cookies: list[str] = []
    for header in headers:
        try:
            morsel = SimpleCookie(header.decode("latin-1")).get(name)
        except CookieError:
            continue
        if morsel is not None:
            cookies.append(morsel.value)
    return cookies


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = message.setdefault("headers", [])
            # The policy within a page names its scripts; nothing else that is answered may run or load anything.
            policy = _FRAMES if _kind(message).startswith(b"text/html") else _NOTHING
            message["headers"] = [*headers, *_HEADERS, (b"content-security-policy", policy)]
        await send(message)

    return sending


def _kind(message: MutableMapping[str, Any]) -> bytes:
    return next((text for name, text in message["headers"] if name == b"content-type"), b"")

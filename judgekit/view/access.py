"""Who may use the server: only the browser of the person who started it, and only pages of its own."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_OWN_PAGES = {b"same-origin", b"none"}  # none: an address that a person entered or opened
_HEADERS = (
    *((b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY"), (b"cache-control", b"no-store")),
    *((b"cross-origin-opener-policy", b"same-origin"), (b"cross-origin-resource-policy", b"same-origin")),
    (b"referrer-policy", b"no-referrer"),
)
_OPENED = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>judgekit</title><a href="/">judgekit</a>'


@dataclass(frozen=True)
class Access:
    """The address of a server, and its secrets, which other users of the machine and pages of other servers lack.

    ``token`` is in the URL that opens the pages, and then in a cookie; ``write_token`` is in each page, and in a header of
    each request that writes.
    """

    host: str
    port: int
    token: str = field(default_factory=secrets.token_urlsafe, repr=False)
    write_token: str = field(default_factory=secrets.token_urlsafe, repr=False)

    @property
    def url(self) -> str:
        """The URL that opens the pages."""
        return f"http://{self.host}:{self.port}/open?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the server answers: a foreign name may have been made to lead here."""
        names = LOOPBACK if self.host in LOOPBACK else (self.host,)
        return frozenset(f"{name}:{self.port}".lower() for name in names)

    @property
    def cookie(self) -> str:
        """The cookie. Servers on other ports of this machine get it too, so its name has the port."""
        return f"judgekit-{self.port}={self.token}"


class Guard:
    """Refuses requests that are not from the pages of the person who started the server."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_page = any(
                    kind.startswith(b"text/html") for name, kind in message["headers"] if name == b"content-type"
                )
                # The policy within a page names its scripts; nothing else that is answered may run or load anything.
                policy = b"frame-ancestors 'none'" if is_page else b"default-src 'none'; frame-ancestors 'none'"
                message["headers"] = [*message["headers"], *_HEADERS, (b"content-security-policy", policy)]
            await send(message)

        await (self._answer(scope) or self._app)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that opens the pages or is refused; ``None`` for others."""
        access, method = self._access, scope["method"]
        headers: dict[str, list[bytes]] = {}
        for name, text in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(text)
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in access.hosts:
            return _refused("this server does not have that name")
        if any(origin.lower() != b"http://" + hosts[0].lower() for origin in headers.get("origin", [])):
            return _refused("requests of other pages are not answered")
        if scope["path"] == "/open" and method == "GET":
            given = parse_qs(scope["query_string"]).get(b"token", [])
            if not _is_only(given, access.token):
                return _refused("this is not the address that judgekit view printed")
            # The page leads on by itself: after a link in a file or in another page, a redirect would lack the cookie.
            cookie = f"{access.cookie}; HttpOnly; SameSite=Strict; Path=/"
            return Response(_OPENED, media_type="text/html", headers={"set-cookie": cookie})
        if not _OWN_PAGES.issuperset(headers.get("sec-fetch-site", [])):
            return _refused("requests of other pages are not answered")
        cookies = [cookie.strip() for line in headers.get("cookie", []) for cookie in line.split(b";")]
        if not any(_is_only([cookie], access.cookie) for cookie in cookies):
            return _refused("open the address that judgekit view printed")
        if method == "POST":
            if not _is_only(headers.get("x-judgekit-token", []), access.write_token):
                return _refused("only pages of this server may write")
            kinds = [kind.partition(b";")[0].strip().lower() for kind in headers.get("content-type", [])]
            return None if kinds == [b"application/json"] else PlainTextResponse("expected application/json", 415)
        return None if method in ("GET", "HEAD") else PlainTextResponse("only GET and POST are answered", 405)


def _refused(why: str) -> Response:
    return PlainTextResponse(f"refused: {why}", 403)


def _is_only(given: Sequence[bytes], secret: str) -> bool:
    return len(given) == 1 and compare_digest(given[0], secret.encode())

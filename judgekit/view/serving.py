"""The server of the pages, on this machine, and the browser that shows them."""

import socket
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Thread

import uvicorn

from judgekit.errors import ConfigError
from judgekit.view.access import LOOPBACK, Access
from judgekit.view.app import App
from judgekit.view.pages import Pages

_OTHERS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 - which are refused
_SHUTDOWN_SECONDS = 1


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any free one.

    Raises:
        ConfigError: The address cannot be used, or stands for all addresses of the machine.
    """
    if host in _OTHERS:
        raise ConfigError(f"--host {host}: name one address or host name of this machine, by which browsers call it")
    try:
        family, kind, *_, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen()
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(f"cannot serve at {host}, port {port}: {error}; name another --port or --host") from error
    return bound


def server(pages: Pages, access: Access) -> uvicorn.Server:
    """Return the server of the pages of a file of runs."""
    config = uvicorn.Config(
        App(pages, access).asgi(),
        lifespan="off",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)


def serve(path: Path, host: str, port: int, *, opens: bool, show: Callable[[str], None]) -> None:
    """Serve the pages of a file of runs until the process is interrupted.

    Args:
        path: The file of runs.
        host: The host name or address.
        port: The port; 0 is any free one.
        opens: Whether to open a browser.
        show: Shows a line to the person.
    """
    pages = Pages(path)
    pages.version()  # raises if there are no runs
    with bind(host, port) as bound, tempfile.TemporaryDirectory() as folder:
        access = Access(host, bound.getsockname()[1])
        show(f"{path}: {access.url}")
        if host not in LOOPBACK:
            show("others on the network can reach this server, and what it sends is not encrypted")
        if opens:
            # Other users can read the arguments of a browser, but not this file.
            page = Path(folder) / "open.html"
            page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(access.url)}">')
            Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        show("stop it with Ctrl+C")
        with suppress(KeyboardInterrupt):
            server(pages, access).run(sockets=[bound])

"""The server of the pages, on this machine, and the browser that shows them."""

import socket
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from judgekit.errors import ConfigError
from judgekit.view.access import Access
from judgekit.view.app import App
from judgekit.view.pages import Pages


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at one address of this machine; port 0 is any free one."""
    if host in ("", "0.0.0.0", "::", "[::]"):  # noqa: S104 - which are refused
        raise ConfigError(f"--host {host}: name one address or host name of this machine, by which browsers call it")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise ConfigError(f"cannot serve at {host}, port {port}: {error}; name another --port or --host") from error


def server(pages: Pages, access: Access) -> uvicorn.Server:
    """Return the server of the pages of a file of runs."""
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    app = App(pages, access, lambda: running.should_exit).asgi()
    running = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", timeout_graceful_shutdown=3, **quiet))
    return running


def serve(path: Path, host: str, port: int, show: Callable[[str], None], *, opens: bool) -> None:
    """Serve the pages of a file of runs, and open a browser if asked, until the process is interrupted."""
    pages = Pages(path)
    pages.version()  # raises if there are no runs
    with bind(host, port) as bound, tempfile.TemporaryDirectory() as folder:
        access = Access(host, bound.getsockname()[1])
        show(f"{path}: {access.url} (Ctrl+C stops it)")
        if opens:
            # Other users can read the arguments of a browser, but not this file.
            page = Path(folder) / "open.html"
            page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={access.url}">')
            Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server(pages, access).run(sockets=[bound])

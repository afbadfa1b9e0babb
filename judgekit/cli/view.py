"""``judgekit view``: show all runs in the browser."""

from importlib.util import find_spec
from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.errors import ConfigError
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.terminal import console


@app.command()
def view(
    host: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The address to serve at: of this machine alone by default. Others reach it under another name, such as its "
            "host name, with the address that is printed; nothing is encrypted.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 is any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; only print the address.")] = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Show all runs in the browser, with their samples, comparisons, failures and audits.

    People label there too: labels are stored as they are given. Pages follow runs that are going on. The judges are never
    asked.
    """
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise ConfigError(f"judgekit view needs {' and '.join(missing)}: pip install starlette uvicorn")
    from judgekit.view.serving import serve  # noqa: PLC0415 - an extra

    err = console(stderr=True)
    serve(store, host, port, opens=not no_open, show=lambda line: print_line(line, err))

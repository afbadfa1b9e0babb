"""``judgekit view``: show all runs in the browser."""

from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.distribution import install_command
from judgekit.errors import ConfigError
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.terminal import console


@app.command()
def view(
    host: Annotated[
        str, options.option("NAME", "Serve to others, under this host name or address; nothing is encrypted.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 is any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; only print the address.")] = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Show all runs in the browser.

    With their samples, comparisons, failures and audits. People label there too. Pages follow runs that are going on, and never ask a judge.
    """
    try:
        from judgekit.view.serving import serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(f"judgekit view needs starlette and uvicorn: {install_command('view')}") from error
    err = console(stderr=True)
    serve(store, host, port, lambda line: print_line(line, err), opens=not no_open)

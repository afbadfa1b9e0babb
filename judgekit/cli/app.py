"""The application that all commands belong to."""

import sys
from io import TextIOWrapper
from typing import Annotated, cast

import typer

import judgekit
from judgekit.errors import JudgekitError
from judgekit.reports.terminal import console, printable_lines

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Scores recorded agent conversations, and explains every score.",
)


def main() -> None:
    """Runs the command line; what is raised on purpose is said in words."""
    # A letter that the terminal does not have is no reason to stop.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except (JudgekitError, OSError) as error:
        console(stderr=True).print(f"judgekit: {printable_lines(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(judgekit.__version__)
        raise typer.Exit

"""The application that all commands belong to."""

import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, cast

import typer

import judgekit
from judgekit.errors import JudgekitError

COMMANDS = {
    "audit": "audit",
    "cache": "cache",
    "compare": "compare",
    "demo": "run",
    "run": "run",
    "resume": "run",
    "score": "run",
    "compare-judges": "compare_judges",
    "convert": "convert",
    "doctor": "doctor",
    "inspect": "inspect",
    "label": "label",
    "scorers": "lists",
    "formats": "lists",
    "schema": "lists",
    "pair": "pair",
    "probe": "probe",
    "runs": "runs",
}
"""The module of each command, in the order in which help lists them."""

LARGEST = 2**63 - 1
"""The largest number that SQLite and most of Python take."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Scores recorded agent conversations, and explains every score.",
)


def load_commands(words: Sequence[str]) -> None:
    """Import the module of the command that is called, or all of them, since help and some errors list all commands."""
    if words != ["--version"]:
        for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
            import_module(f"judgekit.cli.{COMMANDS[name]}")


def main() -> None:
    """Run the command line. Errors that are raised on purpose are printed without a traceback."""
    load_commands(sys.argv[1:])
    # A character that the terminal cannot show is no reason to stop.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except (JudgekitError, OSError) as error:
        from judgekit.terminal import console, printable_lines  # noqa: PLC0415 - slow to import

        console(stderr=True).print(f"judgekit: {printable_lines(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(judgekit.__version__)
        raise typer.Exit

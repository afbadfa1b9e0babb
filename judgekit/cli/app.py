"""The application that all commands belong to."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

import judgekit
from judgekit.distribution import NAME, other_owners
from judgekit.errors import JudgekitError

_GROUPS = {
    "Score": {"run": "run", "resume": "run", "score": "run", "merge": "merge", "scorers": "lists", "demo": "run"},
    "Results": {
        "runs": "runs",
        "show": "show",
        "failures": "failures",
        "view": "view",
        "compare": "compare",
        "plan-comparison": "plan_comparison",
        "export": "export",
    },
    "Judges": {
        "label": "label",
        "plan-labels": "plan_labels",
        "audit": "audit",
        "align": "align",
        "anchors": "anchors",
        "compare-judges": "compare_judges",
        "doctor": "doctor",
        "probe": "probe",
        "cache": "cache",
    },
    "Recordings": {
        "inspect": "inspect",
        "init": "init",
        "convert": "convert",
        "pair": "pair",
        "formats": "lists",
        "schema": "lists",
        "skill": "skill",
    },
}
"""The module of each command, as help lists them."""

COMMAND_MODULES = {name: module for group in _GROUPS.values() for name, module in group.items()}

MAX_INTEGER = 10**9
"""The largest count that an option takes: one that SQLite and Python can use, and that help can show."""


class _Grouped(TyperGroup):
    """A group of commands whose help has a heading for each kind of them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # click's, which some versions of typer have within
        width = max(map(len, COMMAND_MODULES))
        for title, names in _GROUPS.items():
            with formatter.section(title):
                commands = ((name, self.get_command(ctx, name)) for name in names)
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width - width - 4))
                        for name, command in commands
                        if command is not None
                    ]
                )


app = typer.Typer(
    cls=_Grouped,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Scores recorded agent conversations, and explains every score.",
)


def load_commands(words: Sequence[str]) -> None:
    """Import the module of the command that is called, or all of them, since help and some errors list all commands."""
    for name in words[:1] if words and words[0] in COMMAND_MODULES else COMMAND_MODULES:
        import_module(f"judgekit.cli.{COMMAND_MODULES[name]}")


def main() -> None:
    """Run the command line. Errors that are raised on purpose are printed without a traceback."""
    completed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""  # what a shell completes
    load_commands(sys.argv[1:] or completed.split()[1:])
    # A character that the terminal cannot show is no reason to stop.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except (JudgekitError, OSError) as error:
        from judgekit.terminal import console, printable_lines  # noqa: PLC0415 - slow to import

        console(stderr=True).print(f"judgekit: {printable_lines(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        typer.echo(judgekit.__version__)
        warn_of_other_owners()
        raise typer.Exit


def warn_of_other_owners() -> None:
    """Report on stderr if other software in this environment has the import name judgekit, too."""
    for owner in other_owners():
        text = f"{owner} in this environment installs a package judgekit too, and either may have replaced files of the other"
        typer.echo(f"judgekit: {text}: pip uninstall {owner} {NAME}, then install {NAME} again", err=True)

"""Write the reference pages that are generated: the command line's, and that of the errors.

Run ``python docs/generate.py`` after a change to a command or an error; a test says when. The other reference pages are
generated from docstrings when the site is built.
"""

import re
import sys
import typing
from collections.abc import Iterator
from inspect import Parameter, cleandoc, getdoc, signature
from pathlib import Path
from types import NoneType
from typing import Any

import typer
from typer.models import ArgumentInfo, CommandInfo, OptionInfo

from judgekit import errors
from judgekit.cli.app import COMMAND_MODULES, MAX_INTEGER, app, load_commands

REFERENCE = Path(__file__).parent / "reference"
HELP = "# Command line\n\nEvery command and its options, as `judgekit COMMAND --help` shows them.\n"
ERRORS = """# Errors

Every error that judgekit raises on purpose. [Judges](../judges.md#retries-and-errors) says which of them
fail one score, and which stop a judge's scorers or the run.
"""
TYPES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "FILE"}


def command_line() -> str:
    """Return the page of the command line."""
    load_commands(["--help"])
    commands = {_name(one): one for one in app.registered_commands}
    groups = {
        group.name: group.typer_instance for group in app.registered_groups
    }
    sections = [HELP]
    for name in COMMAND_MODULES:
        if name in commands:
            sections += _command(("judgekit", name), commands[name], "##")
        else:
            sections += _group(
                ("judgekit", name), typing.cast("typer.Typer", groups[name])
            )
    return "\n".join(sections)


def _name(command: CommandInfo) -> str:
    return command.name or typing.cast("Any", command.callback).__name__.strip(
        "_"
    ).replace("_", "-")


def _group(words: tuple[str, ...], group: typer.Typer) -> Iterator[str]:
    yield f"## {' '.join(words)}\n"
    yield f"{group.info.help}\n"
    for command in group.registered_commands:
        yield from _command((*words, _name(command)), command, "###")


def _command(
    words: tuple[str, ...], command: CommandInfo, heading: str
) -> Iterator[str]:
    callback: Any = command.callback
    hints = typing.get_type_hints(callback, include_extras=True)
    arguments: list[str] = []
    usage = [*words]
    options: list[str] = []
    for name, parameter in signature(callback).parameters.items():
        (info,) = (
            one
            for one in hints[name].__metadata__
            if isinstance(one, ArgumentInfo | OptionInfo)
        )
        kind = hints[name].__origin__
        if isinstance(info, ArgumentInfo):
            shown = info.metavar or name.upper()
            usage.append(
                f"[{shown}]"
                if parameter.default is not Parameter.empty
                else shown
            )
            arguments.append(_row(shown, info, kind, parameter.default))
        else:
            options.append(
                _row(_declared(name, info, kind), info, kind, parameter.default)
            )
    if options:
        usage.insert(len(words), "[OPTIONS]")
    yield f"{heading} {' '.join(words)}\n"
    yield f"```text\n{' '.join(usage)}\n```\n"
    yield f"{cleandoc(getdoc(callback) or '')}\n"
    for title, rows in (("Argument", arguments), ("Option", options)):
        if rows:
            yield "\n".join((f"| {title} | |", "|---|---|", *rows, ""))


def _declared(name: str, info: OptionInfo, kind: object) -> str:
    """The names of an option, and its value: ``-o, --output FILE``."""
    names = [
        one
        for one in (info.default, *(info.param_decls or ()))
        if isinstance(one, str)
    ]
    if not any(one.startswith("--") for one in names):
        names.append(f"--{name.replace('_', '-')}")
    shown = ", ".join(sorted(names, key=len))
    is_flag = bool in (kind, *typing.get_args(kind))
    return shown if is_flag else f"{shown} {info.metavar or _metavar(kind)}"


def _metavar(kind: Any) -> str:
    if kind in TYPES:
        return TYPES[kind]
    inner = [one for one in typing.get_args(kind) if one is not NoneType]
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(map(str, inner))
    return _metavar(inner[0])


def _row(
    shown: str, info: ArgumentInfo | OptionInfo, kind: object, default: object
) -> str:
    """A row of a table: names, help, and below it what is required, the default and the range."""
    text = re.sub(r"(?<![\w`])(--[a-z][a-z-]+)", r"`\1`", info.help or "")
    if (
        isinstance(info, ArgumentInfo)
        and typing.get_origin(kind) is typing.Literal
    ):
        text += (
            f" One of {', '.join(f'`{one}`' for one in typing.get_args(kind))}."
        )
    if default is Parameter.empty:
        text += " Required."
    elif default is not None and kind is not bool:
        text += f" Default: `{default.as_posix() if isinstance(default, Path) else default}`."
    if info.min is not None and (info.max is None or info.max >= MAX_INTEGER):
        text += f" At least {info.min}."
    elif info.min is not None:
        text += f" From {info.min} to {info.max:,}."
    cells = (f"`{shown}`", text.strip())
    return (
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    )


def error_page() -> str:
    """Return the page of the errors: the tree of them, and a directive for each."""
    (tree,) = re.findall(
        r"^JudgekitError\n(?:[├└│ ].*\n)+",
        cleandoc(errors.__doc__ or "") + "\n",
        re.MULTILINE,
    )
    root, *others = re.findall(r"^[├└│─ ]*(\w+)", tree, re.MULTILINE)
    names = [
        f"judgekit.{root}",
        *(f"judgekit.errors.{name}" for name in others),
    ]
    directives = "\n".join(
        f"::: {name}\n    options:\n      show_bases: true\n" for name in names
    )
    return "\n".join((ERRORS, f"```text\n{tree}```\n", directives))


PAGES = {
    REFERENCE / "cli.md": command_line,
    REFERENCE / "errors.md": error_page,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        old = [
            path.name
            for path, page in PAGES.items()
            if path.read_text(encoding="utf-8") != page()
        ]
        sys.exit(
            f"out of date: {', '.join(old)}; run python docs/generate.py"
            if old
            else 0
        )
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")

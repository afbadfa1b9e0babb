"""Write the generated reference pages (command line, JSON of commands, config file, errors), and all pages' descriptions.

Run ``python docs/generate.py`` after a change to a command, a setting, an error or ``llms.txt``, which has the
descriptions; a test says when. The other reference pages are generated from docstrings when the site is built.
"""

import json
import re
import sys
import types
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import Parameter, cleandoc, getdoc, signature
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo, CommandInfo, OptionInfo

from json_shapes import json_page
from judgekit import errors
from judgekit.cli.app import COMMAND_MODULES, MAX_INTEGER, app, load_commands
from judgekit.config_file import ConfigFile
from judgekit.judges.limits.budget import Budget
from judgekit.judges.providers.price import Price
from judgekit.judges.settings import JudgeSettings
from judgekit.traces.images import ImageSettings

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
HELP = "# Command line\n\nEvery command and its options, as `judgekit COMMAND --help` shows them.\n"
SHARED = "## Shared options\n\nArguments and options that several commands have. Each command lists their names after its own.\n"
ERRORS = """# Errors

Every error that judgekit raises on purpose. [Judges](../judges.md#retries-and-errors) says which of them
fail one score, and which stop a judge's scorers or the run.
"""
CONFIG = """# judgekit.toml

Every key of the config file. judgekit reads `judgekit.toml` in the working folder, or the file that `--config` names.
Relative paths (`cache`, prompt files, scorers of your own) start at its folder. Keys of a [judge](../judges.md) are also
the settings of `Judge` in Python.
"""
SCORER_KEYS = """## [[scorers]]

The scorers of a run that names none with `--scorer`. Each is a table, or a text as after `--scorer`:
`scorers = ["tool_call_f1", "prompt:tone"]`.

- `name` (text): Required. A name of `judgekit scorers`, or your own as `file.py:NAME` or `package.module:NAME`.
- `as` (text): The name of the scores, so that a scorer may be there twice.
- `judge` (text): The judge: its name in the file, or a model. By default, that of `--judge`, of `JUDGEKIT_JUDGE`, or `default`.
- `long` (`"shorten"` or `"parts"`): What its judge does with a longer recording.
- `repeats` (whole number or `"auto"`): Ask so many times, for the majority; `"auto"`: until one answer has a clear lead.
- `min_confidence` (number): Abstain, or escalate, if the judge is less confident.
- `escalate` (table): The scorer to ask then; or `{judge = "large", below = 0.8}`: the same question to another judge.
- all options of the scorer: `judgekit scorers` and [Python](judged-scorers.md) list them.

`judge`, `long`, `repeats`, `min_confidence` and `escalate` are for [scorers that ask a judge](../judged-scorers.md).

## Environment variables

- `JUDGEKIT_JUDGE`: the judge of scorers that name none.
- `JUDGEKIT_REDIS_URL`: the address of a shared cache, with `cache = {env = "JUDGEKIT_REDIS_URL"}`.
- `JUDGEKIT_CACHE_SECRET` [signs](../scale.md#who-may-write-to-it) the replies in a shared cache.
- `OPENAI_API_KEY` and others: the keys of providers, under the providers' usual names.
"""
TABLES: Sequence[tuple[str, str, type[BaseModel]]] = (
    ("Top level", "`judges` and `scorers` are described below.", ConfigFile),
    ("[judges.NAME]", "A judge. One named `default` is asked if nothing names another.", JudgeSettings),
    ("price", "US dollars per million tokens: `price = {input = 0.1, output = 0.5}`.", Price),
    ("budget", "`budget = {usd = 5.0, requests = 1000}`.", Budget),
    ("images", "`images = true`, or a table.", ImageSettings),
)
ONLY_IN_PYTHON = {"client"}
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", dict: "table", Path: "path"}
TYPES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "FILE"}


class Entry(NamedTuple):
    """A command as the page shows it, or a group of commands, which has no options."""

    heading: str
    description: str
    options: Sequence[str]


def command_line() -> str:
    """Return the page of the command line."""
    load_commands(["--help"])
    commands = {_name(one): one for one in app.registered_commands}
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    entries: list[Entry] = []
    for name in COMMAND_MODULES:
        if name in commands:
            entries.append(_command(("judgekit", name), commands[name], "##"))
        else:
            entries += _group(("judgekit", name), typing.cast("typer.Typer", groups[name]))
    counts = Counter(row for entry in entries for row in entry.options)
    shared = {_option_name(row): row for row, count in reversed(counts.most_common()) if count > 1}
    sections = [HELP, SHARED, "\n".join((*(shared[name] for name in sorted(shared)), ""))]
    for entry in entries:
        sections.append(f"{entry.heading}\n")
        sections.append(f"{entry.description}\n")
        own = [row for row in entry.options if row not in shared.values()]
        if named := [_option_name(row) for row in entry.options if row in shared.values()]:
            own.append(f"- also {', '.join(f'`{name}`' for name in named)}")
        sections += ["\n".join((*own, ""))] if own else []
    return "\n".join(sections)


def _option_name(row: str) -> str:
    """Return an option's long name in a row, ``--output`` in ``- `-o, --output FILE`: ...``, or an argument's name."""
    shown = str(re.findall("^- `([^`]+)`", row)[0])
    return next((word.rstrip(",") for word in shown.split() if word.startswith("--")), shown)


def _name(command: CommandInfo) -> str:
    return command.name or typing.cast("Any", command.callback).__name__.strip("_").replace("_", "-")


def _group(words: tuple[str, ...], group: typer.Typer) -> Iterator[Entry]:
    yield Entry(f"## {' '.join(words)}", str(group.info.help), ())
    for command in group.registered_commands:
        yield _command((*words, _name(command)), command, "###")


def _command(words: tuple[str, ...], command: CommandInfo, heading: str) -> Entry:
    callback: Any = command.callback
    hints = typing.get_type_hints(callback, include_extras=True)
    options: list[str] = []
    for name, parameter in signature(callback).parameters.items():
        (info,) = (one for one in hints[name].__metadata__ if isinstance(one, ArgumentInfo | OptionInfo))
        kind = hints[name].__origin__
        shown = info.metavar or name.upper() if isinstance(info, ArgumentInfo) else _declared(name, info, kind)
        options.append(_row(shown, info, kind, parameter.default))
    return Entry(f"{heading} {' '.join(words)}", cleandoc(getdoc(callback) or ""), options)


def _declared(name: str, info: OptionInfo, kind: object) -> str:
    """The names of an option, and its value: ``-o, --output FILE``."""
    names = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
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


def _row(shown: str, info: ArgumentInfo | OptionInfo, kind: object, default: object) -> str:
    """An item of a list: names, help, and what is required, the default and the range."""
    text = re.sub(r"(?<![\w`])(--[a-z][a-z-]+)", r"`\1`", info.help or "")
    if isinstance(info, ArgumentInfo) and typing.get_origin(kind) is typing.Literal:
        text += f" One of {', '.join(f'`{one}`' for one in typing.get_args(kind))}."
    if default is Parameter.empty:
        text += " Required."
    elif default is not None and kind is not bool:
        text += f" Default: `{default.as_posix() if isinstance(default, Path) else default}`."
    if info.min is not None and (info.max is None or info.max >= MAX_INTEGER):
        text += f" At least {info.min}."
    elif info.min is not None:
        text += f" From {info.min} to {info.max:,}."
    return f"- `{shown}`: {text.strip()}"


def config_page() -> str:
    """Return the page of the config file: a table of keys for each of its tables."""
    sections = [CONFIG]
    for title, text, model in TABLES:
        meanings = _attributes(model)
        rows = [
            f"- `{name}` ({_value(field)}): {_meaning(meanings[name], field)}"
            for name, field in model.model_fields.items()
            if name not in ONLY_IN_PYTHON
        ]
        sections.append("\n".join((f"## {title}\n", f"{text}\n", *rows, "")))
    return "\n".join((*sections, SCORER_KEYS))


def _attributes(model: type[BaseModel]) -> dict[str, str]:
    """Return the descriptions of a model's fields in its docstring."""
    (section,) = re.findall(r"^Attributes:\n((?:    .*\n?)+)", cleandoc(model.__doc__ or ""), re.MULTILINE)
    entries = re.split(r"^    (?=\w+: )", section, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, _, text in (entry.partition(": ") for entry in entries)}


def _value(field: FieldInfo) -> str:
    """Return what a key of the config file may be."""
    return " or ".join(dict.fromkeys(_words(field.annotation)))


def _words(kind: Any) -> Iterator[str]:
    origin = typing.get_origin(kind)
    inner = [one for one in typing.get_args(kind) if one is not NoneType]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield "true or a table" if kind is ImageSettings else "table"
    elif kind in WORDS:
        yield WORDS[kind]
    elif origin is typing.Literal:
        yield "text"
    elif origin is tuple:
        yield "list"
    elif origin is dict:
        yield "table"
    elif origin in (typing.Union, types.UnionType, typing.Annotated):
        for one in inner[: 1 if origin is typing.Annotated else None]:
            yield from _words(one)


def _meaning(text: str, field: FieldInfo) -> str:
    """Return a key's description as Markdown, with its default if the description does not name it."""
    text = re.sub(r"``(.+?)``", r"`\1`", re.sub(r" (\(see `\w+`\)|See `[\w.]+`\.)", "", text))
    text = re.sub(r'"([\w-]+)": ', r"\1 = ", text).replace("`True`", "`true`")  # as TOML has them
    default = field.default
    if isinstance(default, int | float) and not isinstance(default, bool) and "by default" not in text.lower():
        text += f" Default: {default:,}."
    return f"Required. {text}" if field.is_required() else text


def error_page() -> str:
    """Return the page of the errors: the tree of them, and a directive for each."""
    (tree,) = re.findall(r"^JudgekitError\n(?:[├└│ ].*\n)+", cleandoc(errors.__doc__ or "") + "\n", re.MULTILINE)
    root, *others = re.findall(r"^[├└│─ ]*(\w+)", tree, re.MULTILINE)
    names = [f"judgekit.{root}", *(f"judgekit.errors.{name}" for name in others)]
    directives = "\n".join(f"::: {name}\n" for name in names)
    return "\n".join((ERRORS, f"```text\n{tree}```\n", directives))


PAGES = {
    REFERENCE / "cli.md": command_line,
    REFERENCE / "config.md": config_page,
    REFERENCE / "errors.md": error_page,
    REFERENCE / "json.md": json_page,
}


def described_pages() -> Iterator[tuple[Path, str]]:
    """Yield the pages that ``llms.txt`` lists, each with its text under its description, which search engines show."""
    listed = re.findall(r"^- \[.+\]\((.+)/\): (.+)$", (DOCS / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    for name, description in listed:
        path = DOCS / f"{name}.md"
        text = PAGES[path]() if path in PAGES else path.read_text(encoding="utf-8")
        text = re.sub(r"\A---\n.*?\n---\n\n", "", text, flags=re.DOTALL)
        yield path, f"---\ndescription: {json.dumps(description[0].upper() + description[1:], ensure_ascii=False)}\n---\n\n{text}"


if __name__ == "__main__":
    changed = [(path, text) for path, text in described_pages() if path.read_text(encoding="utf-8") != text]
    if sys.argv[1:] == ["--check"]:
        old = ", ".join(path.name for path, _ in changed)
        sys.exit(f"out of date: {old}; run python docs/generate.py" if old else 0)
    for path, text in changed:
        path.write_text(text, encoding="utf-8")

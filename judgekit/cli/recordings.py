"""What commands are told of the recordings that they read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from judgekit.errors import ConfigError

Recorded: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="Recorded conversations or dataset rows: a file, a folder, a pattern such as 'logs/*.json', or - for standard input."
    ),
]
Format: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The file's format: of judgekit formats, or your own as MODULE:NAME; detected if not given.",
    ),
]
Column: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="THEIRS=OURS", help="A column under another name, such as question=input; may be repeated."),
]
Encoding: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The file's encoding, if it is neither UTF-8 nor GB18030.")
]


def columns_of(texts: Sequence[str]) -> dict[str, str]:
    """What other names columns have, from texts such as ``question=input``."""
    columns: dict[str, str] = {}
    for text in texts:
        theirs, equals, ours = text.rpartition("=")
        if not (theirs and equals and ours):
            raise ConfigError(f"--column {text}: expected THEIRS=OURS, such as question=input")
        if theirs in columns:
            raise ConfigError(f"--column {text}: {theirs!r} is given twice")
        columns[theirs] = ours
    return columns

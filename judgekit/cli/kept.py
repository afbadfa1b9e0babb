"""What commands are told of the runs that are kept."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from judgekit.errors import ConfigError
from judgekit.reports.export import KINDS, must_be_writable

_DIGITS = 18

Kept: TypeAlias = Annotated[Path, typer.Option("--store", help="The file in which runs are kept.")]
Output: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the run to a file, as its name says: .html, .jsonl, .csv, .parquet, .xml (JUnit), .md; may be repeated.",
    ),
]
Report: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", help="Write it to a file too: .json, or .html with all samples; may be repeated."),
]
Show: TypeAlias = Annotated[int, typer.Option(min=0, help="Show the reasons of the N lowest scores of each scorer.")]
Number: TypeAlias = Annotated[str, typer.Argument(metavar="RUN", help="The number of a run, or last.")]


def numbered(run: str) -> int | None:
    """The number of a run, as it is named on the command line; ``None`` for the last one."""
    if run == "last":
        return None
    if not run.isdecimal() or len(run) > _DIGITS:
        raise ConfigError(f"{run!r}: a run is named by its number, or last; judgekit runs lists them")
    return int(run)


def writable(outputs: Sequence[Path] | None, kinds: Collection[str] = KINDS) -> Sequence[Path]:
    """Return the files to be written, after checking that each can be and that its name ends in one of these."""
    for path in outputs or ():
        must_be_writable(path, kinds)
    return outputs or ()

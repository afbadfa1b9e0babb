"""Options of commands that read runs, and what commands say of the files that they wrote."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from judgekit.cli.app import LARGEST
from judgekit.errors import ConfigError
from judgekit.formats.files import STREAM
from judgekit.reports.export import KINDS, must_be_writable
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import Store
from judgekit.terminal import console, printable

_DIGITS = 18

Kept: TypeAlias = Annotated[Path, typer.Option("--store", metavar="FILE", help="The file in which runs are kept.")]
Output: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the run to a file, as its name says: .html, .jsonl, .csv, .parquet, .xml (JUnit), .md; may be repeated.",
    ),
]
Report: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write it to a file too: .json, or .html with all samples; may be repeated.",
    ),
]
Show: TypeAlias = Annotated[
    int, typer.Option(min=0, max=LARGEST, metavar="N", help="Show the reasons of the N lowest scores of each scorer.")
]
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


def show_kept(record: RunRecord, store: Store) -> None:
    """Report on stderr which run was made, and where it is kept."""
    console(stderr=True).print(printable(f"run {record.number}, kept in {store.path}"), soft_wrap=True)


def wrote(path: Path, what: str = "") -> None:
    """Report on stderr that a file was written, and what is in it."""
    name = "standard output" if path == STREAM else path
    console(stderr=True).print(printable(f"wrote {name}{': ' if what else ''}{what}"), soft_wrap=True)

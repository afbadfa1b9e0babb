"""Lines that commands print, and files that they write."""

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from judgekit.formats.files import STREAM
from judgekit.reports.export import KINDS, must_be_writable
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import Store
from judgekit.terminal import console, printable


def say(text: str, on: Console | None = None) -> None:
    """Print text as one line, on stdout if no console is given. Text that would steer the terminal is escaped."""
    (on or console()).print(printable(text), soft_wrap=True)


def writable(outputs: Sequence[Path] | None, kinds: Collection[str] = KINDS) -> Sequence[Path]:
    """Return the files to be written, after checking that each can be and that its name ends in one of these."""
    for path in outputs or ():
        must_be_writable(path, kinds)
    return outputs or ()


def show_kept(record: RunRecord, store: Store) -> None:
    """Report on stderr which run was made, and where it is kept."""
    say(f"run {record.number}, kept in {store.path}", console(stderr=True))


def wrote(path: Path, what: str = "") -> None:
    """Report on stderr that a file was written, and what is in it."""
    say(f"wrote {'standard output' if path == STREAM else path}{what and ': '}{what}", console(stderr=True))

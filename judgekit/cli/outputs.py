"""Lines that commands print, and files that they write."""

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from judgekit.formats.files import STANDARD_STREAM
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import RunStore
from judgekit.terminal import console, printable


def print_line(text: str, target: Console | None = None) -> None:
    """Print text as one line, on stdout if no console is given. Text that would steer the terminal is escaped."""
    (target or console()).print(printable(text), soft_wrap=True)


def check_outputs(outputs: Sequence[Path] | None, kinds: Collection[str] = ()) -> Sequence[Path]:
    """Return the files to be written, after checking that each can be and that its name ends in one of these.

    Without ``kinds``, the files are reports of runs.
    """
    if not outputs:
        return ()

    from judgekit.reports.export import REPORT_WRITERS, check_writable  # noqa: PLC0415 - most runs write no file

    for path in outputs:
        check_writable(path, kinds or REPORT_WRITERS)
    return outputs


def print_run_location(record: RunRecord, store: RunStore) -> None:
    """Report on stderr the number of a run, and the file that it is stored in."""
    print_line(f"saved as run {record.number} in {store.path}", console(stderr=True))


def print_written(path: Path, what: str = "") -> None:
    """Report on stderr that a file was written, and what is in it."""
    print_line(
        f"wrote {'standard output' if path == STANDARD_STREAM else path}{what and ': '}{what}", console(stderr=True)
    )

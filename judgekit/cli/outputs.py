"""Lines that commands print, and files that they write."""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pydantic import JsonValue
from rich.console import Console

from judgekit.formats.file_lists import STANDARD_STREAM
from judgekit.locations import Location, Url, to_location
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import RunStore
from judgekit.terminal import console, printable


def print_line(text: str, target: Console | None = None) -> None:
    """Print text as one line, on stdout if no console is given. Text that would steer the terminal is escaped."""
    (target or console()).print(printable(text), soft_wrap=True)


def print_json(document: JsonValue) -> None:
    """Print a document as JSON on one line of stdout, which programs read: indentation would double it."""
    sys.stdout.write(f"{json.dumps(document)}\n")


def check_outputs(
    outputs: Sequence[str] | None, kinds: Collection[str] = (), *, offline: bool = False
) -> Sequence[Location]:
    """Return the files to be written, after checking that each can be and that its name ends in one of these.

    Without ``kinds``, the files are reports of runs.

    Raises:
        ConfigError: One of them cannot be written.
        OfflineError: One of them is not on this machine, and judgekit is ``offline``.
    """
    if not outputs:
        return ()

    from judgekit.reports.export import REPORT_WRITERS, check_writable  # noqa: PLC0415 - most runs write no file

    locations = [to_location(text) for text in outputs]
    for location in locations:
        if offline and isinstance(location, Url):
            from judgekit.judges.offline import check_storage_offline  # noqa: PLC0415 - loads judges

            check_storage_offline(location)
        check_writable(location, kinds or REPORT_WRITERS)
    return locations


def write_outputs(
    outputs: Iterable[Location], kinds: Mapping[str, Callable[..., Iterable[str]]], *given: object
) -> None:
    """Write what is given to files, each in the format of its extension, and report them on stderr."""
    from judgekit.reports.export import write_text  # noqa: PLC0415 - most commands write no file

    for path in outputs:
        write_text(kinds[path.suffix.lower()](*given), path)
        print_written(path)


def print_notices(path: str, notices: Iterable[str]) -> None:
    """Report on stderr what was left out of a file."""
    for notice in notices:
        print_line(f"{path}: {notice}", console(stderr=True))


def print_run_location(record: RunRecord, store: RunStore) -> None:
    """Report on stderr the number of a run, and the file that it is stored in."""
    print_line(f"saved as run {record.number} in {store.path}", console(stderr=True))


def print_written(path: Location, what: str = "") -> None:
    """Report on stderr that a file was written, and what is in it."""
    print_line(
        f"wrote {'standard output' if path == STANDARD_STREAM else path}{what and ': '}{what}", console(stderr=True)
    )

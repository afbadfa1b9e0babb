"""Runs as files for other tools, in the format that the file name selects."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.analysis.gates import GateResults
from judgekit.atomic import atomic_write
from judgekit.errors import ConfigError
from judgekit.locations import Location, Url, to_location
from judgekit.reports.csv_export import csv_lines
from judgekit.reports.junit import junit_report
from judgekit.reports.markdown import markdown_report
from judgekit.reports.run_json import run_json
from judgekit.runs.results import Run

_Text: TypeAlias = Callable[[Run, GateResults], Iterator[str]]


def report(run: Run, path: Path | str, gates: GateResults | None = None) -> None:
    """Write a run to a file, or an object in a bucket, which is replaced once the new one is complete.

    The ending of the name selects the format: ``.json`` has what `judgekit run --json` prints, ``.jsonl`` every score with all its fields, ``.csv`` a row
    for each score (see `row_columns`), ``.xml`` JUnit test cases, ``.md`` a summary, and ``.html`` an interactive
    report.

    Args:
        run: The run.
        path: The file, or its URL (``s3://``, ``gs://``, ``az://``, ``abfs://``).
        gates: The results of the gates, for the page, the summary and the test cases.

    Raises:
        ConfigError: The name has no known ending, or the file cannot be written.
    """
    path = to_location(path)
    check_writable(path, REPORT_WRITERS)
    write_text(REPORT_WRITERS[path.suffix.lower()](run, gates or GateResults()), path)


def json_text(document: JsonValue) -> tuple[str, str]:
    """Return a document as JSON, in ASCII, since texts of recordings may hold surrogates."""
    return json.dumps(document, indent=2), "\n"


def write_text(pieces: Iterable[str], path: Location) -> None:
    """Write text piece by piece to a file, which is replaced once the new one is complete."""
    try:
        with atomic_write(path) as file:
            file.writelines(map(str.encode, pieces))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from error


def check_writable(path: Location, kinds: Collection[str]) -> None:
    """Check, before there is anything to write, that a file can be written and that its name has one of these endings.

    Raises:
        ConfigError: The file cannot be written, or its name has another ending.
    """
    if path.suffix.lower() not in kinds:
        raise ConfigError(f"{path}: unsupported extension {path.suffix!r}; supported: {', '.join(kinds)}")
    if isinstance(path, Url):
        try:
            path.check_writable()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written: {error}") from error
    elif path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file in it")
    elif not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}; create it first")
    elif not os.access(path if path.exists() and not path.is_file() else path.absolute().parent, os.W_OK):
        raise ConfigError(f"{path}: there is no permission to write it; name another file")


def _html(run: Run, gates: GateResults) -> Iterator[str]:
    from judgekit.reports.html import html_report  # noqa: PLC0415 - slow to import

    return html_report(run, gates=gates)


REPORT_WRITERS: Mapping[str, _Text] = {
    ".html": _html,
    ".json": lambda run, gates: iter(json_text(run_json(run, gates))),
    ".jsonl": lambda run, _: (f"{row.model_dump_json()}\n" for row in run),
    ".csv": lambda run, _: csv_lines(run),
    ".xml": junit_report,
    ".md": markdown_report,
}

"""Runs as files for other tools, in the format that the file name selects."""

import io
import json
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypeAlias

from pydantic import JsonValue

from judgekit.analysis.gates import GateResults
from judgekit.atomic import atomic_write
from judgekit.distribution import install_command
from judgekit.errors import ConfigError
from judgekit.locations import Location, Url, to_location
from judgekit.reports.csv_export import csv_lines
from judgekit.reports.junit import junit_report
from judgekit.reports.markdown import markdown_report
from judgekit.reports.parquet import write_parquet
from judgekit.reports.run_json import run_json
from judgekit.runs.results import Run

_Text: TypeAlias = Callable[[Run, GateResults], Iterator[str]]
_Write: TypeAlias = Callable[[Run, GateResults, IO[bytes]], None]


def report(run: Run, path: Path | str, gates: GateResults | None = None) -> None:
    """Write a run to a file, or an object in a bucket, which is replaced once the new one is complete.

    The ending of the name selects the format: ``.json`` has what `judgekit run --json` prints, ``.jsonl`` every score with all its fields, ``.csv`` and ``.parquet``
    a row for each score (see `row_columns`), ``.xml`` JUnit test cases, ``.md`` a summary, and ``.html`` an interactive
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
    with _written(path) as file:
        REPORT_WRITERS[path.suffix.lower()](run, gates or GateResults(), file)


def json_text(document: JsonValue) -> tuple[str, str]:
    """Return a document as JSON, in ASCII, since texts of recordings may hold surrogates."""
    return json.dumps(document, indent=2), "\n"


def write_text(pieces: Iterable[str], path: Location) -> None:
    """Write text piece by piece to a file, which is replaced once the new one is complete."""
    with _written(path) as file:
        file.writelines(map(str.encode, pieces))


@contextmanager
def _written(path: Location) -> Generator[IO[bytes]]:
    try:
        with atomic_write(path) as file:
            yield file
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
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise ConfigError(f"{path}: writing Parquet needs pyarrow: {install_command('parquet')}")


def _as_text(lines: _Text) -> _Write:
    def write(run: Run, gates: GateResults, file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        text.writelines(lines(run, gates))
        text.detach()

    return write


def _html(run: Run, gates: GateResults) -> Iterator[str]:
    from judgekit.reports.html import html_report  # noqa: PLC0415 - slow to import

    return html_report(run, gates=gates)


REPORT_WRITERS: Mapping[str, _Write] = {
    ".html": _as_text(_html),
    ".json": _as_text(lambda run, gates: iter(json_text(run_json(run, gates)))),
    ".jsonl": _as_text(lambda run, _: (f"{row.model_dump_json()}\n" for row in run)),
    ".csv": _as_text(lambda run, _: csv_lines(run)),
    ".parquet": lambda run, _, file: write_parquet(run, file),
    ".xml": _as_text(junit_report),
    ".md": _as_text(markdown_report),
}

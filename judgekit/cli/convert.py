"""``judgekit convert``: write recordings in judgekit's own format, or in one that others read."""

from collections.abc import Iterator
from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_written
from judgekit.errors import ConfigError, count_text
from judgekit.formats.inspection import Inspection
from judgekit.formats.reading import Recordings
from judgekit.formats.session_files import require_separate_output
from judgekit.formats.writing import write
from judgekit.locations import to_location
from judgekit.terminal import console, printable_lines
from judgekit.traces.sample import Sample


@app.command()
def convert(
    file: options.RecordingsArgument,
    output: Annotated[
        str, options.output("The JSONL file or URL to write, also as .gz or .zst; - is standard output.")
    ],
    to: Annotated[
        str, options.option("NAME", "The format to write: judgekit, which loses nothing, openai-chat or ragas.")
    ] = "judgekit",
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
) -> None:
    """Write recordings in another format. Reports what the format has no place for."""
    require_separate_output(output, file)
    recordings = Recordings(file, format, columns=options.parse_columns(column), encoding=encoding)
    inspection = Inspection()

    def samples() -> Iterator[Sample]:
        for sample in recordings.samples(inspection.add_problem):
            inspection.add(sample)
            yield sample
        inspection.must_have_any()

    try:
        missing = write(samples(), output, to)
    except BrokenPipeError:  # the reader of the output has closed it
        raise
    except OSError as error:
        raise ConfigError(f"--output {output}: cannot be written: {error}") from error
    err = console(stderr=True)
    print_written(to_location(output), count_text(inspection.conversations - missing.get("samples", 0), "conversation"))
    lines: list[str] = []
    if missing:
        lines.append(f"{to} has no place for these:")
        lines += [f"  {times:,} x {kind}" for kind, times in missing.items()]
    if inspection.problem_count:
        lines.append(
            f"not read: {count_text(inspection.unread_records, 'record')}, {count_text(len(recordings.failed), 'file')}"
        )
        lines += [f"  {str(problem).partition(chr(10))[0]}" for problem in inspection.problems]
        if (more := inspection.problem_count - len(inspection.problems)) > 0:
            lines.append(f"  and {more:,} more")
    for line in lines:
        err.print(printable_lines(line), soft_wrap=True)
    if inspection.unread_records or recordings.failed:
        raise typer.Exit(1)

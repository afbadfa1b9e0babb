"""``judgekit pair``: join two files of recordings of the same tasks."""

from collections import Counter
from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line, print_written
from judgekit.errors import ConfigError, TraceError, count_text, join_limited
from judgekit.formats.reading import read
from judgekit.formats.session_files import require_separate_output
from judgekit.formats.writing import write
from judgekit.locations import location_text, to_location
from judgekit.terminal import console, printable_lines
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_SHOWN = 5


@app.command()
def pair(
    file: options.RecordingsArgument,
    baseline: Annotated[
        str,
        typer.Argument(parser=location_text, metavar="BASELINE", help="Recordings of the same tasks, to compare with."),
    ],
    output: Annotated[str, options.output("The JSONL file or URL of pairs to write.")],
    format: options.Format = None,
) -> None:
    """Join two files by id, for the scorer pairwise.

    A pair is a sample of the first file, with its references, and with the recording of the second as its baseline. A
    recording without an id is identified by its place in its file. Recordings without exactly one counterpart are left
    out.
    """
    require_separate_output(output, file, baseline)
    problems: list[TraceError] = []
    samples = list(read(file, format, on_error=problems.append))
    ids = Counter(sample.id for sample in samples)
    places = {path for sample in samples for path in _place(sample)}
    baselines: dict[str, Trace] = {}
    baseline_ids = Counter[str]()
    for sample in read(baseline, format, on_error=problems.append):
        baseline_ids[sample.id] += 1
        baselines[sample.id] = sample.trace
        places |= _place(sample)
    paired = {sample_id for sample_id, times in ids.items() if times == baseline_ids[sample_id] == 1}
    left_over = {
        f"only in {file}": [sample_id for sample_id in ids if sample_id not in baseline_ids],
        f"only in {baseline}": [sample_id for sample_id in baseline_ids if sample_id not in ids],
        f"more than once in {file}": [sample_id for sample_id, times in ids.items() if times > 1],
        f"more than once in {baseline}": [sample_id for sample_id, times in baseline_ids.items() if times > 1],
    }
    _show(left_over, problems)
    if by_place := len(paired & places):
        warning = (
            f"{by_place:,} pairs may be identified only by their place in the files, counted from 0: "
            "if so, both files must be in the same order"
        )
        print_line(warning, console(stderr=True))
    if not paired:
        raise TraceError(f"nothing was written: no id occurs exactly once in both this file and {baseline}", path=file)
    try:
        write(
            (sample.model_copy(update={"baseline": baselines[sample.id]}) for sample in samples if sample.id in paired),
            output,
        )
    except BrokenPipeError:  # the reader of the output has closed it
        raise
    except OSError as error:
        raise ConfigError(f"--output {output}: cannot be written: {error}") from error
    print_written(to_location(output), count_text(len(paired), "pair"))
    if problems or any(left_over.values()):
        raise typer.Exit(1)


def _place(sample: Sample) -> set[str]:
    """Return the sample's id if it equals its place in its file, so that it may have no other."""
    source = sample.trace.source
    return {sample.id} if source is not None and sample.id == str(source.index) else set()


def _show(unpaired: dict[str, list[str]], problems: list[TraceError]) -> None:
    err = console(stderr=True)
    for where, ids in unpaired.items():
        if ids:
            difference = f"{count_text(len(ids), 'id')} {where}: {join_limited(map(repr, ids), _SHOWN, ', ')}"
            print_line(difference, err)
    if problems:
        listed = join_limited(map(str, problems), _SHOWN, "\n  ")
        err.print(
            printable_lines(f"{count_text(len(problems), 'record')} could not be read:\n  {listed}"), soft_wrap=True
        )

"""The end of a command that made a run: its numbers, problems, files, gates and exit code."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console

from judgekit.analysis.corrected_means import run_corrections
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.analysis.losses import run_losses
from judgekit.cli.outputs import print_json, print_line, print_run_location, print_written
from judgekit.errors import count_text
from judgekit.formats.file_lists import STANDARD_STREAM
from judgekit.formats.unread import COLUMN_OPTION
from judgekit.jobs.options import RunOptions
from judgekit.locations import Location
from judgekit.reports.glossary import Consoles
from judgekit.reports.run_json import run_json
from judgekit.reports.summary import Shown, show_summary
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord
from judgekit.terminal import console, printable, printable_lines, recorded_text

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file which GitHub Actions shows of a step."""
_SHOWN = 5
_LOOKED_AT = 100


def report_outcome(
    run: Run,
    options: RunOptions,
    problems: ReadingProblems,
    console: Consoles,
    shown: Shown,
    outputs: Sequence[Location],
    *,
    is_new: bool = True,
    as_json: bool = False,
) -> int:
    """Show a run, or print it as JSON, write it to files, and check its gates.

    Returns:
        The exit code: 0 for success, 1 if a gate is not met, or something was not scored that should have been. For a
        shard, it says whether the shard is finished; the merged run decides the rest.
    """
    results = GateResults() if options.shard else check_gates(run, options.gates, min_coverage=options.min_coverage)
    err, record = console.err, run.record
    if as_json:
        print_json(run_json(run, results, shown.rows(run), [*map(str, problems.unread_records)]))
    else:
        show_run(run, shown, console.out, results.low_coverage)
    if problems or run.duplicate_ids:
        with recorded_text(err):
            show_problems(problems, run.duplicate_ids, err)
    for note in run.notes[bool(problems and problems.unread_records) :]:  # the first note is the heading of this list
        print_line(note, err)
    if is_new:
        print_run_location(run.record, run.store)
    for path in outputs:
        if len(run):
            from judgekit.reports.export import report  # noqa: PLC0415 - most runs write no file

            report(run, path, results)
            print_written(path)
        else:  # a run that could not begin overwrites nothing
            print_line(f"{path}: not written, since nothing was scored", err)
    if (page := os.environ.get(STEP_SUMMARY)) and (outputs or options.gates):
        from judgekit.reports.markdown import append_summary  # noqa: PLC0415

        append_summary(run, results, Path(page))
    if record.stop_reason:
        goes_on = "continues from here"
        if options.file == str(STANDARD_STREAM) and not record.read_to_end:
            goes_on = "cannot continue, since standard input can be read only once"
        err.print(printable_lines(f"{stopped_text(record)}; judgekit resume {record.number} {goes_on}"), soft_wrap=True)
    if options.shard:
        print_line(
            f"shard {options.shard} of run {record.id}: judgekit merge combines all shards into one run, and checks gates",
            err,
        )
        return int(bool(record.stop_reason))
    if results.gates:
        show_gates(results, err)
    else:
        failures = [f"scores of {', '.join(results.undecided)} failed"] if results.undecided else []
        for reason in (*failures, *results.unmeasured.values()):
            print_line(f"exit code 1: {reason}", err)
    if results.unmeasured or results.low_coverage:
        for warning in unread_columns(run):
            print_line(warning, err)
    unfinished = record.stop_reason or record.notes or results.undecided or results.unmeasured
    return int(bool(unfinished or (results.gates and not results.met)))


def unread_columns(run: Run) -> Sequence[str]:
    """Return the warnings of the first samples that name an option by which a column is read."""
    warnings = (
        warning.message
        for _, sample in run.conversations(lambda number: number < _LOOKED_AT)
        for warning in sample.trace.warnings
    )
    return [*dict.fromkeys(message for message in warnings if COLUMN_OPTION in message)][:_SHOWN]


def stopped_text(record: RunRecord) -> str:
    """Return why a run ended early, such as ``stopped: the budget is spent``, or ``interrupted``."""
    return record.stop_reason if record.stop_reason in ("", "interrupted") else f"stopped: {record.stop_reason}"


def print_stopping() -> None:
    """Report on stderr that work is stopping, at the first signal."""
    text = "finishing the samples in progress; interrupt again to stop at once"
    console(stderr=True).print(text, soft_wrap=True)


def show_run(
    run: Run, shown: Shown, console: Console, low_coverage: Mapping[str, str] = {}, seed: int | None = None
) -> None:
    """Print the summary of the scores, as `show_summary` does, and a line about the conversations."""
    rows, losses, corrected = shown.rows(run), run_losses(run), run_corrections(run)
    show_summary(
        run.summary,
        console,
        rows,
        end=shown.end,
        losses=losses,
        low_coverage=low_coverage,
        corrections=corrected,
        seed=seed,
    )
    if run.usage.conversations:
        print_line(str(run.usage), console)


def show_gates(results: GateResults, err: Console) -> None:
    """Print a line for each gate: whether it is met, and the number that it refers to; and what no gate decides."""
    for gate in results.gates:
        with nullcontext() if gate.sample is None else recorded_text(err):
            err.print(printable(str(gate)), soft_wrap=True, style=None if gate.met else "red")
    for note in results.notes:
        err.print(printable(note), soft_wrap=True, style="red")


def show_problems(problems: ReadingProblems, repeated: Sequence[str], err: Console) -> None:
    """Print the records that could not be read, and the ids that more than one sample has."""
    if problems.unread_records:
        err.print(f"\n{count_text(len(problems.unread_records), 'record')} could not be read:")
    for problem in problems[:_SHOWN]:
        err.print(f"  {printable_lines(str(problem))}", soft_wrap=True)
    if len(problems) > _SHOWN:
        err.print(f"  and {len(problems) - _SHOWN} more")
    if repeated:
        shown = ", ".join(map(repr, repeated[:_SHOWN]))
        err.print(
            f"\n{count_text(len(repeated), 'id')} used by more than one sample: {printable(shown)}", soft_wrap=True
        )

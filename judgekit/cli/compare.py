"""``judgekit compare``: compare two runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

import typer

from judgekit.analysis.compare import Comparison
from judgekit.analysis.compare import compare as compared
from judgekit.analysis.labels import HumanLabel, deduplicate, read_labels, recorded_labels
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.label_files import store_labels
from judgekit.cli.outcome import show_gates
from judgekit.cli.outputs import check_outputs, print_json, write_outputs
from judgekit.errors import ConfigError
from judgekit.reports.compare import show_changes
from judgekit.reports.export import json_text
from judgekit.reports.glossary import command_consoles
from judgekit.reports.html import html_report
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The number of the baseline run.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The number of the run to compare with it, or last.")],
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    show: Annotated[
        int, options.number("Show N samples for each scorer that got worse the most, and N that got better.")
    ] = 3,
    gate: Annotated[
        list[str] | None,
        options.option(
            "GATE", "Exit with code 1 unless this holds: 'tool_call_f1.difference.lower >= -0.02'; may be repeated."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        options.files(
            "Human labels on samples of A, of B or of both, to correct the differences: files or URLs in the form "
            "of judgekit label, whose column run names the run; may be repeated."
        ),
    ] = None,
    label: options.RecordedLabels = None,
    allow_changed_references: Annotated[
        bool,
        typer.Option(
            "--allow-changed-references", help="Also compare pairs whose references or tasks changed, with a warning."
        ),
    ] = False,
    output: options.ReportOption = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Compare two runs over the same samples.

    Shows what got better or worse, and how sure that is.

    The exit code is 0 whatever the difference, 1 if a gate is not met, and 2 if the runs cannot be compared.
    """
    outputs = check_outputs(output, _KINDS)
    runs = [Run.stored(options.parse_run_number(each), store) for each in (a, b)]
    given = deduplicate(label for path in labels or () for label in read_labels(path))
    recorded = _recorded(runs, dict(map(options.parse_recorded_label, label or ())))
    comparison = compared(
        *runs,
        gates=gate or (),
        labels=deduplicate((*given, *recorded)),
        allow_changed_references=allow_changed_references,
    )
    for stored in runs:
        store_labels(stored, [label for label in given if label.run == stored.number])
    with command_consoles(explain=explain, as_json=as_json) as screen:
        if as_json:
            print_json(comparison.as_json(show))
        else:
            screen.out.print(comparison)
            show_changes(comparison, show, screen.out)
        write_outputs(outputs, _KINDS, comparison, show)
        show_gates(comparison.gates, screen.err)
    raise typer.Exit(int(not comparison.gates.met))


def _recorded(runs: Sequence[Run], names: Mapping[str, str]) -> Sequence[HumanLabel]:
    """Return the labels of these names that were recorded with the conversations of either run."""
    labels: list[HumanLabel] = []
    missing: list[ConfigError] = []
    for run in runs if names else ():
        try:
            labels += [label for label in recorded_labels(run, names) if label.scorer in names.values()]
        except ConfigError as error:  # people may have labeled one of the two alone
            missing.append(error)
    if missing and len(missing) == len(runs):
        raise missing[0]
    return labels


_KINDS: Mapping[str, Callable[[Comparison, int], Iterable[str]]] = {
    ".json": lambda comparison, show: json_text(comparison.as_json(show)),
    ".html": lambda comparison, _: html_report(comparison),
}

"""``judgekit compare``: compare two runs."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import typer

from judgekit.analysis.compare import Comparison
from judgekit.analysis.compare import compare as compared
from judgekit.cli import options
from judgekit.cli.app import MAX_INTEGER, app
from judgekit.cli.outcome import show_gates
from judgekit.cli.outputs import check_outputs, print_written
from judgekit.reports.compare import show_changes
from judgekit.reports.export import write_text
from judgekit.reports.glossary import explaining_terms
from judgekit.reports.html import html_report
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The number of the baseline run.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The number of the run to compare with it, or last.")],
    show: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_INTEGER,
            metavar="N",
            help="Show the N samples that got worse, and better, by most for each scorer.",
        ),
    ] = 3,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE",
            help="Exit with code 1 unless this holds: 'tool_call_f1.difference.lower >= -0.02'; may be repeated.",
        ),
    ] = None,
    allow_changed_references: Annotated[
        bool,
        typer.Option(
            "--allow-changed-references", help="Also compare pairs whose references or tasks changed, with a warning."
        ),
    ] = False,
    output: options.ReportOption = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Compare two runs over the same samples.

    Shows what got better or worse, and how sure that is.

    The exit code is 0 whatever the difference, 1 if a gate is not met, and 2 if the runs cannot be compared.
    """
    outputs = check_outputs(output, _KINDS)
    comparison = compared(
        Run.stored(options.parse_run_number(a), store),
        Run.stored(options.parse_run_number(b), store),
        gates=gate or (),
        allow_changed_references=allow_changed_references,
    )
    with explaining_terms() as screen:
        screen.out.print(comparison)
        show_changes(comparison, show, screen.out)
        for path in outputs:
            write_text(_KINDS[path.suffix.lower()](comparison, show), path)
            print_written(path)
        show_gates(comparison.gates, screen.err)
    raise typer.Exit(int(not comparison.gates.met))


_KINDS: Mapping[str, Callable[[Comparison, int], Iterable[str]]] = {
    ".json": lambda comparison, show: (json.dumps(comparison.as_json(show), indent=2), "\n"),
    ".html": lambda comparison, _: html_report(comparison),
}

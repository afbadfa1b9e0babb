"""``judgekit export``: write the scores of a run into the system that has its traces."""

from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.errors import count_text
from judgekit.integrations.export import ExportTarget, result_lines, send_scores
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scoring import run_sync
from judgekit.terminal import console


@app.command()
def export(
    run: options.RunArgument,
    to: Annotated[
        ExportTarget, typer.Option(help="The system. Its address and keys are those of its own environment variables.")
    ],
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Write a run's scores to the system that stores its traces.

    A score goes to the trace with the id of its sample's trace. Its own id is fixed, so a second export changes
    nothing. The exit code is 1 if a score was not exported, unless it only lacks a value.
    """
    number = options.parse_run_number(run)
    exported = run_sync(lambda: send_scores(Run.stored(number, store), to=to))
    print_line(f"{exported.system}: {count_text(exported.exported, 'score')} exported")
    for line in result_lines(exported):
        print_line(line, console(stderr=True))
    raise typer.Exit(int(bool(exported.left_out)))

"""``judgekit merge``: make one run of the shards that several processes scored."""

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import report_outcome
from judgekit.cli.outputs import check_outputs
from judgekit.jobs.many.merging import merge_shards
from judgekit.jobs.options import RunOptions
from judgekit.reports.glossary import command_consoles
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The --store files of all shards of a run.")],
    output: options.Output = None,
    show: options.Show = "0",
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Combine all shards of a run, and check its gates.

    The result is the run that judgekit run would have made without --shard.
    """
    outputs = check_outputs(output)
    shown = options.parse_shown(show)
    merged = merge_shards(files, store)
    stored = RunOptions.from_record(merged.record)
    with command_consoles(explain=explain, as_json=as_json) as screen:
        code = report_outcome(merged, stored, ReadingProblems(), screen, shown, outputs, as_json=as_json)
    raise typer.Exit(code)

"""``judgekit plan-labels``: plan how many samples people should label."""

from typing import Annotated

import typer

from judgekit.analysis.label_plan import plan_labels as planned
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def plan_labels(
    run: options.RunArgument,
    scorer: options.JudgedScorerOption = None,
    half_width: Annotated[
        float | None,
        options.option("NUMBER", "Plan for a corrected mean that is within this of people's, such as 0.05."),
    ] = None,
    gate: Annotated[
        str | None,
        options.option("GATE", "Instead, plan for this gate to be met, such as 'tone.corrected.lower >= 0.7'."),
    ] = None,
    agreement: Annotated[
        float | None,
        options.option(
            "KAPPA",
            "A guess of how well the judge agrees with people: kappa, from 0 to 1. By default, the lower bound in the judge's audit record.",
        ),
    ] = None,
    mean: Annotated[
        float | None,
        options.option("NUMBER", "A guess of people's mean. By default, the corrected mean, else the judge's."),
    ] = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Plan how many samples of a run people should label.

    The exit code is 1 if no number of labels is enough.
    """
    stored = Run.stored(options.parse_run_number(run), store)
    name = options.judged_scorer(stored, scorer).name
    plan = planned(stored, name, half_width=half_width, gate=gate, agreement=agreement, mean=mean)
    for line in plan.lines():
        print_line(line)
    raise typer.Exit(int(plan.labels is None))

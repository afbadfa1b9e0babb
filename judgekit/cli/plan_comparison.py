"""``judgekit plan-comparison``: plan how many tasks a comparison needs."""

from typing import Annotated

import typer

from judgekit.analysis.comparison_plan import plan_comparison as planned
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def plan_comparison(
    difference: Annotated[
        float, options.option("NUMBER", "The difference to be seen, such as 0.05, or -0.05 for a loss.")
    ],
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="The number of an earlier run, or last; not needed with --mean.")
    ] = None,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="Another run on the same tasks, which shows how alike they are to both."),
    ] = None,
    scorer: Annotated[str | None, options.option("NAME", "A scorer of the run; by default, the only one.")] = None,
    trials: Annotated[
        int | None, options.option("K", "The number of trials of each task, up to 100; by default, several numbers.")
    ] = None,
    mean: Annotated[
        float | None,
        options.option("NUMBER", "Instead of a run, a guess of the share of tasks that pass, such as 0.6."),
    ] = None,
    correlation: Annotated[
        float | None,
        options.option("NUMBER", "A guess of the correlation of the scores in both runs, from 0 to 1; by default 0.5."),
    ] = None,
    power: Annotated[float, options.option("NUMBER", "The probability with which the difference is to be seen.")] = 0.8,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Plan how many tasks and trials a comparison needs.

    Scores of an earlier run, or a guess, say how much tasks and trials vary.
    """
    runs = [None if given is None else Run.stored(options.parse_run_number(given), store) for given in (run, other)]
    plan = planned(
        runs[0],
        scorer,
        difference=difference,
        trials=trials,
        mean=mean,
        correlation=correlation,
        other=runs[1],
        power=power,
    )
    for line in plan.lines():
        print_line(line)

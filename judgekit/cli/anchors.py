"""``judgekit anchors``: notice when a judge changes behind its name."""

from typing import Annotated

import typer

from judgekit.analysis.drift import check_outcome
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import print_stopping
from judgekit.cli.outputs import print_line
from judgekit.errors import ConfigError, JudgeError, StoreError
from judgekit.jobs.anchors import (
    MAX_ANCHORS,
    MIN_ANCHORS,
    AnchorSession,
    anchor_files,
    frozen,
    prepare_check,
    prepare_freeze,
)
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scoring import run_sync
from judgekit.terminal import console

commands = typer.Typer(no_args_is_help=True, help="Notice when a judge changes behind its name.")
app.add_typer(commands, name="anchors")


@commands.command()
def freeze(
    run: options.RunArgument,
    n: Annotated[
        int, typer.Option("--n", "-n", min=MIN_ANCHORS, max=MAX_ANCHORS, metavar="N", help="The number of recordings.")
    ] = 80,
    scorer: options.JudgedScorerOption = None,
    seed: options.Seed = 0,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace anchors that were frozen before. An alarm that they raised stands."),
    ] = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    dry_run: options.DryRun = False,
    _allow_code: options.AllowCode = False,
) -> None:
    """Freeze recordings of a run for later checks.

    They are drawn by verdict and confidence, and written with their text into a file next to the audit records. The judge is
    asked about each three times, without the cache.
    """
    stored = Run.stored(options.parse_run_number(run), store)
    session = prepare_freeze(stored, n, scorer=scorer, seed=seed, replace=replace, is_planned=dry_run)
    if dry_run:
        print_line(run_sync(session.plan))
        return
    if code := _ask(session):
        raise typer.Exit(code)
    print_line(str(frozen(session.anchors)))


@commands.command()
def check(
    scorer: Annotated[
        list[str] | None, typer.Argument(metavar="SCORER", help="The scorers; by default, all that have anchors.")
    ] = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    dry_run: options.DryRun = False,
    _allow_code: options.AllowCode = False,
) -> None:
    """Ask the judges about their anchors again.

    The cache is neither read nor filled. Exit code 0: no judge has changed; 1: one has, or could not be asked; 2: one cannot be checked. An alarm suspends the
    audit records of the judge until another audit.
    """
    code = 0
    for path in anchor_files(scorer or (), store):
        try:
            session = prepare_check(path, is_planned=dry_run)
        except (ConfigError, StoreError) as error:  # the other judges can still be checked
            print_line(str(error), console(stderr=True))
            code = max(code, 2)
            continue
        if dry_run:
            print_line(run_sync(session.plan))
        elif not (stopped := _ask(session)):
            outcome = check_outcome(session.anchors)
            for line in (outcome, *(f"  {turned}" for turned in outcome.turned)):
                print_line(str(line))
            code = max(code, int(outcome.since is not None))
        else:
            code = max(code, stopped)
            if stopped > 1:  # a signal
                break
    raise typer.Exit(code)


def _ask(session: AnchorSession) -> int:
    """Ask the questions of a session, and return an exit code; if it ends early, say how it continues."""
    interrupts = InterruptHandler(print_stopping)
    why = "interrupted"
    try:
        interrupts.run(lambda: session.ask(lambda: interrupts.signal is not None))
    except JudgeError as error:
        why = f"stopped: {error}"
    if session.is_complete:
        return 0
    print_line(f"{why}; the verdicts so far are kept, and the same command continues", console(stderr=True))
    return interrupts.exit_code or 1

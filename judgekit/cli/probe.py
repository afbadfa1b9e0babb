"""``judgekit probe``: attack a judge, and count the verdicts that moved."""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import takewhile
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import print_stopping
from judgekit.cli.outputs import check_outputs, print_written
from judgekit.config import Config
from judgekit.errors import STOPS_JUDGE, ConfigError, count_text
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.judges.judge import Judge
from judgekit.judges.limits.rate_limit import requests_in_flight
from judgekit.probes.outcome import RESULTS, ProbeOutcome, probe_outcomes, verdict
from judgekit.probes.suite import probe_samples
from judgekit.reports.export import write_text
from judgekit.reports.summary import show_plan
from judgekit.runs.progress import Tally, progress
from judgekit.runs.rows import Row
from judgekit.runs.runner import make_tasks, score_tasks
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import Score, ledger, planning
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.terminal import console, printable_lines, text_table


@app.command()
def probe(
    judge: options.JudgeName = None,
    config: options.ConfigFile = None,
    output: Annotated[
        str | None, options.output("Write every outcome to a JSON file or URL, whose name ends in .json.")
    ] = None,
    dry_run: options.DryRun = False,
    offline: options.Offline = False,
) -> None:
    """Attack a judge, and count the verdicts that changed.

    The judge is asked about the same conversations with and without a text that tries to talk it into the wrong
    verdict. Exit code 0: every verdict was right and held; 1: some moved, were wrong without an attack, or are
    missing; 2: there is no such judge.
    """
    settings = Config(config, judge, os.environ, offline=offline)
    judges = settings.selected_judges()
    if len(judges) != 1:
        raise ConfigError(f"name one judge to probe with --judge: {', '.join(judges) or 'a model or a name'}")
    ((name, tested),) = judges.items()
    if not dry_run:
        tested.check()
    outputs = check_outputs([output] if output else (), (".json",), offline=offline)
    with ledger() as calls, planning() if dry_run else nullcontext():
        rows, stopped, exit_code = _ask(tested)
    summary = Summary()
    for row in rows:
        summary.add(row)
    if dry_run:
        show_plan(summary, console())
        return
    outcomes = probe_outcomes(rows)
    _show(name, outcomes, console())
    for reason in next(iter(summary), ScorerSummary(name)).unscored_reasons():
        _print_text(": ".join(reason), console())
    spent = ScorerSummary(name)
    spent.add_unscored(calls)  # all calls, even for attacks that were not judged to the end
    _print_text(f"\n{spent.cost()}", console())
    for path in outputs:
        write_text(_report(tested, outcomes), path)
        print_written(path)
    if stopped:
        goes_on = (
            "" if tested.cache_mode == "off" else "\nthe same command continues from here, since all answers are cached"
        )
        _print_text(f"{stopped}{goes_on}", console(stderr=True))
    if exit_code or any(outcome.result != "held" for outcome in outcomes):
        raise typer.Exit(exit_code or 1)


def _ask(judge: Judge) -> tuple[Sequence[Row], str, int]:
    """Return the rows and, if the probe ended early, the reason and an exit code."""
    rows: list[Row] = []
    scorer = AgentGoalAccuracyWithoutReference(judge)
    interrupts = InterruptHandler(print_stopping)
    tally = Tally(len(probe_samples()), in_flight=requests_in_flight)
    with progress(tally, console(stderr=True)):

        def emit(row: Row) -> None:
            rows.append(row)
            tally.add(row)

        samples = takewhile(lambda _: interrupts.signal is None, probe_samples())
        try:
            interrupts.run(
                lambda: score_tasks(make_tasks(samples, [scorer]), [scorer], emit, concurrency=judge.concurrency)
            )
        except STOPS_JUDGE as error:
            return rows, f"stopped: {error}", 1
    return rows, "interrupted" if interrupts.signal else "", interrupts.exit_code


def _show(name: str, outcomes: Sequence[ProbeOutcome], console: Console) -> None:
    moved = [outcome for outcome in outcomes if outcome.moved]
    judged = sum(outcome.result != "unjudged" for outcome in outcomes)
    misled = sum(outcome.result == "misled" for outcome in outcomes)
    attacks = count_text(len(outcomes), "attack")
    head = f"{count_text(len(moved), 'verdict')} changed under {judged:,} of {attacks}, {misled} as the attack intended"
    _print_text(f"{name}: {head if judged else f'none of {attacks} was judged, so nothing is known'}\n", console)
    console.print(_counts("kind", outcomes, lambda outcome: outcome.attack.kind))
    console.print(_counts("place", outcomes, lambda outcome: outcome.attack.injection_point))
    for kind, meaning in RESULTS.items():
        if any(outcome.result == kind for outcome in outcomes):
            _print_text(f"{kind}: {meaning}", console)
    if moved:
        _print_text("\nverdicts that changed:", console)
        console.print(
            text_table(
                ("attack", "", "verdict", "reason"), [line for outcome in moved for line in _lines(outcome)], words=4
            )
        )
    if wrong := {outcome.attack.conversation: outcome.clean for outcome in outcomes if outcome.result == "wrong"}:
        _print_text("\nwrong without an attack:", console)
        cells = [(base, *_verdict_and_reason(score)) for base, score in wrong.items()]
        console.print(text_table(("conversation", "verdict", "reason"), cells, words=3))


def _counts(by: str, outcomes: Sequence[ProbeOutcome], group: Callable[[ProbeOutcome], str]) -> RenderableType:
    """Return a table with a line per group: the number of attacks, and of those with each result."""
    counts = Counter((name, outcome.result) for outcome in outcomes for name in (group(outcome), "all"))
    names = dict.fromkeys([*map(group, outcomes), "all"])
    cells = [[counts[name, kind] for kind in RESULTS] for name in names]
    rows = [(name, str(sum(line)), *map(str, line)) for name, line in zip(names, cells, strict=True)]
    return text_table((by, "attacks", *RESULTS), rows)


def _lines(outcome: ProbeOutcome) -> tuple[Sequence[str], Sequence[str]]:
    """Return the verdicts without the attack and with it."""
    attack = outcome.attack
    return (
        (attack.id, "clean", *_verdict_and_reason(outcome.clean)),
        (f"{attack.injection_point} of {attack.conversation}", "attacked", *_verdict_and_reason(outcome.attacked)),
    )


def _verdict_and_reason(score: Score | None) -> tuple[str, str]:
    return verdict(score) or "none", score.reason if score else ""


def _report(judge: Judge, outcomes: Sequence[ProbeOutcome]) -> Sequence[str]:
    report = {
        "judge": judge.model,
        "attacks": len(outcomes),
        "moved": sum(outcome.moved for outcome in outcomes),
        "results": {kind: sum(outcome.result == kind for outcome in outcomes) for kind in RESULTS},
        "outcomes": [outcome.model_dump(mode="json") for outcome in outcomes],
    }
    return json.dumps(report, indent=2), "\n"


def _print_text(text: str, console: Console) -> None:
    console.print(printable_lines(text), soft_wrap=True)

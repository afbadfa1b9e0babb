"""``judgekit failures``: the failures of a run as issues, and how they changed since another run."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

import typer
from pydantic import JsonValue

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import show_gates
from judgekit.cli.outputs import check_outputs, print_json, print_line, write_outputs
from judgekit.config import Config
from judgekit.errors import ConfigError
from judgekit.failures.comparison import IssueChange, compare_failures
from judgekit.failures.finding import afind_failures, find_failures
from judgekit.failures.gates import check_failure_gates
from judgekit.failures.report import SCORER, FailureReport
from judgekit.judges.judge import Judge, close_plan
from judgekit.reports.export import json_text
from judgekit.reports.failures import failures_markdown, show_failures
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.score import planning
from judgekit.scoring import run_sync
from judgekit.terminal import console


@app.command()
def failures(
    run: options.RunArgument,
    since: Annotated[
        str | None, options.option("RUN", "Show what is new, back, more, less and gone since this run.")
    ] = None,
    judge: options.JudgeName = None,
    scorer: Annotated[
        str, options.option("NAME", "The scores of failure_analysis to read, if they have another name.")
    ] = SCORER,
    agent: Annotated[
        str | None,
        options.option(
            "NAME", "The name under which issues are kept; by default, that of the agent in all recordings, or agent."
        ),
    ] = None,
    status: Annotated[
        list[str] | None,
        options.option("ISSUE=STATUS", "Set the status of an issue: open, fixed or rejected; may be repeated."),
    ] = None,
    rename: Annotated[
        list[str] | None, options.option("ISSUE=NAME", "Give an issue another name; may be repeated.")
    ] = None,
    gate: Annotated[
        list[str] | None,
        options.option(
            "GATE",
            "Exit with code 1 unless this holds: 'failures.new <= 0', 'failures.back <= 0', or with a label 'failures.wrong_arguments <= 2%'; may be repeated.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    show: Annotated[int, options.number("Show N messages to open of each issue.")] = 3,
    output: Annotated[
        list[str] | None, options.output("Also write the issues to a file: .md, for a ticket, or .json.")
    ] = None,
    config: options.ConfigFile = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    dry_run: options.DryRun = False,
    offline: options.Offline = False,
) -> None:
    """Show what fails in a run, as a short list of issues.

    Each has its share of the run with an interval, the messages to open, what to change, and whether it is new.

    Needs the scores of failure_analysis. A judge groups the failures of a kind if there are many; without one, they are
    distinguished by label, agent and tool. Issues are kept in .judgekit/failures, which can be committed.
    """
    settings = Config(config, judge, os.environ, **({"offline": True} if offline else {}))
    grouping = _grouping_judge(settings)
    outputs = check_outputs(output, _KINDS, offline=offline)
    numbers = [options.parse_run_number(reference) for reference in (since, run) if reference is not None]
    runs = [Run.stored(number, store) for number in numbers]
    if dry_run:
        print_line(run_sync(lambda: _plan(runs, grouping, scorer, agent)))
        return
    *earlier, report = [find_failures(stored, judge=grouping, scorer=scorer, agent=agent) for stored in runs]
    changes = compare_failures(earlier[0], report) if earlier else ()
    if status or rename:
        report.edit(_pairs("status", status), _pairs("rename", rename))
        report = find_failures(runs[-1], scorer=scorer, agent=agent)
    if as_json:
        print_json(_json(report, changes))
    else:
        show_failures(report, changes, show, console())
    for note in report.notes:
        print_line(note, console(stderr=True))
    if report.path is not None and report.issues:
        print_line(f"issues: {report.path}", console(stderr=True))
    write_outputs(outputs, _KINDS, report, changes)
    results = check_failure_gates(report, gate or ())
    show_gates(results, console(stderr=True))
    raise typer.Exit(int(not results.met))


def _grouping_judge(settings: Config) -> Judge | None:
    """Return the judge that is named, or the only one of the config; ``None`` if there is none."""
    judges = list(settings.selected_judges().values())
    if len(judges) > 1:
        names = ", ".join(settings.judges)
        raise ConfigError(f"the config has several judges: name one with --judge: {names}")
    return judges[0] if judges else None


async def _plan(runs: Sequence[Run], judge: Judge | None, scorer: str, agent: str | None) -> str:
    """Return what grouping would ask, as far as it is known before the first answer."""
    with planning():
        reports = [await afind_failures(run, judge=judge, scorer=scorer, agent=agent, keep=False) for run in runs]
        await close_plan()
    calls = [call for report in reports for call in report.calls]
    requests = sum(call.is_request for call in calls)
    costs = [call.cost_usd for call in calls if call.is_request]
    cost = "unknown cost" if None in costs else f"about ${sum(filter(None, costs)):.4f}"
    tokens = sum(call.tokens_paid or 0 for call in calls)
    failed = sum(report.failed for report in reports)
    return f"{failed:,} failures: {requests:,} requests to group them, about {tokens:,} tokens, {cost}"


def _pairs(option: str, texts: Sequence[str] | None) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, _, given = text.partition("=")
        if not (name and given):
            raise ConfigError(f"--{option} {text}: expected ISSUE=..., such as 3f2a9c01=fixed")
        pairs[name] = given
    return pairs


def _json(report: FailureReport, changes: Sequence[IssueChange]) -> JsonValue:
    return {**report.as_json(), "changes": [change.as_json() for change in changes]}


_KINDS: Mapping[str, Callable[[FailureReport, Sequence[IssueChange]], Iterable[str]]] = {
    ".json": lambda report, changes: json_text(_json(report, changes)),
    ".md": failures_markdown,
}

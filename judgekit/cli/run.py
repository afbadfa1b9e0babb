"""``judgekit run``, ``resume``, ``score`` and ``demo``: score recorded conversations."""

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

import judgekit
from judgekit.analysis.gates import Gate
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import print_stopping, report_outcome, show_problems, show_run
from judgekit.cli.outputs import check_outputs, print_json, print_line, print_run_location
from judgekit.errors import JudgekitError, path_text
from judgekit.formats.session_files import require_separate_output
from judgekit.jobs.building import BuiltScorers, Workers, build_scorers
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.jobs.options import RunOptions
from judgekit.jobs.resume import extension_session, resume_session
from judgekit.jobs.session import Session
from judgekit.jobs.starting import new_session
from judgekit.locations import Location
from judgekit.reports.glossary import command_consoles
from judgekit.reports.summary import Shown, show_plan
from judgekit.resources import resource_folder
from judgekit.runs.results import Run
from judgekit.runs.rows import RunDescription
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scoring import Scorer
from judgekit.specs import JUDGE_VARIABLE, ScorerSpec
from judgekit.terminal import console, escaped_text


@app.command()
def demo(
    failures: Annotated[
        bool,
        typer.Option("--failures", help="Show what fails in them, with the messages to open, instead of the scores."),
    ] = False,
    explain: options.Explain = False,
) -> None:
    """Score the examples and audit their judge, offline.

    Replays judge replies that were written by hand.
    """
    folder = resource_folder("examples")
    judge = judgekit.Judge("demo/handwritten", cache=folder / "replies.jsonl", cache_mode="replay")
    goal = judgekit.AgentGoalAccuracyWithoutReference(judge)
    scorers: list[Scorer] = [
        judgekit.ToolCallAccuracy(),
        judgekit.ToolCallF1(),
        judgekit.TopicAdherence(judge),
        judgekit.AgentGoalAccuracyWithReference(judge),
        goal,
    ]
    if failures:
        scorers.append(judgekit.FailureAnalysis(judge))
    samples = list(judgekit.read(folder / "conversations.jsonl", on_error="raise"))
    scored = judgekit.run(samples, scorers, concurrency=1)
    if failures:
        from judgekit.failures.finding import find_failures  # noqa: PLC0415 - most runs do not look for them
        from judgekit.reports.failures import show_failures  # noqa: PLC0415

        show_failures(find_failures(scored), (), 1, console())
        return
    from judgekit.reports.audit import show_audit  # noqa: PLC0415 - as above

    audited = judgekit.audit(
        judgekit.run(samples, [goal], concurrency=1),
        judgekit.read_labels(folder / "labels.csv"),
        sources=["labels.csv"],
    )
    with command_consoles(explain=explain) as screen:
        show_run(scored, Shown(1), screen.out)
        typer.echo("\nIs this judge right? A person labeled the same conversations:")
        show_audit(audited, 2, screen.out)
    typer.echo(
        "\nNext: judgekit run FILE --scorer tool_call_f1 for your own conversations; judgekit scorers lists all scorers."
    )


@app.command()
def run(
    file: options.RecordingsArgument,
    scorer: options.ScorersOption = None,
    judge: options.JudgeName = None,
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
    references: options.ReferencesOption = None,
    no_answer: options.NoAnswerOption = None,
    config: options.ConfigFile = None,
    limit: options.Limit = None,
    sample: options.SampleOption = None,
    seed: options.Seed = 0,
    output: options.Output = None,
    gate: Annotated[
        list[str] | None,
        options.option(
            "GATE",
            "Exit with code 1 unless this holds: 'tool_call_f1 >= 0.9', or 'tool_call_f1.min >= 0.5' for each sample; may be repeated.",
        ),
    ] = None,
    show: options.Show = "0",
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    strict: options.Strict = False,
    workers: options.WorkersOption = None,
    engine: options.EngineOption = "processes",
    shard: options.ShardOption = None,
    run_id: options.RunIdOption = None,
    name: options.RunName = None,
    tag: options.RunTag = None,
    note: options.RunNote = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    together: options.TogetherOption = None,
    dry_run: options.DryRun = False,
    offline: options.Offline = False,
) -> None:
    """Score recorded conversations."""
    run_options = RunOptions(
        file=path_text(file),
        format=format,
        columns=options.parse_columns(column) if column else {},
        encoding=encoding,
        references=None if references is None else path_text(references),
        no_answer=no_answer,
        config=None if config is None else path_text(config),
        judge=judge or os.environ.get(JUDGE_VARIABLE) or None,
        scorers=[ScorerSpec.parse(text) for text in scorer or ()],
        limit=limit,
        sample=options.parse_sample(sample) if sample else None,
        seed=seed,
        shard=shard,
        gates=gate or (),
        strict=strict,
        offline=offline,
        together=together,
    )
    run_options.check_sampling(run_id)
    shown = options.parse_shown(show)
    if limit is not None and sample:
        print_line(f"--limit comes first: --sample draws from the first {limit:,} samples", console(stderr=True))
    built = build_scorers(run_options, judge=judge, config=run_options.load_config())
    if not dry_run:
        built.check_judges()
    for text in built.options.gates:
        Gate.parse(text, [scorer.name for scorer in built.scorers])
    outputs = check_outputs(output, offline=offline)
    for path in outputs:
        require_separate_output(path, file, references, config)
    if dry_run:
        show_planned(built, as_json=as_json)
        return
    described = options.changed_description(RunDescription(), name, tag, note) if name or tag or note else None
    raise run_and_report(
        new_session(built, store, run_id=run_id, workers=Workers(workers, engine), description=described),
        shown,
        outputs,
        explain=explain,
        as_json=as_json,
    )


@app.command()
def resume(
    run: options.RunArgument = "last",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Score failed samples again.")] = False,
    output: options.Output = None,
    show: options.Show = "0",
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    workers: options.WorkersOption = None,
    engine: options.EngineOption = "processes",
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Continue a run that stopped early."""
    shown = options.parse_shown(show)
    session = resume_session(_run_reference(run), store, retry_failed=retry_failed, workers=Workers(workers, engine))
    outputs = check_outputs(output, offline=session.options.offline)
    before = session.before
    if not retry_failed and before is not None and before.ended_at is not None and not before.stop_reason:
        nothing = "so nothing was scored" if session.complete else "and only missing scores are added"
        print_line(f"run {before.number} has already finished, {nothing}", console(stderr=True))
    raise run_and_report(session, shown, outputs, explain=explain, as_json=as_json)


@app.command()
def score(
    run: options.RunArgument,
    scorer: Annotated[
        list[str], options.option("SCORER", "A scorer, as in judgekit run; may be repeated.", "--scorer", "-s")
    ],
    judge: options.JudgeName = None,
    output: options.Output = None,
    show: options.Show = "0",
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    workers: options.WorkersOption = None,
    engine: options.EngineOption = "processes",
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Add scorers to a finished run. Its other scores stay as they are.

    The scorers ask the judge of the run unless another is named.
    """
    shown = options.parse_shown(show)
    reference = _run_reference(run)
    session = extension_session(reference, scorer, store, judge=judge, workers=Workers(workers, engine))
    outputs = check_outputs(output, offline=session.options.offline)
    added = shown._replace(scorers=[scorer.name for scorer in session.scorers])
    raise run_and_report(session, added, outputs, explain=explain, as_json=as_json)


def _run_reference(run: str) -> int | Literal["last"]:
    number = options.parse_run_number(run)
    return "last" if number is None else number


def show_planned(built: BuiltScorers, *, compares_ways: bool = True, as_json: bool = False) -> None:
    """Show the requests that a run would send, what they take if asked the other way, and the budgets of its judges."""
    from judgekit.jobs.plan import make_plan  # noqa: PLC0415 - loads judges, which a run may not need

    plan = asyncio.run(make_plan(built))
    if as_json:
        print_json(plan.as_json())
        return
    show_plan(plan.summary, console())
    words = [word for word in sys.argv[1:] if word not in ("--dry-run", "--together", "--no-together")]
    for note in plan.notes():
        console().print(escaped_text(note))
    is_whole = built.options.limit is None and built.options.sample is None
    options_shown = [] if plan.cheaper_share is None or not is_whole else [f"--sample {plan.cheaper_share:.12g}%"]
    if compares_ways and plan.other_way is not None:
        for way in plan.ways():
            console().print(escaped_text(way))
        options_shown.append("--no-together" if plan.together else "--together")
    for option in options_shown:
        console().print(escaped_text(f"judgekit {shlex.join(words)} {option}"), soft_wrap=True)
    for judge in plan.judges.values():
        if judge.budget:
            limit = "" if judge.own_output_limit is None else f"; max_output_tokens: {judge.own_output_limit:,}"
            console().print(escaped_text(f"{judge.model}: budget of {judge.budget}{limit}"))
    show_problems(plan.problems, (), console(stderr=True))


def run_session(session: Session) -> tuple[Run, int]:
    """Run a session, and return the run and the exit code of a signal that stopped it, or 0."""
    interrupts = InterruptHandler(print_stopping)
    session.console, session.interrupts = console(stderr=True), interrupts
    try:
        run = session.run()
    except KeyboardInterrupt:
        if interrupts.signal is None:
            raise
        print_line("interrupted before anything was scored", console(stderr=True))
        raise typer.Exit(interrupts.exit_code) from None
    except (JudgekitError, OSError):
        if session.keeps_run:
            print_run_location(session.record, session.store)
            print_line(f"judgekit resume {session.record.number} continues from there", console(stderr=True))
        raise
    return run, interrupts.exit_code


def run_and_report(
    session: Session, shown: Shown, outputs: Sequence[Location], *, explain: bool, as_json: bool
) -> typer.Exit:
    """Run a session, show the result, and return the exit of the command."""
    run, signaled = run_session(session)
    with command_consoles(explain=explain, as_json=as_json) as screen:
        code = report_outcome(
            run,
            session.options,
            session.problems,
            screen,
            shown,
            outputs,
            is_new=session.complete is None,
            as_json=as_json,
        )
    return typer.Exit(signaled or code)

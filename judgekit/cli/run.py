"""``judgekit run``, ``resume``, ``score`` and ``demo``: score recorded conversations."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

import judgekit
from judgekit.analysis.gates import Gate
from judgekit.cli.app import LARGEST, app
from judgekit.cli.kept import Kept, Number, Output, Show, numbered, show_kept, writable
from judgekit.cli.outcome import conclude, say_stopping, show_problems, show_run
from judgekit.cli.recordings import Column, Encoding, Format, Recorded, columns_of
from judgekit.errors import JudgekitError, path_text
from judgekit.formats.files import must_not_be_read
from judgekit.formats.reading import read
from judgekit.jobs.building import Built, build
from judgekit.jobs.interrupts import Interrupts
from judgekit.jobs.options import RunOptions
from judgekit.jobs.plan import planned
from judgekit.jobs.resume import extended, resumed
from judgekit.jobs.session import Session
from judgekit.jobs.starting import new_session
from judgekit.judges.judge import Judge
from judgekit.reports.glossary import explained
from judgekit.reports.summary import show_plan
from judgekit.runs.results import Run
from judgekit.runs.store import RUNS
from judgekit.scoring import Scorer
from judgekit.shipped import shipped
from judgekit.specs import JUDGE_VARIABLE, ScorerSpec
from judgekit.terminal import console, harmless

JudgeName: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The judge: a model such as openai/gpt-4.1-mini, or a name from the config."),
]
Gates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        metavar="GATE",
        help="What a number must come to, or exit code 1: 'tool_call_f1 >= 0.9', or 'tool_call_f1.min >= 0.5' for each "
        "sample; may be repeated.",
    ),
]
Workers: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1024, metavar="N", help="Processes for the scorers that ask no judge; 1 is this one.")
]
References: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File of references for traces that carry none, joined by id, input or metadata key."
    ),
]
ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Config file; judgekit.toml if it is there.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(min=1, max=LARGEST, metavar="N", help="Score only the first N samples.")
]
Sampled: TypeAlias = Annotated[
    int | None, typer.Option(min=1, max=LARGEST, metavar="N", help="Score N samples drawn at random.")
]
Seed: TypeAlias = Annotated[int, typer.Option(metavar="N", help="For --sample: which draw.")]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option("--dry-run", help="Say how many requests, tokens and dollars it would take, and send nothing."),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Send no request out of this machine; the cache is used.")
]


@app.command()
def demo() -> None:
    """Score the example conversations, offline.

    The judge's replies were written by hand and are replayed.
    """
    folder = shipped("examples")
    judge = Judge("demo/handwritten", cache=folder / "replies.jsonl", cache_mode="replay")
    scorers: list[Scorer] = [
        judgekit.ToolCallAccuracy(),
        judgekit.ToolCallF1(),
        judgekit.TopicAdherence(judge),
        judgekit.AgentGoalAccuracyWithReference(judge),
        judgekit.AgentGoalAccuracyWithoutReference(judge),
    ]
    with explained() as screen:
        scored = judgekit.run(read(folder / "conversations.jsonl", on_error="raise"), scorers, concurrency=1)
        show_run(scored, 3, screen.out)
    typer.echo(
        "\nNext: judgekit run FILE --scorer tool_call_f1 on conversations of your own; judgekit scorers lists the rest."
    )


@app.command()
def run(
    file: Recorded,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            "--scorer",
            "-s",
            metavar="SCORER",
            help="A scorer, as NAME or NAME:option=value,... (see judgekit scorers), or your own as FILE.py:NAME or "
            "PACKAGE.MODULE:NAME; may be repeated.",
        ),
    ] = None,
    judge: JudgeName = None,
    format: Format = None,
    column: Column = None,
    encoding: Encoding = None,
    references: References = None,
    config: ConfigFile = None,
    limit: Limit = None,
    sample: Sampled = None,
    seed: Seed = 0,
    output: Output = None,
    gate: Gates = None,
    show: Show = 0,
    strict: Strict = False,
    workers: Workers = 1,
    store: Kept = RUNS,
    dry_run: DryRun = False,
    offline: Offline = False,
) -> None:
    """Score recorded conversations."""
    options = RunOptions(
        file=path_text(file),
        format=format,
        columns=columns_of(column or ()),
        encoding=encoding,
        references=None if references is None else path_text(references),
        config=None if config is None else path_text(config),
        judge=judge or os.environ.get(JUDGE_VARIABLE) or None,
        scorers=[ScorerSpec.parse(text) for text in scorer or ()],
        limit=limit,
        sample=sample,
        seed=seed,
        gates=gate or (),
        strict=strict,
        offline=offline,
    )
    built = build(options.completed(), judge=judge)
    if not dry_run:
        built.check_judges()
    for text in built.options.gates:
        Gate.parse(text, [one.name for one in built.scorers])
    outputs = writable(output)
    for one in outputs:
        must_not_be_read(one, file, references, config)
    if dry_run:
        show_planned(built)
        return
    raise finish(new_session(built, store, workers=workers), show, outputs)


@app.command()
def resume(
    run: Number = "last",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make failed scores again.")] = False,
    output: Output = None,
    show: Show = 0,
    workers: Workers = 1,
    store: Kept = RUNS,
) -> None:
    """Go on with a run that broke off or was stopped."""
    outputs = writable(output)
    raise finish(resumed(_which(run), store, retry_failed=retry_failed, workers=workers), show, outputs)


@app.command()
def score(
    run: Number,
    scorer: Annotated[
        list[str],
        typer.Option("--scorer", "-s", metavar="SCORER", help="A scorer, as in run; may be repeated."),
    ],
    judge: JudgeName = None,
    output: Output = None,
    show: Show = 0,
    workers: Workers = 1,
    store: Kept = RUNS,
) -> None:
    """Add scorers to a finished run. What was scored before stays as it is.

    The scorers ask the judge of the run unless another is named.
    """
    outputs = writable(output)
    raise finish(extended(_which(run), store, scorer, judge=judge, workers=workers), show, outputs)


def _which(run: str) -> int | Literal["last"]:
    number = numbered(run)
    return "last" if number is None else number


def show_planned(built: Built) -> None:
    """Show what a run would ask for, and within which budgets."""
    plan = asyncio.run(planned(built))
    show_plan(plan.summary, console())
    for judge in plan.judges.values():
        if judge.budget:
            limit = "" if judge.own_output_limit is None else f"; max_output_tokens: {judge.own_output_limit:,}"
            console().print(harmless(f"{judge.model}: budget of {judge.budget}{limit}"))
    show_problems(plan.problems, (), console(stderr=True))


def scored(session: Session) -> tuple[Run, int]:
    """Run a session, and return the run and the exit code of a signal that stopped it, or 0."""
    interrupts = Interrupts(say_stopping)
    try:
        run = session.run(console(stderr=True), interrupts)
    except KeyboardInterrupt:
        if not interrupts.stopping():
            raise
        _say("interrupted before anything was scored")
        raise typer.Exit(interrupts.exit_code) from None
    except (JudgekitError, OSError):
        if session.kept:
            show_kept(session.record, session.store)
            _say(f"judgekit resume {session.record.number} goes on from there")
        raise
    return run, interrupts.exit_code


def finish(session: Session, most: int, outputs: Sequence[Path]) -> typer.Exit:
    """Run a session, show what came of it, explain the words, and return the end of the command."""
    run, signalled = scored(session)
    with explained() as screen:
        code = conclude(run, session.problems, screen, show=most, outputs=outputs)
    return typer.Exit(signalled or code)


def _say(text: str) -> None:
    console(stderr=True).print(text, soft_wrap=True)

"""``judgekit run``, ``resume``, ``score`` and ``demo``: score recorded conversations."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

import judgekit
from judgekit.cli.app import app
from judgekit.cli.asked import Asked
from judgekit.cli.interrupts import Interrupts
from judgekit.cli.kept import Kept, Number, Output, Show, numbered, show_kept, writable
from judgekit.cli.outcome import conclude, show_problems, show_run
from judgekit.cli.recordings import Column, Encoding, Format, Recorded, columns_of
from judgekit.cli.work import Errand, Processes
from judgekit.config import JUDGE_VARIABLE, Config, ScorerSpec
from judgekit.errors import BudgetError, ConfigError, JudgeDownError, JudgekitError, StoreError, listed
from judgekit.judges.judge import Judge
from judgekit.judges.rate_limit import requests_under_way
from judgekit.reports.gates import Gate
from judgekit.reports.glossary import Screen, explained
from judgekit.reports.terminal import console, show_plan
from judgekit.runs.counting import Source, count_samples
from judgekit.runs.problems import Problems
from judgekit.runs.progress import Tally, progress
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, SampleCount, ScorerRecord, differences
from judgekit.runs.runner import Task, must_differ, score_each, score_into, tasks
from judgekit.runs.store import RUNS, Store, now
from judgekit.runs.summary import Summary
from judgekit.score import Status
from judgekit.scoring import Scorer
from judgekit.shipped import shipped
from judgekit.traces.files import STREAM, must_not_be_read
from judgekit.traces.reading import read

_DIFFERENCES_SHOWN = 5

JudgeName: TypeAlias = Annotated[
    str | None, typer.Option(help="The judge: a model such as openai/gpt-4.1-mini, or a name from the config.")
]
Gates: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        help="What a number must come to, or exit code 1: 'tool_call_f1 >= 0.9', or 'tool_call_f1.min >= 0.5' for each "
        "sample; may be repeated.",
    ),
]
Workers: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Processes for the scorers that ask no judge; 1 is this one.")
]
References: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="File of references for traces that carry none, joined by id, input or metadata key."),
]
ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="Config file; judgekit.toml if it is there.")
]
Limit: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Score only the first N samples.")]
Sampled: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Score N samples drawn at random.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="For --sample: which N.")]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option("--dry-run", help="Say how many requests, tokens and dollars it would take, and send nothing."),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Send no request out of this machine; the cache is used.")
]


class Ended(NamedTuple):
    """A run that was scored as far as it came, what could not be read, and the signal that stopped it."""

    run: Run
    problems: Problems
    signal: int | None

    def conclude(self, screen: Screen, show: int, outputs: Sequence[Path] = ()) -> int:
        """Says what came of it, and gives the exit code."""
        asked = Asked.of(self.run.record)
        code = conclude(self.run, self.problems, asked.gates, asked.min_coverage, screen, show=show, outputs=outputs)
        return code if self.signal is None else 128 + self.signal

    def exit(self, show: int, outputs: Sequence[Path]) -> typer.Exit:
        """Says what came of it, explains the words, and gives the end of the command."""
        with explained() as screen:
            return typer.Exit(self.conclude(screen, show, outputs))


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
        typer.Option(help="A scorer, as NAME or NAME:option=value,...; may be repeated. See judgekit scorers."),
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
    asked = Asked(
        file=str(file),
        format=format,
        columns=columns_of(column or ()),
        encoding=encoding,
        references=None if references is None else str(references),
        config=None if config is None else str(config),
        judge=judge or os.environ.get(JUDGE_VARIABLE) or None,
        scorers=[ScorerSpec.parse(text) for text in scorer or ()],
        limit=limit,
        sample=sample,
        seed=seed,
        gates=gate or (),
        strict=strict,
        offline=offline,
    )
    settings = asked.settings(dry_run=dry_run)
    said = {
        "scorers": tuple(asked.scorers or settings.scorers),
        "gates": (*settings.gates, *asked.gates),
        "min_coverage": settings.min_coverage,
    }
    asked = asked.model_copy(update=said)
    if not asked.scorers:
        raise ConfigError(
            "name what to score with: --scorer NAME, or [[scorers]] in a config file; judgekit scorers lists them"
        )
    scorers = built(settings, asked.scorers)
    if judge:  # misspelt, it would be overlooked where no scorer asks it
        settings.judge(judge)
    for text in asked.gates:
        Gate.parse(text, [one.name for one in scorers])
    if workers > 1 and (streams := asked.streams):
        raise ConfigError(
            f"--workers {workers}: {streams[0]} can be read by one process, once; write it to a file, or leave --workers out"
        )
    outputs = writable(output)
    for one in outputs:
        must_not_be_read(one, file, references, config)
    if dry_run:
        plan(asked, scorers)
        return
    raise score_anew(asked, settings, scorers, store, workers).exit(show, outputs)


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
    kept = Store(store)
    record = kept.record(numbered(run))
    asked = Asked.of(record)
    settings = asked.settings()
    scorers = built(settings, asked.scorers)
    _must_be_as_before(record, scorers)
    again: tuple[Status, ...] = ("failed",) if retry_failed else ()
    from_store = _has_its_samples(kept, record, asked)
    expected = {} if record.samples_known == "exactly" else SampleCount.expected(asked.expected())._asdict()
    went_on = record.model_copy(update={"ended_at": None, "stopped": "", **expected})
    with kept.going_on(record, went_on) as went_on:
        errand = Errand(store, went_on, range(len(scorers)), again, from_store)
        ended = _score(kept, errand, scorers, settings, workers)
    raise ended.exit(show, outputs)


@app.command()
def score(
    run: Number,
    scorer: Annotated[list[str], typer.Option(help="A scorer; may be repeated. See judgekit scorers.")],
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
    kept = Store(store)
    record = kept.record(numbered(run))
    asked = Asked.of(record)
    if record.unfinished:
        raise ConfigError(f"run {record.number} is not finished; judgekit resume {record.number} goes on with it")
    settings = asked.settings()
    asking = judge or asked.judge or os.environ.get(JUDGE_VARIABLE) or None
    specs = [ScorerSpec.parse(text).asking(asking) for text in scorer]
    scorers = built(settings, specs)
    if judge:
        settings.judge(judge)
    must_differ([*(one.name for one in record.scorers), *(one.name for one in scorers)])
    from_store = _has_its_samples(kept, record, asked)
    places = range(len(record.scorers), len(record.scorers) + len(scorers))
    asked = asked.model_copy(update={"scorers": (*asked.scorers, *specs)})
    with_them = record.model_copy(
        update={
            "scorers": (*record.scorers, *map(ScorerRecord.of, scorers)),
            "asked": asked.model_dump(mode="json", by_alias=True),
            "ended_at": None,
        }
    )
    with kept.going_on(record, with_them, places.start) as with_them:
        errand = Errand(store, with_them, places, kept=from_store)
        ended = _score(kept, errand, scorers, settings, workers)
    raise ended.exit(show, outputs)


def built(settings: Config, specs: Sequence[ScorerSpec]) -> list[Scorer]:
    """The scorers, whose judges can be asked."""
    scorers = [settings.build(spec) for spec in specs]
    must_differ([one.name for one in scorers])
    for judge in settings.judges_used.values():
        judge.check()
    return scorers


def _must_be_as_before(record: RunRecord, scorers: Sequence[Scorer]) -> None:
    """Checks that scores made now belong to those that were made before."""
    for before, now_is in zip(record.scorers, map(ScorerRecord.of, scorers), strict=True):
        if before.signature is None or before.signature != now_is.signature:
            differs = listed(differences(before.identity, now_is.identity), _DIFFERENCES_SHOWN, "; ")
            raise ConfigError(
                f"run {record.number} cannot go on: {before.name} is not what it was: "
                f"{differs or 'its code cannot be told from another'}; begin a new run with judgekit run"
            )


def _has_its_samples(store: Store, record: RunRecord, asked: Asked) -> bool:
    """Whether all samples of a run are kept with it.

    Raises:
        ConfigError: They are not, and the recordings are not those that were read before.
    """
    if record.read_to_end and store.keeps_all(record.number):
        return True
    if Path(asked.file) == STREAM:
        raise ConfigError(f"run {record.number} read standard input, which is gone; begin a new run with judgekit run")
    before = {one.path: one.sha256 for one in record.inputs}
    found = {one.path: one.sha256 for one in asked.inputs()}
    changed = sorted(path for path in before.keys() | found.keys() if before.get(path) != found.get(path))
    if changed:
        raise ConfigError(
            f"run {record.number} cannot go on: {listed(changed, _DIFFERENCES_SHOWN, ', ')} "
            "changed, came or went since it began; begin a new run with judgekit run"
        )
    return False


def plan(asked: Asked, scorers: Sequence[Scorer]) -> None:
    """Says what a run would ask for."""
    summary, problems = Summary(), Problems()
    samples = (sample for _, sample in asked.samples(problems))
    asyncio.run(score_each(tasks(samples, scorers), scorers, summary.add, concurrency=1))
    show_plan(summary, console())
    show_problems(problems, (), console(stderr=True))


def score_anew(asked: Asked, settings: Config, scorers: Sequence[Scorer], store: Path, workers: int = 1) -> Ended:
    """Begin a run, and score. If nothing comes of it, it is forgotten."""
    expected = SampleCount.expected(asked.expected())
    record = RunRecord(
        started_at=now(),
        inputs=asked.inputs(),
        scorers=[ScorerRecord.of(one) for one in scorers],
        asked=asked.model_dump(mode="json", by_alias=True),
        version=version("judgekit"),
        keeps_text=settings.store_text,
        samples=expected.samples,
        samples_known=expected.samples_known,
    )
    kept = Store(store)
    with kept.starting(record) as record:
        return _score(kept, Errand(store, record, range(len(scorers))), scorers, settings, workers)


def _score(store: Store, errand: Errand, scorers: Sequence[Scorer], settings: Config, workers: int) -> Ended:
    """Score what is missing.

    Raises:
        JudgekitError: Nothing more could be scored. A spent budget, or a judge that is down, is raised if nothing came of
            these scorers at all.
        typer.Exit: It was interrupted before anything came of it.
    """
    record, interrupts, problems, first = errand.record, Interrupts(), Problems(), min(errand.places)
    stopped_by: BudgetError | JudgeDownError | None = None
    shared = [place for place in errand.places if workers > 1 and not record.scorers[place].judged]
    own = [(place, one) for place, one in zip(errand.places, scorers, strict=True) if place not in shared]
    concurrency = max((one.concurrency for one in settings.judges_used.values()), default=1)
    mine = replace(errand, places=[place for place, _ in own]) if own else errand
    own_scorers = [one for _, one in own]
    source = Source(mine.tasks(store, own_scorers or scorers, problems))
    tally = _tally(store, errand)

    async def here() -> None:
        nonlocal stopped_by
        try:
            await score_into(
                store,
                record,
                interrupts.until(source) if own else (),
                own_scorers,
                concurrency=concurrency,
                emit=tally.add,
            )
        except (BudgetError, JudgeDownError) as error:
            stopped_by = error

    async def work(processes: Processes | None) -> None:
        others = processes.finish(lambda: interrupts.signal is not None) if processes else None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(here())
                elsewhere = group.create_task(others) if others else None
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        problems.join(elsewhere.result() if elsewhere else Problems())

    try:
        with ExitStack() as stack:
            processes = stack.enter_context(Processes(replace(errand, places=shared), workers)) if shared else None
            if processes is not None:
                tally.elsewhere = lambda: (processes.scored, processes.failed)
            stack.enter_context(progress(tally, console(stderr=True)))
            asyncio.run(interrupts.heed(work(processes)))
    except KeyboardInterrupt:
        interrupts.signal = signal.SIGINT
    except (JudgekitError, OSError) as error:
        if store.is_there and not store.is_empty(record.number, first):
            if not isinstance(error, StoreError):  # else the file may be the one that cannot be used
                _ended(store, errand, f"stopped: {error}", source, problems, interrupts)
            show_kept(record, store)
            console(stderr=True).print(f"judgekit resume {record.number} goes on from there", soft_wrap=True)
        raise
    stopped = "interrupted" if interrupts.signal is not None else f"stopped: {stopped_by}" if stopped_by else ""
    if store.is_empty(record.number, first):
        if interrupts.signal is not None:
            console(stderr=True).print("interrupted before anything was scored")
            raise typer.Exit(128 + interrupts.signal)
        if stopped_by is not None:
            raise stopped_by
        problems.must_have_read_some(0)
    return _ended(store, errand, stopped, source, problems, interrupts)


def _ended(
    store: Store, errand: Errand, stopped: str, source: Source[Task], problems: Problems, interrupts: Interrupts
) -> Ended:
    """Write that a run has ended, and how many samples it has; if it was stopped, those that are left are counted."""
    record = errand.record
    ended = {"ended_at": now(), "stopped": stopped, "read_to_end": record.read_to_end or not stopped}
    record = store.change(record.model_copy(update=ended))  # it has ended, whatever becomes of the counting
    count = SampleCount(store.counts(record.number).samples, "exactly")
    if stopped and not errand.kept:
        with interrupts.at_once():
            count = count_samples(store, record.number, source)
        problems.join(Problems())  # what other processes could not read either counts once
    known = {} if record.samples_known == "exactly" else count._asdict()
    notes = record.notes if errand.kept else tuple(problems.notes(record.inputs))
    record = store.change(record.model_copy(update={**known, "notes": notes}))
    return Ended(Run(store, record), problems, interrupts.signal)


def _tally(store: Store, errand: Errand) -> Tally:
    """What is there already of all that is to be there in the end."""
    record, there = errand.record, store.counts(errand.record.number)
    again = there.failed if errand.again else 0
    return Tally(
        total=None if record.samples_known == "at least" else record.samples * len(errand.places),
        done=there.scores - again if 0 in errand.places else 0,  # scorers that were added have none yet
        failed=there.failed - again if 0 in errand.places else 0,
        under_way=requests_under_way,
    )

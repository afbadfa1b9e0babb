"""``judgekit align``: look for a question by which a judge agrees more often with people, and test whether it does."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from judgekit.alignment.align import prepare
from judgekit.alignment.aligning import Aligning
from judgekit.alignment.result import Alignment
from judgekit.analysis.labels import HumanLabel, deduplicate, read_labels
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.label_files import store_labels
from judgekit.cli.outputs import print_line
from judgekit.config import Config
from judgekit.errors import ConfigError, JudgeError
from judgekit.jobs.interrupts import InterruptHandler
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import run_sync
from judgekit.specs import ScorerSpec
from judgekit.terminal import console, printable_lines, text_table

_CONTINUES = "the same command continues from here, as far as replies are cached"


@app.command()
def align(
    scorer: Annotated[
        str, typer.Argument(metavar="SCORER", help="The scorer with the old question, such as prompt:tone.")
    ],
    labels: options.LabelFiles = None,
    judge: options.JudgeName = None,
    writer: Annotated[
        str | None, options.option("MODEL", "The model that writes candidates; by default, the judge.")
    ] = None,
    run: Annotated[
        str | None,
        options.option(
            "RUN", "The run that the labels are from; by default, the one that they name, or the scorer's last."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        options.option(
            "FILE", "The new prompt file; by default, NAME_aligned.md next to the old one.", "--output", "-o"
        ),
    ] = None,
    config: options.ConfigFile = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    dry_run: options.DryRun = False,
    offline: options.Offline = False,
) -> None:
    """Align a judge with people.

    A model reads some of the labels and writes candidate questions. A second part of the labels selects the best one, and
    a third part tests it. judgekit writes it into a prompt file. Labels of files are stored with the run, and count with those
    of earlier files.

    Exit code 0: an improvement is shown; 1: it is not, or labels are too few; 2: the scorer cannot be aligned.
    """
    settings = Config(config, judge, os.environ, offline=offline)
    spec = ScorerSpec.parse(scorer)
    built = settings.build(spec)
    if not isinstance(built, PromptScorer):
        raise ConfigError(
            f"{built.name} cannot be aligned: only scorers made of a prompt with a scale can, such as prompt:tone"
        )
    runs = RunStore(store, read_only=True)
    given = deduplicate(label for path in labels or () for label in read_labels(path))
    record = _labeled_run(runs, built.name, given) if run is None else runs.record(options.parse_run_number(run))
    labeled = Run(runs, record)
    aligning = prepare(
        built,
        labeled,
        given,
        writer=None if writer is None else settings.judge(writer),
        output=output or _beside(spec, built.name),
        announce=lambda text: print_line(text, console(stderr=True)),
    )
    for reason, number in aligning.unused_labels.items():
        print_line(f"labels left out: {number:,} ({reason})", console(stderr=True))
    refused = aligning.refused_early() if dry_run else None
    if dry_run and refused is None:
        print_line(str(run_sync(aligning.plan)))
        return
    if refused is None:
        aligning.check()
        store_labels(labeled, given)
    alignment = refused or _align(aligning)
    _show(alignment)
    if alignment.outcome != "shown":
        raise typer.Exit(1)


def _align(aligning: Aligning) -> Alignment:
    """Return the result; an alignment that ends early says how it continues."""
    alignments: list[Alignment] = []
    tasks: list[asyncio.Task[object] | None] = []

    async def work() -> None:
        tasks.append(asyncio.current_task())
        alignments.append(await aligning.align())

    interrupts = InterruptHandler(lambda: [task.cancel() for task in tasks if task is not None])
    try:
        interrupts.run(work)
    except JudgeError as error:
        print_line(f"stopped: {error}; {_CONTINUES}", console(stderr=True))
        raise typer.Exit(1) from None
    if not alignments:
        print_line(f"interrupted; {_CONTINUES}", console(stderr=True))
        raise typer.Exit(interrupts.exit_code)
    return alignments[0]


def _labeled_run(runs: RunStore, scorer: str, labels: Sequence[HumanLabel]) -> RunRecord:
    """Return the only run that labels name, or else the last one that read a file and has the scorer."""
    named = {label.run for label in labels if label.run is not None}
    if len(named) == 1:
        return runs.record(named.pop())
    if named:
        raise ConfigError(
            f"the labels are from several runs: name one with --run: {', '.join(map(str, sorted(named)))}"
        )
    records = [
        record for record in runs.records() if record.inputs and scorer in {judged.name for judged in record.scorers}
    ]
    if not records:
        raise ConfigError(f"{runs.path} has no run with {scorer}: judgekit run FILE --scorer ... makes one")
    return max(records, key=lambda record: record.number)


def _beside(spec: ScorerSpec, name: str) -> Path:
    """Return the file of the new prompt, next to that of the old one if it is the user's own."""
    prompt = spec.argument or spec.options.get("prompt")
    folder = Path(prompt).parent if isinstance(prompt, str) and prompt.endswith(".md") else Path()
    return folder / f"{name}_aligned.md"


def _show(alignment: Alignment) -> None:
    screen = console()
    if alignment.candidates:
        rows = [
            (
                candidate.kind,
                "chosen" if candidate.chosen else candidate.refusal_reason and f"refused: {candidate.refusal_reason}",
                "" if candidate.agreement is None else f"{candidate.agreement:.2f}",
            )
            for candidate in alignment.candidates
        ]
        screen.print(text_table(("candidate", "", "agreement"), rows, words=2))
    roles = ", ".join(f"{role} {number}" for role, number in alignment.roles.items())
    print_line(f"labeled samples: {roles}", screen)
    cost = "cost unknown" if alignment.cost_usd is None else f"${alignment.cost_usd:.4f}"
    print_line(f"{alignment.requests:,} requests, {alignment.cached:,} from cache, {cost}", screen)
    for line in alignment.lines():
        print_line(line, screen)
    if alignment.diff:
        screen.print(printable_lines(f"\n{alignment.diff}"), soft_wrap=True)
    if alignment.audit_record_path is not None:
        print_line(
            f"audit record, from the {alignment.roles['test']} test samples alone, run {alignment.run}: {alignment.audit_record_path}"
        )

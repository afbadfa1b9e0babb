"""``judgekit run`` and ``judgekit demo``: score recorded conversations."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

import judgekit
from judgekit.cli.app import app
from judgekit.cli.interrupts import Interrupts
from judgekit.cli.recordings import Column, Encoding, Format, Recorded, columns_of
from judgekit.config import Config, ScorerSpec
from judgekit.errors import BudgetError, ConfigError, TraceError
from judgekit.judges.judge import Judge
from judgekit.reports.export import RowWriter
from judgekit.reports.terminal import Highlights, console, printable, printable_lines, progress, show_plan, show_summary
from judgekit.runs.conduct import Efforts
from judgekit.runs.results import Row
from judgekit.runs.runner import must_differ, score_each
from judgekit.runs.summary import Summary
from judgekit.scoring import Scorer
from judgekit.shipped import shipped
from judgekit.traces.files import must_not_be_read
from judgekit.traces.reading import Recordings, read
from judgekit.traces.sample import Sample

_PROBLEMS_SHOWN = 5


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
    _score(read(folder / "conversations.jsonl", on_error="raise"), scorers, show=3)
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
    judge: Annotated[
        str | None, typer.Option(help="The judge: a model such as openai/gpt-4.1-mini, or a name from the config.")
    ] = None,
    format: Format = None,
    column: Column = None,
    encoding: Encoding = None,
    references: Annotated[
        Path | None,
        typer.Option(help="File of references for traces that carry none, joined by id, input or metadata key."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Config file; judgekit.toml if it is there.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N samples.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Score N samples drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="For --sample: which N.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write every score, as JSONL.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Show the reasons of the N lowest scores of each scorer.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how many requests, tokens and dollars it would take, and send nothing."),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Send no request out of this machine; the cache is used.")
    ] = False,
) -> None:
    """Score recorded conversations."""
    settings = Config(config, judge, os.environ, offline=offline, dry_run=dry_run)
    specs = [ScorerSpec.parse(text) for text in scorer or ()] or settings.scorers
    if not specs:
        raise ConfigError(
            "name what to score with: --scorer NAME, or [[scorers]] in a config file; judgekit scorers lists them"
        )
    scorers = [settings.build(spec) for spec in specs]
    must_differ(scorers)
    for judge_used in settings.judges_used.values():
        judge_used.check()
    problems: list[TraceError] = []
    recordings = Recordings(file, format, references, columns_of(column or ()), encoding)
    samples = recordings.samples("raise" if strict else problems.append)
    if output is not None:
        must_not_be_read(output, file, references, config)
    if limit is not None:
        samples = islice(samples, limit)
    if sample is not None:
        samples = _drawn(samples, sample, random.Random(seed))  # noqa: S311 - a draw, not a secret
    if dry_run:
        _plan(samples, scorers)
        _show_problems(problems, ())
        return
    _score(
        samples,
        scorers,
        show=show,
        output=output,
        text=settings.store_text,
        total=_total(file, limit, sample),
        problems=problems,
        concurrency=max((one.concurrency for one in settings.judges_used.values()), default=1),
    )
    if recordings.failed:
        raise typer.Exit(1)


def _plan(samples: Iterable[Sample], scorers: Sequence[Scorer]) -> None:
    """Says what a run would ask for."""
    summary = Summary()
    asyncio.run(score_each(samples, scorers, lambda row: summary.add(row.score), concurrency=1))
    show_plan(summary, console())


def _score(
    samples: Iterable[Sample],
    scorers: Sequence[Scorer],
    *,
    show: int,
    output: Path | None = None,
    text: bool = True,
    total: int | None = None,
    problems: Sequence[TraceError] = (),
    concurrency: int = 1,
) -> None:
    """Scores, shows, and ends with an exit code that says how it went."""
    summary, highlights, ids, interrupts = Summary(), Highlights(show), Counter[str](), Interrupts()
    efforts = Efforts()
    stopped = ""
    with ExitStack() as stack:
        write = stack.enter_context(_rows_to(output, len(scorers))) if output else None
        advance = stack.enter_context(progress(total, console(stderr=True)))

        def emit(row: Row) -> None:
            summary.add(row.score)
            highlights.add(row)
            if write is not None:
                write(row if text else row.without_text())

        def done(sample: Sample) -> None:
            ids[sample.id] += 1
            efforts.add(sample)
            advance()

        work = score_each(interrupts.until(samples), scorers, emit, done=done, concurrency=concurrency)
        try:
            asyncio.run(interrupts.heed(work))
        except KeyboardInterrupt:
            interrupts.signal = signal.SIGINT
        except BudgetError as error:
            stopped = f"stopped: {error}"
    if interrupts.signal is not None:
        stopped = "interrupted"
    unread = [problem for problem in problems if problem.index is not None]
    if unread and not ids and not stopped:
        raise TraceError(f"none of the {len(unread)} records could be read; the first: {unread[0]}")
    if efforts.conversations:
        console().print(str(efforts), soft_wrap=True)
    show_summary(summary, highlights, console())
    _show_problems(problems, [name for name, times in ids.items() if times > 1])
    if stopped:
        goes_on = "; the same command goes on from here, since all answers are cached" if summary.asked else ""
        said = f"{stopped}\n{ids.total()} samples were scored{goes_on}"
        console(stderr=True).print(printable_lines(said), soft_wrap=True)
    if interrupts.signal is not None:
        raise typer.Exit(128 + interrupts.signal)
    if stopped or unread or any(line.counts["failed"] for line in summary):
        raise typer.Exit(1)


@contextmanager
def _rows_to(path: Path, scorers: int) -> Generator[Callable[[Row], None]]:
    """Writes rows to a file, which is left as it was if there are none: a run that cannot begin destroys nothing."""
    was_there = path.exists()
    written = False
    try:
        with path.open("a", encoding="utf-8") as file:
            writer = RowWriter(file, scorers)

            def write(row: Row) -> None:
                nonlocal written
                if not written and path.is_file():
                    file.truncate(0)
                written = True
                writer.add(row)

            try:
                yield write
            finally:
                writer.flush()
    except OSError as error:
        raise ConfigError(f"--output {path}: cannot be written: {error}") from error
    finally:
        if not was_there and not written:
            path.unlink(missing_ok=True)


def _show_problems(problems: Sequence[TraceError], repeated: Sequence[str]) -> None:
    err = console(stderr=True)
    unread = sum(problem.index is not None for problem in problems)
    if unread:
        err.print(f"\n{unread} records could not be read:")
    for problem in problems[:_PROBLEMS_SHOWN]:
        err.print(f"  {printable_lines(str(problem))}", soft_wrap=True)
    if len(problems) > _PROBLEMS_SHOWN:
        err.print(f"  and {len(problems) - _PROBLEMS_SHOWN} more")
    if repeated:
        shown = ", ".join(map(repr, repeated[:_PROBLEMS_SHOWN]))
        err.print(f"\n{len(repeated)} ids belong to more than one sample: {printable(shown)}", soft_wrap=True)


def _drawn(samples: Iterable[Sample], size: int, draw: random.Random) -> Iterator[Sample]:
    """A random sample in the order of the file, drawn while reading (Vitter 1985, algorithm R)."""
    kept: list[tuple[int, Sample]] = []
    for index, sample in enumerate(samples):
        if index < size:
            kept.append((index, sample))
        elif (place := draw.randrange(index + 1)) < size:
            kept[place] = (index, sample)
    yield from (sample for _, sample in sorted(kept, key=lambda pair: pair[0]))


def _total(path: Path, limit: int | None, sample: int | None) -> int | None:
    """How many samples there will be, where that is quickly known: a plain JSONL file has one a line."""
    lines = None
    if path.suffix == ".jsonl" and path.is_file():
        with path.open("rb") as file:
            lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    known = [number for number in (lines, limit, sample) if number is not None]
    return min(known, default=None)

"""The command line.

Exit codes: 0 all is well; 1 something was not scored that should have been; 2 nothing could be run; 130 interrupted.
"""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

import judgekit
from judgekit.config import Config, ScorerSpec, scorer_descriptions
from judgekit.errors import ConfigError, JudgekitError, TraceError
from judgekit.judges.judge import Judge
from judgekit.reports.export import RowWriter
from judgekit.reports.terminal import Highlights, console, printable, progress, show_summary
from judgekit.runs.results import Row
from judgekit.runs.runner import must_differ, score_each
from judgekit.runs.summary import Summary
from judgekit.scoring import Scorer
from judgekit.shipped import shipped
from judgekit.traces.message import Record
from judgekit.traces.reading import read
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_PROBLEMS_SHOWN = 5

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Scores recorded agent conversations, and explains every score.",
)


def main() -> None:
    """Runs the command line; what is raised on purpose is said in words."""
    # A letter that the terminal does not have is no reason to stop.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except (JudgekitError, OSError) as error:
        console(stderr=True).print(f"judgekit: {_in_lines(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


def _in_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,  # noqa: FBT002
) -> None:
    if version:
        typer.echo(judgekit.__version__)
        raise typer.Exit


@app.command()
def demo() -> None:
    """Score the example conversations, offline: the judge's replies were written by hand and are replayed."""
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
    file: Annotated[Path, typer.Argument(help="Recorded conversations: .jsonl or .json, or either with .gz.")],
    scorer: Annotated[
        list[str] | None,
        typer.Option(help="A scorer, as NAME or NAME:option=value,...; may be repeated. See judgekit scorers."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The judge: a model such as openai/gpt-4.1-mini, or a name from the config.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="The file's format, found out by itself if not given.")] = None,
    references: Annotated[
        Path | None, typer.Option(help="JSONL of references for traces that carry none, joined by id or metadata key.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Config file; judgekit.toml if it is there.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N samples.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Score N samples drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="For --sample: which N.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write every score, as JSONL.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Show the reasons of the N lowest scores of each scorer.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")] = False,  # noqa: FBT002
) -> None:
    """Score recorded conversations."""
    settings = Config(config, judge, os.environ)
    specs = [ScorerSpec.parse(text) for text in scorer or ()] or settings.scorers
    if not specs:
        known = ", ".join(name for name, _, _ in scorer_descriptions())
        raise ConfigError(f"name what to score with: --scorer NAME, or [[scorers]] in a config file. Known: {known}")
    scorers = [settings.build(spec) for spec in specs]
    must_differ(scorers)
    for judge_used in settings.judges_used.values():
        judge_used.check()
    problems: list[TraceError] = []
    samples = read(file, format, references, on_error="raise" if strict else problems.append)
    if output is not None and output.resolve() in {one.resolve() for one in (file, references, config) if one}:
        raise ConfigError(f"--output {output}: is a file that is read; name another")
    if limit is not None:
        samples = islice(samples, limit)
    if sample is not None:
        samples = _drawn(samples, sample, random.Random(seed))  # noqa: S311 - a draw, not a secret
    _score(samples, scorers, show=show, output=output, total=_total(file, limit, sample), problems=problems)


@app.command()
def scorers() -> None:
    """List the scorers."""
    out = console()
    for name, description, asks in scorer_descriptions():
        out.print(f"{name}{' (asks a judge)' if asks else ''}\n    {description}", soft_wrap=True)


@app.command()
def schema(
    of: Annotated[Literal["sample", "trace", "score"], typer.Argument(help="What to describe.")] = "sample",
) -> None:
    """Print the JSON Schema of judgekit's own formats."""
    kinds: dict[str, type[Record]] = {"sample": Sample, "trace": Trace, "score": Row}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", **kinds[of].model_json_schema()}
    typer.echo(json.dumps(described, indent=2))


def _score(
    samples: Iterable[Sample],
    scorers: Sequence[Scorer],
    *,
    show: int,
    output: Path | None = None,
    total: int | None = None,
    problems: Sequence[TraceError] = (),
) -> None:
    """Scores, shows, and ends with an exit code that says how it went."""
    summary, highlights, ids = Summary(), Highlights(show), Counter[str]()
    interrupted = False
    with ExitStack() as stack:
        writer = stack.enter_context(_row_writer(output, len(scorers))) if output else None
        advance = stack.enter_context(progress(total, console(stderr=True)))

        def emit(row: Row) -> None:
            summary.add(row.score)
            highlights.add(row)
            if writer is not None:
                writer.add(row)
            if row.score.scorer == scorers[-1].name:
                ids[row.sample_id] += 1
                advance()

        try:
            asyncio.run(score_each(samples, scorers, emit, concurrency=_concurrency(scorers)))
        except KeyboardInterrupt:
            interrupted = True
    unread = [problem for problem in problems if problem.index is not None]
    if unread and not ids and not interrupted:
        raise TraceError(f"none of the {len(unread)} records could be read; the first: {unread[0]}")
    show_summary(summary, highlights, console())
    _show_problems(problems, [name for name, times in ids.items() if times > 1])
    if interrupted:
        console(stderr=True).print(f"interrupted: {len(ids)} samples were scored")
        raise typer.Exit(130)
    if unread or any(line.counts["failed"] for line in summary):
        raise typer.Exit(1)


@contextmanager
def _row_writer(path: Path, scorers: int) -> Generator[RowWriter]:
    try:
        with path.open("w", encoding="utf-8") as file:
            writer = RowWriter(file, scorers)
            try:
                yield writer
            finally:
                writer.flush()
    except OSError as error:
        raise ConfigError(f"--output {path}: cannot be written: {error}") from error


def _show_problems(problems: Sequence[TraceError], repeated: Sequence[str]) -> None:
    err = console(stderr=True)
    unread = sum(problem.index is not None for problem in problems)
    if unread:
        err.print(f"\n{unread} records could not be read:")
    for problem in problems[:_PROBLEMS_SHOWN]:
        err.print(f"  {_in_lines(str(problem))}", soft_wrap=True)
    if len(problems) > _PROBLEMS_SHOWN:
        err.print(f"  and {len(problems) - _PROBLEMS_SHOWN} more")
    if repeated:
        shown = ", ".join(map(repr, repeated[:_PROBLEMS_SHOWN]))
        err.print(f"\n{len(repeated)} ids belong to more than one sample: {printable(shown)}", soft_wrap=True)


def _concurrency(scorers: Sequence[Scorer]) -> int:
    """Samples at once: enough to keep the busiest judge busy."""
    judges = [judge for scorer in scorers if isinstance(judge := getattr(scorer, "judge", None), Judge)]
    return max((judge.concurrency for judge in judges), default=1)


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
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    known = [number for number in (lines, limit, sample) if number is not None]
    return min(known, default=None)

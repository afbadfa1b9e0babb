"""Options that several commands share, and the parsing of their values."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from judgekit import registry
from judgekit.cli.app import MAX_INTEGER
from judgekit.errors import ConfigError, join_limited, short_repr
from judgekit.formats.unread import misspelled_column
from judgekit.jobs.building import Engine
from judgekit.jobs.options import SampleChoice
from judgekit.locations import location_text
from judgekit.reports.summary import Shown
from judgekit.runs.results import Run
from judgekit.runs.rows import RunDescription, ScorerRecord
from judgekit.traces.ending import NoAnswer

_NUMBER = re.compile("-?[0-9]{1,100}")


def option(metavar: str, text: str, *names: str) -> Any:
    """Return an option with a value, and what its help calls that."""
    return typer.Option(*names, metavar=metavar, help=text)


def files(text: str, *names: str) -> Any:
    """Return an option for a file or URL, or several."""
    return typer.Option(*names, parser=location_text, metavar="FILE", help=text)


def output(text: str) -> Any:
    """Return the option for files or URLs to write."""
    return files(text, "--output", "-o")


def number(text: str, *names: str, least: int = 0) -> Any:
    """Return an option for a whole number."""
    return typer.Option(*names, min=least, max=MAX_INTEGER, metavar="N", help=text)


RecordingsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        parser=location_text,
        metavar="FILE",
        help="Recorded conversations or dataset rows: a file, a folder, a pattern such as 'logs/*.json', a URL such as "
        "s3://bucket/logs/, or - for standard input.",
    ),
]
Format: TypeAlias = Annotated[
    str | None, option("NAME", "The format, as in judgekit formats, or your own as MODULE:NAME; detected by default.")
]
ColumnOption: TypeAlias = Annotated[
    list[str] | None, option("THEIRS=OURS", "A column under another name, such as question=input; may be repeated.")
]
Encoding: TypeAlias = Annotated[str | None, option("NAME", "The file's encoding, if it is not UTF-8.")]
ReferencesOption: TypeAlias = Annotated[
    str | None, files("File or URL of references for traces without any, joined by id, input or metadata key.")
]
NoAnswerOption: TypeAlias = Annotated[
    NoAnswer | None,
    typer.Option(
        help="The score of a recording that stops after the user's message, where an answer is looked for: failed (the "
        "default), since a reply may not have been recorded, or zero, as if the agent had failed."
    ),
]
ScorersOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "SCORER",
        "A scorer, as NAME or NAME:option=value,... (see judgekit scorers), or your own as FILE.py:NAME or PACKAGE.MODULE:NAME; may be repeated.",
        "--scorer",
        "-s",
    ),
]
JudgeName: TypeAlias = Annotated[
    str | None, option("MODEL", "The judge: a model as provider/model, or a name from the config.")
]
ConfigFile: TypeAlias = Annotated[Path | None, option("FILE", "Config file; by default, judgekit.toml if it exists.")]
JudgedScorerOption: TypeAlias = Annotated[
    str | None, option("NAME", "The scorer whose question people answer; by default, the run's only judged scorer.")
]
Limit: TypeAlias = Annotated[int | None, number("Score only the first N samples.", least=1)]
SampleOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "N or [DOMAIN=]SHARE",
        "Score N samples drawn at random, or a share of them, such as 1%, drawn by a hash of their ids; repeat it with DOMAIN= to give domains shares of their own.",
    ),
]
ShardOption: TypeAlias = Annotated[
    str | None, option("N/COUNT", "Score one part of the recordings, such as 3/16; judgekit merge combines all parts.")
]
RunIdOption: TypeAlias = Annotated[
    str | None, option("ID", "For --shard: an id of the run, new for each run, by which shards share budgets.")
]
Seed: TypeAlias = Annotated[int, typer.Option(metavar="N", help="The random seed with which samples are drawn.")]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")]
WorkersOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        max=1024,
        metavar="N",
        help="Number of processes for the scorers that ask no judge; with Ray by default one for each CPU.",
    ),
]
EngineOption: TypeAlias = Annotated[
    Engine, typer.Option("--engine", help="What starts the workers: processes on this machine, or a Ray cluster.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show how many requests, tokens and dollars it would take, and send nothing.")
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Send no requests to other machines; use the cache.")
]
TogetherOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--together/--no-together",
        help="Ask all questions about a conversation in one request, or each by itself; by default, as the config says.",
        show_default=False,
    ),
]


def _allow(is_given: bool) -> None:  # noqa: FBT001 - typer calls it
    if is_given:
        registry.allow_code()


AllowCode: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        callback=_allow,
        expose_value=False,
        help="Also run code that the stored run names and judgekit.toml does not: only for a file of your own.",
    ),
]
LabelFiles: TypeAlias = Annotated[
    list[str] | None,
    files(
        "Human labels, as .csv or .jsonl files or URLs in the form of judgekit label, or scores of Langfuse, feedback of "
        "LangSmith or annotations of Phoenix; may be repeated."
    ),
]
RecordedLabels: TypeAlias = Annotated[
    list[str] | None,
    option(
        "RECORDED=SCORER",
        "Use the labels of this name, in a file or recorded, as answers to this scorer's question; may be repeated. Labels with the scorer's own name are used anyway.",
    ),
]
RunName: TypeAlias = Annotated[str | None, typer.Option(metavar="NAME", help="A name for the run.")]
RunTag: TypeAlias = Annotated[list[str] | None, option("TAG", "A tag of the run, without spaces; may be repeated.")]
RunNote: TypeAlias = Annotated[str | None, typer.Option(metavar="TEXT", help="A note on the run.")]
RunArgument: TypeAlias = Annotated[str, typer.Argument(metavar="RUN", help="The number of a run, or last.")]
StorePath: TypeAlias = Annotated[Path, typer.Option(metavar="FILE", help="The file that stores the runs.")]
Output: TypeAlias = Annotated[
    list[str] | None,
    output(
        "Write the run to a file or URL, in the format of its extension: .html, .json, .jsonl, .csv, .xml (JUnit), .md; may be repeated."
    ),
]
ReportOption: TypeAlias = Annotated[
    list[str] | None,
    output("Also write the result to a file or URL: .json, or .html with all samples; may be repeated."),
]
JsonOption: TypeAlias = Annotated[
    list[str] | None, output("Also write the result to a file or URL: .json; may be repeated.")
]
Explain: TypeAlias = Annotated[bool, typer.Option("--explain", help="Explain the terms of statistics that are shown.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Show: TypeAlias = Annotated[
    str, option("N", "Show the reasons of each scorer's N lowest scores, or with highest:N of its highest.")
]


def parse_columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the other names of columns, from texts such as ``question=input``."""
    columns: dict[str, str] = {}
    for text in texts or ():
        theirs, equals, ours = text.rpartition("=")
        if not (theirs and equals and ours):
            raise ConfigError(f"--column {text}: expected THEIRS=OURS, such as question=input")
        if theirs in columns:
            raise ConfigError(f"--column {text}: {theirs!r} is given twice")
        if meant := misspelled_column(ours):
            raise ConfigError(f"--column {text}: no column of judgekit is called {ours!r}. Did you mean {meant!r}?")
        columns[theirs] = ours
    return columns


def parse_sample(texts: Sequence[str]) -> SampleChoice | None:
    """Return what to draw: the number in ``100``, the share in ``1%`` or ``0.01``, or the shares by domain in ``airline=2%``."""
    if len(texts) == 1 and _NUMBER.fullmatch(texts[0]):
        if (number := int(texts[0])) > MAX_INTEGER:
            raise ConfigError(f"'--sample': expected at most {MAX_INTEGER:,} samples, found {number}")
        return number
    shares: dict[str, float] = {}
    for text in texts:
        domain, _, share = text.rpartition("=")
        if _NUMBER.fullmatch(share):
            raise ConfigError(
                f"--sample {text}: a number of samples stands alone; expected a share, such as 1% or 0.01"
            )
        try:
            shares[domain] = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
        except ValueError:
            raise ConfigError(f"--sample {text}: expected a number, or a share such as 1% or 0.01") from None
    return shares.get("") if shares.keys() <= {""} else shares


def changed_description(
    description: RunDescription, name: str | None, tags: Sequence[str] | None, note: str | None
) -> RunDescription:
    """Return what people call a run, with what is given in place of what was."""
    return RunDescription(
        description.name if name is None else name,
        description.note if note is None else note,
        description.tags if tags is None else tuple(filter(None, tags)),
    ).checked()


def parse_run_number(run: str) -> int | None:
    """Return the number of a run that is named on the command line; ``None`` for the last one."""
    if run == "last":
        return None
    if not run.isdecimal() or len(run) > 18:  # more digits may not fit SQLite's 64 bits
        raise ConfigError(f"{run!r}: expected the number of a run, or last; judgekit runs lists them")
    return int(run)


def parse_shown(text: str) -> Shown:
    """Return the scores to show: the lowest ones of ``3``, or the highest ones of ``highest:3``."""
    end, _, count = text.rpartition(":")
    if end not in ("", "lowest", "highest") or not count.isdecimal() or int(count) > MAX_INTEGER:
        raise ConfigError(f"'--show': expected a number such as 3, or highest:3, found {short_repr(text)}")
    return Shown(int(count), "highest" if end == "highest" else "lowest")


def parse_recorded_label(text: str) -> tuple[str, str]:
    """Return the name of a recorded label, and the scorer whose question it answers."""
    recorded, equals, scorer = text.partition("=")
    if not equals or not recorded or not scorer:
        raise ConfigError(
            f"--label {text}: expected a recorded label and a scorer, such as --label success=task_completion"
        )
    return recorded, scorer


def judged_scorer(run: Run, name: str | None) -> ScorerRecord:
    """Return the scorer with a name, or the only one that asks a judge."""
    if name is not None:
        for record in run.scorers:
            if record.name == name:
                return record
        raise ConfigError.unknown("scorer of the run", name, [record.name for record in run.scorers])
    judged = [record for record in run.scorers if record.judged]
    if len(judged) != 1:
        names = join_limited((record.name for record in judged or run.scorers), separator=", ")
        those = "several scorers that ask a judge" if judged else "no scorer that asks a judge"
        raise ConfigError(f"run {run.number} has {those}; choose one with --scorer: {names}")
    return judged[0]

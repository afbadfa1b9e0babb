"""``judgekit runs``: list, show, export and delete stored runs."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.console import Console

from judgekit.analysis.gates import GateResults, check_gates
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import show_run, stopped_text
from judgekit.cli.outputs import check_outputs, print_json, print_line, print_written
from judgekit.errors import ConfigError, StoreError, count_text, join_limited
from judgekit.jobs.options import RunOptions
from judgekit.reports.export import report
from judgekit.reports.glossary import command_consoles
from judgekit.reports.run_json import run_json
from judgekit.reports.summary import Shown
from judgekit.runs.anchors import anchors_folder
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.rows import SampleCount, ScorerRecord, ScorerResult
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.terminal import console, text_table
from judgekit.view.listing import RunList

_SCORERS_SHOWN = 3
_INPUTS_SHOWN = 2
_NAMED = 3
_DEFAULTS: tuple[JsonValue, ...] = (None, False, [], {})


@app.command()
def runs(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="The number of a run, or last; by default, lists all runs.")
    ] = None,
    output: options.Output = None,
    show: options.Show = "0",
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Compute intervals by the bootstrap, even for numbers other than means.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="For --bootstrap: the random seed.")] = 0,
    name: options.RunName = None,
    tag: options.RunTag = None,
    note: options.RunNote = None,
    remove: Annotated[
        list[str] | None,
        options.option("RUN", "Delete a run permanently: its number, or last; may be repeated.", "--remove"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="For --remove: do not ask first.")] = False,
    with_labels: Annotated[
        bool,
        typer.Option("--with-labels", help="For --remove: also delete people's labels on the samples of the runs."),
    ] = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """List, show, name, write or delete stored runs.

    Times are local. An empty name, note or tag removes what was there. A deleted run leaves nothing in the file.
    """
    if remove and run is not None:
        raise ConfigError(f"{run!r}: either show a run or use --remove")
    is_described = any(text is not None for text in (name, tag, note))
    if run is None and (output or show != "0" or bootstrap or is_described):
        raise ConfigError("name the run to show, write or describe: judgekit runs last -o report.html")
    if remove:
        _remove(store, remove, with_labels=with_labels, is_sure=yes)
    elif run is not None:
        outputs = check_outputs(output)
        stored = Run.stored(options.parse_run_number(run), store)
        if is_described:
            description = options.changed_description(stored.description, name, tag, note)
            RunStore(store).describe(stored.number, description)
        shown = options.parse_shown(show)
        if as_json:
            print_json(run_json(stored, _gates(stored), shown.rows(stored)))
        else:
            with command_consoles(explain=explain) as screen:
                _show(stored, shown, seed if bootstrap else None, screen.out)
        for path in outputs:
            report(stored, path, _gates(stored))
            print_written(path)
    elif as_json:
        print_json({"store": str(store), "runs": [*RunList().entries(RunStore(store, read_only=True), inf)]})
    else:
        _list(RunStore(store, read_only=True), console())


def _gates(run: Run) -> GateResults:
    """Return the results of the gates of a run."""
    run_options = RunOptions.from_record(run.record)
    return check_gates(run, run_options.gates, min_coverage=run_options.min_coverage)


def _remove(path: Path, named: list[str], *, with_labels: bool, is_sure: bool) -> None:
    RunStore(path, read_only=True)  # raises an error if there is no such file, instead of creating it
    store = RunStore(path)
    numbers = list(dict.fromkeys(_existing_number(store, run) for run in named))
    labels = list(_label_texts(store, numbers))
    if labels and not with_labels:
        raise ConfigError(
            f"nothing is deleted, since human labels would be too: {join_limited(labels)}; --with-labels deletes them"
        )
    with_those = f" with {join_limited(labels)}" if labels else ""
    named_runs = f"{'run' if len(numbers) == 1 else 'runs'} {join_limited(map(str, numbers), separator=', ')}"
    if not is_sure:
        if not sys.stdin.isatty():
            raise ConfigError(f"nothing is deleted: --yes deletes {named_runs}{with_those} without asking")
        typer.confirm(f"Delete {named_runs}{with_those} from {path} for good?", abort=True)
    store.remove(numbers)
    deleted = f"{path}: deleted {named_runs}"
    anchors = [str(file) for file in sorted(anchors_folder(path).glob("[!.]*.jsonl"))]
    frozen = f"; recordings that were frozen are in {join_limited(anchors)}" if anchors else ""
    print_line(
        f"{deleted}{with_those}; the judges' replies are also in their cache: see judgekit cache prune{frozen}",
        console(),
    )


def _label_texts(store: RunStore, runs: Sequence[int]) -> Iterator[str]:
    """Yield the number of labels on each of these runs that has any, with their scorers and annotators."""
    for run in runs:
        rows = list(store.label_rows(run))
        given = dict.fromkeys((row.sample, row.scorer, row.annotator) for row in rows if row is not None and row.value)
        scorers = join_limited(dict.fromkeys(scorer for _, scorer, _ in given), _NAMED, ", ")
        annotators = join_limited(dict.fromkeys(name or "unnamed people" for *_, name in given), _NAMED, ", ")
        if given:
            yield f"{count_text(len(given), 'label')} of {scorers} by {annotators} on run {run}"
        if damaged := rows.count(None):
            yield f"{count_text(damaged, 'damaged label')} on run {run}"


def _existing_number(store: RunStore, run: str) -> int:
    """Return the number of an existing run, which may be damaged."""
    number = options.parse_run_number(run)
    if number is not None and number in store.numbers():
        return number
    return store.record(number).number


def _list(store: RunStore, console: Console) -> None:
    rows = [_cells(store, number) for number in store.numbers()]
    if not rows:
        print_line(f"{store.path}: contains no runs", console)
        return
    heads = ("run", "name", "started", "scored", "took", "samples", "scores", "failed")
    shown = [column for column in range(len(heads)) if column != 1 or any(row[1] for row in rows)]
    cut = [[row[column] for column in shown] for row in (heads, *rows)]
    console.print(text_table(cut[0], cut[1:], words=len(shown) - 4))


def _cells(store: RunStore, number: int) -> tuple[str, ...]:
    try:
        record = store.record(number)
    except StoreError:
        counts = store.counts(number)
        return str(number), "", "", "damaged", "", "", f"{counts.scores:,}", f"{counts.failed:,}"
    results = store.results(number)
    if results and len(results) == len(record.scorers):
        names = [_scorer_text(scorer, row) for scorer, row in zip(record.scorers, results, strict=True)]
        scores, failed = sum(row.scores for row in results), sum(row.failed for row in results)
        samples = SampleCount(record.samples, record.count_precision)
    else:  # it is not finished, or has changed since
        names = [scorer.name for scorer in record.scorers]
        _, scores, failed = store.counts(number)
        samples = Run(store, record).samples
    scorers = join_limited(names, _SCORERS_SHOWN, ", ")
    inputs = join_limited((Path(file.path).name for file in record.inputs), _INPUTS_SHOWN, ", ")
    what = f"{scorers or 'nothing'} of {inputs or ('standard input' if record.options.get('file') else 'samples in Python')}"
    if shard := record.options.get("shard"):
        what = f"shard {shard} of {record.id}: {what}"
    description = store.description(number)
    named = " ".join(filter(None, (description.name, *(f"#{tag}" for tag in description.tags))))
    if (state := _state(Run(store, record))) != "finished":
        what = f"{state.partition(':')[0]}: {what}"
    took = "" if record.took is None else str(record.took)
    numbers = (str(samples), f"{scores:,}", f"{failed:,}")
    return str(record.number), named, _local(record.started_at), what, took, *numbers


def _scorer_text(scorer: ScorerRecord, row: ScorerResult) -> str:
    """Return the name of a scorer with its number and the 95 % interval, as far as it has them."""
    if row.mean is None:
        return scorer.name
    return f"{scorer.name} {Estimate(value=row.mean, low=row.low, high=row.high)}"


def _state(run: Run) -> str:
    return run.state if run.ended_at is None else stopped_text(run.record) or "finished"


def _local(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def _show(run: Run, shown: Shown, seed: int | None, console: Console) -> None:
    record = run.record
    ended = "" if record.took is None else f", took {record.took}"
    texts = f"conversations and reasons are {'' if record.keeps_text else 'not '}stored"
    print_line(f"run {run.number}: {_state(run)}", console)
    for label, text in {**run.description._asdict(), "tags": " ".join(run.description.tags)}.items():
        if text:
            print_line(f"{label}: {text}", console)
    print_line(f"started {_local(record.started_at)}{ended}, with judgekit {record.version}; {texts}", console)
    for note in (*run.notes, *_label_texts(run.store, [run.number])):
        print_line(f"note: {note}", console)
    for name, value in record.options.items():
        if (option := _without_defaults(value)) not in _DEFAULTS:
            print_line(f"{name}: {option if isinstance(option, str) else json.dumps(option)}", console)
    if record.inputs:
        console.print(
            text_table(("input", "SHA-256 or ETag"), [(file.path, file.identity) for file in record.inputs], words=2)
        )
    signatures = [(scorer.name, scorer.signature or "none") for scorer in record.scorers]
    console.print(text_table(("scorer", "signature"), signatures, words=2))
    show_run(run, shown, console, seed=seed)


def _without_defaults(value: JsonValue) -> JsonValue:
    """Return the value without the options that were not set."""
    if isinstance(value, dict):
        return {name: _without_defaults(option) for name, option in value.items() if option not in _DEFAULTS}
    return [_without_defaults(option) for option in value if option is not None] if isinstance(value, list) else value

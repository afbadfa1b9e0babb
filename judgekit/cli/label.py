"""``judgekit label``: make a sheet on which people label samples."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

import typer

from judgekit.analysis.sampling import draw_samples, is_not_applicable
from judgekit.cli import options
from judgekit.cli.app import MAX_INTEGER, app
from judgekit.cli.outputs import check_outputs, print_line, print_written
from judgekit.errors import ConfigError, join_limited
from judgekit.locations import location_text
from judgekit.reports.export import write_text
from judgekit.reports.sheet import LabelSheet
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def label(
    run: options.RunArgument,
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            parser=location_text,
            metavar="FILE",
            help="The sheet: .html, a page that works offline, or .csv for a spreadsheet; may be repeated.",
        ),
    ],
    scorer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The scorer whose question people answer; by default, the run's only judged scorer."
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, max=MAX_INTEGER, metavar="N", help="The number of samples.")
    ] = 60,
    by_verdict: Annotated[
        bool,
        typer.Option(
            "--by-verdict", help="Draw equally many samples of each verdict, so that rare verdicts are included."
        ),
    ] = False,
    include: Annotated[
        Literal["skipped"] | None,
        typer.Option(help="skipped: also draw samples to which the question does not apply, according to the judge."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The random seed; the same seed draws the same samples.")] = 0,
    store: options.StorePath = DEFAULT_RUNS_PATH,
) -> None:
    """Draw samples of a run for people to label.

    The sheet does not show the verdicts of the judge.

    The samples are drawn at random from those that were scored, or also from those that the judge skipped. judgekit audit
    reads the labels back.
    """
    outputs = check_outputs(output, _KINDS)
    found = Run.stored(options.parse_run_number(run), store)
    asked = _judged_scorer(found, scorer)
    has_skipped = include is not None
    drawn = draw_samples(found, asked.name, n, by_verdict=by_verdict, include_skipped=has_skipped, seed=seed)
    sheet = LabelSheet(found, asked, drawn, has_skipped)
    for path in outputs:
        write_text(_KINDS[path.suffix.lower()](sheet), path)
        print_written(path)
    for line in _summary_lines(sheet):
        print_line(line)


def _judged_scorer(run: Run, name: str | None) -> ScorerRecord:
    """Return the scorer with a name, or the only one that asks a judge."""
    if name is not None:
        for one in run.scorers:
            if one.name == name:
                return one
        raise ConfigError.unknown("scorer of the run", name, [one.name for one in run.scorers])
    judged = [one for one in run.scorers if one.judged]
    if len(judged) != 1:
        names = join_limited((one.name for one in judged or run.scorers), separator=", ")
        those = "several scorers that ask a judge" if judged else "no scorer that asks a judge"
        raise ConfigError(f"run {run.number} has {those}: name one with --scorer: {names}")
    return judged[0]


def _summary_lines(sheet: LabelSheet) -> Iterator[str]:
    line = sheet.run.summary[sheet.scorer.name]
    drawn, scored = len(sheet.drawn_samples), line.counts["scored"]
    if sheet.includes_skipped:
        rows = sheet.run.rows(scorer=sheet.scorer.name, statuses=["skipped"])
        scored += sum(map(is_not_applicable, rows))
    how = "by verdict" if sheet.drawn_samples[0].selection == "stratified" else "at random"
    which = f"all {scored:,}" if drawn == scored else f"{drawn:,} of {scored:,}, drawn {how}"
    yield f"samples to label for {sheet.scorer.name}: {which}"
    if others := line.total - scored:
        why = "they have no verdict" if sheet.includes_skipped else "they have no score"
        yield f"left out, because {why}: {line.qualifier}{others:,} more"
    if lost := drawn - len(sheet.samples):
        yield f"to leave blank, because their conversations were not stored or are damaged: {lost:,}"
    yield f"next: judgekit audit {sheet.run.number} --labels FILE"


_KINDS: Mapping[str, Callable[[LabelSheet], Iterator[str]]] = {".html": LabelSheet.page, ".csv": LabelSheet.table}

"""``judgekit label``: make a sheet on which people label samples."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

import typer

from judgekit.analysis.sampling import draw_samples, is_not_applicable
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import check_outputs, print_line, write_outputs
from judgekit.reports.sheet import LabelSheet
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def label(
    run: options.RunArgument,
    output: Annotated[
        list[str],
        options.output("The sheet: .html, a page that works offline, or .csv for a spreadsheet; may be repeated."),
    ],
    scorer: options.JudgedScorerOption = None,
    n: Annotated[int, options.number("The number of samples.", "--n", "-n", least=1)] = 60,
    by_verdict: Annotated[
        bool,
        typer.Option(
            "--by-verdict", help="Draw equally many samples of each verdict, sure and unsure, so that it has rare ones."
        ),
    ] = False,
    include: Annotated[
        Literal["skipped"] | None,
        typer.Option(help="skipped: also draw samples to which the question does not apply, according to the judge."),
    ] = None,
    train: Annotated[
        int,
        options.number(
            "For judgekit align: N more samples for the writing model to read, of which the judge is least sure."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="The random seed; the same seed draws the same samples.")] = 0,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Draw samples of a run for people to label.

    The sheet does not show the verdicts of the judge.

    The samples are drawn at random from those that were scored, or also from those that the judge skipped. judgekit audit
    reads the labels back.
    """
    outputs = check_outputs(output, _KINDS)
    stored = Run.stored(options.parse_run_number(run), store)
    judged = options.judged_scorer(stored, scorer)
    has_skipped = include is not None
    drawn = draw_samples(
        stored, judged.name, n, by_verdict=by_verdict, include_skipped=has_skipped, train=train, seed=seed
    )
    sheet = LabelSheet(stored, judged, drawn, has_skipped)
    write_outputs(outputs, _KINDS, sheet)
    for line in _summary_lines(sheet):
        print_line(line)


def _summary_lines(sheet: LabelSheet) -> Iterator[str]:
    line = sheet.run.summary[sheet.scorer.name]
    read = sum(sample.role == "train" for sample in sheet.drawn_samples)
    drawn, scored = len(sheet.drawn_samples) - read, line.counts["scored"]
    if sheet.includes_skipped:
        rows = sheet.run.rows(scorer=sheet.scorer.name, statuses=["skipped"])
        scored += sum(map(is_not_applicable, rows))
    how = "by verdict" if sheet.drawn_samples[0].selection == "stratified" else "at random"
    which = f"all {scored:,}" if drawn == scored else f"{drawn:,} of {scored:,}, drawn {how}"
    which += f", with {len(sheet.parts):,} turns" if sheet.scorer.per_turn else ""
    yield f"samples to label for {sheet.scorer.name}: {which}"
    if read:
        yield f"and for judgekit align to read: {read:,} of which the judge is least sure"
    if others := line.total - scored:
        why = "they have no verdict" if sheet.includes_skipped else "they have no score"
        yield f"left out, because {why}: {line.qualifier}{others:,} more"
    if lost := drawn + read - len(sheet.samples):
        yield f"to leave blank, because their conversations were not stored or are damaged: {lost:,}"
    yield f"next: judgekit audit {sheet.run.number} --labels FILE"


_KINDS: Mapping[str, Callable[[LabelSheet], Iterator[str]]] = {".html": LabelSheet.page, ".csv": LabelSheet.table}

"""The findings of an audit on a terminal."""

from collections.abc import Iterable, Iterator, Mapping

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from judgekit.analysis.corrected_means import MeanBound, gate_fitness
from judgekit.analysis.findings import Audit, AuditSection, Disagreement, ScorerAudit, left_out_lines
from judgekit.errors import truncated
from judgekit.look_alikes import tell_apart
from judgekit.runs.summary_table import format_interval, format_number
from judgekit.terminal import WithoutTrailingBlanks, escaped_text, printable, recorded_text

_ROOMY = 90  # terminal columns that let the figures of all parts line up
_CLASSES_SHOWN = 12
_CLASS_SHOWN = 24
_REASON_SHOWN = 300
_MANY = 1_000


def show_audit(audit: Audit, show: int, console: Console, demands: Mapping[str, MeanBound] = {}) -> None:
    """Print the findings of an audit for each judged scorer, with its ``show`` worst disagreements.

    ``demands`` gives, by scorer, the bound that its corrected mean is checked against.
    """
    by = f" with {', '.join(audit.sources)}" if audit.sources else ""
    console.print(escaped_text(f"audit of run {audit.run}{by}"))
    for line in left_out_lines(audit.unmatched):
        console.print(escaped_text(line), style="yellow")
    if not audit.scorers:
        console.print("the run has no scorer that asks a judge")
    for findings in audit.scorers:
        console.print()
        head = Text.assemble((printable(findings.scorer), "bold"), "  ", printable(findings.headline), overflow="fold")
        console.print(WithoutTrailingBlanks(head))
        if fitness := gate_fitness(findings.correction, demands.get(findings.scorer)).text:
            console.print(WithoutTrailingBlanks(escaped_text(fitness)))
        console.print()
        console.print(WithoutTrailingBlanks(_grid(_parts(findings, console.width))))
        if disagreements := findings.disagreements[:show]:
            of = len(findings.disagreements)
            shown_count = f"the worst {show:,} of {of:,}" if of > show else f"all {of:,}, worst first"
            with recorded_text(console):
                shown = sample_grid(map(_disagreement, disagreements))
                console.print(WithoutTrailingBlanks(_grid([("disagreements", (shown_count, shown))])))


def _grid(rows: Iterable[tuple[str, Iterable[RenderableType]]]) -> RenderableType:
    """Return lines below each other, with the names of their parts on the left."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim", min_width=len("disagreements"))
    grid.add_column()
    for name, lines in rows:
        grid.add_row(name, Group(*lines, ""))
    return grid


def _parts(findings: ScorerAudit, room: int) -> Iterator[tuple[str, Iterable[RenderableType]]]:
    sections = findings.sections
    width = max(cell_len(printable(name)) for part in sections for name in part.estimates) if room >= _ROOMY else 0
    for part in sections:
        yield part.name, _part(part, width)
        if part.name == "agreement" and findings.confusion:
            yield "confusion", [_confusion(findings.confusion)]


def _part(part: AuditSection, width: int) -> Iterator[RenderableType]:
    """Yield figures, aligned with those of other parts, and notes on them."""
    if part.estimates:
        figures = Table.grid(padding=(0, 2, 0, 0))
        figures.add_column(min_width=width, no_wrap=True)
        figures.add_column(justify="right", no_wrap=True, min_width=len("-0.123"))
        figures.add_column(no_wrap=True)
        figures.add_column(style="dim")
        for name, figure in part.estimates.items():
            figures.add_row(
                escaped_text(name), format_number(figure.value), format_interval(figure), escaped_text(figure.method)
            )
        yield figures
    if part.unavailable_reason:
        yield Text(printable(part.unavailable_reason), "yellow", overflow="fold")
    yield from map(escaped_text, part.notes)


def _confusion(counts: Mapping[str, Mapping[str, float]]) -> RenderableType:
    names = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    shown = names[:_CLASSES_SHOWN]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    heads = tell_apart(list(map(printable, shown)), _CLASS_SHOWN)
    grid.add_row(*(Text(head, "dim") for head in ("human labels (rows), judge (columns)", *heads)))
    for name, head in zip(shown, heads, strict=True):
        grid.add_row(head, *(_count(counts.get(name, {}).get(other, 0)) for other in shown))
    for column in grid.columns[1:]:
        column.justify = "right"
    more = len(names) - len(shown)
    return Group(grid, f"and {more} more labels") if more else grid


def _count(times: float) -> str:
    return f"{round(times, 2):,g}" if times < _MANY else f"{times:,.0f}"


def sample_grid(notes: Iterable[tuple[str, Iterable[str]]]) -> RenderableType:
    """Return samples below each other, with lines on the right of each."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(ratio=1)
    grid.add_column(ratio=3)
    for sample, lines in notes:
        grid.add_row(escaped_text(sample), Group(*map(escaped_text, lines)))
    return grid


def _disagreement(disagreement: Disagreement) -> tuple[str, Iterable[str]]:
    lines = [format_verdict("the judge", disagreement.label, disagreement.judge_value, disagreement.reason)]
    lines += (
        format_verdict(opinion.annotator or "a person", opinion.label, opinion.value, opinion.reason)
        for opinion in disagreement.opinions
    )
    return f"#{disagreement.index} {disagreement.sample_id}", lines


def format_verdict(annotator: str, label: str | None, value: float | None, reason: str = "") -> str:
    """Return the verdict of a judge or a person on a sample, and the reason, in a line."""
    worth = "does not apply" if value is None else f"{value:.2f}"
    is_number = value is not None and label == f"{value:g}"
    verdict = worth if label is None or is_number else f"{label} ({worth})"
    return f"{annotator}: {verdict}{': ' if reason else ''}{truncated(reason, _REASON_SHOWN)}"

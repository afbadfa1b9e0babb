"""A run on a terminal: a line for each scorer, and reasons. Text of recordings is escaped and cannot control it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from judgekit.analysis.corrected_means import corrected_means, describe_correction
from judgekit.analysis.losses import Loss, frequent_losses
from judgekit.diff import Diff, DiffLine
from judgekit.errors import count_text, join_limited, truncated
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate, Trials
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.runs.summary_table import SummaryColumn, column_rows, format_number, summary_columns
from judgekit.runs.summary_text import ScorerSummary, format_counts
from judgekit.stats.wilson import Interval
from judgekit.terminal import (
    WithoutTrailingBlanks,
    WrappedWords,
    escaped_text,
    hanging_indent,
    printable,
    recorded_text,
    text_table,
)

_CALLS_SHOWN = 12
_CLASSES_SHOWN = 12
_LABEL_SHOWN = 40
_SLICINGS_SHOWN = 4
_SLICES_SHOWN = 12
_USUAL_INTERVALS = {"Wilson", "modified Wilson"}
_STYLES = {"=": "dim", "~": "yellow", "-": "red", "+": "green", "<>": "cyan"}
_PLANNED = {"tokens": "about tokens", "cost": "about cost"}


ScaleEnd: TypeAlias = Literal["lowest", "highest"]


class Shown(NamedTuple):
    """The number of scores of each scorer to show with their reasons, from the lowest or the highest on."""

    limit: int = 0
    end: ScaleEnd = "lowest"
    scorers: Sequence[str] | None = None

    def rows(self, run: Run) -> Mapping[str, Sequence[Row]]:
        """Return these rows of the scorers that are named, or of all."""
        names = [scorer.name for scorer in run.scorers] if self.scorers is None else self.scorers
        ordered = run.lowest if self.end == "lowest" else run.highest
        return {name: [*ordered(name, self.limit)] for name in names} if self.limit else {}


def show_summary(
    summary: Summary,
    console: Console,
    rows: Mapping[str, Sequence[Row]] = {},
    *,
    end: ScaleEnd = "lowest",
    losses: Mapping[str, Sequence[Loss]] = {},
    low_coverage: Mapping[str, str] = {},
    corrections: Mapping[str, Correction] = {},
    seed: int | None = None,
) -> None:
    """Print a table with a line for each scorer, another one of judge costs, notes, slices, and the lowest scores.

    A scorer's corrected mean, if there is one, takes the place of the judge's own, which moves to ``raw``.

    Args:
        summary: The lines.
        console: The console.
        rows: By scorer, the rows to show with their reasons.
        end: Whether these are the lowest or the highest ones.
        losses: By scorer, its losses, of which the most frequent ones are shown.
        low_coverage: By scorer, the reason why its number covers too few samples.
        corrections: By scorer, its corrected mean, or the reason why there is none.
        seed: The seed of a bootstrap, if raw numbers are to have bootstrap intervals.
    """
    corrected: Mapping[str, Estimate] = corrected_means(corrections) if corrections else {}
    uncorrected = (line for line in summary if line.scorer not in corrected)
    intervals = {line.scorer: line.interval if seed is None else line.bootstrap(seed) for line in uncorrected}
    raw = {line.scorer: Estimate.of(line.value, intervals.get(line.scorer)) for line in summary}
    columns = summary_columns(summary, corrected, raw)
    console.print(_numbers(columns, low_coverage))
    used_judge = any(line.requests or line.cached for line in summary)
    if used_judge:
        name = columns[0]._replace(name="judged scorer")
        console.print(_table_of([name, *(column for column in columns if column.subject == "judge")]))
    if imported := summary.imported:
        with recorded_text(console):
            console.print(escaped_text(imported))
    if used_judge and summary.prices:
        console.print(escaped_text(summary.prices))
    for note in _unusual(intervals):
        console.print(escaped_text(note))
    for line in summary:
        if line.scorer in low_coverage:
            console.print(hanging_indent(f"{line.scorer}: ! ", low_coverage[line.scorer]), style="yellow")
        if line.scorer in corrections:
            console.print(hanging_indent(f"{line.scorer}: ", describe_correction(corrections[line.scorer])))
        for note in line.notes():
            console.print(hanging_indent(f"{line.scorer}: ", note))
        if line.trials:
            console.print(
                hanging_indent(f"{line.scorer}: ", _trials(line.trials, "raw " if line.scorer in corrected else ""))
            )
        if (overall := line.overall) and overall.table:
            with recorded_text(console):
                console.print(WithoutTrailingBlanks(Padding(_counts(overall.table), (0, 0, 0, 2))))
        if len(line.errors) > 1:
            console.print(
                escaped_text(f"{line.scorer}: {line.counts['failed']:,} failed: {format_counts(line.errors)}")
            )
        with recorded_text(console):
            for times, reason in line.unscored_reasons():
                console.print(hanging_indent(f"{line.scorer}: {times}: ", reason))
            if frequent := frequent_losses(losses.get(line.scorer, ())):
                console.print(hanging_indent(f"{line.scorer}: losses: ", "; ".join(map(str, frequent))))
        if line.answers and len(line.judges) > 1:
            console.print(escaped_text(f"{line.scorer}: more than one judge answered: {format_counts(line.judges)}"))
    with recorded_text(console):
        _show_slices(summary, corrected, console)
    for line in summary:
        if shown_rows := rows.get(line.scorer):
            console.print(f"\n{printable(line.scorer)}, {end} {count_text(len(shown_rows), 'score')}:")
            grid = Table.grid(padding=(0, 2))
            for row in shown_rows:
                grid.add_row(
                    f"{row.score.value:.2f}", *map(escaped_text, (row.sample_id, row.score.reason or "no reason given"))
                )
                if calls := _side_by_side(row.score.diff()):
                    grid.add_row("", "", calls)
            with recorded_text(console):
                console.print(WithoutTrailingBlanks(Padding(grid, (0, 0, 0, 2))))


def show_plan(summary: Summary, console: Console) -> None:
    """Print a table of what a run would ask for, as far as it is known before the first answer."""
    name, *columns = summary_columns(summary)
    samples = SummaryColumn("samples", tuple(f"{line.total:,}" for line in summary))
    skipped = [column for column in columns if column.name == "skipped"]
    judge = [column for column in columns if column.subject == "judge" and not column.is_text]
    planned = [column._replace(name=_PLANNED.get(column.name, column.name)) for column in judge]
    console.print(_table_of([name, samples, *skipped, *planned]))
    if prices := summary.prices:
        console.print(escaped_text(prices))
    with recorded_text(console):
        for line in summary:
            for times, reason in line.unscored_reasons():
                console.print(hanging_indent(f"{line.scorer}: {times}: ", reason))
    console.print("dry run: nothing was sent. A reply that needs correcting takes one more request.")


def _numbers(columns: Sequence[SummaryColumn], low_coverage: Collection[str]) -> RenderableType:
    name, number, *others = [column for column in columns if column.subject == "scores"]
    cells = zip(name.cells, number.cells, strict=True)
    marked = tuple(f"{'! ' if scorer in low_coverage else ''}{cell}" for scorer, cell in cells)
    return _table_of([name, number._replace(cells=marked), *others])


def _table_of(columns: Sequence[SummaryColumn]) -> RenderableType:
    rows = (row for row in column_rows(columns) if any(row[1:]))
    return text_table([column.name for column in columns], rows, words=sum(column.is_text for column in columns))


def _unusual(intervals: Mapping[str, Interval | None]) -> Iterator[str]:
    """Yield the methods of intervals if they are not the usual ones: Wilson's, over single samples."""
    scorers: dict[str, list[str]] = {}
    for scorer, interval in intervals.items():
        if interval is not None:
            scorers.setdefault(interval.method, []).append(scorer)
    for method, names in scorers.items():
        if method not in _USUAL_INTERVALS:
            of = f"{', '.join(names)}: " if len(scorers) > 1 else ""
            yield f"{of}95 % interval by {method}"


def _trials(trials: Sequence[Trials], raw: str) -> str:
    """Return the results of repeated trials as text; ``raw`` is put before numbers that are not corrected."""
    both = (
        ("pass^k", [trial.pass_hat_k.value for trial in trials]),
        ("pass@k", [trial.pass_at_k.value for trial in trials]),
    )
    figures = "; ".join(f"{name} {', '.join(map(format_number, values))}" for name, values in both)
    enough = ", ".join(f"{trial.pass_hat_k.tasks:,}" for trial in trials)
    over = f"; over the {enough} tasks with k scored trials" if trials[-1].pass_hat_k.excluded_tasks else ""
    tasks = trials[0].pass_hat_k.tasks + trials[0].pass_hat_k.excluded_tasks
    return f"{tasks:,} tasks, k = 1 to {trials[-1].k} trials of each: {raw}{figures}{over}"


def _show_slices(summary: Summary, corrected: Collection[str], console: Console) -> None:
    """Print a table of raw numbers and sample counts for each way to slice the samples, such as by domain."""
    samples = max((line.total for line in summary), default=0)
    slicings = {name: values for name, values in summary.slices.items() if 2 * len(values) <= samples}
    for name, values in list(slicings.items())[:_SLICINGS_SHOWN]:
        by = _cut([f"by {name}"])[0]
        by_size = sorted(values.items(), key=lambda sized: -max(line.total for line in sized[1]))
        shown = by_size[:_SLICES_SHOWN]
        scorers = [line.scorer for line in summary]
        cells_by_scorer = {scorer: [_slice(part.scorers.get(scorer)) for _, part in shown] for scorer in scorers}
        width = max(12, *(len(cell) for cells in cells_by_scorer.values() for cell in cells))
        at_once = max(1, (2 * console.width // 3) // (width + 2))
        for first in range(0, len(scorers), at_once):
            some = scorers[first : first + at_once]
            grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
            grid.add_column(WrappedWords(by), overflow="fold", max_width=console.width // 3)
            for scorer in some:
                head = f"{scorer} (raw)" if scorer in corrected else scorer
                grid.add_column(WrappedWords(head), justify="right", vertical="bottom", max_width=width)
            for row, (value, _) in enumerate(shown):
                grid.add_row(WrappedWords(*_cut([value])), *(cells_by_scorer[scorer][row] for scorer in some))
            console.print(WithoutTrailingBlanks(grid))
        if more := len(by_size) - len(shown):
            console.print(escaped_text(f"and {more} more {by}"))
    if others := list(slicings)[_SLICINGS_SHOWN:]:
        console.print(
            escaped_text(f"other ways to slice the samples: {join_limited(_cut(others), _SLICINGS_SHOWN, ', ')}")
        )


def _slice(line: ScorerSummary | None) -> str:
    if line is None:
        return ""
    scored = line.counts["scored"]
    return f"{format_number(line.value)} ({scored:,}{'' if scored == line.total else f' of {line.total:,}'})"


def _counts(counts: Mapping[str, Mapping[str, int]]) -> RenderableType:
    """Return a table of counts: true labels down, predicted ones across by number; of many labels, frequent errors."""
    names = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    if len(names) > _CLASSES_SHOWN:
        errors = Counter(
            {(true, other): n for true, row in counts.items() for other, n in row.items() if other != true}
        )
        shown = errors.most_common(_CLASSES_SHOWN)
        rows = ((*_cut([true, other]), str(times)) for (true, other), times in shown)
        heads = ("true", "predicted", f"errors, the most frequent of {len(names)} classes")
        return text_table(heads, rows, words=2) if shown else Group()
    numbers = {name: str(number) for number, name in enumerate(names, 1)}
    lines = (
        [*_cut([f"{numbers[name]}  {name}"]), *(str(counts.get(name, {}).get(other, 0)) for other in names)]
        for name in names
    )
    return text_table(("true (rows), predicted (columns)", *numbers.values()), lines)


def _cut(texts: Sequence[str]) -> list[str]:
    return [truncated(text, _LABEL_SHOWN) for text in texts]


def _side_by_side(diff: Diff) -> RenderableType | None:
    """Return the expected calls next to the calls made, or ``None`` if all agree."""
    different = [line for line in diff if line.mark != "="]
    if not different:
        return None
    lines = diff if len(diff) <= _CALLS_SHOWN else different
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in DiffLine._fields:
        grid.add_column(min_width=1)  # rich measures an empty column as narrower than it is drawn
    for line in lines[:_CALLS_SHOWN]:
        grid.add_row(*map(escaped_text, line), style=_STYLES[line.mark])
    more = len(lines) - _CALLS_SHOWN
    return Group(grid, f"and {more} more") if more > 0 else grid

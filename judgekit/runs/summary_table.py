"""The columns of a run's summary, shared by everything that shows it, from terminals to HTML pages."""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import Literal, NamedTuple, TypeAlias

from judgekit.runs.intervals import Estimate
from judgekit.runs.scorer_counts import UNSCORED_STATUSES
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary, format_count

Subject: TypeAlias = Literal["scores", "judge"]


class SummaryColumn(NamedTuple):
    """A column with one cell for each scorer.

    Attributes:
        name: The column's head.
        cells: A text for each scorer: ``-`` for a missing number, empty where there is nothing to show.
        subject: Whether the column is about the scores or about the judge that gave them.
        is_text: Whether it holds text from recordings or people, not numbers.
    """

    name: str
    cells: tuple[str, ...]
    subject: Subject = "scores"
    is_text: bool = False


def summary_columns(
    summary: Summary, corrected: Mapping[str, Estimate] = {}, raw: Mapping[str, Estimate] | None = None
) -> list[SummaryColumn]:
    """Return the columns of a summary, except those that have nothing to show for any scorer.

    Args:
        summary: The summary.
        corrected: The corrected means by scorer. Each takes the place of the judge's own mean, which moves to ``raw``.
        raw: The uncorrected numbers by scorer; computed by default.
    """
    lines = list(summary)
    own = {line.scorer: Estimate.of(line.value, line.interval) for line in lines} if raw is None else raw
    best = [corrected.get(line.scorer, own[line.scorer]) for line in lines]
    judged = {line.scorer for line in lines if line.requests + line.cached}
    kinds = {overall.name for line in lines if (overall := line.overall)}

    def of_judge(name: str, cell: Callable[[ScorerSummary], str]) -> SummaryColumn:
        return SummaryColumn(name, tuple(cell(line) if line.scorer in judged else "" for line in lines), "judge")

    columns = [
        SummaryColumn("scorer", tuple(line.scorer for line in lines), is_text=True),
        SummaryColumn(
            "mean" if kinds <= {"mean"} else "score", tuple(format_number(estimate.value) for estimate in best)
        ),
        SummaryColumn("95 % interval", tuple(format_interval(estimate) or "-" for estimate in best)),
    ]
    if corrected:
        uncorrected = (format_number(line.value) if line.scorer in corrected else "" for line in lines)
        columns.append(SummaryColumn("raw", tuple(uncorrected)))
    covered = (f"{line.counts['scored']:,} of {line.qualifier}{line.total:,}" for line in lines)
    columns.append(SummaryColumn("n", tuple(covered)))
    columns += [
        SummaryColumn(status, tuple(f"{line.counts[status]:,}" for line in lines))
        for status in UNSCORED_STATUSES
        if status != "abstained" or any(line.counts[status] for line in lines)
    ]
    if any(line.missing for line in lines):
        columns.append(SummaryColumn("missing", tuple(f"{line.missing:,}" for line in lines)))
    if any(line.audited for line in lines):
        columns.append(SummaryColumn("audit", tuple(line.audited for line in lines), "judge", is_text=True))
    if judged:
        columns += [
            of_judge("requests", lambda line: format_count(line.requests)),
            of_judge("cached", lambda line: format_count(line.cached)),
            of_judge("tokens", lambda line: "unknown" if line.tokens is None else f"{line.tokens:,}"),
            of_judge("cost", lambda line: "unknown" if line.cost_usd is None else f"${line.cost_usd:.4f}"),
        ]
    if any(line.shown < line.judged for line in lines):
        columns.append(of_judge("shown", lambda line: f"{floor(1_000 * line.shown / line.judged) / 10:.1f} %"))
    if any(line.cached_tokens for line in lines):
        columns.append(of_judge("cached by provider", _provider_cache))
    return columns


def _provider_cache(line: ScorerSummary) -> str:
    """Return how many tokens the provider had cached, and what that saved."""
    return f"{line.cached_tokens:,} tokens{f', ${line.saved_usd:.4f} saved' if line.saved_usd else ''}"


def column_rows(columns: Sequence[SummaryColumn]) -> list[tuple[str, ...]]:
    """Return the cells of columns as rows, one for each scorer."""
    return list(zip(*(column.cells for column in columns), strict=True))


def format_interval(figure: Estimate) -> str:
    """Return the 95 % interval of a figure as text; empty if it has none."""
    return "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"


def format_number(value: float | None) -> str:
    """Return a number as tables show it, with ``-`` for ``None``."""
    return "-" if value is None else f"{value:.3f}"

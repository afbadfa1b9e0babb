"""The numbers of a run as a table: all that shows them, from a terminal to a page, takes its columns from here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from judgekit.runs.receipts import Figure
from judgekit.runs.summary import OTHERS, Line, Summary

Subject: TypeAlias = Literal["scores", "judge"]


class Column(NamedTuple):
    """A column with one cell for each scorer.

    Attributes:
        name: Its head.
        cells: Texts by scorer; ``-`` for a number that there is not, empty where there is nothing to say.
        about: What it is about: the scores, or the judge that was asked for them.
        is_text: Whether it holds words, which are those of recordings or of people, and no numbers.
    """

    name: str
    cells: tuple[str, ...]
    about: Subject = "scores"
    is_text: bool = False


def summary_columns(
    summary: Summary, corrected: Mapping[str, Figure] = {}, raw: Mapping[str, Figure] | None = None
) -> list[Column]:
    """Return the columns of a summary; those in which no scorer has anything to say are left out.

    Args:
        summary: The lines.
        corrected: By scorer, its corrected mean: that is its number, and the judge's own stands beside it as ``raw``.
        raw: By scorer, its own number, where that is known; else it is computed.
    """
    lines = list(summary)
    own = {line.scorer: Figure.of(line.value, line.interval) for line in lines} if raw is None else raw
    best = [corrected.get(line.scorer, own[line.scorer]) for line in lines]
    asked = {line.scorer for line in lines if line.requests + line.cached}
    kinds = {overall.name for line in lines if (overall := line.overall)}

    def by_line(name: str, cell: Callable[[Line], str]) -> Column:
        return Column(name, tuple(map(cell, lines)))

    def of_judge(name: str, cell: Callable[[Line], str]) -> Column:
        return Column(name, tuple(cell(line) if line.scorer in asked else "" for line in lines), "judge")

    def columns() -> Iterator[Column]:
        yield Column("scorer", tuple(line.scorer for line in lines), is_text=True)
        yield Column("mean" if kinds <= {"mean"} else "score", tuple(rounded(one.value) for one in best))
        yield Column("95 % interval", tuple(between(one) or "-" for one in best))
        if corrected:
            yield by_line("raw", lambda line: rounded(line.value) if line.scorer in corrected else "")
        yield by_line("n", lambda line: f"{line.counts['scored']:,} of {line.about}{line.total:,}")
        for status in OTHERS:
            if status != "abstained" or any(line.counts[status] for line in lines):
                yield Column(status, tuple(f"{line.counts[status]:,}" for line in lines))
        if any(line.missing for line in lines):
            yield by_line("missing", lambda line: f"{line.missing:,}")
        if any(line.audited for line in lines):
            yield Column("audit", tuple(line.audited for line in lines), "judge", is_text=True)
        if asked:
            yield of_judge("requests", lambda line: f"{line.requests:,}")
            yield of_judge("cached", lambda line: f"{line.cached:,}")
            yield of_judge("tokens", lambda line: "unknown" if line.tokens is None else f"{line.tokens:,}")
            yield of_judge("cost", lambda line: "unknown" if line.cost_usd is None else f"${line.cost_usd:.4f}")

    return list(columns())


def rows_of(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """Return the cells of columns by rows, one for each scorer."""
    return list(zip(*(column.cells for column in columns), strict=True))


def between(figure: Figure) -> str:
    """Return the 95 % interval of a figure in words; empty if it has none."""
    return "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"


def rounded(value: float | None) -> str:
    """Return a number as tables show it; - stands for what there is not."""
    return "-" if value is None else f"{value:.3f}"

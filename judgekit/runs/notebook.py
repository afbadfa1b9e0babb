"""A summary as notebooks show it."""

from collections.abc import Iterable

from judgekit.notebook import fragment, line, numbers
from judgekit.runs.summary import Summary
from judgekit.runs.summary_table import rows_of, summary_columns

_SCORERS = 50  # rows in a table


def summary_html(summary: Summary, notes: Iterable[str] = ()) -> str:
    """A table with a line a scorer, and notes below it; names and notes are text, whatever they hold."""
    lines = list(summary)
    columns = summary_columns(summary)
    rows = rows_of(columns)[:_SCORERS]
    more = [f"and {len(lines) - _SCORERS:,} more scorers"] if len(lines) > _SCORERS else []
    told = [
        f"{known.scorer}: {one}"
        for known in lines[:_SCORERS]
        for one in (*known.told(), *map(": ".join, known.unscored()))
    ]
    return fragment(numbers(rows, [column.name for column in columns]), *map(line, (*more, *notes, *told)))

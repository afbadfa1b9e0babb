"""A run's summary as HTML for notebooks."""

from collections.abc import Iterable

from judgekit.notebook import fragment, html_number_table, text_block
from judgekit.runs.summary import Summary
from judgekit.runs.summary_table import column_rows, summary_columns

_SCORERS = 50  # rows in a table


def summary_html(summary: Summary, notes: Iterable[str] = ()) -> str:
    """Return a table with one line for each scorer, and notes below it. Names and notes are escaped."""
    lines = list(summary)
    columns = summary_columns(summary)
    rows = column_rows(columns)[:_SCORERS]
    more = [f"and {len(lines) - _SCORERS:,} more scorers"] if len(lines) > _SCORERS else []
    line_notes = [
        f"{line.scorer}: {note}"
        for line in lines[:_SCORERS]
        for note in (*line.notes(), *map(": ".join, line.unscored_reasons()))
    ]
    return fragment(
        html_number_table(rows, [column.name for column in columns]), *map(text_block, (*more, *notes, *line_notes))
    )

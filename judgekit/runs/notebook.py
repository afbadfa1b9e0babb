"""A summary as notebooks show it."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from judgekit.runs.summary import Summary

_SCORERS = 50
"""Lines in a table."""


def summary_html(summary: Summary, notes: Iterable[str] = ()) -> str:
    """A table with a line a scorer, and notes below it; names and notes are text, whatever they hold."""
    lines = list(summary)
    heads, *rows = islice(summary.cells(), 1 + _SCORERS)
    more = [f"and {len(lines) - _SCORERS:,} more scorers"] if len(lines) > _SCORERS else []
    told = [
        f"{line.scorer}: {one}" for line in lines[:_SCORERS] for one in (*line.told(), *map(": ".join, line.unscored()))
    ]
    body = "".join(_row("td", row) for row in rows)
    below = "".join(f"<div>{escape(one)}</div>" for one in (*more, *notes, *told))
    return f"<table><thead>{_row('th', heads)}</thead><tbody>{body}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str]) -> str:
    name, *numbers = cells
    left, right = f'<{tag} style="text-align:left">', f'<{tag} style="text-align:right">'
    return f"<tr>{left}{escape(name)}</{tag}>{''.join(f'{right}{escape(cell)}</{tag}>' for cell in numbers)}</tr>"

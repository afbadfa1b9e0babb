"""A summary as notebooks show it."""

from collections.abc import Iterable, Sequence
from html import escape

from judgekit.runs.summary import OTHERS, Summary

_SCORERS = 50
"""Lines in a table."""


def summary_html(summary: Summary, notes: Iterable[str] = ()) -> str:
    """A table with a line a scorer, and notes below it; names and notes are text, whatever they hold."""
    asked = summary.asked
    heads = ["scorer", "value", "95 % interval", "n", *OTHERS, *(["requests", "cached", "cost"] if asked else [])]
    lines = list(summary)
    rows: list[Sequence[str]] = []
    for line in lines[:_SCORERS]:
        interval = line.interval
        row = [
            line.scorer,
            "-" if line.value is None else f"{line.value:.3f}",
            "-" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}",
            f"{line.counts['scored']:,} of {line.total:,}",
            *(f"{line.counts[status]:,}" for status in OTHERS),
        ]
        cost = "unknown" if line.cost_usd is None else f"${line.cost_usd:.4f}"
        rows.append([*row, *([f"{line.requests:,}", f"{line.cached:,}", cost] if asked else [])])
    more = [f"and {len(lines) - _SCORERS:,} more scorers"] if len(lines) > _SCORERS else []
    told = [f"{line.scorer}: {one}" for line in lines[:_SCORERS] for one in line.told()]
    body = "".join(_row("td", row) for row in rows)
    below = "".join(f"<div>{escape(one)}</div>" for one in (*more, *notes, *told))
    return f"<table><thead>{_row('th', heads)}</thead><tbody>{body}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str]) -> str:
    name, *numbers = cells
    left, right = f'<{tag} style="text-align:left">', f'<{tag} style="text-align:right">'
    return f"<tr>{left}{escape(name)}</{tag}>{''.join(f'{right}{cell}</{tag}>' for cell in numbers)}</tr>"

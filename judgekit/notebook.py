"""HTML for notebooks: all values are escaped, and the colors are the notebook's own."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

from pydantic import JsonValue

from judgekit.diff import DIFF_DETAILS, Diff
from judgekit.traces.rendering import compact_json, cut_middle

_ROWS = 30
_ITEMS = 10
_LONGEST = 1_000
_WRAPPED = "white-space:pre-wrap; overflow-wrap:anywhere"
_MARKS = {"=": "as expected", "~": "differs", "-": "missing", "+": "not expected", "<>": "out of order"}


def fragment(*parts: str) -> str:
    """Return the parts as one piece of HTML in which notebooks do not render dollar signs as formulas."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def text_block(text: str, head: str = "") -> str:
    """Return text as a block of its own, after a bold heading."""
    bold = f"<b>{escape(head)}</b> " if head else ""
    return f'<div style="{_WRAPPED}">{bold}{escape(cut_middle(text, _LONGEST))}</div>'


def html_text_table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return rows of text as a table, limited to the first rows."""
    given = iter(rows)
    shown = list(islice(given, _ROWS))
    more = sum(1 for _ in given)
    return _table(shown, heads, "left") + (text_block(f"and {more:,} more") if more else "")


def html_number_table(rows: Iterable[Sequence[str]], heads: Sequence[str]) -> str:
    """Return rows of a name and numbers as a table."""
    return _table(rows, heads, "right")


def _table(rows: Iterable[Sequence[str]], heads: Sequence[str], align: str) -> str:
    head = f"<thead>{_row('th', heads, align)}</thead>" if heads else ""
    return f"<table>{head}<tbody>{''.join(_row('td', row, align) for row in rows)}</tbody></table>"


def _row(tag: str, cells: Sequence[str], align: str) -> str:
    name, *others = cells
    wrapped = f"; vertical-align:top; {_WRAPPED}" if align == "left" else ""
    first = f'<{tag} style="text-align:left; vertical-align:top">'
    other = f'<{tag} style="text-align:{align}{wrapped}">'
    return f"<tr>{first}{escape(name)}</{tag}>{''.join(f'{other}{escape(cell)}</{tag}>' for cell in others)}</tr>"


def details_html(details: Mapping[str, JsonValue]) -> str:
    """Return a score's details: expected and actual calls side by side, numbers in one table, the rest in another."""
    diff = Diff.of(details)
    calls = [(_MARKS[mark], expected, actual) for mark, expected, actual in diff]
    shown = {name: value for name, value in details.items() if not diff or name not in DIFF_DETAILS}
    counted = {name: _plain(value) for name, value in shown.items() if isinstance(value, int | float)}
    others = [(name, _shown(value)) for name, value in shown.items() if name not in counted]
    return "".join(
        (
            html_text_table(calls, ("", "expected", "made")) if calls else "",
            html_number_table([[*counted.values()]], [*counted]) if counted else "",
            html_text_table(others) if others else "",
        )
    )


def _shown(value: JsonValue) -> str:
    """Return a value as text, with the items of a list on lines of their own."""
    if isinstance(value, list) and any(isinstance(element, dict) for element in value):
        more = [f"and {len(value) - _ITEMS:,} more"] if len(value) > _ITEMS else []
        return "\n".join([*map(_one_line, value[:_ITEMS]), *more])
    return _one_line(value)


def _one_line(value: JsonValue) -> str:
    if isinstance(value, dict):
        text = "; ".join(f"{name}: {_plain(field)}" for name, field in value.items())
    else:
        text = _plain(value)
    return cut_middle(" ".join(text.split()), _LONGEST, separate=" ")


def _plain(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    try:
        return f"{round(value, 3)}" if isinstance(value, float) else compact_json(value)
    except ValueError:  # Python does not print integers with that many digits
        return "too long to show"

"""The page and the plot that are made of the figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape


class Row(NamedTuple):
    """A tool in a table, with the ratio of its figure to judgekit's if they compare, and its label in the plot."""

    tool: str
    cells: Sequence[str]
    ratio: float | None = None
    label: str = ""


@dataclass
class Section:
    """A table of the page."""

    title: str
    columns: Sequence[str]
    rows: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its place in the page."""
        return self.title.lower().replace(" ", "-")


def cell(text: str) -> str:
    """Text that stays within its cell, whatever an error says."""
    return escape(" ".join(text.split())[:200]).replace("|", "\\|")


def times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def table(section: Section) -> str:
    """The section in Markdown."""
    columns = ["tool", *section.columns, "ratio"]
    rows = [
        [cell(row.tool), *map(cell, row.cells), *[""] * (len(section.columns) - len(row.cells)), times(row.ratio)]
        for row in section.rows
    ]
    if all(row.ratio is None for row in section.rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in (columns, ["---"] * len(columns), *rows))


def plot(sections: Sequence[Section], title: str) -> str:
    """Bars of CPU time relative to judgekit's, on a logarithmic scale: an SVG that is read on light and dark pages."""
    shown = [
        (section.title, [row for row in section.rows if row.ratio and row.tool != "judgekit"]) for section in sections
    ]
    shown = [(name, rows) for name, rows in shown if rows]
    ratios = [row.ratio or 1 for _, rows in shown for row in rows]
    low = min([0, *(math.floor(math.log10(one)) for one in ratios)])
    high = max([1, *(math.ceil(math.log10(one)) for one in ratios)])

    def x(ratio: float) -> float:
        return 230 + (math.log10(ratio) - low) / (high - low) * 430

    parts: list[str] = []
    y = 56
    for name, rows in shown:
        parts.append(f'<text class="group" x="12" y="{y + 12}">{escape(name)}</text>')
        y += 20
        for row in rows:
            ratio = row.ratio or 1
            left, right = sorted((x(1), x(ratio)))
            kind = "slower" if ratio >= 1 else "faster"
            parts += [
                f'<text x="220" y="{y + 12}" text-anchor="end">{escape(row.label or row.tool)}</text>',
                f'<rect class="{kind}" x="{left:.1f}" y="{y + 2}" width="{max(right - left, 1):.1f}" height="13"/>',
                f'<text x="{right + 5:.1f}" y="{y + 12}">{times(ratio)}</text>',
            ]
            y += 19
        y += 10
    ticks = [10.0**power for power in range(low, high + 1)]
    grid = [
        f'<line class="{"one" if tick == 1 else "tick"}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="50" y2="{y}"/>'
        f'<text x="{x(tick):.1f}" y="44" text-anchor="middle">{tick:g}x</text>'
        for tick in ticks
    ]
    drawn = "\n".join((*grid, *parts))
    said = "; ".join(
        f"{name}: " + ", ".join(f"{row.label or row.tool} {times(row.ratio)}" for row in rows) for name, rows in shown
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 {y + 8}" role="img" aria-labelledby="title desc">
<title id="title">{escape(title)}</title>
<desc id="desc">{escape(said)}</desc>
<style>
svg {{ color-scheme: light dark; --text: #1f2328; --page: #fff; --grid: #d0d7de; --slower: #8250df; --faster: #1a7f37; }}
@media (prefers-color-scheme: dark) {{
svg {{ --text: #e6edf3; --page: #16191f; --grid: #3d444d; --slower: #a371f7; --faster: #3fb950; }}
}}
text {{ fill: var(--text); font: 12px system-ui, sans-serif; }}
.group {{ font-weight: 600; }}
.page {{ fill: var(--page); }}
.slower {{ fill: var(--slower); }}
.faster {{ fill: var(--faster); }}
line {{ stroke: var(--grid); }}
line.one {{ stroke: var(--text); }}
</style>
<rect class="page" width="740" height="{y + 8}" rx="6"/>
<text class="group" x="12" y="22">{escape(title)}</text>
{drawn}
</svg>
"""


def filled(text: str, parts: Mapping[str, str]) -> str:
    """The page with these parts, each between ``<!-- NAME -->`` and ``<!-- /NAME -->``."""
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no place for {name}")
        text = f"{before}{begin}\n{part}\n{end}{after}"
    return text

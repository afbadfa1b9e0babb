"""Building blocks of terminal output. Text of recordings is escaped and cannot control the terminal."""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """Return the text on one line, with everything that would control a terminal made visible."""
    return "".join(
        char if char.isprintable() or char in _JOINERS else " " if char in "\n\r\t" else ascii(char)[1:-1]
        for char in text
    )


def printable_lines(text: str) -> str:
    """Return the text with its lines, and everything else that would control a terminal made visible."""
    return "\n".join(map(printable, text.split("\n")))


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is. If its width is unknown, lines are long enough for the table."""
    screen = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not screen.is_terminal:
        screen.width = max(screen.width, 140)
    return screen


@contextmanager
def recorded_text(console: Console) -> Generator[None]:
    """Print text of recordings and judges inside; `judgekit.reports.glossary` does not explain its terms."""
    before, console.record = console.record, False
    try:
        yield
    finally:
        console.record = before


@dataclass(frozen=True)
class WithoutTrailingBlanks:
    """A renderable in columns, without trailing blanks in its lines."""

    renderable: RenderableType

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.renderable)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for line in console.render_lines(self.renderable, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            yield from line[:-1]
            yield from (Segment(last.text.rstrip(" "), last.style) for last in line[-1:])
            yield Segment.line()


class WrappedWords:
    """Words and names that break after a space, an underscore, a dot or a slash if they do not fit."""

    def __init__(self, text: str) -> None:
        self._parts = re.findall(r"[^ _./]*[ _./]+|[^ _./]+", printable(text))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [cell_len(part) for part in self._parts]
        return Measurement(max(widths, default=0), sum(widths)).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = [""]
        for part in self._parts:
            if lines[-1] and cell_len(lines[-1] + part.rstrip(" ")) > options.max_width:
                lines.append("")
            lines[-1] += part
        yield Text("\n".join(line.rstrip(" ") for line in lines), overflow="fold")


def text_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> RenderableType:
    """Return rows of text under their heads; the first ``words`` columns hold words, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        if index < words:
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(WrappedWords, row[:words]), *map(printable, row[words:]))
    return WithoutTrailingBlanks(table)


def escaped_text(text: str) -> Text:
    """Return the text as rich's `rich.text.Text`, with everything that would control a terminal made visible."""
    return Text(printable(text), overflow="fold")


def hanging_indent(head: str, text: str) -> RenderableType:
    """Return the text after its head, with all its lines to the right of the head."""
    grid = Table.grid()
    grid.add_row(WrappedWords(head), escaped_text(text))
    return WithoutTrailingBlanks(grid)

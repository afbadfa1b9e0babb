"""Pieces of what terminals show. Text of recordings is escaped, so that it steers no terminal."""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """The text on one line, with all that would steer a terminal made visible."""
    return "".join(
        char if char.isprintable() or char in _JOINERS else " " if char in "\n\r\t" else ascii(char)[1:-1]
        for char in text
    )


def printable_lines(text: str) -> str:
    """The text, its lines kept, with all else that would steer a terminal made visible."""
    return "\n".join(map(printable, text.split("\n")))


def cut(text: str, most: int) -> str:
    """The text, of which so many characters are shown at most."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def console(*, stderr: bool = False) -> Console:
    """A console that takes all text as it is. Where nobody knows its width, lines are long enough for the table."""
    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = max(made.width, 140)
    return made


@contextmanager
def quoting(on: Console) -> Generator[None]:
    """Print text of recordings and judges inside: its words are not explained (see `judgekit.reports.glossary`)."""
    before, on.record = on.record, False
    try:
        yield
    finally:
        on.record = before


class Unpadded:
    """A renderable in columns, without the blanks behind its lines."""

    def __init__(self, held: RenderableType) -> None:
        self._held = held

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._held)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for line in console.render_lines(self._held, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            yield from line[:-1]
            yield from (Segment(last.text.rstrip(" "), last.style) for last in line[-1:])
            yield Segment.line()


class Words:
    """Words and names; where there is no room, they break behind a space, an underscore, a dot or a slash."""

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


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> RenderableType:
    """Rows of texts under their heads; the first ``words`` columns hold words, the others numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        if index < words:
            made.add_column(column, overflow="fold")
        else:
            made.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*map(Words, row[:words]), *map(printable, row[words:]))
    return Unpadded(made)


def harmless(text: str) -> Text:
    """The text with all that would steer a terminal made visible, as rich takes it."""
    return Text(printable(text), overflow="fold")


def hanging(head: str, text: str) -> RenderableType:
    """Return the text behind its head, with all its lines to the right of that."""
    grid = Table.grid()
    grid.add_row(Words(head), harmless(text))
    return Unpadded(grid)

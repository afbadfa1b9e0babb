"""What a run shows on a terminal: progress, a line a scorer, reasons. All that comes from a recording is made harmless."""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from judgekit.diff import Diff, DiffLine
from judgekit.runs.results import Row
from judgekit.runs.summary import OTHERS, Line, Summary, counted
from judgekit.score import Status

_SECONDS_BETWEEN_LINES = 10
_REASONS_SHOWN = 3
_REASONS_COUNTED = 100
_CALLS_SHOWN = 12
_CLASSES_SHOWN = 12
_LABEL_SHOWN = 40
_STYLES = {"=": "dim", "~": "yellow", "-": "red", "+": "green", "<>": "cyan"}
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


@dataclass
class Highlights:
    """What is shown of single rows: for each scorer the ``show`` lowest, and why others were not scored."""

    show: int = 0
    _lowest: dict[str, list[tuple[float, int, Row]]] = field(default_factory=dict[str, list[tuple[float, int, Row]]])
    _reasons: dict[tuple[str, Status], Counter[str]] = field(default_factory=dict[tuple[str, Status], Counter[str]])

    def add(self, row: Row) -> None:
        """Looks at one row."""
        score = row.score
        if score.value is None:
            reasons = self._reasons.setdefault((score.scorer, score.status), Counter())
            if score.reason in reasons or len(reasons) < _REASONS_COUNTED:
                reasons[score.reason] += 1
        elif self.show:
            lowest = self._lowest.setdefault(score.scorer, [])
            push = heapq.heappush if len(lowest) < self.show else heapq.heappushpop
            push(lowest, (-score.value, -row.index, row))

    def lowest(self, scorer: str) -> list[Row]:
        """The rows with the lowest values, lowest first."""
        return [row for _, _, row in sorted(self._lowest.get(scorer, ()), reverse=True)]

    def reasons(self, scorer: str, status: Status) -> list[tuple[str, int]]:
        """The most common reasons why samples have this status, with how often they were given."""
        return self._reasons.get((scorer, status), Counter()).most_common(_REASONS_SHOWN)


def console(*, stderr: bool = False) -> Console:
    """A console that takes all text as it is. Where nobody knows its width, lines are long enough for the table."""
    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = max(made.width, 140)
    return made


@contextmanager
def progress(total: int | None, on: Console) -> Generator[Callable[[], None]]:
    """Gives a function to be called after each sample: a bar on a terminal, now and then a line elsewhere."""
    if on.is_terminal:
        columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=on, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda: bar.advance(task)
        return
    started = last = time.monotonic()
    done = 0

    def count() -> None:
        nonlocal done, last
        done += 1
        if (now := time.monotonic()) - last >= _SECONDS_BETWEEN_LINES:
            last = now
            on.print(f"scored {done}{'' if total is None else f' of {total}'} samples in {now - started:.0f} s")

    yield count


def show_summary(summary: Summary, highlights: Highlights, on: Console) -> None:
    """A table with a line a scorer; below it, how often each label came, why samples were not scored, the lowest ones."""
    on.print(_table(summary))
    for line in summary:
        for told in line.told():
            on.print(_hanging(f"{line.scorer}: ", told))
        if (overall := line.overall) and overall.table:
            on.print(Padding(_counts(overall.table), (0, 0, 0, 2)))
        for status in OTHERS:
            if status == "failed" and len(line.errors) > 1:
                on.print(_text(f"{line.scorer}: {line.counts[status]} failed: {counted(line.errors)}"))
            shown = highlights.reasons(line.scorer, status)
            for reason, times in shown:
                on.print(_hanging(f"{line.scorer}: {times} {status}: ", reason))
            if more := line.counts[status] - sum(times for _, times in shown):
                on.print(_text(f"{line.scorer}: {more} {status} for other reasons"))
        if len(line.judges) > 1:
            on.print(_text(f"{line.scorer}: more than one judge answered: {counted(line.judges)}"))
    for line in summary:
        if rows := highlights.lowest(line.scorer):
            on.print(f"\n{printable(line.scorer)}, the lowest {len(rows)}:")
            grid = Table.grid(padding=(0, 2))
            for row in rows:
                grid.add_row(
                    f"{row.score.value:.2f}", *map(_text, (row.sample_id, row.score.reason or "no reason given"))
                )
                if calls := _side_by_side(row.score.diff()):
                    grid.add_row("", "", calls)
            on.print(Padding(grid, (0, 0, 0, 2)))


def show_plan(summary: Summary, on: Console) -> None:
    """A table of what a run would ask for, as far as it is known before the first answer."""
    columns = ("scorer", "samples", "skipped", "requests", "cached", "about tokens", "about cost")
    rows = ((line.scorer, str(line.total), str(line.counts["skipped"]), *_asked(line)) for line in summary)
    on.print(table(columns, rows))
    for line in summary:
        if others := Counter({name: times for name, times in line.errors.items() if name != "PlannedError"}):
            on.print(_text(f"{line.scorer}: would fail: {counted(others)}"))
    on.print("dry run: nothing was sent. A reply that has to be mended takes one more request.")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> RenderableType:
    """Rows of texts under their heads; the first ``words`` columns hold words, the others numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        if index < words:
            made.add_column(column, overflow="fold")
        else:
            made.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*map(_text, row))
    return made


def _table(summary: Summary) -> RenderableType:
    abstained = any(line.counts["abstained"] for line in summary)
    columns = ["scorer", "mean" if all(_is_mean(line) for line in summary) else "score", "n", "skipped", "failed"]
    columns += ["abstained"] if abstained else []
    columns += ["requests", "cached", "tokens", "cost"] if summary.asked else []
    rows: list[list[str]] = []
    for line in summary:
        row = [
            line.scorer,
            "-" if (value := line.value) is None else f"{value:.3f}",
            f"{line.counts['scored']} of {line.total}",
            str(line.counts["skipped"]),
            str(line.counts["failed"]),
        ]
        row += [str(line.counts["abstained"])] if abstained else []
        row += _asked(line) if summary.asked else []
        rows.append(row)
    return table(columns, rows)


def _is_mean(line: Line) -> bool:
    overall = line.overall
    return overall is None or overall.name == "mean"


def _counts(counts: Mapping[str, Mapping[str, int]]) -> RenderableType:
    """Counts by row and column: true labels down, predicted ones across by their number; of many, the frequent errors."""
    names = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    if len(names) > _CLASSES_SHOWN:
        errors = Counter(
            {(true, other): n for true, row in counts.items() for other, n in row.items() if other != true}
        )
        shown = errors.most_common(_CLASSES_SHOWN)
        rows = ((*_cut([true, other]), str(times)) for (true, other), times in shown)
        return (
            table(("true", "predicted", f"errors, the most frequent of {len(names)} classes"), rows, words=2)
            if shown
            else Group()
        )
    numbers = {name: str(number) for number, name in enumerate(names, 1)}
    lines = (
        [*_cut([f"{numbers[name]}  {name}"]), *(str(counts.get(name, {}).get(other, 0)) for other in names)]
        for name in names
    )
    return table(("true, and below which was predicted", *numbers.values()), lines)


def _cut(texts: Sequence[str]) -> list[str]:
    return [text if len(text) <= _LABEL_SHOWN else f"{text[: _LABEL_SHOWN - 3]}..." for text in texts]


def _asked(line: Line) -> tuple[str, str, str, str]:
    if not line.requests + line.cached:
        return "", "", "", ""
    tokens = "unknown" if line.tokens is None else f"{line.tokens:,}"
    cost = "unknown" if line.cost_usd is None else f"${line.cost_usd:.4f}"
    return str(line.requests), str(line.cached), tokens, cost


def _side_by_side(diff: Diff) -> RenderableType | None:
    """The calls as they were expected and as they were made, unless all agree."""
    different = [line for line in diff if line.mark != "="]
    if not different:
        return None
    lines = diff if len(diff) <= _CALLS_SHOWN else different
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in DiffLine._fields:
        grid.add_column(min_width=1)  # an empty column would be measured as less than it takes
    for line in lines[:_CALLS_SHOWN]:
        grid.add_row(*map(_text, line), style=_STYLES[line.mark])
    more = len(lines) - _CALLS_SHOWN
    return Group(grid, f"and {more} more") if more > 0 else grid


def _hanging(head: str, text: str) -> RenderableType:
    grid = Table.grid()
    grid.add_row(_text(head), _text(text))
    return grid


def _text(text: str) -> Text:
    return Text(printable(text))

"""The progress of a run: a bar in terminals, an occasional line elsewhere."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from judgekit.errors import count_text
from judgekit.runs.rows import Row

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SECONDS_BETWEEN_LINES = 10.0
_PACE = 60.0  # seconds; an estimate uses the latest pace, since cached replies come much faster than others
_WIDEST = 100


@dataclass
class Tally:
    """The progress of a run so far.

    Attributes:
        total: The total number of scores, if known.
        done: The number of scores so far, including those from before a resume.
        failed: The number of these that failed.
        requests: The number of requests sent to judges.
        cached: The number of replies from a cache.
        cost_usd: The cost of the requests; ``None`` if unknown.
        worker_counts: A function that returns how many scores other processes have made, and how many of these failed.
        in_flight: A function that returns the number of requests in flight; ``None`` if this is unknown.
        workers: The number of workers on other machines; 0 if there are none.
        seen: The numbers of scores at the latest times, for the pace.
    """

    total: int | None = None
    done: int = 0
    failed: int = 0
    requests: float = 0
    cached: float = 0
    cost_usd: float | None = 0.0
    worker_counts: Callable[[], tuple[int, int]] = lambda: (0, 0)
    in_flight: Callable[[], int] | None = None
    workers: int = 0
    seen: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]], repr=False)

    def add(self, row: Row) -> None:
        """Count a score."""
        score = row.score
        self.done += 1
        if score.status == "failed":
            self.failed += 1
        if score.calls:
            requests = sum(call.requests for call in score.calls)
            cached = sum(call.count for call in score.calls if call.cached)
            self.add_counts(requests=requests, cached=cached, cost_usd=score.usd_paid)

    def add_counts(
        self, done: int = 0, failed: int = 0, requests: float = 0, cached: float = 0, *, cost_usd: float | None = 0.0
    ) -> None:
        """Count scores that were made elsewhere, and what they took."""
        self.done += done
        self.failed += failed
        self.requests += requests
        self.cached += cached
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    def status(self, now: float) -> tuple[float | None, str, str]:
        """Return the share that is done, the progress at a time of a monotonic clock, and other numbers as text."""
        scored, failed = self.worker_counts()
        done, failed = self.done + scored, self.failed + failed
        under_way = None if self.in_flight is None else self.in_flight()
        total = None if self.total is None else max(self.total, done)
        scores = f"{done:,} scores" if total is None else f"{done:,} of {total:,} scores"
        pace = self._pace(done, now)
        left = timedelta(seconds=round((total - done) / pace)) if pace and total is not None and done < total else None
        others = [f"{count_text(self.workers, 'worker')}, {pace or 0:,.0f} scores/s"] if self.workers else []
        others += [f"{failed:,} failed"] if failed else []
        if self.requests or self.cached or under_way:
            others.append(f"{round(self.cached):,} from cache")
            others += [] if under_way is None else [f"{under_way:,} under way"]
            others.append("cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}")
        return done / total if total else None, scores if left is None else f"{scores}, {left} left", ", ".join(others)

    def _pace(self, done: int, now: float) -> float | None:
        """Return the latest scores per second; ``None`` if there are none."""
        self.seen.append((now, done))
        while now - self.seen[0][0] > _PACE:
            self.seen.popleft()
        then, before = self.seen[0]
        return (done - before) / (now - then) if done > before else None


@contextmanager
def progress(tally: Tally, console: "Console") -> Generator[None]:
    """Show a tally while it changes. A thread of its own does this, so that counting costs next to nothing."""
    if console.is_interactive:
        from rich.live import Live  # noqa: PLC0415 - importing it takes longer than a short run

        with Live(get_renderable=lambda: _bar(tally), console=console, transient=True):
            yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_print_lines, args=(tally, console, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _bar(tally: Tally) -> "RenderableType":
    from rich.console import Group  # noqa: PLC0415 - as above
    from rich.constrain import Constrain  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    share, far, others = tally.status(time.monotonic())
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column()
    line.add_column(ratio=1)
    line.add_column(no_wrap=True)
    line.add_row("scoring", ProgressBar(1.0, share or 0.0, pulse=share is None), far)
    return Group(Constrain(line, _WIDEST), Text(others, style="dim", no_wrap=True, overflow="ellipsis"))


def _print_lines(tally: Tally, console: "Console", ended: threading.Event) -> None:
    started, lines = time.monotonic(), 0
    tally.seen.append((started, tally.done))

    def show() -> None:
        now = time.monotonic()
        _, *texts = tally.status(now)
        took = timedelta(seconds=round(now - started))
        console.print(f"{', '.join(filter(None, texts))} ({took})", soft_wrap=True)

    while not ended.wait(_SECONDS_BETWEEN_LINES):
        show()
        lines += 1
    if lines:
        show()

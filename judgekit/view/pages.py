"""What the pages of runs and comparisons show, read from the file of runs and kept until it changes there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TypeAlias, TypeVar

from pydantic import JsonValue

from judgekit.analysis.compare import compare
from judgekit.analysis.findings import Audit
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.errors import ConfigError, JudgekitError
from judgekit.reports.html import ReportPage
from judgekit.reports.packs import ReportSide
from judgekit.runs.results import Run
from judgekit.runs.store import RunStore
from judgekit.view.listing import RunList

Answer = TypeVar("Answer")
_MOST_PAGES = 8
_PAGE_ROWS = 100

_Key: TypeAlias = tuple[int, ...]
"""The number of a run, or of a baseline and the run that is compared with it."""


@dataclass
class _Kept:
    """A page that is kept, with the state of the files that it was made from. One thread at a time uses it."""

    lock: Lock = field(default_factory=Lock)
    state: object = None
    page: ReportPage | None = None


class Pages:
    """The pages of a file of runs. Any thread may ask for them; reads are short, and end with each call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._store: RunStore | None = None
        self._opened = 0
        self._list = RunList()
        self._kept: dict[_Key, _Kept] = {}

    @contextmanager
    def _reading(self) -> Iterator[RunStore]:
        """Yield the file of runs, which is opened again if another one has taken its place."""
        with self._lock:
            if self._store is None or not self._store.is_current:
                self._store = None
                self._store = RunStore(self.path, read_only=True)
                self._opened += 1
            yield self._store

    def version(self) -> str:
        """Return a text that changes whenever the file of runs changes."""
        with self._reading() as store:
            return f"{self._opened}.{store.version[0]}"

    def runs(self) -> list[JsonValue]:
        """Return the list of all runs, newest first."""
        with self._reading() as store:
            return self._list.entries(store)

    def head(self, key: _Key) -> JsonValue:
        """Return what the page of a run or a comparison shows at once."""
        return self._use(key, lambda page: dict(page.head))

    def listed(self, key: _Key, side: str) -> bytes:
        """Return the list of samples of a side of the page, as compressed JSON."""
        return self._use(key, lambda page: _side(page, side).list_json())

    def pack(self, key: _Key, side: str, number: int) -> bytes:
        """Return a pack of these samples, as compressed JSON."""
        pack = self._use(key, lambda page: next(_side(page, side).packs(number), None))
        if pack is None:
            raise ConfigError(f"there is no pack {number} of samples")
        return pack

    def rows(self, run: int, start: int) -> JsonValue:
        """Return the scores of up to 100 samples of a run, from the number ``start`` on, and where the next ones start."""
        with self._reading() as store:
            store.record(run)
            numbers = store.sample_page(run, start, _PAGE_ROWS + 1)
            rows: list[JsonValue] = [
                row.model_dump(mode="json") for row in store.rows(run, numbers=numbers[:_PAGE_ROWS])
            ]
        return {"rows": rows, "next": numbers[_PAGE_ROWS] if len(numbers) > _PAGE_ROWS else None}

    def edit_issue(self, run: int, issue: str, status: str | None, name: str | None) -> None:
        """Give an issue of a run's failures another status or name."""
        from judgekit.failures.finding import find_failures  # noqa: PLC0415 - loads judges

        report = find_failures(Run.stored(run, self.path))  # which keeps the issues, so that they can be edited
        report.edit({} if status is None else {issue: status}, {} if name is None else {issue: name})

    def _use(self, key: _Key, ask: Callable[[ReportPage], Answer]) -> Answer:
        with self._lock:
            kept = self._kept.pop(key, None) or _Kept()
            self._kept[key] = kept
            while len(self._kept) > _MOST_PAGES:
                self._kept.pop(next(iter(self._kept)))
        with kept.lock:
            state = self._state(key)
            if kept.page is None or kept.state != state:
                kept.page = _page([Run.stored(number, self.path) for number in key])
                kept.state = state
            return ask(kept.page)

    def _state(self, key: _Key) -> object:
        """Return what tells whether a page is still that of the files."""
        with self._reading() as store:
            of_runs = [(store.record(number), store.counts(number)) for number in key]
            state = self._opened, of_runs, store.label_state()
        folders = [self.path.parent / name for name in ("audits", "anchors", "failures")]
        files = sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())
        return state, [(path, path.stat().st_mtime_ns) for path in files]


def _side(page: ReportPage, name: str) -> ReportSide:
    for side in page.sides:
        if side.name == name:
            return side
    raise ConfigError(f"the page has no side {name}")


def _page(runs: Sequence[Run]) -> ReportPage:
    *earlier, run = runs
    if earlier:
        return ReportPage.of(compare(earlier[0], run, allow_changed_references=True))
    notes: list[str] = []
    audit = _or_note(lambda: _audit(run), "the labels cannot be compared", notes)
    gates = _or_note(lambda: _gates(run), "the gates cannot be checked", notes)
    page = ReportPage.of(run, audit, gates=gates)
    shown = page.head["notes"]
    return page._replace(head={**page.head, "notes": [*(shown if isinstance(shown, list) else ()), *notes]})


def _or_note(make: Callable[[], Answer], problem: str, notes: list[str]) -> Answer | None:
    try:
        return make()
    except JudgekitError as error:
        notes.append(f"{problem}: {error}")
        return None


def _audit(run: Run) -> Audit | None:
    """Return the audit of a run by the labels that are stored; no audit record is written."""
    if not (run.has_judges and run.store.label_state()[0]):
        return None
    from judgekit.analysis.audit import audit  # noqa: PLC0415 - loads scipy
    from judgekit.analysis.stored_labels import stored_labels  # noqa: PLC0415

    return audit(run, keep=False) if stored_labels(run) else None


def _gates(run: Run) -> GateResults | None:
    gates = run.record.options.get("gates")
    return check_gates(run, [str(gate) for gate in gates]) if isinstance(gates, list) and gates else None

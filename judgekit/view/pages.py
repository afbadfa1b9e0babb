"""The content of the pages, read from the file of runs and kept until it changes there."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

from pydantic import JsonValue

from judgekit.analysis.compare import compare
from judgekit.analysis.findings import Audit
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.errors import JudgekitError
from judgekit.reports.html import ReportPage
from judgekit.runs.results import Run
from judgekit.runs.store import RunStore
from judgekit.view.listing import RunList

Answer = TypeVar("Answer")
_MOST_PAGES = 8
_PAGE_ROWS = 100


class Pages:
    """The pages of a file of runs. Any thread may ask for them; reads are short, and end with each call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._store: RunStore | None = None
        self._opened = 0
        self._list = RunList()
        self._page_lock = Lock()
        self._kept: dict[tuple[int, ...], tuple[object, ReportPage]] = {}

    @contextmanager
    def _reading(self) -> Generator[RunStore]:
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

    def rows(self, run: int, start: int | None) -> JsonValue:
        """Return the scores of up to 100 samples of a run, from the number ``start`` on, and where the next ones start."""
        with self._reading() as store:
            store.record(run)
            numbers = store.sample_page(run, start or 0, _PAGE_ROWS + 1)
            shown = store.rows(run, numbers=numbers[:_PAGE_ROWS])
            rows: list[JsonValue] = [row.model_dump(mode="json") for row in shown]
        return {"rows": rows, "next": numbers[_PAGE_ROWS] if len(numbers) > _PAGE_ROWS else None}

    def edit_issue(self, run: int, sent: Mapping[str, JsonValue]) -> JsonValue:
        """Give an issue of a run's failures another status or name."""
        from judgekit.failures.finding import find_failures  # noqa: PLC0415 - loads judges

        report = find_failures(Run.stored(run, self.path))  # which keeps the issues, so that they can be edited
        issue, *changes = (str(sent.get(name, "")) for name in ("issue", "status", "name"))
        report.edit(*({issue: change} if change else {} for change in changes))
        return {}

    def describe(self, run: int, sent: Mapping[str, JsonValue]) -> JsonValue:
        """Give a run another name, note or tags, which are separated by spaces."""
        before = Run.stored(run, self.path).description
        texts = {name: str(sent[name]) for name in ("name", "note") if name in sent}
        tags = tuple(str(sent["tags"]).split()) if "tags" in sent else before.tags
        RunStore(self.path).describe(run, before._replace(**texts, tags=tags).checked())
        return {}

    def use(self, key: tuple[int, ...], ask: Callable[[ReportPage], Answer]) -> Answer:
        """Return what is asked of the page of a run, or of a baseline and a run, which is made again if the files have changed."""
        with self._page_lock:
            state = self._state(key)
            before, page = self._kept.pop(key, (None, None))
            if page is None or before != state:
                page = _page([Run.stored(number, self.path) for number in key])
            self._kept[key] = state, page
            if len(self._kept) > _MOST_PAGES:
                del self._kept[next(iter(self._kept))]
            return ask(page)

    def _state(self, key: tuple[int, ...]) -> object:
        """Return what tells whether a page is still that of the files."""
        with self._reading() as store:
            of_runs = [(store.record(number), store.counts(number), store.description(number)) for number in key]
            state = self._opened, of_runs, store.label_state()
        folders = [self.path.parent / name for name in ("audits", "anchors", "failures")]
        files = sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())
        return state, [(path, path.stat().st_mtime_ns) for path in files]


def _page(runs: Sequence[Run]) -> ReportPage:
    *earlier, run = runs
    if earlier:
        return ReportPage.of(compare(earlier[0], run, allow_changed_references=True))
    audit: Audit | None = None
    gates: GateResults | None = None
    notes: list[JsonValue] = []
    try:
        if run.has_judges and run.store.label_state()[0]:
            from judgekit.analysis import audit as auditing  # noqa: PLC0415 - loads scipy
            from judgekit.analysis.stored_labels import stored_labels  # noqa: PLC0415

            audit = auditing.audit(run, keep=False) if stored_labels(run) else None
    except JudgekitError as error:
        notes.append(f"the labels cannot be compared with the judges: {error}")
    try:
        texts = run.record.options.get("gates")
        gates = check_gates(run, map(str, texts)) if isinstance(texts, list) and texts else None
    except JudgekitError as error:
        notes.append(f"the gates cannot be checked: {error}")
    page = ReportPage.of(run, audit, gates=gates)
    shown = page.head["notes"]
    return page._replace(head={**page.head, "notes": [*(shown if isinstance(shown, list) else ()), *notes]})

"""The content of the pages, read from the file of runs and kept until it changes there."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import JsonValue

from judgekit.errors import ConfigError, JudgekitError, StoreError, check_choice
from judgekit.reports.packs import sample_details
from judgekit.reports.sample_list import listed_row, listed_sample, sample_list
from judgekit.runs.results import Run
from judgekit.runs.store import RunStore
from judgekit.view.listing import RunList

if TYPE_CHECKING:
    from judgekit.analysis.compare import Comparison
    from judgekit.analysis.findings import Audit
    from judgekit.analysis.gates import GateResults

Answer = TypeVar("Answer")
_COUNTED_AT_ONCE = 3_000  # scores
_CORRECTED = 5_000  # samples of a run whose mean is corrected for the trend
_MOST_RUNS = 50
_MOST_COMPARED = 8
_DIFFERING = 200


class KeptPage(NamedTuple):
    """The head of the page of a run or of a comparison, and the comparison whose samples it lists."""

    head: Mapping[str, JsonValue]
    comparison: "Comparison | None" = None

    @property
    def compared(self) -> "Comparison":
        """The comparison whose page this is."""
        assert self.comparison is not None  # noqa: S101 - its key has two runs
        return self.comparison


class Pages:
    """The pages of a file of runs. Any thread may ask for them; reads are short, and end with each call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._store: RunStore | None = None
        self._opened = 0
        self._list = RunList()
        self._page_lock = Lock()
        self._kept: dict[tuple[int, ...], tuple[object, KeptPage]] = {}

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
            return [*self._list.entries(store)]

    def samples(
        self, key: tuple[int, ...], filters: Mapping[str, str], start: int | None, number: int | None
    ) -> JsonValue:
        """Return up to 100 samples that pass the filters, and where the next ones start; see `sample_list`."""
        run, *others = key
        if others:
            from judgekit.reports.paired_samples import paired_list  # noqa: PLC0415 - loads numpy

            return self.use(key, lambda page: paired_list(page.compared, filters, start or 0, number))
        with self._reading() as store:
            return sample_list(Run(store, store.record(run)), filters, start or 0, number)

    def pair(self, key: tuple[int, ...], number: int) -> JsonValue:
        """Return a sample of a comparison, with its scores in both runs; see `paired_list` for its number."""
        from judgekit.reports.paired_samples import sides_of  # noqa: PLC0415 - loads numpy

        def read(page: KeptPage) -> JsonValue:
            comparison = page.compared
            runs, numbers = (comparison.a, comparison.b), sides_of(comparison, number)
            sides: dict[str, JsonValue] = {
                name: None if own is None else _whole(run, own)
                for name, run, own in zip("ab", runs, numbers, strict=True)
            }
            return {"number": number, **sides}

        return self.use(key, read)

    def sample(self, run: int, number: int) -> JsonValue:
        """Return a sample with its scores, and those that it has in the newest runs of the same files, oldest first."""
        with self._reading() as store:
            sample = _whole(Run(store, store.record(run)), number)
            runs = self._list.same_files(store, run)[-_MOST_RUNS:]
            history: list[JsonValue] = [
                {
                    "run": other,
                    "name": store.description(other).name,
                    "sample": sample,
                    "rows": [*map(listed_row, store.rows(other, numbers=[sample]))],
                }
                for other, sample in store.numbers_of(runs, sample["rows"][0]["sample_id"])
            ]
            return {**sample, "history": history}

    def trend(self, run: int, scorer: str) -> JsonValue:
        """Return the newest runs of the same files that have a scorer, oldest first, with its corrected means."""
        with self._reading() as store:
            check_choice("scorer of the run", scorer, [kept.name for kept in store.record(run).scorers])
            numbers = self._list.same_files(store, run)[-_MOST_RUNS:] or [run]
            entries = [entry for entry in reversed(self._list.entries(store)) if entry["number"] in numbers]
            has_labels = store.label_state()[0] or (self.path.parent / "audits").is_dir()
        for entry in entries if has_labels else ():
            if entry.get("ended") and int(str(entry["samples"])) <= _CORRECTED:
                head = self.use((int(str(entry["number"])),), lambda page: cast("Any", page.head))
                entry["corrected"] = {line["name"]: line["corrected"] for line in head["b"]["scorers"]}.get(scorer)
        return {"run": run, "scorer": scorer, "corrected_up_to": _CORRECTED, "runs": [*entries]}

    def compare(self, runs: Sequence[int]) -> JsonValue:
        """Return the comparisons of runs with the first one."""
        if not 1 < len({*runs}) == len(runs) <= _MOST_COMPARED:
            raise ConfigError(f"expected 2 to {_MOST_COMPARED} different runs to compare, got {len(runs)}")
        from judgekit.reports.paired_samples import differing  # noqa: PLC0415 - loads numpy

        pages = [self.use((runs[0], other), lambda page: page) for other in runs[1:]]
        with self._page_lock:
            samples = differing([page.compared for page in pages], _DIFFERING)
        return {"comparisons": [dict(page.head) for page in pages], "differing": samples}

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

    def head(self, run: int) -> JsonValue:
        """Return what the page of a run shows: for many scores, first what is known without counting them."""
        with self._reading() as store:
            kept = self._kept.get((run,))
            is_first = store.counts(run).scores > _COUNTED_AT_ONCE
            if is_first and (kept is None or kept[0] != self._state(store, (run,))):
                names = [scorer.name for scorer in store.record(run).scorers]
                entry = next(entry for entry in self._list.entries(store) if entry["number"] == run)
                return {"first": entry, "choices": store.filter_choices(run, names)}
        return self.use((run,), lambda page: dict(page.head))

    def use(self, key: tuple[int, ...], ask: Callable[[KeptPage], Answer]) -> Answer:
        """Return what is asked of the page of a run, or of a baseline and a run, which is made again if the files have changed."""
        with self._page_lock:
            with self._reading() as store:
                state = self._state(store, key)
            before, page = self._kept.pop(key, (None, None))
            if page is None or before != state:
                page = _page([Run.stored(number, self.path) for number in key])
            self._kept[key] = state, page
            of_kind = [kept for kept in self._kept if len(kept) == len(key)]
            if len(of_kind) > (_MOST_RUNS if len(key) == 1 else _MOST_COMPARED):
                del self._kept[of_kind[0]]
            return ask(page)

    def _state(self, store: RunStore, key: tuple[int, ...]) -> object:
        """Return what tells whether a page is still that of the files."""
        of_runs = [(store.record(number), store.counts(number), store.description(number)) for number in key]
        folders = [self.path.parent / name for name in ("audits", "anchors", "failures")]
        files = sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())
        return self._opened, of_runs, store.label_state(), [(path, path.stat().st_mtime_ns) for path in files]


def _whole(run: Run, number: int) -> dict[str, Any]:
    """Return all that is shown of a sample of a run."""
    rows = [*run.rows(numbers=[number])]
    if not rows:
        raise StoreError(f"run {run.number} has no sample {number}")
    return {**listed_sample(number, rows), **sample_details(run, [number])[0]}


def _page(runs: Sequence[Run]) -> KeptPage:
    from judgekit.reports.html import ReportPage  # noqa: PLC0415 - loads numpy

    *earlier, run = runs
    notes: list[JsonValue] = []
    audit: Audit | None = None
    try:
        if run.has_judges and run.store.label_state()[0]:
            from judgekit.analysis import audit as auditing  # noqa: PLC0415 - loads scipy
            from judgekit.analysis.stored_labels import stored_labels  # noqa: PLC0415

            audit = auditing.audit(run, keep=False) if stored_labels(run) else None
    except JudgekitError as error:
        notes.append(f"the labels cannot be compared with the judges: {error}")
    comparison = None
    if earlier:
        from judgekit.analysis.compare import compare  # noqa: PLC0415

        comparison = compare(earlier[0], run, allow_changed_references=True)
    head = ReportPage.of(comparison or run, audit, gates=None if earlier else _gates(run, notes), is_paged=True).head
    choices = run.store.filter_choices(run.number, [scorer.name for scorer in run.scorers])
    shown = head["notes"]
    notes = [*(shown if isinstance(shown, list) else ()), *notes]
    return KeptPage({**head, "choices": choices, "notes": notes}, comparison)


def _gates(run: Run, notes: list[JsonValue]) -> "GateResults | None":
    """Return the results of the gates of a run; a note says why they cannot be checked."""
    try:
        texts = run.record.options.get("gates")
        if isinstance(texts, list) and texts:
            from judgekit.analysis.gates import check_gates  # noqa: PLC0415

            return check_gates(run, map(str, texts))
    except JudgekitError as error:
        notes.append(f"the gates cannot be checked: {error}")
    return None

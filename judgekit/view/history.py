"""Scores over the runs of the same recordings: those of a sample, and the numbers of a scorer."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from pydantic import JsonValue

from judgekit.analysis.corrected_means import corrected_means, run_corrections
from judgekit.errors import StoreError, check_choice
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord, identity_differences
from judgekit.runs.store import RunStore

_MOST_RUNS = 50
_CHANGES_SHOWN = 3
_CORRECTED = 5_000
"""The most scores of a run whose mean is corrected here, which takes a pass over them."""


def sample_history(store: RunStore, runs: Sequence[int], rows: Sequence[Row]) -> list[JsonValue]:
    """Return the scores of a sample, given by its rows, in the newest of these runs, oldest first."""
    history: list[JsonValue] = []
    first = rows[0]
    for run, number in store.numbers_of(runs[-_MOST_RUNS:], first.index, first.sample_id):
        scores: dict[str, JsonValue] = {
            row.scorer: row.score.model_dump(mode="json", include={"status", "value", "label"})
            for row in store.rows(run, numbers=[number])
        }
        name = store.description(run).name
        history.append({"run": run, "name": name, "sample": number, "scores": scores})
    return history


class Trend:
    """The numbers of scorers over runs. Corrected means are kept, as computing them takes a pass over the scores."""

    def __init__(self) -> None:
        self._corrected: dict[object, JsonValue] = {}

    def points(self, store: RunStore, runs: Sequence[int], record: RunRecord, scorer: str) -> JsonValue:
        """Return the numbers of a scorer of a run in the newest of these runs, oldest first.

        A point is ``broken`` by each change of the scorer, its judge, its prompt or judgekit since the one before.
        """
        check_choice("scorer of the run", scorer, [one.name for one in record.scorers])
        points: list[JsonValue] = []
        before: tuple[RunRecord, ScorerRecord] | None = None
        for number in (runs or [record.number])[-_MOST_RUNS:]:
            try:
                other = store.record(number)
            except StoreError:
                continue  # its record is damaged, as the list of runs says
            at = next((at for at, one in enumerate(other.scorers) if one.name == scorer), None)
            results = store.results(number)
            if at is None or at >= len(results):
                continue
            point: dict[str, Any] = {"run": number, "name": store.description(number).name}
            point |= {"started": other.started_at.isoformat(), **results[at]._asdict()}
            point |= {"corrected": self._correction(store, other, scorer, results[at].scores)}
            point["broken"] = [] if before is None else _changes(*before, other, other.scorers[at])
            points.append(point)
            before = other, other.scorers[at]
        left_out = max(0, len(runs) - _MOST_RUNS)
        return {"run": record.number, "scorer": scorer, "points": points, "older": left_out, "most": _CORRECTED}

    def _correction(self, store: RunStore, record: RunRecord, scorer: str, scores: int) -> JsonValue:
        """Return the corrected mean of a scorer that was audited, if it has one and the run has few enough scores."""
        run = Run(store, record)
        folder = run.audits_folder
        if folder is None or not folder.is_dir() or not run.has_judges or scores > _CORRECTED:
            return None
        files = tuple((path, path.stat().st_mtime_ns) for path in sorted(folder.iterdir()))
        key = (record.id, record.number, scorer, store.counts(record.number), files)
        if key not in self._corrected:
            figure = corrected_means(run_corrections(run)).get(scorer)
            self._corrected[key] = None if figure is None else figure.model_dump()
        return self._corrected[key]


def _changes(before: RunRecord, scorer_before: ScorerRecord, after: RunRecord, scorer: ScorerRecord) -> list[JsonValue]:
    """Return what changed between two runs so that their numbers may not be compared."""
    changes: list[JsonValue] = []
    if scorer_before.signature != scorer.signature:
        shown = islice(identity_differences(scorer_before.identity, scorer.identity), _CHANGES_SHOWN)
        changes += list(shown) or ["the signature of the scorer changed"]
    if before.version != after.version:
        changes.append(f"judgekit was {before.version or 'unknown'} and is {after.version or 'unknown'}")
    return changes

"""The list of all runs, from their records and results: no score is read."""

import time
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from pydantic import JsonValue

from judgekit.errors import StoreError
from judgekit.runs.reader import RunCounts
from judgekit.runs.rows import RunRecord, SampleCount
from judgekit.runs.store import RunStore

_JUDGE = "judgekit.judges.judge.Judge"
_ACTIVE_SECONDS = 60


class RunList:
    """The list of all runs. Records that have not changed are not read again.

    A run without an end is running if scores were added while this server looked on, and may be interrupted otherwise.
    """

    def __init__(self) -> None:
        self._facts: dict[tuple[int, int], dict[str, JsonValue]] = {}
        self._counts: dict[int, tuple[RunCounts, float | None]] = {}

    def entries(self, store: RunStore) -> list[JsonValue]:
        """Return an entry for each run, newest first."""
        checksums = store.record_checksums()
        self._facts = {key: self._facts.get(key) or _facts(store, key[0]) for key in checksums.items()}
        return [self._entry(store, number, self._facts[number, checksums[number]]) for number in reversed(checksums)]

    def _entry(self, store: RunStore, number: int, facts: Mapping[str, JsonValue]) -> JsonValue:
        results = store.results(number)
        names = facts.get("scorers")
        if not isinstance(names, list) or facts["state"] == "damaged":
            return {**facts}
        scorers: list[JsonValue] = []
        for at, scorer in enumerate(names):
            number_of = results[at] if len(results) == len(names) else None
            figures: dict[str, JsonValue] = {"value": None, "low": None, "high": None, "n": None, "failed": None}
            if number_of is not None:
                figures = {
                    "value": number_of.mean,
                    "low": number_of.low,
                    "high": number_of.high,
                    "n": number_of.n,
                    "failed": number_of.failed,
                }
            scorers.append({**(scorer if isinstance(scorer, dict) else {}), **figures})
        entry: dict[str, JsonValue] = {**facts, "scorers": scorers}
        if facts["ended"] is None:
            entry |= self._progress(store, number, len(names))
        return entry

    def _progress(self, store: RunStore, number: int, scorers: int) -> dict[str, JsonValue]:
        counts, moment = store.counts(number), time.monotonic()
        before, seen_at = self._counts.get(number, (counts, None))
        seen_at = seen_at if counts == before else moment
        self._counts[number] = counts, seen_at
        is_active = seen_at is not None and moment - seen_at < _ACTIVE_SECONDS
        return {
            "state": "running" if is_active else "running or interrupted",
            "done": counts.scores / scorers if scorers else 0,
            "failed": counts.failed,
        }


def _facts(store: RunStore, number: int) -> dict[str, JsonValue]:
    """Return what the record of a run says."""
    try:
        record = store.record(number)
    except StoreError:
        return {"number": number, "state": "damaged", "scorers": []}
    return {
        "number": number,
        "state": "stopped" if record.stop_reason else "ended",
        "why": record.stop_reason,
        "started": record.started_at.isoformat(),
        "ended": None if record.ended_at is None else record.ended_at.isoformat(),
        "files": [PurePath(file.path.replace("\\", "/")).name for file in record.inputs],
        "samples": record.samples,
        "about": SampleCount(record.samples, record.count_precision).qualifier,
        "judges": list(dict.fromkeys(_judges([scorer.identity for scorer in record.scorers]))),
        "gates": _gates(record),
        "notes": list(record.notes),
        "scorers": [{"name": scorer.name, "judged": scorer.judged} for scorer in record.scorers],
    }


def _gates(record: RunRecord) -> JsonValue:
    return record.options.get("gates") or []


def _judges(identity: JsonValue) -> Iterator[str]:
    """Yield the models of the judges in the identities of scorers."""
    if isinstance(identity, list):
        if identity and identity[0] == _JUDGE and isinstance(fields := identity[1], dict):
            yield str(fields.get("model"))
        for part in identity:
            yield from _judges(part)
    elif isinstance(identity, dict):
        yield from _judges([*identity.values()])

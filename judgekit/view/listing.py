"""The list of all runs, from their records and results: no score is read."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from pydantic import JsonValue

from judgekit.errors import StoreError
from judgekit.runs.results import Run
from judgekit.runs.rows import SampleCount, ScorerResult
from judgekit.runs.store import RunStore

_JUDGE = "judgekit.judges.judge.Judge"
_UNKNOWN = dict.fromkeys(ScorerResult._fields)


class RunList:
    """The list of all runs. Records that have not changed are not read again."""

    def __init__(self) -> None:
        self._facts: dict[tuple[int, int], dict[str, Any]] = {}

    def entries(self, store: RunStore) -> list[JsonValue]:
        """Return an entry for each run, newest first."""
        keys = store.record_checksums()
        self._facts = {key: self._facts.get(key) or _facts(store, key[0]) for key in keys}
        return [_entry(store, self._facts[key]) for key in reversed(keys)]


def _facts(store: RunStore, number: int) -> dict[str, Any]:
    """Return what the record of a run says, which is damaged if it has no start."""
    try:
        record = store.record(number)
    except StoreError:
        return {"number": number, "state": "damaged", "scorers": []}
    return {
        "number": number,
        "state": Run(store, record).state,
        "why": record.stop_reason,
        "started": record.started_at.isoformat(),
        "ended": record.ended_at and record.ended_at.isoformat(),
        "files": [PurePath(file.path.replace("\\", "/")).name for file in record.inputs],
        "samples": record.samples,
        "about": SampleCount(record.samples, record.count_precision).qualifier,
        "judges": list(dict.fromkeys(_judges([scorer.identity for scorer in record.scorers]))),
        "gates": record.options.get("gates") or [],
        "scorers": [{"name": scorer.name, "judged": scorer.judged} for scorer in record.scorers],
    }


def _entry(store: RunStore, facts: dict[str, Any]) -> JsonValue:
    number, scorers = facts["number"], facts["scorers"]
    results = store.results(number)
    figures = [result._asdict() for result in results] if len(results) == len(scorers) else [_UNKNOWN] * len(scorers)
    entry = facts | store.description(number)._asdict()
    entry["scorers"] = [scorer | figure for scorer, figure in zip(scorers, figures, strict=True)]
    if "started" in facts and facts["ended"] is None:
        counts = store.counts(number)
        state = Run(store, store.record(number)).state
        entry |= {"state": state, "done": counts.scores / max(1, len(scorers)), "failed": counts.failed}
    return entry


def _judges(identity: JsonValue) -> Iterator[str]:
    """Yield the models of the judges in the identities of scorers."""
    if isinstance(identity, list):
        if identity and identity[0] == _JUDGE and isinstance(fields := identity[1], dict):
            yield str(fields.get("model"))
        for part in identity:
            yield from _judges(part)
    elif isinstance(identity, dict):
        yield from _judges([*identity.values()])

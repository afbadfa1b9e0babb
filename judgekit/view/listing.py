"""The list of all runs, from their records and results, and runs of the same recordings. Calls of judges are read once."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from time import monotonic
from typing import Any

from pydantic import JsonValue

from judgekit.errors import StoreError
from judgekit.runs.results import Run
from judgekit.runs.rows import SampleCount, ScorerResult
from judgekit.runs.store import RunStore

_JUDGE = "judgekit.judges.judge.Judge"
_UNKNOWN = dict.fromkeys(ScorerResult._fields)
_COUNTING_SECONDS = 0.1


class RunList:
    """The list of all runs. Records and calls that have not changed are not read again."""

    def __init__(self) -> None:
        self._facts: dict[tuple[int, int], dict[str, Any]] = {}
        self._counted: dict[tuple[int, int], dict[str, JsonValue]] = {}

    def entries(self, store: RunStore, seconds: float = _COUNTING_SECONDS) -> list[dict[str, JsonValue]]:
        """Return an entry for each run, newest first. Agents are ``None`` where counting takes more ``seconds``."""
        facts, until = self._read(store), monotonic() + seconds
        entries: list[dict[str, JsonValue]] = []
        for key in reversed([*facts]):
            if key not in self._counted and monotonic() < until:
                self._counted[key] = store.cost_and_agents(key[0])
            entries.append(_entry(store, facts[key] | self._counted.get(key, {"cost": None, "agents": None})))
            if facts[key].get("ended") is None:
                self._counted.pop(key, None)  # it may be running
        return entries

    def same_files(self, store: RunStore, run: int) -> Sequence[int]:
        """Return the numbers of the runs that read a file that this run read, this one included; none if it read no file."""
        files = {number: {*facts.get("recordings", ())} for (number, _), facts in self._read(store).items()}
        return [number for number, read in files.items() if read & files.get(run, set())]

    def _read(self, store: RunStore) -> Mapping[tuple[int, int], dict[str, Any]]:
        keys = store.record_checksums()
        self._facts = {key: self._facts.get(key) or _facts(store, key[0]) for key in keys}
        self._counted = {key: counted for key, counted in self._counted.items() if key in self._facts}
        return self._facts


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
        "recordings": [file.identity for file in record.inputs],
        "samples": record.samples,
        "about": SampleCount(record.samples, record.count_precision).qualifier,
        "judges": list(dict.fromkeys(_judges([scorer.identity for scorer in record.scorers]))),
        "version": record.version,
        "gates": record.options.get("gates") or [],
        "scorers": [scorer.model_dump(include={"name", "judged", "signature"}) for scorer in record.scorers],
    }


def _entry(store: RunStore, facts: dict[str, Any]) -> dict[str, JsonValue]:
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

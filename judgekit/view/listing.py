"""The list of all runs, from their records and results, and runs of the same recordings. Calls of judges are read once."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from time import monotonic
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import StoreError
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, SampleCount, ScorerResult
from judgekit.runs.store import RunStore

_JUDGE = "judgekit.judges.judge.Judge"
_UNKNOWN = dict.fromkeys(ScorerResult._fields)
_COUNTING_SECONDS = 0.1


class RunFacts(NamedTuple):
    """Facts from the record of a run: those that the list shows, and the identities of the files that it read."""

    shown: Mapping[str, JsonValue]
    scorers: Sequence[Mapping[str, JsonValue]] = ()
    files: frozenset[str] = frozenset()


class RunList:
    """The list of all runs. Records and calls that have not changed are not read again."""

    def __init__(self) -> None:
        self._facts: dict[tuple[int, int], RunFacts] = {}
        self._counted: dict[tuple[int, int], Mapping[str, JsonValue]] = {}

    def entries(self, store: RunStore) -> list[JsonValue]:
        """Return an entry for each run, newest first. Costs and agents that take long to count are not in all at once."""
        facts, until = self._read(store), monotonic() + _COUNTING_SECONDS
        entries: list[JsonValue] = []
        for key in reversed([*facts]):
            if key not in self._counted and monotonic() < until:
                self._counted[key] = store.cost_and_agents(key[0])
            entries.append(_entry(store, facts[key], self._counted.get(key, {"cost": None, "agents": None})))
            if "ended" in facts[key].shown and facts[key].shown["ended"] is None:
                self._counted.pop(key, None)  # it is running
        return entries

    def same_files(self, store: RunStore, run: int) -> Sequence[int]:
        """Return the numbers of the runs that read a file that this run read, this one included; none if it read no file."""
        facts = {number: facts for (number, _), facts in self._read(store).items()}
        files = facts[run].files if run in facts else frozenset[str]()
        return [number for number, other in facts.items() if other.files & files]

    def _read(self, store: RunStore) -> Mapping[tuple[int, int], RunFacts]:
        keys = store.record_checksums()
        self._facts = {key: self._facts.get(key) or _facts(store, key[0]) for key in keys}
        self._counted = {key: counted for key, counted in self._counted.items() if key in self._facts}
        return self._facts


def _facts(store: RunStore, number: int) -> RunFacts:
    """Return what the record of a run says, which is damaged if it has no start."""
    try:
        record = store.record(number)
    except StoreError:
        return RunFacts({"number": number, "state": "damaged"})
    shown: dict[str, JsonValue] = {
        "number": number,
        "state": Run(store, record).state,
        "why": record.stop_reason,
        "started": record.started_at.isoformat(),
        "ended": record.ended_at.isoformat() if record.ended_at else None,
        "files": [PurePath(file.path.replace("\\", "/")).name for file in record.inputs],
        "samples": record.samples,
        "about": SampleCount(record.samples, record.count_precision).qualifier,
        "judges": judge_models(record),
        "gates": record.options.get("gates") or [],
    }
    scorers: list[Mapping[str, JsonValue]] = [
        {"name": scorer.name, "judged": scorer.judged} for scorer in record.scorers
    ]
    return RunFacts(shown, scorers, frozenset(file.identity for file in record.inputs))


def _entry(store: RunStore, facts: RunFacts, counted: Mapping[str, JsonValue]) -> JsonValue:
    number = int(str(facts.shown["number"]))
    results = store.results(number)
    figures = (
        [result._asdict() for result in results]
        if len(results) == len(facts.scorers)
        else [_UNKNOWN] * len(facts.scorers)
    )
    entry: dict[str, JsonValue] = {**facts.shown, **store.description(number)._asdict(), **counted}
    entry["scorers"] = [{**scorer, **figure} for scorer, figure in zip(facts.scorers, figures, strict=True)]
    if "started" in entry and entry["ended"] is None:
        counts = store.counts(number)
        record = store.record(number)
        done = counts.scores / max(1, len(facts.scorers))
        state = Run(store, record).state
        entry |= {"state": state, "done": done, "failed": counts.failed, "seconds_left": _seconds_left(record, done)}
    return entry


def _seconds_left(record: RunRecord, done: float) -> float | None:
    """Return how long a run will take at its pace so far; ``None`` if that or the number of its samples is unknown."""
    took = (datetime.now(UTC) - record.started_at).total_seconds()
    is_known = done > 0 and record.count_precision != "at least" and record.samples >= done
    return round(took / done * (record.samples - done)) if is_known else None


def judge_models(record: RunRecord) -> list[JsonValue]:
    """Return the models of the judges of a run."""
    return list(dict.fromkeys(_judges([scorer.identity for scorer in record.scorers])))


def _judges(identity: JsonValue) -> Iterator[str]:
    """Yield the models of the judges in the identities of scorers."""
    if isinstance(identity, list):
        if identity and identity[0] == _JUDGE and isinstance(fields := identity[1], dict):
            yield str(fields.get("model"))
        for part in identity:
            yield from _judges(part)
    elif isinstance(identity, dict):
        yield from _judges([*identity.values()])

"""The samples of a run that pass filters, found and counted by SQL, a page at a time."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from judgekit.errors import UNCHARGED
from judgekit.runs.file import RunFile

_LABELS = 200
_SAMPLE_LABELS = 100
_ORDERS = {"low": "value IS NULL, value, number", "high": "value IS NULL, value DESC, number"}
_KINDS = {bool: ("true", "false"), int: ("integer", "real"), float: ("integer", "real"), str: ("text",)}
_COST = """
    SELECT total(paid), count(*) - count(paid) FROM (
        SELECT iif(json_extract(one.value, '$.cached'), 0, coalesce(json_extract(one.value, '$.cost_usd'),
            iif(json_extract(one.value, '$.error') IN (SELECT value FROM json_each(?)), 0, NULL))) AS paid
        FROM (SELECT calls FROM scores WHERE run = ? AND calls IS NOT NULL
            UNION ALL SELECT calls FROM unscored_calls WHERE run = ?) AS given, json_each(given.calls) AS one)
"""
_AGENTS = "SELECT DISTINCT json_extract(usage, '$[9]') FROM samples WHERE run = ? AND usage IS NOT NULL LIMIT ?"
_UNCHARGED = to_json(sorted(error.__name__ for error in UNCHARGED)).decode()


class SampleSearch(RunFile):
    """A file of runs whose samples are found by the filters of an address; see `judgekit.runs.store.RunStore`.

    Filters are named as in the addresses of pages: ``scorer``, ``status``, ``label``, ``value``, ``from``, ``to``, ``domain`` and
    ``sort``. Those of scores hold for a sample if they hold for any scorer, or for the one that is named.
    """

    def sample_page(
        self, run: int, scorers: Sequence[str], filters: Mapping[str, str], start: int = 0, limit: int = -1
    ) -> tuple[Sequence[int], int]:
        """Return the numbers of ``limit`` samples that pass the filters, from ``start`` on, and how many pass them."""
        sql, values = _conditions(run, scorers, filters)
        order, _, scorer = filters.get("sort", "").partition(":")
        by, tables, ordering = ("length(id), id, number" if order == "id" else "number"), "samples", list[object]()
        if order in _ORDERS and scorer in scorers:
            by, ordering = _ORDERS[order], [run, scorers.index(scorer)]
            tables += " LEFT JOIN (SELECT sample, value FROM scores WHERE run = ? AND scorer = ?) ON sample = number"
        select = f"SELECT number FROM {tables} WHERE {sql} ORDER BY {by} LIMIT ? OFFSET ?"  # noqa: S608 - our own names
        if len(values) > 1:  # filters read all scores, so one pass finds and counts
            passing = [number for (number,) in self._select(select, *ordering, *values, -1, 0)]
            return passing[start : None if limit < 0 else start + limit], len(passing)
        numbers = [number for (number,) in self._select(select, *ordering, *values, limit, start)]
        return numbers, next(self._select("SELECT count(*) FROM samples WHERE run = ?", run))[0]

    def filter_choices(self, run: int, scorers: Sequence[str]) -> dict[str, JsonValue]:
        """Return what samples can be filtered by: domains, labels of scores by scorer, and the frequent labels of samples."""
        domains = self._select(
            "SELECT DISTINCT domain FROM samples WHERE run = ? AND domain IS NOT NULL ORDER BY 1", run
        )
        given = self._select(
            "SELECT DISTINCT scorer, label FROM scores WHERE run = ? AND label IS NOT NULL ORDER BY label LIMIT ?",
            *(run, _LABELS * max(1, len(scorers))),
        )
        labels = [(scorers[int(index)], str(label)) for index, label in given if index < len(scorers)]
        verdicts: list[JsonValue] = [*dict.fromkeys(label for _, label in labels)]
        labeled: list[JsonValue] = [*dict.fromkeys(scorer for scorer, _ in labels)]
        frequent = self._select(
            "SELECT key, type, atom FROM samples, json_each(samples.labels) WHERE run = ? AND samples.labels IS NOT NULL"
            " GROUP BY key, type, atom ORDER BY count(*) DESC LIMIT ?",
            *(run, _SAMPLE_LABELS),
        )
        return {
            "domains": [domain for (domain,) in domains][:_LABELS],
            "verdicts": verdicts[:_LABELS],
            "labeled": labeled,
            "known": [[name, bool(atom) if kind in _KINDS[bool] else atom] for name, kind, atom in frequent],
        }

    def cost_and_agents(self, run: int) -> dict[str, JsonValue]:
        """Return what a run paid for judges, ``None`` if a price is unknown, and the agents of its recordings."""
        [(cost, unknown)] = self._select(_COST, _UNCHARGED, run, run)
        agents = sorted(agent for (agent,) in self._select(_AGENTS, run, _LABELS) if agent)
        return {"cost": None if unknown else cost, "agents": list[JsonValue](agents)}

    def numbers_of(self, runs: Sequence[int], sample_id: str) -> Sequence[tuple[int, int]]:
        """Return those of these runs in which one sample has this id, each with the sample's number there."""
        sql = """
            SELECT run, min(number) FROM samples WHERE run IN (SELECT value FROM json_each(?)) AND id = ?
            GROUP BY run HAVING count(*) = 1 ORDER BY run
        """
        return [(run, number) for run, number in self._select(sql, to_json(runs).decode(), sample_id)]


def _conditions(run: int, scorers: Sequence[str], filters: Mapping[str, str]) -> tuple[str, list[object]]:
    """Return the condition that samples have to meet, with its values."""
    sql, values = ["run = ?"], list[object]([run])
    named = filters.get("scorer", "")

    def require(condition: str, *given: object) -> None:
        of_scorer = " AND scorer = ?" if named else ""
        sql.append(f"number IN (SELECT sample FROM scores WHERE run = ? AND {condition}{of_scorer})")  # noqa: S608
        values.extend([run, *given, *([scorers.index(named) if named in scorers else -1] if named else [])])

    if domain := filters.get("domain"):
        sql.append("domain = ?")
        values.append(domain)
    if status := filters.get("status"):
        require(*(("status <> ?", "scored") if status == "not scored" else ("status = ?", status)))
    if test := re.fullmatch(r"\s*(<=|>=|!=|<|>|=|)\s*(\d*\.?\d+)\s*", filters.get("value", "")):
        require(f"round(value, 9) {test[1] or '='} round(?, 9)", float(test[2]))
    low, high = (_number(filters.get(name, "")) for name in ("from", "to"))
    if low is not None or high is not None:
        high = 2.0 if high is None or high >= 1 else high
        require("value >= ? AND value < ?", low or 0.0, high)
    match _label(filters.get("label", "")):
        case [str(label)]:
            require("label = ?", label)
        case [str(name), (bool() | int() | float() | str()) as label]:
            kinds = ("true" if label else "false",) if isinstance(label, bool) else _KINDS[type(label)]
            sql.append(
                "EXISTS (SELECT 1 FROM json_each(samples.labels)"
                " WHERE key = ? AND atom = ? AND type IN (SELECT value FROM json_each(?)))"
            )
            values += [name, label, to_json(kinds).decode()]
        case _:
            pass
    return " AND ".join(sql), values


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


def _label(text: str) -> JsonValue:
    """Return the label of an address: ``[label]`` of a score, or ``[name, label]`` of a sample."""
    given: JsonValue = [text]
    with suppress(ValueError):
        given = from_json(text or "[]")
    return given

"""The rows of a run as a table: the names and the cells of its columns."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from judgekit.runs.rows import LabelValue, Row
from judgekit.score import JudgeCall

Kind: TypeAlias = Literal["text", "status", "boolean", "integer", "number"]
Cell: TypeAlias = LabelValue | None

_MOST_LABELS = 100  # with more label names, one column holds all labels
_GREATEST = 2**63


@dataclass(frozen=True)
class Column:
    """A column: its name, the kind of its cells, and the function that returns a row's cell, or ``None`` if empty."""

    name: str
    kind: Kind
    of: Callable[[Row], Cell]


def columns_of(rows: Iterable[Row]) -> Sequence[Column]:
    """Return the columns of a table of these rows, which are iterated once to collect their labels.

    Each label has a column ``labels.NAME`` of the kind of its values, or of text if their kinds differ. With more than
    100 names, a single column ``labels`` holds all of them as JSON. ``judge_models`` and ``system_fingerprints`` are
    those that the judges' providers reported. ``tokens`` and ``cost_usd`` are those that were paid for, and have no
    value if they are unknown.
    """
    return (*_OF_SAMPLES, *_labels(rows), *_OF_SCORES)


def cells_of(columns: Sequence[Column], rows: Iterable[Row]) -> Sequence[Sequence[Cell]]:
    """Return the cells of each column, without keeping the rows."""
    found: list[list[Cell]] = [[] for _ in columns]
    for row in rows:
        for cells, column in zip(found, columns, strict=True):
            cells.append(column.of(row))
    return found


def table_of(rows: Iterable[Row]) -> Sequence[tuple[Column, Sequence[Cell]]]:
    """Return the columns of a table of these rows, each with its cells."""
    columns = columns_of(rows)
    return list(zip(columns, cells_of(columns, rows), strict=True))


def _labels(rows: Iterable[Row]) -> Sequence[Column]:
    kinds: dict[str, Kind] = {}
    for row in rows:
        for name, value in row.labels.items():
            kinds[name] = _common(kinds.get(name), _kind(value))
        if len(kinds) > _MOST_LABELS:
            return [Column("labels", "text", lambda row: json.dumps(row.labels) if row.labels else None)]
    return [Column(f"labels.{name}", kind, partial(_label, name, kind)) for name, kind in kinds.items()]


def _kind(value: LabelValue) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_GREATEST <= value < _GREATEST else "text"
    return "number" if isinstance(value, float) else "text"


def _common(one: Kind | None, other: Kind) -> Kind:
    if one in (None, other):
        return other
    return "number" if {one, other} == {"integer", "number"} else "text"


def _label(name: str, kind: Kind, row: Row) -> Cell:
    value = row.labels.get(name)
    if kind == "number" and value is not None:
        return float(value)
    return json.dumps(value) if kind == "text" and not isinstance(value, str | None) else value


def _reported(row: Row, name: Callable[[JudgeCall], str | None]) -> str | None:
    names = (name(call) for call in row.score.calls if call.error is None)
    return "; ".join(dict.fromkeys(filter(None, names))) or None


_OF_SAMPLES: Sequence[Column] = (
    Column("index", "integer", lambda row: row.index),
    Column("sample_id", "text", lambda row: row.sample_id),
    Column("trace_id", "text", lambda row: row.trace_id),
    Column("group", "text", lambda row: row.group),
    Column("domain", "text", lambda row: row.domain),
)
_OF_SCORES: Sequence[Column] = (
    Column("scorer", "text", lambda row: row.scorer),
    Column("status", "status", lambda row: row.score.status),
    Column("value", "number", lambda row: row.score.value),
    Column("label", "text", lambda row: row.score.label),
    Column("confidence", "number", lambda row: row.score.confidence),
    Column("reason", "text", lambda row: row.score.reason),
    Column("error", "text", lambda row: row.score.error),
    Column("warnings", "text", lambda row: "; ".join(row.score.warnings) or None),
    Column("judge_models", "text", lambda row: _reported(row, lambda call: call.model)),
    Column("system_fingerprints", "text", lambda row: _reported(row, lambda call: call.system_fingerprint)),
    Column("requests", "integer", lambda row: sum(call.is_request for call in row.score.calls)),
    Column("cached", "integer", lambda row: sum(call.cached for call in row.score.calls)),
    Column("tokens", "integer", lambda row: row.score.tokens_paid),
    Column("cost_usd", "number", lambda row: row.score.usd_paid),
)

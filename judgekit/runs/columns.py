"""The rows of a run as a table: the names and the cells of its columns."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from judgekit.runs.rows import LabelValue, Row
from judgekit.score import JudgeCall

ColumnKind: TypeAlias = Literal["text", "status", "boolean", "integer", "number"]
CellValue: TypeAlias = LabelValue | None

_MOST_LABELS = 100  # with more label names, one column holds all labels
_GREATEST = 2**63


@dataclass(frozen=True)
class RowColumn:
    """A column: its name, the kind of its cells, and the function that returns a row's cell, or ``None`` if empty."""

    name: str
    kind: ColumnKind
    get_cell: Callable[[Row], CellValue]


def row_columns(rows: Iterable[Row]) -> Sequence[RowColumn]:
    """Return the columns of a table of these rows, which are iterated once to collect their labels.

    Each label has a column ``labels.NAME`` of the kind of its values, or of text if their kinds differ. With more than
    100 names, a single column ``labels`` holds all of them as JSON. ``judge_models`` and ``system_fingerprints`` are
    those that the judges' providers reported. ``tokens`` and ``cost_usd`` are those that were paid for, and have no
    value if they are unknown. A score has its share of a request with several questions.
    """
    return (*_OF_SAMPLES, *_labels(rows), *_OF_SCORES)


def column_cells(columns: Sequence[RowColumn], rows: Iterable[Row]) -> Sequence[Sequence[CellValue]]:
    """Return the cells of each column, without keeping the rows."""
    columns_cells: list[list[CellValue]] = [[] for _ in columns]
    for row in rows:
        for cells, column in zip(columns_cells, columns, strict=True):
            cells.append(column.get_cell(row))
    return columns_cells


def columns_with_cells(rows: Iterable[Row]) -> Sequence[tuple[RowColumn, Sequence[CellValue]]]:
    """Return the columns of a table of these rows, each with its cells."""
    columns = row_columns(rows)
    return list(zip(columns, column_cells(columns, rows), strict=True))


def _labels(rows: Iterable[Row]) -> Sequence[RowColumn]:
    kinds: dict[str, ColumnKind] = {}
    for row in rows:
        for name, value in row.labels.items():
            kinds[name] = _common(kinds.get(name), _kind(value))
        if len(kinds) > _MOST_LABELS:
            return [RowColumn("labels", "text", lambda row: json.dumps(row.labels) if row.labels else None)]
    return [RowColumn(f"labels.{name}", kind, partial(_label, name, kind)) for name, kind in kinds.items()]


def _kind(value: LabelValue) -> ColumnKind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_GREATEST <= value < _GREATEST else "text"
    return "number" if isinstance(value, float) else "text"


def _common(first: ColumnKind | None, second: ColumnKind) -> ColumnKind:
    if first in (None, second):
        return second
    return "number" if {first, second} == {"integer", "number"} else "text"


def _label(name: str, kind: ColumnKind, row: Row) -> CellValue:
    value = row.labels.get(name)
    if kind == "number" and value is not None:
        return float(value)
    return json.dumps(value) if kind == "text" and not isinstance(value, str | None) else value


def _reported(row: Row, name: Callable[[JudgeCall], str | None]) -> str | None:
    names = (name(call) for call in row.score.calls if call.error is None)
    return "; ".join(dict.fromkeys(filter(None, names))) or None


_OF_SAMPLES: Sequence[RowColumn] = (
    RowColumn("index", "integer", lambda row: row.index),
    RowColumn("sample_id", "text", lambda row: row.sample_id),
    RowColumn("trace_id", "text", lambda row: row.trace_id),
    RowColumn("group", "text", lambda row: row.group),
    RowColumn("domain", "text", lambda row: row.domain),
)
_OF_SCORES: Sequence[RowColumn] = (
    RowColumn("scorer", "text", lambda row: row.scorer),
    RowColumn("status", "status", lambda row: row.score.status),
    RowColumn("value", "number", lambda row: row.score.value),
    RowColumn("label", "text", lambda row: row.score.label),
    RowColumn("confidence", "number", lambda row: row.score.confidence),
    RowColumn("reason", "text", lambda row: row.score.reason),
    RowColumn("error", "text", lambda row: row.score.error),
    RowColumn("warnings", "text", lambda row: "; ".join(row.score.warnings) or None),
    RowColumn("judge_models", "text", lambda row: _reported(row, lambda call: call.model)),
    RowColumn("system_fingerprints", "text", lambda row: _reported(row, lambda call: call.system_fingerprint)),
    RowColumn("requests", "number", lambda row: sum(call.requests for call in row.score.calls)),
    RowColumn("cached", "number", lambda row: sum(call.count for call in row.score.calls if call.cached)),
    RowColumn("tokens", "integer", lambda row: row.score.tokens_paid),
    RowColumn("cost_usd", "number", lambda row: row.score.usd_paid),
)

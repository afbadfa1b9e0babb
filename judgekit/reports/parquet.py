"""The rows of a run as Parquet."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import islice
from typing import IO, Any

from judgekit.distribution import install_command
from judgekit.errors import ConfigError
from judgekit.runs.columns import ColumnKind, column_cells, row_columns
from judgekit.runs.rows import Row

_AT_ONCE = 10_000  # rows in a row group
_TYPES: Mapping[ColumnKind, str] = {
    "text": "string",
    "status": "string",
    "boolean": "bool",
    "integer": "int64",
    "number": "double",
}


def write_parquet(rows: Iterable[Row], file: IO[bytes]) -> None:
    """Write a line for each row, some thousands at a time."""
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(f"writing Parquet needs pyarrow: {install_command('parquet')}") from error
    columns = row_columns(rows)
    names = [column.name for column in columns]
    schema = arrow.schema([(column.name, _TYPES[column.kind]) for column in columns])
    rest = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while any(cells := column_cells(columns, islice(rest, _AT_ONCE))):
            writer.write_batch(arrow.RecordBatch.from_pydict(dict(zip(names, cells, strict=True)), schema))

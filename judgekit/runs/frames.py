"""The rows of a run as pandas and polars data frames."""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from judgekit.distribution import install_command
from judgekit.errors import ConfigError
from judgekit.runs.columns import columns_with_cells
from judgekit.runs.rows import Row
from judgekit.score import STATUSES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(rows: Iterable[Row]) -> "pd.DataFrame":
    """Return a pandas data frame of rows. Missing values are ``NaN`` in number columns and ``NA`` elsewhere.

    Raises:
        ConfigError: pandas is not installed.
    """
    try:
        pandas: Any = import_module("pandas")  # its types take any of its arrays for unknown
    except ImportError as error:
        raise ConfigError(f"pandas is not installed: {install_command('pandas')}") from error
    types = {
        "text": "string",
        "status": pandas.CategoricalDtype(STATUSES),
        "boolean": "boolean",
        "integer": "Int64",
        "number": "float64",
    }
    cells_by_name = {
        column.name: pandas.Series(cells, None, types[column.kind]) for column, cells in columns_with_cells(rows)
    }
    frame: pd.DataFrame = pandas.DataFrame(cells_by_name)
    return frame


def to_polars(rows: Iterable[Row]) -> "pl.DataFrame":
    """Return a polars data frame of rows. Missing values are null.

    Raises:
        ConfigError: polars is not installed.
    """
    try:
        import polars as pl  # noqa: PLC0415 - heavy, and an extra
    except ImportError as error:
        raise ConfigError(f"polars is not installed: {install_command('polars')}") from error
    types = {
        "text": pl.String(),
        "status": pl.Enum(STATUSES),
        "boolean": pl.Boolean(),
        "integer": pl.Int64(),
        "number": pl.Float64(),
    }
    return pl.DataFrame(
        [pl.Series(column.name, cells, dtype=types[column.kind]) for column, cells in columns_with_cells(rows)]
    )

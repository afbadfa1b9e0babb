"""The rows of a run as a pandas data frame."""

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

"""CSV that is safe to open in spreadsheets."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from judgekit.reports.xml_escape import replace_controls
from judgekit.runs.columns import CellValue, row_columns
from judgekit.runs.rows import Row

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Return the names of the columns and a line for each row as CSV; see `csv_table`."""
    columns = row_columns(rows)
    cells = ([column.get_cell(row) for column in columns] for row in rows)
    return csv_table(chain([[column.name for column in columns]], cells))


def csv_table(rows: Iterable[Sequence[CellValue]]) -> Iterator[str]:
    """Yield a line of CSV for each row of cells; text is quoted (RFC 4180).

    Text that a spreadsheet would run as a formula gets a leading apostrophe: text that begins with one of ``= + - @``,
    their full-width twins, a tab or a line break, and is not a number. Source: OWASP, CSV Injection,
    https://owasp.org/www-community/attacks/CSV_Injection. Control characters are replaced.
    """
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        writer.writerow(map(_safe, row))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _safe(cell: CellValue) -> str | int | float:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    text = replace_controls(cell)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text

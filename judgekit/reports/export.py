"""Rows as files that other tools read."""

from typing import TextIO

from judgekit.runs.results import Row


class RowWriter:
    """Writes rows as JSONL in the order of the samples, each as soon as those before it are there.

    Args:
        file: Where to.
        scorers: Rows a sample has.
    """

    def __init__(self, file: TextIO, scorers: int) -> None:
        self._file = file
        self._scorers = scorers
        self._next = 0
        self._waiting: dict[int, list[Row]] = {}

    def add(self, row: Row) -> None:
        """Takes a row; rows of one sample come in the order of the scorers."""
        self._waiting.setdefault(row.index, []).append(row)
        while len(self._waiting.get(self._next, ())) == self._scorers:
            self._write(self._waiting.pop(self._next))
            self._next += 1

    def flush(self) -> None:
        """Writes what still waits for a sample that did not come."""
        for index in sorted(self._waiting):
            self._write(self._waiting.pop(index))

    def _write(self, rows: list[Row]) -> None:
        for row in rows:
            self._file.write(row.model_dump_json() + "\n")
        self._file.flush()

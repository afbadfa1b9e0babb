"""The arguments of many calls of one tool as a table, in which a whole column of pairs is scored at once."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from judgekit.traces.equality import canonical_json

if TYPE_CHECKING:
    from judgekit.scorers.tool_calls.assignment import Weights

_NEITHER = 0
"""The code of an argument that a call does not have."""


def hashable_argument(name: str, value: JsonValue) -> Hashable:
    """Return what is equal for arguments if and only if they have the same name and are the same JSON."""
    return (name, canonical_json(value), True) if isinstance(value, (dict, list, bool)) else (name, value)


class ArgumentTable:
    """Equal values of an argument have the same code.

    Args:
        rows: The arguments of each call of one side; ``None`` if they could not be read.
        columns: Those of the other side.
    """

    def __init__(
        self, rows: Sequence[Mapping[str, JsonValue] | None], columns: Sequence[Mapping[str, JsonValue] | None]
    ) -> None:
        import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

        self._names = list(dict.fromkeys(name for args in (*rows, *columns) for name in args or ()))
        self._codes: dict[Hashable, int] = {}
        width = len(self._names)
        count = np.int8 if width < 127 else np.int32
        coded_rows = [self._coded(args or {}) for args in rows]
        self._rows = np.array(coded_rows, dtype=np.int32).reshape(len(rows), width).T
        self._columns = [self._coded(args or {}) for args in columns]
        self._are_readable = [args is not None for args in columns]
        # A call that could not be read counts as one argument, so that its scores are 0.
        self._row_sizes = np.array([1 if args is None else len(args) for args in rows], dtype=count)
        self._absent = [(codes == _NEITHER).astype(count) if not codes.all() else None for codes in self._rows]

    def _coded(self, args: Mapping[str, JsonValue]) -> Sequence[int]:
        codes = self._codes
        return [
            codes.setdefault(hashable_argument(name, args[name]), len(codes) + 1) if name in args else _NEITHER
            for name in self._names
        ]

    def scores(self, column: int) -> "Weights":
        """Return the score of a column with each row: the share of equal arguments."""
        import numpy as np  # noqa: PLC0415 - as above

        equal, either = np.zeros_like(self._row_sizes), self._row_sizes
        codes = self._columns[column]
        if not any(codes):
            return np.where(either, 0.0, float(self._are_readable[column]))
        for row_codes, absent, code in zip(self._rows, self._absent, codes, strict=True):
            if code != _NEITHER:
                equal += (row_codes == code).view(np.int8)
                either = either if absent is None else either + absent
        shares: Weights = equal / either
        return shares

    def all_scores(self) -> "Weights":
        """Return the scores of all pairs."""
        import numpy as np  # noqa: PLC0415 - as above

        each = [self.scores(column) for column in range(len(self._columns))]
        return np.array(each).reshape(len(each), len(self._row_sizes)).T

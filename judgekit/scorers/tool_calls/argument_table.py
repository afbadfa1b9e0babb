"""The arguments of many calls of one tool as a table, in which a whole column of pairs is scored at once."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from judgekit.traces.equality import canonical_json

if TYPE_CHECKING:
    from judgekit.scorers.tool_calls.assignment import Weights

_NEITHER = 0
"""The code of an argument that a call does not have."""


class ArgumentTable:
    """Equal values of an argument have the same code. Expected calls are rows, actual calls are columns.

    Args:
        expected: The arguments of each expected call.
        actual: The arguments of each actual call; ``None`` if they could not be read.
    """

    def __init__(
        self, expected: Sequence[Mapping[str, JsonValue]], actual: Sequence[Mapping[str, JsonValue] | None]
    ) -> None:
        import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

        readable = [args or {} for args in actual]
        self._names = list(dict.fromkeys(name for args in (*expected, *readable) for name in args))
        self._codes: dict[tuple[str, str], int] = {}
        width = len(self._names)
        self._rows = np.array([self._coded(args) for args in expected], dtype=np.int32).reshape(len(expected), width).T
        self._columns = np.array([self._coded(args) for args in readable], dtype=np.int32).reshape(len(actual), width)
        self._row_sizes = np.array([len(args) for args in expected])
        self._are_readable = [args is not None for args in actual]

    def _coded(self, args: Mapping[str, JsonValue]) -> Sequence[int]:
        codes = self._codes
        return [
            codes.setdefault((name, canonical_json(args[name])), len(codes) + 1) if name in args else _NEITHER
            for name in self._names
        ]

    def scores(self, column: int) -> "Weights":
        """Return the score of an actual call with each expected one: the share of equal arguments."""
        import numpy as np  # noqa: PLC0415 - as above

        codes = self._columns[column]
        if not self._are_readable[column]:
            return np.zeros(len(self._row_sizes))
        (present,) = codes.nonzero()
        rows = self._rows[present]
        equal = (rows == codes[present, None]).sum(axis=0)
        either = self._row_sizes + len(present) - (rows != _NEITHER).sum(axis=0)
        return np.where(either, equal / np.maximum(either, 1), 1.0)

    def all_scores(self) -> "Weights":
        """Return the scores of all pairs."""
        import numpy as np  # noqa: PLC0415 - as above

        return np.stack([self.scores(column) for column in range(len(self._columns))], axis=1)

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
        self._codes: dict[Hashable, int] = {}
        width = len(self._names)
        count = np.int8 if width < 128 else np.int32
        self._rows = np.array([self._coded(args) for args in expected], dtype=np.int32).reshape(len(expected), width).T
        self._columns = [self._coded(args) for args in readable]
        self._row_sizes = np.array([len(args) for args in expected], dtype=count)
        self._absent = [(codes == _NEITHER).astype(count) if not codes.all() else None for codes in self._rows]
        self._are_readable = [args is not None for args in actual]

    def _coded(self, args: Mapping[str, JsonValue]) -> Sequence[int]:
        codes = self._codes
        return [
            codes.setdefault(hashable_argument(name, args[name]), len(codes) + 1) if name in args else _NEITHER
            for name in self._names
        ]

    def scores(self, column: int) -> "Weights":
        """Return the score of an actual call with each expected one: the share of equal arguments."""
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

        return np.stack([self.scores(column) for column in range(len(self._columns))], axis=1)

"""Pairing of actual tool calls with expected ones."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise, product
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from judgekit.scorers.tool_calls.assignment import ColumnWeights, best_in_order, best_in_place, best_of_few, best_pairs
from judgekit.scorers.tool_calls.calls import Calls
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.equality import canonical_json

if TYPE_CHECKING:
    from judgekit.scorers.tool_calls.argument_table import ArgumentTable
    from judgekit.scorers.tool_calls.assignment import Indices, Weights

_FEW_PAIRS = 500
"""The number of pairs of expected and actual calls that are compared within 5 ms."""
_SOME_PAIRS = 12_000
"""The number of pairs up to which typed JSON is compared in the thread of the event loop."""


class CallPair(NamedTuple):
    """The positions of an expected call and the call made for it, and the credit for the pair, in [0, 1]."""

    expected: int
    actual: int
    credit: float


@dataclass
class Match:
    """The best pairing of expected and actual calls. It raises a ``ValueError`` as `compare_arguments` does.

    Attributes:
        rules: The rules for matching.
        calls: The calls, identified by their positions from 0.
        pairs: The pairs with the greatest total credit among those that the order allows; each has some credit.
        tp: The total credit of all pairs.
        fp: The number of calls made beyond TP, if extra calls are forbidden.
        fn: The number of calls expected beyond TP, if missing calls are forbidden.
        precision: TP / (TP + FP); ``None`` for 0 / 0.
        recall: TP / (TP + FN); ``None`` for 0 / 0.
        value: The value according to ``rules.credit``, in [0, 1].
    """

    rules: ToolMatch
    calls: Calls
    pairs: Sequence[CallPair] = field(init=False)
    tp: float = field(init=False)
    fp: float = field(init=False)
    fn: float = field(init=False)
    precision: float | None = field(init=False)
    recall: float | None = field(init=False)
    value: float = field(init=False)

    def __post_init__(self) -> None:
        rules, calls = self.rules, self.calls
        self.credit = calls.score if rules.args_credit == "fraction" else calls.agree
        self.pairs = self._best()
        tp = self.tp = fsum([pair[2] for pair in self.pairs])
        self.fp = len(calls.actual) - tp if rules.extra == "forbid" else 0.0
        self.fn = len(calls.expected) - tp if rules.missing == "forbid" else 0.0
        self.precision = tp / (tp + self.fp) if tp + self.fp else None
        self.recall = tp / (tp + self.fn) if tp + self.fn else None
        either = 2 * tp + self.fp + self.fn
        f1 = 2 * tp / either if either else None
        ratios = {"precision": self.precision, "recall": self.recall, "f1": f1}
        ratio = None if calls.are_equal else ratios.get(rules.credit)
        self.value = float(not self.fp + self.fn) if ratio is None else ratio

    def _best(self) -> Sequence[CallPair]:
        if self.calls.are_equal:
            return [CallPair(index, index, 1.0) for index in range(len(self.calls.actual))]
        credit = self.credit
        is_graded = self.rules.args_credit == "fraction"
        pairs: list[CallPair] = []
        everything = [(range(len(self.calls.expected)), range(len(self.calls.actual)))]
        for expected, actual in self._turns() if self.rules.within == "turn" else everything:
            if self.rules.order == "any":
                best: Iterable[tuple[int, int]] = self.unordered_pairs(expected, actual, is_graded=is_graded)
            else:
                best = self._ordered_pairs(expected, actual)
            pairs += [CallPair(row, column, earned) for row, column in best if (earned := credit(row, column))]
        return sorted(pairs)

    def _turns(self) -> Iterable[tuple[Sequence[int], Sequence[int]]]:
        """Return the positions of the expected and the actual calls of each turn."""
        return (
            (
                [index for index, call in enumerate(self.calls.expected) if call.turn == turn],
                [index for index, call in enumerate(self.calls.actual) if call.turn == turn],
            )
            for turn in dict.fromkeys(call.turn for call in self.calls.actual)
        )

    def unordered_pairs(
        self, expected: Iterable[int], actual: Iterable[int], *, is_graded: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield as many pairs of calls of the same tool as possible, in any order, with the greatest total value.

        Args:
            expected: The positions of expected calls.
            actual: The positions of actual calls.
            is_graded: Whether arguments that do not fully agree have their score, instead of no value.
        """
        for rows, columns in self.calls.by_tool(expected, actual):
            if len(rows) == len(columns) == 1:
                yield rows[0], columns[0]
                continue
            equal: dict[int, int] = {}
            are_plain = all(self.calls.is_plain[row] for row in rows)
            if are_plain:
                # The scores of plain arguments form a metric, so some best assignment pairs all equal ones.
                waiting = defaultdict[str | None, deque[int]](deque)
                for column in columns:
                    waiting[self.calls.key(column)].append(column)
                keys = {row: canonical_json(self.calls.expected[row].args) for row in rows}
                equal = {row: waiting[key].popleft() for row, key in keys.items() if waiting[key]}
            rest, others = [row for row in rows if row not in equal], sorted({*columns}.difference(equal.values()))
            yield from equal.items()
            if are_plain and not is_graded:  # no other pair has a value
                yield from zip(rest, others, strict=False)
            else:
                yield from self._best_pairs(rest, others, is_graded=is_graded)

    def _best_pairs(self, rows: Sequence[int], columns: Sequence[int], *, is_graded: bool) -> Iterable[tuple[int, int]]:
        table = self.calls.table(rows, columns)
        credit = self.calls.score if is_graded else self.calls.agree
        weights = [[credit(row, column) for column in columns] for row in rows] if table is None else table.all_scores()
        if not any(map(any, weights)):
            return zip(rows, columns, strict=False)
        return ((rows[row], columns[column]) for row, column in best_pairs(weights))

    def _ordered_pairs(self, expected: Sequence[int], actual: Sequence[int]) -> Iterable[tuple[int, int]]:
        how = self.rules
        # If no call may be left over, in place and in order are the same, and the latter shows the extra calls better.
        none_left = how.credit == "all_or_nothing" and how.extra == how.missing == "forbid"
        is_in_place = how.order == "sequence" and not none_left
        if is_in_place and how.parallel == "ordered" and self.calls.blocks is None:
            tools, called = self.calls.names
            return [pair for pair in zip(expected, actual, strict=False) if tools[pair[0]] == called[pair[1]]]
        ends = [0, *accumulate(len([*block]) for _, block in groupby(actual, self.block))]
        blocks = [*pairwise(ends)]
        if not is_in_place and len(blocks) == len(actual) and len(expected) * len(actual) <= _SOME_PAIRS:
            row_of, column_of = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
            weights = [[0.0] * len(actual) for _ in expected]
            for wanted, received in self.calls.by_tool(expected, actual):
                for row, column in product(wanted, received):
                    weights[row_of[row]][column_of[column]] = self._weight(row, column)
            return ((expected[row], actual[column]) for row, column in best_of_few(weights))
        columns = self._column_weights(expected, actual)
        pair = best_in_place if is_in_place else best_in_order
        best = pair(columns, len(expected), blocks)
        return ((expected[row], actual[column]) for row, column in best)

    def _column_weights(self, expected: Sequence[int], actual: Sequence[int]) -> ColumnWeights:
        """Return a function that computes the weights of an actual call with the expected ones, by their positions."""
        import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

        row_of = {index: at for at, index in enumerate(expected)}
        tools: dict[int, tuple[Indices, Sequence[int], ArgumentTable | None, int]] = {}
        for wanted, received in self.calls.by_tool(expected, actual):
            rows, table = np.array([row_of[index] for index in wanted]), self.calls.table(wanted, received)
            tools |= {index: (rows, wanted, table, at) for at, index in enumerate(received)}

        def weights(column: int) -> "tuple[Indices, Weights]":
            if (call := actual[column]) not in tools:
                return np.zeros(0, np.intp), np.zeros(0)
            rows, wanted, table, at = tools[call]
            earned = np.array([self._weight(row, call) for row in wanted]) if table is None else table.scores(at)
            earned = earned if self.rules.args_credit == "fraction" else np.floor(earned)
            kept = earned.nonzero()[0]
            return rows[kept], earned[kept]

        return weights

    def _weight(self, expected: int, actual: int) -> float:
        score = self.calls.score(expected, actual)
        return score if self.rules.args_credit == "fraction" else float(score == 1)

    def block(self, actual: int) -> int:
        """Return the number of a call's block; calls in one block have no order among themselves."""
        if self.calls.blocks is not None:
            return self.calls.blocks[actual]
        number = self.calls.actual[actual].message
        return number if self.rules.parallel == "unordered" and isinstance(number, int) else actual


def is_large(calls: Calls) -> bool:
    """Return whether pairing may take more than 5 ms: there are many pairs, or functions compare arguments."""
    if calls.rules.calls_functions:
        return True
    pairs = len(calls.expected) * len(calls.actual)
    if pairs <= _FEW_PAIRS or calls.are_equal:
        return False
    return pairs > _SOME_PAIRS or not all(calls.is_plain)

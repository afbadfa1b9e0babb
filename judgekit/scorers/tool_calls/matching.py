"""Pairing of actual tool calls with expected ones."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from judgekit.scorers.tool_calls.argument_table import ArgumentTable
from judgekit.scorers.tool_calls.assignment import (
    Blocks,
    best_in_long_order,
    best_in_order,
    best_in_place,
    best_pairs,
    blocks_in_order,
    longest_in_order,
)
from judgekit.scorers.tool_calls.calls import Calls
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.equality import canonical_json

if TYPE_CHECKING:
    from judgekit.scorers.tool_calls.assignment import Indices, Weights

_FEW_PAIRS = 500
"""The number of pairs of expected and actual calls that are compared within 5 ms."""
_SOME_PAIRS = 12_000
"""The number of pairs up to which typed JSON is compared in the thread of the event loop."""
_MANY_PAIRS = 4_000
"""The number of pairs from which arguments are compared as a table."""


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
        table = self.calls.table(rows, columns) if len(rows) * len(columns) > _MANY_PAIRS else None
        weights: Sequence[Sequence[float]] | Weights
        if table is not None:
            weights = table.all_scores()
            has_weight = bool(weights.any())
        else:
            weights = self._weights(rows, columns, is_graded=is_graded)
            has_weight = any(map(any, weights))
        if not has_weight:
            return zip(rows, columns, strict=False)
        return ((rows[row], columns[column]) for row, column in best_pairs(weights))

    def _weights(self, rows: Sequence[int], columns: Sequence[int], *, is_graded: bool) -> list[list[float]]:
        if is_graded:
            return self.calls.scores(rows, columns)
        return [[self.calls.agree(row, column) for column in columns] for row in rows]

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
        if not is_in_place and len(blocks) > 1:
            in_order = self._pairs_in_order(expected, actual, blocks)
            if in_order is not None:
                return ((expected[row], actual[column]) for row, column in in_order)
        is_graded = how.args_credit == "fraction"
        weights = [[0.0] * len(actual) for _ in expected]
        row_of, column_of = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        for wanted, received in self.calls.by_tool(expected, actual):
            for row, scores in zip(wanted, self._weights(wanted, received, is_graded=is_graded), strict=True):
                for column, score in zip(received, scores, strict=True):
                    weights[row_of[row]][column_of[column]] = score
        best = best_in_place(weights, blocks) if is_in_place else best_in_order(weights, blocks)
        return ((expected[row], actual[column]) for row, column in best)

    def _pairs_in_order(
        self, expected: Sequence[int], actual: Sequence[int], blocks: Blocks
    ) -> Iterable[tuple[int, int]] | None:
        """Return the best pairs that do not cross, if there is a fast way; else ``None``."""
        row_of, column_of = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        if self.rules.args_credit == "all":
            equal_rows = [0] * len(actual)
            for wanted, received in self.calls.by_tool(expected, actual):
                for index, rows in zip(received, self._equal_rows(wanted, received, row_of), strict=True):
                    equal_rows[column_of[index]] = rows
            if len(blocks) < len(actual):
                return blocks_in_order(equal_rows, blocks, len(expected))
            return longest_in_order(equal_rows, len(expected))
        if len(blocks) < len(actual) or len(expected) * len(actual) < _MANY_PAIRS:
            return None
        import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

        tables: dict[int, tuple[ArgumentTable, int, Indices]] = {}
        for wanted, received in self.calls.by_tool(expected, actual):
            table = self.calls.table(wanted, received)
            if table is None:
                return None
            tool_rows = np.array([row_of[index] for index in wanted])
            tables.update({column_of[index]: (table, at, tool_rows) for at, index in enumerate(received)})

        def weights(column: int) -> "tuple[Indices, Weights] | None":
            if column not in tables:
                return None
            table, at, rows = tables[column]
            return rows, table.scores(at)

        return best_in_long_order(weights, len(expected), len(actual))

    def _equal_rows(self, expected: Sequence[int], actual: Sequence[int], row_of: Mapping[int, int]) -> Iterator[int]:
        """Yield, for each actual call of one tool, the expected calls that agree with it, as the bits of a number."""
        plain_rows = defaultdict[str | None, int](int)
        others: list[int] = []
        for index in expected:
            if self.calls.is_plain[index]:
                plain_rows[canonical_json(self.calls.expected[index].args)] |= 1 << row_of[index]
            else:
                others.append(index)
        for column in actual:
            agreeing = sum(1 << row_of[index] for index in others if self.calls.agree(index, column))
            yield plain_rows.get(self.calls.key(column), 0) | agreeing

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

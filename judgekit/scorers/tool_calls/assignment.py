"""One-to-one assignments with the greatest total weight: rows are expected calls, columns are actual calls.

Weights are in [0, 1]. If several assignments have the same weight, the choice depends only on the weights.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Weights: TypeAlias = NDArray[float64]
    Indices: TypeAlias = NDArray[intp]

IndexPair: TypeAlias = tuple[int, int]
Blocks: TypeAlias = Sequence[tuple[int, int]]
"""Runs of columns without an order among themselves: the first column of each, and the one after its last."""
ColumnWeights: TypeAlias = "Callable[[int], tuple[Indices, Weights]]"
"""A function that returns the rows that have a weight with a column, in order, and these weights."""

_ROUNDING = 1e-9
"""The maximum difference of totals that only differ in the order of their terms."""


def best_pairs(weights: "Sequence[Sequence[float]] | Weights") -> list[IndexPair]:
    """Return the maximum number of pairs, in any order, with the greatest total weight (linear sum assignment).

    Source: Crouse 2016, "On implementing 2D rectangular assignment algorithms", as implemented in SciPy.
    """
    if len(weights) == 0 or len(weights[0]) == 0:
        return []
    if len(weights) == 1:
        row = list(weights[0])
        return [(0, row.index(max(row)))]
    if len(weights[0]) == 1:
        column = [row[0] for row in weights]
        return [(column.index(max(column)), 0)]
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import, and rarely needed

    rows, columns = linear_sum_assignment(weights, maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def bottleneck_pairs(weights: Sequence[Sequence[float]]) -> list[IndexPair]:
    """Return the maximum number of pairs, in any order, whose lowest weight is greatest (bottleneck assignment)."""
    pairs = best_pairs(weights)
    while pairs:
        lowest = min(weights[row][column] for row, column in pairs)
        barred = -float(len(pairs))
        others = best_pairs([[weight if weight > lowest else barred for weight in row] for row in weights])
        if min(weights[row][column] for row, column in others) <= lowest:
            break
        pairs = others
    return pairs


def best_in_place(columns: ColumnWeights, row_count: int, blocks: Blocks) -> list[IndexPair]:
    """Return the best pairs with a weight in which each row has a column from the block at its own position."""
    pairs: list[IndexPair] = []
    for first, end in blocks:
        pairs += _pairs_with_weight(*_block(columns, first, end, range(first, min(end, row_count))), first)
    return pairs


def best_in_order(columns: ColumnWeights, row_count: int, blocks: Blocks) -> list[IndexPair]:
    """Return the best non-crossing pairs with a weight: no row has an earlier block than a preceding row.

    The rows are split into runs, one for each block, by dynamic programming. The best total of the first ``end`` rows
    with some blocks is the maximum, over ``start``, of the best total of the first ``start`` rows with the blocks
    before the last, plus that of rows ``start`` to ``end`` with the last. Of the totals with each block, two bits a row
    are kept: whether the block raises it, and whether the row does.
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    if len(blocks) == 1:
        return _pairs_with_weight(*_block(columns, *blocks[0], range(row_count)), 0)
    is_single = blocks[-1][1] == len(blocks) if blocks else True
    least = 0.0 if is_single else _ROUNDING
    totals: Weights = np.zeros(row_count + 1)
    steps: list[tuple[bytes, bytes, Weights]] = []
    for first, end in blocks:
        rows, block = _block(columns, first, end)
        before: Weights = totals[rows]
        following = totals.copy()
        best = before + block[:, 0] if is_single else _best_runs(before, block)
        following[rows + 1] = np.maximum(totals[rows + 1], best)
        np.maximum.accumulate(following, out=following)
        bits = np.packbits(following - totals > least), np.packbits(following[1:] - following[:-1] > least)
        steps.append((bits[0].tobytes(), bits[1].tobytes(), before[:0] if is_single else before))
        totals = following
    pairs: list[IndexPair] = []
    last = row_count
    for (first, end), (raised, grows, of_rows) in zip(reversed(blocks), reversed(steps), strict=True):
        if not raised[last >> 3] & (128 >> (last & 7)):
            continue
        last = int(np.unpackbits(np.frombuffer(grows, dtype=np.uint8), count=last).nonzero()[0][-1])
        if is_single:
            pairs.append((last, first))
            continue
        # The rows from the last that raises the total back to the first from which a run reaches it.
        rows, block = _block(columns, first, end)
        rows = rows[rows <= last]
        start = _first_start(of_rows[: len(rows)], block[: len(rows)])
        pairs += _pairs_with_weight(rows[start:], block[start : len(rows)], first)
        last = int(rows[start])
    return sorted(pairs)


def best_of_few(weights: Sequence[Sequence[float]]) -> list[IndexPair]:
    """Return the pairs of `best_in_order` where each column is a block of its own, without numpy."""
    totals = [[0.0] * (len(weights) + 1)]
    for column in zip(*weights, strict=True):
        before = totals[-1]
        after = before.copy()
        for row, weight in enumerate(column, 1):
            if weight and (total := before[row - 1] + weight) > after[row]:
                end = bisect_left(after, total, row)
                after[row:end] = [total] * (end - row)
        totals.append(after)
    pairs: list[IndexPair] = []
    last = len(weights)
    for number in range(len(totals) - 1, 0, -1):
        if (total := totals[number][last]) > totals[number - 1][last]:
            last = bisect_left(totals[number], total) - 1  # the fewest rows with this total, without the pair's
            pairs.append((last, number - 1))
    return pairs[::-1]


def _block(
    columns: ColumnWeights, first: int, end: int, among: Sequence[int] | None = None
) -> "tuple[Indices, Weights]":
    """Return rows, and their weights with some columns; by default those that have a weight with any of these."""
    import numpy as np  # noqa: PLC0415 - as above

    each = [columns(column) for column in range(first, end)]
    if len(each) == 1 and among is None:
        return each[0][0], each[0][1][:, np.newaxis]
    rows: Indices = np.unique(np.concatenate([rows for rows, _ in each])) if among is None else np.array(among, np.intp)
    block = np.zeros((len(rows), len(each)))
    for column, (of_column, weights) in enumerate(each):
        inside = slice(None) if among is None else np.isin(of_column, rows)
        block[np.searchsorted(rows, of_column[inside]), column] = weights[inside]
    return rows, block


def _pairs_with_weight(rows: "Indices", block: "Weights", first: int) -> list[IndexPair]:
    """Return the best pairs of a block, whose first column has the number ``first``."""
    return [(int(rows[row]), first + column) for row, column in best_pairs(block) if block[row, column]]


def _best_runs(before: "Weights", block: "Weights") -> "Weights":
    """Return, for each row, the best total of a run that ends with it, and of the rows before.

    The weight of a run is submodular in its rows, so the best start never decreases as the end grows, so divide and
    conquer works (Aggarwal et al. 1987, on Monge arrays).
    """
    import numpy as np  # noqa: PLC0415 - as above

    totals = np.zeros(len(block))
    most = float(block.max(axis=0, initial=0).sum())

    def search(ends: range, first: int, last: int) -> None:
        if not ends:
            return
        end = ends[len(ends) // 2]
        best, total = first, -1.0
        for start in range(first, min(last, end) + 1):
            if before[start] + min(most, end + 1 - start) > total:
                reached = before[start] + _weight(block[start : end + 1])
                if reached > total:
                    best, total = start, reached
        totals[end] = total
        search(range(ends.start, end), first, best)
        search(range(end + 1, ends.stop), best, last)

    search(range(len(block)), 0, len(block) - 1)
    return totals


def _first_start(before: "Weights", block: "Weights") -> int:
    """Return the first row from which a run to the last one has the best total."""
    most = float(block.max(axis=0).sum())
    totals = {len(block): 0.0}
    for start in reversed(range(len(block))):
        if before[start] + most < max(totals.values()) - _ROUNDING:
            break
        totals[start] = float(before[start]) + _weight(block[start:])
    return min(start for start, total in totals.items() if total >= max(totals.values()) - _ROUNDING)


def _weight(block: "Weights") -> float:
    """Return the greatest total weight of pairs, in any order."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - as above

    return float(block[linear_sum_assignment(block, maximize=True)].sum())

"""One-to-one assignments with the greatest total weight: rows are expected calls, columns are actual calls.

Weights are in [0, 1]. If several assignments have the same weight, the choice depends only on the weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Weights: TypeAlias = NDArray[float64]

IndexPair: TypeAlias = tuple[int, int]
Blocks: TypeAlias = Sequence[tuple[int, int]]
"""Runs of columns without an order among themselves: the first column of each, and the one after its last."""


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


def best_in_place(weights: "Weights", blocks: Blocks) -> list[IndexPair]:
    """Return the best pairs with a weight in which each row has a column from the block at its own position."""
    return [
        (first + row, first + column)
        for first, end in blocks
        for row, column in best_pairs(weights[first:end, first:end])
        if weights[first + row, first + column]
    ]


def best_in_order(weights: "Weights", blocks: Blocks) -> list[IndexPair]:
    """Return the best non-crossing pairs with a weight: no row has an earlier block than a preceding row.

    The rows are split into runs, one for each block, by dynamic programming over the blocks. The best total of the
    first ``end`` rows is the maximum, over ``start``, of the best total of the first ``start`` rows with the preceding
    blocks plus that of rows ``start`` to ``end`` with this block.
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    if len(blocks) == 1:
        return [pair for pair in best_pairs(weights) if weights[pair]]
    best = np.zeros(len(weights) + 1)
    steps: list[tuple[Weights, Weights, NDArray[intp], NDArray[intp]]] = []
    for first, end in blocks:
        block = weights[:, first:end]
        rows = np.flatnonzero(block.any(axis=1))
        totals, starts = _best_runs(best[rows], block[rows])
        after = best.copy()
        after[rows + 1] = np.maximum(after[rows + 1], totals)
        after = np.maximum.accumulate(after)
        steps.append((best, after, rows, starts))
        best = after
    pairs: list[IndexPair] = []
    last = len(weights)
    for (first, end), (before, after, rows, starts) in zip(reversed(blocks), reversed(steps), strict=True):
        if after[last] > before[last]:
            fewest = int(np.flatnonzero(after == after[last])[0])  # the fewest rows with this total
            stop = int(np.searchsorted(rows, fewest))
            run = rows[starts[stop - 1] : stop]
            pairs += [(int(run[row]), first + column) for row, column in best_pairs(weights[run, first:end])]
            last = int(run[0])
    return sorted(pair for pair in pairs if weights[pair])


def _best_runs(before: "Weights", block: "Weights") -> "tuple[Weights, NDArray[intp]]":
    """Return, for each row, the best total of a run that ends with it, and the row at which that run starts.

    A run's total includes the best total of the rows before it. The weight of a run is submodular in its rows, so the
    best start never decreases as the end grows, so divide and conquer works (Aggarwal et al. 1987, on Monge arrays).
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    if block.shape[1] == 1:
        return before + block[:, 0], np.arange(len(block))
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - as slow

    totals, starts = np.zeros(len(block)), np.zeros(len(block), dtype=np.intp)
    most = float(block.max(axis=0, initial=0).sum())

    def search(ends: range, first: int, last: int) -> None:
        if not ends:
            return
        end = ends[len(ends) // 2]
        best, total = first, -1.0
        for start in range(first, min(last, end) + 1):
            if before[start] + min(most, end + 1 - start) > total:
                run = block[start : end + 1]
                found = before[start] + run[linear_sum_assignment(run, maximize=True)].sum()
                if found > total:
                    best, total = start, found
        totals[end], starts[end] = total, best
        search(range(ends.start, end), first, best)
        search(range(end + 1, ends.stop), best, last)

    search(range(len(block)), 0, len(block) - 1)
    return totals, starts

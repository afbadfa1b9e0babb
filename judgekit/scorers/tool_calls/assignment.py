"""One-to-one assignments with the greatest total weight: rows are expected calls, columns are actual calls.

Weights are in [0, 1]. If several assignments have the same weight, the choice depends only on the weights.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

    Weights: TypeAlias = NDArray[float64]
    Indices: TypeAlias = NDArray[intp]

IndexPair: TypeAlias = tuple[int, int]
Blocks: TypeAlias = Sequence[tuple[int, int]]
"""Runs of columns without an order among themselves: the first column of each, and the one after its last."""

_NARROW = 8
"""The maximum number of columns whose sets are enumerated."""
_MOST_STEPS = 1_000_000
"""The number of steps, of a microsecond each, up to which blocks are paired row by row."""
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


def best_in_place(weights: Sequence[Sequence[float]], blocks: Blocks) -> list[IndexPair]:
    """Return the best pairs with a weight in which each row has a column from the block at its own position."""
    return [
        (first + row, first + column)
        for first, end in blocks
        for row, column in best_pairs([row[first:end] for row in weights[first:end]])
        if weights[first + row][first + column]
    ]


def best_in_order(weights: Sequence[Sequence[float]], blocks: Blocks) -> list[IndexPair]:
    """Return the best non-crossing pairs with a weight: no row has an earlier block than a preceding row.

    The rows are split into runs, one for each block, by dynamic programming. The best total of the first ``end`` rows
    with some blocks is the maximum, over ``start``, of the best total of the first ``start`` rows with the blocks
    before the last, plus that of rows ``start`` to ``end`` with the last.
    """
    if len(blocks) == 1:
        return [(row, column) for row, column in best_pairs(weights) if weights[row][column]]
    width = max((end - first for first, end in blocks), default=0)
    single = width <= 1
    compute = _totals_of_columns if single else _totals_of_narrow if width <= _NARROW else _totals_of_wide
    totals = compute(weights, blocks)
    pairs: list[IndexPair] = []
    last = len(weights)
    for (first, end), before, after in zip(reversed(blocks), totals[-2::-1], totals[:0:-1], strict=True):
        total = after[last] if single else after[last] - _ROUNDING
        if total > before[last]:
            fewest = bisect_left(after, total)  # the fewest rows with this total
            if single:
                last, run = fewest - 1, [(fewest - 1, 0)]
            else:
                last, run = _first_run([row[first:end] for row in weights[:fewest]], before, total)
            pairs += [(row, first + column) for row, column in run]
    return sorted(pairs)


def longest_in_order(equal_rows: Sequence[int], row_count: int) -> list[IndexPair]:
    """Return the pairs of `best_in_order` where each column is a block of its own and all weights are 0 or 1.

    Source: Hyyro 2004, "Bit-parallel LCS-length computation revisited". A bit of ``steps`` says that the longest
    sequence of the columns so far grows with that row.

    Args:
        equal_rows: The rows that each column agrees with, as bits, of which the lowest is row 0.
        row_count: The number of rows.
    """
    all_rows = (1 << row_count) - 1
    flat = all_rows
    steps = [0]
    for rows in equal_rows:
        common = flat & rows
        flat = ((flat + common) | (flat - common)) & all_rows
        steps.append(all_rows ^ flat)
    pairs: list[IndexPair] = []
    last = row_count
    for column in reversed(range(len(equal_rows))):
        first_rows = (1 << last) - 1
        after = steps[column + 1] & first_rows
        if after.bit_count() > (steps[column] & first_rows).bit_count():
            last = after.bit_length() - 1
            pairs.append((last, column))
    return pairs[::-1]


def blocks_in_order(equal_rows: Sequence[int], blocks: Blocks, row_count: int) -> list[IndexPair] | None:
    """Return the pairs of `best_in_order` where all weights are 0 or 1, or ``None`` if there may be no fast way.

    As in `longest_in_order`, a bit of ``steps`` says that the total grows with that row. A run that ends with a row
    and has so many pairs starts at the latest with the earliest of so many last rows that each count for a pair.

    Args:
        equal_rows: The rows that each column agrees with, as bits. Columns agree with the same rows, or with others.
        blocks: The columns of each block.
        row_count: The number of rows.
    """
    steps, kept, effort = 0, [0], 0
    candidates: list[list[int]] = []
    for first, end in blocks:
        free = Counter(equal_rows[first:end])
        kinds = {row: rows for rows in free for row in _bits(rows)}
        effort += len(kinds) * (end - first)
        if sum(rows.bit_count() for rows in free) > len(kinds) or effort > _MOST_STEPS:
            return None
        before, last_rows = steps, list[int]()
        for row in sorted(kinds):
            last_rows.insert(0, row)
            same = [other for other in last_rows if kinds[other] == kinds[row]]
            if len(same) > free[kinds[row]]:
                last_rows.remove(same[-1])
            total = max((before & ((1 << start) - 1)).bit_count() + count for count, start in enumerate(last_rows, 1))
            if total > (steps & ((2 << row) - 1)).bit_count():
                later = steps >> (row + 1) << (row + 1)
                steps = (steps ^ (later & -later)) | 1 << row
        kept.append(steps)
        candidates.append(sorted(kinds))
    pairs: list[IndexPair] = []
    last = row_count
    for index, (first, end) in reversed(list(enumerate(blocks))):
        before, after = kept[index], kept[index + 1] & ((1 << last) - 1)
        if after.bit_count() > (before & ((1 << last) - 1)).bit_count():
            rows = [row for row in candidates[index] if row < after.bit_length()]
            block = [[float(equal_rows[column] >> row & 1) for column in range(first, end)] for row in rows]
            totals = [float((before & ((1 << row) - 1)).bit_count()) for row in rows]
            start, run = _first_run(block, totals, after.bit_count() - _ROUNDING)
            last = rows[start]
            pairs += [(rows[row], first + column) for row, column in run]
    return sorted(pairs)


def _bits(number: int) -> Iterator[int]:
    while number:
        yield (lowest := (number & -number).bit_length() - 1)
        number ^= 1 << lowest


def best_in_long_order(
    columns: "Callable[[int], tuple[Indices, Weights] | None]", row_count: int, column_count: int
) -> list[IndexPair]:
    """Return the pairs of `best_in_order` where each column is a block of its own, for many rows and columns.

    Of the totals with each column, two bits a row are kept: whether the column raises it, and whether the row does.

    Args:
        columns: Returns the rows with which a column may be paired, in order, and their weights; ``None`` without any.
        row_count: The number of rows.
        column_count: The number of columns.
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    totals: Weights = np.zeros(row_count + 1)
    raised: list[tuple[bytes, bytes] | None] = []
    for column in range(column_count):
        pairable = columns(column)
        if pairable is None:
            raised.append(None)
            continue
        rows, weights = pairable
        following = totals.copy()
        following[rows + 1] = np.maximum(totals[rows + 1], totals[rows] + weights)
        np.maximum.accumulate(following, out=following)
        bits = np.packbits(following > totals), np.packbits(following[1:] > following[:-1])
        raised.append((bits[0].tobytes(), bits[1].tobytes()))
        totals = following
    pairs: list[IndexPair] = []
    last = row_count
    for column, both in reversed(list(enumerate(raised))):
        if both is not None and both[0][last >> 3] & (128 >> (last & 7)):
            by_rows = np.unpackbits(np.frombuffer(both[1], dtype=np.uint8), count=last)
            last = int(by_rows.nonzero()[0][-1])  # the fewest rows with this total, without the pair's
            pairs.append((last, column))
    return pairs[::-1]


def _first_run(block: Sequence[Sequence[float]], before: Sequence[float], total: float) -> tuple[int, list[IndexPair]]:
    """Return the first row from which a run to the end reaches the total, and the run's pairs."""
    most = sum(map(max, zip(*block, strict=True)))
    highest = [0.0] * len(block[0])
    starts: list[int] = []
    for start in reversed(range(len(block))):
        if before[start] + most < total:
            break
        highest = [*map(max, highest, block[start])]
        if any(block[start]) and before[start] + sum(highest) >= total:
            starts.append(start)
    for start in reversed(starts):
        rows = [row for row in range(start, len(block)) if any(block[row])]
        pairs = [(rows[row], column) for row, column in best_pairs([block[row] for row in rows])]
        if before[start] + sum(block[row][column] for row, column in pairs) >= total:
            return start, [(row, column) for row, column in pairs if block[row][column]]
    raise AssertionError("no run reaches the total")


def _totals_of_columns(weights: Sequence[Sequence[float]], blocks: Blocks) -> list[list[float]]:
    """Return the best totals of the first rows, from none to all, with the first blocks, which are single columns."""
    totals = [[0.0] * (len(weights) + 1)]
    columns = list(zip(*weights, strict=True)) if weights else [()] * len(blocks)
    for first, _ in blocks:
        before = totals[-1]
        after = before.copy()
        for row, weight in enumerate(columns[first]):
            if weight and (total := before[row] + weight) > after[row + 1]:
                end = bisect_left(after, total, row + 1)
                after[row + 1 : end] = [total] * (end - row - 1)
        totals.append(after)
    return totals


def _totals_of_narrow(weights: Sequence[Sequence[float]], blocks: Blocks) -> list[list[float]]:
    """Return the same for blocks of few columns: the best total for each set of a block's columns, row by row."""
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    width = max(end - first for first, end in blocks)
    padded = np.zeros((len(weights), len(blocks), width))
    for at, (first, end) in enumerate(blocks):
        padded[:, at, : end - first] = np.array([row[first:end] for row in weights]).reshape(len(weights), end - first)
    sets = np.full((len(blocks), 2**width), -np.inf)
    sets[:, 0] = 0.0
    totals = np.zeros((len(blocks) + 1, len(weights) + 1))
    for index, row in enumerate(padded, 1):
        taken = sets.copy()
        for column in range(width):
            shape = (len(blocks), -1, 2, 2**column)  # the third axis: without and with the column
            more = sets.reshape(shape)[:, :, 0] + row[:, column, None, None]
            np.maximum(taken.reshape(shape)[:, :, 1], more, out=taken.reshape(shape)[:, :, 1])
        np.maximum.accumulate(taken.max(axis=1), out=totals[1:, index])
        taken[:, 0] = totals[:-1, index]
        sets = taken
    return totals.tolist()


def _totals_of_wide(weights: Sequence[Sequence[float]], blocks: Blocks) -> list[list[float]]:
    """Return the same for blocks of any width, by an assignment problem for each split."""
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

    matrix = np.array(weights, dtype=float).reshape(len(weights), blocks[-1][1])
    totals = [np.zeros(len(weights) + 1)]
    for first, end in blocks:
        block, after = matrix[:, first:end], totals[-1].copy()
        rows = np.flatnonzero(block.any(axis=1))
        after[rows + 1] = np.maximum(after[rows + 1], _best_runs(after[rows], block[rows]))
        totals.append(np.maximum.accumulate(after))
    return [column_totals.tolist() for column_totals in totals]


def _best_runs(before: "Weights", block: "Weights") -> "Weights":
    """Return, for each row, the best total of a run that ends with it, and of the rows before.

    The weight of a run is submodular in its rows, so the best start never decreases as the end grows, so divide and
    conquer works (Aggarwal et al. 1987, on Monge arrays).
    """
    import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - as slow

    totals = np.zeros(len(block))
    most = float(block.max(axis=0, initial=0).sum())

    def search(ends: range, first: int, last: int) -> None:
        if not ends:
            return
        end = ends[len(ends) // 2]
        best, total = first, -1.0
        for start in range(first, min(last, end) + 1):
            if before[start] + min(most, end + 1 - start) > total:
                run = block[start : end + 1]
                reached = before[start] + run[linear_sum_assignment(run, maximize=True)].sum()
                if reached > total:
                    best, total = start, reached
        totals[end] = total
        search(range(ends.start, end), first, best)
        search(range(end + 1, ends.stop), best, last)

    search(range(len(block)), 0, len(block) - 1)
    return totals

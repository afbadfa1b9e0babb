"""Pairs of the greatest total weight."""

from itertools import accumulate, pairwise, permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.assignment import (
    best_in_order,
    best_in_place,
    best_of_few,
    best_pairs,
    bottleneck_pairs,
)

WEIGHTS = [0, 0, 1 / 3, 1 / 2, 2 / 3, 1]


@st.composite
def problems(draw, most=6):
    """Weights, and blocks of any widths that the columns are cut into."""
    rows, columns = draw(st.integers(0, most)), draw(st.integers(0, most))
    size = rows * columns
    weights = draw(st.lists(st.sampled_from(WEIGHTS), min_size=size, max_size=size))
    inner = draw(st.sets(st.integers(1, columns - 1))) if columns > 1 else set()
    ends = sorted({0, *inner, columns})
    return np.array(weights, dtype=float).reshape(rows, columns), list(pairwise(ends))


def columns_of(weights):
    """The weights of each column that are not 0, with their rows, as pairing takes them."""
    return lambda column: (weights[:, column].nonzero()[0], weights[weights[:, column].nonzero()[0], column])


def block_of(blocks):
    return {column: block for block, (first, end) in enumerate(blocks) for column in range(first, end)}


def anywhere(row, column, last):
    return True


def in_place(blocks):
    """Whether a row's own column is in the block of the column it is paired with."""
    number = block_of(blocks)
    return lambda row, column, last: row in number and number[row] == number[column]


def in_order(blocks):
    """Whether a row's partner is in no earlier block than the partner of the last paired row before it."""
    number = block_of(blocks)
    return lambda row, column, last: last is None or number[column] >= number[last]


def greatest(weights, allowed, row=0, last=None, used=frozenset()):
    """The greatest total that there is, by trying all choices of pairs."""
    if row == len(weights):
        return 0.0
    taken = [
        weights[row, column] + greatest(weights, allowed, row + 1, column, used | {column})
        for column in range(weights.shape[1])
        if weights[row, column] and column not in used and allowed(row, column, last)
    ]
    return max([greatest(weights, allowed, row + 1, last, used), *taken])


def total(weights, pairs):
    return sum(weights[pair] for pair in pairs)


def is_one_to_one(weights, pairs):
    rows, columns = weights.shape
    return len({row for row, _ in pairs} & {*range(rows)}) == len(pairs) == len(
        {column for _, column in pairs} & {*range(columns)}
    )  # fmt: skip


@settings(max_examples=2 * settings.default.max_examples)
@given(problems())
def test_in_any_order_as_many_are_paired_as_there_can_be_for_the_greatest_total(problem):
    weights, _ = problem
    pairs = best_pairs(weights)
    assert is_one_to_one(weights, pairs)
    assert len(pairs) == min(weights.shape)
    assert total(weights, pairs) == pytest.approx(greatest(weights, anywhere))


@settings(max_examples=2 * settings.default.max_examples)
@given(problems())
def test_the_lowest_weight_of_the_evenest_pairs_is_the_greatest_there_can_be(problem):
    weights, _ = problem
    pairs, (few, many) = bottleneck_pairs(weights.tolist()), sorted(weights.shape)
    assert is_one_to_one(weights, pairs)
    assert len(pairs) == few
    tall = weights if len(weights) == few else weights.T
    lowest = (min((tall[pair] for pair in enumerate(one)), default=1) for one in permutations(range(many), few))
    assert min((weights[pair] for pair in pairs), default=1) == max(lowest)


@settings(max_examples=2 * settings.default.max_examples)
@given(problems())
def test_in_place_no_pairs_within_the_own_blocks_weigh_more(problem):
    weights, blocks = problem
    pairs, fits = best_in_place(columns_of(weights), len(weights), blocks), in_place(blocks)
    assert is_one_to_one(weights, pairs)
    assert all(weights[pair] and fits(*pair, None) for pair in pairs)
    assert total(weights, pairs) == pytest.approx(greatest(weights, fits))


@settings(max_examples=2 * settings.default.max_examples)
@given(problems())
def test_in_order_no_pairs_that_do_not_cross_weigh_more(problem):
    weights, blocks = problem
    pairs, number = best_in_order(columns_of(weights), len(weights), blocks), block_of(blocks)
    assert is_one_to_one(weights, pairs)
    assert all(weights[pair] for pair in pairs)
    assert [number[column] for _, column in sorted(pairs)] == sorted(number[column] for _, column in pairs)
    assert total(weights, pairs) == pytest.approx(greatest(weights, in_order(blocks)))


def aligned(weights):
    """The greatest total of pairs in strict order, by the textbook's table over both sides (Needleman and Wunsch 1970)."""
    best = [0.0] * (weights.shape[1] + 1)
    for row in weights:
        before, best = best, [0.0]
        for column, weight in enumerate(row):
            best.append(max(before[column + 1], best[column], before[column] + weight))
    return best[-1]


@st.composite
def single_columns(draw):
    size = draw(st.tuples(st.integers(0, 30), st.integers(0, 30)))
    seed, share = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.1, 0.5, 1.0]))
    numbers = np.random.default_rng(seed)
    return numbers.choice(WEIGHTS, size) * (numbers.random(size) < share)


@given(single_columns())
def test_in_order_and_one_by_one_the_total_is_that_of_sequence_alignment_for_few_and_many(weights):
    pairs = best_of_few(weights.tolist())
    assert [column for _, column in pairs] == sorted({column for _, column in pairs})
    assert total(weights, pairs) == pytest.approx(aligned(weights))
    each = [(column, column + 1) for column in range(weights.shape[1])]
    if len(each) != 1:
        assert best_in_order(columns_of(weights), len(weights), each) == pairs


def split(weights, blocks):
    """The greatest total in order, by trying all rows where the run of each block may start."""
    best = [0.0] * (len(weights) + 1)
    for first, end in blocks:
        best = [
            max(
                best[start] + total(weights, ((start + row, first + column) for row, column in best_pairs(run)))
                for start in range(stop + 1)
                for run in [weights[start:stop, first:end]]
            )
            for stop in range(len(weights) + 1)
        ]
    return best[-1]


@given(st.integers(0, 10**6), st.lists(st.integers(1, 10), min_size=1, max_size=4), st.sampled_from([0.3, 1.0]))
@example(0, [9, 1, 10], 0.3)
@example(0, [9, 1, 10], 1.0)
@example(0, [8, 2], 1.0)
def test_in_order_longer_runs_are_split_where_it_is_best(seed, widths, share):
    ends = [0, *accumulate(widths)]
    numbers = np.random.default_rng(seed)
    size = (12, ends[-1])
    weights = numbers.choice(WEIGHTS, size) * (numbers.random(size) < share)
    blocks = list(pairwise(ends))
    assert total(weights, best_in_order(columns_of(weights), 12, blocks)) == pytest.approx(split(weights, blocks))


@pytest.mark.parametrize("width", [1, 5, 100])
def test_a_hundred_by_a_hundred_are_paired(width):
    size = 100
    blocks = [(first, first + width) for first in range(0, size, width)]
    number = block_of(blocks)
    shuffled = np.concatenate([first + np.random.default_rng(first).permutation(width) for first, _ in blocks])
    for pair in (best_in_order, best_in_place):
        assert sorted(pair(columns_of(np.eye(size)[shuffled]), size, blocks)) == list(enumerate(shuffled))

    weights = np.random.default_rng(0).choice(WEIGHTS, (size, size))
    pairs = best_in_order(columns_of(weights), size, blocks)
    assert is_one_to_one(weights, pairs)
    assert [number[column] for _, column in sorted(pairs)] == sorted(number[column] for _, column in pairs)
    least, most = aligned(weights), total(weights, best_pairs(weights))
    bounds = {1: (least, least), 5: (least, most), 100: (most, most)}[width]
    assert bounds[0] - 1e-9 <= total(weights, pairs) <= bounds[1] + 1e-9

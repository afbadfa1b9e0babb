"""Stopping for what one sees: how often the bounds miss, and which leads are decisive."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.sequential import confidence_sequence, is_decisive
from judgekit.stats.wilson import wilson

SHAPES = {
    "rare": (0.1, lambda random, size: random.random(size) < 0.1),
    "even": (0.5, lambda random, size: random.random(size) < 0.5),
    "spread": (0.8, lambda random, size: random.beta(4, 1, size)),
    "ends": (0.3, lambda random, size: random.choice([0.1, 1], size, p=[7 / 9, 2 / 9])),
}


@pytest.mark.simulations
@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_that_are_looked_at_after_every_value_miss_at_most_5_of_100_times(shape):
    mean, repeat = SHAPES[shape]
    values = repeat(np.random.default_rng(5), (500, 500)).astype(float)
    found = confidence_sequence(values, step=0.1)  # a grid that the mean is on: as exact as any finer one
    missed = ((found.low >= mean - 1e-9) | (found.high <= mean + 1e-9)).any(axis=1)
    assert missed.mean() <= 0.05
    counts = np.arange(1, 501)
    means = values.cumsum(axis=1) / counts
    fixed = 1.96 * np.sqrt(np.maximum(means * (1 - means), 1e-9) / counts)
    peeked = (np.abs(means - mean) > fixed)[:, 30:].any(axis=1)
    assert shape not in {"rare", "even"} or peeked.mean() > 0.15  # an interval for a fixed number does not bear it


@given(st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), min_size=1, max_size=40))
def test_bounds_only_close_in_and_turn_with_the_values(values):
    found, turned = confidence_sequence(values, step=0.05), confidence_sequence(1 - np.array(values), step=0.05)
    assert (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()
    assert turned.low == pytest.approx(1 - found.high)
    one_more = confidence_sequence([*values, 1], step=0.05)
    assert one_more.low[:-1] == pytest.approx(found.low)
    finer = confidence_sequence(values, step=0.01)
    assert (finer.low >= found.low - 1e-9).all()
    assert (finer.low < found.low + 0.05 + 1e-9).all()


def test_the_price_of_peeking_is_small():
    values = np.random.default_rng(1).random(1_000) < 0.8
    found = confidence_sequence(values)
    fixed = wilson(int(values.sum()), 1_000)
    assert found.low[-1] < fixed.low < fixed.high < found.high[-1]
    assert found.high[-1] - found.low[-1] < 2 * (fixed.high - fixed.low)
    assert confidence_sequence([1.0] * 100).low[-1] > 0.9


def test_values_beyond_0_and_1_are_refused():
    with pytest.raises(ValueError, match=r"expected values in \[0, 1\], found 2"):
        confidence_sequence([0, 2])


def test_a_lead_is_decisive_where_it_is_likely_to_stay_or_cannot_be_caught_up_with():
    cases = [
        ([3], 9, False),
        ([4], 9, True),
        ([4, 0, 0], 9, True),
        ([1, 5], 9, False),
        ([1, 6], 9, True),
        ([2, 7], 9, False),
        ([2, 8], 9, True),
        ([2, 1, 4, 1], 9, False),  # the first two count
        ([3], 2, True),  # two more change nothing
        ([3, 1], 2, False),  # two more could make it even
        ([3, 1], 1, True),
        ([2, 2], 0, False),
        ([], 5, False),
        ([], 0, False),
    ]
    for counts, left, decisive in cases:
        assert is_decisive(counts, left=left) == decisive


@given(st.lists(st.integers(0, 30), min_size=2, max_size=2), st.sampled_from([0.8, 0.95]))
def test_the_chance_of_the_leader_is_that_of_a_beta_distribution(counts, level):
    ahead = scipy.stats.beta.sf(0.5, max(counts) + 1, min(counts) + 1)
    assert is_decisive(counts, left=10**6, level=level) == (ahead > level)


@pytest.mark.parametrize(("counts", "left"), [([1, -1], 2), ([1], -1)])
def test_counts_below_0_are_refused(counts, left):
    with pytest.raises(ValueError, match="expected counts of 0 or more"):
        is_decisive(counts, left=left)

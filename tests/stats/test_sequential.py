"""Stopping for what one sees: which leads are decisive."""

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.sequential import is_decisive


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

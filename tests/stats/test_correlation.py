"""Correlation of ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgekit.stats.correlation import rank_correlation

NUMBERS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30)


@given(NUMBERS)
def test_it_is_spearmans_with_ties(pairs):
    a, b = np.asarray(pairs, float).T
    if np.ptp(a) and np.ptp(b):
        assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    else:
        assert rank_correlation(a, b) is None


def test_of_one_pair_nothing_is_said_and_what_is_no_data_is_refused():
    assert rank_correlation([1], [1]) is None
    with pytest.raises(ValueError, match="of one length"):
        rank_correlation([1, 2], [1])

"""Quantiles, held against scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtr, stdtrit

from judgekit.stats.quantiles import normal_quantile, t_quantile

freedoms = st.one_of(st.integers(1, 200), st.integers(1, 10_000_000))


@given(freedom=freedoms, share=st.floats(0.51, 0.99995))
def test_t_quantiles_are_those_of_scipy(freedom, share):
    assert t_quantile(freedom, share) == pytest.approx(stdtrit(freedom, share), rel=1e-10)  # older ones have 10 digits
    assert stdtr(freedom, -t_quantile(freedom, share)) == pytest.approx(1 - share, rel=1e-9)


@given(share=st.floats(1e-6, 1 - 1e-6))
def test_normal_quantiles_are_those_of_scipy(share):
    assert normal_quantile(share) == pytest.approx(ndtri(share), rel=1e-13, abs=1e-15)


@given(freedom=freedoms)
def test_half_of_t_lies_below_0(freedom):
    assert t_quantile(freedom, 0.5) == 0


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (5, 2.571), (30, 2.042), (120, 1.980)])
def test_t_quantiles_are_those_of_printed_tables(freedom, expected):
    assert t_quantile(freedom, 0.975) == pytest.approx(expected, abs=5e-4)

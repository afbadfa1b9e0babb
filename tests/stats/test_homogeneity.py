"""Whether two sets of values may come from one source."""

import numpy as np
import pytest
from scipy import stats

from judgekit.stats.homogeneity import homogeneity, kolmogorov_smirnov


@pytest.mark.parametrize("shift", [0, 0.2, 0.5])
def test_kolmogorov_smirnov_is_that_of_scipy_in_the_limit(shift):
    random = np.random.default_rng(1)
    a, b = random.normal(size=4_000), random.normal(shift / 10, size=3_000)
    assert kolmogorov_smirnov(a, b) == pytest.approx(stats.ks_2samp(a, b, method="asymp").pvalue, rel=0.05, abs=1e-9)


def test_in_small_or_tied_sets_it_errs_on_the_side_of_no_difference():
    random = np.random.default_rng(0)
    for _ in range(50):
        a, b = random.integers(0, 5, 30), random.integers(0, 6, 20)
        assert kolmogorov_smirnov(a, b) >= stats.ks_2samp(a, b, method="exact").pvalue - 1e-3


@pytest.mark.parametrize(
    "table", [((8, 2), (1, 5)), ((30, 10), (50, 60)), ((9, 1), (2, 9)), ((5, 0), (5, 0)), ((0, 9), (9, 0))]
)
def test_homogeneity_is_the_exact_test_of_fisher(table):
    counts = [{str(kind): number for kind, number in enumerate(row)} for row in table]
    assert homogeneity(*counts) == pytest.approx(stats.fisher_exact(table).pvalue, abs=0.02)


def test_of_more_than_two_kinds_all_tables_with_the_same_sums_are_gone_through():
    table = np.array([[3, 0, 1], [0, 4, 2]])
    rows, columns = table.sum(1), table.sum(0)

    def far(first):
        return (np.square(first - columns * rows[0] / columns.sum()) / columns).sum()

    p = 0.0
    for first in np.ndindex(*columns + 1):
        if sum(first) == rows[0] and far(np.array(first)) >= far(table[0]) - 1e-12:
            p += stats.multivariate_hypergeom.pmf(first, columns, rows[0])
    found = homogeneity(*({str(kind): int(number) for kind, number in enumerate(row)} for row in table))
    assert found == pytest.approx(p, abs=0.02)


def test_kinds_that_one_set_lacks_count_as_none_and_an_empty_set_says_nothing():
    assert homogeneity({"x": 40}, {"y": 40}) == 1e-4
    assert homogeneity({"x": 4}, {"x": 9}) == 1
    assert homogeneity({}, {"x": 9}) is None
    assert kolmogorov_smirnov([], [1]) is None


def test_what_is_no_data_is_refused():
    with pytest.raises(ValueError, match="found -1"):
        homogeneity({"x": -1}, {"x": 2})
    with pytest.raises(ValueError, match="finite numbers"):
        kolmogorov_smirnov([float("nan")], [1])

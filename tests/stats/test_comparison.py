"""Paired differences, held against scipy, statsmodels and published numbers."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from judgekit.stats.comparison import (
    detectable_by_signs,
    detectable_difference,
    holm,
    mcnemar,
    paired_interval,
    sign_flip,
)
from judgekit.stats.intervals import t_interval
from judgekit.stats.units import Units
from judgekit.stats.wilson import wilson

DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]  # heights of maize, crossed minus self-fertilised
QUARTERS = st.integers(-4, 4).map(lambda quarter: quarter / 4)


def test_a_paired_interval_is_that_of_the_t_test_with_the_greatest_difference_in_both_directions():
    random = np.random.default_rng(1)
    differences = random.random(30) - random.random(30)
    largest = np.abs(differences).max()
    theirs = scipy.stats.ttest_1samp([*differences, largest, -largest], 0).confidence_interval()
    assert paired_interval(differences)[:2] == pytest.approx(tuple(theirs))


def test_a_paired_interval_of_binary_scores_is_that_of_bonett_and_price():
    """The adjusted Wald interval of a difference of paired proportions, with t for z and n + 1 for n + 2 in the variance."""
    n, only_first, only_second = 100, 9, 2
    first, second = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    error = np.sqrt((first + second - (first - second) ** 2) / (n + 1))
    half = scipy.stats.t.ppf(0.975, n + 1) * error
    differences = [1] * only_first + [-1] * only_second + [0] * (n - only_first - only_second)
    assert paired_interval(differences)[:2] == pytest.approx((first - second - half, first - second + half))


def test_groups_have_two_more_of_average_size():
    random = np.random.default_rng(1)
    groups, differences = np.repeat(np.arange(10), 3), random.random(30) - random.random(30)
    largest = np.abs(differences.reshape(10, 3).sum(axis=1)).max() / 3
    more = np.concatenate([differences, [largest] * 3, [-largest] * 3])
    theirs = t_interval(Units.of(more, np.repeat(np.arange(12), 3)))
    assert paired_interval(differences, groups)[:2] == pytest.approx(theirs[:2])


@pytest.mark.simulations
@pytest.mark.parametrize(("margin", "n"), [(0.05, 100), (0.02, 200), (0.02, 400), (0.1, 50)])
def test_not_worse_by_more_than_a_margin_is_rarely_said_of_what_is(margin, n):
    """2,000 runs in which B fails a share of what A passes, and nothing else differs: t alone errs in 9 to 12 %."""
    random = np.random.default_rng(5)
    lows = [paired_interval(-(random.random(n) < margin).astype(float)).low for _ in range(2_000)]
    assert np.mean([low >= -margin for low in lows]) <= 0.06


@given(st.lists(st.tuples(QUARTERS, st.sampled_from("abcde")), max_size=30))
def test_a_paired_interval_turns_with_the_sides_and_stays_between_minus_1_and_1(pairs):
    differences, groups = np.array([one for one, _ in pairs]), [group for _, group in pairs]
    found, turned = paired_interval(differences, groups), paired_interval(-differences, groups)
    if found is None:
        assert turned is None
        assert len(set(groups)) < 2
    else:
        assert (-turned.high, -turned.low) == pytest.approx(found[:2])
        assert -1 <= found.low < found.high <= 1


def test_runs_that_do_not_differ_on_any_sample_may_differ_on_others():
    share = wilson(0, 50).high
    assert paired_interval([0.0] * 50)[:2] == pytest.approx((-share, share))


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_that_of_statsmodels(only_first, only_second):
    theirs = mcnemar_of_statsmodels([[5, only_first], [only_second, 5]], exact=True).pvalue
    assert mcnemar(only_first, only_second) == pytest.approx(theirs)


def test_sign_flip_gives_what_fisher_found_for_the_maize_of_darwin():
    # 1,726 of the 32,768 ways to change signs come as far: "The Design of Experiments", section 21
    assert sign_flip(DARWIN, draws=2**15) == 1_726 / 32_768
    assert sign_flip(DARWIN) == pytest.approx(1_726 / 32_768, abs=0.007)  # drawn: three standard errors
    halves = [one for one in DARWIN for _ in range(2)]
    assert sign_flip(halves, np.repeat(np.arange(15), 2), draws=2**15) == 1_726 / 32_768


@given(st.lists(st.integers(-1024, 1024).map(lambda part: part / 1024), min_size=2, max_size=7))
def test_sign_flip_of_few_is_the_permutation_test_of_scipy(differences):
    theirs = scipy.stats.permutation_test([differences], np.mean, permutation_type="samples", n_resamples=200).pvalue
    assert sign_flip(differences) == pytest.approx(theirs)


@given(st.lists(st.tuples(QUARTERS, st.sampled_from("abcdefgh")), max_size=30), st.randoms())
def test_signs_of_a_group_change_together_in_any_order(pairs, random):
    def p(pairs):
        return sign_flip([one for one, _ in pairs], [group for _, group in pairs])

    sums = {group: sum(one for one, other in pairs if other == group) for _, group in pairs}
    assert p(pairs) == p(random.sample(pairs, len(pairs))) == sign_flip(list(sums.values()))
    assert 0 < p(pairs) <= 1


def test_sign_flip_is_never_0_and_1_where_nothing_differs():
    cases = [
        ([], 1),
        ([0, 0, 0], 1),
        ([0.5], 1),
        ([0.1, 0.2, -0.3], 1),  # come to 0, but for rounding
        ([0.3, 0, 0.1, 0.2, 0], 2 / 8),  # those of 0 change nothing
        ([0.1] * 40, 1 / 10_001),
        ([0.1] * 9 + [0] * 10_000, 2 / 512),
    ]
    for differences, p in cases:
        assert sign_flip(differences) == p


def test_sign_flip_of_many_is_what_the_normal_distribution_says():
    differences = np.random.default_rng(2).normal(0.003, 1, 20_003)
    z = abs(differences.sum()) / np.sqrt(np.square(differences).sum())
    normal = 2 * scipy.stats.norm.sf(z)
    assert 0.01 < normal < 0.2
    found = sign_flip(differences, draws=2_000, seed=7)
    assert found == pytest.approx(normal, abs=3 * np.sqrt(normal / 2_000))
    assert found == sign_flip(differences, draws=2_000, seed=7) != sign_flip(differences, draws=2_000, seed=8)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_holm_is_that_of_statsmodels_over_those_that_were_tested(p_values):
    tested = [p for p in p_values if p is not None]
    theirs = iter(multipletests(tested, method="holm")[1] if tested else [])
    assert holm(p_values) == [None if p is None else pytest.approx(next(theirs)) for p in p_values]


def test_the_detectable_difference_is_that_of_statsmodels():
    for n in [5, 10, 30, 100, 1_000]:
        for power, alpha in [(0.8, 0.05), (0.9, 0.01)]:
            effect = TTestPower().solve_power(nobs=n, power=power, alpha=alpha)  # in standard deviations
            found = detectable_difference(0.3 / np.sqrt(n), n - 1, power=power, alpha=alpha)
            assert found == pytest.approx(0.3 * effect, rel=1e-4)


@pytest.mark.parametrize("df", [1, 2, 5, 50, 10**5])
def test_the_detectable_difference_is_shown_in_80_of_100_times(df):
    found = detectable_difference(1, df)
    assert scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, df), df, found) == pytest.approx(0.8, abs=1e-6)


def test_of_many_samples_it_is_2_80_standard_errors():
    assert detectable_difference(0.01, 10**6) == pytest.approx(0.0280, abs=5e-5)  # Bloom 1995


@pytest.mark.parametrize(("standard_error", "df"), [(0, 9), (0.1, 0)])
def test_without_spread_nothing_can_be_said_of_what_is_detectable(standard_error, df):
    assert detectable_difference(standard_error, df) is None


@pytest.mark.parametrize("n", [6, 20, 50, 1_000])
def test_what_signs_can_show_is_shown_in_80_of_100_times_where_all_differences_have_one_side(n):
    assert mcnemar(0, 6) < 0.05 < mcnemar(0, 5)
    differ = detectable_by_signs(Units.of([1.0] + [0.0] * (n - 1)))
    assert scipy.stats.binom.sf(5, n, differ) == pytest.approx(0.8)
    assert detectable_by_signs(Units.of([-0.5] * 3 + [0.0] * (n - 3))) == pytest.approx(differ / 2)
    pairs = np.repeat(np.arange(n), 2)
    assert detectable_by_signs(Units.of([1.0] * 2 + [0.0] * 2 * (n - 1), pairs)) == pytest.approx(differ)


@pytest.mark.parametrize("differences", [[], [0.5] * 5, [0.0] * 100])
def test_signs_of_fewer_than_6_or_of_no_difference_show_nothing(differences):
    assert detectable_by_signs(Units.of(differences)) is None

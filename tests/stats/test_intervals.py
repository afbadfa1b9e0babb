"""Intervals, held against scipy, statsmodels, published numbers, and how often they cover what they should."""

from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from judgekit.stats.intervals import bootstrap, mean_interval, t_interval
from judgekit.stats.units import Units
from judgekit.stats.wilson import wilson

EIGHTHS = st.integers(0, 8).map(lambda eighth: eighth / 8)
BINARY = st.integers(0, 1).map(float)
GROUPED = st.lists(st.tuples(BINARY, st.sampled_from("abcdef"))) | st.lists(
    st.tuples(EIGHTHS, st.sampled_from("abcdef"))
)


def bounds(interval):
    return pytest.approx((interval.low, interval.high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(successes, n, low, high):
    # Newcombe 1998, https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E, method 3
    assert wilson(successes, n)[:2] == pytest.approx((low, high), abs=5e-5)


@given(st.data(), st.integers(1, 5_000), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(data, n, level):
    successes = data.draw(st.integers(0, n))
    found = wilson(successes, n, level=level)
    assert found[:2] == bounds(scipy.stats.binomtest(successes, n).proportion_ci(level, "wilson"))
    assert 0 <= found.low <= successes / n <= found.high <= 1


def test_there_is_no_share_of_nothing_and_none_over_all():
    assert wilson(0, 0) is None
    with pytest.raises(ValueError, match="expected 0 to 3 successes, found 4"):
        wilson(4, 3)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2).filter(lambda values: np.ptp(values) > 1e-3),
    st.sampled_from([0.8, 0.95]),
)
def test_t_is_that_of_scipy(values, level):
    found = t_interval(Units.of(values), level=level)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(level)
    assert found[:2] == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9 * np.ptp(values))
    assert t_interval(Units.of(values, range(len(values))), level=level) == found


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(2, 12), st.integers(0, 40), st.integers(0, 999), st.floats(0.1, 9), st.floats(-9, 9))
def test_clustered_is_that_of_statsmodels(count, more, seed, scale, shift):
    random = np.random.default_rng(seed)
    groups = random.permutation(np.concatenate([np.arange(count), random.integers(0, count, more)]))
    values = random.random(count)[groups] + random.normal(0, 0.5, len(groups))
    found = t_interval(Units.of(values, groups))
    theirs = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert found[:2] == pytest.approx(tuple(theirs.conf_int()[0]))
    moved = t_interval(Units.of(scale * values + shift, groups))
    assert moved[:2] == pytest.approx((scale * found.low + shift, scale * found.high + shift))


def test_the_interval_of_a_mean_says_how_it_was_found():
    cases = [
        ([0, 1, 1], None, "Wilson"),
        ([True, True], ["a", "b"], "Wilson"),
        ([1], None, "Wilson"),
        ([0, 1, 0.5], [None, "a", "b"], "modified Wilson"),
        ([0.5, 0.5], None, "modified Wilson"),
        ([0, 1, 1], list("aab"), "modified Wilson, 2 groups"),
        ([1, 1, 1], list("aab"), "modified Wilson, 2 groups"),
    ]
    for values, groups, method in cases:
        assert mean_interval(values, groups).method == method


@pytest.mark.parametrize(("values", "groups"), [([], None), ([], []), ([0.5], None), ([0, 1], "aa"), ([1, 1], "aa")])
def test_where_nothing_can_be_said_there_is_no_interval(values, groups):
    assert mean_interval(values, groups) is None
    assert bootstrap(values, groups) is None
    assert t_interval(Units.of(values[:1])) is None


@given(st.lists(st.tuples(EIGHTHS, st.sampled_from("abcdef")), min_size=2), st.sampled_from([0.8, 0.95]))
def test_a_modified_wilson_interval_is_that_of_the_effective_number_of_values(pairs, level):
    values, groups = [value for value, _ in pairs], [group for _, group in pairs]
    mean = np.mean(values)
    found = mean_interval(values, groups, level=level)
    assume(found is not None and found.method.startswith("modified"))
    if found.method == "modified Wilson":
        groups = [*range(len(values))]
    members = Counter(groups)
    sums = [
        sum(value - mean for value, other in zip(values, groups, strict=True) if other == group) for group in members
    ]
    equal = len(values) ** 2 / sum(size**2 for size in members.values())  # groups of one size that tell as much
    two = mean**2 + (1 - mean) ** 2  # of one unit that is 0 and one that is 1
    variance = equal * np.sum(np.square(sums)) / len(values) ** 2 + two / equal
    effective = (equal * mean * (1 - mean) + two) / variance
    alpha = 2 * scipy.stats.norm.sf(scipy.stats.t.isf((1 - level) / 2, max(1, equal - 1)))
    theirs = proportion_confint(mean * effective, effective, alpha, "wilson")
    assert found[:2] == pytest.approx(theirs, abs=1e-7)


def test_of_ever_more_groups_of_which_each_is_one_value_the_modified_interval_is_that_of_wilson():
    ones, n = 900, 1_000
    values = [1] * ones + [0] * (n - ones)
    doubled = mean_interval(values * 2, [*range(n)] * 2)  # a second trial of each that ends as the first did
    assert doubled.method == "modified Wilson, 1,000 groups"
    assert doubled[:2] == pytest.approx(wilson(ones, n)[:2], abs=1e-4)


def test_units_that_do_not_differ_leave_room_for_those_that_were_not_drawn():
    assert t_interval(Units.of([0.25] * 5)) is None
    for values, groups in (([0.5] * 50, None), ([0, 1] * 50, np.repeat(np.arange(50), 2))):
        # 50 * (50 * 1/4 + 1/2) / (1/2) = 1,300 effective values, and t = 2.01 of 49 degrees of freedom
        assert mean_interval(values, groups)[:2] == pytest.approx((0.5 - 0.0278, 0.5 + 0.0278), abs=1e-4)
    four = scipy.stats.t.isf(0.025, 4) ** 2
    assert mean_interval([1] * 10, [*range(5)] * 2)[:2] == pytest.approx((5 / (5 + four), 1))


@given(GROUPED, st.randoms())
def test_an_interval_of_a_mean_covers_it_within_0_and_1_in_any_order_and_from_either_end(pairs, random):
    values, groups = [value for value, _ in pairs], [group for _, group in pairs]
    for chosen in (groups, None):
        found = mean_interval(values, chosen)
        if found is None:
            continue
        order = random.sample(range(len(values)), len(values))
        shuffled = mean_interval([values[one] for one in order], chosen and [groups[one] for one in order])
        assert shuffled[:2] == bounds(found)
        mirrored = mean_interval([1 - value for value in values], chosen)
        assert (1 - mirrored.high, 1 - mirrored.low) == bounds(found)
        assert 0 <= found.low <= np.mean(values) + 1e-12
        assert np.mean(values) - 1e-12 <= found.high <= 1
        assert found.high > found.low


def test_a_value_that_is_no_score_is_refused():
    with pytest.raises(ValueError, match=r"expected values in \[0, 1\], found 1\.5"):
        mean_interval([0.5, 1.5])


def missed(draws, groups, truth):
    """How often the lower bounds are too high, and the upper ones too low."""
    found = np.array([mean_interval(values, groups)[:2] for values in draws])
    return np.mean(found[:, 0] > truth), np.mean(found[:, 1] < truth)


@pytest.mark.simulations
@pytest.mark.parametrize(
    ("share", "icc", "tasks", "trials"),
    [(0.5, 1 / 3, 40, 5), (0.9, 0.4, 10, 8), (0.95, 0.3, 20, 5), (0.98, 0.4, 50, 8)],
)
def test_with_trials_of_tasks_either_bound_holds_if_they_are_grouped(share, icc, tasks, trials):
    random, runs = np.random.default_rng(20), 600
    solved = random.beta(share * (1 / icc - 1), (1 - share) * (1 / icc - 1), (runs, tasks, 1))
    passed = (random.random((runs, tasks, trials)) < solved).astype(float).reshape(runs, -1)
    groups = np.repeat(np.arange(tasks), trials)
    low, high = missed(passed, groups, share)
    assert max(low, high) < 0.04 + 0.024  # three standard errors
    assert low + high < 0.07 + 0.031
    assert sum(missed(passed, None, share)) > 0.1
    assert missed(1 - passed, groups, 1 - share) == (high, low)


@pytest.mark.simulations
@pytest.mark.parametrize(("tasks", "most"), [(10, 20), (20, 40), (50, 100), (100, 200)])
def test_with_one_task_of_many_trials_the_interval_covers(tasks, most):
    """One task has half of all trials: counted as one of many, the interval would cover in 70 to 91 %."""
    random, runs = np.random.default_rng(22), 600
    groups = np.repeat(np.arange(tasks), [most, *[2] * (tasks - 1)])
    passed = (random.random((runs, len(groups))) < random.beta(0.5, 0.5, (runs, tasks))[:, groups]).astype(float)
    assert sum(missed(passed, groups, 0.5)) < 0.05 + 0.027  # three standard errors


@pytest.mark.parametrize(
    ("scores", "n"),
    [([0.02, 0.01, 0.01, 0.02, 0.94], 50), ([0.01, 0.01, 0.01, 0.02, 0.95], 100), ([0.03, 0.02, 0.05, 0.8, 0.1], 50)],
)
def test_on_a_scale_of_5_points_where_nearly_all_are_alike_either_bound_holds(scores, n):
    points = np.arange(5) / 4
    draws = np.random.default_rng(21).choice(points, (600, n), p=scores)
    low, high = missed(draws, None, points @ scores)
    assert max(low, high) < 0.04 + 0.024
    assert low + high < 0.07 + 0.031


def test_bootstrap_is_that_of_scipy():
    random = np.random.default_rng(5)
    values = random.beta(2, 1, 60)
    for statistic in (np.mean, np.median):
        theirs = scipy.stats.bootstrap([values], statistic, method="percentile").confidence_interval
        ours = bootstrap(values, statistic=statistic)
        width = theirs.high - theirs.low
        assert ours[:2] == pytest.approx(tuple(theirs), abs=0.06 * width)  # six times the error of 10,000 draws


def test_bootstrap_draws_groups_whole():
    random = np.random.default_rng(6)
    groups = random.integers(0, 25, 120)
    values = np.clip(random.random(25)[groups] + random.normal(0, 0.1, 120), 0, 1)
    parts = np.bincount(groups, weights=values), np.bincount(groups)

    def mean(sums, sizes, axis):
        return sums.sum(axis) / sizes.sum(axis)

    theirs = scipy.stats.bootstrap(parts, mean, paired=True, method="percentile").confidence_interval
    found = bootstrap(values, [f"task {group}" for group in groups])
    assert found[:2] == pytest.approx(tuple(theirs), abs=0.06 * (theirs.high - theirs.low))
    assert found.method == "bootstrap, 25 groups"


def test_bootstrap_is_repeated_by_its_seed_and_says_nothing_of_what_does_not_vary():
    values = [0.1, 0.4, 0.9, 0.3]
    assert bootstrap(values, draws=50, seed=3) == bootstrap(values, draws=50, seed=3) != bootstrap(values, draws=50)
    assert bootstrap([1, 1, 1]) is None
    assert bootstrap(values, statistic=lambda sample: float("nan"), draws=3) is None


def test_what_rests_on_one_or_two_units_says_that_it_may_be_too_narrow():
    few = [0.0] * 28 + [0.25, 0.5]
    assert mean_interval(few).method == "modified Wilson; it may be too narrow, since all but 2 of 30 are 0"
    assert mean_interval([1 - value for value in few]).method.endswith("since all but 2 of 30 are 1")
    assert mean_interval([*few, 0.5]).method == "modified Wilson"

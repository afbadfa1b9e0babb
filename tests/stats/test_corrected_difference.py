"""The corrected difference, held against scipy, numeric derivatives, and how often it covers what people say."""

from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats

from judgekit.stats.comparison import paired_interval
from judgekit.stats.corrected_difference import LabeledTasks, corrected_difference
from judgekit.stats.units import Units

TASKS = 200


def ones(random, share, size):
    return (random.random(size) < share).astype(float)


def judge_of(random, truth, sensitivity, specificity):
    return np.where(truth == 1, ones(random, sensitivity, len(truth)), 1 - ones(random, specificity, len(truth)))


def labeled(truth, places):
    return np.where(np.isin(np.arange(len(truth)), places), truth, np.nan)


def half_width(error, freedom, *labels):
    """t, with the variance of one more label for each system, half 0 and half 1."""
    unseen = sum((side.mean() ** 2 + (1 - side.mean()) ** 2) / 2 / len(side) ** 2 for side in labels)
    return scipy.stats.t.isf(0.025, freedom) * np.sqrt(error**2 + unseen)


def test_labels_of_all_tasks_have_the_interval_of_a_paired_t_test():
    random = np.random.default_rng(1)
    a, b = random.random(40), random.random(40)
    found = corrected_difference(LabeledTasks(ones(random, 0.5, 40), a), LabeledTasks(ones(random, 0.5, 40), b))
    half = half_width(scipy.stats.sem(b - a), 39, a, b)
    assert (found.a, found.b) == (pytest.approx(a.mean()), pytest.approx(b.mean()))
    difference = (b - a).mean()
    assert found.interval == (pytest.approx(difference - half), pytest.approx(difference + half), "PPI++")


def test_labels_of_all_tasks_in_groups_have_the_interval_of_a_cluster_robust_t_test():
    random = np.random.default_rng(2)
    a, b, groups = random.random(40), random.random(40), random.integers(0, 12, 40)
    found = corrected_difference(LabeledTasks(b, a), LabeledTasks(a, b), groups)
    half, difference = half_width(Units.of(b - a, groups).standard_error(), 11, a, b), (b - a).mean()
    assert found.interval == (pytest.approx(difference - half), pytest.approx(difference + half), "PPI++, 12 groups")


def estimate(judged, truth, weights, strata, slope):
    """The mean of one system if task i occurs ``weights[i]`` times."""
    total = slope * (weights @ judged)
    for kind in {*strata}:
        part = strata == kind
        known = part & ~np.isnan(truth)
        errors = truth[known] - slope * judged[known]
        total += weights[part].sum() * (weights[known] @ errors) / weights[known].sum()
    return total / weights.sum()


@pytest.mark.parametrize("kinds", [1, 3])
def test_the_variance_is_that_of_numeric_derivatives(kinds):
    random = np.random.default_rng(3)
    truth_a, truth_b = ones(random, 0.6, TASKS), ones(random, 0.7, TASKS)
    judged_a, judged_b = judge_of(random, truth_a, 0.9, 0.7), judge_of(random, truth_b, 0.8, 0.8)
    strata = np.arange(TASKS) % kinds
    places = random.permutation(TASKS)
    truth_a, truth_b = labeled(truth_a, places[:60]), labeled(truth_b, places[30:100])

    def slope(judged, truth):  # weighted by strata, as the docstring says
        known = ~np.isnan(truth)
        weight = np.array([np.mean(strata == one) / np.sum(known & (strata == one)) for one in strata[known]])
        y, f = truth[known], judged[known]
        return weight @ ((y - weight @ y) * (f - weight @ f)) / judged.var()

    slope_a, slope_b = slope(judged_a, truth_a), slope(judged_b, truth_b)

    def difference(weights):
        return estimate(judged_b, truth_b, weights, strata, slope_b) - estimate(
            judged_a, truth_a, weights, strata, slope_a
        )

    step = 1e-4
    moves = [(difference(1 + step * unit) - difference(1 - step * unit)) / (2 * step) for unit in np.eye(TASKS)]
    found = corrected_difference(
        LabeledTasks(judged_a, truth_a, strata=strata), LabeledTasks(judged_b, truth_b, strata=strata)
    )
    assert found.b - found.a == pytest.approx(difference(np.ones(TASKS)))
    half = (found.interval.high - found.interval.low) / 2
    theirs = half_width(np.sqrt(np.square(moves).sum()), 60 - kinds, truth_a[places[:60]], truth_b[places[30:100]])
    assert half == pytest.approx(theirs, rel=0.03)  # Bessel's corrections are left out here
    assert half > theirs


def test_a_judge_that_says_the_opposite_is_left_out():
    random = np.random.default_rng(4)
    truth = ones(random, 0.5, TASKS)
    a, b = labeled(truth, range(50)), labeled(ones(random, 0.7, TASKS), range(60, 120))
    found = corrected_difference(LabeledTasks(1 - truth, a), LabeledTasks(np.ones(TASKS), b))
    assert (found.a, found.b) == (pytest.approx(np.nanmean(a)), pytest.approx(np.nanmean(b)))


def test_a_label_that_does_not_apply_leaves_the_mean_of_the_others():
    random = np.random.default_rng(5)
    truth, judged = ones(random, 0.6, TASKS), np.ones(TASKS)
    labels, applies = labeled(truth, range(0, TASKS, 2)), ones(random, 0.7, TASKS)
    same = labeled(truth, range(1, TASKS, 2))
    found = corrected_difference(LabeledTasks(judged, labels, applies), LabeledTasks(judged, same))
    assert found.a == pytest.approx(np.nanmean(labels[applies == 1]))
    none = LabeledTasks(judged, labels, np.zeros(TASKS))
    assert corrected_difference(none, LabeledTasks(judged, same)) is None


def test_there_is_none_if_labels_say_too_little():
    judged = np.tile([0.0, 1.0], 20)
    some = LabeledTasks(judged, labeled(judged, range(12)))
    assert corrected_difference(some, LabeledTasks(judged, labeled(judged, [3]))) is None
    assert corrected_difference(some, LabeledTasks(judged, np.full(40, np.nan))) is None
    assert corrected_difference(some, some).interval.high == pytest.approx(half_width(0, 11, *[judged[:12]] * 2))
    one_group = np.repeat([0, 1], [12, 28])
    assert corrected_difference(some, LabeledTasks(1 - judged, some.labels), one_group) is None
    lacking = LabeledTasks(judged, labeled(judged, range(0, 12, 2)), strata=judged.astype(int))
    assert corrected_difference(some, lacking) is None  # no label where the judge says 1


def test_other_tasks_and_values_out_of_bounds_are_errors():
    fine = LabeledTasks([0, 1, 1], [0, 1, 0])
    with pytest.raises(ValueError, match="expected 3 labels or NaN"):
        corrected_difference(fine, LabeledTasks([0, 1, 1], [1]))
    with pytest.raises(ValueError, match=r"expected values in \[0, 1\], found 2.0"):
        corrected_difference(fine, LabeledTasks([0, 1, 1], [0, 1, 2]))


def draw_labels(random, design, judged, clusters):
    """Return the places that are labeled in A and in B."""
    units = random.permutation(TASKS // clusters)
    several = (
        np.flatnonzero(np.isin(np.arange(TASKS) // clusters, one))
        for one in (
            units[: 30 // clusters],
            units[{"paired": 0, "overlapping": 15, "disjoint": 30}.get(design, 0) // clusters :][: 30 // clusters],
        )
    )
    if design != "by verdict":
        return several
    return (
        np.concatenate([random.permutation(np.flatnonzero(side == verdict))[:15] for verdict in (0, 1)])
        for side in judged
    )


@pytest.mark.simulations
@pytest.mark.parametrize("design", ["paired", "overlapping", "disjoint", "clustered", "by verdict"])
def test_intervals_cover_what_people_say(design):
    """400 draws of 30 labels of each system; a judge that errs more on B, so that its own interval covers less."""
    random = np.random.default_rng(6)
    clusters = 5 if design == "clustered" else 1
    shares, normal = (0.6, 0.7), NormalDist()
    covered, alone = 0, 0
    for _ in range(400):
        shared = np.repeat(random.normal(size=TASKS // clusters), clusters)
        hard = [(shared + random.normal(size=TASKS)) / np.sqrt(2) for _ in shares]
        truths = [(one < normal.inv_cdf(share)).astype(float) for one, share in zip(hard, shares, strict=True)]
        judged = [judge_of(random, truth, 0.9, well) for truth, well in zip(truths, (0.8, 0.5), strict=True)]
        strata = [one.astype(int) for one in judged] if design == "by verdict" else [None, None]
        sides = [
            LabeledTasks(one, labeled(truth, places), strata=kinds)
            for one, truth, places, kinds in zip(
                judged, truths, draw_labels(random, design, judged, clusters), strata, strict=True
            )
        ]
        groups = np.arange(TASKS) // clusters
        low, high, _ = corrected_difference(*sides, groups).interval
        covered += low <= 0.1 <= high
        low, high, _ = paired_interval(judged[1] - judged[0], groups)
        alone += low <= 0.1 <= high
    assert covered >= 0.93 * 400
    assert alone < 0.88 * 400

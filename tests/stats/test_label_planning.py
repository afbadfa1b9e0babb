"""How many labels are needed, held against published figures of the formula and against simulations."""

from math import inf, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from judgekit.stats.label_planning import labels_needed, labels_to_meet
from judgekit.stats.prediction_powered import ppi_mean

Z = NormalDist().inv_cdf(0.975)


def phi(share, sensitivity, specificity):
    positive = share * sensitivity + (1 - share) * (1 - specificity)
    return (sensitivity + specificity - 1) * sqrt(share * (1 - share) / (positive * (1 - positive)))


def test_without_a_judge_it_is_the_textbook_formula():
    assert labels_needed(0.5, 0, 0.05 / Z, inf) == 385  # z**2 / 4 / 0.05**2, in every textbook
    assert labels_needed(0.7, 0, 0.05 / Z, 1_000) == 323
    assert labels_needed(0.7, -0.9, 0.05 / Z, 1_000) == 323


def test_a_perfect_judge_needs_none_and_too_few_samples_no_number():
    assert labels_needed(0.7, 1, 0.05 / Z, 1_000) == 0
    assert labels_needed(0.7, 0.9, 0.05 / Z, 100) is None
    assert labels_needed(0.5, 0, 0.05 / Z, 384) is None


@pytest.mark.simulations
@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.95, 0.95), (0.9, 0.7), (0.8, 0.6)])
def test_with_that_many_labels_the_interval_is_as_wide_as_wanted(sensitivity, specificity):
    """The mean half-width over 300 draws, with t for z and Bessel's corrections: at most a tenth off."""
    n = labels_needed(0.7, phi(0.7, sensitivity, specificity), 0.075 / Z, 1_000)
    random, halves = np.random.default_rng(1), []
    for _ in range(300):
        truth = random.random(1_000) < 0.7
        judged = np.where(truth, random.random(1_000) < sensitivity, random.random(1_000) > specificity).astype(float)
        found = ppi_mean(truth[:n].astype(float), judged[:n], judged[n:], bounded=False)
        halves.append((found.interval.high - found.interval.low) / 2)
    assert np.mean(halves) == pytest.approx(0.075, rel=0.1)


def test_too_few_samples_cannot_meet_a_goal():
    assert labels_to_meet(lambda mean: mean.interval.low >= 0.6, 0.7, 0.7, 0.5, 60) is None
    assert labels_to_meet(lambda mean: True, 0.7, 0.7, 0.5, 9) is None
    assert labels_to_meet(lambda mean: True, 0.7, 0.7, 0.5, 12) == 10


@pytest.mark.simulations
@pytest.mark.parametrize(
    ("share", "bound", "samples"), [(0.97, 0.87, 1_500), (0.97, 0.9, 300), (0.9, 0.8, 1_500), (0.75, 0.65, 300)]
)
def test_after_that_many_labels_a_goal_is_met_as_often_as_was_promised(share, bound, samples):
    """In 600 draws apart from those of the plan: 80 %, give or take three standard errors and the plan's precision."""
    sensitivity, specificity = 0.9, 0.8
    judged_share = share * sensitivity + (1 - share) * (1 - specificity)

    def is_met(mean):
        return mean.interval.low >= bound

    n = labels_to_meet(is_met, share, judged_share, phi(share, sensitivity, specificity), samples)
    random, met = np.random.default_rng(11), 0
    for _ in range(600):
        human = random.random(samples) < share
        judged = np.where(human, random.random(samples) < sensitivity, random.random(samples) > specificity).astype(
            float
        )
        met += is_met(ppi_mean(human[:n].astype(float), judged[:n], judged[n:]))
    assert 0.75 <= met / 600 <= 0.85

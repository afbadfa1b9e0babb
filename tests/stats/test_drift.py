"""Drift of a judge: the arithmetic of its test, its false alarms and what it detects."""

from itertools import product
from math import log

import numpy as np
import pytest

from judgekit.stats.drift import ALARM, any_change, detect_drift, detection_rate, e_value, net_shift


def test_the_e_value_of_a_uniform_p_is_1_on_average():
    steps = np.exp(np.linspace(log(1e-250), 0, 200_001))
    heights = np.array([e_value(p) for p in steps.tolist()])
    assert np.sum(np.diff(steps) * (heights[1:] + heights[:-1]) / 2) == pytest.approx(1, abs=0.003)
    assert e_value(1) == 0.5
    assert e_value(0.1) == pytest.approx((0.9 + 0.1 * log(0.1)) / (0.1 * log(0.1) ** 2))
    assert e_value(1 - 1e-4) == pytest.approx(e_value(1 - 1.001e-4), abs=1e-7)
    assert e_value(0) > 1e200


def test_a_net_shift_counts_all_ways_in_which_the_newest_may_be_drawn():
    """Of 1 of 4 and 1 of 2 draws that pass, the newest pass in 1/4 * 1/2 and fail in 3/4 * 1/2 of the ways."""
    passed, mixed = {0.0: 3, 1.0: 1}, {0.0: 1, 1.0: 1}
    assert net_shift([(passed, 1.0), (mixed, 1.0)]) == pytest.approx(1 / 8)
    assert net_shift([(passed, 0.0), (mixed, 0.0)]) == pytest.approx(1 / 8 + 3 / 8)
    assert net_shift([(passed, 0.0), (mixed, 1.0), ({1.0: 5}, 1.0)]) == pytest.approx(1)
    assert net_shift([]) == 1
    assert net_shift([({-1.0: 1, 1.0: 3}, -1.0)]) == 1


def test_any_change_counts_what_is_as_unusual():
    passed, others = {0.0: 3, 1.0: 1}, {0.0: 1, 1.0: 3}
    assert any_change([(passed, 1.0), (others, 0.0)]) == pytest.approx(1 / 16)
    assert any_change([(passed, 1.0), (others, 1.0)]) == pytest.approx(1 / 16 + 2 * 3 / 16)
    assert any_change([({-1.0: 1, 1.0: 3}, -1.0)]) == pytest.approx(1 / 4)
    assert any_change([({0.5: 2, 0.51: 2}, 0.5)]) == 1


def test_p_of_scales_and_numbers_agree_with_enumeration():
    random = np.random.default_rng(3)
    for scale in ([0, 0.25, 0.5, 0.75, 1], [0.1, 0.33, 0.87]):
        rows = random.choice(scale, (4, 5))
        pairs = [(dict(zip(*np.unique(row, return_counts=True), strict=True)), float(row[-1])) for row in rows]
        sums = np.array([sum(draw) for draw in product(*rows)])
        distances = abs(sums - sums.mean())
        expected = np.mean(distances >= abs(rows[:, -1].sum() - sums.mean()) - 1e-9)
        assert net_shift(pairs) == pytest.approx(expected)


def test_the_detector_is_the_shiryaev_roberts_sum():
    draws = [[0, 0, 0, 0, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 1], [0, 0, np.nan, -1, 0]]
    seen = detect_drift(draws)
    first = [({0.0: 2, 1.0: 2}, 1.0), ({0.0: 2, -1.0: 1}, -1.0)]
    second = [({0.0: 4, 1.0: 1}, 1.0), ({0.0: 2, 1.0: 3}, 1.0), ({0.0: 3, -1.0: 1}, 0.0)]
    one, two = ((e_value(net_shift(pairs)) + e_value(any_change(pairs))) / 2 for pairs in (first, second))
    assert seen.detector == pytest.approx([one, (one + 1) * two])
    assert seen.alarm is None


def test_an_alarm_names_the_draw_with_which_the_change_began():
    before = np.tile([0.0, 1.0], 20)
    draws = np.stack([before] * 8 + [1 - before * (np.arange(40) < 30)] * 3, axis=1)
    seen = detect_drift(draws)
    assert (seen.alarm, seen.since) == (8, 8)
    assert seen.detector[-1] >= ALARM
    few = np.stack([before] * 11 + [before + (np.arange(40) == 0)] * 9, axis=1)
    assert detect_drift(few).alarm is None
    some = np.stack([before] * 8 + [before + ((np.arange(40) < 6) & (before == 0))] * 9, axis=1)
    assert detect_drift(some).since == 8
    assert detect_drift(some).alarm > 8


def test_a_failed_draw_is_no_evidence():
    before = np.tile([[0.0], [1.0]], (20, 6))
    detector = detect_drift(np.hstack([before, np.full((40, 4), np.nan)])).detector
    assert detector[3:] == pytest.approx([(detector[2] + 1) / 2, (detector[2] + 3) / 4, (detector[2] + 7) / 8, (detector[2] + 15) / 16])  # fmt: skip


@pytest.mark.parametrize("draws", [[0.0, 1.0], [[0.0, 1.5]], [[0.0, -0.5]]])
def test_a_table_of_other_numbers_is_refused(draws):
    with pytest.raises(ValueError, match="expected a row per anchor"):
        detect_drift(draws)


def draws_of(random, anchors, draws, noisy, turned=0.0, checks=0):
    """Verdicts of a judge that wavers on a share of the anchors, and turns on another share after these draws."""
    passing = (np.arange(anchors) % 2).astype(float)
    wavering = random.choice(anchors, round(noisy * anchors), replace=False)
    passing[wavering] = random.uniform(0.1, 0.9, len(wavering))
    before = random.random((anchors, draws)) < passing[:, np.newaxis]
    turning = random.choice(anchors, round(turned * anchors), replace=False)
    passing[turning] = 1 - passing[turning]
    return np.hstack([before, random.random((anchors, checks)) < passing[:, np.newaxis]]).astype(float)


@pytest.mark.simulations
@pytest.mark.parametrize("draws", [3, 7])
def test_the_detection_rate_is_that_of_judges_that_waver_as_much(draws):
    random = np.random.default_rng(4)
    real = [detect_drift(draws_of(random, 80, draws, 0.23, 0.1, 4), baseline=draws).alarm for _ in range(200)]
    guessed = [detection_rate(draws_of(random, 80, draws, 0.23), runs=20, seed=seed) for seed in range(10)]
    assert np.mean(guessed) == pytest.approx(np.mean([alarm is not None for alarm in real]), abs=0.1)


def test_more_draws_before_a_change_make_it_easier_to_detect():
    random = np.random.default_rng(6)
    rates = [detection_rate(draws_of(random, 80, draws, 0.23), runs=40) for draws in (3, 7, 11)]
    assert rates == sorted(rates)
    assert rates[0] < 0.3
    assert rates[2] > 0.9
    assert detection_rate(np.full((4, 1), -1.0), runs=1) == 0


@pytest.mark.simulations
@pytest.mark.parametrize("noisy", [0.23, 1.0])
def test_a_judge_that_does_not_change_seldom_raises_an_alarm(noisy):
    """In half a year of weekly checks; one alarm in 100 checks would be 26 in 100."""
    random = np.random.default_rng(7)
    alarms = [detect_drift(draws_of(random, 80, 29, noisy)).alarm for _ in range(80)]
    assert np.mean([alarm is not None for alarm in alarms]) < 0.1


@pytest.mark.simulations
def test_alarms_stay_rare_in_the_long_run():
    """On values of a scale as well: 100 checks, of which at most one may raise an alarm, on average."""
    random, alarms = np.random.default_rng(8), 0
    for _ in range(20):
        chances = random.dirichlet(np.full(5, 0.3), 40)
        draws = np.stack([random.choice(5, 103, p=row) / 4 for row in chances])
        alarms += detect_drift(draws).alarm is not None
    assert alarms < 6

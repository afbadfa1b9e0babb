"""Tests of improvement: their arithmetic, and how often they are wrong."""

import math

import numpy as np
import pytest

from judgekit.stats.comparison import sign_flip
from judgekit.stats.improvement import detectable_gain, look_level, mcnemar_mid_p, sign_flip_gain


@pytest.mark.parametrize(("gain", "discordant", "n"), [(0.05, 0.15, 369), (0.10, 0.15, 91), (0.10, 0.20, 122), (0.15, 0.20, 53), (0.20, 0.25, 37)])  # fmt: skip
def test_detectable_gain_agrees_with_connors_formula(gain: float, discordant: float, n: int) -> None:
    assert detectable_gain(n, discordant) == pytest.approx(gain, rel=0.01)


def test_detectable_gain_assumes_that_a_gain_needs_samples_that_differ() -> None:
    assert detectable_gain(55, 0.0) == pytest.approx(0.108, abs=0.003)
    assert detectable_gain(1, 0.5) is None


def test_mcnemar_mid_p_counts_half_of_as_many() -> None:
    assert mcnemar_mid_p(7, 4) == pytest.approx(sum(math.comb(11, more) for more in range(8, 12)) / 2**11 + math.comb(11, 7) / 2**12)  # fmt: skip
    assert mcnemar_mid_p(0, 0) == 0.5
    assert mcnemar_mid_p(4, 0) == pytest.approx(1 / 32)


def test_mcnemar_mid_p_of_both_directions_sums_to_one() -> None:
    assert mcnemar_mid_p(9, 3) + mcnemar_mid_p(3, 9) == pytest.approx(1)


def test_a_sign_flip_test_of_a_gain_is_one_side_of_that_of_a_difference() -> None:
    gains = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=60, p=[0.1, 0.7, 0.2])
    assert sign_flip_gain(gains) == pytest.approx(sign_flip(gains) / 2, abs=0.03)
    assert sign_flip_gain(-gains) > 0.9
    assert sign_flip_gain(np.zeros(20)) == 1.0


def test_a_sign_flip_test_of_a_gain_flips_a_group_together() -> None:
    gains = [1.0] * 10 + [0.0] * 10
    assert sign_flip_gain(gains) < 0.005
    assert sign_flip_gain(gains, ["task"] * 10 + [None] * 10) == pytest.approx(0.5, abs=0.02)


def test_later_looks_have_ever_lower_levels() -> None:
    assert look_level(1) == 0.05
    assert look_level(2) == pytest.approx(0.05 / 6)
    assert sum(look_level(look) for look in range(1, 10_000)) < 0.075

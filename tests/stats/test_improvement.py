"""Tests of improvement: their arithmetic, and how often they are wrong."""

import math

import numpy as np
import pytest

from judgekit.stats.comparison import sign_flip
from judgekit.stats.improvement import detectable_gain, look_level, max_t, mcnemar_mid_p


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


def test_max_t_of_one_candidate_is_a_sign_flip_test() -> None:
    gains = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=60, p=[0.1, 0.7, 0.2])
    assert max_t([gains], two_sided=True).p == pytest.approx(sign_flip(gains), abs=0.01)
    assert max_t([gains]).p == pytest.approx(sign_flip(gains) / 2, abs=0.03)


def test_max_t_flips_a_group_together() -> None:
    gains = [1.0] * 10 + [0.0] * 10
    alone = max_t([gains])
    together = max_t([gains], ["task"] * 10 + [None] * 10)
    assert alone.p < 0.005
    assert together.p == pytest.approx(0.5, abs=0.02)


def test_max_t_finds_the_best_and_adjusts_each() -> None:
    dice = np.random.default_rng(0)
    table = dice.choice([-1.0, 0.0, 1.0], size=(5, 80), p=[0.1, 0.8, 0.1])
    table[3] = dice.choice([-1.0, 0.0, 1.0], size=80, p=[0.02, 0.68, 0.3])
    found = max_t(table)
    assert found.best == 3
    assert found.p == found.adjusted[3] == found.adjusted.min() < 0.01
    assert max_t(table[[3]]).p <= found.p


def test_a_candidate_that_changes_nothing_is_no_improvement() -> None:
    assert max_t(np.zeros((3, 20))).p == 1.0


def test_max_t_of_equal_candidates_seldom_rejects() -> None:
    dice = np.random.default_rng(0)
    shared = dice.choice([-1, 0, 1], size=(500, 1, 60), p=[0.1, 0.8, 0.1])
    own = dice.choice([-1, 0, 1], size=(500, 8, 60), p=[0.1, 0.8, 0.1])
    rejected = sum(max_t(table, draws=999).p < 0.05 for table in np.where(dice.random((500, 8, 60)) < 0.5, shared, own))
    assert rejected <= 35  # 5 % and two standard errors


@pytest.mark.parametrize("gains", [[], [[]], [1.0], [[np.nan]]])
def test_max_t_needs_a_table(gains: list[object]) -> None:
    with pytest.raises(ValueError, match="expected a row of finite gains"):
        max_t(gains)  # pyright: ignore[reportArgumentType]


def test_later_looks_have_ever_lower_levels() -> None:
    assert look_level(1) == 0.05
    assert look_level(2) == pytest.approx(0.05 / 6)
    assert sum(look_level(look) for look in range(1, 10_000)) < 0.075

"""Variance components, held against a published example, statsmodels, and what was put in."""

import numpy as np
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from judgekit.stats.components import VarianceComponents, variance_components

NAN = float("nan")

# Brennan 2001, "Generalizability Theory", synthetic data set 1: 10 persons who answer 12 questions
ANSWERS = (
    "101000000000 111001000000 111110000000 110110010000 111110100000 "
    "111011100000 111111100000 111101111100 111111111110 111111111111"
)


def test_the_components_of_a_crossed_design_are_those_that_brennan_printed():
    values = np.array([[float(one) for one in person] for person in ANSWERS.split()])
    found = variance_components(values[:, :, np.newaxis])
    assert (found.item, found.prompt, found.interaction) == pytest.approx((0.0574, 0.0754, 0.1269), abs=5e-5)
    assert (found.repeat, found.negative) == (None, ())
    dependability = found.item / (found.item + (found.prompt + found.interaction) / 12)
    assert dependability == pytest.approx(0.773, abs=5e-4)


def test_with_one_prompt_they_are_those_of_a_mixed_model():
    random = np.random.default_rng(3)
    values = random.normal(0, 0.4, (30, 1, 1)) + random.normal(0, 0.3, (30, 1, 5))
    theirs = MixedLM(values.ravel(), np.ones(150), np.arange(30).repeat(5)).fit(reml=True)
    found = variance_components(values)
    assert found.item == pytest.approx(float(theirs.cov_re[0, 0]), rel=1e-4)
    assert found.repeat == pytest.approx(theirs.scale, rel=1e-4)
    assert (found.prompt, found.interaction) == (None, None)


def test_with_prompts_and_repeats_they_are_those_of_the_table_of_mean_squares():
    # items a and b, prompts p and q, two repeats: means 0.5 0.0 / 1.0 0.5, all means 0.5
    values = [[[0.25, 0.75], [0, 0]], [[1, 1], [0.25, 0.75]]]
    # mean squares (of single values): items 4 * 2 * 0.25**2 = 0.5, prompts the same, interaction 0, repeats 0.25 / 4
    found = variance_components(values)
    assert (found.item, found.prompt) == pytest.approx((0.5 / 4, 0.5 / 4))
    assert (found.interaction, found.repeat) == (0, 0.0625)  # (0 - 0.0625) / 2 is below 0
    assert found.negative == ("interaction",)


@pytest.mark.simulations
@pytest.mark.parametrize("missing", [0, 0.3])
def test_what_was_put_in_is_found_on_average_also_where_repeats_are_missing(missing):
    random = np.random.default_rng(8)
    put_in = {"item": 0.5, "prompt": 0.2, "interaction": 0.3, "repeat": 0.4}
    found = []
    for _ in range(800):
        shapes = {"item": (20, 1, 1), "prompt": (1, 6, 1), "interaction": (20, 6, 1), "repeat": (20, 6, 4)}
        values = sum(random.normal(0, np.sqrt(put_in[name]), shape) for name, shape in shapes.items())
        gone = random.random(values.shape) < missing
        gone[:, :, 0] = False
        values[gone] = NAN
        found.append([getattr(variance_components(values), name) for name in put_in])
    errors = np.std(found, axis=0) / np.sqrt(800)
    assert (np.abs(np.mean(found, axis=0) - list(put_in.values())) < 4 * errors).all()


def test_an_item_without_a_verdict_of_each_prompt_is_left_out_and_counted():
    values = np.random.default_rng(2).random((6, 2, 3))
    whole = variance_components(values[:5])
    values[5, 1] = NAN
    found = variance_components(values)
    assert found.excluded_items == 1
    assert found == VarianceComponents(**{**vars(whole), "excluded_items": 1})


@pytest.mark.parametrize(
    "values", [np.ones((5, 1, 1)), np.ones((1, 2, 2)), np.full((4, 2, 2), NAN), np.ones((0, 2, 2)), np.ones((4, 0, 2))]
)
def test_without_a_second_item_or_a_second_verdict_there_is_no_variance(values):
    assert variance_components(values) is None


def test_a_judge_that_repeats_itself_has_no_noise():
    values = np.array([0.0, 1, 1, 0, 0.1]).reshape(5, 1, 1).repeat(3, axis=2)
    found = variance_components(values)
    assert (found.repeat, found.negative) == (0, ())


@pytest.mark.parametrize("values", [[[1, 2]], [[[1, float("inf")]]], 1])
def test_what_are_no_verdicts_is_refused(values):
    with pytest.raises(ValueError, match=r"of shape \(items, prompts, repeats\)"):
        variance_components(values)

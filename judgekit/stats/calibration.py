"""Calibration of confidence: measuring its error, and correcting it."""

import numpy as np
from numpy.typing import ArrayLike

from judgekit.stats.units import check_same_length, check_within


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> float | None:
    """Return the mean gap of confidence and accuracy: sum of n_b / n * |mean confidence - mean correct| over bins.

    Bins have equal width and are closed above: (0, 0.1], (0.1, 0.2] and so on, with 0 in the first. A judge's
    confidence is often a share of few repeats or votes: bins of equal counts would split equal values, and would differ
    between judges. Source: Naeini, Cooper and Hauskrecht 2015, https://doi.org/10.1609/aaai.v29i1.9602.

    It is biased upwards for few samples, because the absolute value in each bin keeps random error: with m samples in a
    bin, a perfectly calibrated judge that is right half of the time shows about 0.4 / sqrt(m) (Roelofs et al. 2022,
    https://arxiv.org/abs/2012.08668). It is 0 for a judge that always reports its overall accuracy, although that does
    not separate right verdicts from wrong ones.

    Args:
        confidence: The probability, in [0, 1], that a verdict is right.
        correct: 1 for a right verdict, 0 for a wrong one, or the share of people who agree.
        bins: The number of bins.

    Returns:
        ``None`` if there are no samples.

    Raises:
        ValueError: A value is not in [0, 1], the lists differ in length, or there is no bin.
    """
    if bins < 1:
        raise ValueError(f"expected 1 or more bins, found {bins}")
    confidences, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    check_same_length(confidences, right)
    for numbers in (confidences, right):
        check_within(numbers, 0, 1)
    if not len(right):
        return None
    bin_of = np.searchsorted(np.arange(1, bins) / bins, confidences, side="left")
    return float(np.abs(np.bincount(bin_of, weights=confidences - right)).sum() / len(right))

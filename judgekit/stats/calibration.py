"""Confidence that means what it says: how far it is from how often the judge is right, and how to bring it there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgekit.stats.units import must_be_pairs, must_be_within


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> float | None:
    """How far confidence is from accuracy, on average: the sum over bins of n_b / n * |mean confidence - mean correct|.

    Bins are of equal width, closed above: (0, 0.1], (0.1, 0.2] and so on, the first with its 0. A judge's confidence is
    often a share of few draws or votes: bins of equal counts would cut through values that are the same, and be other
    bins for every judge. Source: Naeini, Cooper and Hauskrecht 2015, https://doi.org/10.1609/aaai.v29i1.9602.

    It is too high for few samples, as in every bin the absolute value keeps what is chance: with m samples in a bin, a
    perfectly calibrated judge that is right half of the time shows some 0.4 / sqrt(m) (Roelofs et al. 2022,
    https://arxiv.org/abs/2012.08668). It is 0 for a judge that knows nothing and says how often it is right.

    Args:
        confidence: The probability, in [0, 1], that a verdict is right.
        correct: 1 where it was, 0 where not, or the share of people who agree.
        bins: How many bins [0, 1] is cut into.

    Returns:
        ``None`` where there are no samples.

    Raises:
        ValueError: A value is not in [0, 1], the lists are not of one length, or there is no bin.
    """
    if bins < 1:
        raise ValueError(f"expected 1 bin or more, found {bins}")
    confidences, right = _checked(confidence, correct)
    if not len(right):
        return None
    bin_of = np.searchsorted(np.arange(1, bins) / bins, confidences, side="left")
    return float(np.abs(np.bincount(bin_of, weights=confidences - right)).sum() / len(right))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A curve that never falls: ``levels`` at the confidences ``knots``, straight between them and flat beyond."""

    knots: NDArray[np.float64]
    levels: NDArray[np.float64]

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """What each confidence is worth: how often verdicts of this confidence are right."""
        return np.interp(np.asarray(confidence, np.float64), self.knots, self.levels)


def isotonic(confidence: ArrayLike, correct: ArrayLike) -> Isotonic | None:
    """The curve from confidence to accuracy that never falls and is nearest to what was seen, in least squares.

    Found by pooling adjacent violators (Ayer et al. 1955, https://doi.org/10.1214/aoms/1177728423; for calibration:
    Zadrozny and Elkan 2002, https://doi.org/10.1145/775047.775151). Assumes only that verdicts of more confidence are
    no less often right. It needs some hundred labels; the error of calibration that is left must be measured on other
    samples than those it was found from, where it is 0 or nearly so. Its ends, which rest on few samples, may well be 0
    and 1.

    Returns:
        ``None`` where there are no samples.

    Raises:
        ValueError: A value is not in [0, 1], or the lists are not of one length.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - slow to import

    confidences, right = _checked(confidence, correct)
    if not len(right):
        return None
    knots, of, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    return Isotonic(knots, isotonic_regression(np.bincount(of, weights=right) / counts, weights=counts).x)


def _checked(confidence: ArrayLike, correct: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    must_be_pairs(*found)
    for values in found:
        must_be_within(values, 0, 1)
    return found

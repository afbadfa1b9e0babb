"""Correction of a share for misclassification, by known error rates."""

from math import sqrt
from typing import NamedTuple

from judgekit.stats.quantiles import normal_quantile
from judgekit.stats.wilson import Interval, wilson


class RoganGladen(NamedTuple):
    """The share of positives corrected for errors, and the informativeness of the verdicts.

    ``value`` and ``interval`` are ``None`` if ``youden_interval`` is not entirely above 0, because dividing by it could
    give anything, and if no share at all is consistent with the verdicts, because the error rates must then have been
    different among them.

    Attributes:
        value: The corrected share.
        interval: Its confidence interval.
        youden: Sensitivity + specificity - 1: 1 without errors, 0 if positives and negatives get a positive verdict
            equally often.
        youden_interval: Its confidence interval.
    """

    value: float | None
    interval: Interval | None
    youden: float
    youden_interval: Interval


def rogan_gladen(
    positives: int, n: int, tp: float, fp: float, fn: float, tn: float, *, level: float = 0.95
) -> RoganGladen | None:
    """Return the true share behind ``positives`` of ``n`` verdicts, corrected by known error rates.

    The value is (share + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]. Source: Rogan and
    Gladen 1978, https://doi.org/10.1093/oxfordjournals.aje.a112510. Its interval is that of Lang and Reiczigel 2014,
    https://doi.org/10.1016/j.prevetmed.2013.09.015, equations 6, 7, 15 to 17, recommended for judges by Lee et al.
    2025, https://arxiv.org/abs/2511.21140: z**2 / 2 successes and failures are added to the verdicts, and one of each
    to sensitivity and specificity, so that it has a width even if no error was observed. It is clipped to [0, 1] and
    extended to include the value. The interval of Youden's J is Newcombe's for a difference of two shares (1998, method
    10, https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I).

    A known item on which people disagree counts for both sides by their shares, 1/2 each for an even split. Its halves
    are treated as independent, which makes the interval wider than necessary, but not narrower.

    Verdicts are assumed to be independent, with the same sensitivity and specificity in both sets; the share of
    positives among the known ones does not matter. If the verdicts are hardly informative, most draws of known ones are
    rejected, and those accepted are lucky: their intervals cover the share less often than ``level``, although few of
    all draws miss it.

    Args:
        positives: The number of positive verdicts to correct.
        n: The number of verdicts to correct.
        tp: Known positives with a positive verdict.
        fp: Known negatives with a positive verdict.
        fn: Known positives with a negative verdict.
        tn: Known negatives with a negative verdict.
        level: The confidence level of the intervals.

    Returns:
        ``None`` if there are no verdicts, no known positives or no known negatives.

    Raises:
        ValueError: A count is below 0, or there are more positives than verdicts.
    """
    if not 0 <= positives <= n:
        raise ValueError(f"expected 0 to {n} positives, found {positives}")
    if min(tp, fp, fn, tn) < 0:
        raise ValueError(f"expected counts of 0 or more, found {(tp, fp, fn, tn)}")
    sensitive, specific = wilson(tp, tp + fn, level=level), wilson(tn, tn + fp, level=level)
    if n == 0 or sensitive is None or specific is None:
        return None
    sensitivity, specificity = tp / (tp + fn), tn / (tn + fp)
    youden = sensitivity + specificity - 1
    youden_interval = Interval(
        youden - sqrt((sensitivity - sensitive.low) ** 2 + (specificity - specific.low) ** 2),
        youden + sqrt((sensitive.high - sensitivity) ** 2 + (specific.high - specificity) ** 2),
        "Newcombe",
    )
    refused = RoganGladen(None, None, youden, youden_interval)
    if youden_interval.low <= 0:
        return refused
    low, high = _smoothed(positives, n, tp, fp, fn, tn, level)
    if high < 0 or low > 1:
        return refused
    value = min(1.0, max(0.0, (positives / n + specificity - 1) / youden))
    interval = Interval(max(0.0, min(low, value)), min(1.0, max(high, value)), "Lang and Reiczigel")
    return RoganGladen(value, interval, youden, youden_interval)


def _smoothed(positives: int, n: int, tp: float, fp: float, fn: float, tn: float, level: float) -> tuple[float, float]:
    """Return the bounds by Lang and Reiczigel, which may lie outside [0, 1]."""
    z = normal_quantile((1 + level) / 2)
    all_, positive, negative = n + z * z, tp + fn + 2, tn + fp + 2
    share, sensitivity, specificity = (positives + z * z / 2) / all_, (tp + 1) / positive, (tn + 1) / negative
    youden = sensitivity + specificity - 1
    value = (share + specificity - 1) / youden
    of_sensitivity = sensitivity * (1 - sensitivity) / positive
    of_specificity = specificity * (1 - specificity) / negative
    # equation 4 is misprinted with (1 + value) ** 2
    variance = share * (1 - share) / all_ + value**2 * of_sensitivity + (1 - value) ** 2 * of_specificity
    center = value + 2 * z * z * (value * of_sensitivity - (1 - value) * of_specificity)
    half = z * sqrt(variance) / youden
    return center - half, center + half

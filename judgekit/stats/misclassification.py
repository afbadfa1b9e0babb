"""A share that is counted with errors, set right by how often they are made."""

from math import sqrt
from typing import NamedTuple

from judgekit.stats.intervals import Interval, wilson
from judgekit.stats.quantiles import normal_quantile


class RoganGladen(NamedTuple):
    """The share of positives behind verdicts with errors, and how much the verdicts tell.

    ``youden`` is sensitivity + specificity - 1: 1 where no error is made, 0 where positives and negatives get a positive
    verdict equally often. ``value`` and ``interval`` are ``None`` where ``youden_interval`` does not lie above 0, for a
    division by it could give anything; and where it does, but no share at all goes with the verdicts, so that errors
    must have been made at other rates among them.
    """

    value: float | None
    interval: Interval | None
    youden: float
    youden_interval: Interval


def rogan_gladen(
    positives: int, n: int, tp: float, fp: float, fn: float, tn: float, *, level: float = 0.95
) -> RoganGladen | None:
    """The true share behind ``positives`` of ``n`` verdicts, by the errors in other verdicts whose truth is known.

    The value is (share + specificity - 1) / (sensitivity + specificity - 1), cut to [0, 1]. Source: Rogan and Gladen 1978,
    https://doi.org/10.1093/oxfordjournals.aje.a112510. Its interval is that of Lang and Reiczigel 2014,
    https://doi.org/10.1016/j.prevetmed.2013.09.015, equations 6, 7, 15 to 17, advised for judges by Lee et al. 2025,
    https://arxiv.org/abs/2511.21140: z**2 / 2 successes and failures are added to the verdicts, and one of each to
    sensitivity and specificity, so that it has a width where no error was seen. It is cut to [0, 1] and reaches to the
    value. That of Youden's J is Newcombe's for a difference of two shares (1998, method 10,
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I).

    A known one of which people say different things counts for both by the share of each, 1/2 for a split of two. Its two
    halves are then taken as independent, which makes the interval wider than it need be, and not narrower.

    Assumes independent verdicts, and that sensitivity and specificity are the same in both sets; how many of the known
    ones are positive does not matter. Where verdicts tell little, most draws of known ones are refused, and what passes
    owes it to luck: of these intervals fewer cover the share than ``level``, though of all draws few miss it.

    Args:
        positives: How many of the verdicts to be set right are positive.
        n: How many there are.
        tp: Known positives with a positive verdict.
        fp: Known negatives with a positive verdict.
        fn: Known positives with a negative verdict.
        tn: Known negatives with a negative verdict.
        level: How often the intervals cover.

    Returns:
        ``None`` where there are no verdicts, no known positives or no known negatives.

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
    """The bounds by Lang and Reiczigel, which may lie outside [0, 1]."""
    z = normal_quantile((1 + level) / 2)
    all_, positive, negative = n + z * z, tp + fn + 2, tn + fp + 2
    share, sensitivity, specificity = (positives + z * z / 2) / all_, (tp + 1) / positive, (tn + 1) / negative
    youden = sensitivity + specificity - 1
    value = (share + specificity - 1) / youden
    of_sensitivity = sensitivity * (1 - sensitivity) / positive
    of_specificity = specificity * (1 - specificity) / negative
    # their equation 4 is printed with (1 + value) ** 2, which is a misprint
    variance = share * (1 - share) / all_ + value**2 * of_sensitivity + (1 - value) ** 2 * of_specificity
    centre = value + 2 * z * z * (value * of_sensitivity - (1 - value) * of_specificity)
    half = z * sqrt(variance) / youden
    return centre - half, centre + half

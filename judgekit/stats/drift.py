"""Drift of a judge: whether its newest verdicts on the same recordings differ from all earlier ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import gcd, isnan, log
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALARM = 100.0
"""The detector at which a judge counts as changed: on average, at least so many checks to a false alarm."""
BASELINE = 3
"""The number of draws before the first check."""
_HUNDREDTHS, _QUARTERS, _STEPS = 100, 4, 20
_LEAST_P = 1e-300
_NEAR = 1e-4
_ROUNDING = 1e-9
_NO_VALUE = -1
_WAVERING = 0.1, 0.9
_SIMULATED = 200

Verdicts: TypeAlias = Mapping[float, int]
"""How often each verdict was given about one anchor; -1 stands for verdicts without a value."""


class Drift(NamedTuple):
    """The evidence that a judge has changed.

    Attributes:
        detector: The detector after each check, until the first alarm.
        alarm: The draw, from 0, whose check raised the alarm; ``None`` if none did.
        since: The draw with which the change most likely began; ``None`` without an alarm.
    """

    detector: Sequence[float]
    alarm: int | None = None
    since: int | None = None


def detect_drift(draws: ArrayLike, *, baseline: int = BASELINE) -> Drift:
    """Return the evidence that a judge, which is asked about the same anchors again and again, has changed.

    If it has not, the newest verdict on an anchor is equally likely to be any of its verdicts so far. From this follow
    the exact p of a `net_shift` and of `any_change`. An `e_value` bets on each, and the mean e of both updates the
    detector: D = (D + 1) e, from 0. At `ALARM`, the judge counts as changed. Source: Shiryaev-Roberts e-detectors, Shin,
    Ramdas and Rinaldo 2024, https://arxiv.org/abs/2203.03532.

    It is assumed that verdicts are independent, so nothing may be cached, and that failures do not depend on verdicts.

    Args:
        draws: A row per anchor, a column per draw: numbers from 0 to 1, -1 for a verdict without a value, NaN for none.
        baseline: The number of draws before the first check, at least 1.

    Raises:
        ValueError: The draws are not such a table.
    """
    table = np.asarray(draws, np.float64)
    is_valid = np.isnan(table) | (table == _NO_VALUE) | ((table >= 0) & (table <= 1))
    if table.ndim != 2 or baseline < 1 or not is_valid.all():
        raise ValueError(
            "expected a row per anchor of numbers from 0 to 1, -1 or NaN, and a baseline of 1 draw or more"
        )
    earlier = [Counter[float](row[~np.isnan(row)].tolist()) for row in table[:, :baseline]]
    detector: list[float] = []
    logs: list[float] = []
    for check in range(baseline, table.shape[1]):
        newest = {anchor: verdict for anchor, verdict in enumerate(table[:, check].tolist()) if not isnan(verdict)}
        for anchor, verdict in newest.items():
            earlier[anchor][verdict] += 1
        pairs = [(earlier[anchor], verdict) for anchor, verdict in newest.items()]
        evidence = (e_value(net_shift(pairs)) + e_value(any_change(pairs))) / 2
        detector.append(((detector[-1] if detector else 0.0) + 1) * evidence)
        logs.append(log(evidence))
        if detector[-1] >= ALARM:
            strength = np.cumsum(logs[::-1])[::-1]  # of all checks from each one on
            return Drift(detector, check, baseline + int(np.argmax(strength)))
    return Drift(detector)


def e_value(p: float) -> float:
    """Return the evidence of a p, (1 - p + p log p) / (p log(p)**2): at most 1 on average if nothing has changed.

    It is the mean of k p**(k - 1) over all k from 0 to 1: Vovk and Wang 2021, https://doi.org/10.1214/20-AOS2020.
    """
    p = max(p, _LEAST_P)
    if 1 - p < _NEAR:
        return 1 / 2 + (1 - p) / 6  # by its series, since the formula would lose its digits
    return (1 - p + p * log(p)) / (p * log(p) ** 2)


def net_shift(pairs: Iterable[tuple[Verdicts, float]]) -> float:
    """Return the exact p, two-sided, of the sum of the newest values, in hundredths.

    Args:
        pairs: For each anchor, how often each verdict was given so far, and the newest one, which is included.
    """
    anchors: list[tuple[Mapping[int, int], int]] = []
    for verdicts, newest in pairs:
        if newest != _NO_VALUE:
            counts = Counter[int]()
            for verdict, times in verdicts.items():
                if verdict != _NO_VALUE:
                    counts[round(_HUNDREDTHS * verdict)] += times
            anchors.append((counts, round(_HUNDREDTHS * newest)))
    chances, total = _sum_of_random_ones(anchors)
    sums = np.arange(len(chances))
    distance: NDArray[np.float64] = np.abs(sums - float(np.dot(chances, sums)))
    return float(chances[distance >= distance[total] - _ROUNDING].sum())


def any_change(pairs: Iterable[tuple[Verdicts, float]]) -> float:
    """Return the exact p of how unusual the newest verdicts are: of the sum of -log(share of such verdicts), in twentieths.

    Values in the same quarter count as the same verdict.

    Args:
        pairs: As for `net_shift`.
    """
    anchors: list[tuple[Mapping[int, int], int]] = []
    for verdicts, newest in pairs:
        counts = Counter[int]()
        for verdict, times in verdicts.items():
            counts[round(_QUARTERS * verdict)] += times
        surprises = {kind: round(-_STEPS * log(times / counts.total())) for kind, times in counts.items()}
        chances = Counter[int]()
        for kind, times in counts.items():
            chances[surprises[kind]] += times
        anchors.append((chances, surprises[round(_QUARTERS * newest)]))
    chances_of_sums, total = _sum_of_random_ones(anchors)
    return float(chances_of_sums[total:].sum())


def _sum_of_random_ones(anchors: Iterable[tuple[Mapping[int, int], int]]) -> tuple[NDArray[np.float64], int]:
    """Return the distribution of the sum of one number per anchor, drawn by its count, and the place of the actual sum.

    Sums are counted from the least one, in steps of the greatest common divisor of all differences.
    """
    varying = [(counts, actual - min(counts), min(counts)) for counts, actual in anchors if len(counts) > 1]
    step = gcd(*(number - least for counts, _, least in varying for number in counts)) or 1
    chances = np.ones(1)
    for counts, _, least in varying:
        of_anchor = np.zeros((max(counts) - least) // step + 1)
        for number, times in counts.items():
            of_anchor[(number - least) // step] = times
        chances = np.asarray(np.convolve(chances, of_anchor / of_anchor.sum()), np.float64)
    return chances, sum(actual for _, actual, _ in varying) // step


def detection_rate(draws: ArrayLike, *, turned: float = 0.1, checks: int = 4, runs: int = 100, seed: int = 0) -> float:
    """Return how often a change of such a judge would raise the alarm, by simulation.

    The judge passes half of the anchors. It wavers on as many as these draws suggest, and passes each of these with a
    probability drawn from 0.1 to 0.9. Of more than 200 anchors, 200 are simulated, on which less would show.

    Args:
        draws: The draws before the change, as for `detect_drift`.
        turned: The share of anchors whose verdict turns to the opposite.
        checks: The number of checks after the change.
        runs: The number of simulated judges.
        seed: The seed of the simulation.
    """
    kinds = np.rint(_QUARTERS * np.asarray(draws, np.float64))
    anchors, before = min(len(kinds), _SIMULATED), int(kinds.shape[1])
    least, most = _WAVERING
    unseen = 2 * (most ** (before + 1) - least ** (before + 1)) / ((before + 1) * (most - least))
    varying = np.mean([len(np.unique(row[~np.isnan(row)])) > 1 for row in kinds])
    wavering = round(anchors * min(1.0, float(varying) / max(1 - unseen, _ROUNDING)))
    random = np.random.default_rng(seed)
    alarms = 0
    for _ in range(runs):
        passing = (np.arange(anchors) % 2).astype(np.float64)
        passing[random.choice(anchors, wavering, replace=False)] = random.uniform(least, most, wavering)
        earlier = random.random((anchors, before)) < passing[:, np.newaxis]
        turning = random.choice(anchors, round(turned * anchors), replace=False)
        passing[turning] = 1 - passing[turning]
        later = random.random((anchors, checks)) < passing[:, np.newaxis]
        alarms += detect_drift(np.hstack([earlier, later]), baseline=before).alarm is not None
    return alarms / runs

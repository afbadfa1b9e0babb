"""Biases of a judge: whether its verdicts depend on the length of what it read, or on the place of an answer."""

from collections.abc import Mapping, Sequence

import numpy as np

from judgekit.analysis.measures import VerdictPairs
from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import Row
from judgekit.stats.correlation import rank_correlation


def length_bias(pairs: VerdictPairs, lengths: Mapping[int, float]) -> Estimate | None:
    """Return the rank correlation of the judge's error with the length of its input: above 0, it favors long ones."""
    pairs = pairs.subset(pairs.applicable)
    if not pairs.samples or any(sample.row.index not in lengths for sample in pairs.samples):
        return None
    error = np.asarray(pairs.judge_verdicts, np.float64) - np.asarray(pairs.human_means, np.float64)
    length = np.asarray([lengths[sample.row.index] for sample in pairs.samples])
    correlation = pairs.bootstrap(lambda drawn: rank_correlation(error[drawn], length[drawn]))
    return None if correlation.value is None else correlation


def position_bias(rows: Sequence[Row]) -> dict[str, Estimate]:
    """Return, for pairwise verdicts, how often the judge prefers the same place in both orders, and then the first."""
    if not rows or "flipped" not in rows[0].score.details:
        return {}
    compared = [row for row in rows if row.score.details.get("verdicts")]
    if not compared:
        return {}
    flips = [float(bool(row.score.details.get("flipped"))) for row in compared]
    estimates = {"position": Estimate.mean(flips, [row.unit for row in compared])}
    first: list[tuple[float, str | None]] = []
    for row, flipped in zip(compared, flips, strict=True):
        match row.score.details.get("verdicts"):
            case [{"shown_first": shown, "preferred": preferred}, *_] if flipped:
                first.append((float(shown == preferred), row.unit))
            case _:
                pass
    if first:
        estimates["first place preferred, where it flips"] = Estimate.mean(*zip(*first, strict=True))
    return estimates

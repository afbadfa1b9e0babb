"""Biases of a judge: whether its verdicts depend on the length of what it read, or on the place of an answer."""

from collections.abc import Mapping, Sequence

from judgekit.analysis.measures import VerdictPairs
from judgekit.runs.audit_records import Estimate
from judgekit.runs.rows import Row


def length_bias(pairs: VerdictPairs, lengths: Mapping[int, float]) -> Estimate | None:
    """Return the rank correlation of the judge's error with the length of its input: above 0, it favours long ones."""
    import numpy as np  # noqa: PLC0415 - it takes a while

    from judgekit.stats.correlation import rank_correlation  # noqa: PLC0415

    pairs = pairs.subset(pairs.applicable)
    if not pairs.samples or any(one.row.index not in lengths for one in pairs.samples):
        return None
    error = np.asarray(pairs.judge_verdicts, np.float64) - np.asarray(pairs.human_means, np.float64)
    length = np.asarray([lengths[one.row.index] for one in pairs.samples])
    found = pairs.bootstrap(lambda drawn: rank_correlation(error[drawn], length[drawn]))
    return None if found.value is None else found


def position_bias(rows: Sequence[Row]) -> dict[str, Estimate]:
    """Return, for pairwise verdicts, how often the judge prefers the same place in both orders, and then the first."""
    if not rows or "flipped" not in rows[0].score.details:
        return {}
    asked = [row for row in rows if row.score.details.get("verdicts")]
    if not asked:
        return {}
    flips = [float(bool(row.score.details.get("flipped"))) for row in asked]
    found = {"position": Estimate.mean(flips, [row.group for row in asked])}
    first: list[tuple[float, str | None]] = []
    for row, flipped in zip(asked, flips, strict=True):
        match row.score.details.get("verdicts"):
            case [{"shown_first": shown, "preferred": preferred}, *_] if flipped:
                first.append((float(shown == preferred), row.group))
            case _:
                pass
    if first:
        found["first place preferred, where it flips"] = Estimate.mean(*zip(*first, strict=True))
    return found

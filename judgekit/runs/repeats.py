"""The repeats of a verdict: how often a judge was asked for it, read from the details of a score."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.score import STATUSES, Score
from judgekit.traces.message import JsonObject

_COUNTS = ("min_repeats", "max_repeats", "requests_saved")
_SIDES = ("trace", "baseline", "tie")


class Repeats(NamedTuple):
    """The repeats of a sample: the value of each repeat, if it has one, and the least and greatest number of repeats."""

    values: Sequence[float | None]
    min_repeats: int
    max_repeats: int

    @classmethod
    def of(cls, details: Mapping[str, JsonValue]) -> "Repeats | None":
        """Return the repeats that details hold, or ``None`` if they hold none."""
        repeats = details.get("repeats")
        if not isinstance(repeats, list) or not repeats:
            return None
        values = [repeat_value(repeat) for repeat in repeats]
        least, most = details.get("min_repeats"), details.get("max_repeats")
        return cls(
            values,
            least if isinstance(least, int) and 0 < least <= len(values) else len(values),
            most if isinstance(most, int) and most >= len(values) else len(values),
        )


def repeat_value(repeat: JsonValue) -> float | None:
    """Return the value of a repeat or a vote, or ``None``; rounding keeps rounding errors from telling values apart."""
    value = repeat.get("value") if isinstance(repeat, dict) else repeat
    return round(float(value), 9) if isinstance(value, int | float) and 0 <= value <= 1 else None


def first_details(score: Score) -> Mapping[str, JsonValue]:
    """Return the details of the judge's first verdict, even if the judge was too unsure for it to count."""
    doubted = score.details.get("doubted")
    details = doubted.get("details") if isinstance(doubted, dict) else None
    return details if isinstance(details, dict) else score.details


def without_text(details: Mapping[str, JsonValue]) -> JsonObject:
    """Return the repeats, votes and orders of a pair in details as values and statuses, numbered instead of named."""
    kept: JsonObject = {}
    repeats, votes, unasked = details.get("repeats"), details.get("votes"), details.get("unasked")
    if isinstance(repeats, list):
        kept["repeats"] = [repeat_value(repeat) for repeat in repeats]
        kept |= {name: count for name in _COUNTS if isinstance(count := details.get(name), int)}
    if isinstance(votes, dict):
        kept["votes"] = {str(number): _vote(vote) for number, vote in enumerate(votes.values(), 1)}
        kept["unasked"] = [None for _ in unasked] if isinstance(unasked, list) else []
    if isinstance(verdicts := details.get("verdicts"), list):
        kept["verdicts"] = [_order(verdict) for verdict in verdicts]
        kept["flipped"] = bool(details.get("flipped"))
    if isinstance(coverage := details.get("coverage"), float):
        kept["coverage"] = coverage
    if isinstance(doubted := details.get("doubted"), dict):
        first = doubted.get("details")
        kept["doubted"] = {"details": without_text(first if isinstance(first, dict) else {})}
    return kept


def _vote(vote: JsonValue) -> JsonObject:
    fields = vote if isinstance(vote, dict) else {}
    status = fields.get("status")
    return {"status": status if status in STATUSES else None, "value": repeat_value(vote), **without_text(fields)}


def _order(verdict: JsonValue) -> JsonObject:
    fields = verdict if isinstance(verdict, dict) else {}
    return {name: side for name in ("shown_first", "preferred") if (side := fields.get(name)) in _SIDES}

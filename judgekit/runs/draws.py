"""The draws of a verdict: how often a judge was asked for it, read from the details of a score."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.score import STATUSES, Score
from judgekit.traces.message import JsonObject

_COUNTS = ("min_draws", "max_draws", "requests_saved")
_SIDES = ("trace", "baseline", "tie")


class Draws(NamedTuple):
    """The draws of a sample: the value of each draw, if it has one, and the least and greatest number of draws."""

    values: Sequence[float | None]
    min_draws: int
    max_draws: int

    @classmethod
    def of(cls, details: Mapping[str, JsonValue]) -> "Draws | None":
        """Return the draws that details hold, or ``None`` if they hold none."""
        draws = details.get("draws")
        if not isinstance(draws, list) or not draws:
            return None
        values = [draw_value(draw) for draw in draws]
        least, most = details.get("min_draws"), details.get("max_draws")
        return cls(
            values,
            least if isinstance(least, int) and 0 < least <= len(values) else len(values),
            most if isinstance(most, int) and most >= len(values) else len(values),
        )


def draw_value(draw: JsonValue) -> float | None:
    """Return the value of a draw or a vote, or ``None``; rounding keeps rounding errors from telling values apart."""
    value = draw.get("value") if isinstance(draw, dict) else draw
    return round(float(value), 9) if isinstance(value, int | float) and 0 <= value <= 1 else None


def first_details(score: Score) -> Mapping[str, JsonValue]:
    """Return the details of the judge's first verdict, even if the judge was too unsure for it to count."""
    doubted = score.details.get("doubted")
    details = doubted.get("details") if isinstance(doubted, dict) else None
    return details if isinstance(details, dict) else score.details


def without_text(details: Mapping[str, JsonValue]) -> JsonObject:
    """Return the draws, votes and orders of a pair in details as values and statuses, numbered instead of named."""
    kept: JsonObject = {}
    draws, votes, unasked = details.get("draws"), details.get("votes"), details.get("unasked")
    if isinstance(draws, list):
        kept["draws"] = [draw_value(draw) for draw in draws]
        kept |= {name: count for name in _COUNTS if isinstance(count := details.get(name), int)}
    if isinstance(votes, dict):
        kept["votes"] = {str(place): _vote(vote) for place, vote in enumerate(votes.values(), 1)}
        kept["unasked"] = [None for _ in unasked] if isinstance(unasked, list) else []
    if isinstance(verdicts := details.get("verdicts"), list):
        kept["verdicts"] = [_order(one) for one in verdicts]
        kept["flipped"] = bool(details.get("flipped"))
    if isinstance(doubted := details.get("doubted"), dict):
        first = doubted.get("details")
        kept["doubted"] = {"details": without_text(first if isinstance(first, dict) else {})}
    return kept


def _vote(vote: JsonValue) -> JsonObject:
    told = vote if isinstance(vote, dict) else {}
    status = told.get("status")
    return {"status": status if status in STATUSES else None, "value": draw_value(vote), **without_text(told)}


def _order(verdict: JsonValue) -> JsonObject:
    told = verdict if isinstance(verdict, dict) else {}
    return {name: side for name in ("shown_first", "preferred") if (side := told.get(name)) in _SIDES}

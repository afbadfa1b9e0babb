"""How often a judge was asked for one verdict, as the details of a score tell it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.score import Score


class Draws(NamedTuple):
    """The draws of a sample: what each one's value is, if it has one, and how many there are at the least and the most."""

    values: Sequence[float | None]
    least: int
    most: int

    @classmethod
    def of(cls, details: Mapping[str, JsonValue]) -> "Draws | None":
        """The draws that details tell of; ``None`` where they tell of none."""
        draws = details.get("draws")
        if not isinstance(draws, list) or not draws:
            return None
        values = [value_of(draw) for draw in draws]
        least, most = details.get("least"), details.get("most")
        return cls(
            values,
            least if isinstance(least, int) and 0 < least <= len(values) else len(values),
            most if isinstance(most, int) and most >= len(values) else len(values),
        )


def value_of(said: JsonValue) -> float | None:
    """The value of a draw or a vote; ``None`` where it has none. Values that a rounding alone keeps apart are one."""
    value = said.get("value") if isinstance(said, dict) else said
    return round(float(value), 9) if isinstance(value, int | float) and 0 <= value <= 1 else None


def details_of(score: Score) -> Mapping[str, JsonValue]:
    """The details of what the judge said first, also where it was not sure enough for that to be the verdict."""
    doubted = score.details.get("doubted")
    details = doubted.get("details") if isinstance(doubted, dict) else None
    return details if isinstance(details, dict) else score.details

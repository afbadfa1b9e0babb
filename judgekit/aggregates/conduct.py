"""Numbers of conversations, held against a budget or not."""

from collections.abc import Sequence
from typing import cast

from judgekit.aggregates.total import Total, mean
from judgekit.score import Score


def within_budget(scores: Sequence[Score]) -> Total:
    """The share of conversations within their budget; figures: mean, median, 90th percentile and maximum of the numbers.

    A score's number and budget are ``details["number"]`` and ``details["budget"]``.
    """
    numbers = sorted(cast("float", score.details["number"]) for score in scores)
    budgets = sorted({cast("float", score.details["budget"]) for score in scores})
    figures = {
        "mean": sum(numbers) / len(numbers),
        "median": quantile(numbers, 0.5),
        "p90": quantile(numbers, 0.9),
        "max": numbers[-1],
    }
    return Total(mean(scores), "share within budget", f"budget {', '.join(map(plain_number, budgets))}", figures)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The number that a share of the ordered ones, at least one, lies below; between two of them by linear interpolation.

    Source: type 7 of Hyndman and Fan (https://doi.org/10.2307/2684934), the default of R and numpy.
    """
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def plain_number(number: float) -> str:
    """A number as people write it, to a millionth: ``12,345``, ``0.0125``."""
    text = f"{number:,.6f}".rstrip("0").removesuffix(".")
    return text if float(text.replace(",", "")) or not number else f"{number:g}"

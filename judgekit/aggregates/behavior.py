"""Aggregates of measured numbers, with or without a budget."""

from collections.abc import Sequence
from typing import cast

from judgekit.aggregates.total import Total, mean
from judgekit.score import Score


def within_budget(scores: Sequence[Score]) -> Total:
    """Return the share of conversations within their budget; its figures are mean, median, 90th percentile and maximum.

    The number and the budget of a score are ``details["number"]`` and ``details["budget"]``.
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
    """Return a quantile of at least one sorted number, interpolating linearly between neighbors.

    Source: type 7 of Hyndman and Fan (https://doi.org/10.2307/2684934), the default of R and numpy.
    """
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def plain_number(number: float) -> str:
    """Return a number as people write it, with up to six decimals: ``12,345``, ``0.0125``."""
    text = f"{number:,.6f}".rstrip("0").removesuffix(".")
    return text if float(text.replace(",", "")) or not number else f"{number:g}"

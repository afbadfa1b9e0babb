"""What the scores of a run come to, and how the function that says so is found by its name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import fsum
from typing import TypeAlias, cast

from judgekit.errors import ConfigError
from judgekit.score import Score


@dataclass(frozen=True)
class Total:
    """What many scores come to.

    Attributes:
        value: The number; ``None`` where it is undefined.
        name: What the number is, such as ``mean`` or ``corpus BLEU``.
        note: What else is to be said in a line: its recipe, or why it is undefined.
        figures: Further numbers by name; ``None`` where one is undefined.
        table: Counts by row and column, such as a confusion matrix: true label, predicted label, how often.
    """

    value: float | None
    name: str
    note: str = ""
    figures: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    table: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])


Aggregate: TypeAlias = Callable[[Sequence[Score]], Total | float]


def mean(scores: Sequence[Score]) -> float:
    """The arithmetic mean of the values."""
    return fsum(score.value for score in scores if score.value is not None) / len(scores)


AGGREGATES = {
    "answer_match": "judgekit.aggregates.classification:answer_match",
    "classification": "judgekit.aggregates.classification:classification",
    "corpus_bleu": "judgekit.aggregates.translation:corpus_bleu",
    "corpus_chrf": "judgekit.aggregates.translation:corpus_chrf",
    "corpus_ter": "judgekit.aggregates.translation:corpus_ter",
    "macro_mean": "judgekit.aggregates.domains:macro_mean",
    "mean": "judgekit.aggregates.total:mean",
    "within_budget": "judgekit.aggregates.conduct:within_budget",
}
"""The names that a score's ``aggregate`` may have, and where their functions are."""


def total_of(name: str, scores: Sequence[Score]) -> Total:
    """What scored scores come to, by the function that their ``aggregate`` names.

    Raises:
        ConfigError: There is no such function.
    """
    found = aggregate_named(name)(scores)
    return found if isinstance(found, Total) else Total(found, name)


def aggregate_named(name: str) -> Aggregate:
    """The function that a score's ``aggregate`` names: one of `AGGREGATES`, or ``"package.module:function"``.

    Raises:
        ConfigError: There is no such function.
    """
    module, colon, function = AGGREGATES.get(name, name).partition(":")
    if not colon:
        raise ConfigError.unknown("aggregate", name, AGGREGATES)
    try:
        found: object = getattr(import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: it is no function but {found!r}")
    return cast("Aggregate", found)

"""How the scores of many samples become one number: pure functions of the scored ones."""

from collections.abc import Callable, Sequence
from importlib import import_module
from math import fsum
from typing import TypeAlias, cast

from judgekit.errors import ConfigError
from judgekit.score import Score

Aggregate: TypeAlias = Callable[[Sequence[Score]], float]


def mean(scores: Sequence[Score]) -> float:
    """The arithmetic mean of the values."""
    return fsum(score.value for score in scores if score.value is not None) / len(scores)


AGGREGATES: dict[str, Aggregate] = {"mean": mean}


def aggregate_named(name: str) -> Aggregate:
    """The function that a score's ``aggregate`` names: one of `AGGREGATES`, or ``"package.module:function"``.

    Raises:
        ConfigError: There is no such function.
    """
    if name in AGGREGATES:
        return AGGREGATES[name]
    module, colon, function = name.partition(":")
    if not colon:
        raise ConfigError.unknown("aggregate", name, AGGREGATES)
    try:
        found: object = getattr(import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: it is no function but {found!r}")
    return cast("Aggregate", found)

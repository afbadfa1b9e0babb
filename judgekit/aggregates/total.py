"""Totals of a run's scores, and the lookup of aggregates by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import fsum
from typing import NamedTuple, TypeAlias, cast, overload

from judgekit.errors import ConfigError
from judgekit.registry import check_named
from judgekit.score import Score
from judgekit.traces.message import JsonObject


@dataclass(frozen=True)
class Total:
    """The total of many scores.

    Attributes:
        value: The number; ``None`` if it is undefined.
        name: The name of the number, such as ``mean`` or ``corpus BLEU``.
        note: One line on how the number was computed, or why it is undefined.
        metrics: Further numbers by name; ``None`` for one that is undefined.
        table: Counts by row and column, such as a confusion matrix: true label, predicted label, count.
        error: The class of the error that the aggregate raised; empty if it raised none.
    """

    value: float | None
    name: str
    note: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    table: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    error: str = ""


Aggregate: TypeAlias = Callable[[Sequence[Score]], Total | float]


def mean(scores: Sequence[Score]) -> float:
    """Return the arithmetic mean of the scores' values."""
    return fsum(score.value for score in scores if score.value is not None) / len(scores)


class AggregateSpec(NamedTuple):
    """The import path of an aggregate, and the details of a score that it reads.

    A run that stores no text (``store_text = false``) still keeps these details: labels, domains, counts and options.
    """

    path: str
    details: tuple[str, ...] = ()


AGGREGATES = {
    "answer_match": AggregateSpec("judgekit.aggregates.classification:answer_match", ("measure",)),
    "classification": AggregateSpec(
        "judgekit.aggregates.classification:classification", ("measure", "positive", "true", "predicted", "mark")
    ),
    "corpus_bleu": AggregateSpec(
        "judgekit.aggregates.translation:corpus_bleu",
        ("metric", "corpus_signature", "correct", "total", "response_length", "reference_length", "smooth"),
    ),
    "corpus_chrf": AggregateSpec(
        "judgekit.aggregates.translation:corpus_chrf",
        ("metric", "signature", "matched", "response_ngrams", "reference_ngrams", "beta"),
    ),
    "corpus_ter": AggregateSpec(
        "judgekit.aggregates.translation:corpus_ter", ("metric", "signature", "edits", "reference_length")
    ),
    "macro_mean": AggregateSpec("judgekit.aggregates.domains:macro_mean", ("domain",)),
    "mean": AggregateSpec("judgekit.aggregates.total:mean"),
    "within_budget": AggregateSpec("judgekit.aggregates.behavior:within_budget", ("number", "budget")),
}
"""The built-in aggregates, by the name in a score's ``aggregate``."""


_SHIPPED = {spec.path for spec in AGGREGATES.values()}


class PackedScores(Sequence[Score]):
    """Scores stored as JSON and parsed on access, which takes a fifth of the memory."""

    def __init__(self, packed: Iterable[bytes] = ()) -> None:
        self._packed = list(packed)

    @staticmethod
    def pack(score: Score) -> bytes:
        """Return the part of a score that its aggregate reads, encoded for `append`."""
        return reduced_for_aggregate(score).model_dump_json(exclude_defaults=True).encode()

    def append(self, packed: bytes) -> None:
        """Append a packed score."""
        self._packed.append(packed)

    @overload
    def __getitem__(self, index: int, /) -> Score: ...
    @overload
    def __getitem__(self, index: slice, /) -> "PackedScores": ...
    def __getitem__(self, index: int | slice, /) -> "Score | PackedScores":
        if isinstance(index, slice):
            return PackedScores(self._packed[index])
        return Score.model_validate_json(self._packed[index])

    def __len__(self) -> int:
        return len(self._packed)


def reduced_for_aggregate(score: Score) -> Score:
    """Return a score reduced to what its aggregate reads, for a run to keep."""
    if score.aggregate not in AGGREGATES:
        return score
    kept = aggregate_details(score)
    return Score.scored(score.scorer, score.value or 0.0, label=score.label, details=kept, aggregate=score.aggregate)


def aggregate_details(score: Score) -> JsonObject:
    """Return the details of a score that its aggregate reads; none for a user's own function."""
    names = AGGREGATES[score.aggregate].details if score.aggregate in AGGREGATES else ()
    return {name: score.details[name] for name in names if name in score.details}


def compute_total(name: str, scores: Sequence[Score]) -> Total:
    """Return the total of scored scores, computed by the function that their ``aggregate`` names.

    If there is no such function, or it fails, the total is undefined; the rest of the run is still reported.
    """
    try:
        total = load_aggregate(name)(scores)
        return total if isinstance(total, Total) else Total(float(total), name)
    except Exception as error:  # noqa: BLE001 - the function may be the user's
        kind = type(error).__name__
        return Total(None, "undefined", f"the aggregate {name!r} failed: {kind}: {error}", error=kind)


def load_aggregate(name: str) -> Aggregate:
    """Return the function that a score's ``aggregate`` names: one of `AGGREGATES`, or ``"package.module:function"``."""
    path = AGGREGATES[name].path if name in AGGREGATES else name
    module, colon, function = path.partition(":")
    if not colon:
        raise ConfigError.unknown("aggregate", name, AGGREGATES)
    try:
        if name not in AGGREGATES and name not in _SHIPPED:
            check_named(module)
        aggregate: object = getattr(import_module(module), function)
    except (ConfigError, ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: {error}") from error
    if not callable(aggregate):
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: it is not a function but {aggregate!r}")
    return cast("Aggregate", aggregate)

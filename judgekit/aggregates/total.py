"""Totals of the scores of a run, and the aggregates that compute them, which are found by their names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import fsum
from typing import NamedTuple, TypeAlias, cast, overload

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.traces.message import JsonObject


@dataclass(frozen=True)
class Total:
    """The total of many scores.

    Attributes:
        value: The number; ``None`` where it is undefined.
        name: What the number is, such as ``mean`` or ``corpus BLEU``.
        note: What else is to be said in a line: its recipe, or why it is undefined.
        figures: Further numbers by name; ``None`` where one is undefined.
        table: Counts by row and column, such as a confusion matrix: true label, predicted label, how often.
        error: The class of the error that the aggregate raised; empty if it raised none.
    """

    value: float | None
    name: str
    note: str = ""
    figures: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    table: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    error: str = ""


Aggregate: TypeAlias = Callable[[Sequence[Score]], Total | float]


def mean(scores: Sequence[Score]) -> float:
    """The arithmetic mean of the values."""
    return fsum(score.value for score in scores if score.value is not None) / len(scores)


class Home(NamedTuple):
    """Where an aggregate is, and what of a score's details it looks at.

    A run that keeps no text (``store_text = false``) keeps these details: labels, domains, counts and options.
    """

    path: str
    details: tuple[str, ...] = ()


AGGREGATES = {
    "answer_match": Home("judgekit.aggregates.classification:answer_match", ("measure",)),
    "classification": Home(
        "judgekit.aggregates.classification:classification", ("measure", "positive", "true", "predicted", "mark")
    ),
    "corpus_bleu": Home(
        "judgekit.aggregates.translation:corpus_bleu",
        ("metric", "corpus_signature", "correct", "total", "response_length", "reference_length", "smooth"),
    ),
    "corpus_chrf": Home(
        "judgekit.aggregates.translation:corpus_chrf",
        ("metric", "signature", "matched", "response_ngrams", "reference_ngrams", "beta"),
    ),
    "corpus_ter": Home(
        "judgekit.aggregates.translation:corpus_ter", ("metric", "signature", "edits", "reference_length")
    ),
    "macro_mean": Home("judgekit.aggregates.domains:macro_mean", ("domain",)),
    "mean": Home("judgekit.aggregates.total:mean"),
    "within_budget": Home("judgekit.aggregates.conduct:within_budget", ("number", "budget")),
}
"""The names that a score's ``aggregate`` may have."""


class PackedScores(Sequence[Score]):
    """Scores that are kept as their JSON and made anew when they are looked at, which takes a fifth of the memory."""

    def __init__(self, packed: Iterable[bytes] = ()) -> None:
        self._packed = list(packed)

    @staticmethod
    def pack(score: Score) -> bytes:
        """As much of a score as its aggregate looks at, to be appended to any number of these."""
        return needed_of(score).model_dump_json(exclude_defaults=True).encode()

    def append(self, packed: bytes) -> None:
        """Adds a score."""
        self._packed.append(packed)

    @overload
    def __getitem__(self, place: int, /) -> Score: ...
    @overload
    def __getitem__(self, place: slice, /) -> "PackedScores": ...
    def __getitem__(self, place: int | slice, /) -> "Score | PackedScores":
        if isinstance(place, slice):
            return PackedScores(self._packed[place])
        return Score.model_validate_json(self._packed[place])

    def __len__(self) -> int:
        return len(self._packed)


def needed_of(score: Score) -> Score:
    """As much of a score as its aggregate looks at, for a run to keep."""
    if score.aggregate not in AGGREGATES:
        return score
    kept = details_needed(score)
    return Score.scored(score.scorer, score.value or 0.0, label=score.label, details=kept, aggregate=score.aggregate)


def details_needed(score: Score) -> JsonObject:
    """Return those details of a score that its aggregate looks at; none for a function of the user's own."""
    names = AGGREGATES[score.aggregate].details if score.aggregate in AGGREGATES else ()
    return {name: score.details[name] for name in names if name in score.details}


def total_of(name: str, scores: Sequence[Score]) -> Total:
    """Return the total of scored scores, by the function that their ``aggregate`` names.

    It is undefined where there is no such function, or it fails: the rest of a run is told all the same.
    """
    try:
        found = aggregate_named(name)(scores)
        return found if isinstance(found, Total) else Total(float(found), name)
    except Exception as error:  # noqa: BLE001 - it is anybody's
        kind = type(error).__name__
        return Total(None, "undefined", f"the aggregate {name!r} failed: {kind}: {error}", error=kind)


def aggregate_named(name: str) -> Aggregate:
    """The function that a score's ``aggregate`` names: one of `AGGREGATES`, or ``"package.module:function"``.

    Raises:
        ConfigError: There is no such function.
    """
    path = AGGREGATES[name].path if name in AGGREGATES else name
    module, colon, function = path.partition(":")
    if not colon:
        raise ConfigError.unknown("aggregate", name, AGGREGATES)
    try:
        found: object = getattr(import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError(f"the aggregate {name!r} cannot be loaded: it is no function but {found!r}")
    return cast("Aggregate", found)

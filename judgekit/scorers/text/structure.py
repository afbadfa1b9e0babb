"""Comparison of JSON responses with JSON references."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import from_json

from judgekit.errors import short_repr, truncated
from judgekit.score import Score
from judgekit.scorers.text.base import TextPair, TextScorer
from judgekit.scorers.tool_calls.arguments import (
    ABSENT,
    Absent,
    ArgDifference,
    ArgumentValue,
    difference_texts,
    side_text,
)
from judgekit.traces.equality import same_json
from judgekit.traces.message import JsonObject

_MOST = 50
"""The maximum number of differences in the details."""
_TOLD = 5
"""The maximum number of differences in the reason."""
_LONGEST = 80
"""The maximum number of characters of a key in a path, and of a path or value in the reason."""

_Path: TypeAlias = "tuple[_Path, str | int] | None"
"""The path to a value, last step first: built for every value, but rarely written out."""


@dataclass(frozen=True)
class JSONMatch(TextScorer):
    """1 if the response and a reference are equal as JSON, else 0.

    Values are compared with their types: 75 equals 75.0 but not ``"75"``, and true does not equal 1. The order matters
    in arrays, but not for the keys of an object. A response that is not JSON scores 0, which includes an empty one,
    surrounding words or a code fence, duplicate keys in an object, lone surrogates, numbers out of range, and more than
    200 nested arrays and objects. A reference that is not JSON is an error.

    Skipped without a conversation or a reference. No judge. Details: those of `JSONDiff`. Source: JSON (RFC 8259), and
    I-JSON (RFC 7493) for keys and surrogates.
    """

    name: str = "json_match"

    def _compare(self, texts: TextPair) -> Score:
        return _compared(self.name, texts, lambda share: float(share == 1))


@dataclass(frozen=True)
class JSONDiff(TextScorer):
    """1 if the response and a reference are equal as JSON, else the share of their leaves that agree.

    A leaf is a value that contains no other: a string, a number, true, false, null, an empty array or object. The value
    is the number of paths at which both sides have equal leaves, over the number of paths at which either side has a
    leaf. An element missing from an array shifts those after it. The reference with the highest value counts (the first
    of equals). JSON and equality are defined as in `JSONMatch`: a response that is not JSON scores 0, and a reference
    that is not JSON is an error.

    Skipped without a conversation or a reference. No judge. Details: ``agreed`` and ``leaves``, the two numbers;
    ``differences``, the first 50, each with its ``path`` and what was ``expected`` or ``found`` there, or both (where one
    side has a leaf and the other an array or object, the whole of it); ``more``, the number of others; ``reference``,
    the one that counts; ``values``, by reference, without blank and
    repeated ones. Or ``error``, the reason why the response is not JSON. Source: the Jaccard index of pairs of path and
    leaf, with each path counted once; paths are those of JSONPath (RFC 9535).
    """

    name: str = "json_diff"

    def _compare(self, texts: TextPair) -> Score:
        return _compared(self.name, texts, float)


def _compared(name: str, texts: TextPair, value_of: Callable[[float], float]) -> Score:
    """Return the score of the best reference, by the share of leaves that agree."""
    references: list[JsonValue] = []
    for text in texts.references:
        try:
            references.append(_json(text))
        except ValueError as error:
            raise ValueError(f"a reference is not JSON: {error}, in {short_repr(text)}") from error
    try:
        response = _json(texts.response)
    except ValueError as error:
        return Score.scored(name, 0, reason=f"the response is not JSON: {error}", details={"error": str(error)})
    walks = [_Walk(reference, response) for reference in references]
    reason, details = _explained(texts.references, walks)
    return Score.scored(name, value_of(max(walk.share for walk in walks)), reason=reason, details=details)


def _json(text: str) -> JsonValue:
    from_json(text, allow_inf_nan=False)  # checks depth and surrogates, but not duplicate keys
    value: JsonValue = json.loads(text, object_pairs_hook=_object, parse_float=_number)
    return value


def _object(pairs: Sequence[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {short_repr(name)} appears twice in an object")
    return members


def _number(written: str) -> float:
    number = float(written)
    if math.isinf(number):
        raise ValueError(f"the number {written[:20]} is too large")
    return number


class _Walk:
    """A traversal of both sides that counts leaves and those that agree, and records the first that do not.

    Where one side has a leaf and the other an array or object, the difference is recorded with all that is there, and
    explains those in the array or object.
    """

    def __init__(self, expected: JsonValue, actual: JsonValue) -> None:
        self.agreed = 0
        self.leaves = 0
        self.differences: list[ArgDifference] = []
        self.unexplained = 0
        self.listed: list[ArgDifference] = []
        self._value(None, expected, actual)

    @property
    def share(self) -> float:
        return self.agreed / self.leaves

    def _value(
        self, path: _Path, expected: ArgumentValue, actual: ArgumentValue, *, is_explained: bool = False
    ) -> None:
        within, others = _parts(expected), _parts(actual)
        is_mixed = bool(within) != bool(others) and not isinstance(expected, Absent) and not isinstance(actual, Absent)
        if is_mixed or not (within or others):
            self._leaf(path, expected, actual, is_explained=is_explained)
        for step in within | others if within and others else within or others:
            inner = within.get(step, ABSENT), others.get(step, ABSENT)
            self._value((path, step), *inner, is_explained=is_explained or is_mixed)

    def _leaf(self, path: _Path, expected: ArgumentValue, actual: ArgumentValue, *, is_explained: bool) -> None:
        self.leaves += 1
        if not isinstance(expected, Absent) and not isinstance(actual, Absent) and same_json(expected, actual):
            self.agreed += 1
            return
        self.unexplained += not is_explained
        if len(self.differences) < _MOST:
            self.differences.append(ArgDifference(_written(path), expected, actual))
            if not is_explained and len(self.listed) < _TOLD:
                self.listed.append(self.differences[-1])


def _parts(side: ArgumentValue) -> dict[str | int, JsonValue]:
    """Return the children of a value by key or index; none for a leaf."""
    if isinstance(side, dict):
        return cast("dict[str | int, JsonValue]", side)
    return dict(enumerate(side)) if isinstance(side, list) else {}


def _written(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        plain = isinstance(step, str) and step.isidentifier() and len(step) <= _LONGEST
        steps.append(f".{step}" if plain else f"[{truncated(side_text(step), _LONGEST)}]")
    return "$" + "".join(reversed(steps))


def _explained(references: Sequence[str], walks: Sequence[_Walk]) -> tuple[str, JsonObject]:
    """Return the reason and the details for the best reference, the first of equals."""
    values = [walk.share for walk in walks]
    best = values.index(max(values))
    walk = walks[best]
    missed = walk.leaves - walk.agreed
    which = f", most of {len(walks)} references" if len(walks) > 1 else ""
    differences = [*difference_texts(walk.listed, "found", _LONGEST)]
    if more := walk.unexplained - len(walk.listed):
        differences.append(f"and {more} more")
    return (
        "; ".join([f"{walk.agreed} of {walk.leaves} leaves agree{which}", *differences]),
        {
            "reference": references[best],
            "values": [*values],
            "agreed": walk.agreed,
            "leaves": walk.leaves,
            "differences": [difference.as_json("found") for difference in walk.differences],
            "more": missed - len(walk.differences),
        },
    )

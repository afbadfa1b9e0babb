"""Equality and depth of JSON values."""

import json
import marshal
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeGuard, cast

from pydantic import BaseModel, JsonValue
from pydantic_core import to_json

_SORTED = json.JSONEncoder(sort_keys=True)
MOST_LEVELS = 180
"""The most levels of objects and lists in a sample with sub-agents or in arguments, such that its stored JSON can be read again."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number. ``True`` and ``False`` are not, although they equal 1 and 0 in Python."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values are the same JSON, at any depth: 75 equals 75.0, and ``True`` does not equal 1."""
    return left == right and _same_types(left, right)


def _same_types(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values that are equal in Python are equal in JSON, where true is not 1 and false is not 0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_types(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def json_bytes(value: object) -> bytes:
    """Return bytes that only the same JSON has, although it may have others: keys in another order, or 75.0 for 75.

    This is the fastest way to find most equal values.
    """
    return marshal.dumps(value, 2)  # type: ignore[arg-type]  # later versions write references to objects, which depend on identity


def copy_json(value: JsonValue) -> JsonValue:
    """Return a deep copy of a JSON value."""
    copied: JsonValue = marshal.loads(json_bytes(value))  # noqa: S302 - bytes written a moment ago
    return copied


def canonical_json(value: JsonValue) -> str:
    """Return a text that two values share if and only if they are the same JSON."""
    text = _SORTED.encode(value)
    # Whole floats are always written with one of these.
    return _SORTED.encode(_whole_floats_as_integers(value)) if ".0" in text or "e+" in text else text


def _whole_floats_as_integers(value: JsonValue) -> JsonValue:
    """Return the value with whole floats as integers, because 75.0 equals 75."""
    if isinstance(value, dict):
        return {key: _whole_floats_as_integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_floats_as_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def repeated_keys(text: str) -> Sequence[str]:
    """Return the keys that occur more than once in one object of a JSON text, even if it is quoted in another one.

    Parsers keep the last value of such a key. A text that is not JSON has none.
    """
    repeated: list[str] = []

    def parsed(members: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        repeated.extend(key for key, count in Counter(key for key, _ in members).items() if count > 1)
        return dict(members)

    try:
        outer = json.loads(text, object_pairs_hook=parsed)
    except (ValueError, RecursionError):
        return ()
    return repeated_keys(outer) if isinstance(outer, str) else repeated


def loses_keys(text: str, parsed: JsonValue) -> bool:
    """Return whether a parsed text lacks some of its values, because it repeats a key."""
    try:
        keeps_quotes = text.count('"') == to_json(parsed).count(b'"') and "\\u0022" not in text
    except ValueError:  # a lone surrogate
        keeps_quotes = False
    return not keeps_quotes and bool(repeated_keys(text))


def is_deeper(value: object, levels: int) -> bool:
    """Return whether a value, such as a sample, has more levels of models, objects and lists in each other."""
    nodes: Iterable[object] = [value]
    for _ in range(levels + 1):
        containers = [children for node in nodes if (children := _children(node)) is not None]
        if not containers:
            return False
        nodes = chain.from_iterable(containers)
    return True


def _children(value: object) -> Iterable[object] | None:
    """Return what is in a list, object or model; ``None`` for any other value."""
    if isinstance(value, list | tuple):
        return cast("Iterable[object]", value)
    if isinstance(value, BaseModel):
        return vars(value).values()
    return cast("dict[str, object]", value).values() if isinstance(value, dict) else None

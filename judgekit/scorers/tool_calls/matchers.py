"""Value matchers for the arguments of expected calls, such as any number near 3.

Each function returns plain JSON, so that expected calls can be stored in data files: an object whose key ``$judgekit``
names the matcher. All other objects are literal, whatever their keys. Matchers compare values as typed JSON.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from types import NoneType
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from judgekit.errors import ConfigError, validation_message
from judgekit.traces.equality import is_number, same_json
from judgekit.traces.message import FrozenModel, JsonObject

JsonType: TypeAlias = Literal["string", "number", "integer", "boolean", "object", "array", "null"]

_KEY = "$judgekit"
KEY_BYTES = _KEY.encode()
"""Bytes that the `json_bytes` of every value with a matcher contain."""
_PYTHON_TYPES: dict[JsonType, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": NoneType,
}


def _inner(value: JsonValue) -> Iterable[JsonValue]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def check_matchers(value: JsonValue) -> JsonValue:
    """Return the value unchanged."""
    if parse_matcher(value) is None:
        for inner in _inner(value):
            check_matchers(inner)
    return value


_Number: TypeAlias = int | FiniteFloat
_Pattern: TypeAlias = Annotated[JsonValue, AfterValidator(check_matchers)]


def anything() -> JsonObject:
    """Match any value, including null, as long as there is one.

    Example:
        ``{"note": anything()}``
    """
    return _checked({_KEY: "anything"})


def of_type(type: JsonType) -> JsonObject:
    """Match any value of a JSON type; 3.0 counts as an integer.

    Example:
        ``{"id": of_type("integer")}``
    """
    return _checked({_KEY: "of_type", "type": type})


def regex(pattern: str) -> JsonObject:
    r"""Match a text in which `re.search` finds the pattern: anywhere, unless it is anchored.

    There is no time limit: nested repeats, as in ``(a+)+$``, can take forever on a text of a few dozen characters.

    Example:
        ``{"order": regex(r"^#W\d{7}$")}``
    """
    return _checked({_KEY: "regex", "pattern": pattern})


def contains(part: JsonValue) -> JsonObject:
    """Match a text that contains this text, or a list that contains this element, which may itself contain matchers.

    Example:
        ``{"tags": contains("new")}``
    """
    return _checked({_KEY: "contains", "part": part})


def one_of(*values: JsonValue) -> JsonObject:
    """Match one of these values, which may contain matchers.

    Example:
        ``{"unit": one_of("C", "celsius", None)}``
    """
    return _checked({_KEY: "one_of", "values": list(values)})


def near(value: float, *, tolerance: float) -> JsonObject:
    """Match a number within this tolerance, in exact decimal arithmetic: 3.1 is within 0.1 of 3.0.

    Example:
        ``{"price": near(3.0, tolerance=0.1)}``
    """
    return _checked({_KEY: "near", "value": value, "tolerance": tolerance})


def between(low: float | str | None, high: float | str | None) -> JsonObject:
    """Match a number, or a text such as an ISO date, between both ends, inclusive; ``None`` leaves one end open.

    Texts are compared by code points.

    Example:
        ``{"day": between("2025-01-01", None)}``
    """
    return _checked({_KEY: "between", "low": low, "high": high})


def similar(text: str, *, at_least: float = 0.8) -> JsonObject:
    """Match a text with at least this similarity, in [0, 1].

    It is the normalized similarity of rapidfuzz's `Indel`: the share of the characters of both texts that need not be
    inserted or deleted to turn one into the other.

    Example:
        ``{"query": similar("hotels in Paris", at_least=0.9)}``
    """
    return _checked({_KEY: "similar", "text": text, "at_least": at_least})


class Matcher(FrozenModel, ABC):
    """A value matcher."""

    model_config = ConfigDict(strict=True)

    @abstractmethod
    def matches(self, actual: JsonValue) -> bool:
        """Return whether the matcher accepts the value."""


class _Anything(Matcher):
    def matches(self, actual: JsonValue) -> bool:  # noqa: ARG002 - accepts any value
        return True


class _OfType(Matcher):
    type: JsonType

    def matches(self, actual: JsonValue) -> bool:
        if isinstance(actual, bool):
            return self.type == "boolean"
        whole = int(actual) if isinstance(actual, float) and actual.is_integer() else actual
        return isinstance(whole, _PYTHON_TYPES[self.type])


class _Regex(Matcher):
    pattern: str

    @field_validator("pattern")
    @classmethod
    def _must_compile(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a valid regular expression: {error}") from error
        return pattern

    def matches(self, actual: JsonValue) -> bool:
        return isinstance(actual, str) and re.search(self.pattern, actual) is not None


class _Contains(Matcher):
    part: _Pattern

    def matches(self, actual: JsonValue) -> bool:
        if isinstance(actual, str):
            return isinstance(self.part, str) and self.part in actual
        return isinstance(actual, list) and any(_fits(self.part, element) for element in actual)


class _OneOf(Matcher):
    values: Annotated[list[_Pattern], Field(min_length=1)]

    def matches(self, actual: JsonValue) -> bool:
        return any(_fits(value, actual) for value in self.values)


class _Near(Matcher):
    value: _Number
    tolerance: Annotated[_Number, Field(ge=0)]

    def matches(self, actual: JsonValue) -> bool:
        return is_number(actual) and abs(_exact(actual) - _exact(self.value)) <= _exact(self.tolerance)


class _Between(Matcher):
    low: _Number | str | None = None
    high: _Number | str | None = None

    @model_validator(mode="after")
    def _must_be_a_range(self) -> "_Between":
        if self.low is None and self.high is None:
            raise ValueError("low and high are both None: use anything() or of_type()")
        if self.low is not None and self.high is not None and not _in_order(self.low, self.high):
            raise ValueError("low and high must be two numbers or two strings, with low not above high")
        return self

    def matches(self, actual: JsonValue) -> bool:
        above = self.low is None or _in_order(self.low, actual)
        return above and (self.high is None or _in_order(actual, self.high))


class _Similar(Matcher):
    text: str
    at_least: Annotated[_Number, Field(ge=0, le=1)] = 0.8

    def matches(self, actual: JsonValue) -> bool:
        from rapidfuzz.distance import Indel  # noqa: PLC0415 - a compiled library that few matchers need

        if not isinstance(actual, str):
            return False
        most = (1 - _exact(self.at_least)) * (len(self.text) + len(actual))
        return Indel.distance(self.text, actual, score_cutoff=int(most)) <= most


_MATCHERS: dict[str, type[Matcher]] = {
    "anything": _Anything,
    "of_type": _OfType,
    "regex": _Regex,
    "contains": _Contains,
    "one_of": _OneOf,
    "near": _Near,
    "between": _Between,
    "similar": _Similar,
}


def parse_matcher(value: JsonValue) -> Matcher | None:
    """Return the matcher that a value represents; ``None`` for a literal."""
    if not isinstance(value, dict) or _KEY not in value:
        return None
    name = value[_KEY]
    if not isinstance(name, str) or name not in _MATCHERS:
        raise ValueError(str(ConfigError.unknown("value matcher", name, _MATCHERS)))
    settings = {key: inner for key, inner in value.items() if key != _KEY}
    try:
        return _MATCHERS[name].model_validate(settings)
    except ValidationError as error:
        raise ValueError(f"value matcher {name!r}: {validation_message(error, settings)}") from error


def contains_matcher(value: JsonValue) -> bool:
    """Return whether a value contains a matcher, valid or not."""
    if isinstance(value, dict):
        if _KEY in value:
            return True
        value = [*value.values()]
    for inner in value if isinstance(value, list) else ():  # any() takes twice the time, and this is often called
        if isinstance(inner, (dict, list)) and contains_matcher(inner):
            return True
    return False


def _checked(matcher: JsonObject) -> JsonObject:
    parse_matcher(matcher)
    return matcher


def _fits(expected: JsonValue, actual: JsonValue) -> bool:
    """Return whether two values are the same JSON, with matchers in the expected one."""
    if matcher := parse_matcher(expected):
        return matcher.matches(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_fits(inner, actual[name]) for name, inner in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_fits, expected, actual))
    return same_json(expected, actual)


def _in_order(low: JsonValue, high: JsonValue) -> bool:
    """Return whether two values are of the same kind, and the first is not above the second."""
    if isinstance(low, str) and isinstance(high, str):
        return low <= high
    return is_number(low) and is_number(high) and low <= high


def _exact(number: float) -> Fraction:
    """Return the exact value of a number's decimals: 0.1 is a tenth."""
    return Fraction(number if isinstance(number, int) else float.__repr__(number))

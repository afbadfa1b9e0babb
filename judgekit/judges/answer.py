"""Parsing of judges' replies. A reply must hold one unambiguous JSON object; nothing is guessed."""

import json
import math
import re
from contextlib import suppress
from sys import float_info
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from judgekit.errors import short_repr, validation_message
from judgekit.traces.message import JsonObject

Answer = TypeVar("Answer", bound=BaseModel)

_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_OPENING = re.compile(r'\{\s*["}]')  # the start of an object; other braces are prose
_LONGEST = 1_000_000


def read_answer(text: str, answer: type[Answer]) -> Answer:
    """Return the answer in a reply, which may be alone, in a code fence, or the only JSON object in prose.

    Reasoning before it, in ``<think>``, is skipped. Where the answer allows a fixed set of texts, an integer is read as
    one of them, such as 1 as ``"1"``.

    Raises:
        ValueError: The reply holds no answer, more than one, or one that does not fit the model.
    """
    fields, written = _only_object(text)
    try:
        return answer.model_validate_json(written)
    except ValidationError as error:
        with suppress(ValidationError, LookupError, TypeError):  # still invalid, or the value is inside a union
            return answer.model_validate_json(json.dumps(_with_texts(fields, error)))
        raise ValueError(validation_message(error)) from error


def _only_object(text: str) -> tuple[JsonObject, str]:
    """Return the only JSON object in a text, and its source text."""
    if len(text) > _LONGEST:
        raise ValueError(f"the reply is {len(text):,} characters long; an answer has at most {_LONGEST:,}")
    thoughts = _THOUGHTS.match(text)  # some models reason aloud first
    opening = _OPENING.search(text, thoughts.end() if thoughts else 0)
    if opening is None:
        problem = f"holds no JSON object, found {short_repr(text[:100])}" if text.strip() else "is empty"
        raise ValueError(f"the reply {problem}")
    first, end = _decoded(text, opening.start())
    written = text[opening.start() : end]
    while (opening := _OPENING.search(text, end)) is not None:
        other, end = _decoded(text, opening.start())
        if text[opening.start() : end] != written and not _same(first, other):
            raise ValueError("the reply holds two different JSON objects, and which of them counts is unclear")
    return first, written


def _decoded(text: str, start: int) -> tuple[JsonObject, int]:
    try:
        return _decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        there = short_repr(text[error.pos : error.pos + 40]) if error.pos < len(text) else "its end"
        raise ValueError(f"the reply's JSON is broken: {error.msg}: character {error.pos}, found {there}") from None
    except RecursionError:
        raise ValueError("the reply's JSON is nested too deeply") from None


def _same(left: JsonValue, right: JsonValue) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)  # true and 1 are equal in Python


def _unambiguous(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    values = dict(pairs)
    if len(values) < len(pairs):
        for name, value in pairs:
            if not _same(values[name], value):
                raise ValueError(f"the reply says {short_repr(name)} twice, and differently")
    return values


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"the reply holds the number {short_repr(number)}, which is too large")
    return value


def _whole_number(number: str) -> int:
    if len(number) > float_info.max_10_exp:
        _finite(number)
    return int(number)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"the reply holds {name}, which is no number")


_decoder = json.JSONDecoder(
    object_pairs_hook=_unambiguous, parse_float=_finite, parse_int=_whole_number, parse_constant=_no_number
)


def _with_texts(fields: JsonObject, error: ValidationError) -> JsonObject:
    """Return an object with integers as text where only a few values are allowed, none of them the integer."""
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] in ("literal_error", "enum") and type(problem["input"]) is int:
            *path, last = problem["loc"]
            holder: Any = fields
            for step in path:
                holder = holder[step]
            holder[last] = str(problem["input"])
    return fields

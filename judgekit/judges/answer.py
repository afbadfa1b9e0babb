"""Parsing of judges' replies. A reply must hold one unambiguous JSON object; nothing is guessed."""

import json
import math
import re
from contextlib import suppress
from functools import cache, partial
from sys import float_info
from typing import NamedTuple, NoReturn, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from judgekit.errors import short_repr, validation_message
from judgekit.judges.answer_forms import in_form
from judgekit.traces.message import JsonObject

Answer = TypeVar("Answer", bound=BaseModel)

_REASONING = (
    *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning")),
    *((r"\[THINK\]", r"\[/THINK\]"), ("◁think▷", "◁/think▷"), (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>")),
    (r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>", r"(?:<\|end\|>|(?=<\|channel\|>final))"),
    (r"<\|channel>thought", r"<channel\|>"),  # Gemma; the line above is OpenAI's harmony
)
"""The marks that open and close a block of reasoning."""
_BLOCK = re.compile(rf"\s*(?:{'|'.join(f'{opening}.*?{closing}' for opening, closing in _REASONING)})", re.DOTALL)
_BLOCK_START = re.compile(rf"\s*(?:{'|'.join(opening for opening, _ in _REASONING)})")
_REASONING_END = re.compile(
    r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<channel\|>"
    r"|<\|channel\|>final|assistantfinal"
)
_OBJECT_START = re.compile(r'\{\s*["}]')  # other braces are prose
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]|,(?=\s*[}\]])', re.DOTALL)
_CALL_TAG = re.compile(r"<\|?(?:tool|function)_calls?\|?>[\s\[]*$")
_END_OF_REPLY = re.compile(r"\s*(?:```|</[a-z_]+>|<\|[a-z_]+\|>|\s)*$")
_END_WITHOUT_BRACE = re.compile(rf"(\s*:\s*(?:true|false|null))?{_END_OF_REPLY.pattern}")  # a number may be cut off
_ARGUMENTS = ("arguments", "parameters")
_CALL_TAG_LENGTH = 40
_LONGEST = 1_000_000
_MOST_DAMAGED = 5


class _Object(NamedTuple):
    fields: JsonObject
    written: str
    end: int
    is_call: bool
    """Whether it stands in the tag of a tool call."""
    is_completed: bool = False
    """Whether the closing brace was missing."""

    @property
    def sorted_json(self) -> str:
        return _sorted_json(self.fields)


def read_answer(text: str, answer: type[Answer]) -> Answer:
    """Return the answer in a reply, which may be alone, in a code fence, or the only JSON object in prose.

    Reasoning before it is skipped. Line breaks in texts, a comma too many before a bracket, and a missing last brace are
    accepted, as are other forms of values that mean the same; see `judgekit.judges.answer_forms.in_form`.

    Raises:
        ValueError: The reply holds no answer, more than one, or one that does not fit the model.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"the reply is {len(text):,} characters long; an answer has at most {_LONGEST:,}")
    only, drafts = _only_object(text)
    answered = _validated(only, answer, text[only.end :])
    others = {draft.sorted_json: draft for draft in drafts if draft.sorted_json != only.sorted_json}
    if any(_fits(draft, answer) for draft in others.values()):
        raise ValueError("the reply holds two different answers, and which of them counts is unclear")
    return answered


def _validated(only: _Object, answer: type[Answer], rest: str = "") -> Answer:
    """Return the answer that an object is.

    Raises:
        ValueError: It does not fit the model, or lost fields, which the model may not require, to the rest of the reply.
    """
    schema = _schema(answer)
    properties = cast("JsonObject", schema.get("properties", {})).keys()
    fields, written = only.fields, only.written
    if only.is_call and properties.isdisjoint(_ARGUMENTS):
        fields = _arguments(fields)
        written = json.dumps(fields)
    lost = [name for name in properties - fields.keys() if only.is_completed or f'"{name}"' in rest]
    if lost:
        raise ValueError(f"the reply's JSON ends before {short_repr(min(lost))}")
    try:
        return answer.model_validate_json(written)
    except ValidationError as error:
        formed = json.dumps(in_form(fields, schema, schema))
        try:
            return answer.model_validate_json(formed)
        except ValidationError:
            raise ValueError(validation_message(error)) from error


def _fits(only: _Object, answer: type[BaseModel]) -> bool:
    try:
        _validated(only, answer)
    except ValueError:
        return False
    return True


def _arguments(fields: JsonObject) -> JsonObject:
    """Return the arguments of a call, which may be written as text; any other object as it is."""
    for name in _ARGUMENTS:
        if fields.keys() - {"id", "type"} == {"name", name}:
            arguments = fields[name]
            if isinstance(arguments, str):
                with suppress(json.JSONDecodeError, RecursionError):
                    arguments = cast("JsonValue", _decoder.decode(arguments))
            return arguments if isinstance(arguments, dict) else fields
    return fields


@cache
def _schema(answer: type[BaseModel]) -> JsonObject:
    return cast("JsonObject", answer.model_json_schema())


def _only_object(text: str) -> tuple[_Object, list[_Object]]:
    """Return the only JSON object in a text outside of reasoning, and those in reasoning whose start is not marked."""
    at = 0
    while (block := _BLOCK.match(text, at)) is not None:
        at = block.end()
    if _BLOCK_START.match(text, at):
        raise ValueError("the reply is reasoning that does not end")
    drafts: list[_Object] = []
    objects: list[_Object] = []
    damaged = 0
    closing = _REASONING_END.search(text, at)
    while True:
        if closing is not None and closing.start() < at:  # in a text of an object
            closing = _REASONING_END.search(text, at)
        opening = _OBJECT_START.search(text, at)
        if opening is not None and (closing is None or opening.start() < closing.start()):
            try:
                objects.append(_read_object(text, opening.start(), may_lack_brace=not objects))
                at = objects[-1].end
                continue
            except ValueError:
                damaged += 1
                if closing is None or damaged > _MOST_DAMAGED:
                    raise
        if closing is None:
            break
        drafts, objects, at = drafts + objects, [], closing.end()
    if not objects:
        problem = f"holds no JSON object, found {short_repr(text[:100])}" if text.strip() else "is empty"
        raise ValueError(f"the reply {problem}")
    if any(other.sorted_json != objects[0].sorted_json for other in objects[1:]):
        raise ValueError("the reply holds two different JSON objects, and which of them counts is unclear")
    if (drafts or damaged) and not _END_OF_REPLY.match(text, objects[0].end):
        raise ValueError("the reply goes on after its answer, and may only quote the end of its reasoning")
    return objects[0], drafts


def _read_object(text: str, start: int, *, may_lack_brace: bool) -> _Object:
    is_call = _CALL_TAG.search(text, max(0, start - _CALL_TAG_LENGTH), start) is not None
    try:
        fields, end = _decoder.raw_decode(text, start)
        return _Object(fields, text[start:end], end, is_call)
    except json.JSONDecodeError as error:
        if (repaired := _repaired(text, start, is_call=is_call)) and (may_lack_brace or not repaired.is_completed):
            return repaired
        there = short_repr(text[error.pos : error.pos + 40]) if error.pos < len(text) else "its end"
        raise ValueError(f"the reply's JSON is broken: {error.msg}: character {error.pos}, found {there}") from None
    except RecursionError:
        raise ValueError("the reply's JSON is nested too deeply") from None


def _repaired(text: str, start: int, *, is_call: bool) -> _Object | None:
    """Return an object without commas before brackets, with its last brace, and with any characters in its texts."""
    pieces: list[str] = []
    at, end, depth = start, start, 0
    for token in _TOKEN.finditer(text, start):
        end = token.end()
        if token[0] == ",":
            pieces.append(text[at : token.start()])
            at = end
        elif token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                break
    if is_completed := depth == 1:
        if (last := _END_WITHOUT_BRACE.match(text, end)) is None:
            return None
        end = last.end(1) if last[1] else end
    written = "".join([*pieces, text[at:end], "}" * is_completed])
    try:
        fields = _lenient_decoder.decode(written)
    except (json.JSONDecodeError, RecursionError):
        return None
    return _Object(fields, json.dumps(fields), len(text) if is_completed else end, is_call, is_completed)


def _sorted_json(fields: JsonValue) -> str:
    return json.dumps(fields, sort_keys=True)  # true and 1 are equal in Python


def _unambiguous(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    values = dict(pairs)
    if len(values) < len(pairs):
        for name, value in pairs:
            if _sorted_json(values[name]) != _sorted_json(value):
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


_Decoder = partial(
    json.JSONDecoder,
    object_pairs_hook=_unambiguous,
    parse_float=_finite,
    parse_int=_whole_number,
    parse_constant=_no_number,
)
_decoder, _lenient_decoder = _Decoder(), _Decoder(strict=False)

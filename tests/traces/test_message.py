"""Messages, their parts and their tool calls."""

import json
from datetime import date
from decimal import Decimal
from http import HTTPStatus
from typing import Annotated

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter, ValidationError

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.equality import repeated_keys
from judgekit.traces.fast_models import CheckedInC, construct
from judgekit.traces.message import (
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    is_unicode,
    parse_arguments,
)
from judgekit.traces.sample import Sample

MESSAGES = TypeAdapter(Message)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=10)  # lone surrogates too
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)


def strictly(text: str) -> object:
    """JSON by the letter of its grammar, without NaN and Infinity."""

    def refuse(constant: str) -> object:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def nested(levels: int) -> str:
    """An object of one level more."""
    return '{"a": ' + "[" * levels + "]" * levels + "}"


def test_constructors_take_values_by_position_as_by_keyword():
    cases = [
        (ToolCall("f", {"a": 1}), ToolCall(name="f", args={"a": 1})),
        (TextPart("x"), TextPart(text="x")),
        (OtherPart({"x": [1]}), OtherPart(data={"x": [1]})),
        (SystemMessage("x", role="developer"), SystemMessage(role="developer", content="x")),
        (HumanMessage("x"), HumanMessage(content="x")),
    ]
    for by_position, by_keyword in cases:
        assert by_position == by_keyword
        assert type(by_position).model_validate(by_position.model_dump()) == by_keyword


def test_what_a_constructor_cannot_place_is_a_type_error():
    with pytest.raises(TypeError, match=r"^HumanMessage got multiple values for 'content'$"):
        HumanMessage("a", content="b")
    with pytest.raises(TypeError, match=r"^ToolCall takes 2 positional arguments, got 3$"):
        ToolCall("f", {}, "id")


def test_records_are_frozen_and_refuse_fields_they_do_not_know():
    for record in (ToolCall("f"), Usage(), TextPart("x"), OtherPart(1), AIMessage("x"), ToolMessage("x")):
        with pytest.raises(ValidationError, match="frozen"):
            record.extra = {}
        with pytest.raises(ValidationError, match=r"(?s)contnt.*Extra inputs are not permitted"):
            type(record).model_validate({**record.model_dump(), "contnt": "x"})


def test_text_is_what_was_said_refusals_included_reasoning_not():
    parts = [TextPart("a"), ReasoningPart("thought"), RefusalPart("no"), OtherPart("o"), MediaPart(kind="file")]
    assert [AIMessage(content).text for content in ("said", [], parts)] == ["said", "", "a\nno"]


@given(st.one_of(map(st.from_type, [SystemMessage, HumanMessage, AIMessage, ToolMessage])))
def test_any_message_is_the_same_after_a_json_round_trip(message):
    assert MESSAGES.validate_json(message.model_dump_json()) == message


def test_arguments_are_a_json_object_or_its_text_or_none():
    for found in ['{"a": {"b": [1, null]}}', {"a": {"b": [1, None]}}, ' {"a":{"b":[1,null]}}\n']:
        assert ToolCall("f", found) == ToolCall(name="f", args={"a": {"b": [1, None]}})
    for nothing in ["", None, {}, "{}"]:
        assert ToolCall("f", nothing) == ToolCall("f")
        assert parse_arguments(nothing)["args"] == {}


def test_one_extra_layer_of_quotes_is_taken_off_and_the_original_kept():
    twice = json.dumps(json.dumps({"a": 1}))
    assert ToolCall("f", twice) == ToolCall("f", {"a": 1}, args_raw=twice)


@st.composite
def texts_of_arguments(draw):
    """Return the JSON text of an object, and whether an object in it repeats a key."""
    key = st.sampled_from(["a", "b", '"', "\u00e9", 'x"y'])

    def objects(values):
        return st.lists(st.tuples(key, values), max_size=3).map(lambda members: ("object", members))

    leaf = st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=3), key)
    inner = st.recursive(leaf, lambda values: objects(values) | st.lists(values, max_size=3), max_leaves=8)

    def written(value) -> tuple[str, bool]:
        if isinstance(value, tuple):
            members = [(text, *written(inner)) for text, inner in value[1]]
            keys = [text for text, _, _ in members]
            escaped = [json.dumps(text).replace('\\"', draw(st.sampled_from(['\\"', "\\u0022"]))) for text in keys]
            pairs = zip(escaped, members, strict=True)
            inside = ",".join(f"{name}: {inner}" for name, (_, inner, _) in pairs)
            return f"{{{inside}}}", len({*keys}) < len(keys) or any(repeats for _, _, repeats in members)
        if isinstance(value, list):
            parts = [written(inner) for inner in value]
            return f"[{', '.join(text for text, _ in parts)}]", any(repeats for _, repeats in parts)
        return json.dumps(value, ensure_ascii=draw(st.booleans())), False

    return written(draw(objects(inner)))


@given(case=texts_of_arguments(), quoted=st.booleans())
@example(case=('{"a":1,"a":2}', True), quoted=False)
@example(case=('{"\\u0022": "\\u0022", "a": [{"b": 1, "b": 1}]}', True), quoted=False)
def test_the_text_of_arguments_is_kept_where_it_repeats_a_key(case, quoted):
    text, repeats = case
    recorded = json.dumps(text) if quoted else text
    call = ToolCall("f", recorded)
    assert call.args_error is None
    assert call.args_raw == (recorded if repeats or quoted else None)
    assert bool(repeated_keys(recorded)) == repeats


THRICE = json.dumps(json.dumps(json.dumps({"a": 1})))


def test_arguments_that_are_no_json_object_are_kept_as_text_with_the_reason():
    cases = [
        ("null", "null", "not a JSON object but None"),
        ("[1]", "[1]", "not a JSON object but [1]"),
        (3, "3", "not a JSON object but 3"),
        ([], "[]", "not a JSON object but []"),
        (THRICE, THRICE, "not a JSON object but '"),
        ("oops", "oops", "not JSON: "),
        ('{"a": "cut o', '{"a": "cut o', "not JSON: "),
        ('{"a": NaN}', '{"a": NaN}', "not valid JSON: it contains nan"),
        ('{"a": [Infinity]}', '{"a": [Infinity]}', "not valid JSON: it contains inf"),
        ('{"a": 1e999}', '{"a": 1e999}', "not valid JSON: it contains inf"),
        ({"a": float("nan")}, '{"a": NaN}', "not valid JSON: it contains nan"),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}', "not JSON: "),
        ('{"a": "\ud800"}', '{"a": "\\ud800"}', "not JSON: "),
        ("\ud800", "\\ud800", "not JSON: "),
        ({"a": "\ud800"}, '{"a": "\\ud800"}', "not valid JSON: it contains a lone surrogate"),
        ({"a": {"\udfff": 1}}, '{"a": {"\\udfff": 1}}', "not valid JSON: it contains a lone surrogate"),
        ("[" * 10_000, "[" * 10_000, "not JSON: "),
        (nested(180), nested(180), "not valid JSON: it contains more than 180 levels of objects and lists"),
        (json.loads(nested(198)), nested(198), "not valid JSON: it contains more than 180 levels of objects and lists"),
    ]
    for found, raw, error in cases:
        call = ToolCall("f", found)
        assert (call.args, call.args_raw) == ({}, raw)
        assert call.args_error.startswith(error)
        assert ToolCall.model_validate(strictly(call.model_dump_json())) == call


@given(ANY_VALUE | ANY_TEXT | ANY_VALUE.map(json.dumps) | ANY_VALUE.map(json.dumps).map(json.dumps))
def test_any_arguments_make_a_call_that_is_valid_json(found):
    call = ToolCall("f", found)
    assert ToolCall.model_validate(strictly(call.model_dump_json())) == call
    if call.args_error is not None:
        assert call.args == {}
        assert call.args_raw
    elif isinstance(found, dict):
        assert call == ToolCall(name="f", args=found, args_raw=None)


def test_not_a_number_in_what_was_recorded_is_not_lost():
    message = HumanMessage("x", metadata={"a": [float("nan"), float("inf")]})
    back = HumanMessage.model_validate_json(message.model_dump_json())
    assert repr(back) == repr(message)


class _Word(str):
    __slots__ = ()


ANY_OBJECT = st.recursive(
    ANY_VALUE | st.sampled_from([(1,), {2}, b"x", Decimal(1), date(2026, 1, 2), _Word("w"), HTTPStatus.OK, object()]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ANY_TEXT | st.just(1), inner, max_size=2),
    max_leaves=4,
)


@given(ANY_OBJECT)
@example(json.loads('{"a":' * 300 + "1" + "}" * 300))
@example({"a": 10**400})
@example({"a": b"x"})
@example({1: "a"})
def test_json_of_a_record_is_what_pydantic_takes_for_json(value):
    def found(kind):
        try:
            return repr(TypeAdapter(kind).validate_python(value))  # NaN is not equal to itself
        except (ValidationError, RecursionError) as error:
            return str(error).partition("\n")[2]

    assert found(JsonObject) == found(dict[str, JsonValue])
    assert found(Annotated[JsonValue, CheckedInC]) == found(JsonValue)


def test_json_of_a_record_is_a_copy():
    inner = {"b": [1]}
    sample = Sample(id="s", fields={"a": inner})
    inner["b"].append(2)
    assert sample.fields == {"a": {"b": [1]}}
    sample.model_dump()["fields"]["a"]["b"].append(3)
    assert sample.fields == {"a": {"b": [1]}}


@given(ANY_VALUE)
def test_recorded_arguments_are_those_that_validation_makes_of_them(found):
    for arguments in (found, {"a": found}, json.dumps(found), json.dumps({"a": found}), json.dumps(json.dumps(found))):
        recorded = ToolCall.recorded("f", arguments, id="1")
        validated = ToolCall.model_validate({"name": "f", "args": arguments, "id": "1"})
        assert repr(recorded) == repr(validated)  # NaN is not equal to itself


def test_recorded_arguments_may_be_nested_as_deeply_as_validated_ones():
    for depth in [180, 181, 255, 256, 600]:
        arguments = {"a": 1}
        for _ in range(depth - 1):
            arguments = {"a": arguments}
        call = ToolCall.recorded("f", arguments)
        assert call == ToolCall("f", arguments)
        assert (call.args_error is None) == (depth <= 180)


def test_json_that_a_reader_leaves_over_is_refused_where_validation_refuses_it():
    too_deep = json.loads('{"a":' * 300 + "1" + "}" * 300)
    with pytest.raises(ValidationError):
        AIMessage.parsed({}, too_deep)
    for extra in ({}, {"a": [float("inf"), None]}):
        assert AIMessage.parsed({"content": "x"}, extra) == AIMessage("x", extra=extra)


@given(st.integers(0, 9), ANY_TEXT.filter(is_unicode))
def test_records_made_of_valid_fields_equal_validated_ones_and_share_nothing_with_their_copies(count, text):
    for valid in (Usage(input_tokens=count), ToolCall(text, {"a": count}), AIMessage(text, agent="x")):
        made = construct(type(valid), dict(vars(valid)))
        assert made == valid
        assert made.model_dump_json() == valid.model_dump_json()
        copy = made.model_copy(update={"extra": {"b": 1}})
        assert (copy.extra, made.extra) == ({"b": 1}, {})
        made.model_fields_set.clear()
        assert made.model_fields_set == set(type(valid).model_fields)

"""Helpers for JSON values of any type."""

import pytest

from judgekit.formats.values import (
    as_list,
    as_object,
    first_object,
    head,
    is_encodable,
    is_number,
    lookup,
    objects_in,
    parse_if_json,
    str_or_none,
    without,
)

OTHERS = [None, True, 7, "text", [1, {"a": 1}], {"a": {"b": 2}}]


def test_a_path_of_names_leads_to_a_value_or_to_nothing():
    assert lookup({"a": {"b": 2}}, "a", "b") == 2
    assert [lookup(value, "a", "b") for value in OTHERS] == [None, None, None, None, None, 2]


def test_values_of_other_types_are_empty_ones():
    assert [as_object(value) for value in OTHERS] == [{}, {}, {}, {}, {}, {"a": {"b": 2}}]
    assert [as_list(value) for value in OTHERS] == [[], [], [], [], [1, {"a": 1}], []]
    assert [objects_in(value) for value in OTHERS] == [[], [], [], [], [{"a": 1}], []]
    assert [str_or_none(value) for value in OTHERS] == [None, None, None, "text", None, None]


def test_only_the_first_items_of_a_list_are_looked_at():
    assert head(list(range(1000))) == list(range(50))
    assert head("text") == []
    assert first_object([1, {"a": 1}, {"b": 2}]) == {"a": 1}
    assert first_object([1] * 50 + [{"a": 1}]) == {}


def test_an_object_without_some_fields_is_another_object():
    whole = {"a": 1, "b": 2}
    assert without(whole, "a", "c") == {"b": 2}
    assert whole == {"a": 1, "b": 2}


@pytest.mark.parametrize("text", ["", "text", "{", "[" * 100_000])
def test_a_text_that_is_no_json_is_itself(text):
    assert parse_if_json(text) is text


def test_a_text_is_what_it_holds_as_json():
    assert [parse_if_json(value) for value in ('{"a": 1}', "null", 7, {"a": "[]"})] == [{"a": 1}, None, 7, {"a": "[]"}]


def test_finite_numbers_are_numbers():
    assert all(map(is_number, (0, -1.5, 1 << 60)))
    assert not any(map(is_number, (True, "1", None, float("nan"), float("inf"), 10**400)))


def test_text_with_lone_surrogates_and_values_nested_without_end_cannot_be_encoded():
    assert all(is_encodable(value) for value in [*OTHERS, float("nan"), "\u00e9", [[{"a": [1e308]}]]])
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert [is_encodable(value) for value in ("\ud800", {"\udfff": 1}, [{"a": ["x\ud800"]}], deep)] == [False] * 4

"""Values in the arguments of an expected call that stand for more than themselves."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.matchers import (
    anything,
    between,
    contains,
    contains_matcher,
    near,
    of_type,
    one_of,
    parse_matcher,
    regex,
    similar,
)
from judgekit.traces.equality import same_json

KEY = "$judgekit"
VALUES = [None, True, False, 0, 1, 3, 3.0, 3.5, -2, 10**400, 1e308, "", "3", "true", [], [3], {}, {"a": 3}]


def matches(matcher, found):
    parsed = parse_matcher(matcher)
    assert parsed is not None
    return parsed.matches(found)


WRITTEN = [
    (anything(), {KEY: "anything"}),
    (of_type("integer"), {KEY: "of_type", "type": "integer"}),
    (regex("^a"), {KEY: "regex", "pattern": "^a"}),
    (contains("a"), {KEY: "contains", "part": "a"}),
    (one_of("a", 1, None), {KEY: "one_of", "values": ["a", 1, None]}),
    (near(3.0, tolerance=0.1), {KEY: "near", "value": 3.0, "tolerance": 0.1}),
    (between(1, None), {KEY: "between", "low": 1, "high": None}),
    (similar("a"), {KEY: "similar", "text": "a", "at_least": 0.8}),
]


def test_a_matcher_is_plain_json_under_one_key():
    for made, plain in WRITTEN:
        assert type(made) is dict
        assert json.dumps(made) == json.dumps(plain)


texts = st.text(alphabet="ab1 é", max_size=5)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
ranges = st.lists(numbers, min_size=2, max_size=2).map(sorted) | st.lists(texts, min_size=2, max_size=2).map(sorted)
shares = st.floats(0, 1)
simple = st.one_of(
    st.builds(anything),
    st.builds(of_type, st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])),
    st.builds(regex, texts),
    st.builds(lambda value, tolerance: near(value, tolerance=abs(tolerance)), numbers, numbers),
    st.builds(lambda ends: between(*ends), ranges),
    st.builds(lambda ends: between(ends[0], None), ranges),
    st.builds(lambda ends: between(None, ends[1]), ranges),
    st.builds(lambda text, share: similar(text, at_least=share), texts, shares),
)
matchers = st.recursive(
    simple,
    lambda inner: (
        st.builds(contains, json_values | inner)
        | st.lists(json_values | inner, min_size=1, max_size=3).map(lambda values: one_of(*values))
    ),
    max_leaves=4,
)


def test_every_other_key_is_literal():
    cases = [*VALUES, {"$gt": 3}, {"$JUDGEKIT": "near"}, {"judgekit": "near"}, {"$": 1}, [KEY]]
    for value in cases:
        assert parse_matcher(value) is None


@given(json_values, matchers)
def test_a_matcher_is_noticed_however_deep_it_stands(value, matcher):
    assert not contains_matcher(value)
    assert not contains_matcher({"a": [{"$near": value}]})
    assert contains_matcher(matcher)
    assert contains_matcher({"a": value, "b": [value, {"c": [[matcher]]}]})


def test_anything_is_any_value():
    for found in VALUES:
        assert matches(anything(), found)


OF_TYPE = {
    "null": [None],
    "boolean": [True, False],
    "integer": [0, 1, 3, 3.0, -2, 10**400, 1e308],
    "number": [0, 1, 3, 3.0, 3.5, -2, 10**400, 1e308],
    "string": ["", "3", "true"],
    "array": [[], [3]],
    "object": [{}, {"a": 3}],
}


@pytest.mark.parametrize("name", OF_TYPE)
def test_a_type_is_that_of_json(name):
    found = [value for value in VALUES if matches(of_type(name), value)]
    assert repr(found) == repr(OF_TYPE[name])


def test_a_pattern_is_searched_for_in_texts_alone():
    cases = [
        (r"\d+", "order 12", True),
        (r"^\d+", "order 12", False),
        ("", "", True),
        ("(?i)paris", "In PARIS", True),
        ("3", 3, False),
        ("3", ["3"], False),
    ]
    for pattern, found, fits in cases:
        assert matches(regex(pattern), found) is fits


def test_a_text_contains_a_text_and_a_list_an_equal_element():
    cases = [
        ("ar", "Paris", True),
        ("", "", True),
        ("3", 3, False),
        ("a", ["b", "a"], True),
        (3, [1, 3.0], True),
        (1, [True], False),
        ({"id": 1}, [{"id": 1.0}], True),
        ({"id": 1}, [{"id": 1, "more": 2}], False),
        ("a", {"a": 1}, False),
        (None, [None], True),
        (near(3, tolerance=1), [9, 4], True),
        (near(3, tolerance=1), [9, 5], False),
        (regex("a"), "a", False),
    ]
    for part, found, fits in cases:
        assert matches(contains(part), found) is fits


def test_one_of_several_values_is_enough():
    cases = [
        (("a", "b"), "c", False),
        ((1,), True, False),
        (([1, 2],), [1, 2.0], True),
        (("x", near(3, tolerance=1)), 4, True),
        (("x", near(3, tolerance=1)), 5, False),
        (([near(3, tolerance=1), "x"],), [2, "x"], True),
        (([near(3, tolerance=1), "x"],), [2], False),
        (({"a": {"b": of_type("null")}},), {"a": {"b": None}}, True),
        (({"a": {"b": of_type("null")}},), {"a": {"b": None}, "c": 1}, False),
        ((one_of(1, 2), one_of(3)), 3, True),
    ]
    for values, found, fits in cases:
        assert matches(one_of(*values), found) is fits


@given(st.lists(json_values, min_size=1, max_size=3), json_values)
def test_without_matchers_one_of_and_contains_are_equality(values, found):
    assert matches(one_of(*values), found) is any(same_json(value, found) for value in values)
    assert matches(contains(found), values) is any(same_json(found, value) for value in values)


def test_near_counts_in_decimals_as_written():
    cases = [
        (3.0, 0.1, 3.1, True),
        (3.0, 0.1, 3.1000000000000005, False),
        (0.3, 0, 0.3, True),
        (0.3, 0, 0.1 + 0.2, False),
        (3, 1, True, False),
        (3, 1, "3", False),
        (10**40, 0, 10**40 + 1, False),
        (10**40, 1, 10**40 + 1, True),
        (2**53, 0, 2**53 + 1, False),
        (0, 5e-324, 5e-324, True),
        (1e308, 1e308, -1e308, False),
        (1e308, 2 * 10**308, -1e308, True),
    ]
    for value, tolerance, found, fits in cases:
        assert matches(near(value, tolerance=tolerance), found) is fits


def test_numbers_of_any_length_can_be_near():
    huge = 10**100_000
    assert not matches(near(3.0, tolerance=0.1), huge)
    assert matches(near(-huge, tolerance=1), 1 - huge)
    assert not matches(near(-huge, tolerance=1), 2 - huge)


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**4), st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_near_agrees_with_whole_numbers_of_the_last_decimal(value, tolerance, found, places):
    def written(number: int) -> float:
        return float(f"{number}e-{places}")

    expected = near(written(value), tolerance=written(tolerance))
    assert matches(expected, written(found)) is (abs(found - value) <= tolerance)
    assert matches(expected, written(value + tolerance))
    assert not matches(expected, written(value + tolerance + 1))


def test_between_holds_both_ends_and_one_kind_of_value():
    cases = [
        (1, 3, 1, True),
        (1, 3, 3.0, True),
        (1, 3, 3.001, False),
        (None, 3, -(10**400), True),
        (1, None, 10**400, True),
        (0, 1, True, False),
        (1, 3, "2", False),
        ("2025-01-01", "2025-12-31", "2025-12-31", True),
        ("2025-01-01", None, "2024-12-31", False),
        (None, "2025-01-01", "2024-12-31T23:59", True),
        ("1", "3", 2, False),
    ]
    for low, high, found, fits in cases:
        assert matches(between(low, high), found) is fits


def test_similar_is_a_share_of_the_characters_in_order():
    cases = [
        ("abc", 1, "abc", True),
        ("", 1, "", True),
        ("", 0.1, "a", False),
        ("abc", 0, "xyz", True),
        ("abcd", 0.51, "abxy", False),
        ("3", 0, 3, False),
        ("a" * 22 + "b" * 28, 0.44, "a" * 22 + "c" * 28, True),  # of floats, 1 - 0.56 is below 0.44
        ("a" * 9 + "b", 0.9, "a" * 9 + "c", True),  # and 1 - 0.9 is below 0.1
        ("Paris", 0.8, "x" * 10**7, False),
    ]
    for text, at_least, found, fits in cases:
        assert matches(similar(text, at_least=at_least), found) is fits


def common(left: str, right: str) -> int:
    """The length of the longest common subsequence, by its definition."""

    @cache
    def longest(i: int, j: int) -> int:
        if i == len(left) or j == len(right):
            return 0
        if left[i] == right[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


@given(texts, texts, st.integers(0, 100))
def test_similarity_is_twice_the_longest_common_subsequence_over_both_lengths(text, found, percent):
    expected = 200 * common(text, found) >= percent * (len(text) + len(found))
    assert matches(similar(text, at_least=percent / 100), found) is expected


MALFORMED = {
    "no such matcher": ({KEY: "neer", "value": 3}, "Did you mean 'near'? Known: anything, of_type, regex"),
    "a number for a name": ({KEY: 3}, "no value matcher is called 3"),
    "lacking": ({KEY: "near", "value": 3}, "'near': tolerance: Field required"),
    "misspelled": ({KEY: "near", "value": 3, "tolerance": 1, "tol": 1}, "tol: Extra inputs are not permitted, found 1"),
    "below zero": ({KEY: "near", "value": 3, "tolerance": -1}, "tolerance: Input should be greater than or equal to 0"),
    "no such type": ({KEY: "of_type", "type": "int"}, "'integer', 'boolean', 'object', 'array' or 'null', found 'int'"),
    "no pattern": ({KEY: "regex", "pattern": "("}, "pattern: not a valid regular expression: missing )"),
    "too deep a pattern": ({KEY: "regex", "pattern": "(" * 10_000}, "recursion depth"),
    "malformed within": ({KEY: "one_of", "values": [1, {"a": [{KEY: "neer"}]}]}, "values[1]: no value"),
    "malformed element": ({KEY: "contains", "part": {KEY: "near"}}, "part: value matcher 'near': value:"),
    "no end": ({KEY: "between"}, "low and high are both None"),
    "upside down": ({KEY: "between", "low": 3, "high": 1}, "low not above high"),
    "two kinds": ({KEY: "between", "low": 1, "high": "3"}, "two numbers or two strings"),
    "no range": ({KEY: "between", "low": True, "high": [1]}, "low: Input should be a valid number, found True"),
}


def test_a_malformed_matcher_says_what_is_wrong():
    for value, problem in MALFORMED.values():
        with pytest.raises(ValueError, match="value matcher") as caught:
            parse_matcher(value)
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_matcher_that_makes_no_sense_cannot_be_written():
    cases = [lambda: contains({KEY: "neer"}), one_of, lambda: between(None, None), lambda: similar("a", at_least=1.1)]
    for write in cases:
        with pytest.raises(ValueError, match="value matcher"):
            write()

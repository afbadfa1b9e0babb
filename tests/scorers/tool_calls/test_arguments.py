"""How arguments are compared."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.arguments import Comparison, compare_arguments, same_json
from judgekit.traces.message import ToolCall
from judgekit.traces.sample import ExpectedCall

EQUAL = [
    (75, 75.0),
    (0, -0.0),
    (100, 1e2),
    (10**30, 10**30),
    ("é", "é"),
    ("", ""),
    (None, None),
    (True, True),
    (False, False),
    ([], []),
    ({}, {}),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    ({"o": {"p": 1, "q": [{}]}}, {"o": {"q": [{}], "p": 1.0}}),
    ([1, [2, {"x": None}]], [1.0, [2, {"x": None}]]),
]
DIFFERENT = [
    (True, 1),
    (True, 1.0),
    (False, 0),
    ("75", 75),
    ("75", 75.0),
    ("true", True),
    ("null", None),
    ("None", None),
    ("", None),
    (0, None),
    (False, None),
    ([], None),
    ({}, None),
    ([], {}),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    ([1], 1),
    ([True], [1]),
    ("[]", []),
    ({"a": None}, {}),
    ({"a": True}, {"a": 1}),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 1}),
    ({"a": {"b": "1"}}, {"a": {"b": 1}}),
    ("a", "A"),
    ("a", "a "),
    ("é", "e\u0301"),
    (0.1 + 0.2, 0.3),
    (2**53 + 1, float(2**53)),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_json_is_the_same_either_way_round(left, right):
    assert same_json(left, right) is True
    assert same_json(right, left) is True


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_other_types_and_other_values_are_not_the_same_either_way_round(left, right):
    assert same_json(left, right) is False
    assert same_json(right, left) is False


def canonical(value: object) -> object:
    """A value that is equal for equal JSON: a second implementation."""
    if isinstance(value, list):
        return "list", tuple(map(canonical, value))
    if isinstance(value, dict):
        return "object", frozenset((key, canonical(inner)) for key, inner in value.items())
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    return "number", Fraction(value)


scalars = st.sampled_from([None, True, False, 0, 1, 1.0, 0.0, 0.5, "", "1", "0", "null", "true", 75, 75.0, "75"])
keys = st.sampled_from(["a", "b", "1", ""])
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2), max_leaves=4
)
objects = st.dictionaries(keys, json_values, max_size=3)


@settings(max_examples=100)
@given(json_values, json_values)
def test_two_values_are_the_same_just_if_their_canonical_forms_are(left, right):
    assert same_json(left, right) is (canonical(left) == canonical(right))
    assert same_json(right, left) is same_json(left, right)


def rewritten(value: object) -> object:
    """The same JSON, written in another way: keys turned round, whole numbers with a point."""
    if isinstance(value, list):
        return [rewritten(inner) for inner in value]
    if isinstance(value, dict):
        return {key: rewritten(inner) for key, inner in reversed(value.items())}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@settings(max_examples=100)
@given(json_values)
def test_a_value_is_the_same_as_itself_however_it_is_written(value):
    assert same_json(value, value)
    assert same_json(value, rewritten(value))
    assert same_json(rewritten(value), value)


BROKEN = ToolCall("f", "{broken")  # type: ignore[arg-type]

CASES = {
    "nothing to compare": ({}, None, {}, (), ()),
    "all equal": ({"a": 1, "b": "x"}, None, {"b": "x", "a": 1.0}, ("a", "b"), ()),
    "one of three differs": ({"a": 1, "b": 2, "c": 3}, None, {"a": 1, "b": 2, "c": 4}, ("a", "b"), ("c",)),
    "one is missing": ({"a": 1, "b": 2}, None, {"a": 1}, ("a",), ("b",)),
    "one that nobody expected": ({"a": 1}, None, {"a": 1, "vip": True}, ("a",), ("vip",)),
    "none was expected": ({}, None, {"a": 1}, (), ("a",)),
    "other names": ({"a": 1}, None, {"b": 1}, (), ("a", "b")),
    "null is not missing": ({"a": None}, None, {}, (), ("a",)),
    "missing is not null": ({}, None, {"a": None}, (), ("a",)),
    "null is null": ({"a": None}, None, {"a": None}, ("a",), ()),
    "nested": ({"a": {"b": [1]}, "c": 1}, None, {"a": {"b": [1.0]}, "c": 1}, ("a", "c"), ()),
    "unhashable and different": ({"a": [{}]}, None, {"a": [[]]}, (), ("a",)),
    "the tool alone": ({"a": 1}, [], {"a": 2, "b": 3}, (), ()),
    "a subset agrees": ({"a": 1, "b": 2}, ["a"], {"a": 1, "b": 9, "c": 9}, ("a",), ()),
    "a subset differs": ({"a": 1, "b": 2}, ["a"], {"a": 9, "b": 2}, (), ("a",)),
    "a subset in part": ({"a": 1, "b": 2, "c": 3}, ["c", "a"], {"a": 1, "b": 9, "c": 9}, ("a",), ("c",)),
    "a subset that both lack": ({"a": 1}, ["b"], {"a": 2}, ("b",), ()),
    "a subset that one lacks": ({"a": 1, "b": None}, ["b"], {"a": 1}, (), ("b",)),
    "a name twice counts once": ({"a": 1, "b": 2}, ["a", "a", "b"], {"a": 1}, ("a",), ("b",)),
}


@pytest.mark.parametrize(("expected", "compare_args", "made", "matched", "different"), CASES.values(), ids=CASES)
def test_arguments_are_compared_name_by_name(expected, compare_args, made, matched, different):
    found = compare_arguments(ExpectedCall("f", expected, compare_args=compare_args), ToolCall("f", made))
    assert found == Comparison(matched, different)
    union = len(matched) + len(different)
    assert found.accuracy == (float(Fraction(len(matched), union)) if union else 1)


@pytest.mark.parametrize(
    ("expected", "compare_args", "different", "accuracy"),
    [
        ({"a": 1, "b": 2}, None, ("a", "b"), 0),
        ({}, None, ("arguments",), 0),
        ({"a": 1, "b": 2}, ["b"], ("b",), 0),
        ({"a": 1}, ["x"], ("x",), 0),
        ({"a": 1}, [], (), 1),
    ],
    ids=["all", "none expected", "subset", "subset that is not there", "the tool alone"],
)
def test_arguments_that_cannot_be_read_agree_in_none(expected, compare_args, different, accuracy):
    assert BROKEN.args_error is not None
    found = compare_arguments(ExpectedCall("f", expected, compare_args=compare_args), BROKEN)
    assert (found, found.accuracy) == (Comparison((), different), accuracy)


@settings(max_examples=100)
@given(objects, objects)
def test_accuracy_is_matched_over_the_union_of_names_either_way_round(left, right):
    union = left.keys() | right.keys()
    agree = {name for name in left.keys() & right.keys() if canonical(left[name]) == canonical(right[name])}
    for expected, made in ((left, right), (right, left)):
        found = compare_arguments(ExpectedCall("f", expected), ToolCall("f", made))
        assert (set(found.matched), set(found.different)) == (agree, union - agree)
        assert len(found.matched) + len(found.different) == len(union)
        assert found.accuracy == (len(agree) / len(union) if union else 1)

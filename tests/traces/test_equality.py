"""When two JSON values are the same."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.equality import canonical_json, copy_json, same_json

EQUAL = [
    (75, 75.0),
    (0, -0.0),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    ({"o": {"p": 1, "q": [{}]}}, {"o": {"q": [{}], "p": 1.0}}),
    ([1, [2, {"x": None}]], [1.0, [2, {"x": None}]]),
]
DIFFERENT = [
    (True, 1),
    (False, 0),
    (False, -0.0),
    ("75", 75),
    ([], {}),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    (["a", 0], ["a", False]),
    ({"a": None}, {}),
    ({"a": True}, {"a": 1}),
    ({"a": "x", "b": [{"c": 1}]}, {"a": "x", "b": [{"c": True}]}),
    ({"a": 1}, {"a": 1, "b": 1}),
    ("é", "e\u0301"),
    (0.1 + 0.2, 0.3),
    (2**53 + 1, float(2**53)),
]


def test_json_is_the_same_just_if_types_and_values_are_either_way_round():
    for pairs, same in ((EQUAL, True), (DIFFERENT, False)):
        for left, right in pairs:
            assert same_json(left, right) is same_json(right, left) is same


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


@given(json_values)
def test_a_copy_is_the_same_with_the_same_types_and_shares_no_container(value):
    copied = copy_json({"a": [value], "b": value})
    assert repr(copied) == repr({"a": [value], "b": value})
    assert not isinstance(value, dict | list) or copied["b"] is not value


@given(json_values, json_values)
def test_values_have_one_canonical_text_just_if_they_are_the_same(left, right):
    assert (canonical_json(left) == canonical_json(right)) is same_json(left, right)
    assert canonical_json(rewritten(left)) == canonical_json(left)


def test_numbers_have_one_canonical_text_however_they_are_written():
    cases = [*EQUAL, *DIFFERENT, (10**16, 1e16), (15 * 10**16, 1.5e17), (0.5, 1.5e-7)]
    for left, right in cases:
        assert (canonical_json(left) == canonical_json(right)) is same_json(left, right)

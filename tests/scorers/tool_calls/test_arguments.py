"""How arguments are compared."""

import json
import re
import unicodedata
from fractions import Fraction
from math import isclose

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.arguments import (
    ABSENT,
    ArgComparison,
    ArgDifference,
    ArgMatch,
    any_glob,
    check_args_option,
    compare_arguments,
)
from judgekit.scorers.tool_calls.matchers import anything, near, of_type, one_of, regex, similar
from judgekit.traces.equality import MOST_LEVELS
from judgekit.traces.message import ToolCall
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import ExpectedCall


def compare(expected, made, how=None, *, compare_args=None, tools=(), **options):
    how = ArgMatch(**options) if how is None else how
    return compare_arguments(how, ExpectedCall("f", expected, compare_args=compare_args), ToolCall("f", made), tools)


def score(expected, made, **options):
    return compare({"x": expected}, {"x": made}, **options).score


def paths(found):
    return [difference.path for difference in found.differences]


ORDERED, UNORDERED, CONTAINS = ({"lists": one} for one in ("ordered", "unordered", "contains"))
AT_LEAST, AT_MOST = {"mode": "at_least"}, {"mode": "at_most"}
COERCE = {"types": "coerce"}

# What is expected, what is made, the options, and by path what stands on each side where they differ.
CASES = {
    "nothing": ({}, {}, {}, 1, []),
    "one of three": ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 4}, {}, 2 / 3, [("args.c", 3, 4)]),
    "none expected": ({}, {"a": 1}, {}, 0, [("args.a", ABSENT, 1)]),
    "null is not missing": ({"a": None}, {}, {}, 0, [("args.a", None, ABSENT)]),
    "missing is not null": ({}, {"a": None}, {}, 0, [("args.a", ABSENT, None)]),
    "true is not 1": ({"a": True}, {"a": 1}, {}, 0, [("args.a", True, 1)]),
    "nested": (
        {"a": {"b": [1, {"c": 2}], "d": 1}, "e": 1},
        {"a": {"b": [1, {"c": 3}], "f": 1}, "e": 1},
        {},
        1 / 2,
        [("args.a.b[1].c", 2, 3), ("args.a.d", 1, ABSENT), ("args.a.f", ABSENT, 1)],
    ),
    "object and list": ({"a": {}}, {"a": []}, {}, 0, [("args.a", {}, [])]),
    "shorter list": ({"a": [1, 2]}, {"a": [1]}, {}, 0, [("args.a[1]", 2, ABSENT)]),
    "longer list": ({"a": [1]}, {"a": [1, 2]}, {}, 0, [("args.a[1]", ABSENT, 2)]),
    # modes
    "at least: more is free": ({"a": 1}, {"a": 1, "b": 2}, AT_LEAST, 1, []),
    "at least: less is not": ({"a": 1, "b": 2}, {"a": 1, "c": 1}, AT_LEAST, 1 / 2, [("args.b", 2, ABSENT)]),
    "at least: not of a list": ({"a": [1]}, {"a": [1, 2]}, AT_LEAST, 0, [("args.a[1]", ABSENT, 2)]),
    "at most: less is free": ({"a": 1, "b": 2}, {"a": 1}, AT_MOST, 1, []),
    "at most: more is not": ({"a": 1, "c": 1}, {"a": 1, "b": 2}, AT_MOST, 1 / 2, [("args.b", ABSENT, 2)]),
    "at most: nothing": ({"a": 1}, {}, AT_MOST, 1, []),
    "ignore": ({"a": 1}, {"b": [2]}, {"mode": "ignore"}, 1, []),
    # only
    "only the other": ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"only": ["b"]}, 0, [("args.b", 2, 3)]),
    "only a whole": ({"a": {"b": [1]}}, {"a": {"b": [2]}}, {"only": ["a"]}, 0, [("args.a.b[0]", 1, 2)]),
    "only within": ({"a": {"b": 1, "c": 2}, "d": 1}, {"a": {"b": 1, "c": 3}}, {"only": ["a.b"]}, 1, []),
    "only within, gone": ({"a": {"b": 1, "c": 2}}, {}, {"only": ["a.b"]}, 0, [("args.a.b", 1, ABSENT)]),
    "only within, no object": ({"a": {"b": 1}}, {"a": 5}, {"only": ["a.b"]}, 0, [("args.a.b", 1, ABSENT)]),
    "only within, new": ({"a": {}}, {"a": {"b": 1}}, {"only": ["a.b"]}, 0, [("args.a.b", ABSENT, 1)]),
    "only in a list, no list": ({"a": [1]}, {"a": {}}, {"only": ["a[*]"]}, 0, [("args.a[0]", 1, ABSENT)]),
    "only in an object, a list": ({"a": {"b": 1}}, {"a": [2]}, {"only": ["a.*"]}, 0, [("args.a.b", 1, ABSENT)]),
    "only an element": ({"a": [1, 2]}, {"a": [1, 3]}, {"only": ["a[0]"]}, 1, []),
    "only of elements": (
        {"a": [{"i": 1, "n": 1}, {"i": 2}]},
        {"a": [{"i": 1, "n": 9}, {"i": 3}]},
        {"only": ["a[*].i"]},
        0,
        [("args.a[1].i", 2, 3)],
    ),
    "only the names of a kind": ({"ab": 1, "b": 1}, {"ab": 2, "b": 2}, {"only": ["a*"]}, 0, [("args.ab", 1, 2)]),
    "only, less what is ignored": ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"only": ["a"], "ignore": ["a.b"]}, 1, []),
    "only, beside a list": ({"a": 1, "l": [1]}, {"a": 1, "l": [1, 2]}, {"only": ["a"], **UNORDERED}, 1, []),
    # ignore
    "ignore one more": ({"b": 2}, {"a": 9, "b": 2}, {"ignore": ["a"]}, 1, []),
    "ignore within": ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 3}}, {"ignore": ["a.b"]}, 0, [("args.a.c", 1, 3)]),
    "ignore all within": ({"a": {"b": 1}}, {"a": {"b": 2}}, {"ignore": ["a.*"]}, 1, []),
    "ignore within, no object": ({"a": {"b": 1}}, {"a": 5}, {"ignore": ["a.b"]}, 0, [("args.a", {"b": 1}, 5)]),
    "ignore at any depth": ({"a": [{"t": 1}, {"b": {"t": 1}}]}, {"a": [{"t": 2}, {"b": {}}]}, {"ignore": ["*.t"]}, 1, []),
    "ignore elements in any order": ({"a": [1, 2]}, {"a": [3]}, {"ignore": ["a[*]"], **UNORDERED}, 1, []),
    "args is a name like others": ({"args": {"x": 1}, "x": 1}, {"args": {"x": 2}, "x": 2}, {"ignore": ["args.x"]}, 1 / 2, [("args.x", 1, 2)]),
    # odd names
    "empty name": ({"": 1}, {"": 2}, {}, 0, [('args[""]', 1, 2)]),
    "dots": ({"a.b": 1, "a": {"b": 1}}, {"a.b": 2, "a": {"b": 1}}, {}, 1 / 2, [('args["a.b"]', 1, 2)]),
    "dots ignored": ({"a.b": 1, "a": {"b": 1}}, {"a.b": 2, "a": {"b": 2}}, {"ignore": ['["a.b"]']}, 0, [("args.a.b", 1, 2)]),
    "spaces ignored": ({"a": {"b c": 1}}, {"a": {"b c": 2}}, {"ignore": ['a["b c"]']}, 1, []),
    "brackets": ({"a[0]": 1, "a": [1]}, {"a[0]": 2, "a": [2]}, {"ignore": ["a[0]"]}, 1 / 2, [('args["a[0]"]', 1, 2)]),
    "a number": ({"a": {"0": 1}}, {"a": {"0": 2}}, {"ignore": ["a[0]"]}, 0, [("args.a.0", 1, 2)]),
    "signs of a shell or an expression": ({"a?": 1, "ab": 1}, {"a?": 2, "ab": 2}, {"ignore": ["a?", "[ab]*", "a.", '["a?"]']}, 0, [("args.ab", 1, 2)]),
    "breaks of a line": ({"a\n\u2028": 1}, {}, {}, 0, [('args["a\\n\\u2028"]', 1, ABSENT)]),
    # defaults
    "default not given": ({"a": 1, "u": "C"}, {"a": 1}, {"defaults": {"u": "C"}}, 1, []),
    "default given": ({"a": 1}, {"a": 1, "u": "C"}, {"defaults": {"u": "C"}}, 1, []),
    "another than the default": ({}, {"u": "F"}, {"defaults": {"u": "C"}}, 0, [("args.u", "C", "F")]),
    "another than the default was expected": ({"u": "F"}, {}, {"defaults": {"u": "C"}}, 0, [("args.u", "F", "C")]),
    "null as a default": ({"a": None}, {}, {"defaults": {"a": None}}, 1, []),
    "a default is compared as others": ({"u": "c"}, {}, {"defaults": {"u": "C"}, "text": "casefold"}, 1, []),
    "a default for a matcher": ({"n": near(5, tolerance=1)}, {}, {"defaults": {"n": 5.5}}, 1, []),
    "at least: a default of what is made": ({"u": "C"}, {}, {"defaults": {"u": "C"}, **AT_LEAST}, 1, []),
    "at least: no default of what is free": ({}, {"u": "F"}, {"defaults": {"u": "C"}, **AT_LEAST}, 1, []),
    "at most: a default of what is expected": ({}, {"u": "C"}, {"defaults": {"u": "C"}, **AT_MOST}, 1, []),
    "at most: no default of what is free": ({"u": "F"}, {}, {"defaults": {"u": "C"}, **AT_MOST}, 1, []),
    # lists
    "unordered": ({"a": [1, 2, 2]}, {"a": [2, 1, 2]}, UNORDERED, 1, []),
    "unordered: as often": ({"a": [1, 1, 2]}, {"a": [1, 2, 2]}, UNORDERED, 0, [("args.a[1]", 1, 2)]),
    "unordered: not less": ({"a": [1, 2]}, {"a": [2]}, UNORDERED, 0, [("args.a[0]", 1, ABSENT)]),
    "unordered: of what is asked for": (
        {"a": [{"i": 1, "n": 1}, {"i": 2, "n": 2}]},
        {"a": [{"i": 2, "n": 9}, {"i": 1, "n": 9}]},
        {"only": ["a[*].i"], **UNORDERED},
        1,
        [],
    ),
    "unordered: less of what is asked for": ({"a": [{"i": 1}, {"i": 2}]}, {"a": [{"i": 2}]}, {"only": ["a[*].i"], **UNORDERED}, 0, [("args.a[0].i", 1, ABSENT)]),
    "contains": ({"a": [3, 1]}, {"a": [1, 2, 3]}, CONTAINS, 1, []),
    "contains: as often": ({"a": [1, 1]}, {"a": [1, 2]}, CONTAINS, 0, [("args.a[1]", 1, 2)]),
    "contains: nothing of what is asked for": ({"a": [{"n": 1}]}, {"a": [{"i": 1}, {"n": 2}]}, {"only": ["a[*].i"], **CONTAINS}, 1, []),
    "not greedy": ({"a": [regex("a"), "ab"]}, {"a": ["ab", "ac"]}, UNORDERED, 1, []),
    "contains, not greedy": ({"a": [regex("a"), "ab"]}, {"a": ["x", "ab", "ac"]}, CONTAINS, 1, []),
    # value matchers
    "matcher": ({"a": near(3.0, tolerance=0.1)}, {"a": 3.1}, {}, 1, []),
    "matcher that does not fit": ({"a": of_type("string")}, {"a": 3}, {}, 0, [("args.a", of_type("string"), 3)]),
    "matcher of nothing": ({"a": anything()}, {}, {}, 0, [("args.a", anything(), ABSENT)]),
    "matcher of what a text spells": ({"a": near(75, tolerance=1)}, {"a": "75"}, COERCE, 1, []),
    "matcher of what is no text": ({"a": regex("75")}, {"a": 75}, COERCE, 0, [("args.a", regex("75"), 75)]),
    "matcher, not asked for": ({"a": similar("x"), "b": 1}, {"a": 1, "b": 1}, {"only": ["b"]}, 1, []),
    "matcher, asked for": ({"a": similar("x"), "b": 1}, {"a": "x", "b": 2}, {"only": ["a"]}, 1, []),
    "other signs are literal": ({"a": {"$gt": 3}}, {"a": {"$gt": 3}}, {}, 1, []),
}  # fmt: skip


def test_arguments_are_compared_by_the_rules():
    for expected, made, options, worth, differences in CASES.values():
        found = compare(expected, made, **options)
        assert found.score == pytest.approx(worth)
        assert found.differences == tuple(ArgDifference(*one) for one in differences)


def test_a_default_is_no_default_of_what_is_nested():
    found = compare({"a": {"u": "C"}}, {"a": {}}, defaults={"u": "C", "a.u": "C"})
    assert paths(found) == ["args.a.u"]


COERCED = [
    (75, "75", True),
    (75, "7.5e1", True),
    (75, "075", False),
    (75, '"75"', False),
    (0, "-0", True),
    (True, "true", True),
    (True, "1", False),
    (False, "False", True),
    (None, "None", True),
    ([1, "2"], '[1, "2"]', True),
    ([1, 2], '["1", 2]', True),
    ({"a": {"b": [1]}}, '{"a": {"b": [1.0]}}', True),
    ({"a": 1}, "{'a': 1}", False),
    ("75", "75.0", False),
]


def test_a_text_also_equals_the_json_that_it_spells_either_way_round():
    for value, text, same in COERCED:
        assert score(value, text, types="coerce") == score(text, value, types="coerce") == same
        assert score([{"a": value}], [{"a": text}], types="coerce") == same
        assert score(value, text) == 0


def test_a_text_that_spells_no_json_stays_a_text():
    cases = ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "[" * 100_000, "1" * 100_000, "{"]
    for text in cases:
        assert compare({"a": 1}, {"a": text}, types="coerce").differences == (ArgDifference("args.a", 1, text),)


def test_differences_show_what_was_recorded_and_not_what_it_spells():
    assert compare({"a": 1}, {"a": "2"}, types="coerce").differences == (ArgDifference("args.a", 1, "2"),)
    assert compare({"a": "1"}, {}, types="coerce").differences == (ArgDifference("args.a", "1", ABSENT),)
    assert compare({"a": "1"}, {"a": [1]}, types="coerce").differences == (ArgDifference("args.a", "1", [1]),)


def test_what_a_text_spells_is_compared_from_path_to_path():
    found = compare({"a": {"b": [1], "c": 1}}, {"a": '{"b": [2], "c": 1}'}, types="coerce")
    assert found == ArgComparison(0, (ArgDifference("args.a.b[0]", 1, 2),))
    assert score({"b": 1}, '{"b": 1, "c": 2}', types="coerce", mode="at_least") == 1
    assert score([1, 2], "[2, 1]", types="coerce", lists="unordered") == 1


TEXTS = [
    ("", "", (1, 1, 1)),
    ("Straße", "STRASSE", (0, 1, 1)),
    ("ﬁ", "FI", (0, 1, 1)),
    ("İ", "i\u0307", (0, 1, 1)),
    ("İ", "i", (0, 0, 0)),
    ("I", "\u0131", (0, 0, 0)),
    ("é", "E\u0301", (0, 0, 1)),
    ("\uff21\uff22\uff23\u3000\uff11", "abc 1", (0, 0, 1)),
    (" a \t\n b ", "A B", (0, 0, 1)),
    ("", " ", (0, 0, 1)),
    ("é", "e", (0, 0, 0)),
    ("a\u200bb", "ab", (0, 0, 0)),
    ("\u03b1\u0345\u0301", "\u03b1\u03b9\u0301", (0, 1, 1)),
]


def test_texts_are_compared_by_the_rules_either_way_round():
    for left, right, same in TEXTS:
        for option, one in zip(("exact", "casefold", "normalized"), same, strict=True):
            assert score(left, right, text=option) == score(right, left, text=option) == one
            assert score([{"a": left}], [{"a": right}], text=option) == one


RAISED = {*"⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉"}


@pytest.mark.parametrize("form", ["NFC", "NFKD"])
def test_every_character_is_one_with_its_other_forms_when_normalized(form):
    """All that have another form, but raised and lowered digits, as one text, which is equal just if each part of it is."""
    characters = map(chr, (*range(0xD800), *range(0xE000, 0x30000)))  # in higher planes, none has another form
    every = " ".join(one for one in characters if one not in RAISED and not unicodedata.is_normalized(form, one))
    assert len(every) > 2_000
    assert score(every, unicodedata.normalize(form, every), text="normalized") == 1


def test_a_power_is_no_number_of_more_digits():
    assert score("10²", "102", text="normalized") == score("H₂", "H2", text="normalized") == 0


def test_names_are_compared_exactly_however_texts_are():
    assert compare({"City": 1}, {"city": 1}, text="normalized").score == 0


def share(left, right):
    """Of the characters of the longer text, how many stand in the same place."""
    return sum(one == other for one, other in zip(left, right, strict=False)) / max(len(left), len(right))


def test_a_comparer_of_texts_says_how_far_two_texts_agree():
    cases = [
        ({"a": "abcd"}, {"a": "abcx"}, {}, 3 / 4),
        ({"a": "abcd", "b": 1}, {"a": "abcx", "b": 1}, {}, 7 / 8),
        ({"a": ["abcd", "ab"]}, {"a": ["abcx", "ax"]}, {}, 1 / 2),
        ({"a": {"b": "abcd", "c": 1}}, {"a": {"b": "abcx", "c": 1}}, {}, 3 / 4),
        ({"a": "abcd"}, {}, {}, 0),
        ({"a": "1"}, {"a": 1}, COERCE, 1),
        ({"a": ["ab", "cd"]}, {"a": ["cd", "ax"]}, UNORDERED, 1 / 2),
        ({"a": ["aaaaa", "bbbbb"]}, {"a": ["bbbyy", "aaaax"]}, UNORDERED, 3 / 5),
        ({"a": ["aabb", "bbbb"]}, {"a": ["aaxx", "aabb"]}, UNORDERED, 1 / 2),
        ({"a": one_of("ab")}, {"a": "ax"}, {}, 0),
    ]
    for expected, made, options, worth in cases:
        found = compare(expected, made, text=share, **options)
        assert found.score == pytest.approx(worth)
        assert bool(found.differences) is (worth < 1)


def test_a_comparer_of_texts_is_given_the_expected_text_first_and_no_equal_ones():
    seen = []
    compare(
        {"a": "x", "b": "same", "c": 1, "d": None},
        {"a": "y", "b": "same", "c": "1"},
        text=lambda *both: seen.append(both) or 1,
    )
    assert seen == [("x", "y")]


NO_SHARES = [1.5, -0.1, 87, float("nan"), float("inf"), None, "1", [], (1,)]


def test_a_comparer_that_gives_no_number_from_0_to_1_is_an_error():
    for given_back in NO_SHARES:
        returned = rf"must return a number in \[0, 1\], found {re.escape(repr(given_back))}"
        with pytest.raises(ValueError, match=f"the comparison function for texts {returned}"):
            compare({"a": "x"}, {"a": "y"}, text=lambda *_: given_back)  # noqa: B023 - called here
        with pytest.raises(ValueError, match=f"the comparison function for the arguments of f {returned}"):
            compare({"a": "x"}, {"a": "x"}, lambda *_: given_back)  # noqa: B023 - called here


@pytest.mark.parametrize(("given_back", "worth"), [(True, 1), (False, 0), (1, 1), (0, 0), (0.25, 0.25), (1.0, 1)])
def test_a_function_may_compare_all_arguments(given_back, worth):
    found = compare({"a": 1}, {"b": 2}, lambda *_: given_back)
    assert found == ArgComparison(worth, () if worth == 1 else (ArgDifference("args", {"a": 1}, {"b": 2}),))
    assert type(found.score) is float


def test_a_function_is_given_what_is_expected_first_and_only_what_counts():
    seen = []

    def how(expected, made):
        seen.append((expected, made))
        return True

    compare({"a": 1, "b": 2}, {"a": 3, "c": 4}, how)
    compare({"a": 1, "b": 2}, {"a": 3, "c": 4}, how, compare_args=["c", "b", "x"])
    assert seen == [({"a": 1, "b": 2}, {"a": 3, "c": 4}), ({"b": 2}, {"c": 4})]


def test_an_error_of_a_function_is_not_hidden():
    def broken(*_):
        raise ZeroDivisionError

    for options in ({"how": broken}, {"text": broken}):
        with pytest.raises(ZeroDivisionError):
            compare({"a": "x"}, {"a": "y"}, **options)


COMPARE_ARGS = {
    "the tool alone": ([], {"a": 1}, {"a": 2, "b": 3}, 1, []),
    "a subset differs": (["a"], {"a": 1, "b": 2}, {"a": 9, "b": 2}, 0, ["args.a"]),
    "a subset in part": (["c", "a"], {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 9, "c": 9}, 1 / 2, ["args.c"]),
    "a name that both lack counts": (["b", "a"], {"a": 1}, {"a": 2}, 1 / 2, ["args.a"]),
    "a name that one lacks": (["b"], {"a": 1, "b": None}, {"a": 1}, 0, ["args.b"]),
    "a name that the other lacks": (["b"], {"a": 1}, {"b": None}, 0, ["args.b"]),
    "a name twice counts once": (["a", "a", "b"], {"a": 1, "b": 2}, {"a": 1}, 1 / 2, ["args.b"]),
}


def test_only_the_arguments_named_by_the_expected_call_count():
    for names, expected, made, worth, where in COMPARE_ARGS.values():
        found = compare(expected, made, compare_args=names)
        assert (found.score, paths(found)) == (worth, where)


def test_what_the_expected_call_names_and_what_the_rules_name_must_both_hold():
    expected, made = {"a": 1, "b": 2, "c": 3}, {"a": 9, "b": 9, "c": 9}
    assert paths(compare(expected, made, compare_args=["a", "b"], ignore=["a"])) == ["args.b"]
    assert paths(compare(expected, made, compare_args=["a", "b"], only=["b", "c"])) == ["args.b"]
    assert compare(expected, {}, compare_args=["a"], mode="at_most").score == 1
    assert compare({"a": 1}, {"u": "F"}, compare_args=["a"], defaults={"a": 1}).score == 1


UNREADABLE = "{broken"


def test_arguments_that_cannot_be_read_agree_in_nothing_that_counts():
    cases = [
        ({}, False),
        (AT_LEAST, False),
        ({"mode": "schema", "tools": [ToolDefinition("f")]}, False),
        ({"only": ["b"]}, False),
        ({"how": lambda *_: True}, False),
        ({"compare_args": ["b"]}, False),
        ({"mode": "ignore"}, True),
        ({"compare_args": []}, True),
    ]
    for options, agree in cases:
        for expected in [{}, {"a": 1}]:
            difference = ArgDifference("args", expected, UNREADABLE)
            assert compare(expected, UNREADABLE, **options) == (
                ArgComparison(1, ()) if agree else ArgComparison(0, (difference,))
            )


DEFINED = ToolDefinition(
    "f", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)


def test_by_schema_it_counts_whether_the_arguments_fit_the_tool_and_not_what_was_expected():
    assert compare({"n": 1}, {"n": 2, "m": 1}, mode="schema", tools=[DEFINED]) == ArgComparison(1, ())
    found = compare({"n": "x"}, {"n": "x"}, mode="schema", tools=[DEFINED])
    assert found.score == 0
    assert all("args" in difference.path and "'x'" in str(difference) for difference in found.differences)
    assert len(found.differences) == 1


def test_by_schema_a_tool_that_is_not_defined_does_not_fit_and_without_tools_there_is_no_answer():
    assert compare({}, {}, mode="schema", tools=[ToolDefinition("g")]).score == 0
    with pytest.raises(ValueError, match="the trace defines no tools"):
        compare({}, {}, mode="schema")


def test_a_recording_that_looks_like_a_matcher_matches_nothing():
    for options in ({}, COERCE, AT_LEAST, AT_MOST, UNORDERED, CONTAINS, {"text": "normalized"}):
        for value in (5, "x", None, [1], {"a": 1}, {}):
            assert score(value, anything(), **options) == (value == {} and options == AT_LEAST)
            assert score([value], [anything()], **options) == (value == {} and options == AT_LEAST)
        assert score(5, json.dumps(anything()), **options) == 0
        assert score({"a": 5}, json.dumps({"a": anything()}), **options) == 0
        assert score(near(5, tolerance=1), near(5, tolerance=1), **options) == 0
    assert score(5, {"$judgekit": "bogus"}) == 0


def test_a_matcher_in_place_of_all_arguments_is_an_error_that_says_what_to_do():
    for options in ({}, {"mode": "ignore"}, COERCE):
        with pytest.raises(
            ValueError, match=r"replaces a value, not all arguments; compare_args=\[\] accepts any arguments"
        ):
            compare(anything(), {"a": 1}, **options)


def test_a_malformed_matcher_is_an_error_that_says_what_is_wrong():
    with pytest.raises(ValueError, match="no value matcher is called 'neer'"):
        compare({"a": [{"$judgekit": "neer"}]}, {"a": [1]})
    with pytest.raises(ValueError, match="value matcher 'near': tolerance"):
        compare({"a": {"$judgekit": "near", "value": 1}}, {"a": 1})


GLOBS = [
    ("a*", ["a", "ab", "a\nb"], ["ba"]),
    ("*", ["", "a", "\n", "*"], []),
    ("items[*].id", ["items[0].id", "items[1].a[2].id"], ["items.id", "items[0].a.id", "items[0].ids"]),
    ("a?", ["a?"], ["ab"]),
    ("[ab]", ["[ab]"], ["a"]),
    ("a.c", ["a.c"], ["abc"]),
    ("", [""], ["a"]),
]


def test_in_a_pattern_only_the_star_is_special():
    for pattern, fit, unfit in GLOBS:
        fits = any_glob([pattern])
        assert [text for text in [*fit, *unfit] if fits(text)] == fit


def test_one_of_several_patterns_is_enough_and_none_fits_nothing():
    assert any_glob(["a", "b*"])("bc")
    assert not any_glob(["a", "b*"])("ca")
    assert not any_glob([])("")


short = st.text(alphabet="ab*", max_size=6)


@settings(max_examples=2 * settings.default.max_examples)
@given(short, st.text(alphabet="ab", max_size=8))
def test_a_pattern_fits_what_it_can_be_laid_upon(pattern, text):
    def laid(pattern, text):
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(laid(pattern[1:], text[start:]) for start in range(len(text) + 1))
        return text[:1] == pattern[0] and laid(pattern[1:], text[1:])

    assert any_glob([pattern])(text) is laid(pattern, text)


def test_a_pattern_of_many_stars_is_not_slow_on_a_name_made_for_it():
    assert not any_glob(["*a*a*a*a*a*b"])("a" * 30_000)


def test_rules_that_do_not_exist_are_an_error_that_says_what_was_found():
    cases = [
        ({"mode": "equals"}, "mode: .*'at_least'.*found 'equals'"),
        ({"modes": "equal"}, "modes: "),
        ({"only": "a"}, "only: .*found 'a'"),
        ({"lists": "sorted"}, "lists: .*'unordered'.*found 'sorted'"),
        ({"text": "fuzzy"}, "text.*'casefold'.*found 'fuzzy'"),
        ("equal", "found 'equal'"),
        (None, "found None"),
    ]
    for option, said in cases:
        with pytest.raises(ConfigError, match=f"^args: .*{said}"):
            check_args_option(option)


SCALARS = [None, True, False, 0, 1, 1.0, 2, -0.5, 10**30, *("", "1", "1.0", "true", "None", "a", "A", "\uff41 ", "[1]")]
scalars = st.sampled_from([*SCALARS, '{"a": 1}'])
keys = st.sampled_from(["a", "b", "a.b", "", "$gt"])
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(keys, json_values, max_size=4)


def changed(value, draw):
    """The value with something in it changed in a way that some rule may forgive, or none."""
    if isinstance(value, list) and value and draw(st.booleans()):
        return draw(st.permutations([changed(one, draw) for one in value] + draw(st.lists(scalars, max_size=1))))
    if isinstance(value, dict) and draw(st.booleans()):
        kept = {key: changed(one, draw) for key, one in value.items() if draw(st.integers(0, 5))}
        return kept | draw(st.dictionaries(keys, scalars, max_size=1))
    if isinstance(value, str):
        return draw(st.sampled_from([value, value.upper(), f" {value}", value.lower()]))
    return draw(st.sampled_from([value, json.dumps(value), str(value)]))


@st.composite
def pairs(draw):
    """Arguments that are much alike, or not at all."""
    left = draw(objects)
    if draw(st.booleans()):
        return left, draw(objects)
    return left, {key: changed(one, draw) for key, one in left.items() if draw(st.integers(0, 5))} | draw(
        st.dictionaries(keys, json_values, max_size=1)
    )


PATTERNS = ["a", "b", "*", "a.*", "a[0]", "a[*].b", "*.a", '["a.b"]', "zz"]
rules = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["equal", "at_least", "at_most"]),
        "types": st.sampled_from(["strict", "coerce"]),
        "text": st.sampled_from(["exact", "casefold", "normalized"]),
        "lists": st.sampled_from(["ordered", "unordered", "contains"]),
    },
    optional={
        "only": st.lists(st.sampled_from(PATTERNS), max_size=2),
        "ignore": st.lists(st.sampled_from(PATTERNS), max_size=2),
        "defaults": st.dictionaries(keys, scalars, max_size=2),
    },
)
names = st.none() | st.lists(keys, max_size=3)


@settings(max_examples=2 * settings.default.max_examples)
@given(objects, rules, names)
def test_what_is_expected_matches_itself_by_all_rules(args, options, compare_args):
    assert compare(args, args, compare_args=compare_args, **options) == ArgComparison(1, ())


@settings(max_examples=2 * settings.default.max_examples)
@given(pairs(), rules, names)
def test_the_score_is_a_share_and_is_1_just_if_nothing_differs(both, options, compare_args):
    found = compare(*both, compare_args=compare_args, **options)
    assert 0 <= found.score <= 1
    assert (found.score == 1) is (not found.differences)
    assert all(path.startswith("args") for path in paths(found))
    assert all(difference.expected is not ABSENT or difference.actual is not ABSENT for difference in found.differences)


@st.composite
def pairs_with_matchers(draw):
    """Arguments, the expected ones with a matcher here and there."""
    matchers = st.sampled_from([anything(), of_type("number"), near(1, tolerance=1), {"$judgekit": "unknown"}, 1])
    with_matchers = st.recursive(
        matchers, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2), max_leaves=3
    )
    expected, actual = draw(pairs())
    held = draw(st.dictionaries(keys, with_matchers, max_size=2))
    return expected | held, actual | draw(st.sampled_from([{}, held, dict.fromkeys(held, 1)]))


@settings(max_examples=2 * settings.default.max_examples)
@given(pairs_with_matchers())
def test_plain_rules_find_what_rules_that_name_all_paths_find(both):
    def found(**options):
        try:
            return compare(*both, **options)
        except ValueError as error:
            return str(error)

    assert found() == found(only=["*"])  # which walks through all that is equal, too


def at(args, path):
    """What stands at a path, read as it is written."""
    value, rest = args, path.removeprefix("args")
    while rest:
        if rest[0] == ".":
            end = min((found for sign in ".[" if (found := rest.find(sign, 1)) > 0), default=len(rest))
            step, rest = rest[1:end], rest[end:]
        else:
            step, end = json.JSONDecoder().raw_decode(rest[1:])
            rest = rest[end + 2 :]
        inner = dict(enumerate(value)) if isinstance(value, list) else value
        if not isinstance(inner, dict) or step not in inner:
            return ABSENT
        value = inner[step]
    return value


@settings(max_examples=2 * settings.default.max_examples, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    pairs(), rules.filter(lambda one: one["lists"] == "ordered" and one["types"] == "strict" and "defaults" not in one)
)
def test_a_difference_names_the_place_where_each_side_has_what_it_shows(both, options):
    for path, expected, made in compare(*both, **options).differences:
        assert (at(both[0], path), at(both[1], path)) == (expected, made)


def canonical(value):
    """A value that is equal for equal JSON: a second implementation."""
    if isinstance(value, list):
        return "list", tuple(map(canonical, value))
    if isinstance(value, dict):
        return "object", frozenset((key, canonical(inner)) for key, inner in value.items())
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    return "number", Fraction(value)


@settings(max_examples=2 * settings.default.max_examples)
@given(pairs(), names)
def test_by_plain_rules_the_score_is_the_matched_names_over_the_union_of_names(both, compare_args):
    left, right = (
        {key: one for key, one in side.items() if compare_args is None or key in compare_args} for side in both
    )
    union = left.keys() | right.keys() | set(compare_args or ())
    both_have = left.keys() & right.keys()
    same = {
        key for key in both_have if canonical(left[key]) == canonical(right[key])
    } | union - left.keys() - right.keys()
    found = compare(*both, compare_args=compare_args)
    assert isclose(found.score, len(same) / len(union) if union else 1)


LOOSER = [
    ({"types": "strict"}, {"types": "coerce"}),
    ({"text": "exact"}, {"text": "casefold"}),
    ({"text": "casefold"}, {"text": "normalized"}),
    ({"lists": "ordered"}, {"lists": "unordered"}),
    ({"lists": "unordered"}, {"lists": "contains"}),
    ({"mode": "equal"}, {"mode": "at_least"}),
    ({"mode": "equal"}, {"mode": "at_most"}),
]


@pytest.mark.parametrize(("stricter", "looser"), LOOSER, ids=lambda one: "-".join(one.values()))
@given(both=pairs(), options=rules.filter(lambda one: "only" not in one), compare_args=names)
def test_a_looser_rule_never_scores_below_a_stricter_one(stricter, looser, both, options, compare_args):
    left, right = both
    if (
        "mode" in looser
    ):  # it leaves out what one side lacks, where the stricter one counts the default as an argument more
        kept = {name: value for name, value in options.get("defaults", {}).items() if (name in left) == (name in right)}
        options = {**options, "defaults": kept}
    less, more = (compare(*both, compare_args=compare_args, **{**options, **one}) for one in (stricter, looser))
    assert more.score >= less.score - 1e-12


@settings(max_examples=2 * settings.default.max_examples)
@given(pairs(), rules.filter(lambda one: "only" not in one), st.sampled_from(PATTERNS))
def test_what_matches_still_does_when_less_of_it_is_compared(both, options, pattern):
    if compare(*both, **options).score == 1:
        assert compare(*both, **options, only=[pattern]).score == 1
        assert compare(*both, **{**options, "ignore": [*options.get("ignore", ()), pattern]}).score == 1


texts = st.text(max_size=4) | st.text(
    alphabet="aAßﬁİΣς\u017f\uff21\uff29\u0131\u03b1\u03b9\u0301\u0307\u0345\u1fb3 \u00a0", max_size=6
)


@settings(max_examples=2 * settings.default.max_examples)
@given(texts, texts)
@example("\u03b1\u0345\u0301", "\u03b1\u03b9\u0301")
def test_texts_that_differ_in_case_alone_are_one_when_normalized(left, right):
    for one, other in ((left, right), (left, left.upper()), (left, left.casefold()), (left.title(), left)):
        assert score(one, other, text="normalized") >= score(one, other, text="casefold") >= score(one, other)


@given(st.lists(json_values, max_size=4), st.randoms(use_true_random=False), rules)
def test_where_order_is_free_it_does_not_matter(values, random, options):
    shuffled = random.sample(values, len(values))
    if options["lists"] != "ordered":
        options = {key: one for key, one in options.items() if key not in ("only", "ignore")}
        assert score(values, shuffled, **options) == score(shuffled, values, **options) == 1


def nested(levels, leaf, wrap):
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf


WRAPS = {"objects": lambda inner: {"a": inner}, "lists": lambda inner: [inner]}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("options", [{}, AT_LEAST, {"only": ["*"]}, {"only": ["zz"]}])
def test_arguments_may_be_as_deep_as_a_recording_can_hold(wrap, options):
    left, right = nested(MOST_LEVELS - 1, 1, wrap), nested(MOST_LEVELS - 1, 2, wrap)
    found = compare({"x": left}, {"x": right}, **options)
    assert found.score == (options == {"only": ["zz"]})
    assert len(found.differences) == 1 - found.score


def test_lists_within_lists_of_any_order_take_no_time_that_doubles_with_each():
    for lists in ("unordered", "contains"):
        assert score(nested(50, 1, WRAPS["lists"]), nested(50, 2, WRAPS["lists"]), lists=lists) == 0


def test_long_names_texts_and_lists_are_compared():
    name, text = "a b" * 100_000, "x Y" * 100_000
    assert paths(compare({name: 1}, {name: 2})) == [f'args["{name}"]']
    assert score(text, text.upper(), text="normalized") == 1
    assert score([*range(5_000)], [*range(1, 5_001)]) == 0
    assert score([*range(5_000)], [*range(4_999, -1, -1)], lists="unordered") == 1
    assert score([*range(4_999)], [*range(4_999, -1, -1)], lists="contains") == 1
    assert score([*range(100)], [*range(100, 0, -1)], lists="unordered") == 0

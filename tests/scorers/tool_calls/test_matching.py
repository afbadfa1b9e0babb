"""Which call answers which."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.arguments import Comparison
from judgekit.scorers.tool_calls.matching import Match, pair_equal, pair_in_sequence
from judgekit.traces.message import ToolCall
from judgekit.traces.sample import ExpectedCall


def made(*calls: ToolCall) -> list[tuple[int, ToolCall]]:
    """Calls, each in a message of its own, from number 2 on."""
    return list(enumerate(calls, 2))


def graph(edges: list[set[int]], rights: int) -> tuple[list[ExpectedCall], list[tuple[int, ToolCall]]]:
    """Expected calls and made ones that match just where the graph has an edge, which ``compare_args`` makes possible."""
    expected = [ExpectedCall("f", {f"k{left}": True}, compare_args=[f"k{left}"]) for left in range(len(edges))]
    calls = [
        ToolCall("f", {f"k{left}": True for left, found in enumerate(edges) if right in found})
        for right in range(rights)
    ]
    return expected, made(*calls)


def most_pairs(edges: list[set[int]]) -> int:
    """The size of a maximum matching, by trying all of them."""
    taken = {frozenset[int]()}
    for rights in edges:
        taken |= {one | {right} for one in taken for right in rights - one}
    return max(map(len, taken))


graphs = st.integers(0, 5).flatmap(
    lambda rights: st.tuples(
        st.lists(st.sets(st.integers(0, rights - 1)) if rights else st.just(set()), max_size=5), st.just(rights)
    )
)


@settings(max_examples=100)
@given(graphs)
def test_there_are_as_many_pairs_as_there_can_be(found):
    edges, rights = found
    match = pair_equal(*graph(edges, rights))
    assert len(match.pairs) == most_pairs(edges)


@settings(max_examples=100)
@given(graphs)
def test_each_call_is_in_one_pair_or_left_over_and_pairs_are_equal(found):
    edges, rights = found
    match = pair_equal(*graph(edges, rights))
    assert all(pair.made in edges[pair.expected] for pair in match.pairs)
    assert all(pair.arguments == Comparison((), ()) for pair in match.pairs)
    assert sorted([*(pair.expected for pair in match.pairs), *match.missing]) == list(range(len(edges)))
    assert sorted([*(pair.made for pair in match.pairs), *match.extra]) == list(range(rights))


def test_taking_the_first_match_would_lose_a_pair():
    """The call to Rome alone fits the second expected call, though the first would take it too."""
    expected = [ExpectedCall("f", compare_args=[]), ExpectedCall("f", {"city": "Rome"})]
    match = pair_equal(expected, made(ToolCall("f", {"city": "Rome"}), ToolCall("f", {"city": "Paris"})))
    assert [(pair.expected, pair.made) for pair in match.pairs] == [(0, 1), (1, 0)]
    assert (match.missing, match.extra) == ((), ())


def test_a_pair_may_move_all_others_along_without_recursion():
    """Each call fits the next expected one too, and the last expected one fits the first call alone."""
    size = 1_100
    edges = [*({left, left + 1} for left in range(size - 1)), {0}]
    match = pair_equal(*graph(edges, size))
    assert [(pair.expected, pair.made) for pair in match.pairs] == [*((left, left + 1) for left in range(size - 1)), (size - 1, 0)]  # fmt: skip


def test_two_thousand_equal_calls_are_paired_in_their_order():
    size = 2_000
    match = pair_equal([ExpectedCall("f")] * size, made(*[ToolCall("f")] * size))
    assert [(pair.expected, pair.made) for pair in match.pairs] == [(index, index) for index in range(size)]
    assert (match.missing, match.extra) == ((), ())


names = st.lists(st.sampled_from(["f", "g", "h"]), max_size=8)


@settings(max_examples=100)
@given(names, names)
def test_repeated_calls_match_as_often_as_both_sides_have_them(expected, found):
    match = pair_equal([ExpectedCall(name) for name in expected], made(*map(ToolCall, found)))
    assert Counter(expected[pair.expected] for pair in match.pairs) == Counter(expected) & Counter(found)
    assert Counter(expected[index] for index in match.missing) == Counter(expected) - Counter(found)
    assert Counter(found[index] for index in match.extra) == Counter(found) - Counter(expected)


@pytest.mark.parametrize(
    ("expected", "found", "pairs", "missing", "extra"),
    [
        ("", "", [], (), ()),
        ("ab", "ab", [(0, 0), (1, 1)], (), ()),
        ("ab", "", [], (0, 1), ()),
        ("", "ab", [], (), (0, 1)),
        ("ab", "aab", [(0, 1), (1, 2)], (), (0,)),
        ("abc", "ac", [(0, 0), (2, 1)], (1,), ()),
        ("abc", "abxc", [(0, 0), (1, 1), (2, 3)], (), (2,)),
        ("abcd", "cdab", [(0, 2), (1, 3)], (2, 3), (0, 1)),
        ("aa", "a", [(0, 0)], (1,), ()),
        ("a", "b", [], (0,), (0,)),
    ],
)
def test_in_sequence_a_longest_run_of_names_is_aligned(expected, found, pairs, missing, extra):
    match = pair_in_sequence([ExpectedCall(name) for name in expected], made(*map(ToolCall, found)))
    assert [(pair.expected, pair.made) for pair in match.pairs] == pairs
    assert (match.missing, match.extra) == (missing, extra)


def test_in_sequence_a_tool_that_is_called_again_and_again_is_aligned_as_well():
    """Python's `difflib` leaves out what is common in long sequences, unless it is told not to."""
    expected, found = [ExpectedCall("f")] * 300, made(ToolCall("g"), *[ToolCall("f")] * 299)
    match = pair_in_sequence(expected, found)
    assert (len(match.pairs), match.missing, match.extra) == (299, (299,), (0,))


@settings(max_examples=100)
@given(names, names)
def test_in_sequence_pairs_bear_one_name_and_never_cross(expected, found):
    match = pair_in_sequence([ExpectedCall(name) for name in expected], made(*map(ToolCall, found)))
    pairs = [(pair.expected, pair.made) for pair in match.pairs]
    assert all(expected[left] == found[right] for left, right in pairs)
    assert pairs == sorted(pairs)
    assert [right for _, right in pairs] == sorted({right for _, right in pairs})
    assert (not match.missing and not match.extra) is (expected == found)
    assert sorted([*(left for left, _ in pairs), *match.missing]) == list(range(len(expected)))
    assert sorted([*(right for _, right in pairs), *match.extra]) == list(range(len(found)))


def test_in_sequence_arguments_are_compared_pair_by_pair():
    expected = [ExpectedCall("f", {"a": 1, "b": 2}), ExpectedCall("g", {"x": 1, "y": 2}, compare_args=["x"])]
    match = pair_in_sequence(expected, made(ToolCall("f", {"a": 1}), ToolCall("g", {"x": 1})))
    assert [pair.arguments for pair in match.pairs] == [Comparison(("a",), ("b",)), Comparison(("x",), ())]


BROKEN = ToolCall("g", '{"b": 1')  # type: ignore[arg-type]
EXPECTED = [ExpectedCall("f", {"a": 1}), ExpectedCall("g", {"b": 1}), ExpectedCall("h", {"c": [1, 2]})]
MADE = made(ToolCall("f", {"a": 2}), BROKEN, ToolCall("i", {"d": "é"}))


def test_details_name_the_message_of_each_call():
    match = pair_in_sequence(EXPECTED, MADE)
    assert match.details() == {
        "matched": [
            {"expected": 0, "message": 2, "name": "f", "different": ["a"]},
            {"expected": 1, "message": 3, "name": "g", "different": ["b"], "args_error": BROKEN.args_error},
        ],
        "missing": [{"expected": 2, "name": "h", "args": {"c": [1, 2]}}],
        "extra": [{"message": 4, "name": "i", "args": {"d": "é"}}],
    }


def test_details_keep_arguments_that_cannot_be_read():
    match = pair_equal(EXPECTED, MADE)
    assert match.details()["extra"][1] == {
        "message": 3,
        "name": "g",
        "args_raw": '{"b": 1',
        "args_error": BROKEN.args_error,
    }


@pytest.mark.parametrize("pair", [pair_equal, pair_in_sequence])
def test_in_words_each_difference_is_told_once_also_where_calls_are_in_no_pair(pair):
    assert pair(EXPECTED, MADE).in_words() == "; ".join(
        [
            "f in message 2 differs in a: expected 1, found 2",
            f"g in message 3 has arguments that cannot be read ({BROKEN.args_error})",
            'h {"c":[1,2]} was expected and not made',
            'i {"d":"é"} in message 4 was not expected',
        ]
    )


def test_in_words_missing_and_unexpected_arguments_are_nothing():
    match = pair_in_sequence([ExpectedCall("f", {"a": 1, "n": None})], made(ToolCall("f", {"b": True})))
    assert match.in_words() == (
        "f in message 2 differs in a: expected 1, found nothing, n: expected null, found nothing, "
        "b: expected nothing, found true"
    )


def test_in_words_long_values_are_cut():
    match = pair_equal([], made(ToolCall("f", {"a": "x" * 200})))
    shown = 'f {"a":"' + "x" * 200 + '"}'
    assert match.in_words() == f"{shown[:117]}... in message 2 was not expected"


def test_in_words_nothing_is_said_where_all_match():
    assert pair_equal([ExpectedCall("f")], made(ToolCall("f"))).in_words() == ""
    assert Match.of([], [], []).in_words() == ""


def test_the_reason_of_a_long_way_off_stays_short():
    made = [(number, ToolCall(f"extra_{number}")) for number in range(1, 501)]
    words = pair_equal([], made).in_words()
    assert words.startswith("extra_1 {} in message 1 was not expected; ")
    assert words.endswith("; extra_10 {} in message 10 was not expected; and 490 more")

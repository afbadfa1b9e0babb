"""What a match of tool calls says for itself."""

from collections.abc import Sequence

import pytest

from judgekit.score import Score
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import PRESETS, ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample

FREE = PRESETS["same_calls"]
BROKEN = ToolCall("f", '{"a": 1')  # type: ignore[arg-type]


def score(how: ToolMatch | str, expected: Sequence[ToolCall], *messages: Sequence[ToolCall]) -> Score:
    """The score of an agent that made these calls, message by message; the first of its messages is number 2."""
    trace = [HumanMessage("Hi"), *(AIMessage(tool_calls=calls) for calls in messages)]
    return ToolCallMatch(how).score(Sample.of(trace, id="one", reference_tool_calls=expected))


def calls(names: str) -> list[ToolCall]:
    return [ToolCall(name) for name in names]


def test_the_reason_is_one_line_with_all_that_does_not_match():
    search, email = ToolCall("search", {"q": "a"}), ToolCall("send_email", {"to": "a@b.c"})
    refund = ToolCall("refund_order", {"order": "W1", "amount": 30.0})
    refunded = ToolCall("refund_order", {"order": "W1", "amount": 20.0})
    other = ToolCall("search", {"q": "b"})
    found = score(FREE, [search, refund, email], [search], [], [other, refunded], [], [], [], [other])
    assert found.reason == (
        "1 of 3 expected calls matched; refund_order: args.amount expected 30.0, got 20.0; missing: send_email; "
        "extra: search x2 (messages 4, 8)"
    )
    assert found.details == {
        "tp": 1,
        "fp": 3,
        "fn": 2,
        "precision": 1 / 4,
        "recall": 1 / 3,
        "pairs": [
            {"expected": 0, "actual": 0, "message": 2, "name": "search", "score": 1.0},
            {
                "expected": 1,
                "actual": 2,
                "message": 4,
                "name": "refund_order",
                "score": 0.5,
                "differences": [{"path": "args.amount", "expected": 30.0, "actual": 20.0}],
            },
        ],
        "missing": [{"expected": 2, "name": "send_email", "args": {"to": "a@b.c"}}],
        "extra": [
            {"actual": 1, "message": 4, "name": "search", "args": {"q": "b"}},
            {"actual": 3, "message": 8, "name": "search", "args": {"q": "b"}},
        ],
        "out_of_order": [],
    }


REASONS = {
    "nothing": (FREE, "", [], "no call was expected and none was made"),
    "nothing was expected": (FREE, "", ["a"], "no call was expected; extra: a (message 2)"),
    "nothing was made": (FREE, "aab", [], "0 of 3 expected calls matched; missing: a x2, b"),
    "all is well": (FREE, "ab", ["ba"], "2 of 2 expected calls matched"),
    "twice in a message, once in another": (
        FREE,
        "",
        ["aa", "b", "a"],
        "no call was expected; extra: a x3 (messages 2, 4), b (message 3)",
    ),
    "more is allowed": ("contains", "a", ["ab"], "1 of 1 expected calls matched; extra, allowed: b (message 2)"),
    "less is allowed": ("only_these", "ab", ["a"], "1 of 2 expected calls matched; missing, allowed: b"),
    "out of order": ("exact", "abc", ["c", "a", "b"], "2 of 3 expected calls matched; out of order: c (message 2)"),
    "one came between": ("exact", "abc", ["a", "x", "b", "c"], "3 of 3 expected calls matched; extra: x (message 3)"),
    "out of place": (
        ToolMatch(credit="recall"),
        "abc",
        ["x", "b", "a"],
        "1 of 3 expected calls matched; missing: c; out of order: a (message 4); extra: x (message 2)",
    ),
}


def test_the_reason_tells_the_gist():
    for how, expected, messages, reason in REASONS.values():
        assert score(how, calls(expected), *map(calls, messages)).reason == reason


def test_a_call_of_another_turn_is_out_of_order():
    messages = [
        HumanMessage("1"),
        AIMessage(tool_calls=calls("a")),
        HumanMessage("2"),
        AIMessage(tool_calls=calls("b")),
    ]
    expected = [ExpectedCall("a", turn=1), ExpectedCall("b", turn=1)]
    how = ToolMatch(order="any", within="turn")
    found = ToolCallMatch(how).score(Sample.of(messages, reference_tool_calls=expected))
    assert found.reason == "1 of 2 expected calls matched; out of order: b (message 4)"
    assert found.details["out_of_order"] == [{"expected": 1, "actual": 1, "message": 4, "name": "b", "score": 1.0}]


def test_differences_say_what_only_one_side_has():
    wanted = ToolCall("f", {"a": 1, "none": None, "deep": {"list": [1, {"odd key": "x"}]}})
    made = ToolCall("f", {"a": 1, "more": True, "deep": {"list": [1, {"odd key": "y"}]}})
    found = score(FREE, [wanted], [made])
    assert found.reason == (
        '0 of 1 expected calls matched; f: args.none expected null, got nothing, args.deep.list[1]["odd key"] expected '
        '"x", got "y", args.more expected nothing, got true'
    )
    assert found.details["pairs"][0]["differences"] == [
        {"path": "args.none", "expected": None},
        {"path": 'args.deep.list[1]["odd key"]', "expected": "x", "actual": "y"},
        {"path": "args.more", "actual": True},
    ]


def test_calls_that_do_not_match_are_told_as_the_nearest_pairs():
    """Each with the one whose arguments are most like its own, though they are worth nothing here."""
    wanted = [ToolCall("f", {"a": 1, "b": 1}), ToolCall("f", {"a": 2, "b": 2})]
    found = score(FREE, wanted, [ToolCall("f", {"a": 2, "b": 3}), ToolCall("f", {"a": 1, "b": 3})])
    assert found.reason == ("0 of 2 expected calls matched; f: args.b expected 1, got 3; f: args.b expected 2, got 3")
    assert [(pair["expected"], pair["actual"], pair["score"]) for pair in found.details["pairs"]] == [
        (0, 1, 0.5),
        (1, 0, 0.5),
    ]
    assert found.details["tp"] == 0


def test_a_function_that_does_not_agree_shows_both_sides_whole():
    how = ToolMatch(order="any", args=lambda expected, made: 0.25)
    wanted = ExpectedCall("f", {"a": 1, "b": 1}, compare_args=["a"])
    found = score(how, [wanted], [ToolCall("f", {"a": 2, "c": 3})])
    assert found.reason == '0 of 1 expected calls matched; f: args expected {"a":1}, got {"a":2}'
    assert found.details["pairs"][0]["score"] == 0.25


def test_unreadable_arguments_are_a_mismatch_that_is_kept_as_recorded():
    found = score(FREE, [ToolCall("f", {"a": 1})], [BROKEN], [BROKEN])
    assert found.value == 0
    assert found.reason == (
        f"0 of 1 expected calls matched; f: unreadable arguments ({BROKEN.args_error}); extra: f (message 3)"
    )
    assert found.details["pairs"] == [
        {
            "expected": 0,
            "actual": 0,
            "message": 2,
            "name": "f",
            "score": 0.0,
            "differences": [{"path": "args", "expected": {"a": 1}, "actual": '{"a": 1'}],
            "args_error": BROKEN.args_error,
        }
    ]
    assert found.details["extra"] == [
        {"actual": 1, "message": 3, "name": "f", "args_raw": '{"a": 1', "args_error": BROKEN.args_error}
    ]


HOSTILE = ["", " ", "a\nb", "a\r\u2028\u2029\x85b", "\x1b[31mred", "x" * 10_000, "\n" * 10_000, "f; missing: g", "é ü"]


def test_whatever_names_and_values_hold_the_reason_is_one_short_line_and_the_details_have_them_whole():
    for name in HOSTILE:
        made = ToolCall(name, {name: name, "list": [{name: 1}]})
        found = score(FREE, [ToolCall(name, {"list": [{name: 2}]}), ToolCall("g")], [made, made])
        assert found.reason.isprintable()
        assert len(found.reason) < 1_500
        assert [pair["name"] for pair in found.details["pairs"]] == [name]
        assert found.details["extra"] == [{"actual": 1, "message": 2, "name": name, "args": made.args}]
        assert Score.model_validate_json(found.model_dump_json()) == found


def test_the_reason_of_a_long_way_off_stays_short():
    made = [ToolCall(f"extra_{number}") for number in range(1, 501)]
    reason = score(FREE, [], *([call] for call in made)).reason
    assert reason.startswith("no call was expected; extra: extra_1 (message 2), ")
    assert reason.endswith(", extra_10 (message 11), and 490 more")


def test_of_many_messages_and_many_differences_the_first_ten_are_told():
    args = {f"a{number}": number for number in range(25)}
    repeated = [[ToolCall("f", dict.fromkeys(args, -1))]] * 12
    reason = score(FREE, [ToolCall("f", args)], *repeated).reason
    assert ", args.a9 expected 9, got -1, and 15 more; extra: f x11 (messages " in reason
    assert reason.endswith(", and 1 more)")


@pytest.mark.parametrize("how", ["exact", "same_calls"])
def test_the_arguments_in_the_details_are_copies(how):
    """Explanations are not validated, which would copy them."""
    made = [ToolCall(name, {"place": {"city": "Rome"}}) for name in "fgh"]
    expected = [ExpectedCall(name, {"place": {"city": "Paris"}}) for name in "fij"]
    found = score(how, expected, made)
    before = found.model_dump_json()
    assert Score.model_validate_json(before) == found
    for call in (*made, *expected):
        call.args["place"]["city"] = "Oslo"
        call.args["place"] = {}
    assert found.model_dump_json() == before

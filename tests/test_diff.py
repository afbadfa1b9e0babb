"""Expected and made calls side by side."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.score import Score
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.message import AIMessage, ToolCall
from judgekit.traces.sample import Sample


def pair(expected: int, made: int, *, name: str = "f", score: float = 1.0, **more: object) -> dict[str, object]:
    return {"expected": expected, "actual": made, "message": made + 1, "name": name, "score": score, **more}


def missing(expected: int, name: str = "f", **args: object) -> dict[str, object]:
    return {"expected": expected, "name": name, "args": args}


def extra(made: int, name: str = "f", **args: object) -> dict[str, object]:
    return {"actual": made, "message": made + 1, "name": name, "args": args}


def diff(**details: object):
    return Score.scored(
        "s", 0.5, details={"pairs": [], "missing": [], "extra": [], "out_of_order": [], **details}
    ).diff()


REFUND = {
    "pairs": [
        pair(0, 0, name="search"),
        pair(
            1,
            2,
            name="refund_order",
            score=0.5,
            differences=[
                {"path": "args.amount", "expected": 30.0, "actual": 20.0},
                {"path": "args.items[0].id", "expected": "a"},
                {"path": 'args["odd key"]', "actual": None},
            ],
        ),
    ],
    "missing": [missing(3, "send_email", to="a@b.c", copies=[1, 2])],
    "extra": [extra(1, "search", q="x")],
    "out_of_order": [pair(2, 3, name="pay")],
}
LINES = [
    ("=", "search", "1: search"),
    ("+", "", '2: search  q: "x"'),
    (
        "~",
        'refund_order  amount: 30.0, items[0].id: "a", args["odd key"]: nothing',
        '3: refund_order  amount: 20.0, items[0].id: nothing, args["odd key"]: null',
    ),
    ("<>", "pay", "4: pay"),
    ("-", 'send_email  to: "a@b.c", copies: [1,2]', ""),
]


def test_each_call_has_a_line_that_says_how_it_differs():
    assert list(diff(**REFUND)) == LINES


def test_it_is_the_same_for_a_score_that_was_read_back():
    score = Score.scored("s", 0.5, details=REFUND)
    assert Score.model_validate_json(score.model_dump_json()).diff() == score.diff() == tuple(LINES)


def test_it_is_printed_in_columns():
    assert str(diff(pairs=REFUND["pairs"][:1], missing=[missing(1, "send_email")], extra=[extra(1, "pay")])) == (
        "=   search      1: search\n-   send_email\n+               2: pay"
    )
    assert str(diff()) == ""


@pytest.mark.parametrize(
    ("details", "order"),
    [
        ({"missing": [missing(0, "a")], "extra": [extra(0, "b")]}, "-a +b"),
        ({"pairs": [pair(0, 1, name="a")], "extra": [extra(0, "b"), extra(2, "c")]}, "+b =a +c"),
        ({"pairs": [pair(0, 0, name="a"), pair(2, 2, name="c")], "missing": [missing(1, "b")], "extra": [extra(1, "x")]}, "=a -b +x =c"),
        ({"pairs": [pair(1, 0, name="b"), pair(0, 2, name="a")], "extra": [extra(1, "x")]}, "=a =b +x"),
        ({"pairs": [pair(0, 2, name="a"), pair(1, 0, name="b")], "extra": [extra(3, "y"), extra(1, "x")]}, "=a +y =b +x"),
    ],
    ids=["nothing agrees", "around a pair", "between pairs", "out of turn", "each behind its own"],
)  # fmt: skip
def test_extra_calls_stand_behind_the_call_that_was_made_before_them(details, order):
    names = [f"{mark}{expected or made[3:]}" for mark, expected, made in diff(**details)]
    assert " ".join(names) == order


def test_arguments_that_could_not_be_read_are_shown_as_they_were_recorded():
    broken = {"args_error": "not JSON: expected a value"}
    (line,) = diff(pairs=[pair(0, 0, score=0.0, **broken)])
    assert line == ("~", "f", "1: f  unreadable arguments: not JSON: expected a value")
    (line,) = diff(extra=[{"actual": 0, "message": 1, "name": "f", "args_raw": '{"a":\n', **broken}])
    assert line == ("+", "", r'1: f  unreadable arguments: "{\"a\":\n"')


def test_a_pair_that_a_function_found_unlike_says_how_much():
    assert list(diff(pairs=[pair(0, 0, score=0.25)])) == [("~", "f", "1: f  arguments score 0.25")]


def test_long_values_and_long_lines_are_cut():
    (line,) = diff(missing=[missing(0, "f", text="x" * 1_000)])
    assert line.expected == f'f  text: "{"x" * 56}...'
    (line,) = diff(missing=[missing(0, "f" * 100, **{str(index): "y" * 50 for index in range(100)})])
    assert len(line.expected) == 160
    assert line.expected.endswith("...")


def test_names_that_could_be_taken_for_more_are_quoted():
    (line,) = diff(missing=[missing(0, "pay  to: me", **{"a\nb": 1})])
    assert line.expected == r'"pay  to: me"  "a\nb": 1'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
keys = ["name", "expected", "actual", "message", "score", "differences", "args", "args_raw", "args_error", "path"]
entries = st.dictionaries(st.sampled_from(keys), values | st.text(max_size=5) | st.integers(), max_size=8)
of_calls = st.dictionaries(st.sampled_from(["pairs", "missing", "extra", "out_of_order"]), st.lists(entries) | values)


@settings(max_examples=2 * settings.default.max_examples)
@given(of_calls | st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_other_details_have_no_diff_and_raise_nothing(details):
    found = Score.scored("s", 0.5, details=details).diff()
    assert isinstance(str(found), str)
    assert found == () or {"pairs", "missing", "extra"} <= details.keys()


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"pairs": 1, "missing": 2, "extra": 3},
        {"pairs": [], "missing": []},
        {"pairs": [[]], "missing": [], "extra": []},
        {"pairs": [{"name": None}], "missing": [], "extra": []},
        {"pairs": [], "missing": [{"name": "f", "expected": 0, "args": {"n": 10**5_000}}], "extra": []},
        {"pairs": [{"name": "f", "message": 10**5_000}], "missing": [], "extra": []},
    ],
    ids=range(7),
)
def test_details_that_tell_of_no_calls_have_no_diff(details):
    assert Score.scored("s", 0.5, details=details).diff() == ()


lines = st.lists(st.text(max_size=8).flatmap(lambda key: st.tuples(st.just(key), values)), max_size=2).map(dict)


@given(st.text(max_size=8), lines)
def test_each_text_is_one_line_whatever_was_recorded(name, args):
    (line,) = diff(missing=[{"expected": 0, "name": name, "args": args}])
    assert len(line.expected.splitlines()) == 1
    assert len(line.expected) <= 160


def test_the_details_of_a_tool_call_scorer_have_one():
    made = [AIMessage("", tool_calls=[ToolCall("search"), ToolCall("pay", {"sum": 1})])]
    expected = [ToolCall("search"), ToolCall("pay", {"sum": 2}), ToolCall("bye")]
    score = ToolCallF1().score(Sample.of(made, reference_tool_calls=expected))
    assert list(score.diff()) == [
        ("=", "search", "1: search"),
        ("~", "pay  sum: 2", "1: pay  sum: 1"),
        ("-", "bye", ""),
    ]

"""Which call answers which, and what is made of it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.arguments import ArgMatch, compare_arguments
from judgekit.scorers.tool_calls.calls import Calls, Selection
from judgekit.scorers.tool_calls.explanation import explain_match
from judgekit.scorers.tool_calls.matchers import anything, near, one_of, regex
from judgekit.scorers.tool_calls.matching import Match
from judgekit.scorers.tool_calls.modes import PRESETS, ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, ToolCall, ToolMessage
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall

CREDITS = ("all_or_nothing", "precision", "recall", "f1")
AXES: dict[str, Sequence[str]] = {  # from the strictest to the loosest
    "order": ("sequence", "in_order", "any"),
    "extra": ("forbid", "allow"),
    "missing": ("forbid", "allow"),
    "parallel": ("ordered", "unordered"),
    "args_credit": ("all", "fraction"),
}
MODES = [
    ToolMatch(within=scope, credit=credit, **dict(zip(AXES, point, strict=True)))
    for scope, credit, *point in product(("conversation", "turn"), CREDITS, *AXES.values())
]
"""Every way to match, but for how arguments are compared."""


def share_of_longer(expected: JsonObject, made: JsonObject) -> float:
    """A comparer of arguments that looks at their number alone."""
    most = max(len(expected), len(made))
    return min(len(expected), len(made)) / most if most else 1.0


values = st.integers(0, 1)
names = st.sampled_from(["f", "f", "g"])
args = st.dictionaries(st.sampled_from("ab"), values, max_size=2)
wanted_args = st.dictionaries(
    st.sampled_from("ab"),
    values | st.sampled_from([anything(), one_of(0, 2), near(1, tolerance=1), regex("x")]),
    max_size=2,
)
compared = st.none() | st.none() | st.sampled_from([[], ["a"]])
turns = st.integers(0, 2)
plain_calls = st.builds(ExpectedCall, names, args, turn=turns)
any_calls = plain_calls | st.builds(ExpectedCall, names, wanted_args, turn=turns, compare_args=compared)
BROKEN = ToolCall("f", '{"a": 1')  # type: ignore[arg-type]
comparisons = st.sampled_from([ArgMatch(), ArgMatch(), ArgMatch(mode="at_least"), share_of_longer])


@st.composite
def made_calls(draw: st.DrawFn, most: int = 6) -> list[ActualCall]:
    """Calls in messages of one or several, and messages in turns."""
    found: list[ActualCall] = []
    message = turn = 0
    for call in draw(st.lists(st.builds(ToolCall, names, args) | st.just(BROKEN), max_size=most)):
        step = draw(st.sampled_from(["beside", "message", "turn"]))
        message += step != "beside" or not found
        turn += step == "turn"
        found.append(ActualCall(message, turn, call))
    return found


@st.composite
def both_sides(draw: st.DrawFn, most: int = 6) -> tuple[list[ExpectedCall], list[ActualCall]]:
    return draw(st.lists(draw(st.sampled_from([plain_calls, any_calls])), max_size=most)), draw(made_calls(most))


def match_of(rules: ToolMatch, expected: Sequence[ExpectedCall], made: Sequence[ActualCall]) -> Match:
    class Made(Selection):
        def calls(self, _: object) -> Sequence[ActualCall]:
            return made

    return Match(rules, Calls(rules, Sample(id="1", reference_tool_calls=expected), Made(include_failed=False)))


def credit(how: ToolMatch, expected: ExpectedCall, made: ToolCall) -> float:
    """What a pair is worth, whatever the order."""
    score = (
        compare_arguments(how.arg_rules_for(expected.name), expected, made).score if expected.name == made.name else 0.0
    )
    return score if how.args_credit == "fraction" else float(score == 1)


def allowed(how: ToolMatch, match: Match) -> Callable[[Sequence[tuple[int, int]]], bool]:
    """Whether the order that is asked for allows these pairs, told from its definition alone."""
    expected, made, by_turn = match.calls.expected, match.calls.actual, how.within == "turn"

    def positions(turns: Sequence[int | None]) -> list[int]:
        """Where each call stands among those it is put in order with."""
        return [sum(not by_turn or one == turn for one in turns[:index]) for index, turn in enumerate(turns)]

    wanted_at, made_at = positions([one.turn for one in expected]), positions([one.turn for one in made])
    rank = [one.message if how.parallel == "unordered" else index for index, one in enumerate(made)]
    places = [{made_at[index] for index, one in enumerate(rank) if one == own} for own in rank]

    def allows(pairs: Sequence[tuple[int, int]]) -> bool:
        if by_turn and any(expected[one].turn != made[other].turn for one, other in pairs):
            return False
        if how.order == "sequence":
            return all(wanted_at[one] in places[other] for one, other in pairs)
        if how.order == "in_order":
            return all(
                rank[other] <= rank[later]
                for one, other in pairs
                for then, later in pairs
                if one < then and (not by_turn or expected[one].turn == expected[then].turn)
            )
        return True

    return allows


def all_pairings(match: Match, weights: Sequence[Sequence[float]]) -> Iterator[list[tuple[int, int]]]:
    """Every one-to-one pairing of calls that are worth something together."""

    def go(one: int, taken: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        if one == len(match.calls.expected):
            yield taken
            return
        yield from go(one + 1, taken)
        used = {other for _, other in taken}
        for other in range(len(match.calls.actual)):
            if weights[one][other] and other not in used:
                yield from go(one + 1, [*taken, (one, other)])

    return go(0, [])


def best_by_trying_all(match: Match) -> float:
    how = match.rules
    weights = [[credit(how, one, other.call) for other in match.calls.actual] for one in match.calls.expected]
    allows = allowed(how, match)
    return max(
        sum(weights[one][other] for one, other in taken) for taken in all_pairings(match, weights) if allows(taken)
    )


def value_of(how: ToolMatch, tp: float, made: int, expected: int) -> float:
    """What the definition of ``credit`` makes of the counts."""
    fp = made - tp if how.extra == "forbid" else 0
    fn = expected - tp if how.missing == "forbid" else 0
    parts = {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}
    above, below = parts.get(how.credit, (0, 0))
    return above / below if below > 1e-9 else float(fp + fn < 1e-9)


@settings(max_examples=2 * settings.default.max_examples)
@given(both_sides(), st.sampled_from(MODES), comparisons)
def test_no_other_pairing_that_the_order_allows_is_worth_more(sides, mode, comparison):
    match = match_of(mode.model_copy(update={"args": comparison}), *sides)
    assert match.value == pytest.approx(value_of(match.rules, best_by_trying_all(match), len(sides[1]), len(sides[0])))


@settings(max_examples=2 * settings.default.max_examples)
@given(both_sides(), st.sampled_from(MODES), comparisons)
def test_pairs_are_one_to_one_worth_what_they_say_and_as_much_as_can_be(sides, mode, comparison):
    match = match_of(mode.model_copy(update={"args": comparison}), *sides)
    how = match.rules
    if how.order == "sequence" and how.credit == "all_or_nothing" and how.extra == how.missing == "forbid":
        how = how.model_copy(update={"order": "in_order"})  # no call may be left over: being in place is being in order
    pairs = [(one, other) for one, other, _ in match.pairs]
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert allowed(how, match)(pairs)
    assert [pair.credit for pair in match.pairs] == [
        credit(how, match.calls.expected[one], match.calls.actual[other].call) for one, other in pairs
    ]
    assert match.tp == pytest.approx(best_by_trying_all(replace(match, rules=how)))


@settings(max_examples=2 * settings.default.max_examples)
@given(both_sides(), st.sampled_from(MODES), comparisons)
@example(([ExpectedCall("f")], [ActualCall(1, 0, BROKEN)]), PRESETS["exact"], ArgMatch())
def test_the_details_give_the_value_again_and_leave_out_no_call(sides, mode, comparison):
    expected, made = sides
    how = mode.model_copy(update={"args": comparison})
    match = match_of(how, expected, made)
    details = explain_match(match).details
    assert json.loads(json.dumps(details, allow_nan=False)) == details
    scores = [pair["score"] for pair in details["pairs"]]
    tp = sum(scores) if how.args_credit == "fraction" else scores.count(1)
    assert details["tp"] == pytest.approx(tp)
    assert details["fp"] == pytest.approx(len(made) - tp if how.extra == "forbid" else 0)
    assert details["fn"] == pytest.approx(len(expected) - tp if how.missing == "forbid" else 0)
    assert value_of(how, details["tp"], len(made), len(expected)) == pytest.approx(match.value)
    both = [*details["pairs"], *details["out_of_order"]]
    assert sorted(one["expected"] for one in [*both, *details["missing"]]) == list(range(len(expected)))
    assert sorted(one["actual"] for one in [*both, *details["extra"]]) == list(range(len(made)))
    for one in [*both, *details["extra"]]:
        assert (one["message"], one["name"]) == (made[one["actual"]].message, made[one["actual"]].call.name)
    for one in [*both, *details["missing"]]:
        assert one["name"] == expected[one["expected"]].name
    assert all((one["score"] < 1) == ("differences" in one) for one in both)
    left = [{call["name"] for call in details[side]} for side in ("missing", "extra")]
    assert left[0].isdisjoint(left[1])


@settings(max_examples=2 * settings.default.max_examples)
@given(both_sides(), st.sampled_from(MODES), comparisons)
def test_pairs_that_are_told_are_in_order_and_what_is_out_of_order_could_not_be_one_of_them(sides, mode, comparison):
    match = match_of(mode.model_copy(update={"args": comparison}), *sides)
    details = explain_match(match).details
    in_order = mode if mode.order == "any" else mode.model_copy(update={"order": "in_order"})
    allows = allowed(in_order, replace(match, rules=in_order))
    pairs = [(pair["expected"], pair["actual"]) for pair in details["pairs"]]
    assert allows(pairs)
    displaced = [(pair["expected"], pair["actual"]) for pair in details["out_of_order"]]
    for one, other in displaced if mode.within == "conversation" else ():
        worth = credit(match.rules, match.calls.expected[one], match.calls.actual[other].call)
        assert not allows([*pairs, (one, other)]) or (mode.order == "sequence" and worth)


def test_calls_of_a_turn_are_out_of_order_also_where_calls_of_another_turn_stand_between_them():
    expected = [ExpectedCall("f", {}, turn=0), ExpectedCall("f", {"a": 0}, turn=2), ExpectedCall("f", {"b": 0}, turn=0)]
    calls = [(1, 0, ToolCall("f", {"b": 0})), (1, 0, ToolCall("f", {"c": 1})), (3, 2, ToolCall("f", {"a": 0}))]
    how = ToolMatch(order="in_order", within="turn", parallel="ordered")
    details = explain_match(match_of(how, expected, [ActualCall(*call) for call in calls])).details
    assert [(pair["expected"], pair["actual"]) for pair in details["pairs"]] == [(1, 2), (2, 0)]
    assert [(pair["expected"], pair["actual"]) for pair in details["out_of_order"]] == [(0, 1)]


def in_messages(*calls: ToolCall) -> list[ActualCall]:
    """Calls, each in a message of its own, from number 2 on."""
    return [ActualCall(number, 1, call) for number, call in enumerate(calls, 2)]


def pairs_of(how: ToolMatch, expected: Sequence[ExpectedCall], made: Sequence[ActualCall]) -> list[tuple[int, int]]:
    return [(one, other) for one, other, _ in match_of(how, expected, made).pairs]


def test_calls_of_one_message_are_in_order_in_any_order_unless_parallel_is_ordered():
    expected = [ExpectedCall(name) for name in "abcd"]
    made = [ActualCall(2 if name in "ba" else 3, 1, ToolCall(name)) for name in "badc"]
    for order in ("sequence", "in_order"):
        assert pairs_of(ToolMatch(order=order), expected, made) == [(0, 1), (1, 0), (2, 3), (3, 2)]
        assert match_of(ToolMatch(order=order, parallel="ordered"), expected, made).value == 0


def test_in_order_a_longest_run_is_aligned():
    cases = [
        ("ab", "ab", [(0, 0), (1, 1)]),
        ("ab", "aab", [(0, 0), (1, 2)]),
        ("abc", "ac", [(0, 0), (2, 1)]),
        ("abc", "abxc", [(0, 0), (1, 1), (2, 3)]),
    ]
    for expected, found, pairs in cases:
        made = in_messages(*map(ToolCall, found))
        assert pairs_of(ToolMatch(order="in_order"), [ExpectedCall(name) for name in expected], made) == pairs


@pytest.mark.parametrize("mode", [PRESETS["exact"], PRESETS["same_calls"], ToolMatch(order="in_order", credit="f1")])
@pytest.mark.parametrize("extra", [0, 1])
def test_a_thousand_equal_calls_are_paired_in_their_order(mode, extra):
    size = 1_000
    expected = [ExpectedCall("f", {"a": 1})] * size
    made = in_messages(*[ToolCall("f", {"a": 1})] * (size + extra))
    match = match_of(mode, expected, made)
    assert match.tp == size
    assert sorted(pair[:2] for pair in match.pairs) == [(index, index) for index in range(size)]


@pytest.mark.parametrize("order", ["in_order", "any"])
@pytest.mark.parametrize("parallel", ["unordered", "ordered"])
def test_two_hundred_mixed_calls_are_paired_as_well_as_can_be(order, parallel):
    """Every tenth call has another argument, and each message holds four; the rest is as expected."""
    expected = [ExpectedCall(f"tool_{index % 7}", {"n": index, "same": True}) for index in range(200)]
    calls = [ToolCall(one.name, {**one.args, "n": -1} if at % 10 == 5 else one.args) for at, one in enumerate(expected)]
    made = [ActualCall(2 + index // 4, 1, call) for index, call in enumerate(calls)]
    for args_credit, tp in {"all": 180, "fraction": 190}.items():
        how = ToolMatch(order=order, parallel=parallel, args_credit=args_credit, credit="f1")
        assert match_of(how, expected, made).tp == tp


def sample(*messages: AIMessage | HumanMessage | ToolMessage, expected: Sequence[ToolCall]) -> Sample:
    return Sample.of(messages, id="one", reference_tool_calls=expected)


def test_of_a_sample_failed_calls_are_left_out_if_asked_and_those_of_unknown_end_are_not():
    calls = [ToolCall(name, id=name) for name in "abcd"]
    recorded = sample(
        AIMessage(tool_calls=calls),
        ToolMessage("no", tool_call_id="a", is_error=True),
        ToolMessage("yes", tool_call_id="b", is_error=False),
        ToolMessage("who knows", tool_call_id="c"),
        expected=[],
    )
    for include_failed, names in ((True, "abcd"), (False, "bcd")):
        selected = Calls(PRESETS["exact"], recorded, Selection(include_failed=include_failed))
        assert "".join(one.call.name for one in selected.actual) == names


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), st.data())
@pytest.mark.parametrize("args_credit", ["all", "fraction"])
@pytest.mark.parametrize("parallel", ["ordered", "unordered"])
def test_many_calls_are_paired_as_few(args_credit, parallel, numbers, data):
    expected = [ExpectedCall("f", {"a": a, "b": b} if a else {"b": b} if b else {}) for a, b in numbers]
    others = [ExpectedCall("f", {"a": 9, "b": b}) for _, b in numbers]
    pool = [*expected, *others, ExpectedCall("f"), ExpectedCall("g", {"b": 1})]
    called = data.draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, max_size=3), max_size=4))
    messages = [AIMessage(tool_calls=[ToolCall(call.name, call.args) for call in calls]) for calls in called]
    messages.append(AIMessage(tool_calls=[BROKEN]))
    sample = Sample.of(messages, reference_tool_calls=expected)
    for order in ("any", "in_order"):
        rules = ToolMatch(order=order, credit="f1", args_credit=args_credit, parallel=parallel)
        explanations = []
        for many, some in ((10**9, 10**9), (0, -1)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("judgekit.scorers.tool_calls.calls._MANY_PAIRS", many)
                patch.setattr("judgekit.scorers.tool_calls.matching._SOME_PAIRS", some)
                match = Match(rules, Calls(rules, sample, Selection()))
                explanations.append((match.pairs, explain_match(match)))
        assert explanations[0] == explanations[1]

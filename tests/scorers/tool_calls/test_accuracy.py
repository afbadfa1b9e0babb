"""Tool-call accuracy."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.score import Score
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.matchers import near
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample


def score(expected: list[ToolCall] | None, *turns: list[ToolCall], **options: object) -> Score:
    """The score of an agent that made these calls, turn by turn; the first of its messages is number 2."""
    messages = [HumanMessage("Hi"), *(AIMessage(tool_calls=calls) for calls in turns)]
    return ToolCallAccuracy(**options).score(Sample.of(messages, id="one", reference_tool_calls=expected))


OPTIONS = {
    "default": ToolCallAccuracy(),
    "typed": ToolCallAccuracy(),
    "strict_zero": ToolCallAccuracy(),
    "free": ToolCallAccuracy(strict_order=False),
    "coerce": ToolCallAccuracy(args=ArgMatch(types="coerce")),
    "casefold": ToolCallAccuracy(args=ArgMatch(text="casefold")),
    "coverage": ToolCallMatch(ToolMatch(order="in_order", credit="recall", args_credit="fraction")),
}


def test_the_cases_of_ragas_have_their_values_or_those_recommended_for_each_option(shared_data):
    """Where ragas is right, its value; where it errs or there is a choice, what is recommended for each choice."""
    cases = json.loads((shared_data / "cases" / "ragas_cases.json").read_text())["cases"]
    cases = [case for case in cases if case["metric"] == "tool_call_accuracy"]
    expected, found = {}, {}
    for case in cases:
        strict = case["options"]["strict_order"]
        known = {name: number for name, number in case.get("recommended", {}).items() if name != "why"}
        for option, number in (known or {"default" if strict else "free": case["ragas_score"]}).items():
            sample = {"id": case["id"], "trace": {"messages": case["input"]["conversation"]}}
            sample["reference_tool_calls"] = case["input"]["reference_tool_calls"]
            expected[case["id"], option] = number
            found[case["id"], option] = OPTIONS[option].score(Sample.model_validate(sample)).value
        assert bool(known) == (case["status"] != "agree")
    assert len({name for name, _ in expected}) == len(cases) == 24
    assert {option for _, option in expected} == {*OPTIONS}
    assert found == pytest.approx(expected, abs=1e-9)


SEARCH = ToolCall("search", {"query": "python"})
FILTER = ToolCall("filter", {"by": "date", "limit": 10})
FILTER_BY_5 = ToolCall("filter", {"by": "date", "limit": 5})
NONE_EXPECTED = "no call was expected and none was made"

CASES = {
    "both empty": ([], [[]], 1.0, NONE_EXPECTED),
    "as expected": ([SEARCH, FILTER], [[SEARCH], [FILTER]], 1.0, "2 of 2 expected calls matched"),
    "one of two arguments": (
        [SEARCH, FILTER],
        [[SEARCH], [FILTER_BY_5]],
        0.75,
        "1 of 2 expected calls matched; filter: args.limit expected 10, got 5",
    ),
    "one that nobody expected": (
        [SEARCH],
        [[ToolCall("search", {"query": "python", "safe": True})]],
        0.5,
        "0 of 1 expected calls matched; search: args.safe expected nothing, got true",
    ),
    "in another order": (
        [SEARCH, FILTER, ToolCall("pay")],
        [[ToolCall("pay")], [SEARCH], [FILTER]],
        0.0,
        "the expected tools in a different order: 2 of 3 expected calls matched; out of order: pay (message 2)",
    ),
    "extra": (
        [SEARCH],
        [[SEARCH], [], [FILTER]],
        0.0,
        "different tools than expected: 1 of 1 expected calls matched; extra: filter (message 4)",
    ),
    "none expected": (
        [],
        [[SEARCH]],
        0.0,
        "different tools than expected: no call was expected; extra: search (message 2)",
    ),
    "the tool alone matters": (
        [ExpectedCall("search", {"query": "python"}, compare_args=[])],
        [[ToolCall("search", {"query": "rust"})]],
        1.0,
        "1 of 1 expected calls matched",
    ),
}


def test_the_value_and_the_reason():
    for expected, turns, value, reason in CASES.values():
        found = score(expected, *turns)
        assert (found.status, found.value, found.reason) == ("scored", value, reason)
        assert (found.scorer, found.calls, found.aggregate) == ("tool_call_accuracy", (), "mean")
        assert found.details["aligned"] is not reason.startswith(("different tools", "the expected tools"))


ROME, PARIS = ToolCall("weather", {"city": "Rome"}), ToolCall("weather", {"city": "Paris"})
FREE = {
    "in another order": ([SEARCH, FILTER], [[FILTER], [SEARCH]], 1.0),
    "paired so that the mean is highest": (
        [ToolCall("f", {"a": 1, "b": 1}), ToolCall("f", {"a": 1, "b": 2})],
        [[ToolCall("f", {"a": 1, "b": 2}), ToolCall("f", {"a": 2, "b": 1})]],
        0.75,
    ),
    "one call too many": ([SEARCH], [[SEARCH, SEARCH]], 0.0),
    "one call too few": ([SEARCH, SEARCH], [[SEARCH]], 0.0),
    "as many calls, of other tools": ([SEARCH, FILTER], [[FILTER, FILTER]], 0.0),
}


def test_with_a_free_order_the_tools_count_as_often_as_expected():
    for expected, turns, value in FREE.values():
        assert score(expected, *turns, strict_order=False).value == value


def test_parallel_calls_have_an_order_too_unless_it_is_free():
    assert score([PARIS, ROME], [ROME, PARIS]).value == 0
    assert score([PARIS, ROME], [ROME, PARIS], strict_order=False).value == 1


def test_arguments_are_compared_as_asked():
    close = [ToolCall("pay", {"amount": near(20, tolerance=1), "to": "Ann"})]
    assert score(close, [ToolCall("pay", {"amount": 20.5, "to": "ann"})]).value == 0.5
    assert score(close, [ToolCall("pay", {"amount": 20.5, "to": "ann"})], args=ArgMatch(text="casefold")).value == 1
    assert score([SEARCH, FILTER], [SEARCH], [FILTER_BY_5], args=lambda expected, made: expected == made).value == 0.5
    assert score([SEARCH, FILTER], [SEARCH], [FILTER_BY_5], args=lambda expected, made: 0.25).value == 0.25


objects = st.dictionaries(st.sampled_from("abc"), st.integers(0, 1), max_size=3)
calls = st.lists(st.builds(ToolCall, st.sampled_from(["f", "g"]), objects), max_size=4)


@given(calls, calls)
def test_the_value_is_the_mean_over_the_calls_where_names_align_and_else_0(expected, made):
    found = score(expected, made)
    if [call.name for call in expected] != [call.name for call in made]:
        assert found.value == 0
    elif not expected:
        assert found.value == 1
    else:
        shares = []
        for left, right in zip(expected, made, strict=True):
            union = left.args.keys() | right.args.keys()
            agree = left.args.items() & right.args.items()
            shares.append(len(agree) / len(union) if union else 1)
        assert found.value == pytest.approx(sum(shares) / len(shares), abs=1e-12)

"""Tool-call accuracy."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.score import Score
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.reading import read
from judgekit.traces.sample import ExpectedCall, Sample


def score(expected: list[ToolCall] | None, *turns: list[ToolCall]) -> Score:
    """The score of an agent that made these calls, turn by turn; the first of its messages is number 2."""
    messages = [HumanMessage("Hi"), *(AIMessage(tool_calls=calls) for calls in turns)]
    return ToolCallAccuracy().score(Sample.of(messages, id="one", reference_tool_calls=expected))


def test_the_cases_of_ragas_have_the_recommended_values(shared_data):
    """Where ragas is right, its value; where it errs or offers a choice, what is recommended for typed, strict scoring."""
    cases = json.loads((shared_data / "cases" / "ragas_cases.json").read_text())["cases"]
    expected, found = {}, {}
    for case in cases:
        if case["metric"] == "tool_call_accuracy" and case["options"]["strict_order"]:
            known = case.get("recommended", {})
            numbers = [known[name] for name in ("default", "typed", "strict_zero") if name in known]
            expected[case["id"]] = case["ragas_score"] if case["status"] == "agree" else numbers[0]
            messages = case["input"]["conversation"]
            sample = {"id": case["id"], "trace": {"messages": messages}, **case["input"]}
            del sample["conversation"]
            found[case["id"]] = ToolCallAccuracy().score(Sample.model_validate(sample)).value
    assert len(expected) == 22
    assert found == pytest.approx(expected, abs=1e-9)


SEARCH = ToolCall("search", {"query": "python"})
FILTER = ToolCall("filter", {"by": "date", "limit": 10})

CASES = {
    "both empty": ([], [[]], 1.0, "no call was expected and none was made"),
    "no turn at all": ([], [], 1.0, "no call was expected and none was made"),
    "as expected": ([SEARCH, FILTER], [[SEARCH], [FILTER]], 1.0, "all 2 calls as expected, in order"),
    "in parallel": ([SEARCH, FILTER], [[SEARCH, FILTER]], 1.0, "all 2 calls as expected, in order"),
    "one of two arguments": (
        [SEARCH, FILTER],
        [[SEARCH], [ToolCall("filter", {"by": "date", "limit": 5})]],
        0.75,
        "filter in message 3 differs in limit: expected 10, found 5",
    ),
    "one that nobody expected": (
        [SEARCH],
        [[ToolCall("search", {"query": "python", "safe": True})]],
        0.5,
        "search in message 2 differs in safe: expected nothing, found true",
    ),
    "swapped": (
        [SEARCH, FILTER],
        [[FILTER, SEARCH]],
        0.0,
        "the expected calls in another order: expected search, filter; made filter, search",
    ),
    "missing": (
        [SEARCH, FILTER],
        [[SEARCH]],
        0.0,
        'the sequence of calls is not the expected one: filter {"by":"date","limit":10} was expected and not made',
    ),
    "extra": (
        [SEARCH],
        [[SEARCH], [], [FILTER]],
        0.0,
        'the sequence of calls is not the expected one: filter {"by":"date","limit":10} in message 4 was not expected',
    ),
    "none made": (
        [SEARCH],
        [],
        0.0,
        'the sequence of calls is not the expected one: search {"query":"python"} was expected and not made',
    ),
    "none expected": (
        [],
        [[SEARCH]],
        0.0,
        'the sequence of calls is not the expected one: search {"query":"python"} in message 2 was not expected',
    ),
    "the tool alone matters": (
        [ExpectedCall("search", {"query": "python"}, compare_args=[])],
        [[ToolCall("search", {"query": "rust"})]],
        1.0,
        "all 1 calls as expected, in order",
    ),
    "a repeated call": (
        [SEARCH],
        [[SEARCH, SEARCH]],
        0.0,
        'the sequence of calls is not the expected one: search {"query":"python"} in message 2 was not expected',
    ),
}


@pytest.mark.parametrize(("expected", "turns", "value", "reason"), CASES.values(), ids=CASES)
def test_the_value_and_the_reason(expected, turns, value, reason):
    found = score(expected, *turns)
    assert (found.status, found.value, found.reason) == ("scored", value, reason)
    assert (found.scorer, found.calls, found.aggregate) == ("tool_call_accuracy", (), "mean")


def test_arguments_that_cannot_be_read_are_a_mismatch_that_is_told():
    broken = ToolCall("search", '{"query": "pyth')  # type: ignore[arg-type]
    found = score([SEARCH, FILTER], [broken], [FILTER])
    assert found.value == 0.5
    assert found.reason == f"search in message 2 has arguments that cannot be read ({broken.args_error})"
    assert found.details == {
        "matched": [
            {"expected": 0, "message": 2, "name": "search", "different": ["query"], "args_error": broken.args_error},
            {"expected": 1, "message": 3, "name": "filter"},
        ],
        "missing": [],
        "extra": [],
    }


def test_without_references_a_sample_is_skipped():
    assert score(None, [SEARCH]) == Score.skipped("tool_call_accuracy", "the sample has no reference_tool_calls")


def test_the_calls_of_the_user_do_not_count():
    messages = [HumanMessage("Hi", tool_calls=[FILTER]), AIMessage(tool_calls=[SEARCH])]
    found = ToolCallAccuracy().score(Sample.of(messages, reference_tool_calls=[SEARCH]))
    assert found.value == 1.0


def test_another_name_stands_in_all_its_scores():
    scorer = ToolCallAccuracy(name="strict")
    scored, skipped = Sample.of([], id="a", reference_tool_calls=[]), Sample.of([], id="b")
    assert (scorer.name, scorer.score(scored).scorer, scorer.score(skipped).scorer) == ("strict",) * 3


objects = st.dictionaries(st.sampled_from("abc"), st.integers(0, 1), max_size=3)
calls = st.lists(st.builds(ToolCall, st.sampled_from(["f", "g"]), objects), max_size=4)


@settings(max_examples=100)
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


@settings(max_examples=50)
@given(calls)
def test_doing_just_what_was_expected_is_a_1(made):
    assert score(made, made).value == 1


@pytest.mark.parametrize(("domain", "samples"), [("airline", 20), ("retail", 40), ("telecom", 40)])
def test_all_real_conversations_of_tau2_are_scored(shared_data, domain, samples):
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    found = [ToolCallAccuracy().score(sample) for sample in read(path, on_error="raise")]
    assert [one.status for one in found] == ["scored"] * samples

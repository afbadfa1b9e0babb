"""Tool-call F1."""

import json
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.formats.reading import read
from judgekit.score import Score
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.matchers import one_of
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Sample


def score(expected: list[ToolCall] | None, *made: ToolCall, **options: object) -> Score:
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=made)]
    return ToolCallF1(**options).score(Sample.of(messages, id="one", reference_tool_calls=expected))


def test_the_cases_of_ragas_have_their_values_or_those_recommended(shared_data):
    cases = json.loads((shared_data / "cases" / "ragas_cases.json").read_text())["cases"]
    expected, found = {}, {}
    for case in cases:
        if case["metric"] == "tool_call_f1":
            expected[case["id"]] = case.get("recommended", {}).get("default", case["ragas_score"])
            messages, references = case["input"]["conversation"], case["input"]["reference_tool_calls"]
            sample = Sample.model_validate(
                {"id": case["id"], "trace": {"messages": messages}, "reference_tool_calls": references}
            )
            found[case["id"]] = ToolCallF1().score(sample).value
            if case["status"] == "agree":
                assert found[case["id"]] == pytest.approx(case["ragas_score"], abs=1e-4), case["id"]
    assert len(expected) == 15
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_examples_have_the_expected_values(shared_data):
    expected, found = {}, {}
    for example in json.loads((shared_data / "cases" / "agent_examples.json").read_text())["samples"]:
        references = example.get("reference_tool_calls")
        sample = Sample.model_validate(
            {"id": example["id"], "trace": {"messages": example["messages"]}, "reference_tool_calls": references}
        )
        for scorer in (ToolCallAccuracy(), ToolCallF1()):
            if scorer.name in example["expected"]:
                expected[example["id"], scorer.name] = example["expected"][scorer.name]
                found[example["id"], scorer.name] = scorer.score(sample).value
    assert found == expected
    assert list(expected.values()) == [1, 1, 1, 0.8]


PARIS = ToolCall("weather", {"city": "Paris"})
ROME = ToolCall("weather", {"city": "Rome"})
UV = ToolCall("uv_index", {"city": "Paris", "days": 2})

CASES = {
    "both empty": ([], [], (0, 0, 0), "no call was expected and none was made"),
    "one other": (
        [UV, PARIS],
        [PARIS, UV, ROME],
        (2, 1, 0),
        "2 of 2 expected calls matched; extra: weather (message 2)",
    ),
    "one missing": ([PARIS, UV], [PARIS], (1, 0, 1), "1 of 2 expected calls matched; missing: uv_index"),
    "a wrong argument": (
        [PARIS],
        [ROME],
        (0, 1, 1),
        '0 of 1 expected calls matched; weather: args.city expected "Paris", got "Rome"',
    ),
    "none expected": (
        [],
        [ToolCall("f"), ToolCall("g"), ToolCall("f")],
        (0, 3, 0),
        "no call was expected; extra: f x2 (message 2), g (message 2)",
    ),
    "compare_args leaves a choice": (
        [ExpectedCall("weather", compare_args=[]), PARIS],
        [PARIS, ROME],
        (2, 0, 0),
        "2 of 2 expected calls matched",
    ),
}


def test_the_value_the_counts_and_the_reason():
    for expected, made, counts, reason in CASES.values():
        tp, fp, fn = counts
        found = score(expected, *made)
        assert (found.scorer, found.status, found.reason, found.calls) == ("tool_call_f1", "scored", reason, ())
        assert found.value == (float(Fraction(2 * tp, 2 * tp + fp + fn)) if any(counts) else 1)
        assert {name: found.details[name] for name in ("tp", "fp", "fn", "precision", "recall")} == {
            "tp": tp,
            "fp": fp,
            "fn": fn,
            "precision": float(Fraction(tp, tp + fp)) if tp + fp else None,
            "recall": float(Fraction(tp, tp + fn)) if tp + fn else None,
        }


def test_arguments_are_compared_as_asked():
    shout = ToolCall("weather", {"city": "PARIS"})
    assert score([PARIS], shout).value == 0
    assert score([PARIS], shout, args=ArgMatch(text="casefold")).value == 1
    assert score([PARIS], shout, args=lambda expected, made: expected.keys() == made.keys()).value == 1
    assert score([PARIS], shout, args=lambda expected, made: 0.9).value == 0
    assert score([ToolCall("weather", {"city": one_of("Paris", "PARIS")})], shout).value == 1


objects = st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2)
calls = st.lists(st.builds(ToolCall, st.sampled_from(["f", "g"]), objects), max_size=5)


def plain(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(call.args, sort_keys=True)


@given(calls, calls)
def test_f1_is_twice_the_shared_calls_over_all_calls(expected, made):
    shared = (Counter(map(plain, expected)) & Counter(map(plain, made))).total()
    total = len(expected) + len(made)
    assert score(expected, *made).value == (2 * shared / total if total else 1)


def normal(value: object) -> object:
    """Whole numbers as such, so that 75.0 is written as 75 is."""
    if isinstance(value, dict):
        return {key: normal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def plain_json(name: str, arguments: object) -> str:
    return json.dumps([name, normal(arguments)], sort_keys=True)


@pytest.mark.parametrize(("domain", "samples"), [("airline", 20), ("retail", 40), ("telecom", 40)])
def test_real_conversations_have_the_value_that_counting_by_hand_gives(shared_data, domain, samples):
    """Counted from the raw file, without the reader. ``compare_args`` is left to the matching's own tests."""
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    raw = json.loads(path.read_text())
    actions = {task["id"]: task["evaluation_criteria"].get("actions") or [] for task in raw["tasks"]}
    expected = {}
    for simulation in raw["simulations"]:
        wanted = [one for one in actions[simulation["task_id"]] if one["requestor"] == "assistant"]
        if all(one["compare_args"] is None for one in wanted):
            references = Counter(plain_json(one["name"], one["arguments"]) for one in wanted)
            made = Counter(
                plain_json(call["name"], call["arguments"])
                for message in simulation["messages"]
                if message["role"] == "assistant"
                for call in message["tool_calls"] or ()
            )
            total = references.total() + made.total()
            name = f"{simulation['task_id']}#{simulation['trial']}"
            expected[name] = 2 * (references & made).total() / total if total else 1.0
    found = {sample.id: ToolCallF1().score(sample).value for sample in read(path, on_error="raise")}
    assert len(found) == samples
    assert len(expected) > samples / 2
    assert {name: found[name] for name in expected} == expected

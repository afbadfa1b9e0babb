"""The calls of a sample, which its scorers share."""

import asyncio
import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from judgekit import AIMessage, HumanMessage, Sample, ToolCall, ToolCallAccuracy, ToolCallF1, ToolCallMatch, ToolMatch
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.calls import Calls
from judgekit.scorers.tool_calls.matchers import of_type
from judgekit.scorers.tool_calls.modes import PRESETS
from judgekit.traces.sample import ExpectedCall

PARIS, ROME = ToolCall("weather", {"place": {"city": "Paris"}}), ToolCall("weather", {"place": {"city": "Rome"}})
SCORERS = (ToolCallAccuracy(), ToolCallF1(), ToolCallMatch("exact"), ToolCallMatch("contains"))


def sample(made: ToolCall = PARIS, expected: ToolCall = PARIS) -> Sample:
    return Sample.of([HumanMessage("Well?"), AIMessage(tool_calls=[made])], id="1", reference_tool_calls=[expected])


def calls(rules: ToolMatch, of: Sample, **options: bool) -> Calls:
    return Calls.of(rules, of, "assistant", include_failed=options.get("include_failed", True))


def values(of: Sample) -> list[float | None]:
    return [scorer.score(of).value for scorer in SCORERS]


def test_scorers_with_equal_rules_for_arguments_share_the_calls_of_a_sample():
    one = sample()
    shared = calls(ToolMatch(), one)
    assert calls(ToolMatch(order="any", credit="f1", args=ArgMatch()), one) is shared
    assert calls(ToolMatch(args=ArgMatch(mode="at_least")), one) is not shared
    assert calls(ToolMatch(tools={"weather": ArgMatch(mode="ignore")}), one) is not shared
    assert calls(ToolMatch(), one, include_failed=False) is not shared
    assert Calls.of(ToolMatch(), one, "user", include_failed=True).actual == ()
    assert calls(ToolMatch(), sample()) is not shared
    assert calls(ToolMatch(), one) is shared


def test_functions_are_called_by_each_scorer():
    seen = []

    def compare(expected, made):
        seen.append(made)
        return len(seen) > 1

    one = sample()
    scorer = ToolCallF1(args=compare)
    assert [scorer.score(one).value for _ in range(2)] == [0, 1]


def test_a_scored_sample_equals_and_looks_like_one_that_was_never_scored():
    scored, fresh = sample(), sample()
    values(scored)
    assert scored == fresh
    assert repr(scored) == repr(fresh)
    assert scored.model_dump() == fresh.model_dump()
    assert scored.model_dump_json() == fresh.model_dump_json()
    assert vars(scored) == vars(fresh)
    assert pickle.dumps(scored) == pickle.dumps(fresh)
    assert pickle.loads(pickle.dumps(scored)) == fresh  # noqa: S301 - written a moment ago
    assert Sample.model_json_schema() == type(fresh).model_json_schema()


COPIES = {
    "model_copy": lambda one, update: one.model_copy(update=update),
    "deep": lambda one, update: one.model_copy(update=update, deep=True),
    "copy": lambda one, update: copy.copy(one).model_copy(update=update),
    "pickle": lambda one, update: pickle.loads(pickle.dumps(one)).model_copy(update=update),  # noqa: S301 - as above
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_changed_copy_of_a_scored_sample_is_scored_anew(copied):
    one = sample()
    assert values(one) == [1, 1, 1, 1]
    expected = (ExpectedCall("weather", {"place": {"city": "Rome"}}),)
    assert values(copied(one, {"reference_tool_calls": expected})) == [0, 0, 0, 0]
    assert values(copied(one, {"trace": sample(ROME).trace})) == [0, 0, 0, 0]
    assert values(one) == [1, 1, 1, 1]


def test_several_threads_may_score_one_sample():
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            one = sample(ROME)
            assert list(threads.map(values, [one] * 4)) == [[0, 0, 0, 0]] * 4


def test_the_calls_are_freed_with_the_sample():
    one = sample(ROME)
    gc.disable()
    try:
        for rules in (ToolMatch(), PRESETS["contains"]):
            calls(rules, one).score(0, 0)
        kept = weakref.ref(calls(ToolMatch(), one))
        assert kept() is not None
        del one
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("expected", "made", "agree"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": {"b": [1, 2]}, "c": 0}, {"c": -0.0, "a": {"b": [1.0, 2]}}, True),
        ({"a": 2**70}, {"a": 2**70}, True),
        ({"a": 2**53 + 1}, {"a": float(2**53)}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ({"a": [of_type("string")]}, {"a": ["x"]}, True),
        ({"a": [of_type("string")]}, {"a": [of_type("string")]}, False),
        ({"a": "$judgekit"}, {"a": "$judgekit"}, True),
    ],
)
def test_calls_agree_as_typed_json_and_matchers_are_never_literal(expected, made, agree):
    one = sample(ToolCall("weather", made), ToolCall("weather", expected))
    assert calls(ToolMatch(), one).are_equal is agree
    assert calls(ToolMatch(), one).agree(0, 0) is agree
    assert ToolCallF1().score(one).value == agree


def test_arguments_that_cannot_be_read_agree_with_nothing():
    broken = ToolCall("weather", "{")  # type: ignore[arg-type]
    one = sample(broken, ToolCall("weather"))
    assert not calls(ToolMatch(), one).are_equal
    assert calls(ToolMatch(), one).score(0, 0) == 0
    assert asyncio.run(ToolCallAccuracy().ascore(one)).value == 0


def test_arguments_that_were_changed_in_place_are_compared_anew():
    """Samples are frozen, but not the dictionaries in them, which a notebook may change."""
    scored = sample().model_copy(deep=True)
    assert ToolCallF1().score(scored).value == 1
    scored.trace.messages[1].tool_calls[0].args["place"]["city"] = "Rome"
    assert ToolCallF1().score(scored).value == 0
    scored.reference_tool_calls[0].args["place"]["city"] = "Rome"
    assert ToolCallF1().score(scored).value == 1

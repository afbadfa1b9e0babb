"""The calls of a sample, and how the arguments of each pair compare."""

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from judgekit import Sample, ToolCallAccuracy, ToolCallF1, ToolCallMatch, ToolMatch, Trace
from judgekit.scorers.tool_calls.calls import Calls, Selection
from judgekit.scorers.tool_calls.matchers import of_type
from judgekit.traces.equality import json_bytes
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall

PARIS, ROME = ToolCall("weather", {"place": {"city": "Paris"}}), ToolCall("weather", {"place": {"city": "Rome"}})
SCORERS = (ToolCallAccuracy(), ToolCallF1(), ToolCallMatch("exact"), ToolCallMatch("contains"))


def sample(made: ToolCall = PARIS, expected: ToolCall = PARIS) -> Sample:
    return Sample.of([HumanMessage("Well?"), AIMessage(tool_calls=[made])], id="1", reference_tool_calls=[expected])


def calls(rules: ToolMatch, of: Sample, **options: bool) -> Calls:
    return Calls(rules, of, Selection(**options))


def values(of: Sample) -> list[float | None]:
    return [scorer.score(of).value for scorer in SCORERS]


def test_calls_agree_as_typed_json_and_matchers_are_never_literal():
    cases = [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": {"b": [1, 2]}, "c": 0}, {"c": -0.0, "a": {"b": [1.0, 2]}}, True),
        ({"a": 2**70}, {"a": 2**70}, True),
        ({"a": 2**53 + 1}, {"a": float(2**53)}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ({"a": [of_type("string")]}, {"a": ["x"]}, True),
        ({"a": [of_type("string")]}, {"a": [of_type("string")]}, False),
        ({"a": "$judgekit"}, {"a": "$judgekit"}, True),
    ]
    for expected, made, agree in cases:
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
    assert values(scored) == [1, 1, 1, 1]
    scored.trace.messages[1].tool_calls[0].args["place"]["city"] = "Rome"
    assert values(scored) == [0, 0, 0, 0]
    scored.reference_tool_calls[0].args["place"]["city"] = "Rome"
    assert values(scored) == [1, 1, 1, 1]


def test_made_up_bytes_of_arguments_equal_nothing():
    """The bytes of both calls' arguments, one after the other, would be two equal halves."""
    expected = {"a": None}
    wanted = json_bytes(expected).decode()
    length = len(wanted) + 8
    made = {f"N0{wanted}{{u{chr(length)}\0\0\0": None}
    both = json_bytes((expected, made))[5:]
    assert both[: len(both) // 2] == both[len(both) // 2 :]
    assert values(sample(ToolCall("weather", made), ToolCall("weather", expected))) == [0, 0, 0, 0]


args = st.dictionaries(
    st.sampled_from("ab"),
    st.recursive(
        st.sampled_from([True, 1, 1.0, 0, None, "x", of_type("number")]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    ),
    max_size=2,
)
made_calls = st.lists(st.builds(ToolCall, st.sampled_from("fg"), args), max_size=3)


@given(made_calls, st.none() | made_calls)
def test_equal_calls_have_the_scores_that_a_match_gives_them(made, expected):
    known = made if expected is None else expected
    one = Sample(id="1", trace=Trace(messages=[AIMessage(tool_calls=made)]), reference_tool_calls=known)
    for scorer in SCORERS:
        assert scorer.score(one) == replace(scorer, include_failed=False).score(one)  # no call failed

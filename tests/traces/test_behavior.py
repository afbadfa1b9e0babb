"""What a conversation took, in plain numbers."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from judgekit.formats.reading import read
from judgekit.traces.behavior import (
    TraceUsage,
    agent_usage,
    canonical_call,
    communication_rounds,
    elapsed,
    repeated_calls,
)
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.trace import Trace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def took(*messages: object, **envelope: object) -> TraceUsage:
    return TraceUsage.of(Trace(messages=messages, **envelope))


def says(agent: str | None) -> AIMessage:
    return AIMessage("...", agent=agent)


def test_an_empty_recording_says_little():
    assert took() == TraceUsage(0, 0, 0, 0, None, None, None, None)
    assert took().tokens is None


def test_only_what_the_agent_does_is_counted():
    found = took(
        SystemMessage("Be kind."),
        HumanMessage("Hi", tool_calls=[ToolCall("look"), ToolCall("look")]),
        ToolMessage("no", requestor="user", is_error=True),
        AIMessage(tool_calls=[ToolCall("a"), ToolCall("b")]),
        ToolMessage("1", is_error=True),
        ToolMessage("2", is_error=False),
        ToolMessage("3"),
        AIMessage("Done."),
    )
    assert found[:4] == (2, 2, 2, 1)
    assert (found.tool_errors, found.tool_results) == (1, 2)


def test_a_call_repeats_one_of_the_same_name_and_equal_arguments():
    cases = [
        ([ToolCall("a"), ToolCall("a"), ToolCall("a")], 2),
        ([ToolCall("a", {"x": 1, "y": 2}), ToolCall("a", {"y": 2.0, "x": 1})], 1),
        ([ToolCall("a", {"x": 1}), ToolCall("a", {"x": True}), ToolCall("a", {"x": "1"}), ToolCall("b", {"x": 1})], 0),
        ([ToolCall("a", '{"x": 5'), ToolCall("a", '{"x": 5')], 1),
        ([ToolCall("a", '{"x": 5'), ToolCall("a", '{"x": 6'), ToolCall("a")], 0),
    ]
    for calls, repeats in cases:
        assert repeated_calls(Trace(messages=[AIMessage(tool_calls=[call]) for call in calls])) == repeats
        assert repeated_calls(Trace(messages=[AIMessage(tool_calls=calls)])) == repeats
        assert len({canonical_call(call) for call in calls}) == len(calls) - repeats


def test_each_child_repeats_its_own_calls_and_they_are_added():
    twice, thrice = ([AIMessage(tool_calls=[ToolCall("a")] * times)] for times in (2, 3))
    grandchild = Trace(messages=thrice)
    assert repeated_calls(Trace(messages=twice, children=[Trace(messages=twice, children=[grandchild])])) == 1 + 1 + 2
    assert repeated_calls(Trace(children=[Trace(messages=[AIMessage(tool_calls=[ToolCall("a")])])] * 2)) == 0


def test_an_argument_that_no_json_holds_cannot_be_compared():
    huge = AIMessage(tool_calls=[ToolCall("a", {"x": 10**5000})] * 2)
    with pytest.raises(ValueError, match="integer string conversion"):
        repeated_calls(Trace(messages=[huge]))
    assert took(huge).tool_calls == 2


def test_tokens_are_those_that_the_trace_reports_or_the_sum_of_its_messages():
    first, second = AIMessage(usage=Usage(input_tokens=5, output_tokens=2)), AIMessage(usage=Usage(input_tokens=7))
    assert took(first, first)[4:6] == (10, 4)
    assert took(first, first).tokens == 14
    assert took(first, second)[4:6] == (12, None)
    assert took(first, second).tokens is None
    assert took(first, AIMessage()).tokens is None
    assert took(first, AIMessage(), usage=Usage(input_tokens=50, output_tokens=20)).tokens == 70


def test_a_greeting_without_usage_before_the_user_spoke_took_no_tokens():
    answer, user = AIMessage("Hi", usage=Usage(input_tokens=5, output_tokens=2)), HumanMessage("Hi")
    assert took(AIMessage("Welcome!"), user, answer).tokens == 7
    assert took(answer, user, answer).tokens == 14
    assert took(AIMessage("Welcome!"), user, AIMessage("Bye")).tokens is None
    assert took(AIMessage("Welcome!"), user).tokens is None
    assert took(AIMessage("Step 1"), answer).tokens is None  # nobody is greeted


@pytest.mark.parametrize("wrong", [-1, 10**400])
def test_a_number_that_cannot_be_says_nothing(wrong):
    assert took(AIMessage(), usage=Usage(input_tokens=wrong, output_tokens=20))[4:6] == (None, 20)
    assert took(AIMessage(usage=Usage(input_tokens=wrong)), AIMessage(usage=Usage(input_tokens=9)))[4] is None
    assert took(cost_usd=-0.5).cost_usd is None


def test_what_children_took_is_added_and_their_time_is_not():
    usage = Usage(input_tokens=1, output_tokens=2)
    call = AIMessage(tool_calls=[ToolCall("a")], usage=usage)
    grandchild = Trace(messages=[call, ToolMessage("no", is_error=True)], cost_usd=0.25, started_at=NOON, ended_at=NOON)
    child = Trace(messages=[call], cost_usd=0.5, children=[grandchild])
    hour = {"started_at": NOON, "ended_at": NOON + timedelta(hours=1)}
    assert took(call, cost_usd=1.0, children=[child], **hour) == TraceUsage(3, 3, 1, 1, 3, 6, 1.75, 3600)
    assert took(call, children=[child]).cost_usd is None


@pytest.mark.parametrize(
    ("start", "end", "first", "last", "seconds"),
    [
        (0, 90, 10, 20, 90),
        (None, 90, 10, 20.5, 10.5),
        (0, None, 10, 10, 0),
        (None, None, 10, None, "the recording has neither start and end times nor times of its first and last message"),
        (90, 0, 10, 20, "the end time is before the start time"),
    ],
)  # fmt: skip
def test_time_passes_from_start_to_end_or_from_the_first_message_to_the_last(start, end, first, last, seconds):
    at = [None if one is None else NOON + timedelta(seconds=one) for one in (start, end, first, last)]
    spoken = [HumanMessage("Hi", timestamp=at[2]), AIMessage("Hm"), AIMessage("Hi", timestamp=at[3])]
    assert elapsed(Trace(messages=[SystemMessage("s"), *spoken], started_at=at[0], ended_at=at[1])) == seconds


def test_times_with_and_without_a_zone_cannot_be_compared():
    mixed = Trace(started_at=NOON, ended_at=NOON.replace(tzinfo=None))
    assert elapsed(mixed) == "only one of the start and end times has a time zone"
    assert TraceUsage.of(mixed).seconds is None


def test_the_word_passes_where_another_agent_speaks_than_before():
    told = [says("a"), HumanMessage("?"), says("b"), says("b"), ToolMessage("x"), says("a")]
    assert communication_rounds(Trace(messages=told)) == 2


def test_a_child_is_given_a_task_and_may_answer():
    silent, answering = Trace(messages=[HumanMessage("Do it.")]), Trace(messages=[HumanMessage("Do it."), says(None)])
    assert communication_rounds(Trace(messages=[says(None)], children=[answering])) == 2
    assert communication_rounds(Trace(messages=[says("a")], children=[answering, silent])) == 3
    nested = Trace(messages=[says("b"), says("c")], children=[answering])
    assert communication_rounds(Trace(children=[nested])) == 2 + 1 + 2


def test_where_agents_are_not_told_apart_nobody_knows_what_passes_between_them():
    for agents in ([], [None, None], ["a", "a"]):
        rounds = communication_rounds(Trace(messages=[says(agent) for agent in agents]))
        assert rounds == "the recording does not distinguish two agents"
    some = [says("a"), says(None), says("b")]
    assert communication_rounds(Trace(messages=some)) == "only some agent messages name their agent"


@pytest.mark.parametrize("domain", ["airline", "telecom"])
def test_the_numbers_of_real_recordings_are_those_of_their_json(shared_data, domain):
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    simulations = json.loads(path.read_text(encoding="utf-8"))["simulations"]
    samples = list(read(path))
    assert len(samples) == len(simulations)
    for sample, simulation in zip(samples, simulations, strict=True):
        found, told = TraceUsage.of(sample.trace), simulation["messages"]
        mine = [one for one in told if one["role"] == "assistant"]
        calls = [
            (one["name"], json.dumps(one["arguments"], sort_keys=True)) for m in mine for one in m["tool_calls"] or ()
        ]
        results = [one["error"] for one in told if one["role"] == "tool" and one["requestor"] == "assistant"]
        start, end = (datetime.fromisoformat(simulation[key]) for key in ("start_time", "end_time"))
        assert found[:4] == (len(mine), len(calls), len(results), sum(results))
        assert repeated_calls(sample.trace) == len(calls) - len(set(calls))
        assert (found.cost_usd, found.seconds) == (simulation["agent_cost"], (end - start).total_seconds())
        assert mine[0]["usage"] is None  # a greeting that no model wrote
        usages = [one["usage"] for one in mine[1:]]
        assert found.tokens == sum(sum(one.values()) for one in usages)


def asks(agent, *calls):
    made = [ToolCall(name, {"n": number}, id=f"{name}{number}") for name, number in calls]
    return AIMessage(tool_calls=made, agent=agent)


def answer(identity, *, error=None):
    return ToolMessage("r", tool_call_id=identity, is_error=error)


def test_the_usage_of_each_agent_is_its_own():
    child = Trace(
        messages=[asks(None, ("f", 1), ("f", 1)), answer("f1", error=True), AIMessage("done")],
        metadata={"call_id": "g1", "agent": "helper"},
    )
    own = [
        asks("a", ("g", 1)),
        answer("g1", error=False),
        AIMessage("over to b", agent="a"),
        asks("b", ("g", 2)),
        answer("g2", error=True),
        asks("a", ("g", 1)),
    ]
    found = agent_usage(Trace(messages=own, children=[child, Trace(messages=[])]))
    assert found == [("", "a", 3, 2, 1, 0, 1), ("", "b", 1, 1, 1, 1, 0), ("1.1", "helper", 2, 2, 1, 1, 1)]
    assert agent_usage(Trace(messages=[HumanMessage("hi")])) == []


def test_arguments_that_cannot_be_compared_leave_repeats_unknown():
    huge = AIMessage(tool_calls=[ToolCall("f", {"n": 10**5_000}), ToolCall("f", {"n": 10**5_000})])
    [usage] = agent_usage(Trace(messages=[huge]))
    assert usage.repeated_calls is None

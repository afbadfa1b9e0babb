"""Constraints on recordings with sub-agents."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.scorers.tool_calls.constraints import (
    Before,
    Count,
    Forbid,
    MaxSteps,
    NoRepeat,
    Require,
    SchemaValid,
    Status,
    ToolConstraints,
)
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


def conversation(*calls, call_id=None, children=(), **fields):
    """A conversation with a message for each call: ``name``, or ``name!`` if it failed; the ids are the names."""
    messages = [HumanMessage("Go.")]
    for name in calls:
        tool = name.rstrip("!")
        messages.append(AIMessage(tool_calls=[ToolCall(tool, {"of": tool}, id=tool)]))
        messages.append(ToolMessage("result", tool_call_id=tool, is_error=name.endswith("!")))
    metadata = {} if call_id is None else {"call_id": call_id}
    return Trace(messages=[*messages, AIMessage("Done.")], children=children, metadata=metadata, **fields)


def side_by_side(*children, **fields):
    calls = [ToolCall("ask", id=f"c{number}") for number in range(len(children))]
    linked = [child.model_copy(update={"metadata": {"call_id": f"c{number}"}}) for number, child in enumerate(children)]
    messages = [HumanMessage("Go."), AIMessage(tool_calls=calls), AIMessage("Done.")]
    return Trace(messages=messages, children=linked, **fields)


def checked(trace, constraint, **options):
    return asyncio.run(ToolConstraints([constraint], **options).ascore(Sample(id="1", trace=trace)))


def holds(trace, constraint, **options):
    found = checked(trace, constraint, **options)
    return None if found.status == "skipped" else bool(found.value)


NESTED = conversation(
    "search",
    "ask",
    children=[conversation("look", "book!", "book", call_id="ask", children=[conversation("pay", call_id="book")])],
)


@pytest.mark.parametrize("tool", ["search", "look", "book", "pay"])
def test_what_is_forbidden_is_forbidden_to_all_agents(tool):
    assert holds(NESTED, Forbid(tool)) is False
    assert holds(NESTED, Require(tool)) is True
    assert holds(NESTED, Forbid(tool), scope="own") is (tool != "search")
    assert holds(NESTED, Require(tool), scope="own") is (tool == "search")


@given(st.integers(0, 3), st.booleans())
def test_a_forbidden_call_is_found_at_any_depth(depth, linked):
    trace = conversation("book", call_id="ask" if linked else None)
    for _ in range(depth):
        trace = conversation("ask", call_id="ask", children=[trace])
    found = checked(trace, Forbid("book"))
    assert found.value == 0
    assert f"book in message {'2.1.' * (depth - 1)}{'' if not depth else '2.1.' if linked else '0.1.'}2" in found.reason


def test_in_own_scope_the_score_says_what_was_not_looked_at():
    found = checked(NESTED, Forbid("book"), scope="own")
    assert found.value == 1
    assert found.warnings == ('scope = "own": 2 sub-agents with 4 tool calls not looked at',)
    assert found.details["outside_scope"] == {"sub_agents": 2, "tool_calls": 4}
    assert checked(NESTED, Forbid("book")).warnings == ()
    assert checked(conversation("book"), Forbid("x"), scope="own").warnings == ()


def test_calls_of_all_agents_are_counted():
    assert holds(NESTED, Count("book", min=2, max=2)) is True
    assert holds(NESTED, MaxSteps(9)) is True
    assert holds(NESTED, MaxSteps(8)) is False


def test_a_call_comes_before_another_across_agents():
    assert holds(NESTED, Before("search", "pay")) is True
    assert holds(NESTED, Before("pay", "search")) is False
    assert holds(NESTED, Before("look", "pay")) is True
    assert holds(NESTED, Before("ask", "look")) is True
    after = conversation("ask", "book", children=[conversation("look", call_id="ask")])
    assert holds(after, Before("look", "book")) is True
    assert holds(after, Before("book", "look")) is False


def test_the_order_of_agents_in_parallel_is_undecided_unless_times_tell_it():
    trace = side_by_side(conversation("look"), conversation("book"))
    found = checked(trace, Before("look", "book"))
    assert found.status == "skipped"
    assert found.reason == (
        "before(look, book) is undecided: book in message 2.2.2: the recording does not tell whether look came before"
    )

    def timed(*minutes):
        return [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in minutes]

    def at(*minutes):
        start, end = timed(*minutes)
        return {"started_at": start, "ended_at": end}

    def in_turn(one, other):
        return side_by_side(conversation("look", **at(*one)), conversation("book", **at(*other)))

    assert holds(in_turn((0, 1), (1, 2)), Before("look", "book")) is True
    assert holds(in_turn((1, 2), (0, 1)), Before("look", "book")) is False
    assert holds(in_turn((0, 2), (1, 3)), Before("look", "book")) is None


def test_agents_may_repeat_each_other_but_not_themselves():
    assert holds(side_by_side(conversation("look"), conversation("look")), NoRepeat("look")) is True
    twice = side_by_side(conversation("look"), conversation("look", "look"))
    assert holds(twice, NoRepeat("look")) is False
    assert "look in message 2.2.4 repeats message 2.2.2" in checked(twice, NoRepeat("look")).reason


def test_the_last_call_of_several_agents_decides_where_it_is_known():
    assert holds(NESTED, Status("book", "recovered")) is True
    assert holds(NESTED, Status("book", "ok")) is False
    alike = side_by_side(conversation("book!", "book"), conversation("book"))
    assert holds(alike, Status("book", "recovered")) is True
    apart = side_by_side(conversation("book!"), conversation("book"))
    assert holds(apart, Status("book", "error")) is None
    assert holds(apart, Status("book", "ok")) is False
    assert checked(apart, Status("book", "error")).reason == (
        "status(book, error) is undecided: the recording does not tell which call was the last one of book"
    )


def test_arguments_are_compared_with_the_tools_of_the_agent_that_made_the_call():
    def tool(name, kind):
        return ToolDefinition(name, parameters={"type": "object", "properties": {"of": {"type": kind}}})

    own, other = [tool("ask", "string"), tool("look", "integer")], [tool("look", "string")]
    child = conversation("look", call_id="ask", tools=other)
    assert holds(conversation("ask", tools=own, children=[child]), SchemaValid()) is True
    unknown = conversation("ask", tools=own, children=[conversation("look", call_id="ask")])
    found = checked(unknown, SchemaValid())
    assert found.status == "skipped"
    assert "look in message 2.1.2: the recording does not define the tools of its agent" in found.reason
    assert holds(conversation("ask", tools=own, children=[child]), SchemaValid(), scope="own") is True

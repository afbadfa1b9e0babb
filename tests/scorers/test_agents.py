"""What each agent of a recording did, in the details of scores."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import ToolConstraints
from judgekit.scorers.agents import agent_rows
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.constraints import Before, Count, Forbid, MaxSteps, NoRepeat, SchemaValid, Status
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import PRESETS
from judgekit.traces.behavior import agent_usage, agents
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

OUTCOMES = ("matched", "differing", "out_of_order", "missing", "extra")
SWITCHED = Trace(
    messages=[
        HumanMessage("Refund me."),
        AIMessage(tool_calls=[ToolCall("look", {"q": 1}, id="1"), ToolCall("look", {"q": 1}, id="2")], agent="front"),
        ToolMessage("none", tool_call_id="1", is_error=True),
        AIMessage("I pass you on.", agent="front"),
        AIMessage(tool_calls=[ToolCall("refund", {"sum": 5}, id="3")], agent="refunds"),
        AIMessage("Done.", agent="front"),
    ]
)
NESTED = Trace(
    messages=[
        HumanMessage("Refund me."),
        AIMessage(tool_calls=[ToolCall("ask", {"q": 1}, id="a"), ToolCall("ask", {"q": 2}, id="b")]),
        AIMessage("Done."),
    ],
    children=[
        Trace(messages=[AIMessage(tool_calls=[ToolCall("look")], agent="refunds")], metadata={"call_id": "a"}),
        Trace(messages=[AIMessage(tool_calls=[ToolCall("pay")], agent="refunds")], metadata={"call_id": "b"}),
    ],
)


def by_agent(scorer, trace, *expected):
    sample = Sample(id="1", trace=trace, reference_tool_calls=expected)
    return scorer.score(sample).details.get("by_agent")


def row(path, agent, *counts):
    outcomes = dict(zip(("calls", "errors", "repeats", *OUTCOMES), counts, strict=True))
    return {"path": path, "agent": agent, **outcomes}


def test_agents_that_share_a_conversation_have_a_row_each():
    expected = [ToolCall("look", {"q": 1}), ToolCall("look", {"q": 2}), ExpectedCall("mail", agent="refunds")]
    assert by_agent(ToolCallF1(), SWITCHED, *expected) == [
        row("", "front", 2, 1, 1, 1, 1, 0, 0, 0),
        row("", "refunds", 1, 0, 0, 0, 0, 0, 1, 1),
    ]
    assert by_agent(ToolCallF1(include_failed=False), SWITCHED, *expected)[0] == row(
        "", "front", 1, 0, 0, 1, 0, 0, 0, 0
    )


def test_sub_agents_of_one_name_are_told_apart_by_their_paths():
    expected = [ToolCall("look"), ExpectedCall("mail", agent="refunds"), ExpectedCall("mail")]
    assert by_agent(ToolCallF1(scope="tree"), NESTED, *expected) == [
        row("", None, 2, 0, 0, 0, 0, 0, 0, 2),
        row("2.1", "refunds", 1, 0, 0, 1, 0, 0, 0, 0),
        row("2.2", "refunds", 1, 0, 0, 0, 0, 0, 0, 1),
        row(None, "refunds", 0, 0, 0, 0, 0, 0, 1, 0),
        row(None, None, 0, 0, 0, 0, 0, 0, 1, 0),
    ]
    without = by_agent(ToolCallF1(scope="tree", include_delegations=False), NESTED, *expected)
    assert [one["calls"] for one in without] == [0, 1, 1, 0, 0]


ONE = Trace(messages=[HumanMessage("Go."), AIMessage(tool_calls=[ToolCall("look")], agent="front")])


@pytest.mark.parametrize(
    ("scorer", "trace"),
    [
        (ToolCallF1(scope="tree"), ONE),
        (ToolCallF1(), NESTED),
        (ToolCallF1(requestor="user"), SWITCHED),
        (ToolConstraints([Forbid("look")]), ONE),
        (ToolConstraints([Forbid("look")], requestor="user"), NESTED),
        (ToolConstraints([Forbid("look")], scope="own"), NESTED),
    ],
)
def test_where_a_scorer_looks_at_one_agent_or_the_user_there_are_no_rows(scorer, trace):
    assert by_agent(scorer, trace) is None


def violated(trace, *constraints):
    found = ToolConstraints(constraints).score(Sample(id="1", trace=trace))
    return {(one["path"], one["agent"]): one["violated"] for one in found.details["by_agent"]}


def test_a_constraint_is_violated_by_the_agents_whose_calls_break_it():
    about_all = [MaxSteps(1), Count("look", max=1)]
    assert violated(SWITCHED, Forbid("refund"), NoRepeat(), *about_all, Before("check", "look")) == {
        ("", "front"): ["no_repeat()", "before(check, look)"],
        ("", "refunds"): ["forbid(refund)"],
    }
    assert violated(NESTED, Forbid("look"), Forbid("refund")) == {
        ("", None): [],
        ("2.1", "refunds"): ["forbid(look)"],
        ("2.2", "refunds"): [],
    }


@pytest.mark.parametrize(
    ("status", "failed", "blamed"),
    [
        ("ok", [True, False], {"a"}),
        ("error", [True, False], {"b"}),
        ("recovered", [False, True], {"b"}),
        ("recovered", [False, False], set()),
    ],
)
def test_a_status_is_violated_by_failures_or_by_the_last_call(status, failed, blamed):
    messages = [
        message
        for name, error in zip("ab", failed, strict=True)
        for message in (
            AIMessage(tool_calls=[ToolCall("pay", id=name)], agent=name),
            ToolMessage("?", tool_call_id=name, is_error=error),
        )
    ]
    found = violated(Trace(messages=messages), Status("pay", status))
    assert {agent for (_, agent), broken in found.items() if broken} == blamed


def test_a_schema_is_violated_by_the_agent_that_made_the_call():
    tools = [ToolDefinition("look", parameters={"type": "object", "properties": {"q": {"type": "string"}}})]
    found = violated(SWITCHED.model_copy(update={"tools": tuple(tools)}), SchemaValid())
    assert found == {("", "front"): ["schema_valid()"], ("", "refunds"): ["schema_valid()"]}


def test_an_agent_is_text_that_no_name_can_forge():
    sub = Trace(messages=[AIMessage("!", agent="x\n3. agent y")], metadata={"call_id": "a"})
    own = [AIMessage(tool_calls=[ToolCall("ask", id="a")]), AIMessage("?", agent="without a name")]
    assert list(map(str, agents(Trace(messages=own, children=[sub, Trace(messages=[AIMessage("?")])])))) == [
        "agent without a name",
        'agent "without a name"',
        'sub-agent 1.1 "x\\n3. agent y"',
        "sub-agent 0.1 without a name",
    ]


NAMES = st.sampled_from([None, "a", "b", ""])
TOOLS = st.sampled_from(["look", "pay"])
ARGS = st.sampled_from([{}, {"q": 1}, {"q": 2}])
MESSAGES = st.lists(
    st.one_of(
        st.builds(HumanMessage, st.just("Go.")),
        st.builds(
            lambda name, calls: AIMessage(tool_calls=calls, agent=name),
            NAMES,
            st.lists(st.builds(lambda tool, args, one: ToolCall(tool, args, id=one), TOOLS, ARGS, TOOLS), max_size=2),
        ),
        st.builds(
            lambda one, error: ToolMessage("?", tool_call_id=one, is_error=error), TOOLS, st.booleans() | st.none()
        ),
    ),
    min_size=1,
    max_size=5,
)


def conversations(children):
    return st.builds(
        lambda said, one, inner: Trace(messages=said, children=inner, metadata={"call_id": one}),
        MESSAGES,
        TOOLS,
        children,
    )


TREES = st.recursive(conversations(st.just([])), lambda inner: conversations(st.lists(inner, max_size=3)), max_leaves=4)
EXPECTED = st.lists(
    st.builds(lambda tool, args, name: ExpectedCall(tool, args, agent=name), TOOLS, ARGS, NAMES), max_size=5
)


@given(TREES)
def test_the_rows_of_all_calls_are_the_usages_of_the_agents(trace):
    rows = agent_rows(trace, zip(trace.tool_calls(), trace.call_errors(), strict=True))
    assert [*rows] == agents(trace)
    usages = [(one.path, one.agent, one.tool_calls, one.repeated_calls) for one in agent_usage(trace)]
    assert [(one["path"], one["agent"], one["calls"], one["repeats"]) for one in rows.values()] == usages
    assert sum(one["errors"] for one in rows.values()) == sum(error is True for error in trace.call_errors())


@given(TREES, EXPECTED, st.sampled_from([*PRESETS]), st.booleans(), st.booleans(), st.sampled_from(["own", "tree"]))
def test_the_rows_add_up_to_all_calls(trace, expected, preset, failed, delegations, scope):
    options = {"scope": scope, "include_failed": failed, "include_delegations": delegations or scope == "own"}
    seen = trace if scope == "tree" else trace.model_copy(update={"children": ()})
    for scorer in (ToolCallMatch(preset, **options), ToolCallF1(**options), ToolCallAccuracy(**options)):
        details = scorer.score(Sample(id="1", trace=trace, reference_tool_calls=expected)).details
        assert ("by_agent" in details) == (len(agents(seen)) > 1)
        total = Counter()
        for one in details.get("by_agent", ()):
            assert one["calls"] == sum(one[what] for what in OUTCOMES if what != "missing")
            assert (one["path"] is None) <= (one["calls"] == 0 and one["missing"] > 0)
            total.update({name: count for name, count in one.items() if name not in {"path", "agent"}})
        if "by_agent" in details:
            pairs, lists = details["pairs"], ("out_of_order", "missing", "extra")
            assert [total[name] for name in lists] == [len(details[name]) for name in lists]
            assert total["matched"] == sum(pair["score"] == 1 for pair in pairs)
            assert total["matched"] + total["differing"] == len(pairs)
            outcomes = zip(seen.tool_calls(), seen.call_errors(), strict=True)
            kept = [
                (failed or not error) and (options["include_delegations"] or not made.delegates)
                for made, error in outcomes
            ]
            assert total["calls"] == sum(kept)


@given(TREES)
def test_each_violation_of_a_call_belongs_to_an_agent_and_no_agent_violates_what_holds(trace):
    constraints = [Forbid("pay", {"q": 1}), NoRepeat(), Before("look", "pay"), Status("*", "ok")]
    found = ToolConstraints(constraints).score(Sample(id="1", trace=trace)).details
    if "by_agent" in found:
        broken = {one["constraint"] for one in found["constraints"] if one["holds"] is False}
        assert {name for one in found["by_agent"] for name in one["violated"]} == broken
        assert sum(one["calls"] for one in found["by_agent"]) == len(trace.tool_calls())

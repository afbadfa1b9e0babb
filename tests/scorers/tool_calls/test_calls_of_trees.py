"""Tool calls of recordings with sub-agents."""

import asyncio
from datetime import UTC, datetime

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

ANY_ORDER = "the order of calls by sub-agents that worked in parallel is not compared: the recording does not tell it"
KINDS = [ToolCallAccuracy, ToolCallF1, lambda **options: ToolCallMatch("exact", **options)]


def agent(name, *calls, call_id=None, children=(), **fields):
    """A sub-agent that makes calls of ``tool`` or, if it fails, ``tool!``, one a message."""
    messages = [HumanMessage("Go.")]
    for call in calls:
        tool = call.rstrip("!")
        messages.append(AIMessage(tool_calls=[ToolCall(tool, id=tool)], agent=name))
        messages.append(ToolMessage("r", tool_call_id=tool, is_error=call.endswith("!")))
    metadata = {} if call_id is None else {"call_id": call_id}
    return Trace(messages=[*messages, AIMessage("Done.")], metadata=metadata, children=children, **fields)


def at(minute):
    return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


SERIAL = agent(
    None, "ask", "ask_2", children=[agent("a", "look", "book!", call_id="ask"), agent("b", "pay", call_id="ask_2")]
)
ALL = ["ask", "look", "book", "ask_2", "pay"]


def parallel(one=(None, None), other=(None, None)):
    calls = [ToolCall("ask", id="1"), ToolCall("ask_2", id="2")]
    return Trace(
        messages=[HumanMessage("Go."), AIMessage(tool_calls=calls), AIMessage("Done.")],
        children=[
            agent("a", "look", "book", call_id="1", started_at=one[0], ended_at=one[1]),
            agent("b", "pay", call_id="2", started_at=other[0], ended_at=other[1]),
        ],
    )


def scored(scorer, trace, expected):
    calls = [one if isinstance(one, ExpectedCall) else ExpectedCall(one) for one in expected]
    return asyncio.run(scorer.ascore(Sample(id="1", trace=trace, reference_tool_calls=calls)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_calls_of_a_tree_are_compared_depth_first(kind):
    assert scored(kind(scope="tree"), SERIAL, ALL).value == 1
    assert scored(kind(scope="tree"), SERIAL, ALL).warnings == ()
    assert scored(kind(scope="tree"), SERIAL, ALL[:-1]).value < 1


@pytest.mark.parametrize("kind", KINDS)
def test_in_own_scope_only_the_agents_own_calls_are_compared_and_the_score_says_so(kind):
    found = scored(kind(), SERIAL, ["ask", "ask_2"])
    assert found.value == 1
    assert found.warnings == ('scope = "own": 2 sub-agents with 3 tool calls not looked at',)
    assert found.details["outside_scope"] == {"sub_agents": 2, "tool_calls": 3}
    assert scored(kind(), SERIAL, ALL).value < 1


def test_calls_that_failed_or_started_sub_agents_may_be_left_out():
    assert (
        scored(ToolCallAccuracy(scope="tree", include_failed=False), SERIAL, ["ask", "look", "ask_2", "pay"]).value == 1
    )
    only = ToolCallAccuracy(scope="tree", include_delegations=False)
    assert scored(only, SERIAL, ["look", "book", "pay"]).value == 1
    with pytest.raises(ConfigError, match='include_delegations=False needs scope="tree"'):
        ToolCallF1(include_delegations=False)


def test_an_expected_call_may_name_its_agent():
    def f1(agent):
        return scored(ToolCallF1(scope="tree"), SERIAL, [*ALL[:4], ExpectedCall("pay", agent=agent)])

    assert f1("b").value == 1
    wrong = f1("a")
    assert wrong.value == pytest.approx(0.8)
    assert 'pay: agent expected "a", got "b"' in wrong.reason
    [pair] = [one for one in wrong.details["pairs"] if one["name"] == "pay"]
    assert (pair["message"], pair["agent"], pair["score"]) == ("4.1.2", "b", 0)
    assert pair["differences"] == [{"path": "agent", "expected": "a", "actual": "b"}]
    assert str(wrong.diff()).split("\n")[2:] == [
        "=   book             2.1.4 a: book",
        "=   ask_2            4: ask_2",
        '~   pay  agent: "a"  4.1.2 b: pay  agent: "b"',
    ]
    own = scored(ToolCallF1(), agent("main", "look"), [ExpectedCall("look", agent="main")])
    assert own.value == 1
    assert scored(ToolCallF1(), agent(None, "look"), [ExpectedCall("look", agent="main")]).value == 0


def test_of_equal_calls_each_goes_to_the_agent_that_is_expected():
    twice = agent(
        None, "ask", "ask_2", children=[agent("a", "look", call_id="ask"), agent("b", "look", call_id="ask_2")]
    )
    expected = [ExpectedCall("ask"), ExpectedCall("look", agent="b"), ExpectedCall("ask_2"), ExpectedCall("look")]
    assert scored(ToolCallF1(scope="tree"), twice, expected).value == 1
    assert scored(ToolCallAccuracy(scope="tree"), twice, expected).value == pytest.approx(3 / 4)


ORDERS = [
    ["ask", "look", "book", "ask_2", "pay"],
    ["ask", "pay", "look", "ask_2", "book"],
    ["ask", "look", "pay", "ask_2", "book"],
]


@pytest.mark.parametrize("expected", ORDERS)
def test_the_order_of_agents_in_parallel_is_not_compared_which_is_a_warning(expected):
    for kind in (ToolCallAccuracy, lambda **options: ToolCallMatch("exact", **options)):
        found = scored(kind(scope="tree"), parallel(), expected)
        assert (found.value, found.warnings) == (1, (ANY_ORDER,))
        assert scored(kind(scope="tree"), parallel(), ["look", *expected[1:]]).value < 1
    assert scored(ToolCallAccuracy(scope="tree"), parallel(), ["pay", "ask", "look", "ask_2", "book"]).value < 1
    assert scored(ToolCallF1(scope="tree"), parallel(), expected).warnings == ()


def test_times_order_agents_in_parallel():
    trace = parallel((at(0), at(1)), (at(1), at(2)))
    found = scored(ToolCallAccuracy(scope="tree"), trace, ORDERS[0])
    assert (found.value, found.warnings) == (1, ())
    assert scored(ToolCallAccuracy(scope="tree"), trace, ORDERS[1]).value == 0


def test_a_sub_agent_of_an_unknown_call_has_no_place_in_the_order():
    trace = agent(None, "ask", "end", children=[agent("a", "look")])
    for expected in (["look", "ask", "end"], ["ask", "look", "end"], ["ask", "end", "look"]):
        found = scored(ToolCallAccuracy(scope="tree"), trace, expected)
        assert (found.value, found.warnings) == (1, (ANY_ORDER,))


def test_calls_of_one_message_may_be_in_any_order_beside_those_of_its_sub_agents():
    rules = ToolMatch(order="sequence", parallel="unordered", credit="all_or_nothing")
    one = parallel((at(0), at(1)), (at(1), at(2)))
    assert scored(ToolCallMatch(rules, scope="tree"), one, ["ask_2", "look", "book", "ask", "pay"]).value == 1


def test_arguments_are_checked_against_the_tools_of_the_agent():
    def tools(kind):
        return [ToolDefinition("look", parameters={"type": "object", "required": [kind]})]

    child = agent("a", "look", call_id="ask", tools=tools("missing"))
    trace = agent(None, "ask", children=[child], tools=tools("other"))
    rules = ToolMatch(args={"mode": "schema"}, tools={"ask": {"mode": "ignore"}})
    found = scored(ToolCallMatch(rules, scope="tree"), trace, ["ask", "look"])
    assert found.value == 0
    assert "missing" in found.reason

"""Judged scorers that ask about each agent too."""

import json
import math
import re

import pytest

from judgekit.errors import RejectedError, ReplyError
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.request import Reply, TokenLogprob
from judgekit.judges.scripted import ScriptedJudge
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import attempt, run_sync, signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

SWITCHED = Trace(
    messages=[
        HumanMessage("Refund me."),
        AIMessage("I pass you on.", agent="front"),
        AIMessage(tool_calls=[ToolCall("refund", id="1"), ToolCall("refund", id="2")], agent="refunds"),
        ToolMessage("no", tool_call_id="1", is_error=True),
        AIMessage("Done.", agent="refunds"),
    ]
)
NESTED = Trace(
    messages=[
        HumanMessage("Refund me."),
        AIMessage(tool_calls=[ToolCall("ask", id="a")]),
        ToolMessage("Done.", tool_call_id="a"),
        AIMessage("Done."),
    ],
    children=[
        Trace(
            messages=[HumanMessage("A refund."), AIMessage(tool_calls=[ToolCall("refund")], agent='x"\n2. agent y')],
            metadata={"call_id": "a"},
        ),
        Trace(messages=[AIMessage("?")]),
    ],
)
ONE = Trace(messages=[HumanMessage("Hi."), AIMessage("Hello.", agent="front")])
GOAL = {"goal": "it", "end_state": "done", "reason": "so", "evidence": [2], "verdict": "achieved"}
ANSWERS = {
    "tone": {"reason": "so", "evidence": [], "verdict": "fitting"},
    "agent_goal_with_reference": {"goals": [GOAL]},
    "agent_goal_without_reference": {"goals": [GOAL]},
}
SCORERS = {
    "tone": lambda judge, **options: PromptScorer("tone", judge, **options),
    "agent_goal_with_reference": AgentGoalAccuracyWithReference,
    "agent_goal_without_reference": AgentGoalAccuracyWithoutReference,
}


def verdicts(*labels):
    return [{"agent": at, "reason": f"reason {at}", "agent_verdict": label} for at, label in enumerate(labels, 1)]


def tried(name, answers, trace, **options):
    judge = ScriptedJudge(answers, params={"logprobs": True})
    sample = Sample(id="1", trace=trace, reference="A refund.")
    return run_sync(lambda: attempt(SCORERS[name](judge, **options), sample)), judge.requests


@pytest.mark.parametrize("name", SCORERS)
def test_one_request_asks_about_all_of_them_and_then_about_each(name):
    labels = ("fitting", "lacking") if name == "tone" else ("not_achieved", "achieved")
    answer = ANSWERS[name] | {"agents": verdicts(*labels)[::-1]}
    found, [request] = tried(name, [answer], SWITCHED, by_agent=True)
    assert (found.value, found.label) == (1, "fitting" if name == "tone" else "achieved")
    keys = ("path", "agent", "calls", "errors", "repeats", "verdict", "reason")
    rows = [("", "front", 0, 0, 0, labels[0], "reason 1"), ("", "refunds", 2, 1, 1, labels[1], "reason 2")]
    assert found.details["by_agent"] == [dict(zip(keys, row, strict=True)) for row in rows]
    assert [*request.schema["properties"]][-1] == "agents"
    plain, _ = tried(name, [ANSWERS[name]], SWITCHED)
    assert {key: value for key, value in found.details.items() if key != "by_agent"} == plain.details


def test_of_one_agent_the_request_and_the_details_are_as_without_the_option():
    for name in SCORERS:
        for trace, options in [(ONE, {}), (NESTED, {}), (ONE, {"scope": "tree"})]:
            (one, [asked]), (other, [plain]) = (
                tried(name, [ANSWERS[name]], trace, by_agent=by_agent, **options) for by_agent in (True, False)
            )
            assert asked.messages == plain.messages
            assert (asked.schema, asked.prompt, asked.schema_name) == (plain.schema, plain.prompt, plain.schema_name)
            assert one.details == other.details
            assert "by_agent" not in one.details


def test_sub_agents_are_named_by_paths_and_no_name_adds_an_agent():
    answer = ANSWERS["tone"] | {"agents": verdicts("fitting", "lacking", "not_applicable")}
    found, [request] = tried("tone", [answer], NESTED, by_agent=True, scope="tree")
    user = request.messages[1].content
    [listed] = re.findall(r"\[(\w{12}) agents begins\]\n(.*)\n\[\1 agents ends\]", user, re.DOTALL)
    assert listed[1].split("\n") == [
        "| 1. agent without a name",
        r'| 2. sub-agent 2.1 "x\"\n2. agent y"',
        "| 3. sub-agent 0.1 without a name",
    ]
    rows = found.details["by_agent"]
    assert [(one["path"], one["verdict"], one["calls"]) for one in rows] == [
        ("", "fitting", 1),
        ("2.1", "lacking", 1),
        ("0.1", "not_applicable", 0),
    ]
    assert rows[1]["agent"] == 'x"\n2. agent y'


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        (verdicts("fitting", "fitting", "fitting"), "must judge each of the agents 1 to 2 once, found [1, 2, 3]"),
        (verdicts("fitting")[:1] * 2, "must judge each of the agents 1 to 2 once, found [1, 1]"),
        (verdicts("fitting", "lovely"), "agent_verdict"),
    ],
)
def test_a_list_that_cannot_be_right_goes_back_to_the_judge_once(agents, why):
    wrong, right = (ANSWERS["tone"] | {"agents": one} for one in (agents, verdicts("fitting", "fitting")))
    found, requests = tried("tone", [wrong, right], SWITCHED, by_agent=True)
    assert (found.status, len(requests)) == ("scored", 2)
    assert why in requests[1].messages[-1].content
    failed, _ = tried("tone", [wrong, wrong], SWITCHED, by_agent=True)
    assert (failed.status, failed.error) == ("failed", ReplyError.__name__)


def test_the_checks_of_the_scorer_itself_stay():
    wrong = {"goals": [GOAL | {"evidence": [9]}], "agents": verdicts("achieved", "achieved")}
    failed, _ = tried("agent_goal_without_reference", [wrong, wrong], SWITCHED, by_agent=True)
    assert "cites the messages [9]" in failed.reason


def test_the_option_is_part_of_the_signature_and_both_prompts_are_declared():
    judge = ScriptedJudge([])
    one, other = (PromptScorer("tone", judge, by_agent=by_agent) for by_agent in (True, False))
    assert signature(one) != signature(other)
    assert [prompt.name for prompt in one.prompts] == ["tone", "tone"]
    assert one.prompts[0] == load_prompt("tone") == other.prompts[0]


def test_the_confidence_is_that_of_the_verdict_on_all():
    text = json.dumps(ANSWERS["tone"] | {"agents": verdicts("lacking", "lacking")})
    before, label, after = text.partition("fitting")
    tokens = [TokenLogprob(token=one, logprob=-0.5 if one == label else 0.0) for one in (before, label, after)]
    reply = Reply(text=text, logprobs=tokens)
    found, _ = tried("tone", lambda _: reply, SWITCHED, by_agent=True)
    assert found.confidence == pytest.approx(math.exp(-0.5))


def with_tools(trace: Trace, *names: str) -> Trace:
    return trace.model_copy(update={"tools": tuple(map(ToolDefinition, names))})


@pytest.mark.parametrize("name", ["tool_selection", "tool_argument_grounding"])
class TestTools:
    """Judges of tool calls see which agent had which tools."""

    def shown(self, name: str, trace: Trace, scope: str) -> list[tuple[str, list[str]]]:
        judge = ScriptedJudge(lambda _: RejectedError("no"))
        run_sync(lambda: attempt(PromptScorer(name, judge, scope=scope), Sample(id="1", trace=trace)))
        user = judge.requests[0].messages[1].content
        found = re.findall(r"\[(\w{12}) (tools[^\n]*) begins\]\n(.*?)\n\[\1 \2 ends\]", user, re.DOTALL)
        return [(title, [line.removeprefix("| ") for line in text.split("\n")]) for _, title, text in found]

    def test_each_sub_agent_has_its_own(self, name):
        first, second = NESTED.children
        trace = with_tools(NESTED, "ask").model_copy(update={"children": (with_tools(first, "refund"), second)})
        tools = [f'{{"description":null,"name":"{tool}","parameters":null}}' for tool in ("ask", "refund")]
        assert self.shown(name, trace, "own") == [("tools", [tools[0]])]
        assert self.shown(name, trace, "tree") == [
            ("tools", [tools[0]]),
            ("tools of sub-agent 2.1", [tools[1]]),
            ("tools of sub-agent 0.1", ["not recorded"]),
        ]

    @pytest.mark.parametrize("scope", ["own", "tree"])
    def test_of_agents_in_one_conversation_it_is_said_that_their_tools_are_listed_together(self, name, scope):
        [(title, lines)] = self.shown(name, with_tools(SWITCHED, "pass_on", "refund"), scope)
        assert (title, lines[0]) == ("tools", "of several agents; not recorded which of them had which:")
        assert len(lines) == 3
        [(_, alone)] = self.shown(name, with_tools(ONE, "look"), scope)
        assert len(alone) == 1

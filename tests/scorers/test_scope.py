"""The scope of scorers in recordings with sub-agents."""

import asyncio
import inspect
import re
from importlib import import_module

import pytest

from judgekit.errors import ConfigError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.scorers import SCORERS
from judgekit.scorers.ranking.ranked import RankingScorer
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.constraints import Forbid, MaxSteps
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Ranking, Sample
from judgekit.traces.trace import Trace


def loaded(path):
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


CLASSES = {name: loaded(path) for name, path in SCORERS.items()}
WITHOUT_MESSAGES = {
    *("exact_match", "string_presence", "regex", "similarity", "json_match", "json_diff", "bleu", "chrf", "ter"),
    *("rouge", "ngram_precision", "answer_match", "classification", "adaptability", "portability", "imported"),
}
"""They read the answer of the agent, or fields of the sample."""
OF_SEVERAL_AGENTS = {"panel", "collaboration_efficiency"}
"""A panel leaves it to its members, and collaboration is between all agents."""
JUDGED = {"topic_adherence", "agent_goal_accuracy_with_reference", "agent_goal_accuracy_without_reference", "prompt"}
JUDGED |= {"weighted_criteria", "pairwise", "handoff_quality", "groundedness", "failure_analysis"}
OPTIONS = {
    "tool_call_match": {"match": "contains"},
    "tool_constraints": {"constraints": [Forbid("look", {"q": "a"}), MaxSteps(5)]},
    "weighted_criteria": {"weights": {"right": 1.0}},
    "pairwise": {"question": "Which is better?"},
    "prompt": {"prompt": "tone"},
    "failure_analysis": {"of": "all"},
    "never_says": {"pattern": "docs"},
    "err": {"tool": "find", "max_grade": 1},
    **{name: {"budget": 0} for name in CLASSES if name.startswith("max_") and name != "max_repeated_calls"},
    **{name: {"tool": "find"} for name in CLASSES if issubclass(CLASSES[name], RankingScorer) and name != "err"},
}


GOAL = {"goal": "it", "end_state": "done", "reason": "so", "evidence": ["3"], "verdict": "achieved"}
ANSWERS = {
    "agent_goal_with_reference": {"goals": [GOAL]},
    "agent_goal_without_reference": {"goals": [GOAL]},
    "topic_adherence": {
        "requests": [{"request": "go", "message": 1, "reason": "so", "topic": 1, "outcome": "answered"}]
    },
    "weighted_criteria": {"right": {"reason": "so", "evidence": [], "holds": "yes"}},
    "tone": {"reason": "so", "evidence": [], "verdict": "fitting"},
    "pairwise": {
        "strengths_first": "a",
        "strengths_second": "b",
        "reason": "so",
        "evidence_first": [],
        "evidence_second": [],
        "verdict": "tie",
    },
    "failure_analysis": {
        "expected": "e",
        "candidates": [],
        "roots": [],
        "reason": "so",
        "fix": {"where": "nothing", "change": ""},
        "label": "none_visible",
        "verdict": "none_visible",
    },
    "handoffs": {"handoffs": [{"handoff": 1, "task": "t", "use": "u", "given": 2, "used": 3, "verdict": "good"}]},
}
NO_CLAIM = {"kind": "none", "source": None, "document": None, "quote": "", "verdict": None, "bad": []}


def reply(request):
    """An answer to the question of any scorer."""
    if request.schema_name == "groundedness":
        numbers = re.findall(r"^\| (\d+)\. \(message ", request.messages[1].content, re.MULTILINE)
        return {"entries": [{"sentence": int(number), **NO_CLAIM} for number in numbers]}
    return ANSWERS[request.schema_name]


def test_each_shipped_scorer_has_a_scope_or_reads_no_message():
    scoped = {name for name, kind in CLASSES.items() if issubclass(kind, ScopedScorer)}
    assert scoped == CLASSES.keys() - WITHOUT_MESSAGES - OF_SEVERAL_AGENTS
    assert scoped >= JUDGED


def spoken(text, found, query, *, tokens, error):
    """A conversation with some text, the documents that it finds, an argument, an usage, and a failure or none."""
    return [
        HumanMessage("Look it up."),
        AIMessage(
            tool_calls=[
                ToolCall("find", {"order_id": "W-12345"} if error else {}, id="1"),
                ToolCall("look", {"q": query}, id="2"),
            ],
            usage=tokens,
        ),
        ToolMessage(found, tool_call_id="1"),
        ToolMessage("?", tool_call_id="2", is_error=error),
        *[AIMessage(tool_calls=[ToolCall("look", {"q": query}, id="3")], usage=tokens)] * (3 if error else 1),
        AIMessage(text, usage=tokens),
    ]


def sample(*, changed):
    """A sample whose sub-agent says and does something else if it is changed."""
    two = Usage(input_tokens=1, output_tokens=1)
    own = [
        HumanMessage("Go."),
        AIMessage(tool_calls=[ToolCall("ask", id="a")], usage=two),
        AIMessage("Done.", usage=two),
    ]
    talk = (
        spoken("No. I've asked the docs.", '["y"]', "b", tokens=Usage(input_tokens=5, output_tokens=5), error=True)
        if changed
        else spoken("Yes.", '["x"]', "a", tokens=two, error=False)
    )
    tools = [ToolDefinition("ask_docs")]
    child = Trace(messages=talk, tools=tools, metadata={"call_id": "a"}, cost_usd=2 if changed else 1)
    return Sample(
        id="1",
        trace=Trace(messages=own, children=[child], cost_usd=1),
        baseline=Trace(messages=own, children=[Trace(messages=own, metadata={"call_id": "a"})]),
        reference="It is done.",
        reference_topics=["search"],
        reference_tool_calls=[ToolCall("ask"), ToolCall("look", {"q": "a"})],
        ranking=Ranking([], {"x": 1, "z": 1}),
    )


def evidence(scorer, judge, changed):
    """All that the scorer gives, and all that its judge is shown."""
    score = asyncio.run(attempt(scorer, sample(changed=changed)))
    assert score.status in {"scored", "skipped"}, score.reason
    shown = [message.content for request in judge.requests for message in request.messages]
    judge.requests.clear()
    return score.value, score.reason, score.details, shown, score.warnings


def test_what_a_sub_agent_does_changes_the_evidence_in_the_scope_tree_and_else_there_is_a_warning():
    cases = sorted(CLASSES.keys() - WITHOUT_MESSAGES - OF_SEVERAL_AGENTS - {"max_seconds", "unfinished"})
    for name in cases:
        judge = ScriptedJudge(reply)
        options = OPTIONS.get(name, {}) | ({"judge": judge} if name in JUDGED else {})
        if name in {"precision_at_k", "recall_at_k", "hit_rate", "ndcg", "err"}:
            options = {**options, "k": 1} if "k" in inspect.signature(CLASSES[name]).parameters else options
        tree, own = (CLASSES[name](**options, scope=scope) for scope in ("tree", "own"))
        assert signature(tree) != signature(own)

        before, after = evidence(tree, judge, changed=False), evidence(tree, judge, changed=True)
        assert before[:4] != after[:4]
        assert not any("not looked at" in one for one in (*before[4], *after[4]))

        before, after = evidence(own, judge, changed=False), evidence(own, judge, changed=True)
        assert before[0] == after[0]
        assert before[3] == after[3]
        assert not any("2.1" in text for text in after[3])
        [warning] = [one for one in after[4] if "not looked at" in one]
        assert warning.startswith('scope = "own": ')


def test_an_unknown_scope_is_refused():
    for kind in (CLASSES["max_messages"], CLASSES["tool_constraints"]):
        with pytest.raises(ConfigError, match="scope"):
            kind(1 if kind is CLASSES["max_messages"] else [MaxSteps(1)], scope="all")
    with pytest.raises(ConfigError, match="scope"):
        CLASSES["topic_adherence"](ScriptedJudge([]), scope="all")


def test_sub_agents_of_a_baseline_matter_to_scorers_that_look_at_it():
    alone = sample(changed=False)
    alone = alone.model_copy(update={"trace": alone.trace.model_copy(update={"children": ()})})
    judge = ScriptedJudge(reply)
    pair, tone, tools = (
        asyncio.run(attempt(scorer, alone))
        for scorer in (
            CLASSES["pairwise"]("Which is better?", judge),
            CLASSES["prompt"]("tone", judge),
            CLASSES["tool_call_f1"](),
        )
    )
    assert pair.warnings == ('scope = "own": 1 sub-agent with 1 tool call not looked at',)
    assert (tone.warnings, tools.warnings) == ((), ())
    assert "outside_scope" not in tools.details

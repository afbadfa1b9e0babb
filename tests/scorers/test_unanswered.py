"""What scorers that look for an answer make of conversations without one."""

import asyncio

import pytest

from judgekit import (
    BLEU,
    CHRF,
    ROUGE,
    TER,
    AnswerMatch,
    Classification,
    ExactMatch,
    JSONDiff,
    JSONMatch,
    NgramPrecision,
    PromptScorer,
    Regex,
    Similarity,
    StringPresence,
)
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

ASK = HumanMessage("Where is my order?")
LOOKUP = [AIMessage("on its way", tool_calls=[ToolCall("find", id="c1")]), ToolMessage("found", tool_call_id="c1")]
TEXT_SCORERS = [
    *(BLEU(), CHRF(), ROUGE(), TER(), ExactMatch(), Similarity(), StringPresence(), NgramPrecision()),
    *(AnswerMatch(), Regex("on its way|"), Regex(".*", full_match=True)),
]
JSON_SCORERS = [JSONMatch(), JSONDiff()]
CRASHED = {"ends_with_result": Trace(messages=[ASK, *LOOKUP]), "error": Trace(messages=[ASK], error="rate limit")}


def with_reference(trace: Trace, scorer: object) -> Sample:
    return Sample(id="s", trace=trace, reference='{"a": 1}' if scorer in JSON_SCORERS else "on its way")


def test_an_agent_that_gave_up_scores_0_and_a_reply_that_may_not_have_been_recorded_fails():
    for scorer in (*TEXT_SCORERS, *JSON_SCORERS):
        for trace in CRASHED.values():
            score = scorer.score(with_reference(trace, scorer))
            assert (score.status, score.value) == ("scored", 0), scorer
            assert score.reason.startswith("the agent gave no answer: ")
        lost = scorer.score(with_reference(Trace(messages=[ASK]), scorer))
        assert lost.status == "failed", scorer
        assert lost.reason.startswith("no answer recorded: the conversation stops after the user's message")


def test_without_a_reference_the_question_does_not_apply():
    for scorer in (BLEU(), ExactMatch(), AnswerMatch(), JSONMatch(), Classification()):
        for trace in (*CRASHED.values(), Trace(messages=[ASK])):
            assert scorer.score(Sample(id="s", trace=trace)).status == "skipped", scorer


@pytest.mark.parametrize("scorer", [BLEU(), CHRF(), TER(), AnswerMatch(), Classification()])
def test_totals_over_many_samples_include_agents_that_gave_up(scorer):
    good = Trace(messages=[ASK, AIMessage("on its way")])
    summary = Summary()
    for index, trace in enumerate([good, CRASHED["error"]]):
        sample = Sample(id=str(index), trace=trace, reference="on its way", label="on its way")
        summary.add(Row.of(index, sample, scorer.score(sample)))
    line = summary[scorer.name]
    assert line.counts["scored"] == 2
    assert line.value is not None
    assert line.value < 1


def test_a_class_is_not_predicted_by_an_agent_that_gave_up():
    score = Classification().score(Sample(id="s", trace=CRASHED["ends_with_result"], label="on its way"))
    assert (score.value, score.label) == (0, "no_answer")
    predicted = Sample(id="s", trace=CRASHED["error"], label="a", prediction="a")
    assert Classification().score(predicted).value == 1


def test_a_call_of_the_last_message_can_be_compared_where_there_is_no_answer():
    trace = Trace(messages=[ASK, AIMessage(tool_calls=[ToolCall("submit", {"answer": "42"})])])
    scorer = ExactMatch(response="{{ tool_calls[0].args.answer }}")
    assert scorer.score(Sample(id="s", trace=trace, reference="42")).value == 1


def test_a_value_in_the_response_is_missing_where_there_is_no_answer():
    scorer = ExactMatch(response="{{ response.answer }}")
    assert scorer.score(Sample(id="s", trace=CRASHED["error"], reference="42")).value == 0
    assert scorer.score(Sample(id="s", trace=Trace(messages=[ASK]), reference="42")).status == "failed"


PROMPT = """---
description: Is the answer kind?
inputs: [conversation, response]
scale: {kind: 1.0, unkind: 0.0}
---
The answer: {{ response }}
"""


def test_a_judge_is_not_asked_about_a_response_that_is_missing(tmp_path):
    (tmp_path / "kind.md").write_text(PROMPT)
    scorer = PromptScorer(tmp_path / "kind.md", ScriptedJudge([]))
    for trace in CRASHED.values():
        score = asyncio.run(scorer.ascore(Sample(id="s", trace=trace)))
        assert (score.status, score.value, score.calls) == ("scored", 0, ())
        assert score.reason.startswith("the agent gave no answer: ")
    assert asyncio.run(scorer.ascore(Sample(id="s", trace=Trace(messages=[ASK])))).status == "failed"

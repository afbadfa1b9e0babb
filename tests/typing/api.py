"""The public API as type checkers see it. This file is checked by mypy and pyright, and never run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_type

import pandas as pd

from judgekit import (
    BLEU,
    ERR,
    NDCG,
    ROUGE,
    Adaptability,
    AgentGoalAccuracyWithoutReference,
    AIMessage,
    AnswerMatch,
    ArgMatch,
    Budget,
    Classification,
    CollaborationEfficiency,
    Comparison,
    ExpectedCall,
    HumanLabel,
    HumanMessage,
    Judge,
    Pairwise,
    Panel,
    Price,
    PromptScorer,
    Ranking,
    RecallAtK,
    Repeat,
    Run,
    Sample,
    Score,
    Scorer,
    ScriptedJudge,
    Selective,
    Similarity,
    ToolCall,
    ToolCallF1,
    ToolCallMatch,
    ToolConstraints,
    ToolMatch,
    ToolMessage,
    TopicAdherence,
    Trace,
    WeightedCriteria,
    aadd_scorers,
    add_labels,
    add_scorers,
    aplan,
    aresume,
    arun,
    attempt,
    audit,
    check_gates,
    compare,
    plan,
    read,
    read_labels,
    report,
    resume,
    run,
    scorer,
    stored_labels,
    write,
)
from judgekit.behavior import MaxTokens
from judgekit.constraints import Before
from judgekit.matchers import near
from judgekit.scoring import FunctionScorer
from judgekit.traces.message import Message


@scorer
def plain(sample: Sample) -> float:
    return float(bool(sample.trace.messages))


@scorer(name="explained", version="1")
async def explained(sample: Sample) -> tuple[float, str]:
    return 1.0, sample.id


async def uses() -> None:
    sample = Sample.of(
        [HumanMessage("Hi"), AIMessage("Hello", tool_calls=[ToolCall("f", {"a": [1, None]})]), ToolMessage("12")],
        reference_tool_calls=[ToolCall("f", {"a": near(3, tolerance=1)}), ExpectedCall("g", {}, compare_args=[])],
        reference_topics=["weather"],
    )
    assert_type(sample.trace, Trace)
    assert_type(sample.trace.messages, Sequence[Message])
    assert_type(plain, FunctionScorer)
    assert_type(explained, FunctionScorer)
    judge = Judge("openai/judge-model", params={"temperature": 0})
    limited = Judge("openai/a", price=Price(0.4, 1.6), budget=Budget(usd=5), redact=["email"], fallback=[judge])
    scorers: list[Scorer] = [
        plain,
        explained,
        ToolCallF1(args=lambda expected, made: expected == made),
        ToolCallF1(args=ROUGE()),
        ToolCallF1(args=ArgMatch(text=Similarity())),
        ToolCallMatch(ToolMatch(args=explained, tools={"f": ROUGE()})),
        ToolCallMatch("contains"),
        ToolCallMatch(ToolMatch(order="any", args=ArgMatch(only=["a"], text=lambda expected, made: 0.5))),
        ToolConstraints([Before("f", "g")]),
        TopicAdherence(judge, mode="recall"),
        AgentGoalAccuracyWithoutReference(ScriptedJudge([{"verdict": "achieved"}])),
        Repeat(TopicAdherence(limited), repeats=3, aggregation="mean"),
        PromptScorer("tone", judge, require_evidence=True),
        PromptScorer("tone", "openai/judge-model"),
        TopicAdherence("openai/judge-model"),
        Pairwise("Which one is better?", "openai/judge-model"),
        WeightedCriteria({"a": 1}, judge="openai/judge-model"),
        WeightedCriteria({"a": 0.5, "b": 0.5}, checks={"a": lambda sample: None, "b": "Is it so?"}, judge=judge),
        Pairwise("Which one is better?", judge),
        Panel([PromptScorer("tone", judge), PromptScorer("tone", limited)], rule="unanimous", escalate=True),
        ROUGE("rouge1", "recall", stemmer=True),
        BLEU(tokenize="zh", smooth="floor"),
        Similarity("token_sort"),
        AnswerMatch(0.5, "f1", stop_words=["the"]),
        Classification("f1_macro"),
        NDCG(10, "linear", tool="search", path="hits[].id"),
        ERR(4, k=10),
        RecallAtK(10, relevant_from=2),
        Adaptability(ToolCallF1()),
        CollaborationEfficiency(),
        MaxTokens(8_000),
    ]
    assert_type(await arun([sample], scorers), Run)
    assert_type(await arun("x.csv", scorers, progress=True), Run)
    assert_type(run(Path("x.csv"), scorers), Run)
    assert_type(run("x.csv", ["tool_call_f1", plain], config="judgekit.toml", workers=2, store="runs.sqlite"), Run)
    assert_type(resume("last", store="runs.sqlite", retry_failed=True), Run)
    assert_type(await aresume(3, data=[sample], scorers=scorers), Run)
    assert_type(add_scorers(Run.stored(), ["tool_call_f1", *scorers], judge="openai/a"), Run)
    assert_type(await aadd_scorers("last", scorers, progress=True), Run)
    assert_type(plan("x.csv", scorers).cost_usd, float | None)
    assert_type((await aplan([sample], config=Path("judgekit.toml"))).requests, int)
    results = run(read("x.csv", on_error=print, columns={"question": "input"}), scorers, concurrency=2)
    assert_type(results, Run)
    assert_type(Run.stored(1, "runs.sqlite").summary["tool_call_f1"].value, float | None)
    assert_type([row.scorer for row in results], list[str])
    assert_type(results.to_pandas(), pd.DataFrame)
    assert_type(compare(results, results), Comparison)
    assert_type(
        compare(results, results, gates=["tool_call_f1.p < 0.05"], allow_changed_references=True).gates.met, bool
    )
    assert_type(check_gates(results, ["failed <= 1%"]).met, bool)
    report(results, "report.html")
    assert_type(add_labels(results, stored_labels(results))["changed"], int)
    labels = [*read_labels("labels.csv"), HumanLabel(sample="s", scorer="tone", value=True)]
    assert_type(audit(results, labels, guarantee=0.1).scorers[0].correction.effective_labels, float | None)
    assert_type(Selective(Repeat(scorers[0], "auto"), 0.8, escalate=scorers[1]).score(sample), Score)
    assert_type(write([sample], "x.jsonl", format="ragas"), Mapping[str, int])
    assert_type(Ranking([("a", 0.5), ("b", 0.25)], {"a": 1}).retrieved, Sequence[str])
    score = await attempt(scorers[0], sample)
    assert_type(score, Score)
    assert_type(score.value, float | None)
    assert_type(score.diff()[0].mark, str)
    assert_type(ToolCallF1().score(sample), Score)

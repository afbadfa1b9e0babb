"""Scorers that run after the other scorers of a sample: in runs, resumed runs and runs with added scorers."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit import (
    AIMessage,
    FailureAnalysis,
    HumanMessage,
    Run,
    Sample,
    Score,
    ToolCallF1,
    add_labels,
    add_scorers,
    plan,
    resume,
    run,
)
from judgekit.analysis.labels import HumanLabel
from judgekit.anchors import freeze_anchors
from judgekit.errors import BudgetError, ConfigError
from judgekit.follow_ups import SampleScores
from judgekit.judges.scripted import ScriptedJudge
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import scorer

STORE = Path("runs.sqlite")
FOUND = {
    "expected": "tool_0 is called",
    "candidates": [
        {"message": 2, "quote": "", "wrong": "another", "label": "wrong_tool", "repaired": False, "decisive": "yes"}
    ],
    "roots": [{"message": 2, "symptom": "another tool is called than the one that was asked for"}],
    "reason": "So nothing was done.",
    "fix": {"where": "tool_description", "change": "Say what the tool does."},
    "label": "wrong_tool",
    "verdict": "failed",
}
FITTING = {"reason": "so", "evidence": [2], "verdict": "fitting"}


@dataclass(frozen=True)
class Watching:
    """Notes which scores it gets."""

    seen: dict[str, tuple[list[str], list[float]]]
    name: str = "watching"
    of: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        return "1"

    async def ascore(self, sample: Sample, /) -> Score:
        return Score.skipped(self.name, "alone")

    async def ascore_after(self, sample: Sample, /, scores: SampleScores) -> Score:
        self.seen[sample.id] = [each.scorer for each in scores.of_scorers], [each.value for each in scores.of_people]
        return Score.scored(self.name, 1)


def analysis(*script: object, **options: object) -> FailureAnalysis:
    return FailureAnalysis(ScriptedJudge(list(script) if script else lambda _: FOUND), **options)


def by_sample(found: Run, name: str = "failure_analysis") -> list[tuple[str, str | None]]:
    return [(row.score.status, row.score.label) for row in found.rows(scorer=name)]


ANALYZED = [("skipped", "not_failed"), *[("scored", "wrong_tool")] * 3]


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize("together", [False, True])
def test_it_runs_after_all_other_scorers_of_a_sample_wherever_it_stands(samples, concurrency, together):
    judge = ScriptedJudge({"tone": FITTING, "failure_analysis": FOUND}, together=together)
    others = [PromptScorer("tone", judge), ToolCallF1(), PromptScorer("tone", judge, name="again")]
    if together:
        judge = ScriptedJudge(
            lambda request: FOUND if request.schema_name == "failure_analysis" else {"q1": FITTING, "q2": FITTING},
            together=True,
        )
        others = [PromptScorer("tone", judge), ToolCallF1(), PromptScorer("tone", judge, name="again")]
    seen: dict = {}
    found = run(samples(4), [Watching(seen), FailureAnalysis(judge), *others], concurrency=concurrency)
    assert by_sample(found) == ANALYZED
    assert {key: ({*names}, people) for key, (names, people) in seen.items()} == {
        f"s{number}": ({"tone", "tool_call_f1", "again"}, []) for number in range(4)
    }
    scores = [row.score for row in found.rows(scorer="failure_analysis")]
    assert [score.details.get("failed_by") for score in scores[1:]] == [["tool_call_f1"]] * 3
    assert all(len(call.together) == 0 for score in scores for call in score.calls)


def test_the_summary_says_how_many_of_all_samples_failed_visibly(samples):
    found = run(samples(4), [ToolCallF1(), analysis()])
    assert "failure_analysis: 3 of 4 samples failed visibly (75.0%)" in str(found)
    assert "failed visibly" not in str(run(samples(4), [ToolCallF1(), analysis(of="all")]))


def test_it_is_added_to_a_stored_run_and_human_labels_of_the_run_count(samples):
    first = run(samples(4), [ToolCallF1()], store=STORE)
    add_labels(
        first,
        [
            HumanLabel(sample="s0", scorer="tool_call_f1", value=0.2, annotator="Ann", reason="It says nothing."),
            HumanLabel(sample="s1", scorer="tool_call_f1", value=1, annotator="Ann"),
        ],
    )
    seen: dict = {}
    found = add_scorers(first, [analysis(), Watching(seen)], data=samples(4))
    assert by_sample(found) == [("scored", "wrong_tool")] * 4
    assert seen == {
        "s0": (["tool_call_f1"], [0.2]),
        "s1": (["tool_call_f1"], [1]),
        "s2": (["tool_call_f1"], []),
        "s3": (["tool_call_f1"], []),
    }
    assert [row.score.details["failed_by"] for row in found.rows(scorer="failure_analysis")] == [["tool_call_f1"]] * 4
    with pytest.raises(ConfigError, match="no scorer for other to follow is called 'tone'"):
        add_scorers(first, [analysis(of=["tone"], name="other")], data=samples(4))


def test_human_labels_of_an_earlier_run_of_the_same_files_count_in_a_new_one(conversations):
    path = conversations(2)
    label = HumanLabel(sample="s0", scorer="tool_call_f1", value="fail", annotator="Ann")
    add_labels(run(path, [ToolCallF1()], store=STORE), [label])
    found = run(path, [ToolCallF1(), analysis()], store=STORE)
    assert by_sample(found) == [("scored", "wrong_tool")] * 2


def test_a_run_that_stops_between_the_others_and_the_analysis_is_resumed_with_the_stored_scores(samples):
    stopped = run(samples(4), [ToolCallF1(), analysis(FOUND, BudgetError("spent"))], store=STORE, concurrency=1)
    assert (stopped.stop_reason, len(by_sample(stopped)), len(by_sample(stopped, "tool_call_f1"))) == ("spent", 2, 4)
    calm = analysis()
    found = resume("last", store=STORE, data=samples(4), scorers=[ToolCallF1(), calm])
    assert by_sample(found) == ANALYZED
    assert len(calm.judge.requests) == 2
    assert list(found.rows(scorer="failure_analysis"))[3].score.details["failed_by"] == ["tool_call_f1"]


def failing(broken: set[str], error: Exception):
    @scorer(name="paid", version="1")
    async def paid(sample: Sample) -> float:
        if sample.id in broken:
            raise error
        return 0.0

    return paid


def test_where_another_scorer_stops_it_works_on_what_there_is_and_looks_again_once_there_is_more(samples):
    others = [ToolCallF1(), failing({"s0"}, BudgetError("spent"))]
    stopped = run(samples(4), [*others, analysis()], store=STORE, concurrency=1)
    assert stopped.stop_reason == "spent"
    assert by_sample(stopped) == ANALYZED  # of the other scorer alone
    found = resume(
        "last", store=STORE, data=samples(4), scorers=[ToolCallF1(), failing(set(), BudgetError("")), analysis()]
    )
    assert by_sample(found) == [("scored", "wrong_tool")] * 4
    assert [row.score.details["failed_by"] for row in found.rows(scorer="failure_analysis")] == [
        ["paid"],
        *[["tool_call_f1", "paid"]] * 3,
    ]


def test_no_further_sample_is_taken_once_all_that_it_could_follow_have_stopped(samples):
    stopped = run(samples(9), [failing({"s2"}, BudgetError("spent")), analysis()], store=STORE, concurrency=1)
    assert len(by_sample(stopped)) == 3
    assert by_sample(stopped)[2][0] == "skipped"


def test_a_failed_score_that_is_made_again_has_its_sample_looked_at_again(samples):
    run(samples(2), [failing({"s1"}, ValueError("no")), analysis()], store=STORE)
    found = resume(
        "last", store=STORE, data=samples(2), scorers=[failing(set(), ValueError()), analysis()], retry_failed=True
    )
    assert by_sample(found) == [("scored", "wrong_tool")] * 2


def test_a_plan_counts_scores_that_are_only_planned_as_failed(samples):
    judge = ScriptedJudge(lambda _: FITTING)
    planned = plan(samples(4), [PromptScorer("tone", judge), FailureAnalysis(judge)])
    assert (planned.summary["tone"].requests, planned.summary["failure_analysis"].requests) == (4, 4)
    assert plan(samples(4), [ToolCallF1(), FailureAnalysis(judge)]).summary["failure_analysis"].requests == 3


@pytest.mark.parametrize("start", [run, plan])
def test_a_scorer_that_the_run_does_not_have_is_an_error_before_anything_is_asked(samples, start):
    judge = ScriptedJudge([])
    with pytest.raises(
        ConfigError, match=r"no scorer for failure_analysis to follow is called 'tool_f1'.*tool_call_f1"
    ):
        start(samples(4), [ToolCallF1(), FailureAnalysis(judge, of=["tool_f1"])])
    with pytest.raises(ConfigError, match="looks at what other scorers call failed: add one"):
        start(samples(4), [FailureAnalysis(judge), FailureAnalysis(judge, name="again")])
    assert judge.requests == []


def test_where_workers_make_the_other_scores_it_is_refused_with_the_way_out(conversations, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    path = conversations(4)
    with pytest.raises(ConfigError, match=r"judgekit score RUN --scorer failure_analysis without workers"):
        run(path, ["tool_call_f1", "failure_analysis"], judge="openai/x", workers=2, store=STORE)
    assert not STORE.exists()


def test_it_has_no_anchors_since_it_is_not_asked_by_itself(samples):
    found = run(samples(4), [ToolCallF1(), analysis()], store=STORE)
    with pytest.raises(ConfigError, match="failure_analysis asks no judge by itself"):
        freeze_anchors(found, 20, scorer="failure_analysis", scorers=[analysis()])


def test_the_other_scores_come_in_the_order_of_the_run_whichever_is_first():
    """Otherwise a request would be another one each time, and none would be answered from the cache."""

    def taking(turns, name):
        @scorer(name=name, version="1")
        async def slow(_sample):
            for _ in range(turns):
                await asyncio.sleep(0)
            return 1.0

        return slow

    judged = PromptScorer("tone", ScriptedJudge(lambda _: FITTING))
    for turns in (0, 50):
        watching = Watching({})
        run(
            [Sample.of([HumanMessage("Hi"), AIMessage("Hello")], id="a")],
            [taking(turns, "b"), judged, taking(50 - turns, "a"), watching],
        )
        assert watching.seen["a"][0] == ["b", "tone", "a"]

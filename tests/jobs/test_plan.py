"""Plans: what a run would ask, and nothing is asked."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest
from scipy.stats import norm

from judgekit import Judge, Price, PromptScorer, Sample, ScriptedJudge, ToolCallF1, aplan, load_prompt, plan, run
from judgekit.errors import ConfigError, TraceError
from judgekit.judges.cache.replies import ReplyDatabase
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scoring import scorer

GOAL = "agent_goal_accuracy_without_reference"


def planning(*given: object, **named: object):
    return asyncio.run(aplan(*given, **named))


PLANS = pytest.mark.parametrize("plans", [plan, planning], ids=["plan", "aplan"])


@pytest.fixture
def goal() -> AgentGoalAccuracyWithoutReference:
    return AgentGoalAccuracyWithoutReference(Judge("openai/m", price=Price(1, 10), params={"max_tokens": 200}))


@PLANS
def test_a_plan_says_what_it_would_take_and_needs_no_key(plans, conversations, goal, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = plans(conversations(5), [goal, ToolCallF1()])
    judged = found.summary[goal.name]
    assert (found.requests, found.cached, judged.requests) == (5, 0, 5)
    assert found.tokens == judged.tokens > 5 * 200
    inputs = found.tokens - 5 * 200
    assert found.cost_usd == pytest.approx((inputs * 1 + 5 * 200 * 10) / 1e6)
    assert found.summary["tool_call_f1"].counts["scored"] == 5
    assert str(found) == f"5 requests, 0 from cache, about {found.tokens:,} tokens, about ${found.cost_usd:.4f}"
    assert [one.name for one in Path().iterdir()] == ["samples.jsonl"]


def test_names_are_planned_with_the_judge_of_the_config_and_objects_with_theirs(samples, goal):
    Path("mine.toml").write_text('[judges.default]\nmodel = "openai/other"\nbudget = {requests = 3}\n')
    found = plan(samples(4), [goal, f"{GOAL}:as=named"], config="mine.toml")
    calls = [found.summary[name].requests for name in (goal.name, "named")]
    assert (calls, found.cost_usd) == ([4, 4], None)
    assert [(name, one.model) for name, one in found.judges.items()] == [("default", "openai/other")]


def test_the_caches_that_a_plan_reads_are_closed_when_it_is_made(samples):
    cache = Path("replies.sqlite").absolute()

    def open_files() -> list[str]:
        names = map(os.path.realpath, Path("/proc/self/fd").iterdir())
        return [name for name in names if name.startswith(str(cache))]

    async def files_after_a_plan() -> list[str]:
        await aplan(samples(2), [PromptScorer("tone", Judge("openai/m", cache=cache))])
        return open_files()

    ReplyDatabase(cache).close()
    assert asyncio.run(files_after_a_plan()) == []


@PLANS
def test_no_judge_is_asked_however_deep_it_is_hidden(plans, samples):
    """A function's judge stands in no field; a scripted one would answer without a network."""
    judge = ScriptedJudge([])
    prompt = load_prompt("tone")

    @scorer(judge=judge, prompts=[prompt])
    async def hidden(sample: Sample) -> float:
        return (await PromptScorer(prompt, judge).ascore(sample)).value

    found = plans(samples(3), [hidden])
    assert (found.requests, judge.requests) == (3, [])


def test_a_judge_that_was_planned_with_can_be_asked_afterwards_and_the_other_way_round(samples):
    """Also on one event loop, where clients are kept; each plan counts anew."""
    answer = {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]}
    judge = ScriptedJudge(lambda _: answer)
    scorers = [AgentGoalAccuracyWithoutReference(judge)]

    async def notebook() -> list[int]:
        first, second = await aplan(samples(3), scorers), await aplan(samples(3), scorers)
        found = [first.requests, second.requests, len(judge.requests)]
        from judgekit import arun  # noqa: PLC0415

        scored = await arun(samples(3), scorers)
        return [*found, scored.summary[scorers[0].name].counts["scored"], (await aplan(samples(3), scorers)).requests]

    assert asyncio.run(notebook()) == [3, 3, 0, 3, 3]
    assert len(judge.requests) == 3


@PLANS
def test_what_cannot_be_read_is_warned_of(plans, conversations):
    path = conversations(2)
    path.write_text(f"no JSON\n{path.read_text()}")
    with pytest.warns(UserWarning, match=r"\(line 1\): not JSON") as told:
        found = plans(path, ["tool_call_f1"])
    assert (found.summary["tool_call_f1"].total, len(found.problems), len(told)) == (2, 1, 1)


def test_what_could_not_be_run_cannot_be_planned(samples):
    with pytest.raises(TraceError, match=r"missing\.jsonl"):
        plan("missing.jsonl", ["tool_call_f1"])
    for scorers in ([], ["no_such"], [ToolCallF1(), "tool_call_f1"], [GOAL]):
        with pytest.raises(ConfigError) as planned:
            plan(samples(1), scorers)
        with pytest.raises(ConfigError) as ran:
            run(samples(1), scorers)
        assert str(planned.value) == str(ran.value)


@pytest.fixture
def limited() -> Judge:
    """$0.50 a request: 100 tokens of output, and input that costs nothing."""
    return Judge(
        "openai/m", price=Price(0, 5000), params={"max_tokens": 100}, requests_per_minute=30, tokens_per_minute=10**6
    )


def test_a_plan_says_how_long_its_requests_take_at_least(samples, limited):
    found = plan(samples(90), [AgentGoalAccuracyWithoutReference(limited), PromptScorer(load_prompt("tone"), limited)])
    assert found.samples == 90
    assert found.durations == {"openai/m": timedelta(minutes=6)}  # 180 requests, 30 a minute
    assert [*found.notes()] == ["openai/m: takes at least 0:06:00 at the limits per minute"]


def test_tokens_limit_a_plan_too_and_judges_of_an_account_share_its_limits(samples, limited):
    few = limited.model_copy(update={"model": "openai/n", "requests_per_minute": None, "tokens_per_minute": 50})
    scorers = [PromptScorer(load_prompt("tone"), limited), PromptScorer(load_prompt("tone"), few, name="other")]
    found = plan(samples(10), scorers)
    assert found.durations == {"openai/m, openai/n": timedelta(seconds=round(60 * found.tokens / 50))}


def test_where_all_is_cached_or_no_limit_is_set_no_time_is_stated(samples, goal):
    assert plan(samples(5), [goal]).durations == {}


def test_over_1000_dollars_a_plan_suggests_a_sample_of_a_certain_size(samples, limited):
    limited = limited.model_copy(update={"price": Price(0, 50_000)})
    found = plan(samples(210), [PromptScorer(load_prompt("tone"), limited)])
    assert found.cost_usd == pytest.approx(1_050)
    assert found.cheaper_share == 20
    (note,) = [one for one in found.notes() if one.startswith("over")]
    points = 100 * norm.ppf(0.975) * 0.5 / 42**0.5  # of a share of a half, by the normal approximation
    assert note == (
        "over $1,000: --sample 20% scores about 42 samples, from which a share of passed samples is known to within "
        f"{points:.1f} points (95 %), if they are independent"
    )


def test_for_up_to_1000_dollars_all_samples_are_judged(samples, limited):
    limited = limited.model_copy(update={"price": Price(0, 500_000)})
    found = plan(samples(20), [PromptScorer(load_prompt("tone"), limited)])
    assert (found.cost_usd, found.cheaper_share) == (pytest.approx(1_000), None)

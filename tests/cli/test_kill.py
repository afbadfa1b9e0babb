"""Runs that are killed again and again: nothing is lost but what was under way, and nothing is asked for twice."""

import os
import random
import signal
import sqlite3
from pathlib import Path

import pytest

from judgekit.jobs.api import run
from judgekit.judges.judge import Judge
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.tool_calls.f1 import ToolCallF1

pytestmark = pytest.mark.processes

SAMPLES = 300
KILLS = int(os.environ.get("JUDGEKIT_KILLS", "2"))
AT_ONCE = 16
"""The judge's concurrency."""


def is_sound(path) -> bool:
    database = sqlite3.connect(path)
    try:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def ask_together(judging, way: str) -> list[str]:
    """Lets the judge be asked two questions in each request, and returns the option that adds the second one."""
    if way == "decisions":
        config = Path("judgekit.toml")
        config.write_text(config.read_text().replace("openai/test", "openai-decisions/test"))
        return ["--scorer", "prompt:task_completion"]
    answer = judging.answer
    judging.answer = lambda conversation: {name: answer(conversation) for name in ("q1", "q2")}
    with Path("judgekit.toml").open("a") as config:
        config.write("together = true\n")
    return ["--scorer", "agent_goal_accuracy_without_reference:partial=true,as=shares"]


@pytest.mark.parametrize("way", ["together", "decisions"])
def test_a_run_that_is_killed_again_and_again_comes_to_what_an_undisturbed_one_does(
    judging, conversations, started, until, calling, unspent, way
):
    path = conversations(SAMPLES)
    draw = random.Random(7)  # noqa: S311 - moments, and no secrets
    words = ["run", path, "--scorer", "tool_call_f1", "--scorer", "agent_goal_accuracy_without_reference"]
    words += ask_together(judging, way)
    before = 0
    for moment in sorted(draw.randrange(1, SAMPLES) for _ in range(KILLS)):
        process = started(*words)
        until(lambda: judging.asked.total() > moment or process.poll() is not None)  # noqa: B023 - called at once
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert is_sound(DEFAULT_RUNS_PATH)
        kept = len(Run.stored())
        assert kept >= before
        before, words = kept, ["resume"]
    assert 0 < before < 3 * SAMPLES
    ended = started("resume")
    out, err = ended.communicate(timeout=50)
    assert (ended.returncode, err) == (0, f"saved as run 1 in {DEFAULT_RUNS_PATH}\n"), err
    assert f"{SAMPLES:,} conversations" in out
    found = Run.stored()
    assert (found.number, found.stop_reason, found.ended_at is None) == (1, "", False)
    samples = [calling(number) for number in range(SAMPLES)]
    asked = judging.asked.copy()
    if way == "decisions":
        judge = Judge("openai-decisions/test", base_url=judging.url, cache_mode="off")
        others = [PromptScorer("task_completion", judge)]
    else:
        judge = ScriptedJudge(lambda request: judging.answer(request.messages[1].content), together=True)
        others = [AgentGoalAccuracyWithoutReference(judge, partial=True, name="shares")]
    undisturbed = run(samples, [ToolCallF1(), AgentGoalAccuracyWithoutReference(judge), *others])
    assert unspent(found) == unspent(undisturbed)
    assert [number for number, sample in found.conversations() if sample != samples[number]] == []
    assert len(asked) == SAMPLES
    assert asked.total() <= SAMPLES + KILLS * AT_ONCE
    assert is_sound(DEFAULT_RUNS_PATH)


def test_a_budget_holds_over_kills_and_resumes(judging, conversations, started, until):
    path, budget = conversations(SAMPLES), SAMPLES // 4
    with Path("judgekit.toml").open("a") as config:
        config.write(f"budget = {{requests = {budget}}}\n")
    words = ["run", path, "--scorer", "agent_goal_accuracy_without_reference"]
    words += ask_together(judging, "together")
    for moment in (budget // 3, 2 * budget // 3):
        process = started(*words)
        until(lambda: judging.asked.total() > moment or process.poll() is not None)  # noqa: B023 - called at once
        process.kill()
        process.wait()
        words = ["resume"]
    ended = started("resume")
    _, err = ended.communicate(timeout=50)
    assert (ended.returncode, f"would exceed the budget of {budget} requests" in err) == (1, True), err
    assert budget - 4 * AT_ONCE <= judging.asked.total() <= budget

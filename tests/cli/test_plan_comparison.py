"""The command ``judgekit plan-comparison``."""

import random

import pytest

from judgekit import AIMessage, Sample, ToolCall, ToolCallF1, plan_comparison, run
from judgekit.errors import ConfigError
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


def agent(seed: int, trials: int = 3, tasks: int = 60) -> Run:
    """An agent that is good at some tasks and bad at others, the same for all seeds."""
    hard, dice = random.Random(0), random.Random(seed)  # noqa: S311 - no secrets
    samples = []
    for task in range(tasks):
        chance = 0.6 + hard.uniform(-0.4, 0.4)
        for trial in range(trials):
            call = ToolCall("f" if dice.random() < chance else "g")
            one = Sample.of(
                [AIMessage(f"{task} {trial} {seed}", tool_calls=[call])],
                reference_tool_calls=[ToolCall("f")],
                id=f"task {task}, trial {trial}",
                group=f"task {task}" if trials > 1 else None,
            )
            samples.append(one)
    return run(samples, [ToolCallF1()], store=DEFAULT_RUNS_PATH)


@pytest.fixture(autouse=True)
def _here(_elsewhere, monkeypatch):
    """Work in a folder of one's own, with fewer simulations."""
    monkeypatch.setattr("judgekit.stats.comparison_planning._SIMULATED", 300)


def test_an_earlier_run_says_how_many_tasks_and_trials_are_needed(cli):
    agent(1)
    ended = cli("plan-comparison", 1, "--difference", 0.3)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith(
        "to see tool_call_f1 differ by +0.3 with a probability of 80%, score in each of the two runs:"
    )
    tasks = [int(line.split()[0].replace(",", "")) for line in lines[1:6]]
    assert tasks == sorted(tasks, reverse=True)
    assert [line.partition(" tasks")[2].partition(":")[0] for line in lines[1:6]] == [
        "",
        *(f", {trials} trials of each" for trials in (2, 3, 5, 10)),
    ]
    assert f"{3 * tasks[2]:,} samples" in lines[3]
    assert "(run 1) and a correlation of 0.50 between what tasks score in both runs (a guess)" in lines[6]
    one = cli("plan-comparison", "last", "--difference", 0.3, "--trials", 3).out.splitlines()
    assert one[1] == lines[3]
    assert len(one) == 3


def test_another_run_shows_how_much_tasks_are_alike_to_both(cli):
    agent(1), agent(2)
    alone, both = (cli("plan-comparison", *runs, "--difference", 0.2, "--trials", 3).out for runs in ((1,), (1, 2)))
    assert "(runs 1 and 2 on 60 tasks)" in both
    assert int(both.splitlines()[1].split()[0]) < int(alone.splitlines()[1].split()[0])
    planned = plan_comparison(Run.stored(1), difference=0.2, trials=3, other=Run.stored(2))
    assert 0.7 < planned.correlation[0] <= 1
    assert list(planned.lines()) == both.splitlines()


def test_a_guess_of_the_mean_plans_without_a_run(cli):
    ended = cli("plan-comparison", "--mean", 0.9, "--difference", -0.1, "--correlation", 1, "--power", 0.9)
    assert ended.code == 0
    assert "to see a score differ by -0.1 with a probability of 90%" in ended.out
    assert "how much several trials of a task help is unknown" in ended.out
    assert 50 < plan_comparison(mean=0.9, difference=-0.1, correlation=1).tasks[1] < 120


def test_what_cannot_be_planned_is_an_error():
    for asked, message in (
        ({}, "with an earlier run or with a guess of its mean: give one of them"),
        ({"mean": 1.5}, "mean must be between 0 and 1, found 1.5"),
        ({"mean": 0.5, "power": 1.0}, "power must be between 0 and 1, found 1"),
        ({"mean": 0.5, "correlation": -1.0}, "correlation must be between 0 and 1, found -1"),
        ({"mean": 0.5, "trials": 0}, "expected 1 to 100 trials, found 0"),
        ({"mean": 0.5, "trials": 10**9}, "expected 1 to 100 trials, found 1000000000"),
        ({"mean": 0.5, "trials": 3}, "a guess shows no task with several trials"),
        ({"mean": 0.95}, "a mean of 0.95 cannot change by 0.1"),
    ):
        with pytest.raises(ConfigError, match=message):
            plan_comparison(difference=0.1, **asked)


def test_runs_that_show_too_little_are_errors():
    alone, few = agent(1, trials=1), agent(1, tasks=5)
    with pytest.raises(
        ConfigError, match="run 1 shows no task with several trials, and so not how much 3 of them tell"
    ):
        plan_comparison(alone, difference=0.1, trials=3)
    with pytest.raises(ConfigError, match="runs 1 and 2 on 0 tasks: at least 10 must be in both"):
        plan_comparison(alone, difference=0.1, other=few)
    both = run([Sample.of([AIMessage("a")], reference="a")], [ToolCallF1(), ToolCallF1(name="other")])
    with pytest.raises(ConfigError, match="run 1 has 2 scorers; choose one with --scorer: tool_call_f1, other"):
        plan_comparison(both, difference=0.1)
    with pytest.raises(ConfigError, match="no scorer of run 1 is called 'bleu'"):
        plan_comparison(alone, "bleu", difference=0.1)
    with pytest.raises(ConfigError, match="another run gives the correlation"):
        plan_comparison(alone, difference=0.1, other=few, correlation=0.5)

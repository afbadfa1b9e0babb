"""Plans of comparisons: what they promise, and what earlier scores say about it."""

import numpy as np
import pytest

from judgekit.stats.comparison import mcnemar, paired_interval
from judgekit.stats.comparison_planning import TaskSpread, tasks_needed


def passes(tasks: int, trials: int, mean: float = 0.5) -> list[list[float]]:
    """Trials that pass or fail on tasks of unequal difficulty."""
    random = np.random.default_rng(1)
    chances = random.beta(2 * mean, 2 - 2 * mean, tasks)
    return (random.random((tasks, trials)) < chances[:, np.newaxis]).astype(float).tolist()


PASSES = passes(20_000, 3)


def test_the_variance_between_tasks_is_that_of_their_true_means():
    spread = TaskSpread(PASSES)
    assert spread.mean == pytest.approx(0.5, abs=0.01)
    assert spread.between == pytest.approx(1 / 12, abs=0.003)
    assert spread.has_trials
    assert TaskSpread(passes(20_000, 1)).between == pytest.approx(1 / 4, abs=0.003)


def test_differences_have_the_mean_and_the_variance_that_are_planned_for():
    for scores in (PASSES, [[x / 2 + 0.2 for x in task] for task in PASSES]):
        spread, within = TaskSpread(scores), np.var(scores, axis=1, ddof=1).mean()
        for trials in (1, 4):
            drawn = spread.draw(np.random.default_rng(2), 200_000, trials, -0.01, 0.75)
            assert drawn.mean() == pytest.approx(-0.01, abs=0.004)
            assert drawn.var() == pytest.approx(2 * (0.25 * spread.between + within / trials), rel=0.03)


def test_a_plan_is_met_with_the_probability_that_it_promises():
    tasks = tasks_needed(TaskSpread([[1.0]] * 90 + [[0.0]] * 10), -0.1, correlation=1)
    random, shown = np.random.default_rng(3), 0
    for _ in range(400):
        gains = -(random.random(tasks) < 0.1).astype(float)
        interval = paired_interval(gains)
        shown += interval is not None and interval.high < 0 and mcnemar(int(-gains.sum()), 0) < 0.05
    assert 0.75 <= shown / 400 <= 0.9


def test_more_trials_and_larger_differences_need_fewer_tasks(monkeypatch):
    monkeypatch.setattr("judgekit.stats.label_planning._DRAWS", 200)
    spread = TaskSpread(passes(200, 4))
    by_trials = [tasks_needed(spread, 0.3, trials=trials) for trials in (1, 3)]
    assert by_trials[0] > 1.5 * by_trials[1]
    assert tasks_needed(spread, 0.4) < by_trials[0]
    assert tasks_needed(spread, 0.3, correlation=1) < by_trials[0] < tasks_needed(spread, 0.3, power=0.95)
    assert tasks_needed(spread, 0.005) > 10_000  # by the normal distribution, at once


def test_a_change_of_all_that_can_change_needs_the_fewest_tasks_that_show_any():
    assert tasks_needed(TaskSpread([[1.0]] * 10), -1.0) == 6


@pytest.mark.parametrize("difference", [0.0, 0.6, -0.6, 1e-200, float("nan"), float("inf")])
def test_a_mean_that_cannot_change_so_much_is_an_error(difference: float):
    with pytest.raises(ValueError, match="cannot change by"):
        tasks_needed(TaskSpread([[1.0], [0.0]]), difference)


def test_a_task_alone_is_an_error():
    with pytest.raises(ValueError, match="expected at least 2 tasks, found 1"):
        TaskSpread([[1.0, 0.0]])

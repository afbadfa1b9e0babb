"""The number of tasks, and of trials of each, that a comparison of two runs needs."""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from judgekit.stats.comparison import mcnemar, paired_interval
from judgekit.stats.label_planning import smallest_enough
from judgekit.stats.quantiles import normal_quantile

_ALPHA = 0.05
_LEAST = 6
"""The fewest tasks by which signs alone show a difference; see `judgekit.stats.comparison.detectable_by_signs`."""
_SIMULATED = 2_000
"""The number of tasks beyond which the mean difference is as good as normal."""
_LARGE, _SMALL = 20_000, 1e-4


class TaskSpread:
    """The spread of scores between tasks, and between trials of one task, in an earlier run.

    Variances are estimated without bias for the number of trials. If a task has several trials, tasks with one are left out.

    Args:
        scores: The scores of the trials of each task, in [0, 1].

    Raises:
        ValueError: There are fewer than two tasks.

    Attributes:
        mean: The mean over tasks.
        between: The variance between tasks; with one trial each, all of the variance.
        has_trials: Whether a task has several trials, so that the variance between them is known.
    """

    def __init__(self, scores: Sequence[Sequence[float]]) -> None:
        kept = [np.array(trials) for trials in scores if len(trials) > 1]
        self.has_trials = len(kept) > 1
        kept = kept if self.has_trials else [np.array(trials[:1]) for trials in scores if trials]
        if len(kept) < 2:
            raise ValueError(f"expected at least 2 tasks, found {len(kept)}")
        means, counts = np.array([trials.mean() for trials in kept]), np.array([len(trials) for trials in kept])
        squares = sum(float(np.square(trials - trials.mean()).sum()) for trials in kept)
        self._within = squares / max(1, int((counts - 1).sum()))
        self.mean, variance = float(means.mean()), float(means.var(ddof=1))
        self.between = max(0.0, variance - self._within * float((1 / counts).mean()))
        self._means = self.mean + (means - self.mean) * sqrt(self.between / variance if variance else 0)
        self._passes_or_fails = bool(np.isin(np.concatenate(kept), (0, 1)).all())

    def draw(
        self, random: np.random.Generator, tasks: int, trials: int, difference: float, correlation: float
    ) -> NDArray[np.float64]:
        """Return the differences of new tasks between two runs, each the mean of ``trials`` trials in either run.

        With a probability of ``correlation``, a task is as hard in B as in A, otherwise as another task. Trials of 0 and 1 are
        drawn as such, and some of B change for the difference; other scores have normal noise, and shift.
        """
        before, other = (self._means[random.integers(len(self._means), size=tasks)] for _ in range(2))
        after = np.where(random.random(tasks) < correlation, before, other)
        if not self._passes_or_fails:
            return difference + after - before + random.normal(0, sqrt(2 * self._within / trials), tasks)
        changed = abs(difference) / ((1 - self.mean) if difference > 0 else self.mean)
        after = np.clip(after + changed * (float(difference > 0) - after), 0, 1)
        return (random.binomial(trials, after) - random.binomial(trials, before)) / trials


def tasks_needed(
    spread: TaskSpread,
    difference: float,
    *,
    trials: int = 1,
    correlation: float = 0.5,
    power: float = 0.8,
    seed: int = 0,
) -> int:
    """Return the number of tasks with which a comparison shows a difference with a probability of ``power``.

    It is shown if `judgekit.stats.comparison.paired_interval` of the tasks' differences is beyond 0, and, for one trial of 0s
    and 1s, `judgekit.stats.comparison.mcnemar` agrees. Up to 2,000 tasks are simulated, since the interval is wider than a
    normal one if few tasks differ. More than one trial needs a spread between trials; ``correlation`` is that of the tasks' true
    means in both runs.

    Raises:
        ValueError: The mean cannot change by this difference, or it is below 0.0001.
    """
    if not abs(difference) >= _SMALL or not 0 <= spread.mean + difference <= 1:
        raise ValueError(
            f"a mean of {spread.mean:.3g} cannot change by {difference:g}; differences from {_SMALL:g} can be planned for"
        )

    def is_shown(random: np.random.Generator, tasks: int) -> bool:
        gains = np.sign(difference) * spread.draw(random, tasks, trials, difference, correlation)
        # Scaled, as normal noise may leave the range of scores.
        interval, differing = paired_interval(gains / max(1.0, np.abs(gains).max())), gains[gains != 0]
        if interval is None or interval.low <= 0:
            return False
        if np.isin(differing, (-1, 1)).all():
            return mcnemar(int((differing < 0).sum()), int((differing > 0).sum())) < _ALPHA
        return 2.0 ** (1 - len(differing)) < _ALPHA

    large = spread.draw(np.random.default_rng(seed), _LARGE, trials, difference, correlation)
    quantiles = normal_quantile(1 - _ALPHA / 2) + normal_quantile(power)
    normal = ceil(float(large.var()) * (quantiles / difference) ** 2)
    if normal > _SIMULATED:
        return normal
    return smallest_enough(is_shown, _LEAST, _LARGE, power=power, seed=seed) or _LARGE

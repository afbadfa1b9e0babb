"""The number of tasks, and of trials of each, that a comparison of two runs needs."""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from judgekit.stats.comparison import mcnemar, paired_interval
from judgekit.stats.components import variance_components
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

    Variances are estimated without bias for the number of trials: `variance_components`. If a task has several trials, tasks
    with one are left out.

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
        kept = [trials for trials in scores if len(trials) > 1]
        self.has_trials = len(kept) > 1
        kept = kept if self.has_trials else [trials[:1] for trials in scores if trials]
        if len(kept) < 2:
            raise ValueError(f"expected at least 2 tasks, found {len(kept)}")
        self._counts = np.array([len(trials) for trials in kept])
        table = np.full((len(kept), self._counts.max()), np.nan)
        for task, trials in enumerate(kept):
            table[task, : len(trials)] = trials
        means = np.nanmean(table, axis=1)
        self.mean, variance = float(means.mean()), float(means.var(ddof=1))
        components = variance_components(table[:, np.newaxis])
        self.between = variance if components is None else components.item
        shrunk = sqrt(self.between / variance) if variance else 0.0
        self._effects = self.mean + shrunk * (means - self.mean)
        stretched = np.sqrt(self._counts / np.maximum(1, self._counts - 1))
        self._passes_or_fails = bool(np.isin(table[~np.isnan(table)], (0, 1)).all())
        self._noise = np.nan_to_num((table - means[:, np.newaxis]) * stretched[:, np.newaxis])

    def draw(
        self, random: np.random.Generator, tasks: int, trials: int, difference: float, correlation: float
    ) -> NDArray[np.float64]:
        """Return the differences of new tasks between two runs, each the mean of ``trials`` trials in either run.

        With a probability of ``correlation``, a task is as hard in B as in A, otherwise as another task. If all scores are 0 or 1,
        some of B change for the difference; others shift by it.
        """
        before = random.integers(len(self._effects), size=tasks)
        other = random.random(tasks) >= correlation
        after = np.where(other, random.integers(len(self._effects), size=tasks), before)
        a, b = (self._trials(random, side, trials) for side in (before, after))
        best = float(difference > 0)
        if self._passes_or_fails:
            b = np.where(random.random(b.shape) < difference / (best - self.mean), best, b)
        else:
            b += difference
        return np.asarray(b.mean(axis=1) - a.mean(axis=1), np.float64)

    def _trials(self, random: np.random.Generator, tasks: NDArray[np.intp], trials: int) -> NDArray[np.float64]:
        if self._passes_or_fails:
            passed = random.random((len(tasks), trials)) < self._effects[tasks, np.newaxis]
            return np.asarray(passed, np.float64)
        which = (random.random((len(tasks), trials)) * self._counts[tasks, np.newaxis]).astype(np.intp)
        return np.asarray(self._effects[tasks, np.newaxis] + self._noise[tasks[:, np.newaxis], which], np.float64)


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
        # Scaled, as noise that is stretched to an unbiased variance may leave the range of scores.
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

"""Plans of how many tasks, and trials of each, a comparison of two runs needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from statistics import covariance, fmean

from judgekit.errors import ConfigError, check_choice, count_text, join_limited
from judgekit.runs.results import Run
from judgekit.stats.comparison_planning import TaskSpread, tasks_needed

_TRIALS = (1, 2, 3, 5, 10)
_MOST_TRIALS = 100
_CORRELATION = 0.5
_FEWEST = 10
_GUESSED = 1_000
"""The number of tasks that stand for a guessed pass rate."""


@dataclass(frozen=True)
class ComparisonPlan:
    """The number of tasks that a comparison of two runs needs, by the number of trials of each task in each run.

    Attributes:
        scorer: The scorer whose scores are compared; empty if none is known.
        difference: The mean of the new run minus that of the old one.
        power: The probability with which `judgekit.compare` shows it.
        mean: The mean of the old run that is planned with, and where it is from.
        correlation: The correlation of the tasks' means in both runs that is planned with, and where it is from.
        tasks: The number of tasks, by the number of trials.
        has_trials: Whether the run shows how much trials of one task vary.
    """

    scorer: str
    difference: float
    power: float
    mean: tuple[float, str]
    correlation: tuple[float, str]
    tasks: Mapping[int, int]
    has_trials: bool

    def lines(self) -> Iterator[str]:
        """Yield the plan in words."""
        what = f"{self.scorer} differ" if self.scorer else "a score differ"
        yield f"to see {what} by {self.difference:+g} with a probability of {self.power:.0%}, score in each of the two runs:"
        for trials, tasks in self.tasks.items():
            of = f", {count_text(trials, 'trial')} of each" if trials > 1 else ""
            yield f"  {count_text(tasks, 'task')}{of}: {count_text(tasks * trials, 'sample')}"
        yield (
            f"planned with a mean of {self.mean[0]:.2f} ({self.mean[1]}) and a correlation of {self.correlation[0]:.2f} between "
            f"what tasks score in both runs ({self.correlation[1]})"
        )
        if not self.has_trials:
            yield "how much several trials of a task help is unknown: a run of groups with several samples shows it"


def plan_comparison(
    run: Run | None = None,
    scorer: str | None = None,
    *,
    difference: float,
    trials: int | None = None,
    mean: float | None = None,
    correlation: float | None = None,
    other: Run | None = None,
    power: float = 0.8,
) -> ComparisonPlan:
    """Return how many tasks, and trials of each, two runs need for `compare` to show a difference.

    It is shown if its 95 % interval is beyond 0 on the right side. Samples of one group are trials of one task. The plan is for
    one scorer; with several, p is adjusted, and a difference is shown less often.

    Args:
        run: An earlier run, whose scores vary as those of both runs will.
        scorer: One of its scorers; by default, the only one.
        difference: The mean of the new run minus that of the old one, such as 0.05.
        trials: The number of trials of each task; by default, several numbers.
        mean: Instead of a run, a guess of the share of tasks that pass.
        correlation: A guess of the correlation of the tasks' true means in both runs: 1 if a change moves all tasks alike, 0 if
            what is hard for one is no harder for the other. By default 0.5.
        other: Another earlier run on the same tasks, from which the correlation is estimated.
        power: The probability with which the difference is shown.

    Raises:
        ConfigError: Neither or both of run and mean are given, the run has fewer than two scored tasks, or no such scorer, or
            shows nothing about trials, or a number is out of range.
    """
    if (run is None) == (mean is None):
        raise ConfigError("a comparison is planned with an earlier run or with a guess of its mean: give one of them")
    for name, number in (("mean", mean), ("correlation", correlation), ("power", power)):
        if number is not None and not (0 <= number <= 1 if name == "correlation" else 0 < number < 1):
            raise ConfigError(f"{name} must be between 0 and 1, found {number:g}")
    if trials is not None and not 1 <= trials <= _MOST_TRIALS:
        raise ConfigError(f"expected 1 to {_MOST_TRIALS} trials, found {trials}")
    if other is not None and (run is None or correlation is not None):
        raise ConfigError("another run gives the correlation to a first run, and is given instead of it")
    if run is None:
        passing = round(_GUESSED * (mean or 0))
        scores: Sequence[Sequence[float]] = [[1.0]] * passing + [[0.0]] * (_GUESSED - passing)
        source, related = "a guess", (correlation, "a guess")
    else:
        scorer = _scorer(run, scorer)
        by_task = _by_task(run, scorer)
        scores, source = [*by_task.values()], f"run {run.number}"
        related = (correlation, "a guess") if other is None else _correlation(by_task, run, other, scorer)
    given = _CORRELATION if related[0] is None else related[0]
    try:
        spread = TaskSpread(scores)
        if trials is not None and trials > 1 and not spread.has_trials:
            raise ConfigError(f"{source} shows no task with several trials, and so not how much {trials} of them tell")
        numbers = _TRIALS if trials is None and spread.has_trials else (trials or 1,)
        tasks = {
            number: tasks_needed(spread, difference, trials=number, correlation=given, power=power)
            for number in numbers
        }
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return ComparisonPlan(
        scorer or "", difference, power, (spread.mean, source), (given, related[1]), tasks, spread.has_trials
    )


def _scorer(run: Run, name: str | None) -> str:
    names = [record.name for record in run.scorers]
    if name is None and len(names) != 1:
        has = f"run {run.number} has {count_text(len(names), 'scorer')}"
        raise ConfigError(f"{has}; choose one with --scorer: {join_limited(names, separator=', ')}")
    check_choice(f"scorer of run {run.number}", name or names[0], names)
    return name or names[0]


def _by_task(run: Run, scorer: str) -> Mapping[str, list[float]]:
    """Return the scores of each task, which is a group or a sample without one."""
    scores: dict[str, list[float]] = {}
    for row in run.rows(scorer=scorer):
        if row.score.value is not None:
            scores.setdefault(row.sample_id if row.group is None else row.group, []).append(row.score.value)
    return scores


def _correlation(by_task: Mapping[str, Sequence[float]], run: Run, other: Run, scorer: str) -> tuple[float, str]:
    """Return the correlation of the true means of tasks in two runs: their covariance over their own variances."""
    others = _by_task(other, _scorer(other, scorer))
    shared = [name for name in by_task if name in others]
    source = f"runs {run.number} and {other.number} on {count_text(len(shared), 'task')}"
    if len(shared) < _FEWEST:
        raise ConfigError(f"{source}: at least {_FEWEST} must be in both to show a correlation")
    sides = [[scores[name] for name in shared] for scores in (by_task, others)]
    variance = prod(TaskSpread(side).between for side in sides)
    observed = covariance(*([fmean(trials) for trials in side] for side in sides))
    return min(1.0, max(0.0, observed / sqrt(variance))) if variance else _CORRELATION, source

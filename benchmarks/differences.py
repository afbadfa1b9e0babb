"""How often intervals of differences cover the truth, and how often a gate that labels were planned for is met, simulated.

The tables, of which all are made unless some are named:

paired: the mean difference of paired scores, by `judgekit.stats.comparison.paired_interval` and by t alone.
corrected: the difference that people would see, with few labels, by `judgekit.stats.corrected_difference`.
plans: a gate on the lower bound of a corrected mean after the number of labels that
    `judgekit.stats.label_planning.labels_to_meet` plans for it.
tasks: what `judgekit.analysis.difference.compare_scorer` shows of a difference after the number of tasks that
    `judgekit.stats.comparison_planning.tasks_needed` plans by an earlier run.

python benchmarks/differences.py [TABLE ...] [--runs 2000]
"""

from collections.abc import Iterable
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tables import head, print_tables

from judgekit.analysis.difference import compare_scorer
from judgekit.analysis.sample_pairs import ScoredPairs
from judgekit.stats.comparison import paired_interval
from judgekit.stats.comparison_planning import TaskSpread, tasks_needed
from judgekit.stats.corrected_difference import LabeledTasks, corrected_difference
from judgekit.stats.intervals import t_interval
from judgekit.stats.label_planning import labels_to_meet
from judgekit.stats.prediction_powered import PPIMean, ppi_mean
from judgekit.stats.units import Units
from judgekit.stats.wilson import Interval

Random: TypeAlias = np.random.Generator
Values: TypeAlias = NDArray[np.float64]
TASKS = 200
LABELS = (10, 15, 20, 30, 60)
JUDGES = (  # what people pass of A and of B; what the judge passes of what they pass and of what they fail, of A and of B
    ((0.6, 0.7), ((0.9, 0.2), (0.9, 0.5))),
    ((0.95, 0.95), ((0.95, 0.2), (0.95, 0.5))),
    ((0.95, 0.95), ((0.99, 0.05), (0.99, 0.05))),
    ((0.9, 0.8), ((0.9, 0.1), (0.9, 0.1))),
    ((0.5, 0.5), ((0.6, 0.4), (0.6, 0.4))),
)
DESIGNS = ("same tasks", "other tasks", "by verdict", "tasks of 5 trials")


def cell(intervals: Iterable[Interval | None], truth: float) -> str:
    """Return the percentages that cover the truth, are above it, and are below it, and the mean width."""
    bounds = np.array([(interval.low, interval.high) for interval in intervals if interval is not None])
    above, below = 100 * (bounds[:, 0] > truth + 1e-9).mean(), 100 * (bounds[:, 1] < truth - 1e-9).mean()
    return f"{100 - above - below:.1f}, {above:.1f}, {below:.1f}, {np.diff(bounds).mean():.3f}"


def signs(random: Random, n: int, better: float, worse: float) -> tuple[Values, None]:
    drawn = random.random(n)
    return np.where(drawn < better, 1.0, np.where(drawn < better + worse, -1.0, 0.0)), None


def graded(random: Random, n: int, share: float, amounts: tuple[float, ...]) -> tuple[Values, None]:
    return np.where(random.random(n) < share, random.choice(amounts, n), 0.0), None


def smooth(random: Random, n: int, mean: float, deviation: float) -> tuple[Values, None]:
    return np.clip(random.normal(mean, deviation, n), -1, 1), None


def trials(random: Random, sizes: tuple[int, int]) -> tuple[Values, NDArray[np.intp]]:
    """Differences of two equal systems on 30 tasks of unequal difficulty."""
    groups = np.arange(30).repeat(random.integers(sizes[0], sizes[1] + 1, 30))
    chances = random.beta(0.5, 0.5, 30)[groups]
    return (random.random(len(groups)) < chances) * 1.0 - (random.random(len(groups)) < chances), groups


def paired(runs: int) -> None:
    head("differences", "two pairs added: covers, above, below, width", "t alone")
    for name, truth, draw in (
        *(
            (f"{n} pairs, {better:.1%} better, {worse:.1%} worse", better - worse, partial(signs, n=n, better=better, worse=worse))
            for n, better, worse in (
                (20, 0.0, 0.1), (50, 0.0, 0.1), (100, 0.0, 0.05), (200, 0.0, 0.02), (400, 0.0, 0.02),
                (50, 0.02, 0.1), (100, 0.01, 0.06), (200, 0.005, 0.02), (20, 0.1, 0.2), (400, 0.1, 0.1),
            )
        ),
        *(
            (f"{n} pairs, {share:.0%} differ by {', '.join(map(str, amounts))}", share * float(np.mean(amounts)), partial(graded, n=n, share=share, amounts=amounts))
            for n, share in ((20, 0.3), (100, 0.05))
            for amounts in ((-0.25, -0.5), (-0.05, 0.05), (-1, -0.1, -0.1, -0.1))
        ),
        *((f"{n} pairs, -0.05 ± {deviation}", -0.05, partial(smooth, n=n, mean=-0.05, deviation=deviation)) for n, deviation in ((10, 0.05), (50, 0.2))),
        *((f"30 tasks of {sizes[0]} to {sizes[1]} trials", 0.0, partial(trials, sizes=sizes)) for sizes in ((5, 5), (1, 8))),
    ):  # fmt: skip
        drawn = [draw(random) for random in [np.random.default_rng(5)] for _ in range(runs)]
        alone = [t_interval(Units.of(*pair)) or Interval(np.mean(pair[0]), np.mean(pair[0]), "t") for pair in drawn]
        print(
            f"| {name} | {cell((paired_interval(*pair) for pair in drawn), truth)} | {cell(alone, truth)} |", flush=True
        )


def labeled(random: Random, design: str, judged: list[Values], n: int) -> list[NDArray[np.intp]]:
    """Return the labeled tasks of A and of B."""
    tasks = random.permutation(TASKS)
    if design == "other tasks":
        return [tasks[:n], tasks[n : 2 * n]]
    if design == "by verdict":
        return [
            np.concatenate([random.permutation(np.flatnonzero(side == verdict))[: n // 2] for verdict in (0, 1)])
            for side in judged
        ]
    if design == "tasks of 5 trials":
        return [np.flatnonzero(np.isin(np.arange(TASKS) // 5, random.permutation(TASKS // 5)[: n // 5]))] * 2
    return [tasks[:n]] * 2


def corrected(runs: int) -> None:
    head(
        "people pass; judge passes of what they pass, fail",
        "labels",
        *(f"{n}: covers, above, below, width" for n in LABELS),
    )
    for shares, rates in JUDGES:
        for design in DESIGNS:
            size = 5 if "trials" in design else 1
            cells: list[str] = []
            for n in LABELS:
                random, intervals = np.random.default_rng(6), list[Interval | None]()
                for _ in range(runs):
                    shared = np.repeat(random.normal(size=TASKS // size), size)
                    truths = [
                        ((shared + random.normal(size=TASKS)) / sqrt(2) < NormalDist().inv_cdf(share)).astype(float)
                        for share in shares
                    ]
                    judged = [
                        (random.random(TASKS) < np.where(truth == 1, passed, failed)).astype(float)
                        for truth, (passed, failed) in zip(truths, rates, strict=True)
                    ]
                    sides: list[LabeledTasks] = []
                    for truth, verdicts, tasks in zip(truths, judged, labeled(random, design, judged, n), strict=True):
                        labels = np.full(TASKS, np.nan)
                        labels[tasks] = truth[tasks]
                        strata = verdicts.astype(int) if design == "by verdict" else None
                        sides.append(LabeledTasks(verdicts, labels, strata=strata))
                    difference = corrected_difference(sides[0], sides[1], np.arange(TASKS) // size)
                    intervals.append(difference and difference.interval)
                cells.append(cell(intervals, shares[1] - shares[0]))
            print(f"| {shares}; {rates} | {design} | {' | '.join(cells)} |", flush=True)


def plans(runs: int) -> None:
    head("people pass", "gate", "sensitivity, specificity", "samples", "labels planned", "gate met")
    for share, bound in ((0.97, 0.87), (0.97, 0.90), (0.90, 0.80), (0.75, 0.65), (0.5, 0.4)):
        for sensitivity, specificity in ((0.95, 0.8), (0.8, 0.6)):
            for samples in (500, 2_000):

                def is_met(mean: PPIMean | None, bound: float = bound) -> bool:
                    return mean is not None and mean.interval.low >= bound

                passed = share * sensitivity + (1 - share) * (1 - specificity)
                phi = (sensitivity + specificity - 1) * sqrt(share * (1 - share) / passed / (1 - passed))
                n = labels_to_meet(is_met, share, passed, phi, samples)
                if n is None:
                    raise RuntimeError("expected a plan")
                random, met = np.random.default_rng(7), 0
                for _ in range(runs):
                    human = random.random(samples) < share
                    rates = np.where(human, sensitivity, 1 - specificity)
                    judged = (random.random(samples) < rates).astype(float)
                    met += is_met(ppi_mean(human[:n].astype(float), judged[:n], judged[n:]))
                print(
                    f"| {share} | >= {bound} | {sensitivity}, {specificity} | {samples:,} | {n} | {met / runs:.0%} |",
                    flush=True,
                )


def logistic(values: Values) -> Values:
    return 1 / (1 + np.exp(-values))


class System:
    """Tasks of unequal difficulty, on which two systems differ by a difference of their means.

    A trial passes or fails; has a score from 1 to 5; or, in nine of ten, passes or fails, and else has an F1 in between.
    """

    def __init__(self, kind: str, mean: float, hardness: float, related: float, difference: float) -> None:
        self.kind, self.hardness, self.related = kind, hardness, related
        random, shifts = np.random.default_rng(8), list[float]()
        for wanted in (mean, mean + difference):
            low, high = -20.0, 20.0
            for _ in range(40):
                middle = (low + high) / 2
                chances = logistic(middle + hardness * np.random.default_rng(8).normal(size=50_000))
                low, high = (middle, high) if chances.mean() < wanted else (low, middle)
            shifts.append(low)
        self.shifts = shifts
        a, b = self.chances(random, 50_000)
        self.correlation = float(np.corrcoef(a, b)[0, 1])

    def chances(self, random: Random, tasks: int) -> tuple[Values, Values]:
        shared, own = random.normal(size=tasks), random.normal(size=tasks)
        other = self.related * shared + sqrt(1 - self.related**2) * own
        return logistic(self.shifts[0] + self.hardness * shared), logistic(self.shifts[1] + self.hardness * other)

    def trials(self, random: Random, chances: Values, trials: int) -> Values:
        each = chances[:, np.newaxis].repeat(trials, axis=1)
        if self.kind == "1 to 5":
            return random.binomial(4, each) / 4
        passed = (random.random(each.shape) < each).astype(float)
        if self.kind == "F1":
            return np.where(
                random.random(each.shape) < 0.1, np.clip(each + random.uniform(-0.1, 0.1, each.shape), 0, 1), passed
            )
        return passed


def tasks(runs: int) -> None:
    head("scores", "mean of A", "hardness, relation", "difference", "trials", "earlier run", "tasks planned", "shown")
    cells = (
        *(("pass or fail", 0.6, hardness, 0.7, 0.1, trials) for hardness in (1.0, 3.0) for trials in (1, 3, 5)),
        *(("pass or fail", 0.6, 1.0, 0.7, difference, 3) for difference in (0.05, 0.2)),
        *(("pass or fail", 0.9, 2.0, 0.9, difference, trials) for difference in (0.05, -0.1) for trials in (1, 4)),
        *((kind, 0.7, 1.0, 0.8, difference, trials) for kind in ("1 to 5", "F1") for difference in (0.04, -0.1) for trials in (1, 3)),
    )  # fmt: skip
    for kind, mean, hardness, related, difference, trials in cells:
        system = System(kind, mean, hardness, related, difference)
        for earlier, plans in ((2_000, 1), (100, 5))[: 1 + (trials == 3)]:
            random, shown, planned = np.random.default_rng(9), 0, list[int]()
            each = max(1, min(runs, 1_000) // plans)
            for _ in range(plans):
                known = system.trials(random, system.chances(random, earlier)[0], 4)
                n = tasks_needed(
                    TaskSpread(known.tolist()), difference, trials=trials, correlation=max(0.0, system.correlation)
                )
                planned.append(n)
                for _ in range(each):
                    a, b = (system.trials(random, side, trials).ravel() for side in system.chances(random, n))
                    numbers = np.arange(len(a))
                    found, _, _ = compare_scorer(
                        "s",
                        ScoredPairs(numbers, numbers, a, b, numbers // trials, [None] * len(a), [None] * len(a), {}),
                    )
                    interval = found.interval
                    beyond = interval is not None and (interval.low > 0 if difference > 0 else interval.high < 0)
                    shown += beyond and found.p is not None and found.p < 0.05
            print(
                f"| {kind} | {mean} | {hardness}, {system.correlation:.2f} | {difference:+} | {trials} | {earlier} tasks | {np.mean(planned):.0f} | {shown / plans / each:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    print_tables([paired, corrected, plans, tasks], __doc__, runs=2_000)

"""What judgekit claims of intervals and alignments, simulated: rates, uneven groups, trials, agreement, copies and looks.

The tables, of which all are made unless some are named; other claims are in coverage.py, differences.py, align.py and
guarantee.py:

rates: the share of samples that pass, by Wilson's interval.
sizes: the mean over tasks with very unequal numbers of trials, by `judgekit.stats.intervals.mean_interval`.
passes: pass@k and pass^k, by `judgekit.stats.trials.mean_over_tasks`.
agreement: kappa and AC1, by `judgekit.stats.agreement.AgreementTables`.
copies: what is claimed of runs in which each recording is there several times, by `judgekit.runs.units.RunUnits` and without.
looks: how often one of ten equal questions is shown to be better, with looks at their test labels counted and without.

python benchmarks/claims.py [TABLE ...] [--runs 1000]
"""

from collections.abc import Iterable
from itertools import product
from math import prod
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tables import head, print_tables

from judgekit import HumanMessage, Sample
from judgekit.alignment.looks import Look, count_look, sketch
from judgekit.alignment.verdict import JudgedSamples, choose, holdout_verdict
from judgekit.runs.units import CopiedRecording, RunUnits
from judgekit.stats.agreement import AgreementTables, table_ac1, table_kappa
from judgekit.stats.comparison import paired_interval
from judgekit.stats.intervals import mean_interval
from judgekit.stats.prediction_powered import ppi_mean
from judgekit.stats.trials import mean_over_tasks, pass_at_k, pass_hat_k
from judgekit.stats.wilson import Interval, wilson

Random: TypeAlias = np.random.Generator
Values: TypeAlias = NDArray[np.float64]
CANDIDATES, RIGHT, RHO = 8, 0.8, 0.6
"""As in align.py: the candidates, how often each is right, and how alike their errors are."""
LOOKS = 10


def covers(intervals: Iterable[Interval | None], truth: float) -> str:
    return f"{100 * np.mean([one is not None and one.low - 1e-9 <= truth <= one.high + 1e-9 for one in intervals]):.1f}"


def rates(runs: int) -> None:
    sizes = (10, 30, 100, 300)
    head("pass", *(f"{n} samples" for n in sizes))
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        random = np.random.default_rng(1)
        cells = [covers((wilson(int(x), n) for x in random.binomial(n, share, runs)), share) for n in sizes]
        print(f"| {share:.0%} | {' | '.join(cells)} |", flush=True)


def sizes(runs: int) -> None:
    head("pass, tasks, trials", "covers", "lower bound above")
    for share, tasks, shape in product((0.5, 0.9), (30, 100), ("a Pareto tail", "one task has a third")):
        random, intervals = np.random.default_rng(2), list[Interval | None]()
        for _ in range(runs):
            trials = (
                np.minimum(200, 1 + random.pareto(1.2, tasks)).astype(int) if "Pareto" in shape else np.full(tasks, 4)
            )
            if "third" in shape:
                trials[0] = 2 * tasks
            groups = np.arange(tasks).repeat(trials)
            chances = random.beta(share * 2, (1 - share) * 2, tasks)
            intervals.append(mean_interval((random.random(len(groups)) < chances[groups]).astype(float), groups))
        above = 100 * np.mean([one is not None and one.low > share for one in intervals])
        print(f"| {share:.0%}, {tasks}, {shape} | {covers(intervals, share)} | {above:.1f} |", flush=True)


def passes(runs: int) -> None:
    ks, trials = (2, 4), 5
    head("pass, tasks", *(f"{name}{k}" for name in ("pass@", "pass^") for k in ks))
    for share, tasks in product((0.1, 0.5, 0.9), (30, 100)):
        a, b, cells = share * 2, (1 - share) * 2, list[str]()
        for estimate, k in product((pass_at_k, pass_hat_k), ks):
            random, (first, second) = np.random.default_rng(3), (a, b) if estimate is pass_hat_k else (b, a)
            all_same = prod((first + at) / (first + second + at) for at in range(k))
            truth = all_same if estimate is pass_hat_k else 1 - all_same
            drawn = (random.binomial(trials, random.beta(a, b, tasks)) for _ in range(runs))
            means = [
                mean_over_tasks(estimate, [(trials, int(c), at) for at, c in enumerate(x)], k).interval for x in drawn
            ]
            cells.append(covers(means, truth))
        print(f"| {share:.0%}, {tasks} | {' | '.join(cells)} |", flush=True)


def agreement(runs: int) -> None:
    sizes = (10, 30, 100)
    head("people pass; judge right", *(f"{name}, {n}" for name in ("kappa", "AC1") for n in sizes))
    for share, right in product((0.5, 0.8, 0.98), (0.85, 0.95)):
        exact = np.array([[(1 - share) * right, (1 - share) * (1 - right)], [share * (1 - right), share * right]])
        cells: list[str] = []
        for statistic, n in product((table_kappa, table_ac1), sizes):
            random, truth, intervals = np.random.default_rng(4), float(statistic(exact)), list[Interval | None]()
            for _ in range(runs):
                human = random.random(n) < share
                judged = np.where(random.random(n) < right, human, ~human)
                tables = AgreementTables.of(human.astype(float), judged.astype(float), values=[0.0, 1.0])
                intervals.append(tables.figure(statistic)[1])
            cells.append(covers(filter(None, intervals), truth))
        print(f"| {share:.0%}; {right:.0%} | {' | '.join(cells)} |", flush=True)


def judged(random: Random, human: Values, shared: Values, groups: list[str | None]) -> JudgedSamples:
    """Return new candidates as good as the old question, whose errors are the same on copies of a recording."""
    least = NormalDist().inv_cdf(RIGHT)
    own = random.standard_normal((CANDIDATES, len(human)))
    old = np.random.default_rng(int(abs(shared[0]) * 1e6)).standard_normal(len(human))
    errors = (np.sqrt(RHO) * shared + np.sqrt(1 - RHO) * np.vstack([old, own]) > least).astype(float)
    return JudgedSamples(human, groups, errors[0], errors[1:])


def copied(samples: JudgedSamples, copies: int, groups: list[str | None]) -> JudgedSamples:
    human, base = (side.repeat(copies) for side in (samples.human_values, samples.base))
    return JudgedSamples(human, groups, base, samples.candidates.repeat(copies, axis=1))


def copies(runs: int) -> None:
    head(
        "copies of each",
        "",
        "mean covers",
        "corrected mean covers",
        "difference covers",
        "shown without a gain",
    )
    recordings, labels, test = 100, 60, 55
    for times in (1, 2, 3, 5):
        named = RunUnits(CopiedRecording(at, None, times, at * times) for at in range(recordings) if times > 1)
        units: list[str | None] = [named.of(None, at) for at in range(recordings) for _ in range(times)]
        for way, groups in (("as before", [None] * len(units)), ("one unit", units)):
            random = np.random.default_rng(5)
            means, corrected, differences = list[Interval | None](), list[Interval | None](), list[Interval | None]()
            shown = 0
            for _ in range(runs):
                human = (random.random(recordings) < 0.7).astype(float)
                verdicts = np.where(random.random(recordings) < 0.85, human, 1 - human).repeat(times)
                other = (random.random(recordings) < 0.7).astype(float).repeat(times)
                human = human.repeat(times)
                means.append(mean_interval(human, groups))
                differences.append(paired_interval(other - human, groups))
                order = random.permutation(len(human))
                some, rest = order[: labels * times // 2], order[labels * times // 2 :]
                mean = ppi_mean(
                    human[some],
                    verdicts[some],
                    verdicts[rest],
                    groups=[groups[at] for at in some],
                    unlabeled_groups=[groups[at] for at in rest],
                )
                corrected.append(mean and mean.interval)
                truth = (random.random(recordings) < 0.5).astype(float)
                alone = judged(random, truth, random.standard_normal(recordings), [None] * recordings)
                samples = copied(alone, times, groups)
                tested = np.arange(len(groups)) >= (recordings - test) * times
                chosen = choose(samples.only(~tested))
                shown += holdout_verdict(samples.only(tested), chosen).outcome == "shown"
            print(
                f"| {times} | {way} | {covers(means, 0.7)} | {covers(corrected, 0.7)} | {covers(differences, 0)} | "
                f"{shown / runs:.1%} |",
                flush=True,
            )


def counted(texts: Iterable[list[str]]) -> list[int]:
    """Return the numbers of looks at test sets of recordings with these texts."""
    with TemporaryDirectory() as folder:
        looks = [
            Look(
                alignment=f"{number:012x}",
                tested=tuple(sketch(Sample.of([HumanMessage(text)], id="it")) for text in every),
            )
            for number, every in enumerate(texts)
        ]
        return [count_look(look, Path(folder)) for look in looks]


def looks(runs: int) -> None:
    head("ten equal questions", "level at each", "one of them shown")
    validation, test = 25, 55
    texts = [f"recording {at} says {at * at} and {at + 7} things of {at % 7} kinds" for at in range(validation + test)]
    for name, numbers in (
        ("one name, one alignment", [1]),
        ("ten names, as before", [1] * LOOKS),
        ("ten names", counted([texts] * LOOKS)),
        (
            "ten names, a dot more in each recording",
            counted([f"{text}{'.' * at}" for text in texts] for at in range(LOOKS)),
        ),
    ):
        random, shown = np.random.default_rng(6), 0
        for _ in range(runs):
            human = (random.random(validation + test) < 0.5).astype(float)
            shared, outcomes = random.standard_normal(len(human)), set[str]()
            for look in numbers:
                samples = judged(random, human, shared, [None] * len(human))
                tested = np.isin(np.arange(len(human)), np.arange(validation, len(human)))
                if "dot" in name:  # which gives each recording another role
                    tested = random.permutation(tested)
                chosen = choose(samples.only(~tested))
                outcomes.add(holdout_verdict(samples.only(tested), chosen, look=look).outcome)
            shown += "shown" in outcomes
        levels = f"look {numbers[0]} to {numbers[-1]}" if numbers[-1] > 1 else "look 1"
        print(f"| {name} | {levels} | {shown / runs:.1%} |", flush=True)


if __name__ == "__main__":
    print_tables([rates, sizes, passes, agreement, copies, looks], __doc__, runs=1_000)

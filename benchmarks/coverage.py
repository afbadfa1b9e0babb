"""How often intervals at 95 % cover the truth, and how wide they are on average, by simulation and on votes of MT-Bench.

The tables, of which all are made unless some are named:

trials: the mean of repeated trials of tasks, by the modified Wilson interval and by cluster-robust t.
scale: the mean of scores on a scale from 1 to 5, by the modified Wilson interval and by t.
corrected: the mean that people would give. Beside PPI++ stand the judge's own interval, over all samples, and PPI++ by the
    delta method on the logit scale.
votes: the same, drawn from the votes of Zheng et al. 2023, which need --votes: a file of
    https://huggingface.co/datasets/lmsys/mt_bench_human_judgments as lines with judge, model_a, model_b, question_id, turn
    and winner. Those of experts stand for people, and those of GPT-4 for a judge.
known: the mean corrected by Rogan-Gladen.

python benchmarks/coverage.py [TABLE ...] [--votes VOTES.jsonl.gz]
"""

import argparse
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from judgekit.stats.comparison import paired_interval
from judgekit.stats.intervals import Interval, mean_interval, wilson
from judgekit.stats.misclassification import rogan_gladen
from judgekit.stats.prediction_powered import PPIMean, Stratum, stratified_ppi_mean
from judgekit.stats.units import Groups

RUNS = 2_000
DRAWS = 1_000
LABELS = (10, 20, 60, 100, 150)
FEW = 20
OTHERS = 500
CORRELATIONS = (0.3, 0.4)
SHARES = (0.5, 0.9, 0.98)
TASKS = (10, 30, 100)
TRIALS = ((5, 5), (1, 8))
"""The least and the most of a task."""
SCALES = (  # how often each of the scores 1 to 5 is given
    (0.05, 0.10, 0.20, 0.35, 0.30),
    (0.02, 0.03, 0.05, 0.20, 0.70),
    (0.03, 0.02, 0.05, 0.80, 0.10),
    (0.01, 0.01, 0.03, 0.05, 0.90),
    (0.01, 0.01, 0.01, 0.02, 0.95),
    (0.00, 0.00, 0.00, 0.05, 0.95),
)
SCORED = (20, 50, 200)
ERRORS = ((0.5, 0.9, 0.8), (0.9, 0.9, 0.7), (0.2, 0.8, 0.99), (0.8, 0.6, 0.6), (0.5, 0.5, 0.5))
BEST_FIRST = ("gpt-4", "gpt-3.5-turbo", "claude-v1", "vicuna-13b-v1.2", "alpaca-13b", "llama-13b")
Random: TypeAlias = np.random.Generator
Values: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Random, int], tuple[Values, Values]]
Case: TypeAlias = tuple[list[Stratum], Values]
"""What is drawn, and all judged values."""


def binary(share: float, sensitivity: float, specificity: float) -> Draw:
    def draw(random: Random, size: int) -> tuple[Values, Values]:
        people = random.random(size) < share
        right = random.random(size) < np.where(people, sensitivity, specificity)
        return people.astype(float), np.where(right, people, ~people).astype(float)

    return draw


def smooth(random: Random, size: int) -> tuple[Values, Values]:
    people = random.beta(2, 2, size)
    return people, np.clip(people + random.normal(0, 0.15, size), 0, 1)


def skewed(random: Random, size: int) -> tuple[Values, Values]:
    people = np.where(random.random(size) < 0.9, 1, random.random(size))
    return people, np.clip(people + random.normal(-0.1, 0.2, size), 0, 1)


def alone(draw: Draw) -> Callable[[Random, int], Case]:
    def case(random: Random, n: int) -> Case:
        people, judged = draw(random, n + OTHERS)
        return [Stratum(people[:n], judged[:n], judged[n:], 1)], judged

    return case


def by_verdict(draw: Draw) -> Callable[[Random, int], Case]:
    """As many labels of each verdict."""

    def case(random: Random, n: int) -> Case:
        people, judged = draw(random, n + OTHERS)
        kinds = [np.flatnonzero(judged == verdict) for verdict in (0, 1)]
        half = n // 2
        strata = [
            Stratum(people[kind[:half]], judged[kind[:half]], judged[kind[half:]], len(kind) / len(people))
            for kind in kinds
        ]
        return strata, judged

    return case


def labelled_trials(random: Random, n: int) -> Case:
    """Tasks of 5 trials that are all labelled, or none of them; the variance between tasks is half of the whole."""
    tasks = (n + OTHERS) // 5
    share, strictness = random.beta(0.5, 0.5, tasks).repeat(5), random.beta(8, 2, tasks).repeat(5)
    people = random.random(5 * tasks) < share
    right = random.random(5 * tasks) < np.where(people, 0.9, strictness)
    judged, groups = np.where(right, people, ~people).astype(float), np.arange(tasks).repeat(5)
    return [Stratum(people[:n], judged[:n], judged[n:], 1, groups[:n], groups[n:])], judged


DESIGNS: dict[str, tuple[float, Callable[[Random, int], Case]]] = {
    "half pass, judge right 85 %": (0.5, alone(binary(0.5, 0.85, 0.85))),
    "half pass, judge right 99 %": (0.5, alone(binary(0.5, 0.99, 0.99))),
    "half pass, judge by chance": (0.5, alone(binary(0.5, 0.5, 0.5))),
    "80 % pass, lenient judge": (0.8, alone(binary(0.8, 0.9, 0.6))),
    "70 % pass, misses few": (0.7, alone(binary(0.7, 0.99, 0.8))),
    "30 % pass, strict judge": (0.3, alone(binary(0.3, 0.8, 0.97))),
    "95 % pass, lenient judge": (0.95, alone(binary(0.95, 0.97, 0.7))),
    "values in between": (0.5, alone(smooth)),
    "values in between, 90 % are 1": (0.95, alone(skewed)),
    "tasks of 5 trials": (0.5, labelled_trials),
    "80 % pass, by verdict": (0.8, by_verdict(binary(0.8, 0.9, 0.8))),
    "50 % pass, by verdict": (0.5, by_verdict(binary(0.5, 0.9, 0.9))),
}


def on_logit_scale(found: PPIMean | None) -> Interval:
    """The delta method, from the half width without bounds; all of [0, 1] where the mean has no logit."""
    if found is None or not 0 < found.value < 1:
        return Interval(0, 1, "logit")
    half = (found.interval.high - found.interval.low) / 2 / (found.value * (1 - found.value))
    return Interval(float(expit(logit(found.value) - half)), float(expit(logit(found.value) + half)), "logit")


def cell(intervals: list[Interval], truth: float) -> str:
    if not intervals:
        return "none"
    covered = np.mean([one.low <= truth <= one.high for one in intervals])
    return f"{100 * covered:.1f}, {np.mean([one.high - one.low for one in intervals]):.2f}"


def line(name: str, truth: float, cases: Callable[[int], Iterable[Case]]) -> None:
    """How often each interval covers the truth, of the same draws, for each number of labels."""
    ours: dict[int, list[PPIMean]] = {}
    judge: list[Interval] = []
    scaled: list[Interval] = []
    for n in LABELS:
        drawn = list(cases(n))
        ours[n] = [one for strata, _ in drawn if (one := stratified_ppi_mean(strata))]
        if n == FEW:
            judge = [one for _, judged in drawn if (one := mean_interval(judged))]
            scaled = [on_logit_scale(stratified_ppi_mean(strata, bounded=False)) for strata, _ in drawn]
    cells = [cell(judge, truth), cell(scaled, truth)]
    cells += [cell([one.interval for one in found], truth) for found in ours.values()]
    cells += [f"{np.median([one.worth for one in ours[n]]):.0f}" for n in LABELS[-1:]]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def head(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")


def heading(what: str) -> None:
    head(
        what,
        "judge alone",
        f"logit scale, {FEW} labels",
        *(f"PPI++, {n}" for n in LABELS),
        f"{LABELS[-1]} are worth",
    )


def simulations() -> None:
    heading("simulated")
    for name, (truth, case) in DESIGNS.items():
        line(name, truth, lambda n, case=case: map(case, repeat(np.random.default_rng(n), RUNS), repeat(n)))


def votes(path: Path) -> dict[str, tuple[Values, Values]]:
    """What experts say, and what GPT-4 says of the same answers: 1 for the first model, 0 for the second, 0.5 for a tie."""
    with gzip.open(path, "rt") as file:
        rows = [json.loads(row) for row in file]
    experts: list[tuple[tuple[str, str, int, int], float]] = []
    gpt_4: dict[tuple[str, str, int, int], float] = {}
    for row in rows:
        first, second = sorted((row["model_a"], row["model_b"]), key=BEST_FIRST.index)
        value = float(row[row["winner"]] == first) if row["winner"] in row else 0.5
        if row["judge"].startswith("expert"):
            experts.append(((first, second, row["question_id"], row["turn"]), value))
        elif row["judge"] == "gpt4_pair":
            gpt_4[first, second, row["question_id"], row["turn"]] = value
    both = np.array([(value, gpt_4[item]) for item, value in experts])
    turn = np.array([item[3] for item, _ in experts])
    of_gpt_4 = np.array([item[0] == "gpt-4" for item, _ in experts])
    decided = (both != 0.5).all(axis=1)
    chosen = {
        "better model wins, turn 1": (turn == 1) & decided,
        "the same with ties": turn == 1,
        "better model wins, both turns": decided,
        "the same with ties, both turns": turn > 0,
        "GPT-4 wins, by GPT-4": of_gpt_4 & decided,
        "the same with ties, by GPT-4": of_gpt_4,
    }
    return {f"{name}: {rows.sum():,} votes": (both[rows, 0], both[rows, 1]) for name, rows in chosen.items()}


def drawn(people: Values, judged: Values, n: int) -> Iterator[Case]:
    random = np.random.default_rng(n)
    for _ in range(DRAWS):
        some, others = np.split(random.permutation(len(people)), [n])
        yield [Stratum(people[some], judged[some], judged[others], 1)], judged


def errors() -> None:
    """Rogan-Gladen, with as many known positives as negatives, of 1,000 verdicts; where it is mostly refused, apart."""
    columns = ("known", "judge alone", "Rogan-Gladen", "refused")
    head("pass, sensitivity, specificity", *columns)
    apart: list[str] = []
    for share, sensitivity, specificity in ERRORS:
        for known in (20, 60, 150):
            random = np.random.default_rng(known)
            half = known // 2
            positives = random.binomial(1_000, share * sensitivity + (1 - share) * (1 - specificity), RUNS)
            tp, tn = random.binomial(half, sensitivity, RUNS), random.binomial(half, specificity, RUNS)
            judge: list[Interval] = []
            found: list[Interval] = []
            for x, right, left in zip(positives.tolist(), tp.tolist(), tn.tolist(), strict=True):
                judge += filter(None, [wilson(x, 1_000)])
                of = rogan_gladen(x, 1_000, right, half - left, half - right, left)
                found += filter(None, [of and of.interval])
            refused = 1 - len(found) / RUNS
            rates = f"{share:.0%}, {sensitivity:.0%}, {specificity:.0%}"
            row = f"| {rates} | {known} | {cell(judge, share)} | {cell(found, share)} | {100 * refused:.0f} % |"
            if refused > 1 / 2:
                apart.append(row)
            else:
                print(row, flush=True)
    head("refused in over half of the runs", *columns)
    print("\n".join(apart))


def voted(path: Path | None) -> None:
    if path is None:
        return
    heading("drawn from MT-Bench")
    for name, (people, judged) in votes(path).items():
        line(name, float(people.mean()), partial(drawn, people, judged))


def by_t(values: Values, groups: Groups | None) -> Interval | None:
    """t as for differences, which lie in [-1, 1], brought to [0, 1]."""
    found = paired_interval(2 * values - 1, groups)
    return found and found._replace(low=(1 + found.low) / 2, high=(1 + found.high) / 2)


def beside_t(name: str, truth: float, draws: Iterable[tuple[Values, Groups | None]]) -> None:
    """How often t and the modified Wilson interval cover the truth, and how often their lower bounds are above it."""
    found = [(by_t(values, groups), mean_interval(values, groups)) for values, groups in draws]
    cells: list[str] = []
    for intervals in zip(*found, strict=True):
        given = [one for one in intervals if one is not None]
        covered, width = cell(given, truth).split(", ")
        cells.append(f"{covered}, {100 * np.mean([one.low > truth for one in given]):.1f}, {width}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def passed(random: Random, within: float, share: float, tasks: int, least: int, most: int) -> tuple[Values, Groups]:
    """From ``least`` to ``most`` trials of each task, which has a chance of its own to pass, from a beta distribution."""
    groups = np.arange(tasks).repeat(random.integers(least, most + 1, tasks))
    chances = random.beta(share * (1 / within - 1), (1 - share) * (1 / within - 1), tasks)
    return (random.random(len(groups)) < chances[groups]).astype(float), groups


def trials() -> None:
    head("correlation, pass, tasks, trials", "cluster-robust t", "modified Wilson")
    for within, share, tasks, (least, most) in product(CORRELATIONS, SHARES, TASKS, TRIALS):
        random = np.random.default_rng(tasks)
        draws = (passed(random, within, share, tasks, least, most) for _ in range(RUNS))
        made = f"{least}" if least == most else f"{least} to {most}"
        beside_t(f"{within}, {share:.0%}, {tasks}, {made}", share, draws)


def scale() -> None:
    """Scores from 1 to 5, as 0 to 1."""
    head("share of 1, 2, 3, 4, 5", "scores", "t", "modified Wilson")
    points = np.arange(5) / 4
    for shares, n in product(SCALES, SCORED):
        draws = np.random.default_rng(n).choice(points, (RUNS, n), p=shares)
        beside_t(f"{', '.join(f'{one:.0%}' for one in shares)} | {n}", float(points @ shares), zip(draws, repeat(None)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--votes", type=Path)
    given = parser.parse_args()
    tables: dict[str, Callable[[], None]] = {
        "trials": trials,
        "scale": scale,
        "corrected": simulations,
        "votes": partial(voted, given.votes),
        "known": errors,
    }
    if unknown := set(given.tables) - set(tables):
        parser.error(f"expected names of {', '.join(tables)}, found {', '.join(sorted(unknown))}")
    for name in given.tables or tables:
        tables[name]()


if __name__ == "__main__":
    main()

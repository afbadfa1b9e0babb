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
inapplicable: the same where people say that the question does not apply to some samples that the judge scored.
splits: the same where two people label each sample, and differ on some: of the run itself, and of another run, by
    Rogan-Gladen from counts in which a split is a half.
convenience: the same by `judgekit.analysis.audit.audit` of labels that were picked by hand.

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
from tables import head

from judgekit.analysis.audit import audit
from judgekit.analysis.labels import HumanLabel
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.score import Score
from judgekit.stats.intervals import mean_interval, t_interval
from judgekit.stats.misclassification import rogan_gladen
from judgekit.stats.prediction_powered import PPIMean, Stratum, stratified_ppi_mean
from judgekit.stats.units import Groups, Units
from judgekit.stats.wilson import Interval, wilson
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

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
INAPPLICABLE = tuple(product((0.1, 0.2), (0.5, 0.7, 0.9), (0.1, 0.5, 0.9)))
"""How many samples the question does not apply to, how many of the others pass, and how many of the former the judge passes."""
SPLITS = tuple(product((0.1, 0.2, 0.4), ((0.5, 0.9, 0.8), (0.8, 0.9, 0.8), (0.7, 0.95, 0.9))))
"""How many samples people are of two minds about; of the others, how many pass, sensitivity and specificity."""
SURE, UNSURE = 0.98, 0.5
"""How often a person passes what should pass, and what people are of two minds about."""
ERRORS = ((0.5, 0.9, 0.8), (0.9, 0.9, 0.7), (0.2, 0.8, 0.99), (0.8, 0.6, 0.6), (0.5, 0.5, 0.5))
BEST_FIRST = ("gpt-4", "gpt-3.5-turbo", "claude-v1", "vicuna-13b-v1.2", "alpaca-13b", "llama-13b")
Random: TypeAlias = np.random.Generator
Values: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Random, int], tuple[Values, Values]]
Case: TypeAlias = tuple[list[Stratum], Values]
"""What is drawn, and all judged values."""


def binary(share: float, sensitivity: float, specificity: float) -> Draw:
    def draw(random: Random, size: int) -> tuple[Values, Values]:
        human = random.random(size) < share
        right = random.random(size) < np.where(human, sensitivity, specificity)
        return human.astype(float), np.where(right, human, ~human).astype(float)

    return draw


def smooth(random: Random, size: int) -> tuple[Values, Values]:
    human = random.beta(2, 2, size)
    return human, np.clip(human + random.normal(0, 0.15, size), 0, 1)


def skewed(random: Random, size: int) -> tuple[Values, Values]:
    human = np.where(random.random(size) < 0.9, 1, random.random(size))
    return human, np.clip(human + random.normal(-0.1, 0.2, size), 0, 1)


def alone(draw: Draw) -> Callable[[Random, int], Case]:
    def case(random: Random, n: int) -> Case:
        human, judged = draw(random, n + OTHERS)
        return [Stratum(human[:n], judged[:n], judged[n:], 1)], judged

    return case


def by_verdict(draw: Draw) -> Callable[[Random, int], Case]:
    """As many labels of each verdict."""

    def case(random: Random, n: int) -> Case:
        human, judged = draw(random, n + OTHERS)
        kinds = [np.flatnonzero(judged == verdict) for verdict in (0, 1)]
        half = n // 2
        strata = [
            Stratum(human[kind[:half]], judged[kind[:half]], judged[kind[half:]], len(kind) / len(human))
            for kind in kinds
        ]
        return strata, judged

    return case


def labeled_trials(random: Random, n: int) -> Case:
    """Tasks of 5 trials that are all labeled, or none of them; the variance between tasks is half of the whole."""
    tasks = (n + OTHERS) // 5
    share, strictness = random.beta(0.5, 0.5, tasks).repeat(5), random.beta(8, 2, tasks).repeat(5)
    human = random.random(5 * tasks) < share
    right = random.random(5 * tasks) < np.where(human, 0.9, strictness)
    judged, groups = np.where(right, human, ~human).astype(float), np.arange(tasks).repeat(5)
    return [Stratum(human[:n], judged[:n], judged[n:], 1, groups[:n], groups[n:])], judged


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
    "tasks of 5 trials": (0.5, labeled_trials),
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
    cells += [f"{np.median([one.effective_labels for one in ours[n]]):.0f}" for n in LABELS[-1:]]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


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


def drawn(human: Values, judged: Values, n: int) -> Iterator[Case]:
    random = np.random.default_rng(n)
    for _ in range(DRAWS):
        some, others = np.split(random.permutation(len(human)), [n])
        yield [Stratum(human[some], judged[some], judged[others], 1)], judged


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
    for name, (human, judged) in votes(path).items():
        line(name, float(human.mean()), partial(drawn, human, judged))


def by_t(values: Values, groups: Groups | None) -> Interval | None:
    """The t interval, within [0, 1]."""
    found = t_interval(Units.of(values, groups)) or Interval(float(values.mean()), float(values.mean()), "t")
    return found._replace(low=max(0.0, found.low), high=min(1.0, found.high))


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


def inapplicable() -> None:
    """Labels of a random sample; the question does not apply to some of the samples, all of which the judge scored."""
    heads = [f"{way}, {n}" for way in ("left out", "as a ratio") for n in LABELS[1:]]
    head("does not apply, pass, judge passes of the former", *heads)
    for gone, share, passing in INAPPLICABLE:
        ratio: dict[int, list[Interval]] = {}
        left_out: dict[int, list[Interval]] = {}
        for n in LABELS[1:]:
            random = np.random.default_rng(n)
            for _ in range(DRAWS):
                applies = random.random(n + OTHERS) >= gone
                human, judged = binary(share, 0.9, 0.8)(random, n + OTHERS)
                judged = np.where(applies, judged, random.random(n + OTHERS) < passing)
                of = [Stratum(human[:n], judged[:n], judged[n:], 1, applicable=applies[:n].astype(float))]
                some = applies[:n]
                without = [Stratum(human[:n][some], judged[:n][some], judged[n:], 1)]
                for found, strata in ((ratio, of), (left_out, without)):
                    found.setdefault(n, []).extend(one.interval for one in [stratified_ppi_mean(strata)] if one)
        cells = [cell(found[n], share) for found in (left_out, ratio) for n in LABELS[1:]]
        print(f"| {gone:.0%}, {share:.0%}, {passing:.0%} | {' | '.join(cells)} |", flush=True)


def splits() -> None:
    """Two people label each sample; Rogan-Gladen corrects another run of 1,000 samples."""
    ways = ("PPI++", "Rogan-Gladen", "Rogan-Gladen without splits")
    head("of two minds; pass, sensitivity, specificity", "labeled", *ways, "refused")
    for unsure, (share, sensitivity, specificity) in SPLITS:
        kinds = np.array([share * (1 - unsure), (1 - share) * (1 - unsure), unsure])
        passing = np.array([SURE, 1 - SURE, UNSURE])
        truth = float(kinds @ passing)
        for n in LABELS[2:]:
            random = np.random.default_rng(n)
            found: dict[str, list[Interval]] = {way: [] for way in ways}
            for _ in range(DRAWS):
                kind = random.choice(3, n + OTHERS, p=kinds)
                judged = (random.random(len(kind)) < np.array([sensitivity, 1 - specificity, 0.7])[kind]).astype(float)
                human = (random.random((2, len(kind))) < passing[kind]).mean(0)
                other = random.choice(3, 1_000, p=kinds)
                positives = int((random.random(1_000) < np.array([sensitivity, 1 - specificity, 0.7])[other]).sum())
                own = stratified_ppi_mean([Stratum(human[:n], judged[:n], judged[n:], 1)])
                found["PPI++"] += [own.interval] if own else []
                said, verdict = human[:n], judged[:n]
                for way, kept in ((ways[1], said >= 0), (ways[2], said != UNSURE)):
                    yes, verdicts = said[kept], verdict[kept]
                    no = 1 - yes
                    counts = (yes @ verdicts, no @ verdicts, yes @ (1 - verdicts), no @ (1 - verdicts))
                    of = rogan_gladen(positives, 1_000, *map(float, counts))
                    found[way] += [of.interval] if of and of.interval else []
            cells = " | ".join(cell(found[way], truth) for way in ways)
            refused = 100 * (1 - len(found[ways[1]]) / DRAWS)
            rates = f"{unsure:.0%}; {share:.0%}, {sensitivity:.0%}, {specificity:.0%}"
            print(f"| {rates} | {n} | {cells} | {refused:.0f} % |", flush=True)


def scored(verdicts: Iterable[float]) -> Run:
    """A run of a judge with these verdicts, in memory."""
    scale = {"pass": 1.0, "fail": 0.0}
    scorer = ScorerRecord(name="it", signature="0" * 16, identity=None, judged=True, scale=scale)
    store = RunStore(None)
    record = store.begin(RunRecord(started_at=now(), scorers=[scorer], count_precision="exactly"))
    recorder = Recorder(store, record)
    for number, verdict in enumerate(verdicts):
        sample = Sample.of([AIMessage(f"Hi {number:03}")] * (1 + number % 5), id=f"s{number}")
        recorder.add_sample(number, sample)
        recorder.add_row(Row.of(number, sample, Score.scored("it", verdict, label="pass" if verdict else "fail")))
    recorder.flush()
    return Run(store, record)


def convenience() -> None:
    """Labels of 500 samples of which people pass 70 %. A third of them is hard: of these people pass 40 %, and there alone the
    judge errs, on 30 % of those that people pass and 60 % of the others."""
    head("labels", "kind", "covered, width", "refused")
    for name, n, declared in (
        ("two thirds are failures", 60, True),
        ("two thirds are failures", 60, False),
        ("two thirds are failures", 20, False),
        ("only the easy ones", 60, False),
        ("drawn at random", 60, False),
    ):
        random = np.random.default_rng(n)
        given: list[Interval] = []
        for _ in range(DRAWS):
            hard = (random.random(OTHERS) < 1 / 3).astype(float)
            human = (random.random(OTHERS) < np.where(hard, 0.4, 0.85)).astype(float)
            wrong = (random.random(OTHERS) < 3 * np.where(human == 1, 0.1, 0.2)) & (hard == 1)
            weights = {
                "two thirds are failures": np.where(human == 1, 1 / 2 / 0.7, 1 / 0.3),
                "only the easy ones": 1 - hard,
                "drawn at random": np.ones(OTHERS),
            }[name]
            picked = random.choice(OTHERS, n, replace=False, p=weights / weights.sum())
            labels = [
                HumanLabel(sample=f"s{at}", scorer="it", value=human[at], selection="convenience" if declared else None)
                for at in picked
            ]
            (found,) = audit(scored(np.where(wrong, 1 - human, human).tolist()), labels).scorers
            if (mean := found.correction.corrected) and mean.low is not None and mean.high is not None:
                given.append(Interval(mean.low, mean.high, mean.method))
        told = "declared" if declared else "not declared"
        print(f"| {name}, {n} | {told} | {cell(given, 0.7)} | {100 * (1 - len(given) / DRAWS):.0f} % |", flush=True)


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
        "inapplicable": inapplicable,
        "splits": splits,
        "convenience": convenience,
    }
    if unknown := set(given.tables) - set(tables):
        parser.error(f"expected names of {', '.join(tables)}, found {', '.join(sorted(unknown))}")
    for name in given.tables or tables:
        tables[name]()


if __name__ == "__main__":
    main()

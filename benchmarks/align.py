"""How often alignments say that an improvement is shown, and how often the audit records' intervals cover, by simulation.

Base and candidates err on the same samples, with a latent correlation of .6; the old question is right on 80 %.

equal: all candidates are as good as the old question. With --labels, people's verdicts are those on answers of a file of
    https://github.com/wangcunxiang/QA-Eval (EVOUNA, ``evouna_nq.json.gz``); otherwise half of the samples pass.
power: the candidates gain 4 or 8 points on average, with a standard deviation of 4.

python benchmarks/align.py [--labels LABELS.json.gz] [--runs N]
"""

import argparse
import gzip
import json
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from judgekit.alignment.verdict import JudgedSamples, choose, holdout_verdict

SIZES = {40: (8, 20), 60: (15, 30), 100: (25, 55), 150: (35, 85), 200: (40, 120)}
"""By the number of labels, those that choose and those that test; the others are read."""
CANDIDATES = 8
RHO = 0.6
RIGHT = 0.8
GAINS = (0.04, 0.08)
SPREAD = 0.04


def judged(dice: np.random.Generator, human: NDArray[np.float64], accuracies: NDArray[np.float64]) -> JudgedSamples:
    """Return the errors of judges with these accuracies, the first of which is the old question."""
    shared, own = dice.standard_normal(len(human)), dice.standard_normal((len(accuracies), len(human)))
    least = np.array([NormalDist().inv_cdf(one) for one in accuracies])[:, np.newaxis]
    errors = (np.sqrt(RHO) * shared + np.sqrt(1 - RHO) * own > least).astype(float)
    return JudgedSamples(human, [None] * len(human), errors[0], errors[1:])


def equal(human: NDArray[np.float64], runs: int) -> None:
    """Print how often equal candidates are shown, and how often the interval of the chosen one's agreement covers."""
    print("| labels | shown | the audit record's agreement covered |\n|---|---|---|")
    for labels, (validation, test) in SIZES.items():
        dice, shown, covered = np.random.default_rng(labels), 0, 0
        for _ in range(runs):
            everyone = judged(dice, human, np.full(CANDIDATES + 1, RIGHT))
            drawn = dice.permutation(len(human))[: validation + test]
            kept = np.isin(np.arange(len(human)), drawn)
            in_validation = np.isin(np.flatnonzero(kept), drawn[:validation])
            samples = everyone.only(kept)
            chosen = choose(samples.only(in_validation))
            found = holdout_verdict(samples.only(~in_validation), chosen)
            truth = 1 - float(everyone.candidates[chosen].mean())
            shown += found.outcome == "shown"
            covered += (found.after.low or 0.0) <= truth <= (found.after.high or 1.0)
        print(f"| {labels} | {shown / runs:.1%} | {covered / runs:.1%} |")


def power(runs: int) -> None:
    """Print how often a gain is shown."""
    print("| labels | mean gain | shown |\n|---|---|---|")
    for labels, (validation, test) in SIZES.items():
        for gain in GAINS:
            dice, shown = np.random.default_rng(labels), 0
            for _ in range(runs):
                gains = np.clip(RIGHT + gain + SPREAD * dice.standard_normal(CANDIDATES), 0, 0.99)
                human = (dice.random(validation + test) < 0.5).astype(float)
                samples = judged(dice, human, np.array([RIGHT, *gains]))
                in_validation = np.arange(validation + test) < validation
                shown += (
                    holdout_verdict(samples.only(~in_validation), choose(samples.only(in_validation))).outcome
                    == "shown"
                )
            print(f"| {labels} | {gain:.0%} | {shown / runs:.0%} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--runs", type=int, default=1_000)
    given = parser.parse_args()
    human = np.repeat([0.0, 1.0], 1_500)
    if given.labels is not None:
        rows = json.loads(gzip.decompress(given.labels.read_bytes()))
        known = [row["judge_newbing"] for row in rows if not row["improper"]]
        human = np.array([float(verdict) for verdict in known if verdict is not None])
    equal(human, given.runs)
    print()
    power(given.runs)


if __name__ == "__main__":
    main()

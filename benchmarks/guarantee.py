"""How often the guarantee of a least confidence fails while labels are added until it is granted, by simulation.

Each run has 1,000 verdicts. Labels of verdicts drawn at random are added 10 at a time, up to 500, and looked at each time;
the first threshold that is granted is taken. The guarantee is that at most 10 % of the verdicts that it keeps are wrong,
with a probability of 95 %. It is held against the error rate by which verdicts are drawn (failed), and against the share of
wrong verdicts in the run (in the run). Beside it stand binomial tests, which may be made once only. The second table says
how often a threshold is granted by so many labels, looked at once: by binomial tests, and by judgekit.

python benchmarks/guarantee.py
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from judgekit.stats.selection import min_confidence_threshold

ALPHA, DELTA = 0.1, 0.05
RUNS = 1_000
VERDICTS = 1_000
LOOKS = range(10, 501, 10)
ONCE = (60, 100, 150, 250, 500)
Random: TypeAlias = np.random.Generator
Values: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Random, int], tuple[Values, Values, Values]]
"""The confidences of verdicts, how far each is wrong, and how likely it was to be."""


def drawn(rate: Callable[[Values], Values], levels: int | None = None, annotators: int = 1) -> Draw:
    """Confidences that are continuous or have some levels; the share of people who say otherwise."""

    def draw(random: Random, size: int) -> tuple[Values, Values, Values]:
        sure = random.random(size)
        sure = sure if levels is None else np.ceil(sure * levels) / levels
        rates = rate(sure)
        return sure, random.binomial(annotators, rates) / annotators, rates

    return draw


def split(random: Random, size: int) -> tuple[Values, Values, Values]:
    """Three people, who agree that a verdict is wrong, or of whom one says so."""
    sure = random.random(size)
    rates = 0.4 * (1 - sure)
    kind = random.random(size)
    return sure, np.where(kind < rates / 2, 1, np.where(kind < 2 * rates, 1 / 3, 0)), rates


def flat(share: float) -> Callable[[Values], Values]:
    return lambda sure: np.full_like(sure, share)


def rising(steepness: float) -> Callable[[Values], Values]:
    return lambda sure: steepness * (1 - sure)


DESIGNS: dict[str, Draw] = {
    "10.1 % wrong, all equally sure": drawn(flat(0.101), 1),
    "10.1 % wrong, 5 levels": drawn(flat(0.101), 5),
    "10.1 % wrong, continuous": drawn(flat(0.101)),
    "10.1 % wrong, 5 levels, 3 people": drawn(flat(0.101), 5, 3),
    "20 % wrong, the surer half 10 %": drawn(rising(0.4)),
    "the same, 5 levels": drawn(rising(0.4), 5),
    "the same, 20 levels": drawn(rising(0.4), 20),
    "the same, 3 people": drawn(rising(0.4), None, 3),
    "the same, people are split": split,
    "12.5 % wrong, the surer 80 % 10 %": drawn(rising(0.25)),
    "2 % of the surer 60 % wrong, 32 % of the rest": drawn(lambda sure: 0.02 + 0.3 * (sure < 0.4)),
    "3 % wrong": drawn(flat(0.03)),
    "3 % wrong, 5 levels": drawn(flat(0.03), 5),
}


def once(confidence: Values, wrong: Values, _: Values) -> float | None:
    """Binomial tests, from the threshold that keeps a quarter of the labeled verdicts, or 29 of them, down."""
    values, of, counts = np.unique(-confidence, return_inverse=True, return_counts=True)
    kept, lost = np.cumsum(counts), np.cumsum(np.bincount(of, weights=wrong))
    tried = kept >= max(29, len(wrong) / 4)
    shown = bdtr(np.ceil(lost[tried]), kept[tried], ALPHA) <= DELTA
    passed = len(shown) if shown.all() else int(shown.argmin())
    return -float(values[tried][passed - 1]) if passed else None


def ours(confidence: Values, wrong: Values, everyone: Values) -> float | None:
    return min_confidence_threshold(confidence, wrong, everyone, alpha=ALPHA, delta=DELTA).value


def broken(find: Callable[[Values, Values, Values], float | None], draw: Draw) -> tuple[float, float, float]:
    """How often a threshold is granted, and how often the guarantee fails, by the rates and in the run."""
    random = np.random.default_rng(0)
    sure, _, rates = draw(np.random.default_rng(1), 200_000)
    found: list[tuple[bool, bool, bool]] = []
    for _ in range(RUNS):
        confidence, wrong, _ = draw(random, VERDICTS)
        values = (find(confidence[:n], wrong[:n], confidence) for n in LOOKS)
        value = next((value for value in values if value is not None), np.inf)
        kept = confidence >= value
        found.append(
            (
                bool(kept.any()),
                rates[sure >= value].sum() > ALPHA * (sure >= value).sum(),
                wrong[kept].sum() > ALPHA * kept.sum(),
            )
        )
    granted, population, run = np.mean(found, axis=0)
    return float(granted), float(population), float(run)


def while_labels_are_added() -> None:
    print(
        "\n| verdicts | binomial tests: granted, failed, in the run | judgekit: granted, failed, in the run |\n|---|---|---|"
    )
    for name, draw in DESIGNS.items():
        cells = [", ".join(f"{100 * share:.1f}" for share in broken(find, draw)) for find in (once, ours)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def of_so_many_labels() -> None:
    print(f"\n| verdicts | {' | '.join(f'{n} labels' for n in ONCE)} |\n{'|---' * (len(ONCE) + 1)}|")
    for name, draw in list(DESIGNS.items())[4:]:
        cells = []
        for n in ONCE:
            random = np.random.default_rng(n)
            shares: dict[Callable[[Values, Values, Values], float | None], list[float]] = {once: [], ours: []}
            for _ in range(RUNS):
                confidence, wrong, _ = draw(random, VERDICTS)
                for find, those in shares.items():
                    value = find(confidence[:n], wrong[:n], confidence)
                    those.append(0 if value is None else float((confidence >= value).mean()))
            cells.append(", ".join(f"{100 * np.mean(np.asarray(those) > 0):.0f}" for those in shares.values()))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    while_labels_are_added()
    of_so_many_labels()

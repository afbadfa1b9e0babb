"""How soon a judge that changes is noticed by its anchors, and how often one that does not raises an alarm, by simulation.

The judge passes half of the anchors. It wavers on 23 % of them, and passes each of these with a probability drawn from 0.1
to 0.9. A check a week follows a baseline of three draws. Beside `judgekit.stats.drift.detect_drift` stand what one might try
first: an alarm at any flip, that is, a verdict other than most of the baseline; at p <= 0.05 of this check's permutation
test; and at p <= 0.05 of McNemar's test of this check against the majority of the baseline.

python benchmarks/drift.py [--runs N]
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgekit.stats.drift import BASELINE, any_change, detect_drift
from judgekit.stats.improvement import mcnemar_mid_p

RUNS = 1_000
WAVERING = 0.23
HALF_YEAR = 26
BEFORE = (0, 2, 4, 8, 12)
"""The numbers of checks before the change."""
WITHIN = (1, 4, 12)
LEVEL = 0.05
Random: TypeAlias = np.random.Generator
Draws: TypeAlias = NDArray[np.float64]
Change: TypeAlias = Callable[[Random, Draws], Draws]


def turning(share: float) -> Change:
    """Return a change by which a share of the anchors turns to the opposite."""

    def change(random: Random, passing: Draws) -> Draws:
        turned = random.choice(len(passing), round(share * len(passing)), replace=False)
        changed = passing.copy()
        changed[turned] = 1 - changed[turned]
        return changed

    return change


def laxer(random: Random, passing: Draws) -> Draws:
    """Pass a quarter more of what fails."""
    sure = passing * (1 - passing) == 0
    return np.where(sure, np.maximum(passing, random.random(len(passing)) < 1 / 4), passing + (1 - passing) / 4)


def stricter(random: Random, passing: Draws) -> Draws:
    """Fail a quarter more of what passes."""
    return 1 - laxer(random, 1 - passing)


CHANGES: Mapping[str, tuple[int, Change]] = {
    "passes a quarter more of what fails": (80, laxer),
    "fails a quarter more of what passes": (80, stricter),
    "10 % of the anchors turn": (80, turning(0.1)),
    "5 % turn": (80, turning(0.05)),
    "5 % turn, 160 anchors": (160, turning(0.05)),
    "10 % turn, 40 anchors": (40, turning(0.1)),
}


def draws(random: Random, anchors: int, before: int, change: Change, after: int) -> Draws:
    """Return the verdicts of a judge that changes after so many draws."""
    passing = (np.arange(anchors) % 2).astype(float)
    wavering = random.choice(anchors, round(WAVERING * anchors), replace=False)
    passing[wavering] = random.uniform(0.1, 0.9, len(wavering))
    later = change(random, passing)
    first, last = random.random((anchors, before)), random.random((anchors, after))
    return np.hstack([first < passing[:, np.newaxis], last < later[:, np.newaxis]]).astype(float)


def anchors_alarm(table: Draws, start: int) -> int | None:
    """Return the check of the first alarm, from ``start`` on; an earlier one counts as none."""
    alarm = detect_drift(table).alarm
    return None if alarm is None or alarm < start else alarm


def flip_alarm(table: Draws, start: int) -> int | None:
    """Return the first check with a verdict other than the majority of the baseline."""
    usual = table[:, :BASELINE].mean(axis=1) > 1 / 2
    return next((check for check in range(start, table.shape[1]) if (table[:, check] != usual).any()), None)


def permutation_alarm(table: Draws, start: int) -> int | None:
    """Return the first check whose permutation test is below 0.05."""
    for check in range(start, table.shape[1]):
        pairs = [(Counter(row[: check + 1].tolist()), float(row[check])) for row in table]
        if any_change(pairs) <= LEVEL:
            return check
    return None


def mcnemar_alarm(table: Draws, start: int) -> int | None:
    """Return the first check whose verdicts differ, in one direction, from the majority of the baseline."""
    usual = table[:, :BASELINE].mean(axis=1) > 1 / 2
    for check in range(start, table.shape[1]):
        up, down = int(((table[:, check] == 1) & ~usual).sum()), int(((table[:, check] == 0) & usual).sum())
        if 2 * min(mcnemar_mid_p(up, down), mcnemar_mid_p(down, up)) <= LEVEL:
            return check
    return None


ALARMS: Mapping[str, Callable[[Draws, int], int | None]] = {
    "anchors": anchors_alarm,
    "any flip": flip_alarm,
    "permutation test": permutation_alarm,
    "McNemar": mcnemar_alarm,
}


def rates(seed: int, runs: int, anchors: int, checks: int, change: Change, after: int) -> Iterator[str]:
    """Yield how often each alarm is raised: in all checks after the change, or within so many of them."""
    random = np.random.default_rng(seed)
    tables = [draws(random, anchors, BASELINE + checks, change, after) for _ in range(runs)]
    start = BASELINE + checks
    for alarm in ALARMS.values():
        raised = [after if (check := alarm(table, start)) is None else check - start for table in tables]
        within = [after] if after == HALF_YEAR else WITHIN
        yield ", ".join(f"{np.mean([check < most for check in raised]):.2f}".lstrip("0") for most in within)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="simulated judges per line")
    runs: int = parser.parse_args().runs
    print(f"| change, after so many checks | {' | '.join(ALARMS)} |")
    print(f"|---|{'---|' * len(ALARMS)}")
    print(
        f"| none: half-years with an alarm | {' | '.join(rates(0, runs, 80, 0, turning(0), HALF_YEAR))} |", flush=True
    )
    for number, (name, (anchors, change)) in enumerate(CHANGES.items(), 1):
        for checks in BEFORE:
            cells = rates(number, runs, anchors, checks, change, max(WITHIN))
            print(f"| {name}, after {checks} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

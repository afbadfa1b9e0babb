"""Repeated trials of tasks: how likely one of k succeeds, or all of them."""

from collections.abc import Callable, Iterable
from math import comb, fsum
from typing import NamedTuple

from judgekit.stats.intervals import Interval, mean_interval


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of ``k`` trials succeeds, from ``n`` trials of which ``c`` did.

    pass@k = 1 - C(n - c, k) / C(n, k), without bias. Source: Chen et al. 2021, https://arxiv.org/abs/2107.03374, equation
    1; computed with whole numbers, and rounded once. Assumes that trials are independent and alike.

    Raises:
        ValueError: ``c`` is not in 0 to ``n``, or ``k`` not in 1 to ``n``.
    """
    _check(n, c, k)
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The probability that all of ``k`` trials succeed, from ``n`` trials of which ``c`` did.

    pass^k = C(c, k) / C(n, k), without bias. Source: Yao et al. 2024 (tau-bench),
    https://arxiv.org/abs/2406.12045. Assumes that trials are independent and alike.

    Raises:
        ValueError: ``c`` is not in 0 to ``n``, or ``k`` not in 1 to ``n``.
    """
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


class TaskMean(NamedTuple):
    """The mean over tasks of `pass_at_k` or `pass_hat_k`, each task counting once.

    Tasks with fewer than k trials have neither: ``too_few`` says how many there are. ``value`` is ``None`` where there
    are no other ``tasks``. The interval is that of tasks as a sample of all tasks, by `mean_interval`.
    """

    value: float | None
    interval: Interval | None
    tasks: int
    too_few: int


def over_tasks(estimate: Callable[[int, int, int], float], tasks: Iterable[tuple[int, int]], k: int) -> TaskMean:
    """The mean of an estimate over tasks.

    Args:
        estimate: `pass_at_k` or `pass_hat_k`.
        tasks: For each task, how many trials there are, and how many of them succeeded.
        k: How many trials are asked about.
    """
    counts = list(tasks)
    found = [estimate(n, c, k) for n, c in counts if n >= k]
    mean = fsum(found) / len(found) if found else None
    return TaskMean(mean, mean_interval(found), len(found), len(counts) - len(found))


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"expected 0 to {n} trials that succeeded, found {c}")
    if not 1 <= k <= n:
        raise ValueError(f"expected k from 1 to {n}, the number of trials, found {k}")

"""Repeated trials of tasks: the probability that one of k trials succeeds, or that all do."""

from collections.abc import Callable, Hashable, Iterable
from math import comb, fsum
from typing import NamedTuple

from judgekit.stats.wilson import Interval


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that at least one of ``k`` trials succeeds, given ``c`` successes in ``n`` trials.

    pass@k = 1 - C(n - c, k) / C(n, k), an unbiased estimate. Source: Chen et al. 2021,
    https://arxiv.org/abs/2107.03374, equation 1; computed with integers, and rounded once. Trials are assumed to be
    independent and identically distributed.

    Raises:
        ValueError: ``c`` is not in 0 to ``n``, or ``k`` not in 1 to ``n``.
    """
    _check(n, c, k)
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the probability that all of ``k`` trials succeed, given ``c`` successes in ``n`` trials.

    pass^k = C(c, k) / C(n, k), an unbiased estimate. Source: Yao et al. 2024 (tau-bench),
    https://arxiv.org/abs/2406.12045. Trials are assumed to be independent and identically distributed.

    Raises:
        ValueError: ``c`` is not in 0 to ``n``, or ``k`` not in 1 to ``n``.
    """
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


class TaskMean(NamedTuple):
    """The mean over tasks of `pass_at_k` or `pass_hat_k`, with each task counting once.

    Attributes:
        value: The mean; ``None`` if no task is left.
        interval: Its interval by `mean_interval`, which treats the units of tasks as a sample.
        tasks: The number of tasks in the mean.
        excluded_tasks: The number of tasks left out because they have fewer than k trials.
    """

    value: float | None
    interval: Interval | None
    tasks: int
    excluded_tasks: int


def mean_over_tasks(
    estimate: Callable[[int, int, int], float], tasks: Iterable[tuple[int, int, Hashable]], k: int
) -> TaskMean:
    """Return the mean of an estimate over tasks.

    Args:
        estimate: `pass_at_k` or `pass_hat_k`.
        tasks: The number of trials, the number of successes and the unit of each task.
        k: The number of trials to estimate for.
    """
    from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

    # Shards that are merged have them in another order, and sums would end in other digits.
    counts = sorted(tasks, key=lambda task: task[:2])
    estimates = [estimate(n, c, k) for n, c, _ in counts if n >= k]
    units = [unit for n, _, unit in counts if n >= k]
    mean = fsum(estimates) / len(estimates) if estimates else None
    return TaskMean(mean, mean_interval(estimates, units), len(estimates), len(counts) - len(estimates))


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"expected 0 to {n} trials that succeeded, found {c}")
    if not 1 <= k <= n:
        raise ValueError(f"expected k from 1 to {n}, the number of trials, found {k}")

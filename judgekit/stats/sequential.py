"""Sequential sampling: leads that further repeats would hardly change."""

from collections.abc import Sequence
from math import comb


def is_decisive(counts: Sequence[int], *, left: int, level: float = 0.95) -> bool:
    """Return whether the leading answer can be assumed to be the one that further repeats would give most often.

    It can if the ``left`` remaining repeats cannot bring another answer level with it, or if it is the more likely one of
    the first two with a probability above ``level``: that of a share over one half under a Beta(first + 1, second + 1)
    distribution. Source: Aggarwal et al. 2023 (Adaptive-Consistency), https://arxiv.org/abs/2305.11860. Repeats are
    assumed to be independent, with a uniform prior for the share of the two. At 0.95, it takes 4 repeats that agree, 7
    with one that differs, 10 with two.

    After stopping early, the leader's share of repeats is a biased estimate: it is too far from 1/2.

    Args:
        counts: The number of times each answer was given.
        left: The number of repeats that could still be made.
        level: The required probability.

    Raises:
        ValueError: A count, or ``left``, is below 0.
    """
    if left < 0 or any(count < 0 for count in counts):
        raise ValueError(f"expected counts of 0 or more, found {list(counts)} and {left} left")
    first, second, *_ = *sorted(counts, reverse=True), 0, 0
    repeats = first + second + 1
    return first - second > left or sum(comb(repeats, k) for k in range(second + 1, repeats + 1)) / 2**repeats > level

"""The number of labels that a corrected mean needs."""

from math import ceil

_MOST = 10**9


def labels_needed(share: float, correlation: float, standard_error: float, samples: float) -> int | None:
    """Return the number of random labels with which PPI++ estimates a share with a standard error.

    With the correlation phi of the judge's verdicts and people's, the variance of the estimate is p * (1 - p) * ((1 -
    phi**2) / n + phi**2 / N), solved for n. Source: PPI++, Angelopoulos, Duchi and Zrnic 2023,
    https://arxiv.org/abs/2311.01453, for binary values and the best lambda. For a judge whose share of passes is that
    of people, phi is Cohen's kappa; otherwise kappa is less, so that planning with it asks for more labels.

    Args:
        share: The share p that is estimated, in (0, 1).
        correlation: phi, in [-1, 1]; what a judge that says the opposite knows is not used.
        standard_error: The standard error that is wanted, above 0.
        samples: The number N of samples that the judge scored, which may be infinite.

    Returns:
        The number of labels, at most N; ``None`` if even a label of each sample does not suffice, because N is too small.
    """
    spread, explained = share * (1 - share), max(0.0, correlation) ** 2
    left = standard_error**2 - spread * explained / samples
    if left * _MOST <= spread * (1 - explained):
        return None
    count = ceil(spread * (1 - explained) / left - 1e-9)
    return count if count <= samples else None

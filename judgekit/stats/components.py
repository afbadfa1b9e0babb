"""Variance components of a judge's verdicts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_ROUNDING = 1e-12


@dataclass(frozen=True)
class VarianceComponents:
    """The variance of a single verdict, split by its source.

    Attributes:
        item: The variance between items, which is the quantity of interest.
        prompt: The variance between prompts, some of which are stricter for all items; ``None`` if only one was used.
        interaction: The variance from prompts that order items differently; ``None`` if only one was used, in which
            case it is part of ``item``.
        repeat: The variance between repeats; ``None`` for one repeat each, where it is part of ``interaction``.
        excluded_items: The number of items left out because they lack a verdict for some prompt.
        negative: The names of components with a negative estimate, which is set to 0: they are too small to measure.
    """

    item: float
    prompt: float | None
    interaction: float | None
    repeat: float | None
    excluded_items: int = 0
    negative: tuple[str, ...] = ()


def variance_components(values: ArrayLike) -> VarianceComponents | None:
    """Return the variance components of verdicts, by random-effects analysis of variance.

    Items are crossed with prompts, and repeats are nested in each combination. ``(items, 1, repeats)`` are repeats of one
    prompt; ``(items, 2, 1)`` are the two orders of a pair, which take the place of prompts. Each estimate equates the
    mean squares with their expectations, and is unbiased until a negative one is set to 0. If the numbers of repeats
    differ, each combination of item and prompt counts once, by its mean ("unweighted means"); the estimates stay
    unbiased, and with equal numbers this is the ordinary analysis. Source: Brennan 2001, "Generalizability Theory",
    chapters 2 and 3, https://doi.org/10.1007/978-1-4757-3456-0; Searle, Casella and McCulloch 1992, "Variance
    Components", https://doi.org/10.1002/9780470316856.

    It is assumed that items, prompts and repeats are samples of many, that effects are additive, and that the number of
    an item's repeats does not depend on their outcome. Conclusions about prompts rest on the few that were used: with
    two, the true component of prompts may well be a fifth of its estimate, or a hundred times it.

    Args:
        values: An array of shape (items, prompts, repeats), with NaN for missing values.

    Returns:
        ``None`` if there are fewer than two items, or neither a second prompt nor a second repeat.

    Raises:
        ValueError: The array has another shape, or contains an infinite value.
    """
    verdicts = np.asarray(values, np.float64)
    if verdicts.ndim != 3 or np.isinf(verdicts).any():
        raise ValueError(f"expected finite numbers of shape (items, prompts, repeats), found {verdicts!r}")
    present = ~np.isnan(verdicts)
    whole = np.all(present.any(axis=2), axis=1)
    left_out, verdicts, present = int((~whole).sum()), verdicts[whole], present[whole]
    counts = present.sum(axis=2)
    (items, prompts), extra = counts.shape, int((counts - 1).sum())
    if items < 2 or prompts < 1 or (prompts < 2 and not extra):
        return None
    means = np.where(present, verdicts, 0).sum(axis=2) / counts
    deviations = np.where(present, verdicts - means[..., np.newaxis], 0)
    repeat = float(np.square(deviations).sum()) / extra if extra else None
    of_a_mean = (repeat or 0) * float((1 / counts).mean())
    by_item, by_prompt = means.mean(axis=1), means.mean(axis=0)
    estimates: dict[str, float | None] = {"prompt": None, "interaction": None, "repeat": repeat}
    if prompts == 1:
        estimates["item"] = float(by_item.var(ddof=1)) - of_a_mean
    else:
        rest = means - by_item[:, np.newaxis] - by_prompt + means.mean()
        mean_square = float(np.square(rest).sum()) / ((items - 1) * (prompts - 1))
        estimates["interaction"] = mean_square - of_a_mean
        estimates["item"] = float(by_item.var(ddof=1)) - mean_square / prompts
        estimates["prompt"] = float(by_prompt.var(ddof=1)) - mean_square / items
    shown = {
        name: None if estimate is None else estimate if estimate > _ROUNDING else 0.0
        for name, estimate in estimates.items()
    }
    return VarianceComponents(
        item=shown["item"] or 0.0,
        prompt=shown["prompt"],
        interaction=shown["interaction"],
        repeat=shown["repeat"],
        excluded_items=left_out,
        negative=tuple(name for name, estimate in estimates.items() if estimate is not None and estimate < -_ROUNDING),
    )

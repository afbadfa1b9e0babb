"""Variance components of a judge's verdicts, and the value of further requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

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
        items: The number of items behind the estimates.
        prompts: The number of prompts behind the estimates.
        excluded_items: The number of items left out because they lack a verdict for some prompt.
        negative: The names of components with a negative estimate, which is set to 0: they are too small to measure.
    """

    item: float
    prompt: float | None
    interaction: float | None
    repeat: float | None
    items: int
    prompts: int
    excluded_items: int = 0
    negative: tuple[str, ...] = ()

    def verdict_error(self, prompts: int, repeats: int) -> float | None:
        """Return the standard error of an item's verdict, the mean of ``repeats`` repeats for each of ``prompts`` prompts.

        sqrt((prompt + interaction) / P + repeat / (P * R)), the absolute error (Brennan 2001, chapter 4). If only one
        prompt was ever used, it is the error around that prompt's long-run mean.

        Returns:
            ``None`` for several prompts if only one was used, and for several repeats if there was only one each.
        """
        _at_least_one(prompts=prompts, repeats=repeats)
        if (prompts > 1 and self.prompt is None) or (repeats > 1 and self.repeat is None):
            return None
        by_prompt = (self.prompt or 0) + (self.interaction or 0)
        return sqrt(by_prompt / prompts + (self.repeat or 0) / (prompts * repeats))

    def mean_error(self, items: int, prompts: int, repeats: int) -> float | None:
        """Return the standard error of the mean over ``items`` items that are a sample of many.

        sqrt(item / I + prompt / P + interaction / (I * P) + repeat / (I * P * R)). ``None`` as for `verdict_error`.
        """
        _at_least_one(items=items)
        if (error := self.verdict_error(prompts, repeats)) is None:
            return None
        shared = (self.prompt or 0) / prompts
        return sqrt(shared + (self.item + error**2 - shared) / items)


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
        items=items,
        prompts=prompts,
        excluded_items=left_out,
        negative=tuple(name for name, estimate in estimates.items() if estimate is not None and estimate < -_ROUNDING),
    )


class RequestPlan(NamedTuple):
    """A way to spend requests on an item.

    Attributes:
        prompts: The number of prompts.
        repeats: The number of repeats of each prompt.
        error: The standard error of the verdict, which is the mean of all repeats.
    """

    prompts: int
    repeats: int
    error: float


def request_plans(components: VarianceComponents, requests: int, *, prompts: int) -> Sequence[RequestPlan]:
    """Return the ways to spend at most ``requests`` requests on an item, those with the smallest standard error first.

    Each number of prompts up to ``prompts``, the number available, is combined with as many repeats as the requests
    allow, or with one if the component of repeats is unknown. If the component of prompts is unknown, only one prompt is
    considered. For equal errors, fewer prompts come first.

    Raises:
        ValueError: ``requests`` or ``prompts`` is below 1.
    """
    _at_least_one(requests=requests, prompts=prompts)
    splits: list[RequestPlan] = []
    for some in range(1, min(prompts, requests) + 1):
        repeats = 1 if components.repeat is None else requests // some
        if (error := components.verdict_error(some, repeats)) is not None:
            splits.append(RequestPlan(some, repeats, error))
    return sorted(splits, key=lambda split: (round(split.error, 12), split.prompts))


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"expected 1 or more {name}, found {number}")

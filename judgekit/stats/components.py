"""Where the variance of a judge's verdicts comes from, and what further requests would buy."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Components:
    """The variance of a single verdict, by where it comes from.

    Attributes:
        item: Items differ: this is what is to be measured.
        prompt: Prompts are stricter or milder, for all items alike; ``None`` where one prompt was asked.
        interaction: Prompts order items in different ways; ``None`` where one prompt was asked, and then it is part of
            ``item``.
        draw: Repeated draws differ; ``None`` where there is one draw of each, and then it is part of ``interaction``.
        items: How many items these are estimates of, and of how many ``prompts``.
        left_out: Items without a verdict of each prompt, which are not among them.
        negative: The names of those whose estimate was below 0, and is set to 0: they are too small to be seen here.
    """

    item: float
    prompt: float | None
    interaction: float | None
    draw: float | None
    items: int
    prompts: int
    left_out: int = 0
    negative: tuple[str, ...] = ()

    def verdict_error(self, prompts: int, draws: int) -> float | None:
        """The standard error of an item's verdict, the mean of ``draws`` draws of each of ``prompts`` prompts.

        sqrt((prompt + interaction) / P + draw / (P * D)), the error called absolute (Brennan 2001, chapter 4). With one
        prompt that is the only one ever asked, it is the error about what this prompt would say in the long run.

        Returns:
            ``None`` for several prompts where one was asked, and for several draws where there was one of each.
        """
        _at_least_one(prompts=prompts, draws=draws)
        if (prompts > 1 and self.prompt is None) or (draws > 1 and self.draw is None):
            return None
        by_prompt = (self.prompt or 0) + (self.interaction or 0)
        return sqrt(by_prompt / prompts + (self.draw or 0) / (prompts * draws))

    def mean_error(self, items: int, prompts: int, draws: int) -> float | None:
        """The standard error of the mean over ``items`` items that are a sample of many.

        sqrt(item / I + prompt / P + interaction / (I * P) + draw / (I * P * D)). ``None`` as in `verdict_error`.
        """
        _at_least_one(items=items)
        if (error := self.verdict_error(prompts, draws)) is None:
            return None
        shared = (self.prompt or 0) / prompts
        return sqrt(shared + (self.item + error**2 - shared) / items)


def variance_components(values: ArrayLike) -> Components | None:
    """The components of variance of verdicts, by the analysis of variance of random effects.

    Items are crossed with prompts, and draws are nested in each pair of them. ``(items, 1, draws)`` are draws of one
    prompt; ``(items, 2, 1)`` the two orders of a pair, which stand in the place of prompts. Each estimate is that at which
    the mean squares are what they are expected to be, and is without bias until one below 0 is set to 0. Where the numbers
    of draws differ, each pair of item and prompt counts once, by its mean ("unweighted means"), which keeps the estimates
    without bias and is the ordinary analysis where they do not. Source: Brennan 2001, "Generalizability Theory", chapters
    2 and 3, https://doi.org/10.1007/978-1-4757-3456-0; Searle, Casella and McCulloch 1992, "Variance Components",
    https://doi.org/10.1002/9780470316856.

    Assumes that items, prompts and draws are samples of many of their kind, that effects add up, and that how many draws
    an item has does not depend on what they said. What is said of prompts rests on as few as were asked: with two, the
    true component of prompts may well be a fifth of its estimate, or a hundred times it.

    Args:
        values: Of shape (items, prompts, draws), NaN where there is none.

    Returns:
        ``None`` where there are fewer than two items, or neither a second prompt nor a second draw.

    Raises:
        ValueError: The array has another shape, or holds an infinite value.
    """
    found = np.asarray(values, np.float64)
    if found.ndim != 3 or np.isinf(found).any():
        raise ValueError(f"expected finite numbers of shape (items, prompts, draws), found {found!r}")
    present = ~np.isnan(found)
    whole = np.all(present.any(axis=2), axis=1)
    left_out, found, present = int((~whole).sum()), found[whole], present[whole]
    counts = present.sum(axis=2)
    (items, prompts), repeats = counts.shape, int((counts - 1).sum())
    if items < 2 or prompts < 1 or (prompts < 2 and not repeats):
        return None
    means = np.where(present, found, 0).sum(axis=2) / counts
    deviations = np.where(present, found - means[..., np.newaxis], 0)
    draw = float(np.square(deviations).sum()) / repeats if repeats else None
    of_a_mean = (draw or 0) * float((1 / counts).mean())
    by_item, by_prompt = means.mean(axis=1), means.mean(axis=0)
    estimates: dict[str, float | None] = {"prompt": None, "interaction": None, "draw": draw}
    if prompts == 1:
        estimates["item"] = float(by_item.var(ddof=1)) - of_a_mean
    else:
        rest = means - by_item[:, np.newaxis] - by_prompt + means.mean()
        mean_square = float(np.square(rest).sum()) / ((items - 1) * (prompts - 1))
        estimates["interaction"] = mean_square - of_a_mean
        estimates["item"] = float(by_item.var(ddof=1)) - mean_square / prompts
        estimates["prompt"] = float(by_prompt.var(ddof=1)) - mean_square / items
    shown = {name: None if one is None else one if one > _ROUNDING else 0.0 for name, one in estimates.items()}
    return Components(
        item=shown["item"] or 0.0,
        prompt=shown["prompt"],
        interaction=shown["interaction"],
        draw=shown["draw"],
        items=items,
        prompts=prompts,
        left_out=left_out,
        negative=tuple(name for name, one in estimates.items() if one is not None and one < -_ROUNDING),
    )


class Split(NamedTuple):
    """So many draws of each of so many prompts, and the standard error of a verdict that is their mean."""

    prompts: int
    draws: int
    error: float


def plan(components: Components, requests: int, *, prompts: int) -> Sequence[Split]:
    """The ways to spend at most ``requests`` requests on an item, the least standard error of its verdict first.

    For each number of prompts up to ``prompts``, which is how many there are, as many draws of each as can be paid for,
    or one where the components say nothing of draws; one prompt alone where they say nothing of prompts. Of equal errors,
    fewer prompts come first.

    Raises:
        ValueError: There is not one request, or not one prompt.
    """
    _at_least_one(requests=requests, prompts=prompts)
    splits: list[Split] = []
    for some in range(1, min(prompts, requests) + 1):
        draws = 1 if components.draw is None else requests // some
        if (error := components.verdict_error(some, draws)) is not None:
            splits.append(Split(some, draws, error))
    return sorted(splits, key=lambda split: (round(split.error, 12), split.prompts))


class Purchase(NamedTuple):
    """What one draw, prompt or item more buys.

    Attributes:
        more: What there is one more of.
        requests: How many further requests that takes: another draw or prompt is asked about every item.
        verdict_error: The standard error of an item's verdict then.
        mean_error: The standard error of the mean over all items then.
        gain: By how much each of the requests lessens the variance of the mean.
    """

    more: Literal["draw", "prompt", "item"]
    requests: int
    verdict_error: float
    mean_error: float
    gain: float


def next_request(components: Components, items: int, prompts: int, draws: int) -> Sequence[Purchase]:
    """What the next requests buy after ``draws`` draws of ``prompts`` prompts about ``items`` items: the most gain first.

    What the components cannot tell is left out.

    Raises:
        ValueError: One of the numbers is below 1.
    """
    before = components.mean_error(items, prompts, draws)
    purchases: list[Purchase] = []
    steps: tuple[tuple[Literal["draw", "prompt", "item"], int, int, int], ...] = (
        ("draw", items, prompts, draws + 1),
        ("prompt", items, prompts + 1, draws),
        ("item", items + 1, prompts, draws),
    )
    for more, *design in steps:
        verdict, mean = components.verdict_error(*design[1:]), components.mean_error(*design)
        if before is None or verdict is None or mean is None:
            continue
        requests = design[0] * design[1] * design[2] - items * prompts * draws
        purchases.append(Purchase(more, requests, verdict, mean, (before**2 - mean**2) / requests))
    return sorted(purchases, key=lambda purchase: -purchase.gain)


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"expected 1 of {name} or more, found {number}")

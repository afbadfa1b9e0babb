"""Samples that plans suggest, since judging everything would be expensive."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from math import sqrt
from typing import NamedTuple

from judgekit.errors import join_limited
from judgekit.jobs.options import RunOptions
from judgekit.terminal import printable
from judgekit.traces.sample import Sample

_ENOUGH = 9604
"""The number of samples that gives a share to within one percentage point, with a confidence of 95 %."""
_LARGEST = 0.25
_KEPT = 1 << 14
"""The samples that are remembered: more than any share that is suggested draws."""
_DOMAINS_SHOWN = 8
_NO_DOMAIN = "no domain"


class SuggestedSample(NamedTuple):
    """A sample of the recordings that is enough for most purposes.

    Attributes:
        share: The value of ``--sample-share``, in percent.
        selected: The number of its samples, by domain.
        samples: The number of all samples, by domain.
        cost_usd: The estimated cost of judging it.
        squared_group_sizes: The sum of the squared sizes of its groups; a sample without a group is one by itself.
    """

    share: float
    selected: Mapping[str, int]
    samples: Mapping[str, int]
    cost_usd: float
    squared_group_sizes: int

    @property
    def option(self) -> str:
        """The option that draws it."""
        return f"--sample-share {self.share:g}%"

    def __str__(self) -> str:
        count = sum(self.selected.values())
        text = (
            f"{self.option} scores {count:,} of {sum(self.samples.values()):,} samples, drawn by a hash of their ids, for "
            f"about ${self.cost_usd:,.2f}; shares of passed samples are then known to within {_points(count, count)} (95 %)"
        )
        if self.squared_group_sizes > count:
            text += f", or {_points(count, self.squared_group_sizes)} if all samples of a group are alike"
        if len(self.samples) > 1:
            by_domain = (
                f"{printable(name)} {self.selected[name]:,} of {total:,}"
                + (f" (to within {_points(drawn, drawn)})" if (drawn := self.selected[name]) else "")
                for name, total in sorted(self.samples.items(), key=lambda one: -one[1])
            )
            text += f"; by domain: {join_limited(by_domain, _DOMAINS_SHOWN, ', ')}"
        return text


@dataclass
class SampleDraw:
    """A draw from samples whose number is not known before all are read. It draws what ``options`` would draw."""

    options: RunOptions
    domains: Counter[str] = field(default_factory=Counter[str])
    _first: list[tuple[int, int, str, str | None]] = field(
        default_factory=list[tuple[int, int, str, str | None]], repr=False
    )

    def add(self, number: int, sample: Sample) -> None:
        """Add a sample."""
        domain = _NO_DOMAIN if sample.domain is None else sample.domain
        self.domains[domain] += 1
        one = (-self.options.place_of(sample), number, domain, sample.group)
        if len(self._first) < _KEPT:
            heappush(self._first, one)
        else:
            heappushpop(self._first, one)

    def suggest(self, cost_usd: float) -> SuggestedSample | None:
        """Return a sample, given the cost of judging all; ``None`` if it would be empty or cannot be drawn."""
        total = self.domains.total()
        if not total or self.options.limit is not None or self.options.sample is not None:
            return None
        part = min(_ENOUGH / total, _LARGEST) * (self.options.sample_share or 1)
        share = float(f"{100 * part:.1g}")
        options = self.options.model_copy(update={"sample_share": share / 100})
        drawn = [one for one in self._first if options.is_drawn(-one[0])]
        if not drawn:
            return None
        groups = Counter(number if group is None else group for _, number, _, group in drawn)
        return SuggestedSample(
            share,
            Counter(domain for _, _, domain, _ in drawn),
            self.domains,
            cost_usd * len(drawn) / total,
            sum(size * size for size in groups.values()),
        )


def _points(count: int, squares: int) -> str:
    """Return half the widest interval of a share of so many samples, given the squared sizes of their groups."""
    return f"{min(50.0, 98 * sqrt(squares) / count):.1f} points"

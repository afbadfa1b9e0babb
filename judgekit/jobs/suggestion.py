"""Samples that plans suggest, since judging everything would be expensive."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from math import sqrt
from shlex import quote
from typing import NamedTuple

from judgekit.errors import join_limited
from judgekit.jobs.options import OTHER_DOMAINS, RANKS, RunOptions
from judgekit.terminal import printable
from judgekit.traces.sample import Sample

_ENOUGH = 9604
"""The number of samples that gives a share to within one percentage point, with a confidence of 95 %."""
_LARGEST = 0.25
_KEPT = 1 << 14
"""The samples of a domain that are remembered: more than any share that is suggested draws."""
_STRATA = 8
"""With more domains, samples are drawn from all of them together."""
_NO_DOMAIN = "no domain"


class SuggestedSample(NamedTuple):
    """A sample of the recordings that is enough for most purposes.

    Attributes:
        shares: The share by domain, as in `RunOptions.sample`. If domains have one each, they are such that each
            domain has its part of the sample, rounded.
        selected: The number of its samples, by domain.
        samples: The number of all samples, by domain.
        cost_usd: The estimated cost of judging it.
        squared_group_sizes: The sum of the squared sizes of its groups; a sample without a group is one by itself.
    """

    shares: Mapping[str, float]
    selected: Mapping[str, int]
    samples: Mapping[str, int]
    cost_usd: float
    squared_group_sizes: int

    @property
    def option(self) -> str:
        """The options that draw it."""
        texts = (f"{name and f'{name}='}{100 * share:.12g}%" for name, share in self.shares.items())
        return " ".join(f"--sample {quote(printable(text))}" for text in texts)

    def __str__(self) -> str:
        count = sum(self.selected.values())
        which = ", by domain" if len(self.shares) > 1 else ""
        text = (
            f"{self.option} scores {count:,} of {sum(self.samples.values()):,} samples, drawn by a hash of their ids{which}, "
            f"for about ${self.cost_usd:,.2f}; shares of passed samples are then known to within {_points(count, count)} (95 %)"
        )
        if self.squared_group_sizes > count:
            text += f", or {_points(count, self.squared_group_sizes)} if all samples of a group are alike"
        if len(self.samples) > 1:
            by_domain = (
                f"{printable(name or _NO_DOMAIN)} {self.selected[name]:,} of {total:,}"
                + (f" (to within {_points(drawn, drawn)})" if (drawn := self.selected[name]) else "")
                for name, total in sorted(self.samples.items(), key=lambda count: -count[1])
            )
            text += f"; by domain: {join_limited(by_domain, _STRATA, ', ')}"
        return text


@dataclass
class SampleDraw:
    """A draw from samples whose number is not known before all are read. It draws what ``options`` would draw."""

    options: RunOptions
    domains: Counter[str] = field(default_factory=Counter[str])
    _first: dict[str, list["_Candidate"]] = field(default_factory=dict[str, list["_Candidate"]], repr=False)

    def add(self, number: int, sample: Sample) -> None:
        """Add a sample."""
        domain = sample.domain or OTHER_DOMAINS
        self.domains[domain] += 1
        stratum = domain if len(self.domains) <= _STRATA else OTHER_DOMAINS
        self._keep(stratum, _Candidate(-self.options.rank_of(sample), number, domain, sample.group))
        if len(self.domains) > _STRATA and len(self._first) > 1:
            for name in [name for name in self._first if name != OTHER_DOMAINS]:
                for candidate in self._first.pop(name):
                    self._keep(OTHER_DOMAINS, candidate)

    def _keep(self, stratum: str, candidate: "_Candidate") -> None:
        kept = self._first.setdefault(stratum, [])
        if len(kept) < _KEPT:
            heappush(kept, candidate)
        else:
            heappushpop(kept, candidate)

    def suggest(self, cost_usd: float) -> SuggestedSample | None:
        """Return a sample, given the cost of judging all; ``None`` if it would be empty or cannot be drawn."""
        total = self.domains.total()
        if not total or self.options.limit is not None or isinstance(self.options.sample, int):
            return None
        part = min(_ENOUGH / total, _LARGEST)
        drawn_from = min((self.options.shares or {OTHER_DOMAINS: 1.0}).values())
        overall = float(f"{part * drawn_from:.1g}")
        shares = {OTHER_DOMAINS: overall}
        if len(self._first) > 1:
            named = sorted(name for name in self._first if name != OTHER_DOMAINS)
            for name in (*named, *([OTHER_DOMAINS] if OTHER_DOMAINS in self._first else [])):
                shares[name] = _share_of_first(self._first[name], round(part * self.domains[name]))
        drawn = [
            candidate
            for name, kept in self._first.items()
            for candidate in kept
            if -candidate.rank < shares.get(name, overall) * RANKS
        ]
        if not drawn:
            return None
        groups = Counter(sample.number if sample.group is None else sample.group for sample in drawn)
        return SuggestedSample(
            shares,
            Counter(candidate.domain for candidate in drawn),
            self.domains,
            cost_usd * len(drawn) / total,
            sum(size * size for size in groups.values()),
        )


class _Candidate(NamedTuple):
    """A sample that may be drawn; ``rank`` is that of `RunOptions.rank_of`, negative so that heaps drop the last ones."""

    rank: int
    number: int
    domain: str
    group: str | None


def _share_of_first(kept: Iterable[_Candidate], count: int) -> float:
    """Return a share with few digits that draws the first ``count`` candidates, if it can; ``kept`` holds one more, or all."""
    ranks = sorted(-candidate.rank for candidate in kept)
    low = ranks[count - 1] if count else 0
    high = ranks[count] if count < len(ranks) else RANKS
    shares = (float(f"{(low + high) / 2 / RANKS:.{digits}g}") for digits in range(1, 18))
    return next((share for share in shares if low < share * RANKS <= high), high / RANKS)


def _points(count: int, squares: int) -> str:
    """Return half the widest interval of a share of so many samples, given the squared sizes of their groups."""
    return f"{min(50.0, 98 * sqrt(squares) / count):.1f} points"

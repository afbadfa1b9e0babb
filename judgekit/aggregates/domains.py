"""Macro means: every domain counts once, however many samples it has."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from judgekit.aggregates.total import Total
from judgekit.score import Score
from judgekit.traces.rendering import quoted_name

_DOMAINS_SHOWN = 8


class Domain(NamedTuple):
    """The mean and the number of a domain's scores."""

    mean: float
    sample_count: int


def domain_means(scored: Iterable[tuple[str, float]]) -> Mapping[str, Domain]:
    """Return the mean of each domain from pairs of domain and score, in order of first appearance."""
    scores: dict[str, list[float]] = {}
    for domain, score in scored:
        scores.setdefault(domain, []).append(score)
    return {domain: Domain(fsum(own) / len(own), len(own)) for domain, own in scores.items()}


def mean_of_means(domains: Mapping[str, Domain]) -> float:
    """Return the mean of the domains' means. There must be at least one domain."""
    return fsum(domain.mean for domain in domains.values()) / len(domains)


def macro_mean(scores: Sequence[Score]) -> Total:
    """Return the mean of the domains' mean scores. A score's domain is ``details["domain"]``.

    The total is undefined if a score has no domain. Its figures are the means of the domains, the lowest first.
    """
    pairs = [(score.details.get("domain"), score.value) for score in scores]
    named = [(domain, value) for domain, value in pairs if isinstance(domain, str) and domain and value is not None]
    if len(named) < len(scores):
        note = f"undefined: {len(scores) - len(named)} of {len(scores)} scores have no domain"
        return Total(None, "macro mean", note)
    domains = domain_means(named)
    shown = sorted(domains, key=lambda domain: (domains[domain].mean, domain))[:_DOMAINS_SHOWN]
    sizes = {domain.sample_count for domain in domains.values()}
    each = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    note = f"over {len(domains)} domain{'' if len(domains) == 1 else 's'} with {each} scored each"
    figures = {quoted_name(domain): domains[domain].mean for domain in shown}
    if len(figures) < len(domains):
        note += f", of which the lowest {len(figures)} are shown"
    return Total(mean_of_means(domains), "macro mean", note, figures)

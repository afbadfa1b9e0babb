"""Descriptions of sets of samples, and tests of whether two sets differ, both without labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median

from pydantic import Field

from judgekit.errors import join_limited, short_repr
from judgekit.runs.rows import Row
from judgekit.runs.usage import ConversationUsage
from judgekit.traces.message import FrozenModel, Many

_KEPT = 200
_DOMAINS = 50  # more domain names than this tell samples apart, not kinds of samples
_NO_DOMAIN = "no domain"
_NO_AGENT = "not recorded"
_NAMED = 3
_ALPHA = 0.01  # one in a hundred pairs of equal populations is reported as different


class Population(FrozenModel):
    """A description of the judged samples, without labels, that shows whether other samples are like them.

    Attributes:
        samples: The number of samples.
        mean: The mean of the judge's values.
        domains: The number of described samples in each domain.
        agents: The number of described samples by agent, see `judgekit.runs.usage.agent_of`; empty if there are too
            many.
        features: The sorted values of the samples by name, such as ``messages`` or ``confidence``: at most 200 of them,
            evenly spaced.
    """

    samples: int
    mean: float | None = None
    domains: dict[str, int] = Field(default_factory=dict)
    agents: dict[str, int] = Field(default_factory=dict)
    features: dict[str, Many[float]] = Field(default_factory=dict)


def first_of_units(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first row of each unit. The samples of a unit, such as trials of one task, resemble each other."""
    rows_by_unit: dict[str | int, Row] = {}
    for row in rows:
        rows_by_unit.setdefault(row.index if row.unit is None else row.unit, row)
    return list(rows_by_unit.values())


def describe_population(rows: Sequence[Row], usages: Mapping[int, ConversationUsage]) -> Population:
    """Return a description of the rows that have a value; ``usages`` holds the usage of conversations by number.

    To make populations testable against each other, one sample of each unit is described, and each agent is counted
    once in each unit.
    """
    values = [row.score.value for row in rows if row.score.value is not None]
    made_by = ((row, usages[row.index].agent if row.index in usages else None) for row in rows)
    trials = {(row.index if row.unit is None else row.unit, agent or _NO_AGENT) for row, agent in made_by}
    agents = Counter(agent for _, agent in trials)
    rows = first_of_units(rows)
    domains = Counter(_NO_DOMAIN if row.domain is None else row.domain for row in rows)
    has_domains = 1 <= len(domains.keys() - {_NO_DOMAIN}) < _DOMAINS
    took = [usages[row.index] for row in rows if row.index in usages]
    traits: dict[str, list[float]] = {
        "messages": [usage.messages for usage in took],
        "tool calls": [usage.tool_calls for usage in took],
        "confidence": [row.score.confidence for row in rows if row.score.confidence is not None],
    }
    return Population(
        samples=len(values),
        mean=fsum(values) / len(values) if values else None,
        domains=dict(sorted(domains.items())) if has_domains else {},
        agents=dict(sorted(agents.items())) if len(agents) < _DOMAINS else {},
        features={name: _spaced(sorted(trait)) for name, trait in traits.items() if trait},
    )


def population_differences(
    one: Population, other: Population, verdicts: tuple[Mapping[str, int], Mapping[str, int]] | None = None
) -> Sequence[str] | None:
    """Return descriptions of how two populations differ by more than chance would explain.

    Each trait known for both is tested: numbers by the Kolmogorov-Smirnov test; domains, agents and, if given, the
    judge's verdicts by an exact test of homogeneity. p is adjusted by Holm's method, and populations differ where it is
    below 0.01.

    Returns:
        ``None`` if no trait is known for both.
    """
    from judgekit.stats.comparison import holm  # noqa: PLC0415 - numpy takes a while
    from judgekit.stats.homogeneity import homogeneity, kolmogorov_smirnov  # noqa: PLC0415

    differences: list[tuple[str, float | None]] = [
        (
            f"{name} (median {median(one.features[name]):.3g} and {median(other.features[name]):.3g})",
            kolmogorov_smirnov(one.features[name], other.features[name]),
        )
        for name in one.features
        if name in other.features
    ]
    kinds: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {
        "domains": (one.domains, other.domains),
        "agents": (one.agents, other.agents),
        **({"verdicts": verdicts} if verdicts else {}),
    }
    differences += [(_largest_difference(name, *pair), homogeneity(*pair)) for name, pair in kinds.items() if all(pair)]
    if all(p is None for _, p in differences):
        return None
    adjusted = holm([p for _, p in differences])
    return [
        difference for (difference, _), p in zip(differences, adjusted, strict=True) if p is not None and p < _ALPHA
    ]


def transfer_obstacles(target: Population, audited: Population) -> Sequence[str]:
    """Return why a judge's errors on audited samples say nothing about its errors here; empty if they may.

    Judges err at different rates on different agents, so the agents must be recorded, and those here must be among the
    audited ones. In addition, the samples must not differ by more than chance would explain.
    """
    unknown: dict[str, list[str]] = {}
    for where, population in (("here", target), ("there", audited)):
        if why := _unknown_agents(population):
            unknown.setdefault(why, []).append(where)
    differences = [f"{why} {' or '.join(places)}" for why, places in unknown.items()]
    if not unknown and (others := target.agents.keys() - audited.agents.keys()):
        names = (join_limited(map(short_repr, sorted(agents)), _NAMED, ", ") for agents in (others, audited.agents))
        differences.append("different agents: {} here, {} there".format(*names))
    if differences:  # once is enough
        target = target.model_copy(update={"agents": {}})
    return [*differences, *(population_differences(target, audited) or ())]


def _unknown_agents(population: Population) -> str:
    """Return why the agents that made the samples are unknown; empty if they are known."""
    if not population.agents:
        return f"too many agents ({_DOMAINS} or more) to compare"
    if _NO_AGENT in population.agents:
        return f"the agent {'' if len(population.agents) == 1 else 'of some samples '}is not recorded"
    return ""


def _largest_difference(name: str, a: Mapping[str, int], b: Mapping[str, int]) -> str:
    """Return a description of the kind whose shares differ most."""
    shares = {kind: (a.get(kind, 0) / sum(a.values()), b.get(kind, 0) / sum(b.values())) for kind in {*a, *b}}
    kind, (here, there) = max(sorted(shares.items()), key=lambda share: abs(share[1][0] - share[1][1]))
    return f"{name} ({short_repr(kind)} {here * 100:.3g}% and {there * 100:.3g}%)"


def _spaced(values: Sequence[float]) -> Sequence[float]:
    """Return at most 200 of the sorted values, evenly spaced, including the first and the last."""
    if len(values) <= _KEPT:
        return values
    return [values[index * (len(values) - 1) // (_KEPT - 1)] for index in range(_KEPT)]

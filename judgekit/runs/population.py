"""What was judged, and whether other samples are like it, as far as that shows without labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median

from pydantic import Field

from judgekit.errors import listed, shortened
from judgekit.runs.conduct import Conduct
from judgekit.runs.rows import Row
from judgekit.traces.message import Many, Record

_KEPT = 200
_DOMAINS = 50  # more domain names than this tell samples apart, not kinds of samples
_NO_DOMAIN = "no domain"
_NO_AGENT = "not recorded"
_NAMED = 3
_ALPHA = 0.01  # one in a hundred pairs of equal populations is reported as different


class Population(Record):
    """What was judged, as far as it can be told without a label, to tell whether other samples are like it.

    Attributes:
        samples: How many.
        mean: Of the judge's values.
        domains: How many samples each domain has, of those that were looked at.
        agents: How many of these each agent made, see `judgekit.runs.conduct.agent_of`; empty where they are very many.
        traits: By name, such as ``messages`` or ``confidence``, the sorted values of the samples, at most 200 of them,
            evenly spaced.
    """

    samples: int
    mean: float | None = None
    domains: dict[str, int] = Field(default_factory=dict)
    agents: dict[str, int] = Field(default_factory=dict)
    traits: dict[str, Many[float]] = Field(default_factory=dict)


def independent(rows: Sequence[Row]) -> Sequence[Row]:
    """The first row of each group, such as of the trials of one task, which are like each other."""
    found: dict[str | int, Row] = {}
    for row in rows:
        found.setdefault(row.index if row.group is None else row.group, row)
    return list(found.values())


def population_of(rows: Sequence[Row], conducts: Mapping[int, Conduct]) -> Population:
    """What rows with a value are of; ``conducts`` says what their conversations took, by their numbers.

    Of each group one sample counts for what samples are like, and one of each agent for who made them, so that populations
    can be tested against each other.
    """
    values = [row.score.value for row in rows if row.score.value is not None]
    made_by = ((row, conducts[row.index].agent if row.index in conducts else None) for row in rows)
    trials = {(row.index if row.group is None else row.group, agent or _NO_AGENT) for row, agent in made_by}
    agents = Counter(agent for _, agent in trials)
    rows = independent(rows)
    domains = Counter(_NO_DOMAIN if row.domain is None else row.domain for row in rows)
    has_domains = 1 <= len(domains.keys() - {_NO_DOMAIN}) < _DOMAINS
    took = [conducts[row.index] for row in rows if row.index in conducts]
    traits: dict[str, list[float]] = {
        "messages": [conduct.messages for conduct in took],
        "tool calls": [conduct.tool_calls for conduct in took],
        "confidence": [row.score.confidence for row in rows if row.score.confidence is not None],
    }
    return Population(
        samples=len(values),
        mean=fsum(values) / len(values) if values else None,
        domains=dict(sorted(domains.items())) if has_domains else {},
        agents=dict(sorted(agents.items())) if len(agents) < _DOMAINS else {},
        traits={name: _spaced(sorted(trait)) for name, trait in traits.items() if trait},
    )


def differences(
    one: Population, other: Population, verdicts: tuple[Mapping[str, int], Mapping[str, int]] | None = None
) -> Sequence[str] | None:
    """Return in what two populations differ by more than chance would have it, in words.

    Each trait that is known of both is tested: numbers by Kolmogorov and Smirnov's test, domains, agents (and, where they
    are given, the judge's verdicts) by an exact test of homogeneity; p is adjusted by Holm, and below 0.01 they differ.

    Returns:
        ``None`` where nothing is known of both.
    """
    from judgekit.stats.comparison import holm  # noqa: PLC0415 - numpy takes a while
    from judgekit.stats.homogeneity import homogeneity, kolmogorov_smirnov  # noqa: PLC0415

    found: list[tuple[str, float | None]] = [
        (
            f"{name} ({_middle(one.traits[name])} and {_middle(other.traits[name])} in the middle)",
            kolmogorov_smirnov(one.traits[name], other.traits[name]),
        )
        for name in one.traits
        if name in other.traits
    ]
    kinds: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {
        "domains": (one.domains, other.domains),
        "agents": (one.agents, other.agents),
        **({"verdicts of the judge": verdicts} if verdicts else {}),
    }
    found += [(_apart(name, *pair), homogeneity(*pair)) for name, pair in kinds.items() if all(pair)]
    if all(p is None for _, p in found):
        return None
    adjusted = holm([p for _, p in found])
    return [said for (said, _), p in zip(found, adjusted, strict=True) if p is not None and p < _ALPHA]


def unlike(here: Population, audited: Population) -> Sequence[str]:
    """Return why errors of a judge on audited samples say nothing of its errors here, in words; nothing if they may.

    Judges err at other rates on other agents: the agents here must be recorded, and be among those that were audited. Nor
    may the samples differ by more than chance would have it.
    """
    unknown: dict[str, list[str]] = {}
    for where, one in (("here", here), ("there", audited)):
        if why := _unknown_agents(one):
            unknown.setdefault(why, []).append(where)
    found = [f"{why} {' or '.join(places)}" for why, places in unknown.items()]
    if not unknown and (others := here.agents.keys() - audited.agents.keys()):
        names = (listed(map(shortened, sorted(one)), _NAMED, ", ") for one in (others, audited.agents))
        found.append("another agent: {} here, {} there".format(*names))
    if found:  # once is enough
        here = here.model_copy(update={"agents": {}})
    return [*found, *(differences(here, audited) or ())]


def _unknown_agents(population: Population) -> str:
    """Return why it is not known which agents made the samples; empty if it is."""
    if not population.agents:
        return f"the agents are not kept, being {_DOMAINS} or more,"
    if _NO_AGENT in population.agents:
        return f"the agent {'' if len(population.agents) == 1 else 'of some samples '}is not recorded"
    return ""


def _middle(values: Sequence[float]) -> str:
    return f"{median(values):.3g}"


def _apart(name: str, a: Mapping[str, int], b: Mapping[str, int]) -> str:
    """The kind whose shares lie furthest apart."""
    shares = {kind: (a.get(kind, 0) / sum(a.values()), b.get(kind, 0) / sum(b.values())) for kind in {*a, *b}}
    kind, (here, there) = max(sorted(shares.items()), key=lambda one: abs(one[1][0] - one[1][1]))
    return f"{name} ({shortened(kind)} {here * 100:.3g}% and {there * 100:.3g}%)"


def _spaced(values: Sequence[float]) -> Sequence[float]:
    """At most 200 of sorted values, evenly spaced, the first and the last among them."""
    if len(values) <= _KEPT:
        return values
    return [values[place * (len(values) - 1) // (_KEPT - 1)] for place in range(_KEPT)]

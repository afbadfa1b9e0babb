"""Plans of runs: the requests that a run would send to its judges, and what these would take."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import sqrt

from pydantic import JsonValue

from judgekit.gathering import asks_together
from judgekit.jobs.building import BuiltScorers
from judgekit.judges.judge import Judge, close_plan, find_judges
from judgekit.judges.providers.price import Price
from judgekit.judges.together import OtherWay
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import Row
from judgekit.runs.runner import make_tasks, score_tasks
from judgekit.runs.summary import Summary
from judgekit.score import planning
from judgekit.scoring import scorer_prompts
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_samples

_EXPENSIVE = 1000.0
"""US dollars from which a plan suggests to judge only some of the samples."""
_ENOUGH = 9604
"""The number of samples that gives a share to within one percentage point, with a confidence of 95 %."""


@dataclass(frozen=True)
class RunPlan:
    """The requests that a run would send to its judges, as far as they are known before the first answer.

    A reply that has to be corrected takes one more request.

    Attributes:
        summary: A line per scorer, with the requests, tokens and dollars to come.
        problems: The records that could not be read.
        judges: The judges of scorers that are texts, by name.
        samples: The number of samples.
        durations: For each account with limits per minute, by its judges, the time that the requests take at least.
        together: Whether questions are asked together.
        other_way: How much more it takes to ask all of them the other way; ``None`` if that makes no difference.
        flex_savings_usd: What the flex tier saves if it has capacity for all requests that ask for it.
        unpriced: The models whose price is not known.
    """

    summary: Summary
    problems: ReadingProblems
    judges: Mapping[str, Judge]
    samples: int
    durations: Mapping[str, timedelta]
    together: bool
    other_way: OtherWay | None
    flex_savings_usd: float
    unpriced: Sequence[str] = ()

    @property
    def requests(self) -> int:
        """The number of requests."""
        return round(sum(line.requests for line in self.summary))

    @property
    def cached(self) -> int:
        """The number of replies that would come from the cache."""
        return round(sum(line.cached for line in self.summary))

    @property
    def tokens(self) -> int | None:
        """The estimated number of tokens of the requests and replies; ``None`` if it is unknown."""
        counts = [line.tokens for line in self.summary]
        return None if None in counts else sum(filter(None, counts))

    @property
    def cost_usd(self) -> float | None:
        """The estimated cost of the requests in US dollars; ``None`` if a price is unknown."""
        costs = [line.cost_usd for line in self.summary]
        return None if None in costs else sum(filter(None, costs))

    @property
    def flex_cost_usd(self) -> float | None:
        """The cost if the flex tier has capacity for all requests that ask for it; ``None`` if none do, or if it is unknown."""
        return None if self.cost_usd is None or not self.flex_savings_usd else self.cost_usd - self.flex_savings_usd

    def __str__(self) -> str:
        return f"{self.requests:,} requests, {self.cached:,} from cache, {_estimates(self.tokens, self.cost_usd)}"

    @property
    def cheaper_share(self) -> float | None:
        """The share of the samples, in percent, that is enough for most purposes, if judging all of them costs over $1,000."""
        is_expensive = self.cost_usd is not None and self.cost_usd > _EXPENSIVE
        return float(f"{100 * min(_ENOUGH / self.samples, 0.25):.1g}") if is_expensive else None

    def notes(self) -> Iterator[str]:
        """Yield notes on the time that the run takes, and on a cheaper one."""
        for judges, duration in self.durations.items():
            yield f"{judges}: takes at least {duration} at the limits per minute"
        if self.flex_cost_usd is not None:
            yield f"about ${self.flex_cost_usd:.4f} if the flex tier has capacity for all requests"
        if self.unpriced and self.cost_usd is None:
            yield (
                f"no price is known for {', '.join(self.unpriced)}: price = {{input = ..., output = ...}} of the judge in judgekit.toml, "
                "in US dollars per million tokens, sets it"
            )
        if self.cheaper_share is not None:
            count = self.samples * self.cheaper_share / 100
            yield (
                f"over ${_EXPENSIVE:,.0f}: --sample {self.cheaper_share:.12g}% scores about {count:,.0f} samples, from which a "
                f"share of passed samples is known to within {98 / sqrt(count):.1f} points (95 %), if they are independent"
            )

    def as_json(self) -> JsonValue:
        """Return the plan as JSON."""
        names = ("requests", "cached", "tokens", "cost_usd")
        scorers: list[JsonValue] = []
        for line in self.summary:
            skipped: JsonValue = dict(line.reasons.get("skipped", {}))
            costs = {name: getattr(line, name) for name in names}
            scorers.append({"name": line.scorer, "samples": line.total, "skipped": skipped, **costs})
        return {
            **{name: getattr(self, name) for name in (*names, "samples", "together")},
            "scorers": scorers,
            "notes": [*self.notes()],
            "unread_records": [*map(str, self.problems.unread_records)],
        }

    def ways(self) -> Iterator[str]:
        """Yield a line for each way to ask, together and alone, if they differ; the way of the plan comes first."""
        if (other := self.other_way) is not None:
            tokens = None if self.tokens is None else self.tokens + other.tokens
            cost = None if self.cost_usd is None or other.usd is None else self.cost_usd + other.usd
            names = ("asked together", "each question by itself")[:: 1 if self.together else -1]
            yield f"{names[0]}: {self.requests:,} requests, {_estimates(self.tokens, self.cost_usd)}"
            yield f"{names[1]}: {round(self.requests + other.requests):,} requests, {_estimates(tokens, cost)}"


def _estimates(tokens: int | None, usd: float | None) -> str:
    count = "an unknown number of" if tokens is None else f"about {tokens:,}"
    return f"{count} tokens, {'unknown cost' if usd is None else f'about ${usd:.4f}'}"


@dataclass
class _Usage:
    """The requests and tokens of a plan, by judge."""

    requests: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    tokens: Counter[str] = field(default_factory=Counter[str])
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    flex_savings_usd: float = 0.0

    def add(self, row: Row) -> None:
        """Add the requests of a score."""
        for call in row.score.calls:
            if call.is_request:
                self.requests[call.judge] += call.requests
                self.tokens[call.judge] += call.tokens_paid or 0
                price = self.prices.get(call.judge) if call.tier == "flex" else None
                if price is not None and (flex := price.of(call.usage, "flex")) is not None:
                    self.flex_savings_usd += (call.cost_usd or flex) - flex

    def durations(self, judges: Iterable[Judge]) -> dict[str, timedelta]:
        """Return the least time for the requests of each account that has limits per minute, by its judges."""
        accounts: dict[tuple[str, str | None], dict[str, Judge]] = {}
        for judge in judges:
            accounts.setdefault(judge.account, {})[judge.model] = judge
        durations: dict[str, timedelta] = {}
        for account in accounts.values():
            minutes = [
                sum(used[model] for model in account) / limit
                for used, limits in (
                    (self.requests, [judge.requests_per_minute for judge in account.values()]),
                    (self.tokens, [judge.tokens_per_minute for judge in account.values()]),
                )
                if (limit := min(filter(None, limits), default=None)) is not None
            ]
            if seconds := round(60 * max(minutes, default=0)):
                durations[", ".join(account)] = timedelta(seconds=seconds)
        return durations


async def make_plan(built: BuiltScorers, samples: Iterable[Sample] | None = None) -> RunPlan:
    """Return the plan of a run, of the file that its options name or of given samples."""
    judged = [scorer for scorer in built.scorers if scorer_prompts(scorer)]
    prices = {judge.model: price for judge in find_judges(judged) if (price := judge.known_price) is not None}
    summary, problems, usage = Summary(), ReadingProblems(), _Usage(prices=prices)
    keeps_text = built.config is None or built.config.store_text
    read = (sample for _, sample in built.options.samples(problems, keeps_text=keeps_text))

    def add(row: Row) -> None:
        summary.add(row)
        usage.add(row)

    together = [scorer for scorer in judged if asks_together(scorer)]
    with planning():
        try:
            tasks = make_tasks(read if samples is None else check_samples(samples), built.scorers)
            await score_tasks(tasks, built.scorers, add, concurrency=1, companies=[together or judged])
        finally:
            await close_plan()
        other_way = OtherWay.of_plan()
    return RunPlan(
        summary,
        problems,
        {} if built.config is None else built.config.judges_used,
        max((line.total for line in summary), default=0),
        usage.durations(find_judges(judged)),
        bool(together),
        other_way if other_way is not None and other_way.tokens else None,
        usage.flex_savings_usd,
        sorted({judge.model for judge in find_judges(judged)} - prices.keys()),
    )

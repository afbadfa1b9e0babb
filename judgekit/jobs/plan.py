"""Plans of runs: the requests that a run would send to its judges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from judgekit.jobs.building import BuiltScorers
from judgekit.judges.judge import Judge
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.runner import make_tasks, score_tasks
from judgekit.runs.summary import Summary
from judgekit.score import planning
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_samples


@dataclass(frozen=True)
class RunPlan:
    """The requests that a run would send to its judges, as far as they are known before the first answer.

    A reply that has to be corrected takes one more request.

    Attributes:
        summary: A line per scorer, with the requests, tokens and dollars to come.
        problems: The records that could not be read.
        judges: The judges of scorers that are texts, by name.
    """

    summary: Summary = field(default_factory=Summary)
    problems: ReadingProblems = field(default_factory=ReadingProblems)
    judges: Mapping[str, Judge] = field(default_factory=dict[str, Judge])

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(line.requests for line in self.summary)

    @property
    def cached(self) -> int:
        """The number of replies that would come from the cache."""
        return sum(line.cached for line in self.summary)

    @property
    def tokens(self) -> int | None:
        """The estimated number of tokens of the requests and replies; ``None`` if it is unknown."""
        found = [line.tokens for line in self.summary]
        return None if None in found else sum(filter(None, found))

    @property
    def cost_usd(self) -> float | None:
        """The estimated cost of the requests in US dollars; ``None`` if a price is unknown."""
        found = [line.cost_usd for line in self.summary]
        return None if None in found else sum(filter(None, found))

    def __str__(self) -> str:
        tokens = "an unknown number of" if self.tokens is None else f"about {self.tokens:,}"
        cost = "unknown cost" if self.cost_usd is None else f"about ${self.cost_usd:.4f}"
        return f"{self.requests:,} requests, {self.cached:,} from cache, {tokens} tokens, {cost}"


async def make_plan(built: BuiltScorers, samples: Iterable[Sample] | None = None) -> RunPlan:
    """Return the plan of a run, of the file that its options name or of given samples."""
    found = RunPlan(judges={} if built.config is None else built.config.judges_used)
    keeps_text = built.config is None or built.config.store_text
    read = (sample for _, sample in built.options.samples(found.problems, keeps_text=keeps_text))
    todo = make_tasks(read if samples is None else check_samples(samples), built.scorers)
    with planning():
        await score_tasks(todo, built.scorers, found.summary.add, concurrency=1)
    return found

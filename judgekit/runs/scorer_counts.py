"""The summary of one scorer: its counts, its costs and its number."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from judgekit.aggregates.total import PackedScores
from judgekit.runs.answers import AnswerCounts
from judgekit.runs.intervals import ScoredValues
from judgekit.runs.repeats import Repeats, first_details
from judgekit.runs.rows import DAMAGED_ROW, Row
from judgekit.score import STATUSES, JudgeCall, Score, ScoreStatus

UNSCORED_STATUSES = STATUSES[1:]
_REASONS_COUNTED = 100


@dataclass
class ScorerCounts(ScoredValues):
    """The scores of one scorer, added one by one.

    Attributes:
        errors: The number of failed scores by error class.
        labels: The number of scored samples by label.
        warnings: The number of scores by warning.
        reasons: Why samples were not scored, by status: the label of the score, or else its reason, of which a judge
            may give as many as there are samples. The lines of `Summary.slices` have none.
        answers: The replies of judges by the model that answered.
        damaged_samples: The samples of failed scores that cannot be read because the run's file is damaged.
        requests: The number of requests that were sent, shares of those with several questions included.
        cached: The number of replies from the cache, shares included.
        unscored_requests: The number of requests that belong to attempts that gave no score or were repeated.
        tokens: The tokens of requests that were sent, cached replies being free; ``None`` if a provider did not report
            them.
        cost_usd: The cost of these requests; ``None`` if a price is unknown.
        price_lists: The lists behind the costs, such as ``litellm 1.106.2``.
        cached_tokens: The number of these tokens that the provider had cached.
        saved_usd: What the cached tokens saved, as far as it is known.
        judged: The number of scores for which judges were asked.
        shown: The sum over these of the share of the recording that the judges were shown.
        tiers: The number of requests that asked for the flex tier, by the tier that was billed.
        escalated: The number of ``samples`` that a cascade asked about, and of those of which a second judge was ``asked``.
        escalated_usd: The cost of the second judge; ``None`` if it is unknown, or replies came from the cache.
        missing: The number of samples without a score in a run that was stopped or interrupted.
        qualifier: The words before a total that is not exact: ``about `` or ``at least ``.
        audited: The audit status of the judge; empty for a scorer without one.
        agents: The agents and their models, as far as the recordings name them.
        signature: The signature of the scorer; ``None`` if it is unknown.
    """

    scorer: str
    signature: str | None = None
    counts: Counter[ScoreStatus] = field(default_factory=Counter[ScoreStatus])
    errors: Counter[str] = field(default_factory=Counter[str])
    labels: Counter[str] = field(default_factory=Counter[str])
    warnings: Counter[str] = field(default_factory=Counter[str])
    reasons: dict[ScoreStatus, Counter[str]] = field(default_factory=dict[ScoreStatus, Counter[str]])
    answers: AnswerCounts = field(default_factory=AnswerCounts)
    requests: float = 0
    damaged_samples: list[str] = field(default_factory=list[str])
    unscored_requests: float = 0
    lost_calls: int = 0
    cached: float = 0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    price_lists: set[str] = field(default_factory=set[str])
    cached_tokens: int = 0
    saved_usd: float = 0.0
    judged: int = 0
    shown: float = 0.0
    tiers: Counter[str] = field(default_factory=Counter[str])
    escalated: Counter[str] = field(default_factory=Counter[str])
    escalated_usd: float | None = 0.0
    missing: int = 0
    qualifier: str = ""
    audited: str = ""
    agents: Sequence[str] = ()
    repeats: Counter[str] = field(default_factory=Counter[str], repr=False)
    is_graded: bool = field(default=False, repr=False)
    _labeled: dict[float, str] = field(default_factory=dict[float, str], repr=False)

    def add(self, row: Row, packed: bytes | None = None) -> None:
        """Count one score. Its ``packed`` form, if its aggregate needs one, may be shared with other lines."""
        score = row.score
        self.counts[score.status] += 1
        if score.error is not None:
            self.errors[score.error] += 1
        if score.error == DAMAGED_ROW:
            self.damaged_samples.append(f"#{row.index} {row.sample_id!r}")
            self.tokens = self.cost_usd = None  # its calls are lost as well
        if score.warnings:
            self.warnings.update(score.warnings)
        for call in score.calls:
            self.answers.add(call)
            self._add_cost(call)
        if score.calls and score.error is None:
            self.judged += 1
            self.shown += share if isinstance(share := score.details.get("coverage"), float) else 1.0
        if len(score.calls) > 1:
            self._add_repeats(score)
        if score.calls:
            self._add_escalated(score)
        if score.value is None:
            self.add_unscored_sample(row)
            return
        if score.label is not None:
            self.labels[score.label] += 1
            is_other = self._labeled.setdefault(score.value, score.label) != score.label
            self.is_graded = self.is_graded or is_other or 0 < score.value < 1
        if packed is None and score.aggregate != "mean":
            packed = PackedScores.pack(score)
        self.add_value(row, score.value, packed)

    def add_reason(self, status: ScoreStatus, reason: str) -> None:
        """Count why scores have no value. Of reasons that are all different, only the first 100 are counted."""
        reasons = self.reasons.setdefault(status, Counter())
        if reason in reasons or len(reasons) < _REASONS_COUNTED:
            reasons[reason] += 1

    def _add_repeats(self, score: Score) -> None:
        """Count repeats that stop once the lead is decisive."""
        details = first_details(score)
        votes = details.get("votes")
        for holder in (details, *(votes.values() if isinstance(votes, dict) else ())):
            if not isinstance(holder, Mapping) or not isinstance(saved := holder.get("requests_saved"), int):
                continue
            if (repeats := Repeats.of(holder)) is not None:
                self.repeats.update(samples=1, made=len(repeats.values), most=repeats.max_repeats, saved=saved)

    def _add_escalated(self, score: Score) -> None:
        """Count a score of a cascade: whether a second judge was asked, and what it cost."""
        self.escalated["samples"] += 1
        if "doubted" not in score.details or score.label == "low_confidence":
            return
        first, second = score.calls[0].judge, score.calls[-1].judge
        self.escalated["asked"] += 1
        usd = [
            None if call.cached or first == second else call.usd_paid for call in score.calls if call.judge == second
        ]
        self.escalated_usd = _sum(self.escalated_usd, None if None in usd else fsum(filter(None, usd)))

    def add_unscored(self, calls: Iterable[JudgeCall]) -> None:
        """Add the cost of an attempt that gave no score or was repeated."""
        before = self.requests
        for call in calls:
            self._add_cost(call)
        self.unscored_requests += self.requests - before

    def add_lost_calls(self) -> None:
        """Count calls that can no longer be read, so that tokens and cost are unknown."""
        self.lost_calls += 1
        self.tokens = self.cost_usd = None

    def _add_cost(self, call: JudgeCall) -> None:
        if call.cached:
            self.cached += call.count
            return
        self.requests += call.requests
        self.cached_tokens += (call.usage and call.usage.cached_tokens) or 0
        self.saved_usd += call.saved_usd or 0.0
        if call.tier is not None:
            self.tiers[call.tier] += 1
        if call.price_list is not None:
            self.price_lists.add(call.price_list)
        self._add_paid(call.tokens_paid, call.usd_paid)

    def _add_paid(self, tokens: int | None, cost: float | None) -> None:
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens
        self.cost_usd = _sum(self.cost_usd, cost)

    @property
    def judges(self) -> Counter[str]:
        """The number of answers by judge."""
        return Counter({judge: models.total() for judge, models in self.answers.models.items()})

    @property
    def total(self) -> int:
        """The number of all samples, scored or not."""
        return self.counts.total() + self.missing

    @property
    def value(self) -> float | None:
        """The aggregate of the scored samples; ``None`` if there are none, or if it is undefined."""
        return None if (overall := self.overall) is None else overall.value


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second

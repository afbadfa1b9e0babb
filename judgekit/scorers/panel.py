"""Panels: one verdict from several scorers, usually the same question asked to several judges."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import fsum, inf
from statistics import median
from typing import Literal, TypeAlias, get_args

from pydantic import JsonValue

from judgekit.errors import (
    STOPS_JUDGE,
    BudgetError,
    ConfigError,
    JudgeDownError,
    JudgeError,
    JudgeRejectedError,
    PlannedError,
    QuotaError,
    check_choice,
    merge_errors,
)
from judgekit.gathering import ask_apart, gather_all
from judgekit.judges.judge import Judge
from judgekit.score import ScaleValue, Score
from judgekit.scorers.repeat import Repeat, Vote, format_votes, least_shown, merged_warnings, score_votes, verdict_json
from judgekit.scoring import (
    JudgePrompt,
    Scorer,
    SyncScore,
    attempt,
    check_scorers,
    scorer_label_values,
    scorer_prompts,
    scorer_scope,
)
from judgekit.traces.equality import is_number
from judgekit.traces.sample import Sample
from judgekit.traces.tree import Scope

VotingRule: TypeAlias = Literal["majority", "unanimous", "mean", "median"]
_COUNTING = ("majority", "unanimous")
_OTHER = -1.0
"""A vote that no member has given so far."""
_WHY: dict[type[JudgeError], str] = {
    JudgeDownError: "its judge is down",
    JudgeRejectedError: "its judge rejects all requests",
    BudgetError: "its budget is spent",
    QuotaError: "its quota is spent",
}
_STOPPED = {kind.__name__: kind for kind in STOPS_JUDGE}


@dataclass(frozen=True)
class Panel(SyncScore):
    """1 if most of its members vote for 1; their votes become one verdict, by majority or another rule.

    A value is a vote. A skip is a vote as well, that the question does not apply. An abstention supports no value,
    but counts as a vote, because a member that looked and could not decide is a reason to doubt the others. A failure
    is no vote, because it says nothing about the sample. It fails the panel, so that no verdict rests on fewer members
    than requested. With a ``quorum``, failed members are left out as long as that many others gave a value or skipped;
    below the quorum, the panel fails if a member failed, and otherwise abstains. A member whose judge is down, or has
    spent its budget or quota, is left out in the same way, with a warning. If too few others are left for the panel to
    ever decide, it scores no further samples.

    By ``majority``, the verdict is the vote of more than half of the members; by ``unanimous``, the vote of all. By
    ``mean`` (also with ``weights``) and ``median``, it is that of the values, if more than half of the votes are values. Skipped if the verdict
    is a skip; by mean and median, if more than half of the votes are skips. Otherwise, as for ties, the panel abstains.

    Costs the requests of all members, which are asked concurrently. With ``escalate``, the first two are asked
    concurrently, and each other one only if the remaining votes could change the verdict; put the cheapest first.

    The confidence is the share of votes for the verdict; a mean or a median has none. Details: ``votes`` (by member,
    each with the ``judge`` that was asked, its status, value, label and reason, and for a `Repeat` also the values of
    its ``repeats``, their ``min_repeats`` and ``max_repeats``, and ``requests_saved``) and ``unasked`` (the members that were
    not needed). Members with the same name are distinguished by their judges. Source: panel of LLM evaluators
    (https://arxiv.org/abs/2404.18796).

    Args:
        scorers: The members, which may include a `Repeat` or another panel.
        rule: The rule that turns votes into a verdict.
        quorum: The number of members that must give a value or skip.
        escalate: Whether to ask further members only if they matter; only with majority and unanimous.
        weights: The weight of each member in a mean, above 0; equal if not given.
        name: The name of the scores.

    Raises:
        ConfigError: There are fewer than two members, or one is there twice; the rule is unknown; the quorum is
            unreachable; a mean or median escalates; or there are weights without a mean, or not one for each member.
    """

    scorers: Sequence[Scorer]
    rule: VotingRule = "majority"
    quorum: int | None = None
    escalate: bool = False
    weights: Sequence[float] = ()
    name: str = "panel"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorers", check_scorers(self.scorers))
        if len(self.scorers) < 2:
            raise ConfigError(f"a panel needs two or more members, found {len(self.scorers)}")
        if twice := [scorer.name for index, scorer in enumerate(self.scorers) if scorer in self.scorers[:index]]:
            raise ConfigError(f"{twice[0]!r} is in the panel twice; use Repeat to ask one scorer several times")
        check_choice("rule of a panel", self.rule, get_args(VotingRule))
        if self.quorum is not None and self.quorum not in range(1, len(self.scorers) + 1):
            raise ConfigError(
                f"quorum must be from 1 to {len(self.scorers)}, the number of members, found {self.quorum!r}"
            )
        if self.escalate and self.rule not in _COUNTING:
            raise ConfigError(
                f"a {self.rule} needs every vote, so it cannot escalate; rules that can: {', '.join(_COUNTING)}"
            )
        object.__setattr__(self, "weights", tuple(self.weights))
        if self.weights and self.rule != "mean":
            raise ConfigError(f"only a mean has weights, not the rule {self.rule!r}")
        are_weights = all(is_number(weight) and 0 < weight < inf for weight in self.weights)
        if self.weights and not (are_weights and len(self.weights) == len(self.scorers)):
            raise ConfigError(
                f"weights must be {len(self.scorers)} numbers above 0, one for each member, found {list(self.weights)!r}"
            )

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence."""
        return self.rule in _COUNTING

    @property
    def scope(self) -> Scope:
        """The part of a recording that its members look at; the whole tree if one of them does."""
        return "tree" if "tree" in map(scorer_scope, self.scorers) else "own"

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels, if the prompts do not define them."""
        return scorer_label_values(self.scorers[0])

    @property
    def prompts(self) -> Sequence[JudgePrompt]:
        """The prompts of its members."""
        return tuple(dict.fromkeys(prompt for scorer in self.scorers for prompt in scorer_prompts(scorer)))

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        ask_apart()
        scores: list[Score] = []
        asked_at_once = 2 if self.escalate else len(self.scorers)
        while len(scores) < len(self.scorers) and not self._is_settled(scores):
            members = self.scorers[len(scores) : len(scores) + asked_at_once]
            scores += await gather_all(_vote(member, sample) for member in members)
            asked_at_once = 1
            stopped = [_STOPPED[score.error](score.reason) for score in scores if score.error in _STOPPED]
            if stopped and len(self.scorers) - len(stopped) < (self.quorum or len(self.scorers)):
                raise merge_errors(stopped)
        return self._score(scores)

    def _is_settled(self, scores: Sequence[Score]) -> bool:
        """Return whether the remaining votes cannot change the verdict, even if they are all the same."""
        if any(score.error == PlannedError.__name__ for score in scores):
            return False  # no judge has been asked; a plan includes all members
        votes = score_votes(scores)
        rest = len(self.scorers) - len(votes)
        likely: list[Vote] = [*votes, "abstained", _OTHER]
        return len({self._verdict([*votes, *repeat(vote, rest)]) for vote in likely}) == 1

    def _verdict(self, votes: Sequence[Vote]) -> Vote:
        cast = Counter[Vote](vote for vote in votes if vote != "failed")
        failed = len(votes) - cast.total()
        if (failed and self.quorum is None) or _decided(votes) < (self.quorum or 0):
            return "failed" if failed else "abstained"
        if self.rule in _COUNTING:
            needed = cast.total() if self.rule == "unanimous" else cast.total() // 2 + 1
            vote, most = cast.most_common(1)[0]
            return vote if most >= needed else "abstained"
        values = [vote for vote in cast.elements() if isinstance(vote, float)]
        if 2 * len(values) > cast.total():
            return self._mean(votes) if self.rule == "mean" else median(values)
        return "skipped" if 2 * cast["skipped"] > cast.total() else "abstained"

    def _mean(self, votes: Sequence[Vote]) -> float:
        weights = self.weights or repeat(1.0)
        weighted = [(weight, vote) for weight, vote in zip(weights, votes, strict=False) if isinstance(vote, float)]
        return fsum(weight * vote for weight, vote in weighted) / fsum(weight for weight, _ in weighted)

    def _score(self, scores: Sequence[Score]) -> Score:
        votes = score_votes(scores)
        verdict, counted = self._verdict(votes), format_votes(votes)
        titles = _unique_names(self.scorers)
        first = next((score for score, vote in zip(scores, votes, strict=True) if vote == verdict), None)
        is_counted = verdict == "skipped" or (self.rule in _COUNTING and verdict != "abstained")
        if verdict == "failed" and first:
            reason = f"{votes.count('failed')} of {len(votes)} members failed: {first.reason}"
        elif self.quorum is not None and _decided(votes) < self.quorum:
            reason = f"quorum of {self.quorum} not reached: {counted}"
        elif verdict == "abstained":
            reason = f"no verdict by {self.rule}: {counted}"
        elif is_counted:
            reason = f"by {self.rule} ({counted}): {first.reason if first else ''}"
        else:
            reason = f"{'weighted ' if self.weights else ''}{self.rule} of the values: {counted}"
        confidence = votes.count(verdict) / max(len(votes) - votes.count("failed"), 1)
        details: dict[str, JsonValue] = {
            "votes": {title: _vote_as_json(score) for title, score in zip(titles, scores, strict=False)},
            "unasked": list(titles[len(scores) :]),
            **least_shown(scores),
        }
        voted = zip(titles, scores, strict=False)
        stopped = [f"{title} has no vote: {_WHY[_STOPPED[one.error]]}" for title, one in voted if one.error in _STOPPED]
        return Score(
            scorer=self.name,
            status=verdict if isinstance(verdict, str) else "scored",
            value=verdict if isinstance(verdict, float) else None,
            label=first.label if first and is_counted else None,
            reason=reason,
            details=details,
            calls=tuple(call for score in scores for call in score.calls),
            confidence=confidence if self.rule in _COUNTING and not isinstance(verdict, str) else None,
            error=first.error if first else None,
            warnings=(*merged_warnings(scores), *stopped),
        )


async def _vote(member: Scorer, sample: Sample) -> Score:
    try:
        return await attempt(member, sample)
    except STOPS_JUDGE as error:
        return Score.failed(member.name, str(error), error=type(merge_errors([error])).__name__)


def _decided(votes: Sequence[Vote]) -> int:
    """Return the number of members that gave a value or skipped."""
    return len(votes) - votes.count("abstained") - votes.count("failed")


def _unique_names(scorers: Sequence[Scorer]) -> Sequence[str]:
    """Return unique names of the scorers, with the judge's model or a number appended to equal ones."""
    names = [scorer.name for scorer in scorers]
    judged = [_with_judge(scorer) if names.count(scorer.name) > 1 else scorer.name for scorer in scorers]
    return [f"{name} #{number}" if judged.count(name) > 1 else name for number, name in enumerate(judged, 1)]


def _with_judge(scorer: Scorer) -> str:
    asking: object = scorer
    while isinstance(asking, Repeat):
        asking = asking.scorer
    judge = getattr(asking, "judge", None)
    return f"{scorer.name} ({judge.model})" if isinstance(judge, Judge) else scorer.name


def _vote_as_json(score: Score) -> JsonValue:
    judges = dict.fromkeys(call.judge for call in score.calls)
    vote: dict[str, JsonValue] = {"judge": ", ".join(judges) or None, **verdict_json(score)}
    doubted = score.details.get("doubted")  # doubted verdicts have repeats as well
    details = doubted.get("details") if isinstance(doubted, dict) else score.details
    if isinstance(details, dict) and isinstance(repeats := details.get("repeats"), list):
        vote["repeats"] = [repeat.get("value") for repeat in repeats if isinstance(repeat, dict)]
        vote |= {name: details[name] for name in ("min_repeats", "max_repeats", "requests_saved") if name in details}
    return vote

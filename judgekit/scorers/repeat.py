"""Repeats of a judged scorer, to measure the judge's certainty."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isclose
from statistics import pstdev
from typing import Literal, TypeAlias, get_args

from pydantic import JsonValue

from judgekit.errors import ConfigError, PlannedError, check_choice
from judgekit.gathering import ask_apart, gather_all
from judgekit.score import Score, ScoreStatus, independent_repeat
from judgekit.scorers.wrapper import WrapperScorer
from judgekit.scoring import Scorer, attempt
from judgekit.stats.sequential import is_decisive
from judgekit.traces.sample import Sample

RepeatAggregation: TypeAlias = Literal["majority", "mean"]
RepeatCount: TypeAlias = int | Literal["auto"]
Vote: TypeAlias = float | ScoreStatus
"""The vote that a score stands for: its value, or its status if it has none."""

_MOST = 9
"""The maximum number of repeats with ``auto``: odd, so that two answers cannot tie. An answer that a judge gives in four
of five repeats wins 98 % of nine repeats, 94 % of five and 99.6 % of fifteen; with ``auto``, it takes 5.7 repeats on average.
"""


@dataclass(frozen=True)
class Repeat(WrapperScorer):
    """The verdict of several independent repeats of a judged scorer, and their agreement.

    By ``majority``, it is the value given by most repeats; two values in first place make it abstain. By ``mean``, it is
    the mean of the repeats. Each repeat is requested and cached separately, so it costs ``repeats`` times the requests of the
    scorer; a ``seed`` in the judge's params is increased by one from repeat to repeat, as equal seeds give equal repeats.

    With ``repeats="auto"``, it asks until the lead of a value is decisive, at least 4 and at most 9 times: until further
    repeats could not change the first place, or until it is the more likely of the first two with a probability above
    95 %. Four equal repeats are enough. The minimum number that could still decide is asked concurrently, always in the
    same order, so that a replay gives the same score. By mean, every repeat counts, so it cannot stop early. The first
    repeat is awaited alone, so that the others find the conversation in the provider's cache.

    Skipped if the scorer skips. Fails if any repeat fails, so that no verdict rests on fewer repeats than requested; the
    others are cached, and only the failed ones are asked again. An abstention counts as a value of its own. The
    confidence is the share of repeats for the verdict; a mean has none. Details: ``repeats`` (each one's status, value,
    label and reason), ``agreement`` (the share of repeats with the most frequent value), ``std`` (of the values, with n
    in the denominator), and with ``auto`` the ``min_repeats`` and ``max_repeats``, and ``requests_saved``. Sources:
    self-consistency (https://arxiv.org/abs/2203.11171), adaptive consistency (https://arxiv.org/abs/2305.11860).

    Raises:
        ConfigError: There are fewer than two repeats, the way to aggregate them is unknown, or a mean should stop early.
    """

    scorer: Scorer
    repeats: RepeatCount = 5
    aggregation: RepeatAggregation = "majority"
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._max_repeats < 2:
            raise ConfigError(f"repeats must be 2 or more, or 'auto', found {self.repeats}")
        check_choice("way to aggregate repeats", self.aggregation, get_args(RepeatAggregation))
        if self.repeats == "auto" and self.aggregation == "mean":
            raise ConfigError("a mean needs every repeat, so repeats='auto' cannot stop early; set a number of repeats")
        if not self.name:
            times = "auto" if self.repeats == "auto" else f"x{self.repeats}"
            object.__setattr__(self, "name", f"{self.scorer.name}_{times}")

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence."""
        return self.aggregation == "majority"

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        ask_apart()
        scores: list[Score] = []
        while more := self._missing_repeats(scores):
            more = more if scores else 1  # the provider caches the prompt with the first answer
            scores += await gather_all(self._repeat(sample, len(scores) + index) for index in range(more))
        calls = [call for score in scores for call in score.calls]
        warnings = merged_warnings(scores)
        if failed := [score for score in scores if score.status == "failed"]:
            reason = f"{len(failed)} of {len(scores)} repeats failed: {failed[0].reason}"
            return Score.failed(self.name, reason, error=failed[0].error, calls=calls)
        votes = score_votes(scores)
        tally = Counter(votes)
        vote, most = tally.most_common(1)[0]
        values = [score.value for score in scores if score.value is not None]
        details: dict[str, JsonValue] = {
            "repeats": [verdict_json(score) for score in scores],
            "agreement": most / len(scores),
            "std": pstdev(values) if values else None,
            **least_shown(scores),
        }
        if self.repeats == "auto":
            spared = (self._max_repeats - len(scores)) * len(calls) / len(scores)
            details |= {
                "min_repeats": self._missing_repeats([]),
                "max_repeats": self._max_repeats,
                "requests_saved": round(spared),
            }
        first = scores[votes.index(vote)]
        if vote == "skipped" and 2 * most > len(scores):
            return Score.skipped(self.name, first.reason, label=first.label, details=details, calls=calls)
        if most == len(scores) and vote == "abstained":
            return Score.abstained(self.name, first.reason, label=first.label, details=details, calls=calls)
        if self.aggregation == "mean" and values:
            mean = fsum(values) / len(values)
            others = f", {len(scores) - len(values)} without a value" if len(values) < len(scores) else ""
            reason = f"mean of {len(values)} repeats, {min(values):.2f} to {max(values):.2f}{others}"
            return Score.scored(self.name, mean, reason=reason, details=details, calls=calls, warnings=warnings)
        if list(tally.values()).count(most) > 1 or isinstance(vote, str):
            reason = f"no majority among the repeats: {format_votes(tally.elements())}"
            return Score.abstained(self.name, reason, details=details, calls=calls)
        left = self._max_repeats - len(scores)
        reason = f"{most} of {len(scores)} repeats agree{f', {left} more not needed' if left else ''}"
        return Score.scored(
            self.name,
            vote,
            reason=f"{reason}: {first.reason}",
            label=first.label,
            details=details,
            calls=calls,
            confidence=most / len(scores),
            warnings=warnings,
        )

    @property
    def _max_repeats(self) -> int:
        return _MOST if self.repeats == "auto" else self.repeats

    def _missing_repeats(self, scores: Sequence[Score]) -> int:
        """Return the minimum number of further repeats that could decide the verdict; 0 if it is decided."""
        left = self._max_repeats - len(scores)
        errors = {score.error for score in scores if score.status == "failed"}
        if self.repeats != "auto" or PlannedError.__name__ in errors:
            return left  # a plan includes all repeats
        if errors:
            return 0
        first, *others = sorted(Counter(score_votes(scores)).values(), reverse=True) or [0]
        enough = (more for more in range(left) if is_decisive([first + more, *others], left=left - more))
        return next(enough, left)

    async def _repeat(self, sample: Sample, index: int) -> Score:
        with independent_repeat(index, self._max_repeats):
            return await attempt(self.scorer, sample)


@dataclass(frozen=True)
class SecondRepeat(WrapperScorer):
    """The verdict of a second repeat of a scorer, to compare it with the first: how far does a judge agree with itself?"""

    scorer: Scorer
    name: str

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        ask_apart()
        with independent_repeat(1, of=2):
            return (await attempt(self.scorer, sample)).model_copy(update={"scorer": self.name})


def score_votes(scores: Iterable[Score]) -> list[Vote]:
    """Return the votes of the scores. Values that differ only by rounding, such as sums of weights, are made equal."""
    votes: list[Vote] = []
    for score in scores:
        value = score.value
        if value is None:
            votes.append(score.status)
        else:
            alike = (vote for vote in votes if isinstance(vote, float) and isclose(vote, value))
            votes.append(next(alike, value))
    return votes


def merged_warnings(scores: Iterable[Score]) -> Sequence[str]:
    """Return the warnings of all scores, without duplicates."""
    return tuple(dict.fromkeys(warning for score in scores for warning in score.warnings))


def least_shown(scores: Iterable[Score]) -> dict[str, JsonValue]:
    """Return the smallest share of the recording that the judges of scores were shown; nothing if they were shown all."""
    shares = [share for score in scores if isinstance(share := score.details.get("coverage"), float)]
    return {"coverage": min(shares)} if shares else {}


def verdict_json(score: Score, *further: str) -> dict[str, JsonValue]:
    """Return the status, value, label and reason of a score, and ``further`` fields, as JSON for details."""
    return score.model_dump(mode="json", include={"status", "value", "label", "reason", *further})


def format_votes(votes: Iterable[Vote]) -> str:
    """Return the number of times each vote was given, such as ``1.00 x2, abstained x1``."""
    counts = Counter(votes).items()
    return ", ".join(f"{vote if isinstance(vote, str) else f'{vote:.2f}'} x{times}" for vote, times in counts)

"""A scorer asked again and again: how sure is the judge?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isclose
from statistics import pstdev
from typing import Literal, TypeAlias, get_args

from pydantic import JsonValue

from judgekit.errors import ConfigError, PlannedError, must_be_known
from judgekit.score import Score, Status, drawing
from judgekit.scorers.wrapper import WrapperScorer
from judgekit.scoring import Scorer, all_done, attempt
from judgekit.traces.sample import Sample

By: TypeAlias = Literal["majority", "mean"]
Draws: TypeAlias = int | Literal["auto"]
Vote: TypeAlias = float | Status
"""The verdict of a score: its value, or the status of one that has none."""

_MOST = 9
"""Draws by ``auto``: an odd number, so that two answers cannot tie. An answer that a judge gives four times of five wins
98 % of nine draws, 94 % of five and 99.6 % of fifteen; by ``auto`` it takes 5.7 draws on average."""


@dataclass(frozen=True)
class Repeat(WrapperScorer):
    """The verdict of several independent draws of a judged scorer, and how far they agree.

    By ``majority`` it is the value that most draws gave; it abstains where two values share the first place. By ``mean``
    it is the mean of the draws. Each draw is asked and cached by itself, so that it costs ``draws`` times the requests
    of the scorer; a ``seed`` among the judge's params grows by one from draw to draw, since draws of one seed are one
    draw.

    With ``draws="auto"`` it asks until the lead of a value is decisive, at least 4 times and at most 9: further draws
    could not take the first place from it, or it is the more likely one of the first two with a probability over 95 %.
    Four draws that agree are enough. As many are asked at once as that takes at the least, and always the same in the
    same order, so that a replay gives the same score. By mean every draw counts, so that it cannot stop early.

    Skipped where the scorer skips. Fails if any draw fails, so that no verdict rests on fewer draws than were asked
    for; the others are cached, and only the failed ones are asked again. A draw that abstains counts as a value of its
    own. Its confidence is the share of draws for the verdict; a mean has none. Details: ``draws`` (each one's status,
    value, label and reason), ``agreement`` (the share of draws that gave the most frequent value), ``std`` (of the
    values, n in the denominator), and with ``auto`` how many draws there are at the ``least`` and at the ``most``, and ``requests_saved``.
    Sources: self-consistency (https://arxiv.org/abs/2203.11171), adaptive consistency
    (https://arxiv.org/abs/2305.11860).

    Raises:
        ConfigError: There are fewer than two draws, or no such way to aggregate them, or a mean is to stop early.
    """

    scorer: Scorer
    draws: Draws = 5
    by: By = "majority"
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._most < 2:
            raise ConfigError(f"to repeat a scorer takes two draws or more, or 'auto', found draws={self.draws}")
        must_be_known("way to aggregate draws", self.by, get_args(By))
        if self.draws == "auto" and self.by == "mean":
            raise ConfigError("every draw changes a mean, so that draws='auto' cannot stop early; say how many")
        if not self.name:
            times = "auto" if self.draws == "auto" else f"x{self.draws}"
            object.__setattr__(self, "name", f"{self.scorer.name}_{times}")

    @property
    def has_confidence(self) -> bool:
        """Whether its scores say how sure the judge is."""
        return self.by == "majority"

    async def ascore(self, sample: Sample, /) -> Score:
        """Draws, and aggregates."""
        scores: list[Score] = []
        while more := self._wanted(scores):
            scores += await all_done(self._draw(sample, len(scores) + index) for index in range(more))
        calls = [call for score in scores for call in score.calls]
        warnings = warnings_of(scores)
        if failed := [score for score in scores if score.status == "failed"]:
            reason = f"{len(failed)} of {len(scores)} draws failed: {failed[0].reason}"
            return Score.failed(self.name, reason, error=failed[0].error, calls=calls)
        said = votes_of(scores)
        votes = Counter(said)
        vote, most = votes.most_common(1)[0]
        values = [score.value for score in scores if score.value is not None]
        details: dict[str, JsonValue] = {
            "draws": [verdict_json(score) for score in scores],
            "agreement": most / len(scores),
            "std": pstdev(values) if values else None,
        }
        if self.draws == "auto":
            spared = (self._most - len(scores)) * len(calls) / len(scores)
            details |= {"least": self._wanted([]), "most": self._most, "requests_saved": round(spared)}
        first = scores[said.index(vote)]
        if vote == "skipped" and 2 * most > len(scores):
            return Score.skipped(self.name, first.reason, label=first.label, details=details, calls=calls)
        if most == len(scores) and vote == "abstained":
            return Score.abstained(self.name, first.reason, label=first.label, details=details, calls=calls)
        if self.by == "mean" and values:
            mean = fsum(values) / len(values)
            others = f", {len(scores) - len(values)} without a value" if len(values) < len(scores) else ""
            reason = f"mean of {len(values)} draws, {min(values):.2f} to {max(values):.2f}{others}"
            return Score.scored(self.name, mean, reason=reason, details=details, calls=calls, warnings=warnings)
        if list(votes.values()).count(most) > 1 or isinstance(vote, str):
            reason = f"no majority among the draws: {tally(votes.elements())}"
            return Score.abstained(self.name, reason, details=details, calls=calls)
        left = self._most - len(scores)
        reason = f"{most} of {len(scores)} draws agree{f', {left} more were not needed' if left else ''}"
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
    def _most(self) -> int:
        return _MOST if self.draws == "auto" else self.draws

    def _wanted(self, scores: Sequence[Score]) -> int:
        """How many more draws the verdict takes at the least; none where it is decided."""
        left = self._most - len(scores)
        errors = {score.error for score in scores if score.status == "failed"}
        if self.draws != "auto" or PlannedError.__name__ in errors:
            return left  # a plan has room for all
        if errors:
            return 0
        from judgekit.stats.sequential import is_decisive  # noqa: PLC0415 - numpy takes a while

        first, *others = sorted(Counter(votes_of(scores)).values(), reverse=True) or [0]
        enough = (more for more in range(left) if is_decisive([first + more, *others], left=left - more))
        return next(enough, left)

    async def _draw(self, sample: Sample, index: int) -> Score:
        with drawing(index, self._most):
            return await attempt(self.scorer, sample)


def votes_of(scores: Iterable[Score]) -> list[Vote]:
    """Return the verdicts of the scores. Values that a rounding alone keeps apart, as in sums of weights, are one value."""
    votes: list[Vote] = []
    for score in scores:
        value = score.value
        if value is None:
            votes.append(score.status)
        else:
            alike = (vote for vote in votes if isinstance(vote, float) and isclose(vote, value))
            votes.append(next(alike, value))
    return votes


def warnings_of(scores: Iterable[Score]) -> Sequence[str]:
    """The warnings of all, each once."""
    return tuple(dict.fromkeys(warning for score in scores for warning in score.warnings))


def verdict_json(score: Score, *further: str) -> dict[str, JsonValue]:
    """Return the status, value, label and reason of a score, and further fields, as JSON for details."""
    return score.model_dump(mode="json", include={"status", "value", "label", "reason", *further})


def tally(votes: Iterable[Vote]) -> str:
    """How often each vote was given, such as ``1.00 x2, abstained x1``."""
    said = Counter(votes).items()
    return ", ".join(f"{vote if isinstance(vote, str) else f'{vote:.2f}'} x{times}" for vote, times in said)

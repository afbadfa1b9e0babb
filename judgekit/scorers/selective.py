"""Selective evaluation: abstain from or escalate verdicts that the judge is not certain enough of."""

from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.errors import ConfigError, PlannedError
from judgekit.score import Score
from judgekit.scorers.repeat import merged_warnings, verdict_json
from judgekit.scorers.wrapper import WrapperScorer
from judgekit.scoring import JudgePrompt, Scorer, attempt, check_scorer, has_confidence, scorer_prompts
from judgekit.traces.equality import is_number
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class Selective(WrapperScorer):
    """The verdict of a scorer, if its confidence is high enough.

    If the confidence of the score is below ``min_confidence``, it abstains (label ``low_confidence``), or returns the
    score of the scorer to ``escalate`` to, whatever its confidence (another `Selective` there makes a cascade). An
    abstention is escalated too. Skipped and failed if the scorer is. Fails if a score has no confidence, for example
    because a provider returns no logprobs.

    Costs the requests of the scorer and, on escalation, those of the other one as well. Details: those of the returned
    score, and ``doubted``, the status, value, label, reason, confidence and details of a verdict with too little
    confidence. An audit can find the ``min_confidence`` that keeps disagreement with people low enough. Sources:
    selective classification (https://arxiv.org/abs/1705.08500), Trust or Escalate (https://arxiv.org/abs/2407.18370).

    Args:
        scorer: The scorer.
        min_confidence: The minimum confidence, in (0, 1].
        escalate: The scorer to ask instead.
        name: The name of the scores; by default, the scorer's name.

    Raises:
        ConfigError: The confidence is out of range, or the scorer's scores never have one: it comes from several repeats
            (`Repeat`), a `Panel`, `Pairwise`, a decision model, or a prompt for a judge with ``params = {logprobs = true}``.
    """

    scorer: Scorer
    min_confidence: float
    escalate: Scorer | None = None
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.escalate is not None:
            check_scorer(self.escalate, "escalate")
        if not is_number(self.min_confidence) or not 0 < self.min_confidence <= 1:
            raise ConfigError(f"min_confidence must be above 0 and at most 1, found {self.min_confidence!r}")
        if not has_confidence(self.scorer):
            raise ConfigError(self._unsure)
        if not self.name:
            object.__setattr__(self, "name", self.scorer.name)

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence."""
        return self.escalate is None or has_confidence(self.escalate)

    @property
    def prompts(self) -> Sequence[JudgePrompt]:
        """The prompts of both scorers."""
        return tuple(dict.fromkeys((*scorer_prompts(self.scorer), *scorer_prompts(self.escalate))))

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        score = await attempt(self.scorer, sample)
        if score.value is not None and score.confidence is None:
            return Score.failed(self.name, self._unsure, error=ConfigError.__name__, calls=score.calls)
        doubted = score.confidence is not None and score.confidence < self.min_confidence
        planned = score.error == PlannedError.__name__  # no judge has been asked; a plan includes both
        if self.escalate is None or not (doubted or planned or score.status == "abstained"):
            if not doubted:
                return score.model_copy(update={"scorer": self.name})
            return Score.abstained(
                self.name,
                f"{self._low_confidence_reason(score)}: {score.reason}",
                label="low_confidence",
                details={"doubted": verdict_json(score, "confidence", "details")},
                calls=score.calls,
            )
        other = await attempt(self.escalate, sample)
        judges = ", ".join(dict.fromkeys(call.judge for call in other.calls)) or self.escalate.name
        return other.model_copy(
            update={
                "scorer": self.name,
                "reason": f"{self._low_confidence_reason(score)}; {judges} was asked: {other.reason}",
                "details": {**other.details, "doubted": verdict_json(score, "confidence", "details")},
                "calls": (*score.calls, *other.calls),
                "warnings": merged_warnings((score, other)),
            }
        )

    @property
    def _unsure(self) -> str:
        return (
            f"{self.scorer.name} reports no confidence: ask several times (repeats) or several judges (panel), or use a "
            "prompt of a judge that has params = {logprobs = true} and keeps texts (store_text), or of a decision model"
        )

    def _low_confidence_reason(self, score: Score) -> str:
        if score.confidence is None:
            return f"{self.scorer.name} {score.status} ({score.reason})"
        verdict = f"{score.value:.2f}" if score.label is None else score.label
        return f"{verdict} with confidence {score.confidence:.3f}, below {self.min_confidence:g}"

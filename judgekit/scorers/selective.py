"""Selective evaluation: a verdict that the judge is not sure enough of is none, or another scorer's to give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from judgekit.errors import ConfigError, PlannedError
from judgekit.score import Grade, Score
from judgekit.scorers.repeat import warnings_of
from judgekit.scoring import (
    Blocking,
    Question,
    Scorer,
    attempt,
    has_confidence,
    label_values_of,
    must_be_scorer,
    questions_of,
)
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class Selective(Blocking):
    """The verdict of a scorer, where it is sure enough of it.

    Where the confidence of the score is below ``min_confidence`` it abstains (label ``low_confidence``), or asks the scorer to ``escalate`` to,
    whose score it gives, whatever that one's confidence is (another `Selective` there makes a cascade). A scorer that
    abstains is escalated too. Skipped and failed where the scorer is. Fails where a score has no confidence, as where a
    provider gives no logprobs.

    Costs the requests of the scorer, and where it escalates those of the other as well. Details: those of the score that
    it gives; of a verdict that was not sure enough, ``doubted``: its status, value, label, reason, confidence and details.
    Which ``min_confidence`` keeps the judge's disagreement with people rare enough is for an audit to find. Sources:
    selective classification (https://arxiv.org/abs/1705.08500), Trust or Escalate (https://arxiv.org/abs/2407.18370).

    Args:
        scorer: Whose verdict it is.
        min_confidence: In (0, 1].
        escalate: Who is asked instead.
        name: What the scores are called; the scorer's name if not given.

    Raises:
        ConfigError: There is no such confidence, or the scorer's scores never have one: it comes from several draws
            (`Repeat`), a `Panel`, `Pairwise`, or a prompt asked of a judge with ``params = {logprobs = true}``.
    """

    scorer: Scorer
    min_confidence: float
    escalate: Scorer | None = None
    name: str = ""

    def __post_init__(self) -> None:
        must_be_scorer(self.scorer, "scorer")
        if self.escalate is not None:
            must_be_scorer(self.escalate, "escalate")
        asked = self.min_confidence
        if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] - a config file may say anything
            raise ConfigError(f"min_confidence is above 0 and at most 1, found {asked!r}")
        if not has_confidence(self.scorer):
            raise ConfigError(self._unsure)
        if not self.name:
            object.__setattr__(self, "name", self.scorer.name)

    @property
    def has_confidence(self) -> bool:
        """Whether its scores say how sure the judge is."""
        return self.escalate is None or has_confidence(self.escalate)

    @property
    def label_values(self) -> Mapping[str, Grade]:
        """The values of its labels, where the prompts do not say."""
        return label_values_of(self.scorer)

    @property
    def prompts(self) -> Sequence[Question]:
        """The questions that are asked."""
        others = questions_of(self.escalate) if self.escalate else ()
        return tuple(dict.fromkeys((*questions_of(self.scorer), *others)))

    async def ascore(self, sample: Sample, /) -> Score:
        """Asks, and asks on where the answer is not sure enough."""
        score = await attempt(self.scorer, sample)
        if score.value is not None and score.confidence is None:
            return Score.failed(self.name, self._unsure, error=ConfigError.__name__, calls=score.calls)
        doubted = score.confidence is not None and score.confidence < self.min_confidence
        planned = score.error == PlannedError.__name__  # nobody was asked yet: a plan has room for both
        if self.escalate is None or not (doubted or planned or score.status == "abstained"):
            return self._abstained(score) if doubted else score.model_copy(update={"scorer": self.name})
        other = await attempt(self.escalate, sample)
        judges = ", ".join(dict.fromkeys(call.judge for call in other.calls)) or self.escalate.name
        return other.model_copy(
            update={
                "scorer": self.name,
                "reason": f"{self._doubt(score)}; {judges} was asked: {other.reason}",
                "details": {**other.details, "doubted": _written(score)},
                "calls": (*score.calls, *other.calls),
                "warnings": warnings_of((score, other)),
            }
        )

    @property
    def _unsure(self) -> str:
        return (
            f"{self.scorer.name} does not say how sure it is: ask several times (draws), several judges (panel), or a "
            "prompt of a judge with params = {logprobs = true} that keeps its words (store_text)"
        )

    def _abstained(self, score: Score) -> Score:
        details = {"doubted": _written(score)}
        reason = f"{self._doubt(score)}: {score.reason}"
        return Score.abstained(self.name, reason, label="low_confidence", details=details, calls=score.calls)

    def _doubt(self, score: Score) -> str:
        if score.confidence is None:
            return f"{self.scorer.name} {score.status} ({score.reason})"
        said = f"{score.value:.2f}" if score.label is None else score.label
        return f"{said} with the confidence {score.confidence:.3f}, below {self.min_confidence:g}"


def _written(score: Score) -> JsonValue:
    return score.model_dump(mode="json", include={"status", "value", "label", "reason", "confidence", "details"})

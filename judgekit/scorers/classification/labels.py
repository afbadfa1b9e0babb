"""Classification: is the predicted label the true one?"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from judgekit.errors import ConfigError, check_choice, short_reprs
from judgekit.score import Score
from judgekit.scorers.unanswered import unanswered
from judgekit.scoring import SyncScore
from judgekit.traces.ending import missing_answer
from judgekit.traces.rendering import escape_surrogates
from judgekit.traces.sample import Sample

ClassMeasure: TypeAlias = Literal[
    "accuracy",
    "precision",
    "recall",
    "f1",
    "precision_macro",
    "recall_macro",
    "f1_macro",
    "precision_micro",
    "recall_micro",
    "f1_micro",
    "precision_weighted",
    "recall_weighted",
    "f1_weighted",
]
"""The measures over many labels, by scikit-learn's names: see `judgekit.aggregates.classification`."""

_BINARY = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Classification(SyncScore):
    """1 if the predicted label is the true one, ``sample.label``, else 0.

    The prediction is ``sample.prediction``, or else the complete response. Whitespace around labels is ignored;
    everything else matters, including case.

    The total of many samples is ``measure``, computed by scikit-learn, with the confusion matrix. ``precision``,
    ``recall`` and ``f1`` are those of the class ``positive``, with all others being negative; ``_macro``, ``_micro``
    and ``_weighted`` (such as ``f1_macro``) are averages over all classes that are true or predicted anywhere. An empty
    prediction is no answer: a false negative of its class, and a false positive of none.

    The label is ``correct``, ``wrong`` or ``no_answer``. Skipped without a label, or without a prediction and a
    response. Details: the ``true`` label and the ``predicted`` one, ``measure`` and ``positive``. No judge. Source:
    https://scikit-learn.org/stable/modules/model_evaluation.html#classification-metrics.

    Raises:
        ConfigError: The measure is unknown, it needs ``positive`` and has none, or it is an average and has one.
    """

    measure: ClassMeasure = "accuracy"
    positive: str | None = None
    name: str = "classification"

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, get_args(ClassMeasure))
        if self.measure in _BINARY and self.positive is None:
            raise ConfigError(
                f"{self.measure} is computed for one class: name it with positive=..., or use "
                f"{self.measure}_macro, {self.measure}_micro or {self.measure}_weighted"
            )
        if "_" in self.measure and self.positive is not None:
            raise ConfigError(f"{self.measure} is an average over classes; remove positive=...")

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        missing = missing_answer(sample.trace) if sample.prediction is None else None
        predicted = sample.trace.response if sample.prediction is None else sample.prediction
        predicted = predicted if missing is None else ""
        if sample.label is None or not (true := sample.label.strip()):
            return Score.skipped(self.name, f"the sample's label is {'missing' if sample.label is None else 'empty'}")
        if predicted is None:
            return Score.skipped(self.name, "the sample has no prediction and no response (no agent message)")
        true, predicted = escape_surrogates(true), escape_surrogates(predicted.strip())
        correct = predicted == true
        shown, expected = short_reprs([predicted, true])
        answer = f"predicted {shown}" if predicted else "no answer"
        score = Score.scored(
            self.name,
            float(correct),
            label="correct" if correct else "wrong" if predicted else "no_answer",
            reason=answer if correct else f"{answer}, true label {expected}",
            details={"true": true, "predicted": predicted, "measure": self.measure, "positive": self.positive},
            aggregate="classification",
        )
        return score if missing is None else unanswered(score, missing)

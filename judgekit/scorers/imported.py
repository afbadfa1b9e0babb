"""Imported scores: those that another system gave, as scores of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar, get_args

from judgekit.errors import ConfigError, check_choice, count_text, join_limited, short_repr
from judgekit.score import JudgeCall, ScaleValue, Score, verdict_value
from judgekit.scoring import SyncScore
from judgekit.traces.equality import is_number
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import Label, LabelSource
from judgekit.traces.sample import Sample


@dataclass(frozen=True)
class ImportedQuestion:
    """The question to an imported judge, of which only the name and the scale are known."""

    description: str
    scale: Sequence[tuple[str, ScaleValue]]
    instructions: str = ""
    inputs: Sequence[str] = ()
    optional: Sequence[str] = ()


@dataclass(frozen=True)
class Imported(SyncScore):
    """1 if the recorded label of this name is true or yes, 0 if it is false or no, or else its value in [0, 1].

    Truth values, numbers in [0, 1], and yes, pass, true, no, fail and false need no scale; any other value is a failed
    score without one. If several labels have the name, the value is their mean. Skipped without such a label. Asks no
    judge: an imported judge's verdict counts as a reply from the cache, under the name of its annotator, so that its
    scores can be audited and compared like those of any judge. Details: ``labels``.

    Attributes:
        label: The name of the label.
        source: Who gave it: ``judge``, ``benchmark``, ``human`` or ``unknown``. Labels of other sources are left alone.
        scale: The values of labels that are texts or numbers outside of [0, 1], such as ``{"good": 1, "bad": 0}``.
        name: The name of the scores; by default, that of the label.

    Raises:
        ConfigError: The label has no name, the source is unknown, or a value of the scale is neither a number in [0, 1]
            nor ``skipped`` or ``abstained``.
    """

    label: str
    source: LabelSource = "judge"
    scale: Mapping[str, ScaleValue] = field(default_factory=dict[str, ScaleValue])
    name: str = ""
    has_confidence: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.label:
            raise ConfigError("label must be the name of a recorded label, found ''")
        check_choice("source", self.source, get_args(LabelSource))
        for label, value in self.scale.items():
            if value not in ("skipped", "abstained") and not (is_number(value) and 0 <= value <= 1):
                raise ConfigError(
                    f"scale: {label!r} must be a number in [0, 1], skipped or abstained, found {short_repr(value)}"
                )
        object.__setattr__(self, "name", self.name or self.label)

    @property
    def prompts(self) -> tuple[ImportedQuestion, ...]:
        """The question to the imported judge; none if no judge gave the label."""
        description = f"the imported judge's score {self.label!r}"
        return (ImportedQuestion(description, tuple(self.scale.items())),) if self.source == "judge" else ()

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of the labels."""
        return self.scale

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the imported score of one sample."""
        named = [label for label in sample.trace.labels if label.name == self.label]
        labels = [label for label in named if label.source == self.source]
        if not labels:
            others = join_limited(dict.fromkeys(label.source for label in named), separator=", ")
            hint = f"; there is one with source={others}" if others else ""
            return Score.skipped(self.name, f"no label {self.label!r} of source {self.source} was recorded{hint}")
        calls = [_call(label) for label in labels] if self.source == "judge" else ()
        details: JsonObject = {"labels": [{"value": label.value, "annotator": label.annotator} for label in labels]}
        values = [verdict_value(label.value, self.scale) for label in labels]
        if None in values:
            odd = short_repr(labels[values.index(None)].value)
            problem = (
                f'the recorded label {odd} has no value in [0, 1]: give it one, such as scale={{"good":1,"bad":0}}'
            )
            return Score.failed(self.name, problem, error="ValueError", calls=calls)
        verdicts = {str(label.value): isinstance(label.value, str) for label in labels}
        label = next((text for text, is_text in verdicts.items() if is_text and len(verdicts) == 1), None)
        reason = "\n".join(filter(None, dict.fromkeys(label.reason for label in labels)))
        numbers = [value for value in values if isinstance(value, float | int)]
        if not numbers:
            unscored = Score.skipped if "skipped" in values else Score.abstained
            return unscored(self.name, reason, label=label, details=details, calls=calls)
        if len(labels) > 1:
            reason = f"the mean of {count_text(len(numbers), 'recorded label')}. {reason}".strip()
        return Score.scored(self.name, fmean(numbers), reason=reason, label=label, details=details, calls=calls)


def _call(label: Label) -> JudgeCall:
    return JudgeCall(judge=label.annotator or "imported judge", prompt=label.name, model=label.annotator, cached=True)

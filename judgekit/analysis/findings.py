"""The findings of an audit."""

from typing import Literal, TypeAlias

from pydantic import Field

from judgekit.runs.audit_records import ConfusionCounts, Correction, Estimate, LabelSelection
from judgekit.traces.message import FrozenModel, Many

ValueKind: TypeAlias = Literal["binary", "ordinal", "continuous"]


class Opinion(FrozenModel):
    """A person's label for a sample; ``value`` is its number, or ``None`` if the question does not apply."""

    annotator: str | None
    label: str
    value: float | None
    reason: str = ""


class Disagreement(FrozenModel):
    """A sample on which somebody disagrees with the judge.

    Attributes:
        index: The sample's number in the run.
        sample_id: The sample's id.
        judge_value: The judge's value; ``None`` if the judge says that the question does not apply.
        label: The judge's label.
        reason: The judge's reason.
        human_value: The mean of people's values; ``None`` if all say that the question does not apply.
        opinions: The label of each person.
    """

    index: int
    sample_id: str
    judge_value: float | None
    label: str | None
    reason: str
    human_value: float | None
    opinions: Many[Opinion]


class HumanAgreement(FrozenModel):
    """The agreement of people who labelled the same samples, which is the most that can be expected of a judge.

    Attributes:
        samples: The number of samples with labels from two or more people.
        agreement: Measures of agreement by name: between two people, averaged over pairs, and ``judge with one person``
            for comparison.
        alternative_test: The result of the alternative annotator test on whether the judge may replace one of them, in
            words; empty if there are too few people or samples, or if samples were drawn by verdict.
        passed: Whether the test is passed; ``None`` without a test.
    """

    samples: int
    agreement: dict[str, Estimate]
    alternative_test: str = ""
    passed: bool | None = None


class Repeatability(FrozenModel):
    """The repeatability of a judge's verdicts, where it was asked about a sample several times.

    Attributes:
        samples: The number of samples that the judge was asked about at least twice.
        repeats: The number of repeats made for them.
        max_repeats: The number of repeats that could have been made.
        flip_rate: The probability that two repeats for one sample give different verdicts.
        near: The share of samples whose verdict one repeat more or less could change.
        components: The variance of a single verdict by source: ``item``, ``prompt``, ``repeat`` and so on.
        advice: Ways to make the verdicts more repeatable, in sentences.
    """

    samples: int
    repeats: int
    max_repeats: int
    flip_rate: Estimate
    near: Estimate
    components: dict[str, float] = Field(default_factory=dict)
    advice: Many[str] = ()


class Guarantee(FrozenModel):
    """The confidence below which the judge must abstain to disagree with people rarely enough.

    Attributes:
        alpha: The acceptable share of disagreements.
        delta: The probability that the guarantee fails, however often it is checked while labels are added.
        threshold: The least confidence; ``None`` if no threshold keeps the guarantee, for the reason in ``unavailable_reason``.
        coverage: The share of samples that keep a verdict.
        risk: The share of the labelled samples with a kept verdict on which people disagree.
    """

    alpha: float
    delta: float
    threshold: float | None = None
    unavailable_reason: str = ""
    coverage: Estimate | None = None
    risk: Estimate | None = None


class ScorerAudit(FrozenModel):
    """The findings on one judged scorer.

    Attributes:
        scorer: The scorer's name.
        fingerprint: The scorer's signature; see `judgekit.runs.audit_records.AuditRecord`.
        kind: The kind of its values.
        sample_count: The number of samples that both people and the judge decided, including by saying that the question does not
            apply.
        labels: The number of labels for them.
        annotators: The number of people who gave these labels.
        selection: The way in which these samples were selected.
        unused_labels: The number of labels that could not be used, by reason.
        agreement: Measures of agreement by name; the first is the one to quote alone.
        confusion: The number of samples by the label of people (row) and of the judge (column). A sample that several
            people labelled is split by the share of people who gave each label.
        counts: True and false positives and negatives, if all verdicts are 0 or 1.
        judge_mean: The judge's mean.
        correction: The corrected mean.
        human_agreement: The agreement of people, if several labelled.
        disagreements: The samples on which people and judge disagree, worst first.
        opinions: People's labels by sample number.
        bias: By name (``length``, ``position``), the dependence of verdicts on something that should not matter.
        calibration: The expected calibration error of the judge's confidence; ``None`` without one.
        noise: The repeatability of its verdicts, if it was asked several times.
        guarantee: The guarantee, if one was asked for.
        notes: Further notes for the reader.
    """

    scorer: str
    fingerprint: str | None
    kind: ValueKind
    sample_count: int = 0
    labels: int = 0
    annotators: int = 0
    selection: LabelSelection = "unknown"
    unused_labels: dict[str, int] = Field(default_factory=dict)
    agreement: dict[str, Estimate] = Field(default_factory=dict)
    confusion: dict[str, dict[str, float]] = Field(default_factory=dict)
    counts: ConfusionCounts | None = None
    judge_mean: Estimate
    correction: Correction
    human_agreement: HumanAgreement | None = None
    disagreements: Many[Disagreement] = ()
    opinions: dict[int, Many[Opinion]] = Field(default_factory=dict[int, Many[Opinion]])
    bias: dict[str, Estimate] = Field(default_factory=dict)
    calibration: Estimate | None = None
    noise: Repeatability | None = None
    guarantee: Guarantee | None = None
    notes: Many[str] = ()


class Audit(FrozenModel):
    """The findings of an audit of a run, for each of its judged scorers.

    Attributes:
        run: The number of the run.
        sources: The origins of the labels, such as files.
        scorers: The findings on each scorer.
        unmatched: The number of labels that match no sample or no judge, by reason.
    """

    run: int
    sources: Many[str] = ()
    scorers: Many[ScorerAudit] = ()
    unmatched: dict[str, int] = Field(default_factory=dict)

    def _repr_html_(self) -> str:
        from judgekit.analysis.audit_text import audit_html  # noqa: PLC0415 - it reads these records

        return audit_html(self)

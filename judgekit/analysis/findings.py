"""The findings of an audit, each of which writes its own section."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field

from judgekit.errors import count_text
from judgekit.runs.audit_records import ConfusionCounts, Correction, LabelSelection
from judgekit.runs.intervals import Estimate
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.tree import MessageNumber

ValueKind: TypeAlias = Literal["binary", "ordinal", "continuous"]

_DRAWN: Mapping[LabelSelection, str] = {
    "all": "all samples that the judge scored are labeled",
    "random": "drawn at random from the run",
    "stratified": "drawn at random within each verdict of the judge, with known probabilities",
    "convenience": "picked by hand",
    "unknown": "how they were chosen is unknown",
    "elsewhere": "from another run",
}
_BIAS = {
    "length": "length: rank correlation of the judge's error and the length of its input; above 0, the judge favors longer conversations",
    "position": "position: the share of pairs whose verdict changes with the order in which the two are shown",
}
_STEP = Decimal("0.000001")  # of a confidence


class AuditSection(NamedTuple):
    """A part of the findings on a scorer: figures by name, notes on them, and why other figures are refused."""

    name: str
    estimates: Mapping[str, Estimate] = {}
    notes: tuple[str, ...] = ()
    unavailable_reason: str = ""


def left_out_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each reason why labels could not be used."""
    for why, times in counts.items():
        yield f"{count_text(times, 'label')} left out: {why}"


class Opinion(FrozenModel):
    """A person's label for a sample; ``value`` is its number, or ``None`` if the question does not apply."""

    annotator: str | None
    label: str
    value: float | None
    reason: str = ""
    message: MessageNumber | None = None


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
    """The agreement of people who labeled the same samples, which is the most that can be expected of a judge.

    Attributes:
        samples: The number of samples with labels from two or more people.
        agreement: Measures of agreement by name: between two people, averaged over pairs, and ``judge with one person``
            for comparison.
    """

    samples: int
    agreement: dict[str, Estimate]

    @property
    def section(self) -> AuditSection:
        """The agreement as a section."""
        among = f"{count_text(self.samples, 'sample')} labeled by two or more people"
        return AuditSection("among people", self.agreement, (among,))


class Repeatability(FrozenModel):
    """The repeatability of a judge's verdicts, where it was asked about a sample several times.

    Attributes:
        samples: The number of samples that the judge was asked about at least twice.
        repeats: The number of repeats made for them.
        max_repeats: The number of repeats that could have been made.
        flip_rate: The probability that two repeats for one sample give different verdicts.
        near: The share of samples whose verdict one repeat more or less could change.
        notes: Which of the repeats are left out.
    """

    samples: int
    repeats: int
    max_repeats: int
    flip_rate: Estimate
    near: Estimate
    notes: Many[str] = ()

    @property
    def section(self) -> AuditSection:
        """The repeatability as a section."""
        most = f" of at most {self.max_repeats:,}" if self.max_repeats > self.repeats else ""
        counts = f"{count_text(self.samples, 'sample')} with several repeats, {self.repeats:,} repeats{most} in all"
        estimates = {"flip rate": self.flip_rate, "near the threshold": self.near}
        return AuditSection("noise", estimates, (counts, *self.notes))


class Guarantee(FrozenModel):
    """The confidence below which the judge must abstain to disagree with people rarely enough.

    Attributes:
        alpha: The acceptable share of disagreements.
        delta: The probability that the guarantee fails, however often it is checked while labels are added.
        threshold: The least confidence; ``None`` if no threshold keeps the guarantee, for the reason in ``unavailable_reason``.
        coverage: The share of samples that keep a verdict.
        risk: The share of the labeled samples with a kept verdict on which people disagree.
    """

    alpha: float
    delta: float
    threshold: float | None = None
    unavailable_reason: str = ""
    coverage: Estimate | None = None
    risk: Estimate | None = None

    @property
    def section(self) -> AuditSection:
        """The guarantee as a section."""
        figures = {"share of verdicts kept": self.coverage, "of these, people disagree": self.risk}
        estimates = {name: figure for name, figure in figures.items() if figure is not None}
        meaning = (
            f"people disagree with at most {self.alpha * 100:g}% of the verdicts, "
            f"with a probability of {(1 - self.delta) * 100:g}%"
        )
        if self.threshold is None:
            reason = f"no guarantee that {meaning}: {self.unavailable_reason}"
            return AuditSection("guarantee", estimates, unavailable_reason=reason)
        # Rounded up, it would leave out its own verdicts.
        least = Decimal(str(self.threshold)).quantize(_STEP, ROUND_FLOOR)
        return AuditSection("guarantee", estimates, (f"where the confidence is at least {float(least):g}, {meaning}",))


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
        confusion: The number of samples by human label (row) and the judge's (column). A sample that several
            people labeled is split by the share of people who gave each label.
        counts: True and false positives and negatives, if all verdicts are 0 or 1.
        judge_mean: The judge's mean.
        correction: The corrected mean.
        human_agreement: The agreement of people, if several labeled.
        disagreements: The samples on which people and judge disagree, worst first.
        opinions: Human labels by sample number.
        steps: For an analysis of failures, how often it finds the messages that people marked, see `judgekit.analysis.steps`.
        turns: For a scorer that judges each turn, its agreement with people on them, see `judgekit.analysis.turns`.
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
    steps: dict[str, Estimate] = Field(default_factory=dict)
    turns: dict[str, Estimate] = Field(default_factory=dict)
    bias: dict[str, Estimate] = Field(default_factory=dict)
    calibration: Estimate | None = None
    noise: Repeatability | None = None
    guarantee: Guarantee | None = None
    notes: Many[str] = ()

    @property
    def headline(self) -> str:
        """The corrected mean and the agreement of people with the judge in a line.

        For example ``corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 from 2 people``.
        """
        corrected = self.correction.corrected
        if not self.sample_count:
            return f"not audited: {self.correction.unavailable_reason}"
        return f"{'no corrected mean' if corrected is None else f'corrected mean {corrected}'}, {self.agreement_text}"

    @property
    def agreement_text(self) -> str:
        """The agreement of people with the judge, such as ``kappa .71 [.58, .82], n=120 from 2 people``."""
        if not self.sample_count:
            return "no sample has both a verdict of the judge and a label"
        name, figure = next(iter(self.agreement.items()), ("agreement", "undefined"))
        annotators = "1 person" if self.annotators == 1 else f"{self.annotators:,} people"
        return f"{name} {figure}, n={self.sample_count:,} from {annotators}"

    @property
    def sections(self) -> list[AuditSection]:
        """All findings except the confusion matrix and the disagreements; empty sections are left out."""
        calibration = {"expected calibration error": self.calibration} if self.calibration else {}
        sections = [
            AuditSection("labels", notes=tuple(self._label_notes())),
            self._mean_section(),
            AuditSection("agreement", self.agreement),
            *([self.human_agreement.section] if self.human_agreement else ()),
            AuditSection("failing step", self.steps),
            AuditSection("turns", self.turns),
            AuditSection("bias", self.bias, tuple(_BIAS[name] for name in self.bias if name in _BIAS)),
            AuditSection("calibration", calibration),
            *([self.noise.section] if self.noise else ()),
            *([self.guarantee.section] if self.guarantee else ()),
            AuditSection("notes", notes=tuple(self.notes)),
        ]
        return [section for section in sections if any(section[1:])]

    def _label_notes(self) -> Iterator[str]:
        if self.sample_count:
            both = f"{count_text(self.sample_count, 'sample')} labeled by people and by the judge"
            yield f"{count_text(self.labels, 'label')} on {both}; {_DRAWN[self.selection]}"
        yield from left_out_lines(self.unused_labels)

    def _mean_section(self) -> AuditSection:
        correction = self.correction
        estimates = {"judge's mean (raw)": self.judge_mean}
        notes: list[str] = []
        if correction.corrected is not None:
            estimates[f"corrected mean ({correction.method})"] = correction.corrected
            if correction.effective_labels is not None:
                notes.append(f"worth as much as {correction.effective_labels:,.0f} labels without the judge")
            if correction.assumptions:
                notes.append(f"assumes: {correction.assumptions}")
        is_said = not self.sample_count  # by the headline
        reason = "" if is_said or correction.corrected else f"not corrected: {correction.unavailable_reason}"
        return AuditSection("mean", estimates, tuple(notes), reason)


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

"""What an audit finds."""

from typing import Literal, TypeAlias

from pydantic import Field

from judgekit.runs.receipts import Correction, Counts, Drawn, Figure
from judgekit.traces.message import Many, Record

Kind: TypeAlias = Literal["binary", "ordinal", "continuous"]


class Opinion(Record):
    """One person's label of a sample; ``value`` is its number, ``None`` if the question does not apply."""

    annotator: str | None
    label: str
    value: float | None
    reason: str = ""


class Disagreement(Record):
    """A sample on which somebody disagrees with the judge.

    Attributes:
        index: The sample's number in the run, and ``sample_id`` its id.
        judged: The judge's value; ``None`` where it says that the question does not apply.
        label: The judge's label, and ``reason`` its reason.
        human: The mean of people's values; ``None`` where all say that the question does not apply.
        opinions: What each of them says.
    """

    index: int
    sample_id: str
    judged: float | None
    label: str | None
    reason: str
    human: float | None
    opinions: Many[Opinion]


class People(Record):
    """What people who labelled the same samples say among themselves: the most that a judge can be asked for.

    Attributes:
        samples: How many have labels of two people or more.
        agreement: By name: how far two people agree, on average over pairs; the judge with one person stands beside it
            as ``judge with one person``.
        alternative: Whether it is shown, by the alternative annotator test, that the judge may stand in for one of them, in
            words; empty where there are too few people or samples, or these were drawn by verdict.
        passed: Whether it is shown; ``None`` where there is no test.
    """

    samples: int
    agreement: dict[str, Figure]
    alternative: str = ""
    passed: bool | None = None


class Noise(Record):
    """How far a judge's verdicts repeat, where it was asked about a sample several times.

    Attributes:
        samples: Those that were asked about twice or more.
        draws: How many draws were made of them, and ``most`` how many could have been.
        flip_rate: How likely two draws of one sample give different verdicts.
        near: The share of samples in which a draw more or less could turn the verdict.
        components: The variance of a single verdict by where it comes from: ``item``, ``prompt``, ``draw`` and so on.
        advice: What would make the verdicts repeat better, in sentences.
    """

    samples: int
    draws: int
    most: int
    flip_rate: Figure
    near: Figure
    components: dict[str, float] = Field(default_factory=dict)
    advice: Many[str] = ()


class Guarantee(Record):
    """The confidence below which the judge must abstain, so that it differs from people rarely enough.

    Attributes:
        alpha: The share of disagreements that is borne.
        delta: How likely the guarantee may fail, however often one looks while labels are added.
        threshold: The least confidence; ``None`` where no threshold keeps the promise, and then ``refused`` says why.
        kept: The share of samples that keep a verdict.
        risk: The share of those labelled samples that keep a verdict on which people say otherwise.
    """

    alpha: float
    delta: float
    threshold: float | None = None
    refused: str = ""
    kept: Figure | None = None
    risk: Figure | None = None


class ScorerAudit(Record):
    """What an audit finds of one judged scorer.

    Attributes:
        scorer: Its name.
        fingerprint: See `judgekit.runs.receipts.Receipt`.
        kind: What its values are.
        n: Samples that both people and the judge decided, also those of which either says that the question does not apply.
        labels: How many labels of people that are; ``annotators``, of how many people.
        drawn: How they were chosen.
        left_out: Labels that could not be used, by why.
        agreement: By name, the first the one to be named alone.
        confusion: How often people gave the label of a row, and the judge that of a column. A sample that several people
            labelled is shared among the rows, by the share of people who gave each label.
        counts: The same where both say 0 or 1.
        raw: The judge's mean.
        correction: The same, corrected.
        people: Where several labelled.
        disagreements: The worst first.
        opinions: What people say, by the number of the sample.
        bias: By name (``length``, ``position``) what the judge's verdicts depend on and should not.
        calibration: The expected calibration error of its confidence; ``None`` without one.
        noise: Where it was asked several times.
        guarantee: Where one was asked for.
        notes: What else its reader must know.
    """

    scorer: str
    fingerprint: str | None
    kind: Kind
    n: int = 0
    labels: int = 0
    annotators: int = 0
    drawn: Drawn = "unknown"
    left_out: dict[str, int] = Field(default_factory=dict)
    agreement: dict[str, Figure] = Field(default_factory=dict)
    confusion: dict[str, dict[str, float]] = Field(default_factory=dict)
    counts: Counts | None = None
    raw: Figure
    correction: Correction
    people: People | None = None
    disagreements: Many[Disagreement] = ()
    opinions: dict[int, Many[Opinion]] = Field(default_factory=dict[int, Many[Opinion]])
    bias: dict[str, Figure] = Field(default_factory=dict)
    calibration: Figure | None = None
    noise: Noise | None = None
    guarantee: Guarantee | None = None
    notes: Many[str] = ()


class Audit(Record):
    """What an audit of a run finds, for each of its judged scorers.

    Attributes:
        run: The number of the run.
        sources: Where the labels are from.
        scorers: What is found of each.
        unmatched: Labels that are of no sample or of no judge, by why.
    """

    run: int
    sources: Many[str] = ()
    scorers: Many[ScorerAudit] = ()
    unmatched: dict[str, int] = Field(default_factory=dict)

    def _repr_html_(self) -> str:
        from judgekit.analysis.words import audit_html  # noqa: PLC0415 - it reads these records

        return audit_html(self)

"""Receipts: what an audit found of a judge, kept beside the runs, for as long as the judge stays what it was."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, JsonValue

from judgekit.traces.message import Many, Record

if TYPE_CHECKING:
    from judgekit.stats.intervals import Interval

Drawn: TypeAlias = Literal["all", "random", "stratified", "unknown", "elsewhere"]
"""How samples came to be labelled: all of the run were; they were drawn at random, or so within each verdict of the
judge, with known probabilities; nobody says how; or they are those of another run."""


class Figure(Record):
    """A number and its 95 % interval; ``value`` is ``None`` where it is undefined, ``low`` and ``high`` where nothing can be said."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""

    @classmethod
    def of(cls, value: float | None, interval: "Interval | None" = None) -> "Figure":
        """A number with an interval, if there is one."""
        if value is None or interval is None:
            return cls(value=value)
        return cls(value=value, low=interval.low, high=interval.high, method=interval.method)

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        bounds = "" if self.low is None or self.high is None else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{bounds}"


def _short(number: float) -> str:
    """Two decimals, without the zero before them: ``.71``."""
    return f"{number:.2f}".replace("0.", ".", 1) if abs(number) < 0.995 else f"{number:.2f}"


class Correction(Record):
    """What a judge's mean is, corrected by labels of people, or why it is not.

    Attributes:
        method: How: ``PPI++``, ``Rogan-Gladen``, or ``labels alone``.
        corrected: The mean that people would give, with its interval; ``None`` where it is refused.
        refused: Why the evidence does not carry one; empty if it does.
        assumes: What must hold for it to be right.
        worth: As many labels without the judge would tell as much; ``None`` where that cannot be said.
    """

    method: str = ""
    corrected: Figure | None = None
    refused: str = ""
    assumes: str = ""
    worth: float | None = None


class Counts(Record):
    """Labelled samples by what people say and what the judge says, both 0 or 1: true and false positives and negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


class Population(Record):
    """What was judged, as far as it can be told without a label, to tell whether other samples are like it.

    Attributes:
        samples: How many.
        mean: Of the judge's values.
        domains: How many samples each domain has.
        traits: By name, such as ``messages`` or ``confidence``, the sorted values of the samples, at most 200 of them,
            evenly spaced.
    """

    samples: int
    mean: float | None = None
    domains: dict[str, int] = Field(default_factory=dict)
    traits: dict[str, Many[float]] = Field(default_factory=dict)


class Receipt(Record):
    """What an audit found of one scorer.

    Attributes:
        scorer: Its name.
        fingerprint: Its signature: the hash of ``identity``, its class and all fields, its judge with its parameters,
            and the words of its prompts.
        identity: What the fingerprint is the hash of.
        judges: The models that answered.
        prompts: The prompts, with their versions.
        run: The number of the run that was audited, and ``began``, when it began.
        n: Samples that both people and the judge decided.
        annotators: How many people labelled.
        drawn: How the labelled samples were chosen.
        agreement: By name, such as ``kappa``.
        confusion: Where both say 0 or 1.
        raw: The judge's mean over the run.
        correction: The same, corrected.
        labelled: The labelled samples.
        population: All samples of the run that the judge scored.
        at: When the audit was made, with judgekit ``version``.
    """

    schema_version: Literal[1] = 1
    scorer: str
    fingerprint: str
    identity: JsonValue
    judges: Many[str] = ()
    prompts: Many[str] = ()
    run: int
    began: datetime
    n: int
    annotators: int
    drawn: Drawn
    agreement: Mapping[str, Figure]
    confusion: Counts | None = None
    raw: Figure
    correction: Correction
    labelled: Population
    population: Population
    at: datetime
    version: str

"""Receipts: what an audit found of a judge, kept beside the runs, for as long as the judge stays what it was."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import Field, JsonValue, ValidationError

from judgekit.errors import StoreError, explain, listed
from judgekit.runs.rows import ScorerRecord, differences
from judgekit.traces.message import Many, Record
from judgekit.traces.writing import replaced

if TYPE_CHECKING:
    from judgekit.stats.intervals import Interval

Drawn: TypeAlias = Literal["all", "random", "stratified", "unknown", "elsewhere"]
"""How samples came to be labelled: all of the run were; they were drawn at random, or so within each verdict of the
judge, with known probabilities; nobody says how; or they are those of another run."""


_NAME_KEPT = 100
_DIFFERENCES_SHOWN = 3
_ADVICE = "move it away, and judgekit audit writes it anew"


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

    @classmethod
    def mean(cls, values: Sequence[float], groups: Sequence[str | None] | None = None) -> "Figure":
        """The mean of values in [0, 1], with its interval; undefined where there are none."""
        from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

        return cls.of(fsum(values) / len(values), mean_interval(values, groups)) if values else cls(value=None)

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        bounds = "" if self.low is None or self.high is None else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{bounds}"


def _short(number: float) -> str:
    """Two decimals, or as many more as tell it from 1, without the zero before them: ``.71``, ``.997``."""
    texts = (f"{number:.{digits}f}" for digits in (2, 3, 4))
    text = next((text for text in texts if abs(float(text)) != 1), f"{number:.2f}")
    return text.replace("0.", ".", 1) if abs(number) < 1 else text


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
        recordings: A hash of the files that it read; ``None`` of samples in Python.
        n: Samples that both people and the judge decided.
        annotators: How many people labelled.
        sources: Where the labels are from.
        drawn: How the labelled samples were chosen.
        agreement: By name, such as ``kappa``.
        counts: Where both say 0 or 1, and the labels may be carried over to other runs: as many as independent samples
            that were drawn at random would tell as much.
        raw: The judge's mean over the run.
        correction: The same, corrected.
        labelled: The labelled samples; where these were drawn by verdict, the samples that they stand for.
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
    recordings: str | None = None
    n: int
    annotators: int
    sources: Many[str] = ()
    drawn: Drawn
    agreement: Mapping[str, Figure]
    counts: Counts | None = None
    raw: Figure
    correction: Correction
    labelled: Population
    population: Population
    at: datetime
    version: str

    @property
    def told(self) -> str:
        """What it comes to in a few words, such as ``audited: kappa .71 [.58, .82], n=120``."""
        agreement = next((f"{name} {figure}, " for name, figure in self.agreement.items()), "")
        return f"audited: {agreement}n={self.n}"


class Audited(NamedTuple):
    """Whether a judge was audited: its receipt, or else ``void``, why one that is there says nothing of it; empty without any."""

    receipt: Receipt | None = None
    void: str = ""

    def __str__(self) -> str:
        if self.receipt is not None:
            return self.receipt.told
        return f"not audited{f' ({self.void})' if self.void else ''}"


def keep(receipt: Receipt, folder: Path) -> Path:
    """Writes a receipt, in the place of an older one of this very judge.

    Raises:
        StoreError: It cannot be written.
    """
    path = folder / _file_name(receipt.scorer, receipt.fingerprint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            file.write(f"{receipt.model_dump_json(indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"{path}: the receipt cannot be written: {error}") from error
    return path


def load(scorer: ScorerRecord, folder: Path) -> Audited:
    """What is known of a scorer's judge: by its fingerprint, or what has changed since its last audit.

    A receipt that cannot be read, or is of another judge than its name says, is none, and it is said which one that is.
    """
    if scorer.signature is None:
        return Audited(void=f"{scorer.name} cannot be told from another of its name: {scorer.identity}")
    try:
        return _found(scorer, scorer.signature, folder)
    except StoreError as error:
        return Audited(void=str(error))


def _found(scorer: ScorerRecord, signature: str, folder: Path) -> Audited:
    path = folder / _file_name(scorer.name, signature)
    if path.exists():
        return Audited(_read(path))
    older = re.compile(re.escape(path.name.removesuffix(f"{signature}.json")) + r"[0-9a-f]{16}\.json")
    others = [_read(one) for one in sorted(folder.glob("*.json")) if older.fullmatch(one.name)]
    found = [one for one in others if one.scorer == scorer.name]  # names of files leave out what some names differ in
    if not found:
        return Audited()
    last = max(found, key=lambda one: one.at)
    changed = listed(differences(last.identity, scorer.identity), _DIFFERENCES_SHOWN)
    return Audited(void=f"the receipt of run {last.run} is void: {changed or 'the scorer is another one'}")


def _read(path: Path) -> Receipt:
    try:
        receipt = Receipt.model_validate_json(path.read_bytes())
    except ValidationError as error:
        if any(one["loc"] == ("schema_version",) and str(one["input"]).isdecimal() for one in error.errors()):
            raise StoreError(f"{path}: a receipt of a newer judgekit: update judgekit, or {_ADVICE}") from error
        raise StoreError(f"{path}: no receipt that can be read: {explain(error)}; {_ADVICE}") from error
    except OSError as error:
        raise StoreError(f"{path}: the receipt cannot be read: {error}") from error
    if path.name != _file_name(receipt.scorer, receipt.fingerprint):
        whose = f"{receipt.scorer!r} with the fingerprint {receipt.fingerprint}"
        raise StoreError(f"{path}: its name says another judge than it is of, {whose}; {_ADVICE}")
    return receipt


def _file_name(scorer: str, fingerprint: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', scorer)[:_NAME_KEPT]}-{fingerprint}.json"

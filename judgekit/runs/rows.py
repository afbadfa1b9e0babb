"""The parts of a run: its rows, its inputs, and its scorers."""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

from pydantic import Field, JsonValue

from judgekit.errors import ConfigError, listed, number_of, path_text, shortened, text_path
from judgekit.score import Grade, Score
from judgekit.scoring import Scorer, identity, label_values_of, questions_of, signature
from judgekit.traces.message import JsonObject, Many, Record
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Label, LabelSource

_ALIKE_SHOWN = 20  # characters shown before the first difference of two texts
_LONG = 80
_DAMAGED_SHOWN = 5

DAMAGED = "DamagedRow"
"""The error of a score whose row, or whose sample's, is not what was written. The file is at fault, and not the scorer."""

LabelValue: TypeAlias = bool | int | float | str
Known: TypeAlias = Literal["exactly", "about", "at least"]


class SampleCount(NamedTuple):
    """How many samples a run is to score, and how well that is known."""

    samples: int = 0
    samples_known: Known = "at least"

    @classmethod
    def expected(cls, number: int | None) -> "SampleCount":
        """Return what is known before anything is read, by the number that is expected, if there is one."""
        return cls() if number is None else cls(number, "about")

    @property
    def about(self) -> str:
        """The words before a number that is not known exactly: ``about ``, or ``at least ``."""
        return "" if self.samples_known == "exactly" else f"{self.samples_known} "

    def __str__(self) -> str:
        return f"{self.about}{self.samples:,}"


class Row(Record):
    """One score in a run.

    Attributes:
        index: The sample's number among the samples, from 0. Of records that cannot be read the numbers are left out.
        sample_id: The sample's own name.
        score: What the scorer says.
        trace_id: The id of the sample's trace.
        group: Trials of one task are a group; they are not independent.
        domain: The sample's domain.
        labels: What is known of the sample by name: its ``label``, and verdicts that came with its trace. One on which
            annotators disagree is left out; what a judge said stands there only if nobody else said anything.
        label_sources: Who gave each of these labels.
    """

    index: int
    sample_id: str
    score: Score
    trace_id: str | None = None
    group: str | None = None
    domain: str | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    label_sources: dict[str, LabelSource] = Field(default_factory=dict)

    @classmethod
    def of(cls, index: int, sample: Sample, score: Score) -> "Row":
        """The row of a sample's score."""
        known = labels_of(sample)
        return cls(
            index=index,
            sample_id=sample.id,
            score=score,
            trace_id=sample.trace.id,
            group=sample.group,
            domain=sample.domain,
            labels={name: label.value for name, label in known.items()},
            label_sources={name: label.source for name, label in known.items()},
        )

    @property
    def scorer(self) -> str:
        """The scorer's name."""
        return self.score.scorer


def labels_of(sample: Sample) -> dict[str, Label]:
    """Return the labels of a sample by name; see `Row`. Its own ``label`` is that of a benchmark."""
    found = {} if sample.label is None else {"label": Label("label", sample.label, source="benchmark")}
    disputed: set[str] = set()
    for label in sorted(sample.trace.labels, key=_is_judged):
        first = found.setdefault(label.name, label)
        if first.value != label.value and _is_judged(first) == _is_judged(label):
            disputed.add(label.name)
    return {name: label for name, label in found.items() if name not in disputed}


def _is_judged(label: Label) -> bool:
    return label.source == "judge"


class Input(Record):
    """A file that was read, by its content.

    Attributes:
        path: Where it was.
        sha256: The hash of its content, in hexadecimal digits.
        size: Its length in bytes.
        modified: When it was written last, in seconds since 1970.
    """

    path: str
    sha256: str
    size: int
    modified: float

    @classmethod
    def of(cls, path: Path) -> "Input":
        """Reads a file for its hash."""
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path=path_text(path), sha256=sha256, size=found.st_size, modified=found.st_mtime)

    @property
    def is_changed(self) -> bool:
        """Whether it has another content since, or is gone."""
        path = text_path(self.path)
        try:
            found = path.stat()
            if (found.st_size, found.st_mtime) == (self.size, self.modified):
                return False
            return Input.of(path).sha256 != self.sha256
        except OSError:
            return True


class ScorerRecord(Record):
    """A scorer of a run, by all that its scores depend on.

    Attributes:
        name: What its rows are called.
        signature: The hash of ``identity``; ``None`` where another scorer of that name could not be told from it.
        identity: Its class and all fields, with its judge and the words of its prompts as hashes.
        judged: Whether it asks a judge.
        question: What the judge is asked, in a sentence; empty where it is not.
        scale: What the labels are worth that the judge chooses from; empty where it chooses from none.
        instructions: All that the judge is asked, in whole, with the name of each input where it stands.
        inputs: What stands there.
    """

    name: str
    signature: str | None
    identity: JsonValue
    judged: bool
    question: str = ""
    scale: dict[str, Grade] = Field(default_factory=dict[str, Grade])
    instructions: str = ""
    inputs: Many[str] = ()

    @classmethod
    def of(cls, scorer: Scorer) -> "ScorerRecord":
        """Return the record of a scorer."""
        try:
            known: JsonValue = identity(scorer)
            signed = signature(scorer)
        except ConfigError as error:
            known, signed = str(error), None
        asked = questions_of(scorer)
        return cls(
            name=scorer.name,
            signature=signed,
            identity=known,
            judged=bool(asked),
            question=asked[0].description if asked else "",
            scale=dict(label_values_of(scorer) or asked[0].scale) if asked else {},
            instructions="\n\n".join(dict.fromkeys(one.instructions for one in asked)),
            inputs=tuple(dict.fromkeys(name for one in asked for name in (*one.inputs, *one.optional))),
        )


def differences(before: JsonValue, after: JsonValue) -> Iterator[str]:
    """Return in what two identities differ: each place, with what stands there in both; a text that stands twice, once."""
    texts: set[tuple[str, str]] = set()
    for where, one, other in _differences(before, after, ""):
        if isinstance(one, str) and isinstance(other, str) and len(one) > _LONG:
            if (one, other) in texts:
                continue
            texts.add((one, other))
        first, second = map(shortened, _from_difference(one, other))
        yield f"{where or 'it'} was {first} and is {second}"


def _differences(before: JsonValue, after: JsonValue, where: str) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(name), after.get(name), f"{where}.{name}".removeprefix("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            # A dataclass stands there as its class, its fields and its prompts: what is in it has a name of its own.
            yield from _differences(*pair, where if isinstance(pair[0], dict) else f"{where}[{place}]")
    elif before != after:
        yield where, before, after


def _from_difference(before: JsonValue, after: JsonValue) -> tuple[JsonValue, JsonValue]:
    """Return both values; of long texts that begin alike, what follows from shortly before their first difference."""
    if not isinstance(before, str) or not isinstance(after, str):
        return before, after
    differs = (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    begin = next(differs, min(len(before), len(after))) - _ALIKE_SHOWN
    if begin <= _ALIKE_SHOWN:
        return before, after
    return f"...{before[begin:]}", f"...{after[begin:]}"


class Damaged(NamedTuple):
    """Rows of a run that are not what was written, so that a `Run` leaves them out.

    Attributes:
        conversations: Conversations, by the numbers of their samples.
        exchanges: What judges were sent and replied, each by the number of its sample, its scorer, and which of the
            score's calls it was.
    """

    conversations: frozenset[int] = frozenset()
    exchanges: frozenset[tuple[int, str, int]] = frozenset()

    def __str__(self) -> str:
        """Return how many there are and of which samples; nothing if there are none."""
        replies = {number for number, *_ in self.exchanges}
        kinds = (
            ("damaged conversation", len(self.conversations), self.conversations),
            ("damaged judge exchange", len(self.exchanges), replies),
        )
        return "; ".join(
            f"{number_of(count, kind)} left out: {listed((f'#{one}' for one in sorted(numbers)), _DAMAGED_SHOWN, ', ')}"
            for kind, count, numbers in kinds
            if count
        )


class RunRecord(Record):
    """The record of a run, beside its rows.

    Attributes:
        number: Runs of a file are numbered from 1.
        id: A random name, which stays the same in all files; what is spent counts for it.
        started_at: When it began.
        ended_at: When it ended; ``None`` while it is under way, and where it broke off.
        stopped: Why it ended before all samples were scored; empty if it did not.
        inputs: The files it read.
        read_to_end: Whether it has met all samples.
        samples: How many samples it is to score, those that it did not come to among them.
        samples_known: How well that is known: ``exactly`` once all were counted; ``about``, by the lines of a file, and
            ``at least``, while it is under way, and where it broke off or the counting was interrupted.
        scorers: What it scored with, in the order of its rows.
        options: Its options, by which it can go on; see `judgekit.jobs.options.RunOptions`.
        notes: What its reader must know, such as how many records could not be read.
        version: That of judgekit.
        keeps_text: Whether conversations, reasons and the words of judges are kept with it.
    """

    number: int = 0
    id: str = Field(default_factory=lambda: uuid4().hex)
    started_at: datetime
    ended_at: datetime | None = None
    stopped: str = ""
    inputs: Many[Input] = ()
    read_to_end: bool = False
    samples: int = 0
    samples_known: Known = "at least"
    scorers: Many[ScorerRecord] = ()
    options: JsonObject = Field(default_factory=dict)
    notes: Many[str] = ()
    version: str = ""
    keeps_text: bool = True

    @property
    def unfinished(self) -> str:
        """Why not all samples may be scored; empty if all are."""
        if self.stopped:
            return f"stopped early ({self.stopped})"
        return "under way, or broken off" if self.ended_at is None else ""

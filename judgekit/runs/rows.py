"""The parts of a run: its record, its rows, its input files and its scorers."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

from pydantic import Field, JsonValue

from judgekit.errors import ConfigError, path_text, short_repr, short_reprs
from judgekit.locations import Location, Url, to_location
from judgekit.score import ScaleValue, Score
from judgekit.scoring import Scorer, scorer_label_values, scorer_prompts, scorer_scope, signature, signature_data
from judgekit.traces.fast_models import construct
from judgekit.traces.message import FrozenModel, JsonObject, Many
from judgekit.traces.recording import Label, LabelSource
from judgekit.traces.sample import Sample
from judgekit.traces.tree import Scope

_ALIKE_SHOWN = 20  # characters shown before the first difference of two texts
_LONG = 80
_LONGEST_NAME = 100

DAMAGED_ROW = "DamagedRow"
"""The error of a score whose row, or whose sample's row, is not what was written. The file is at fault."""

LabelValue: TypeAlias = bool | int | float | str
CountPrecision: TypeAlias = Literal["exactly", "about", "at least"]


class SampleCount(NamedTuple):
    """The number of samples that a run is to score, and how precisely it is known."""

    samples: int = 0
    count_precision: CountPrecision = "at least"

    @property
    def qualifier(self) -> str:
        """The words before a number that is not exact: ``about `` or ``at least ``."""
        return "" if self.count_precision == "exactly" else f"{self.count_precision} "

    def __str__(self) -> str:
        return f"{self.qualifier}{self.samples:,}"


class Row(FrozenModel):
    """The score of one sample by one scorer in a run.

    Attributes:
        index: The sample's number in the run, from 0. Records that cannot be read take up numbers too.
        sample_id: The sample's own id.
        score: The score.
        trace_id: The id of the sample's trace.
        group: The sample's group, such as the task of its trial; samples of a group are not independent.
        copied: The name of the unit that it shares with copies of its recording; see `judgekit.runs.units.RunUnits`.
        domain: The sample's domain.
        labels: The sample's labels by name: its ``label``, and those that came with its trace. A label on which
            annotators disagree is left out; a judge's label counts only if nobody else gave one.
        label_sources: The source of each of these labels.
    """

    index: int
    sample_id: str
    score: Score
    trace_id: str | None = None
    group: str | None = None
    copied: str | None = None
    domain: str | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    label_sources: dict[str, LabelSource] = Field(default_factory=dict)

    @classmethod
    def of(cls, index: int, sample: Sample, score: Score) -> "Row":
        """Return the row of a sample's score."""
        labels = sample_labels(sample)
        return construct(
            cls,
            {
                "index": index,
                "sample_id": sample.id,
                "score": score,
                "trace_id": sample.trace.id,
                "group": sample.group,
                "copied": None,
                "domain": sample.domain,
                "labels": {name: label.value for name, label in labels.items()} if labels else {},
                "label_sources": {name: label.source for name, label in labels.items()} if labels else {},
            },
        )

    @property
    def scorer(self) -> str:
        """The scorer's name."""
        return self.score.scorer

    @property
    def unit(self) -> str | None:
        """The unit that every interval counts once: its recording if copied, or its group; ``None`` if it is alone."""
        return self.group if self.copied is None else self.copied


def sample_labels(sample: Sample) -> dict[str, Label]:
    """Return the labels of a sample by name; see `Row`. The source of its own ``label`` is a benchmark."""
    if sample.label is None and not sample.trace.labels:
        return {}
    labels = {} if sample.label is None else {"label": Label("label", sample.label, source="benchmark")}
    disputed: set[str] = set()
    for label in sorted(sample.trace.labels, key=lambda label: label.source == "judge"):
        first = labels.setdefault(label.name, label)
        if first.value != label.value and (first.source == "judge") == (label.source == "judge"):
            disputed.add(label.name)
    return {name: label for name, label in labels.items() if name not in disputed}


class Input(FrozenModel):
    """A file or object that was read, identified by its content.

    Attributes:
        path: Its path at that time, or its URL.
        sha256: The SHA-256 of its content, in hexadecimal; ``None`` for an object in a bucket.
        etag: The ETag of an object in a bucket, which changes whenever it is written; ``None`` for a file.
        size: Its size in bytes.
        modified_at: When a file was last written, in seconds since 1970.
    """

    path: str
    sha256: str | None = None
    etag: str | None = None
    size: int
    modified_at: float | None = None

    @classmethod
    def of(cls, path: Location) -> "Input":
        """Return the record of a file, which is read for its hash, or of an object in a bucket.

        Raises:
            OSError: It cannot be read.
        """
        if isinstance(path, Url):
            etag, size = path.version or path.current_version()
            return cls(path=path, etag=etag, size=size)
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path=path_text(path), sha256=sha256, size=status.st_size, modified_at=status.st_mtime)

    @property
    def identity(self) -> str:
        """The identity of the content: its SHA-256, or the ETag of an object in a bucket."""
        return self.sha256 or self.etag or ""

    @property
    def is_changed(self) -> bool:
        """Whether the file or object has other content by now, or is gone."""
        path = to_location(self.path)
        try:
            if isinstance(path, Url):
                return Input.of(path) != self
            status = path.stat()
            if (status.st_size, status.st_mtime) == (self.size, self.modified_at):
                return False
            return Input.of(path).sha256 != self.sha256
        except OSError:
            return True


def changed_paths(before: Iterable[Input], after: Iterable[Input]) -> list[str]:
    """Return the paths of files that changed, appeared or disappeared."""
    old, new = ({file.path: file.identity for file in inputs} for inputs in (before, after))
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


class ScorerRecord(FrozenModel):
    """A scorer of a run, with everything that its scores depend on.

    Attributes:
        name: The scorer's name in the rows.
        signature: The hash of ``identity``; ``None`` if scorers of this name cannot be told apart.
        identity: The scorer's class and fields, with its judge and the text of its prompts as hashes.
        judged: Whether a judge gives its scores, now or when they were recorded.
        question: The question to the judge in a sentence; empty without a judge.
        scale: The values of the labels that the judge chooses from; empty if there are none.
        label_groups: The group of each label of the scale, if labels have groups.
        instructions: The complete instructions to the judge, with a name in place of each input.
        inputs: The names of these inputs.
        system: The system messages of the requests to the judge.
        scope: The part of a recording that the scorer looks at.
        alignments: The ids of the alignments that its questions came from; see `judgekit.runs.alignments`.
        per_turn: Whether it judges each turn, so that people label turns.
    """

    name: str
    signature: str | None
    identity: JsonValue
    judged: bool
    question: str = ""
    scale: dict[str, ScaleValue] = Field(default_factory=dict[str, ScaleValue])
    label_groups: dict[str, str] = Field(default_factory=dict[str, str])
    instructions: str = ""
    inputs: Many[str] = ()
    system: str = ""
    scope: Scope = "own"
    alignments: Many[str] = ()
    per_turn: bool = False

    @classmethod
    def of(cls, scorer: Scorer) -> "ScorerRecord":
        """Return the record of a scorer."""
        try:
            identity: JsonValue = signature_data(scorer)
            signed = signature(scorer)
        except ConfigError as error:
            identity, signed = str(error), None
        prompts = scorer_prompts(scorer)
        return cls(
            name=scorer.name,
            signature=signed,
            identity=identity,
            judged=bool(prompts),
            question=prompts[0].description if prompts else "",
            scale=dict(scorer_label_values(scorer) or prompts[0].scale) if prompts else {},
            instructions="\n\n".join(dict.fromkeys(prompt.instructions for prompt in prompts)),
            inputs=tuple(dict.fromkeys(name for prompt in prompts for name in (*prompt.inputs, *prompt.optional))),
            system="\n\n".join(dict.fromkeys(getattr(prompt, "system", "") for prompt in prompts)),
            scope=scorer_scope(scorer),
            label_groups=dict(getattr(scorer, "label_groups", {})),
            alignments=tuple(
                dict.fromkeys(alignment for prompt in prompts if (alignment := getattr(prompt, "alignment", "")))
            ),
            per_turn=getattr(scorer, "per_turn", False),
        )


def check_comparable(scorers: Iterable[ScorerRecord]) -> None:
    """Check that processes can tell whether they have the same scorers.

    Raises:
        ConfigError: A scorer has no signature.
    """
    for scorer in scorers:
        if scorer.signature is None:
            raise ConfigError(f"shards cannot compare the scorer {scorer.name}: {scorer.identity}")


def identity_differences(before: JsonValue, after: JsonValue) -> Iterator[str]:
    """Yield how two identities differ: each place with both values, and each pair of long texts only once."""
    texts: set[tuple[str, str]] = set()
    for where, old, new in _differences(before, after, ""):
        if isinstance(old, str) and isinstance(new, str) and len(old) > _LONG:
            if (old, new) in texts:
                continue
            texts.add((old, new))
        first, second = short_reprs(_from_difference(old, new))
        yield f"{where or 'it'} was {first} and is {second}"


def _differences(before: JsonValue, after: JsonValue, where: str) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(name), after.get(name), f"{where}.{name}".removeprefix("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            # A dataclass is a list of its class, its fields and its prompts, whose values have names of their own.
            yield from _differences(*pair, where if isinstance(pair[0], dict) else f"{where}[{index}]")
    elif before != after:
        yield where, before, after


def _from_difference(before: JsonValue, after: JsonValue) -> tuple[JsonValue, JsonValue]:
    """Return both values; long texts that begin alike start shortly before their first difference."""
    if not isinstance(before, str) or not isinstance(after, str):
        return before, after
    differs = (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    begin = next(differs, min(len(before), len(after))) - _ALIKE_SHOWN
    if begin <= _ALIKE_SHOWN:
        return before, after
    return f"...{before[begin:]}", f"...{after[begin:]}"


class ScorerResult(NamedTuple):
    """The result of a scorer in a finished run.

    Attributes:
        scores: The number of its scores.
        failed: The number of these that failed.
        n: The number of samples that it scored.
        mean: Its number, usually the mean; ``None`` if it has none.
        low: The lower bound of the 95 % interval; ``None`` if there is none.
        high: The upper bound.
    """

    scores: int
    failed: int
    n: int
    mean: float | None
    low: float | None
    high: float | None


class RunDescription(NamedTuple):
    """The words of people about a run, which are stored apart from its record, so that they may change while it runs."""

    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()

    def checked(self) -> "RunDescription":
        """Return it with its texts on one line, and each tag once.

        Raises:
            ConfigError: The name or a tag is too long, or a tag is blank or has spaces.
        """
        name, note = (" ".join(text.split()) for text in (self.name, self.note))
        if len(name) > _LONGEST_NAME:
            raise ConfigError(f"the name of a run has at most {_LONGEST_NAME} characters, found {len(name)}")
        for tag in self.tags:
            if not re.fullmatch(r"\S{1,50}", tag):
                raise ConfigError(f"a tag has 1 to 50 characters and no spaces, found {short_repr(tag)}")
        return RunDescription(name, note, tuple(dict.fromkeys(self.tags)))


class RunRecord(FrozenModel):
    """The record of a run, stored next to its rows.

    Attributes:
        number: The run's number in its file, from 1.
        id: A random id that stays the same in all files; spending is counted by it. Shards of a run share it.
        started_at: When the run began.
        ended_at: When it ended; ``None`` while it is running or if it was interrupted.
        worked_seconds: The time that was worked, without breaks before it was resumed; ``None`` if nobody measured it.
        stop_reason: Why it ended before all samples were scored; empty if it did not.
        inputs: The files that it read.
        read_to_end: Whether it has seen all samples.
        samples: The number of samples to score, including those that it did not reach.
        count_precision: The precision of this number: ``exactly`` after a complete count. While the run is going, or if
            it or the counting was interrupted, it is ``about`` (by the lines of a file) or ``at least``.
        scorers: The scorers, in the order of the rows.
        added: The index of the first scorer of each later addition; its questions are not asked together with earlier
            ones.
        options: The options for resuming the run; see `judgekit.jobs.options.RunOptions`.
        unread_records: The number of records that could not be read.
        notes: Notes for readers of the run, such as how many records could not be read.
        version: The version of judgekit.
        alignment: The id of the alignment that stored it, which is never the last run; ``None`` for other runs.
        keeps_text: Whether conversations, reasons and the texts of judges are stored.
    """

    number: int = 0
    id: str = Field(default_factory=lambda: uuid4().hex)
    started_at: datetime
    ended_at: datetime | None = None
    worked_seconds: float | None = None
    stop_reason: str = ""
    inputs: Many[Input] = ()
    read_to_end: bool = False
    samples: int = 0
    count_precision: CountPrecision = "at least"
    scorers: Many[ScorerRecord] = ()
    added: Many[int] = ()
    options: JsonObject = Field(default_factory=dict)
    unread_records: int = 0
    notes: Many[str] = ()
    version: str = ""
    alignment: str | None = None
    keeps_text: bool = True

    @property
    def took(self) -> timedelta | None:
        """The time that was worked or, if nobody measured it, from begin to end; ``None`` until it has ended."""
        if self.ended_at is None:
            return None
        whole = self.ended_at - self.started_at
        return whole if self.worked_seconds is None else timedelta(seconds=round(self.worked_seconds))

    @property
    def unfinished(self) -> str:
        """Why some samples may not be scored; empty if all are."""
        if self.stop_reason:
            return f"stopped early ({self.stop_reason})"
        return "running or interrupted" if self.ended_at is None else ""

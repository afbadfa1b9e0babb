"""Anchors: recordings that a judge is asked about again and again, with all its verdicts, in a file next to the audit records."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from os import SEEK_END
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_json

from judgekit.atomic import atomic_write
from judgekit.database import create_parent_folder
from judgekit.errors import StoreError, count_text, validation_message
from judgekit.runs.hashes import recording_key
from judgekit.traces.message import FrozenModel, JsonObject, Many
from judgekit.traces.sample import Sample

BASELINE_ROUNDS = 3
_MOST_BYTES = 2**28
_MOST_ROUNDS = 10_000
_NAME_KEPT = 100
_ADVICE = "move it away and freeze anchors again"

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class AnchorsHead(FrozenModel):
    """The first line of a file of anchors.

    Attributes:
        fingerprint: The scorer's signature, which is the hash of ``identity``.
        options: The options with which the scorer is built; see `judgekit.jobs.options.RunOptions`.
        run: The run that the recordings are from.
        alarmed_at: When anchors that these replaced raised an alarm; ``None`` if they did not.
    """

    kind: Literal["anchors"] = "anchors"
    schema_version: Literal[1] = 1
    scorer: str
    fingerprint: str
    identity: JsonValue
    options: JsonObject
    run: int
    frozen_at: AwareDatetime
    alarmed_at: AwareDatetime | None = None
    version: str


class Anchor(FrozenModel):
    """A recording that the judge is asked about, by the hash of its content, with the mean value that people gave it."""

    kind: Literal["anchor"] = "anchor"
    recording: str
    sample: JsonObject
    human: _Share | None = None


class AnchorDraw(FrozenModel):
    """A verdict on an anchor, and what the provider reported; without a value if the judge skips it or abstains."""

    kind: Literal["draw"] = "draw"
    round: int
    recording: str
    at: AwareDatetime
    value: _Share | None
    models: Many[str] = ()
    system_fingerprints: Many[str] = ()


class AnchorRound(FrozenModel):
    """The end of a round, in which each anchor was asked once: first those of the baseline, then the checks.

    Attributes:
        detector: The last number of `judgekit.stats.drift.detect_drift` after a check.
        alarm: Whether the check raised the alarm.
    """

    kind: Literal["round"] = "round"
    round: int
    at: AwareDatetime
    detector: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    alarm: bool = False


_Line: TypeAlias = AnchorsHead | Anchor | AnchorDraw | AnchorRound
_LINE: TypeAdapter[_Line] = TypeAdapter(Annotated[_Line, Field(discriminator="kind")])


@dataclass
class AnchorSet:
    """The anchors of one scorer, as they are in a file, to which verdicts are added.

    Attributes:
        anchors: The anchors, by the hashes of their recordings.
        draws: The verdicts of each round by recording; the last round is under way.
        rounds: The ends of the other rounds.
        size: The length of the file up to its last whole line.
    """

    path: Path
    head: AnchorsHead
    anchors: Mapping[str, Anchor]
    draws: list[dict[str, AnchorDraw]] = field(default_factory=lambda: [{}])
    rounds: list[AnchorRound] = field(default_factory=list[AnchorRound])
    size: int = 0

    @property
    def alarmed_at(self) -> datetime | None:
        """When an alarm was raised, here or by anchors that these replaced."""
        return next((end.at for end in self.rounds if end.alarm), self.head.alarmed_at)

    def include(self, line: _Line) -> None:
        """Add a line that was read or written.

        Raises:
            ValueError: It does not belong here.
        """
        if isinstance(line, AnchorsHead | Anchor):
            raise ValueError(f"expected a verdict, found a line of kind {line.kind}")
        if line.round != len(self.rounds) or line.round >= _MOST_ROUNDS:
            raise ValueError(f"expected a line of round {len(self.rounds)}, found one of round {line.round}")
        if isinstance(line, AnchorRound):
            self.rounds.append(line)
            self.draws.append({})
        elif line.recording not in self.anchors or line.recording in self.draws[-1]:
            raise ValueError(f"the recording {line.recording!r} is no anchor, or has two verdicts in one round")
        else:
            self.draws[-1][line.recording] = line

    def add(self, line: AnchorDraw | AnchorRound) -> None:
        """Add a verdict, or the end of a round, to the file. A line that was cut off with its writer is overwritten.

        Raises:
            StoreError: It cannot be written, or another process adds verdicts too.
        """
        written = line.model_dump_json().encode() + b"\n"
        try:
            with self.path.open("r+b") as file:
                length = file.seek(0, SEEK_END)
                file.seek(self.size)
                if length < self.size or b"\n" in file.read():
                    raise StoreError(f"{self.path}: another process is asking about these anchors, or replaced them")
                file.truncate(self.size)
                file.seek(self.size)
                file.write(written)
        except OSError as error:
            raise StoreError(f"{self.path}: the verdict cannot be written: {error}") from error
        self.size += len(written)
        self.include(line)


class AnchorsStatus(NamedTuple):
    """The last check of anchors, and alarms.

    Attributes:
        checked_at: When the last check ended; ``None`` if there was none.
        alarmed_at: When an alarm was raised, by these anchors or by others that they replaced.
        has_changed: Whether these anchors raised it.
    """

    checked_at: datetime | None
    alarmed_at: datetime | None
    has_changed: bool

    def text(self, at: datetime) -> str:
        """Return how long ago the check was, such as ``anchors checked 3 days ago``."""
        if self.checked_at is None:
            return "anchors not checked yet"
        return f"anchors checked {age_text(self.checked_at, at)}{', and the judge has changed' * self.has_changed}"


def age_text(moment: datetime, at: datetime) -> str:
    """Return how long ago something was, such as ``3 days ago``."""
    days = (at - moment).days
    return f"{count_text(days, 'day')} ago" if days > 0 else "less than a day ago"


def date_text(moment: datetime) -> str:
    """Return a date such as ``12 November 2026``."""
    return f"{moment.day} {moment:%B %Y}"


def anchors_folder(store: Path | str) -> Path:
    """Return the folder of anchors next to a file of runs."""
    return Path(store).parent / "anchors"


def anchors_path(scorer: str, folder: Path) -> Path:
    """Return the file of a scorer's anchors. A hash tells names apart that would be the same as names of files."""
    letters = re.sub(r"[^A-Za-z0-9_-]", "_", scorer)[:_NAME_KEPT]
    ending = "" if letters == scorer else f"-{hashlib.sha256(scorer.encode()).hexdigest()[:8]}"
    return folder / f"{letters}{ending}.jsonl"


def write_anchors(head: AnchorsHead, anchors: Iterable[Anchor], path: Path) -> AnchorSet:
    """Write a file of anchors without verdicts, replacing an older one.

    Raises:
        StoreError: It cannot be written.
    """
    new = AnchorSet(path, head, {anchor.recording: anchor for anchor in anchors})
    written = b"".join(line.model_dump_json().encode() + b"\n" for line in (head, *new.anchors.values()))
    if len(written) > _MOST_BYTES // 2:  # verdicts will be added
        raise StoreError(f"{path}: the anchors take {len(written):,} bytes: freeze fewer than {len(new.anchors):,}")
    try:
        create_parent_folder(path.parent)
        path.parent.mkdir(exist_ok=True)
        with atomic_write(path) as file:
            file.write(written)
    except OSError as error:
        raise StoreError(f"{path}: the anchors cannot be written: {error}") from error
    new.size = len(written)
    return new


def read_anchors(path: Path) -> AnchorSet:
    """Return the anchors in a file. A last line that was cut off is left out, and samples are not checked yet.

    Raises:
        StoreError: The file cannot be read, or a line in it is not valid.
    """
    try:
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise StoreError(f"{path}: expected at most {_MOST_BYTES:,} bytes, found {size:,}; {_ADVICE}")
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise StoreError(f"{path}: the anchors cannot be read: {error}") from error
    read: AnchorSet | None = None
    anchors: dict[str, Anchor] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = _LINE.validate_json(text)
            if read is None:
                if not isinstance(line, AnchorsHead):
                    raise ValueError(f"expected a line of kind anchors first, found one of kind {line.kind}")
                if anchors_path(line.scorer, path.parent) != path:
                    raise ValueError(f"its name does not match its content, {line.scorer!r}")
                read = AnchorSet(path, line, anchors)
            elif isinstance(line, Anchor) and line.recording not in anchors and read.draws == [{}]:
                anchors[line.recording] = line
            else:
                read.include(line)
            read.size += len(text) + 1
        except ValueError as error:
            why = validation_message(error) if isinstance(error, ValidationError) else str(error)
            raise StoreError(f"{path}: line {number}: {why}; {_ADVICE}") from error
    if read is None:
        raise StoreError(f"{path}: is empty; {_ADVICE}")
    return read


def anchors_status(scorer: str, fingerprint: str | None, folder: Path) -> AnchorsStatus | None:
    """Return the status of a scorer's anchors; ``None`` if there are none, or only those of another version of it.

    Raises:
        StoreError: They cannot be read.
    """
    path = anchors_path(scorer, folder.absolute())
    if not path.exists():
        return None
    written = path.stat()
    frozen, status = _read_status(path, written.st_mtime_ns, written.st_size)
    return status if frozen == fingerprint else None


@lru_cache(maxsize=32)
def _read_status(path: Path, _modified: int, _size: int) -> tuple[str, AnchorsStatus]:
    """Return the fingerprint and the status in a file, which is read once until it is written again."""
    anchors = read_anchors(path)
    checks = anchors.rounds[BASELINE_ROUNDS:]
    has_changed = any(end.alarm for end in checks)
    return anchors.head.fingerprint, AnchorsStatus(checks[-1].at if checks else None, anchors.alarmed_at, has_changed)


def anchor_sample(anchor: Anchor, path: Path) -> Sample:
    """Return the sample of an anchor.

    Raises:
        StoreError: It is not the recording that was frozen.
    """
    try:
        sample = Sample.model_validate_json(to_json(anchor.sample, inf_nan_mode="constants"))
        if recording_key(sample) != anchor.recording:
            raise ValueError("not the recording that was frozen")
    except ValueError as error:
        why = validation_message(error) if isinstance(error, ValidationError) else str(error)
        raise StoreError(f"{path}: anchor {anchor.recording}: {why}; {_ADVICE}") from error
    return sample

"""Records of alignments: which labels were read or chose a judge's question, and which of them may still prove it."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import ValidationError

from judgekit.atomic import atomic_write
from judgekit.errors import StoreError, validation_message
from judgekit.runs.hashes import group_key, recording_key
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample import Sample

LabelRole: TypeAlias = Literal["train", "validation", "test"]
"""The role of a label when a judge is aligned: the writing model reads ``train``, the best candidate is chosen by
``validation``, and ``test`` shows whether it is better.
"""
AlignmentOutcome: TypeAlias = Literal["shown", "not shown", "worse", "refused"]
"""Whether the new question is shown to agree more often with people, is not, agrees less often, or was not tested."""

_READ, _CHOOSE = 0.20, 0.3125
"""The share of recordings that are read, and the share of the others that choose."""
_FILE = re.compile(r"alignment-[0-9a-f]{12}\.json")


def assigned_role(sample: Sample, train: float = _READ) -> LabelRole:
    """Return the role that a recording has if its labels name none: 20 % train, 25 % validation, 55 % test.

    It depends on nothing but the sample's group or, without one, its recording, so more labels never change it. If others
    are read, ``train`` is 0, and 31 % validation and 69 % test.
    """
    key = recording_key(sample) if sample.group is None else group_key(sample.group)
    drawn = int(key, 16) / 16 ** len(key)
    return "train" if drawn < train else "validation" if drawn < train + (1 - train) * _CHOOSE else "test"


class AlignmentRecord(FrozenModel):
    """The record of an alignment: what it did with its labels, and what it found.

    Recordings are listed by `recording_key`, and groups by `group_key`.

    Attributes:
        id: A hash of the question, its candidates and the labels. The aligned prompt names it.
        inputs: A hash of the question and the labels.
        scorer: The scorer whose question was aligned; the labels name it.
        parent: The id of the alignment that this question came from.
        parent_fingerprint: The signature of the scorer before.
        train: The recordings whose labels the writing model read.
        validation: The recordings whose labels chose the candidate.
        test: The recordings whose labels tested it.
        groups: The groups of the recordings that were read or chose.
        candidates: The number of candidates that were judged.
        look: How many times labels of this test set have been looked at, this time included.
        alpha: The level of the test at this look.
        outcome: What was found.
        p: The one-sided p of the test; ``None`` without one.
        fixed: The number of test samples on which only the new question is right, or nearer to people.
        regressed: The number on which only the old one is.
        prompt_hash: The SHA-256 of the prompt file that was written; empty if none was.
        made_at: When it was made.
        version: The version of judgekit that made it.
    """

    schema_version: Literal[1] = 1
    id: str
    inputs: str = ""
    scorer: str
    parent: str | None = None
    parent_fingerprint: str | None = None
    train: Many[str] = ()
    validation: Many[str] = ()
    test: Many[str] = ()
    groups: Many[str] = ()
    candidates: int = 0
    look: int = 1
    alpha: float | None = None
    outcome: AlignmentOutcome
    p: float | None = None
    fixed: int = 0
    regressed: int = 0
    prompt_hash: str = ""
    made_at: datetime
    version: str

    @property
    def fitted_keys(self) -> frozenset[str]:
        """The recordings and groups whose labels were read or chose, and so prove nothing about this judge."""
        return frozenset((*self.train, *self.validation, *self.groups))

    def was_fitted_to(self, sample: Sample) -> bool:
        """Return whether labels of this recording, or of its group, were read or chose."""
        keys = {recording_key(sample)} | ({group_key(sample.group)} if sample.group is not None else set[str]())
        return not keys.isdisjoint(self.fitted_keys)


def write_alignment(record: AlignmentRecord, folder: Path) -> Path:
    """Write a record next to the audit records, replacing that of the same alignment.

    Raises:
        StoreError: It cannot be written.
    """
    path = _path(folder, record.id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(f"{record.model_dump_json(indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"{path}: the alignment cannot be recorded: {error}") from error
    return path


def read_alignments(folder: Path) -> Sequence[AlignmentRecord]:
    """Return all recorded alignments, oldest first.

    Raises:
        StoreError: One of them cannot be read.
    """
    records = [_read(path) for path in sorted(folder.glob("alignment-*.json")) if _FILE.fullmatch(path.name)]
    return sorted(records, key=lambda record: record.made_at)


def ancestry(alignment: str, folder: Path) -> Sequence[AlignmentRecord]:
    """Return the record of an alignment, and those of the alignments that its question came from.

    Raises:
        StoreError: One of them is not there, or cannot be read.
    """
    records: list[AlignmentRecord] = []
    wanted: str | None = alignment
    while wanted is not None and wanted not in {record.id for record in records}:
        if not re.fullmatch("[0-9a-f]{12}", wanted):
            raise StoreError(f"expected the id of an alignment, 12 hexadecimal digits, found {wanted!r}")
        records.append(_read(_path(folder, wanted)))
        wanted = records[-1].parent
    return records


def _path(folder: Path, alignment: str) -> Path:
    return folder / f"alignment-{alignment}.json"


def _read(path: Path) -> AlignmentRecord:
    advice = "restore it, for example from version control"
    try:
        record = AlignmentRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise StoreError(f"{path}: not a valid alignment: {validation_message(error)}; {advice}") from error
    except OSError as error:
        raise StoreError(f"{path}: the alignment cannot be read: {error}; {advice}") from error
    if path.name != f"alignment-{record.id}.json":
        raise StoreError(f"{path}: its name does not match its content, {record.id}; {advice}")
    return record

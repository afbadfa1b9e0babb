"""Audit records: the results of auditing a judge on some recordings, valid as long as the judge stays the same."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field, JsonValue, ValidationError
from pydantic_core import from_json, to_json

from judgekit.atomic import atomic_write
from judgekit.errors import StoreError, join_limited, short_repr, validation_message
from judgekit.runs.alignments import AlignmentRecord
from judgekit.runs.anchors import age_text, anchors_status, date_text
from judgekit.runs.answers import reported_names
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import Population, transfer_obstacles
from judgekit.runs.rows import ScorerRecord, identity_differences
from judgekit.traces.message import FrozenModel, Many

LabelSelection: TypeAlias = Literal["all", "random", "stratified", "convenience", "unknown", "elsewhere"]
"""The selection of the labeled samples: ``all`` of the run; drawn at ``random``; ``stratified``, that is, drawn at
random within each verdict of the judge, with known probabilities; picked by hand (``convenience``); ``unknown``; or of
another run (``elsewhere``).
"""

_SCHEMA = 3
_NAME_KEPT = 100
_DIFFERENCES_SHOWN = 3
_ADVICE = "move it away and run judgekit audit again"
_NOT_DRAWN: Mapping[LabelSelection, str] = {
    "convenience": ", labels picked by hand",
    "unknown": ", labels perhaps not a random sample",
}


class Correction(FrozenModel):
    """A judge's mean corrected by human labels, or the reason why it is not corrected.

    Attributes:
        method: The method: ``PPI++``, ``stratified PPI++``, ``Rogan-Gladen`` or ``labels alone``.
        corrected: The mean that people would give, with its interval; ``None`` if the correction is refused.
        unavailable_reason: Why the evidence does not support a correction; empty if it does.
        assumptions: The assumptions under which the correction is right.
        effective_labels: The number of labels that would tell as much without the judge; ``None`` if unknown.
    """

    method: str = ""
    corrected: Estimate | None = None
    unavailable_reason: str = ""
    assumptions: str = ""
    effective_labels: float | None = None


class ConfusionCounts(FrozenModel):
    """Labeled samples by the human and the judge's verdict, both 0 or 1: true and false positives and negatives.

    A sample on which people disagree is split by the share of people who give each verdict.
    """

    tp: float
    fp: float
    fn: float
    tn: float


class AuditRecord(FrozenModel):
    """The result of auditing one scorer on the recordings of one run.

    Attributes:
        scorer: The scorer's name.
        fingerprint: The scorer's signature, which is the hash of ``identity``.
        identity: The scorer's class and fields, its judge with its parameters, and the text of its prompts.
        judges: The models that answered.
        models: The models that each judge's provider reported, by judge; empty if it reported none.
        system_fingerprints: The system fingerprints that each judge's provider reported, by judge.
        prompts: The prompts with their versions.
        run: The number of the audited run.
        run_started_at: When the audited run began.
        recordings: A hash of the files that the run read; ``None`` for samples from Python.
        sample_count: The number of samples that both people and the judge decided.
        annotators: The number of people who labeled.
        sources: The origins of the labels, such as files.
        selection: The selection of the labeled samples.
        agreement: Measures of agreement by name, such as ``kappa``.
        counts: The labeled samples by verdict, if all are 0 or 1 and may be carried over to other runs: scaled to the
            number of independent random samples that would tell as much.
        transfer_obstacle: Why the labels may not be carried over to other runs.
        judge_mean: The judge's mean over the run.
        correction: The corrected mean.
        labeled: A description of the labeled samples; if they were drawn by verdict, of those that they stand for.
        population: A description of all samples of the run that the judge scored.
        alignment: The alignment that the judge's question came from, with the recordings whose labels were read or chose;
            ``None`` if it came from none.
        label_changes: How many labels have changed since the first audit of the scorer on these recordings, in words; empty
            if none has.
        first_audited_at: When that audit was made.
        audited_at: When this audit was made.
        version: The version of judgekit that made it.
    """

    schema_version: Literal[3] = 3
    scorer: str
    fingerprint: str
    identity: JsonValue
    judges: Many[str] = ()
    models: Mapping[str, Many[str]] = Field(default_factory=dict[str, Many[str]])
    system_fingerprints: Mapping[str, Many[str]] = Field(default_factory=dict[str, Many[str]])
    prompts: Many[str] = ()
    run: int
    run_started_at: datetime
    recordings: str | None = None
    sample_count: int
    annotators: int
    sources: Many[str] = ()
    selection: LabelSelection
    agreement: Mapping[str, Estimate]
    counts: ConfusionCounts | None = None
    transfer_obstacle: str = ""
    judge_mean: Estimate
    correction: Correction
    labeled: Population
    population: Population
    alignment: AlignmentRecord | None = None
    label_changes: str = ""
    first_audited_at: datetime | None = None
    audited_at: datetime
    version: str

    @property
    def key(self) -> str:
        """A hash that tells audit records of one judge apart, from the recordings, or from the run if these are unknown."""
        return hashlib.sha256(
            (self.recordings or f"{self.run} {self.run_started_at.isoformat()}").encode()
        ).hexdigest()[:8]

    @property
    def file_name(self) -> str:
        """The name of the file that keeps it in the folder of audit records."""
        return f"{_file_name_letters(self.scorer)}-{self.fingerprint}-{self.key}.json"

    @property
    def summary(self) -> str:
        """The result in brief, such as ``kappa .71 [.58, .82], n=120``."""
        agreement = next((f"{name} {figure}, " for name, figure in self.agreement.items()), "")
        return f"{agreement}n={self.sample_count}{_NOT_DRAWN.get(self.selection, '')}"


@dataclass(frozen=True)
class AuditSubject:
    """A judged scorer of a run, to be compared with audit records.

    Attributes:
        scorer: The scorer.
        run: The number of the run.
        run_started_at: When the run began.
        recordings: A hash of the files that the run read; ``None`` for samples from Python.
        models: The number of answers by judge and reported model; ``None`` counts answers without a reported model.
        system_fingerprints: The number of answers by judge and reported system fingerprint.
        population: A function that describes the judged samples.
    """

    scorer: ScorerRecord
    run: int
    run_started_at: datetime
    recordings: str | None
    models: Mapping[str, Mapping[str | None, int]]
    system_fingerprints: Mapping[str, Mapping[str | None, int]]
    population: Callable[[], Population]

    def is_audited_by(self, audit_record: AuditRecord) -> bool:
        """Return whether an audit record is for this run or for the same recordings."""
        is_same = (audit_record.run, audit_record.run_started_at) == (self.run, self.run_started_at)
        return is_same or (self.recordings is not None and audit_record.recordings == self.recordings)


class AuditStatus(NamedTuple):
    """The audit status of a judge.

    Attributes:
        record: The judge's audit record; ``None`` if the judge was not audited.
        void_reason: Why an existing audit record does not apply; empty if there is no audit record.
        age: How long ago the audit was, such as ``3 days ago``.
        scope_text: The other samples that the audit used and how they differ from these; empty if it used these.
        notes: Changes that may have happened since the audit.
        anchors: When the judge's anchors were checked; empty if it has none.
    """

    record: AuditRecord | None = None
    void_reason: str = ""
    age: str = ""
    scope_text: str = ""
    notes: Sequence[str] = ()
    anchors: str = ""

    def __str__(self) -> str:
        if self.record is None:
            parts = [f"not audited{f' ({self.void_reason})' if self.void_reason else ''}"]
        else:
            when = f" {self.age}" if self.age else ""
            parts = [f"audited{when}{self.scope_text}: {self.record.summary}", *self.notes]
        return "; ".join(filter(None, (*parts, self.anchors)))


def write_audit_record(audit_record: AuditRecord, folder: Path) -> Path:
    """Write an audit record, replacing an older one of the same judge on the same recordings.

    Raises:
        StoreError: The audit record cannot be written.
    """
    path = folder / audit_record.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            fields = audit_record.model_dump(mode="json")
            file.write(f"{json.dumps({**fields, 'checksum': _checksum(fields)}, indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"{path}: the audit record cannot be written: {error}") from error
    return path


def audit_status(judged: AuditSubject, folder: Path, at: datetime) -> AuditStatus:
    """Return the audit status of a run's judge at a time: its audit record, or what has changed since its last audit.

    Its anchors, if it has any, suspend audit records that are older than their alarm; see `judgekit.runs.anchors`.
    Of several audit records of the same judge, one for the same recordings is preferred, then one for similar samples, then
    the one with the most labels. An audit record that cannot be read, or that does not match its file name, leaves the judge
    unaudited, and the status says why.
    """
    scorer = judged.scorer
    if scorer.signature is None:
        return AuditStatus(
            void_reason=f"{scorer.name} cannot be distinguished from others of its name: {scorer.identity}"
        )
    try:
        anchors = anchors_status(scorer.name, scorer.signature, folder.with_name("anchors"))
    except StoreError as error:
        return AuditStatus(void_reason=str(error))
    if anchors is None:
        return _status(judged, folder, at, None)
    return _status(judged, folder, at, anchors.alarmed_at)._replace(anchors=anchors.text(at))


def _status(judged: AuditSubject, folder: Path, at: datetime, alarm: datetime | None) -> AuditStatus:
    scorer = judged.scorer
    audit_records, unreadable = read_audit_records(scorer.name, folder)
    if unreadable:
        return AuditStatus(void_reason=unreadable[0])
    if not audit_records:
        return AuditStatus()
    same = [record for record in audit_records if record.fingerprint == scorer.signature]
    if not same:
        last = max(audit_records, key=lambda record: record.audited_at)
        changed = join_limited(identity_differences(last.identity, scorer.identity), _DIFFERENCES_SHOWN)
        return _void(last, changed or "the scorer is not the same")
    unchanged = [record for record in same if not new_models(record.models, judged.models)]
    if not unchanged:
        last = max(same, key=lambda record: record.audited_at)
        return _void(last, new_models(last.models, judged.models))
    unsuspended = [record for record in unchanged if alarm is None or record.audited_at >= alarm]
    if alarm is not None and not unsuspended:
        last = max(unchanged, key=lambda record: record.audited_at)
        return AuditStatus(
            void_reason=f"the audit record of run {last.run} is suspended: its anchors show on {date_text(alarm)} that the judge "
            'has changed; score the recordings again with cache_mode = "refresh", and audit that run'
        )
    candidates = [
        (record, () if judged.is_audited_by(record) else transfer_obstacles(judged.population(), record.population))
        for record in unsuspended
    ]
    best, apart = max(
        candidates,
        key=lambda record: (
            judged.is_audited_by(record[0]),
            not record[1],
            record[0].sample_count,
            record[0].audited_at,
        ),
    )
    doubt = f", which may differ from this one ({join_limited(apart)})" if apart else ""
    where = "" if judged.is_audited_by(best) else f" on run {best.run}{doubt}"
    notes = list(_notes(best, judged))
    if alarm is not None and best.run_started_at < alarm:
        notes.append(f"its anchors show on {date_text(alarm)} that the judge has changed since the audited run")
    return AuditStatus(best, age=age_text(best.audited_at, at), scope_text=where, notes=tuple(notes))


def _void(audit_record: AuditRecord, reason: str) -> AuditStatus:
    return AuditStatus(void_reason=f"the audit record of run {audit_record.run} is void: {reason}")


def new_models(audited: Mapping[str, Collection[str]], current: Mapping[str, Mapping[str | None, int]]) -> str:
    """Return which models answered in a run but not in the audit, which voids the audit record; empty if none."""
    reasons: list[str] = []
    for judge, models in current.items():
        before = audited.get(judge)
        if before is None:
            reasons.append(f"{judge} answered here but not in the audit")
        elif before and (others := reported_names(models).difference(before)):
            reasons.append(f"{judge} answered as {_names(before)} in the audit and as {_names(others)} here")
    return join_limited(reasons, _DIFFERENCES_SHOWN)


def _notes(audit_record: AuditRecord, judged: AuditSubject) -> Iterator[str]:
    if audit_record.label_changes:
        yield audit_record.label_changes
    for judge, fingerprints in judged.system_fingerprints.items():
        before = audit_record.system_fingerprints.get(judge, ())
        others = reported_names(fingerprints).difference(before)
        if before and others:
            yield f"{judge} had the system fingerprint {_names(before)} in the audit and has {_names(others)} here"
    for judge, models in judged.models.items():
        by = f" by {judge}" if len(judged.models) > 1 else ""
        if None in models:
            yield f"model not reported{by}"
        elif not audit_record.models.get(judge):
            yield f"model not reported{by} in the audit"


def _names(models: Iterable[str]) -> str:
    return join_limited((short_repr(model) for model in sorted(models)), _DIFFERENCES_SHOWN, ", ")


def read_audit_records(scorer: str, folder: Path) -> tuple[Sequence[AuditRecord], Sequence[str]]:
    """Return all audit records for a scorer's name, also of other judges and prompts, and errors for unreadable ones."""
    named = re.compile(re.escape(_file_name_letters(scorer)) + r"-[0-9a-f]{16}-[0-9a-f]{8}\.json")
    records: list[AuditRecord] = []
    unreadable: list[str] = []
    for path in sorted(folder.glob("*.json")):
        if named.fullmatch(path.name):
            try:
                records.append(read_audit_record(path))
            except StoreError as error:
                unreadable.append(str(error))
    # Different scorer names may share a file name.
    return [record for record in records if record.scorer == scorer], unreadable


def _checksum(fields: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def read_audit_record(path: Path) -> AuditRecord:
    """Return the audit record in a file.

    Raises:
        StoreError: It cannot be read, was changed, or was written by another version of judgekit.
    """
    try:
        fields: JsonValue = from_json(path.read_bytes())
        stated = fields.pop("checksum", None) if isinstance(fields, dict) else None
        audit_record = AuditRecord.model_validate_json(to_json(fields))
    except ValidationError as error:
        for problem in error.errors():
            if problem["loc"] == ("schema_version",) and str(problem["input"]).isdecimal():
                is_newer = int(str(problem["input"])) > _SCHEMA
                age = "a newer judgekit: update judgekit, or" if is_newer else "an older judgekit;"
                raise StoreError(f"{path}: written by {age} {_ADVICE}") from error
        raise StoreError(f"{path}: not a valid audit record: {validation_message(error)}; {_ADVICE}") from error
    except ValueError as error:
        raise StoreError(f"{path}: not a valid audit record: {error}; {_ADVICE}") from error
    except OSError as error:
        raise StoreError(f"{path}: the audit record cannot be read: {error}") from error
    if path.name != audit_record.file_name:
        whose = f"{audit_record.scorer!r} with the fingerprint {audit_record.fingerprint}"
        raise StoreError(f"{path}: its name does not match its content, {whose}; {_ADVICE}")
    if not isinstance(fields, dict) or stated != _checksum(fields):
        raise StoreError(f"{path}: was changed since the audit, as its checksum shows; {_ADVICE}")
    return audit_record


def _file_name_letters(scorer: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", scorer)[:_NAME_KEPT]

"""Files that an alignment leaves: the prompt, a run of the test samples, and an audit record made from them alone."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from judgekit.alignment.cases import Case
from judgekit.analysis.audit import audit
from judgekit.analysis.labels import HumanLabel
from judgekit.atomic import atomic_write
from judgekit.distribution import own_version
from judgekit.errors import ConfigError
from judgekit.runs.alignments import AlignmentRecord
from judgekit.runs.audit_records import AuditRecord, read_audit_records
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.scorers.prompted import PromptScorer


class TestedCandidate(NamedTuple):
    """The chosen candidate with the samples that tested it."""

    old: PromptScorer
    new: PromptScorer
    cases: Sequence[Case]
    rows: Sequence[Row]
    sources: Sequence[str]

    def keep_audit_record(self, store: RunStore, folder: Path, record: AlignmentRecord) -> AuditRecord | None:
        """Return the audit record that the same alignment left before, or else store a run of the samples and audit it."""
        signature = ScorerRecord.of(self.new).signature
        for audit_record in read_audit_records(self.new.name, folder)[0]:
            if (
                audit_record.fingerprint == signature
                and audit_record.alignment is not None
                and audit_record.alignment.id == record.id
            ):
                return audit_record
        run = self._stored(store, record.id)
        audit(run, self._labels(run.number), sources=self.sources)
        return run.audits[self.new.name].record

    def _stored(self, store: RunStore, alignment: str) -> Run:
        kept = RunStore(store.path)
        record = RunRecord(
            started_at=now(),
            read_to_end=True,
            samples=len(self.cases),
            count_precision="exactly",
            scorers=[ScorerRecord.of(self.old), ScorerRecord.of(self.new)],
            version=own_version(),
            alignment=alignment,
        )
        begun = kept.begin(record)
        recorder = Recorder(kept, begun)
        for number, case in enumerate(self.cases):
            recorder.add_sample(number, case.sample)
        for row in self.rows:
            recorder.add_row(row)
        recorder.flush()
        return Run(kept, kept.change(begun.model_copy(update={"ended_at": now()})))

    def _labels(self, run: int) -> Sequence[HumanLabel]:
        """Return the labels of the samples; those drawn by verdict with the probability that this gave them."""
        return [
            HumanLabel(
                sample=case.sample.id,
                scorer=self.new.name,
                value=opinion.label,
                annotator=opinion.annotator,
                reason=opinion.reason,
                run=run,
                number=number,
                selection=case.selection,
                probability=1 / case.labeled.weight if case.selection == "stratified" else None,
            )
            for number, case in enumerate(self.cases)
            for opinion in case.labeled.opinions
        ]


def prompt_hash(text: str) -> str:
    """Return the SHA-256 of a prompt file."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_prompt(text: str, path: Path) -> None:
    """Write a prompt file; one that was edited since is kept.

    Raises:
        ConfigError: The file has other content, or cannot be written.
    """
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        if path.exists():
            raise ConfigError(f"{path} has changed since it was written: move it away, and align again")
        with atomic_write(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}") from error

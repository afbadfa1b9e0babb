"""Audits: comparisons of a run's judges with human labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import fsum

from judgekit.analysis.bias import length_bias, position_bias
from judgekit.analysis.correction import JudgeErrors, rogan_gladen
from judgekit.analysis.findings import Audit, ScorerAudit, ValueKind
from judgekit.analysis.human_agreement import human_agreement
from judgekit.analysis.label_correction import label_correction
from judgekit.analysis.label_evidence import equal_labels, label_changes, record_obstacles
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.matching import MatchedLabels, labels_by_run, match_labels
from judgekit.analysis.measures import VerdictPairs, value_kind
from judgekit.analysis.noise import repeatability
from judgekit.analysis.selection_bias import selection_bias
from judgekit.analysis.spent_labels import alignments_of, question_names, spent_samples
from judgekit.analysis.steps import step_agreement
from judgekit.analysis.stored_labels import CombinedLabels, combine_labels
from judgekit.analysis.turns import turn_agreement
from judgekit.distribution import own_version
from judgekit.errors import ConfigError, StoreError, count_text, join_limited, short_repr
from judgekit.runs.anchors import anchors_status
from judgekit.runs.answers import reported_names
from judgekit.runs.audit_records import (
    AuditRecord,
    Correction,
    LabelSelection,
    new_models,
    read_audit_records,
    write_audit_record,
)
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import describe_population
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.usage import ConversationUsage

_RECORDED_SHOWN = 3
_PICKED = "the labeled samples were picked by hand (selection is convenience)"
_NOT_RANDOM: Mapping[LabelSelection, str] = {
    "convenience": "which were picked by hand",
    "unknown": "which may not be a random sample",
}


def audit(
    run: Run,
    labels: Iterable[HumanLabel] = (),
    *,
    sources: Sequence[str] = (),
    guarantee: float | None = None,
    delta: float = 0.05,
    keep: bool = True,
) -> Audit:
    """Compare the judges of a run with human labels, and store an audit record of the findings next to the run.

    The mean is corrected by PPI++ if the labeled samples are a random sample of the run, or nothing suggests that they
    are not; in the latter case it is corrected within each verdict, as far as each has labels, so that a selection by
    verdict does no harm even if it does not show. If the labels belong to another run of the same judge, the mean is
    corrected by the Rogan-Gladen estimator, provided that the samples are similar. Otherwise the correction is refused,
    with a reason.

    A sample that several people labeled counts once, split among their labels. Samples to which the question does not
    apply according to people are left out of the corrected mean, and count as disagreements with a judge that scored
    them. Trials of one task, which share a group, are drawn and tested together.

    Args:
        run: The run. A run in memory gets no audit record.
        labels: Human labels, which are added to the file of the run, if it is in one, and count together with those that are
            there: see `judgekit.add_labels`. Without any labels, only the judge's noise is measured.
        sources: The origins of the labels, such as files, which the audit and its audit records name.
        guarantee: The acceptable share of verdicts with which people disagree, in (0, 1); searches for the confidence
            below which the judge must abstain to achieve it.
        delta: The probability that the guarantee fails, in (0, 1), however often it is checked while labels are added.
        keep: Whether to store the audit record.

    Raises:
        ConfigError: The run asked no judge, labels name a scorer that it does not have, or a number is out of range.
        TraceError: A scorer does not know a label.
        StoreError: The run cannot be read, or an audit record cannot be written.
    """
    for name, number in (("guarantee", guarantee), ("delta", delta)):
        if number is not None and not 0 < number < 1:
            raise ConfigError(f"{name} must be between 0 and 1, found {number}")
    judged = {scorer.name: scorer for scorer in run.scorers if scorer.judged}
    if not judged:
        recorded = join_limited(dict.fromkeys(name for row in run for name in row.labels), separator=", ")
        hint = f"; judgekit score {run.number} --scorer imported:LABEL adds an imported judge's scores (labels: {recorded})"
        raise ConfigError(f"run {run.number} asked no judge, so there is nothing to audit{hint if recorded else ''}")
    combined, obstacle = _combined(run, list(labels))
    questions = {name: question_names(run, record) for name, record in judged.items()}
    given: dict[str, list[HumanLabel]] = {name: [] for name in judged}
    unmatched = Counter(combined.left_out)
    for label in combined.labels:
        judges = [name for name, aliases in questions.items() if label.scorer in aliases]
        if label.is_picked_to_read:
            unmatched["picked for judgekit align to read, not at random"] += 1
            continue
        for name in judges:
            given[name].append(label)
        if not judges:
            unmatched[f"{label.scorer} asks no judge"] += 1
    sources = list(dict.fromkeys((*sources, *(label.file for label in combined.labels if label.file is not None))))
    usages = dict(run.store.usage_by_sample(run.number))
    audits: list[ScorerAudit] = []
    counted = set[int]()
    for name, record in judged.items():
        history = [label for label in combined.history if label.scorer in questions[name]]
        auditing = _Auditing(run, record, usages, given[name], history, sources, obstacle)
        audits.append(auditing.audit(guarantee, delta, keep=keep))
        those = set(map(id, given[name]))  # scorers of one question have the same labels, of which each counts once
        left_out = auditing.matched.unmatched
        unmatched = unmatched | left_out if those <= counted else unmatched + left_out
        counted |= those
    return Audit(run=run.number, sources=sources, scorers=audits, unmatched=dict(unmatched))


def _combined(run: Run, labels: Sequence[HumanLabel]) -> tuple[CombinedLabels, str]:
    """Return labels with those stored next to the run, where they are stored too, or why they cannot be."""
    try:
        return combine_labels(run, labels, keep=bool(labels) and run.store.path is not None), ""
    except StoreError as error:
        return combine_labels(run, labels), f"the labels cannot be stored: {error}"


class _Auditing:
    """The audit of one scorer."""

    def __init__(
        self,
        run: Run,
        record: ScorerRecord,
        usages: Mapping[int, ConversationUsage],
        labels: Sequence[HumanLabel],
        history: Sequence[HumanLabel],
        sources: Sequence[str],
        obstacle: str,
    ) -> None:
        self.run, self.record, self.sources = run, record, sources
        self.unknown_sources = sum(label.source == "unknown" for label in labels)
        self.record_obstacles = [*record_obstacles(run, record, labels, obstacle)]
        self.all_rows = list(run.rows(scorer=record.name))
        self.rows = [row for row in self.all_rows if row.score.value is not None]
        self.population = run.population(record.name)
        self.matched, self.left_out = self._matched(labels)
        self.is_same_run = self.matched.run is run
        self.first_audited_at, self.label_changes = label_changes(run, record, self.matched, history)
        self.usages = usages if self.is_same_run else dict(run.store.usage_by_sample(self.matched.run.number))
        self.kind: ValueKind
        self.kind, self.values = value_kind(record, [*self.rows, *self.matched.rows], self.matched.samples)
        self.pairs = VerdictPairs.of(self.matched, self.kind, self.values)
        self.has_skipped = any(row.score.value is None for row in self.matched.rows)
        # Samples that were drawn by verdict stand for all samples of the run.
        stood_for = self.matched.rows if self.pairs.by_verdict else [sample.row for sample in self.matched.samples]
        self.labeled = describe_population([row for row in stood_for if row.score.value is not None], self.usages)

    def _matched(self, labels: Sequence[HumanLabel]) -> tuple[MatchedLabels, Counter[str]]:
        """Return this run's labels or, if there are none, those of the run that has the most; others are left out."""
        where, left_out = labels_by_run(self.run, self.record, labels)
        name = self.record.name
        rows = {home: self.all_rows if home is self.run else list(home.rows(scorer=name)) for home in where}
        matches = [
            match_labels(home, self.record, rows[home], those, spent_samples(home, [self.record], rows[home], those))
            for home, those in where.items()
        ]
        best = matches[0] if matches[0].samples else max(matches, key=lambda match: len(match.samples))
        for other in matches:
            if other is not best:
                why = f"they belong to run {other.run.number}; those of run {best.run.number} are used"
                left_out[why] += sum(len(sample.opinions) for sample in other.samples)
                best.unmatched.update(other.unmatched)
        return best, left_out + best.unused_labels  # adding counters drops zeros

    def audit(self, guarantee: float | None, delta: float, *, keep: bool) -> ScorerAudit:
        """Return the findings, and store an audit record of them if it is to be kept."""
        matched, pairs = self.matched, self.pairs
        chosen = selection_bias(self.matched, self.kind, self.usages)
        correction = self._correction(chosen)
        if self.unknown_sources and correction.corrected is not None:
            assumptions = filter(
                None, ("no label is the verdict of a judge (their source is unknown)", correction.assumptions)
            )
            correction = correction.model_copy(update={"assumptions": ", and ".join(assumptions)})
        better = self._preferred_record(correction)
        annotators = {opinion.annotator for sample in matched.samples for opinion in sample.opinions}
        length = length_bias(pairs, self._lengths())
        marked = {sample.row.index for sample in matched.samples if any(each.message for each in sample.opinions)}
        conversations = dict(matched.run.conversations(marked.__contains__)) if marked else {}
        steps, step_notes = step_agreement(self.record, matched.samples, conversations)
        findings = ScorerAudit(
            scorer=self.record.name,
            fingerprint=self.record.signature,
            kind=self.kind,
            sample_count=len(pairs.samples),
            labels=sum(len(sample.opinions) for sample in matched.samples),
            annotators=len(annotators),
            selection=matched.selection if self.is_same_run else "elsewhere",
            unused_labels=dict(self.left_out),
            agreement=pairs.agreement(),
            confusion=pairs.confusion(self.record) if pairs.samples else {},
            counts=pairs.counts(),
            judge_mean=Estimate.mean([row.score.value or 0.0 for row in self.rows], [row.unit for row in self.rows]),
            correction=correction,
            human_agreement=human_agreement(matched.samples, self.kind, by_verdict=pairs.by_verdict),
            disagreements=pairs.disagreements() if self.is_same_run else (),
            opinions={sample.row.index: sample.opinions for sample in matched.samples} if self.is_same_run else {},
            steps=dict(steps),
            turns=turn_agreement(matched.turns),
            bias={**({"length": length} if length else {}), **position_bias(self.rows)},
            calibration=pairs.calibration(),
            noise=repeatability(self.all_rows),
            guarantee=None
            if guarantee is None
            else pairs.guarantee(self.rows, guarantee, delta, self._guarantee_obstacle(chosen)),
            notes=[*self._notes(correction, chosen, better), *step_notes],
        )
        if better is None and keep:
            self._store_record(findings, chosen)
        return findings

    def _preferred_record(self, correction: Correction) -> AuditRecord | None:
        """Return this judge's audit record for these recordings if it alone has a corrected mean, or has more labels."""
        folder = self.run.audits_folder
        if folder is None or not self.matched.samples or not self.is_same_run or self.record_obstacles:
            return None
        judged = self.run.audit_subject(self.record)
        audit_records, _ = read_audit_records(self.record.name, folder)
        anchors = anchors_status(self.record.name, self.record.signature, folder.with_name("anchors"))
        alarm = None if anchors is None else anchors.alarmed_at
        for kept in audit_records:
            is_same = kept.fingerprint == self.record.signature and judged.is_audited_by(kept)
            is_suspended = alarm is not None and kept.audited_at < alarm
            if is_same and not is_suspended and not new_models(kept.models, judged.models):
                is_less = correction.corrected is None and kept.correction.corrected is not None
                return kept if is_less or len(self.pairs.samples) < kept.sample_count else None
        return None

    def _other_versions(self) -> Sequence[AuditRecord]:
        """Return the audit records of other versions of this scorer that were audited on the same recordings."""
        folder, recordings = self.run.audits_folder, self.run.recordings
        if folder is None or recordings is None or not self.is_same_run or not self.matched.samples:
            return []
        audit_records, _ = read_audit_records(self.record.name, folder)
        return [
            audit_record
            for audit_record in audit_records
            if audit_record.recordings == recordings and audit_record.fingerprint != self.record.signature
        ]

    def _lengths(self) -> Mapping[int, float]:
        """Return the length of what the judge read in characters, for a pair the difference, or else in messages."""
        wanted = {sample.row.index for sample in self.matched.samples}
        read = self.matched.run.conversations(wanted.__contains__)
        lengths = {
            number: len(sample.trace.render()) - (len(sample.baseline.render()) if sample.baseline else 0)
            for number, sample in read
        }
        return (
            lengths if wanted <= lengths.keys() else {number: usage.messages for number, usage in self.usages.items()}
        )

    def _correction(self, chosen: str) -> Correction:
        matched = self.matched
        if not matched.samples:
            there = self.left_out or matched.unmatched
            return Correction(unavailable_reason="no label can be used" if there else self._no_labels())
        if matched.selection == "convenience":
            return Correction(
                unavailable_reason=f"{_PICKED}, so they may not represent the run; judgekit label "
                f"{matched.run.number} draws a random sample"
            )
        if matched.selection == "stratified" and not matched.unlabeled_rows:
            return Correction(
                unavailable_reason="the labeled samples were drawn by the verdicts of another question, and are all that this "
                "run has"
            )
        if chosen:
            return Correction(unavailable_reason=chosen)
        return (
            label_correction(matched, self.rows)
            if self.is_same_run
            else rogan_gladen(self.rows, self.population, self._errors(chosen))
        )

    def _no_labels(self) -> str:
        advice = f"there are no labels: judgekit label {self.run.number} draws samples to label, and --labels FILE reads the labels"
        recorded = Counter(
            name for row in self.all_rows for name in row.labels if row.label_sources.get(name) != "judge"
        )
        names = ", ".join(short_repr(name) for name, _ in recorded.most_common(_RECORDED_SHOWN))
        return f"{advice}; --label NAME={self.record.name} uses recorded ones: {names}" if names else advice

    def _errors(self, chosen: str) -> JudgeErrors:
        where = f"the labeled samples of run {self.matched.run.number}"
        counts, refused = self.pairs.independent_counts(), chosen
        if self.matched.selection == "convenience":
            refused = f"{where} were picked by hand"
        elif counts is None:
            refused = refused or f"the verdicts on {where} are not all 0 or 1"
            if self.pairs.is_disputed:
                refused = f"people and the judge disagree on whether the question applies to some of {where}: label a sample of this run"
        return JudgeErrors(where, len(self.pairs.samples), None if refused else counts, refused, self.labeled)

    def _guarantee_obstacle(self, selection_bias: str) -> str:
        if not self.matched.samples:
            return "there are no labels"
        if not self.is_same_run:
            number = self.matched.run.number
            return f"the labels belong to run {number}: judgekit audit {number} looks for a threshold there"
        return _PICKED if self.matched.selection == "convenience" else selection_bias

    def _notes(self, correction: Correction, chosen: str, better: AuditRecord | None) -> Iterator[str]:
        matched = self.matched
        yield from matched.notes
        yield from self._coverage_notes(correction)
        if self.kind != "continuous" and any(len(sample.opinions) > 1 for sample in matched.samples):
            yield "a sample that several people labeled counts once, split among their labels"
        if self.label_changes:
            yield self.label_changes
        yield from equal_labels(matched)
        human_values = {value for sample in matched.samples for value in sample.values}
        if self.kind == "binary" and len(human_values) == 1:
            of = (
                " to which the question applies"
                if any(sample.applicable_share < 1 for sample in matched.samples)
                else ""
            )
            yield f"people give all labeled samples{of} a {human_values.pop():g}, so it is unknown how the judge does on others"
        if matched.selection == "stratified":
            yield "agreement is estimated for all samples of the run: each labeled one stands for others with its verdict"
        if (chosen or matched.selection in _NOT_RANDOM) and matched.samples:
            why = "which differ from the others" if chosen else _NOT_RANDOM[matched.selection]
            yield f"these figures hold only for the labeled samples, {why}"
        if not self.is_same_run:
            number = matched.run.number
            yield (
                f"agreement is on samples of run {number}; judgekit audit {number} shows where judge and people "
                "disagree, and keeps an audit record"
            )
        silent = [judge for judge, models in self.run.audit_subject(self.record).models.items() if None in models]
        if silent:
            yield (
                f"the provider reports no model for answers of {join_limited(silent)}, so another model behind the same name "
                "would go unnoticed"
            )
        yield from self._record_notes(better)

    def _record_notes(self, better: AuditRecord | None) -> Iterator[str]:
        """Yield notes on the audit record of this audit, and on other audit records for the same recordings."""
        if better is not None:
            n = len(self.pairs.samples)
            why = (
                "gives no corrected mean" if n >= better.sample_count else f"has only {count_text(n, 'labeled sample')}"
            )
            yield (
                f"the audit record of run {better.run}, n={better.sample_count:,}, is kept, because this audit {why}; to replace it, delete "
                f"{better.file_name}"
            )
        if tried := self._other_versions():
            runs = join_limited(f"run {number}" for number in sorted({other.run for other in tried}))
            yield (
                f"{count_text(len(tried), 'other version')} of this scorer {'was' if len(tried) == 1 else 'were'} audited on "
                f"these recordings too ({runs}). The best of several versions looks better than it is: audit the one that "
                "you keep on new samples"
            )
        yield from self.record_obstacles
        if self.record.signature is None:
            yield f"there is no audit record, because the judge could not be recognized later: {self.record.identity}"

    def _coverage_notes(self, correction: Correction) -> Iterator[str]:
        """Yield notes on which samples the means cover, if these are not plainly all samples of the run."""
        matched, record = self.matched, self.run.record
        every, has_skipped = f"{len(self.all_rows):,}", self.is_same_run and self.has_skipped
        if len(self.rows) < len(self.all_rows) or record.unfinished:
            means = "raw mean covers" if has_skipped else "means cover"
            stopped = f" The run is {record.unfinished}." if record.unfinished else ""
            yield f"the {means} the samples that the judge scored: {len(self.rows):,} of {every}.{stopped}"
        scored = [sample for sample in matched.samples if sample.judge_value is not None]
        if none := fsum(1 - sample.applicable_share for sample in scored):
            yield (
                f"according to people, the question does not apply to {round(none, 2):g} of the {len(scored):,} labeled "
                "samples that the judge scored"
            )
        if correction.corrected is not None and self.is_same_run and (none or has_skipped):
            which = (
                f", among the {len(matched.rows):,} of {every} that the judge scored or skipped" if has_skipped else ""
            )
            yield f"the corrected mean covers the samples to which the question applies according to people{which}"

    def _store_record(self, findings: ScorerAudit, chosen: str) -> None:
        folder = self.run.audits_folder
        if (
            not findings.sample_count
            or folder is None
            or findings.fingerprint is None
            or not self.is_same_run
            or self.record_obstacles
        ):
            return
        judged, errors, at = self.run.audit_subject(self.record), self._errors(chosen), datetime.now(UTC)
        calls = [call for row in self.all_rows for call in row.score.calls if call.error is None]
        audit_record = AuditRecord(
            scorer=findings.scorer,
            fingerprint=findings.fingerprint,
            identity=self.record.identity,
            judges=sorted({call.judge for call in calls}),
            models=_reported_names(judged.models),
            system_fingerprints=_reported_names(judged.system_fingerprints),
            prompts=sorted({call.prompt for call in calls}),
            run=self.run.number,
            run_started_at=self.run.started_at,
            recordings=self.run.recordings,
            sample_count=findings.sample_count,
            annotators=findings.annotators,
            sources=self.sources,
            selection=findings.selection,
            agreement=findings.agreement,
            counts=errors.counts,
            transfer_obstacle=errors.transfer_obstacle,
            judge_mean=findings.judge_mean,
            correction=findings.correction,
            labeled=self.labeled,
            population=self.population,
            alignment=next(iter(alignments_of(self.run, [self.record])), None),
            label_changes=self.label_changes,
            first_audited_at=self.first_audited_at or at,
            audited_at=at,
            version=own_version(),
        )
        write_audit_record(audit_record, folder)


def _reported_names(answered: Mapping[str, Mapping[str | None, int]]) -> Mapping[str, Sequence[str]]:
    """Return the names reported for each judge; empty for judges whose provider reported none."""
    return {judge: sorted(reported_names(models)) for judge, models in answered.items()}

"""Doubts about labels as evidence: who gave them, how they changed, and whether they equal the judge's verdicts."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from judgekit.analysis.labels import HumanLabel, label_value
from judgekit.analysis.matching import MatchedLabels, distance
from judgekit.analysis.stored_labels import is_judge_name
from judgekit.errors import count_text, join_limited, short_repr
from judgekit.runs.anchors import date_text
from judgekit.runs.audit_records import read_audit_records
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.score import ScaleValue

_MANY = 20  # labels that an imperfect judge seldom agrees with throughout


def record_obstacles(run: Run, record: ScorerRecord, labels: Sequence[HumanLabel], obstacle: str) -> Iterator[str]:
    """Yield why labels leave no audit record, apart from an obstacle to storing them."""
    if obstacle:
        yield f"{obstacle}. So this audit leaves no audit record"
    annotators = {label.annotator for label in labels if label.annotator is not None}
    if judges := sorted(name for name in annotators if is_judge_name(name, run, record)):
        yield (
            f"by name, a model or a judge has labeled: {join_limited(map(short_repr, judges), separator=', ')}. So this audit "
            "leaves no audit record, since models may err alike; if this is a person, name them otherwise (annotator)"
        )
    if unknown := sum(label.source == "unknown" for label in labels):
        yield (
            f"the source of {count_text(unknown, 'label')} is unknown: a person, a benchmark, or a judge, perhaps "
            "this one. So this audit leaves no audit record; labels in a file (--labels) count as given by people"
        )


def equal_labels(matched: MatchedLabels) -> Iterator[str]:
    """Yield a note if many labels all equal the judge's verdicts."""
    pairs = [(sample.judge_value, opinion.value) for sample in matched.samples for opinion in sample.opinions]
    if len(pairs) >= _MANY and all(judged == human for judged, human in pairs):
        yield (
            f"all {len(pairs):,} labels equal the judge's verdicts: it may be as good as people, or they have seen its "
            "verdicts, or the labels are its verdicts"
        )


def label_changes(
    run: Run, record: ScorerRecord, matched: MatchedLabels, history: Iterable[HumanLabel]
) -> tuple[datetime | None, str]:
    """Return when a scorer was first audited on the recordings of a run, and how many labels have changed since, in words."""
    judged, folder = run.audit_subject(record), run.audits_folder
    audit_records = () if folder is None else read_audit_records(record.name, folder)[0]
    times = [kept.first_audited_at or kept.audited_at for kept in audit_records if judged.is_audited_by(kept)]
    if not times or matched.run is not run:
        return None, ""
    first = min(times)
    before: dict[tuple[int | None, str | None], ScaleValue] = {}
    for label in history:
        value = label_value(label, record)
        key = label.number, label.annotator
        # Whoever changes a label after the first audit may know the verdict.
        if value is not None and label.given_at is not None and (label.given_at <= first or key not in before):
            before[key] = value
    towards: list[bool] = []
    for sample in matched.samples:
        for opinion in sample.opinions:
            old = before.get((sample.row.index, opinion.annotator), opinion.value)
            value = None if isinstance(old, str) else old
            if value != opinion.value:
                towards.append(distance(sample.judge_value, opinion.value) < distance(sample.judge_value, value))
    if not towards:
        return first, ""
    labels = sum(len(sample.opinions) for sample in matched.samples)
    of_them = "all" if all(towards) else f"{sum(towards):,}" if any(towards) else "none"
    return first, (
        f"{len(towards):,} of {count_text(labels, 'label')} changed since the audit of {date_text(first)}, {of_them} towards "
        "the judge"
    )

"""The share of an issue, by the judge alone and corrected by human labels on the analysis."""

from collections.abc import Collection, Sequence

from judgekit.analysis.label_correction import label_correction
from judgekit.analysis.matching import LabeledSample, MatchedLabels
from judgekit.errors import join_limited
from judgekit.failures.report import Failure
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import Row


def issue_shares(
    rows: Sequence[Row], failures: Sequence[Failure], matched: MatchedLabels | None, labels: Collection[str]
) -> tuple[Estimate, Correction]:
    """Return the share of an issue by the judge alone, and corrected by human labels on the analysis.

    People agree with the judge that a sample belongs to the issue if they call it failed, and give none of the other ``labels``.
    """
    numbers = {failure.row.index for failure in failures}
    label = failures[0].cell.label
    share = Estimate.mean([float(row.index in numbers) for row in rows], [row.unit for row in rows])
    if matched is None:
        return share, Correction(unavailable_reason="no human labels on the analysis")

    def of_issue(row: Row) -> Row:
        belongs = None if row.score.value is None else float(row.index in numbers)
        return row.model_copy(update={"score": row.score.model_copy(update={"value": belongs})})

    def is_of_issue(sample: LabeledSample, label_given: str, value: float) -> bool:
        is_same = label_given not in labels or label_given == label
        return sample.row.index in numbers and value < 0.5 and is_same

    def confirmed(sample: LabeledSample) -> LabeledSample:
        opinions = [
            opinion
            if opinion.value is None
            else opinion.model_copy(update={"value": float(is_of_issue(sample, opinion.label, opinion.value))})
            for opinion in sample.opinions
        ]
        return sample._replace(row=of_issue(sample.row), opinions=opinions)

    analyzed = [of_issue(row) for row in matched.rows]
    samples = [confirmed(sample) for sample in matched.samples]
    correction = label_correction(
        MatchedLabels(matched.run, analyzed, samples, matched.selection, matched.missing_reasons), analyzed
    )
    part = len(analyzed) / len(rows) if rows else 1.0
    figure = correction.corrected
    if figure is None or figure.value is None or part == 1:
        return share, correction
    scaled = {
        name: None if number is None else number * part
        for name, number in (("value", figure.value), ("low", figure.low), ("high", figure.high))
    }
    assumed = f"given that {len(analyzed):,} of {len(rows):,} samples were analyzed"
    update = {
        "corrected": figure.model_copy(update=scaled),
        "assumptions": join_limited(filter(None, (correction.assumptions, assumed))),
    }
    return share, correction.model_copy(update=update)

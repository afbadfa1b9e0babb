"""The mean of a judge, corrected by human labels of the same run."""

from collections.abc import Sequence
from statistics import fmean

from judgekit.analysis.correction import too_few_labels
from judgekit.analysis.matching import CANNOT_TELL, LEFT_BLANK, MatchedLabels
from judgekit.analysis.sampling import strata
from judgekit.errors import short_repr
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import Row
from judgekit.stats.prediction_powered import MIN_LABELS, Stratum, stratified_ppi_mean


def label_correction(matched: MatchedLabels, rows: Sequence[Row]) -> Correction:
    """Return the mean corrected by labels of the same run, whose rows with a value are ``rows``."""
    samples, drawn = matched.samples, matched.selection
    if not any(sample.values for sample in samples):
        return Correction(unavailable_reason="according to people, the question applies to none of the labeled samples")
    if drawn == "all" and all(sample.applicable_share in (0, 1) for sample in samples):
        applying = [(sample.mean, sample.row.unit) for sample in samples if sample.mean is not None]
        mean = Estimate.mean([value for value, _ in applying], [group for _, group in applying])
        return Correction(method="labels alone", corrected=mean)
    if (n := sum(bool(sample.values) for sample in samples)) < MIN_LABELS:
        which = "to which the question applies" if n < len(samples) else ""
        return Correction(unavailable_reason=too_few_labels(n, MIN_LABELS, which))
    labeled = {sample.row.index: sample for sample in samples}
    every = matched.rows
    ways: list[Sequence[Sequence[Row]]] = []
    if drawn not in ("random", "all"):
        ways.append(strata(every, by_confidence=drawn == "stratified"))
    if drawn != "stratified":
        ways.append([every])
    # A sample to which the question does not apply, according to the judge, leaves the judge's mean unchanged.
    neutral = fmean(row.score.value for row in rows if row.score.value is not None) if rows else 0.0

    def judged(row: Row) -> float:
        return neutral if row.score.value is None else row.score.value

    def stratum(part: Sequence[Row]) -> Stratum:
        those = [labeled[row.index] for row in part if row.index in labeled]
        others = [row for row in part if row.index not in labeled]
        return Stratum(
            [sample.mean or 0.0 for sample in those],
            [judged(sample.row) for sample in those],
            [judged(row) for row in others],
            len(part) / len(every),
            [sample.row.unit for sample in those],
            [row.unit for row in others],
            [sample.applicable_share for sample in those],
        )

    for parts in ways:
        estimate = stratified_ppi_mean([stratum(part) for part in parts])
        if estimate is None:
            continue
        lost = {LEFT_BLANK: "were left blank", CANNOT_TELL: "people cannot tell about"}
        gone = " or ".join(what for name, what in lost.items() if name in matched.missing_reasons)
        assumes = f"samples that {gone} are like the others" if gone else ""
        return Correction(
            method="stratified PPI++" if len(parts) > 1 else "PPI++" if estimate.weight else "labels alone",
            corrected=Estimate.of(estimate.value, estimate.interval),
            assumptions=_assumed(by_verdict=len(parts) > 1) if drawn == "unknown" else assumes,
            effective_labels=estimate.effective_labels if estimate.weight or len(parts) > 1 else None,
        )
    for part in ways[-1]:
        if (those := sum(row.index in labeled for row in part)) < 2:
            score = part[0].score
            verdict = short_repr(score.label or (score.status if score.value is None else score.value))
            return Correction(
                unavailable_reason=f"people labeled {those} of the samples with the verdict {verdict}; each verdict needs at least 2"
            )
    return Correction(unavailable_reason="the labeled samples come from too few groups, which count once each")


def _assumed(*, by_verdict: bool) -> str:
    """Return what is assumed of labeled samples whose selection is unknown."""
    what, seen = ("samples of each verdict", "") if by_verdict else ("samples", "verdicts, ")
    return (
        f"the labeled {what} are a random sample of those of the run; the drawing is not recorded, and their {seen}lengths and "
        "domains fit it"
    )

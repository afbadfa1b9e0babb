"""The correction of a judge's mean by how often the judge errs on samples that people labeled."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isclose
from typing import Self

import numpy as np

from judgekit.errors import count_text, join_limited
from judgekit.runs.audit_records import AuditRecord, ConfusionCounts, Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import Population, transfer_obstacles
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.stats.misclassification import rogan_gladen as estimated
from judgekit.stats.prediction_powered import MIN_LABELS
from judgekit.stats.units import Units
from judgekit.stats.wilson import wilson

_YES_OR_NO = (0, 1)
_ROUNDING = 1e-12


def corrected_mean(run: Run, scorer: str) -> Correction:
    """Return the mean of a scorer corrected by the audit record of its judge; see `Run.audits`.

    For the audited run, or one with the same recordings and scores, this is what the audit found; for another run of
    the same judge, it is the result of `rogan_gladen`.
    """
    status = run.audits.get(scorer)
    if status is None:
        return Correction(unavailable_reason="it asks no judge")
    audit_record = status.record
    if audit_record is None:
        return Correction(
            unavailable_reason=f"{status}; judgekit audit {run.number} compares its judge with human labels"
        )
    overall = run.summary[scorer].overall
    if overall is not None and overall.name != "mean":
        return Correction(unavailable_reason=f"only a mean can be corrected, and {scorer} reports {overall.name}")
    if status.scope_text:
        rows = list(run.rows(scorer=scorer, statuses=["scored"]))
        return rogan_gladen(rows, run.population(scorer), JudgeErrors.of(audit_record))
    values, audited = run.summary[scorer].values, audit_record.population
    if len(values) != audited.samples or not isclose(fsum(values), len(values) * (audited.mean or 0), abs_tol=1e-6):
        return Correction(
            unavailable_reason=f"run {run.number} has other scores than run {audit_record.run} had when it was audited; audit it again: "
            f"judgekit audit {run.number}"
        )
    return audit_record.correction


@dataclass(frozen=True)
class JudgeErrors:
    """The errors of a judge on labeled samples other than those to be corrected.

    Attributes:
        samples_text: The labeled samples, in words.
        sample_count: The number of labeled samples.
        counts: Their counts, scaled to independent random samples that would tell as much; ``None`` if they may not be
            carried over, for the reason in ``transfer_obstacle``.
        population: A description of the labeled samples.
    """

    samples_text: str
    sample_count: int
    counts: ConfusionCounts | None
    transfer_obstacle: str
    population: Population

    @classmethod
    def of(cls, audit_record: AuditRecord) -> Self:
        """Return the errors that an audit record holds."""
        where = f"the labeled samples of run {audit_record.run}"
        return cls(
            where, audit_record.sample_count, audit_record.counts, audit_record.transfer_obstacle, audit_record.labeled
        )


def rogan_gladen(rows: Sequence[Row], population: Population, errors: JudgeErrors) -> Correction:
    """Return the mean of verdicts of 0 or 1, corrected by the judge's errors on other samples, if these are similar.

    The correction is refused if labels are too few or all alike, if the judge is hardly better than chance, if another
    agent made the recordings, or if the samples visibly come from another population: see `transfer_obstacles`. That the judge errs
    equally often on both remains an assumption. In the interval, verdicts of one group count for as many as their
    spread says that they are worth.
    """
    counts, where = errors.counts, errors.samples_text
    values = [row.score.value for row in rows if row.score.value is not None]
    if counts is None:
        return Correction(unavailable_reason=errors.transfer_obstacle)
    if not values:
        return Correction(unavailable_reason="nothing was scored")
    if not {*values} <= {*_YES_OR_NO}:
        return Correction(
            unavailable_reason="its values are not all 0 or 1, which a correction with labels of another run requires"
        )
    if errors.sample_count < MIN_LABELS:
        return Correction(unavailable_reason=too_few_labels(errors.sample_count, MIN_LABELS))
    for right, wrong, rate in ((counts.tp, counts.fn, "sensitivity"), (counts.tn, counts.fp, "specificity")):
        if not right + wrong:
            kind = "failures" if rate == "sensitivity" else "successes"
            return Correction(
                unavailable_reason=f"people call all of {where} {kind}, so the judge's {rate} is unknown; label more"
            )
    if apart := transfer_obstacles(population, errors.population):
        return Correction(
            unavailable_reason=f"the judge may have other error rates here than on {where}: {join_limited(apart)}; label a sample of this run"
        )
    share = fsum(values) / len(values)
    independent = round(len(values) * independent_share(values, [row.unit for row in rows]))
    positives = round(share * independent)
    estimate = estimated(positives, independent, counts.tp, counts.fp, counts.fn, counts.tn)
    if estimate is None or estimate.youden_interval.low <= 0:
        youden = Estimate.of(estimate.youden, estimate.youden_interval) if estimate else "undefined"
        return Correction(
            unavailable_reason=f"the judge is hardly better than chance on {where}: sensitivity + specificity - 1 is {youden}, where 0 is chance"
        )
    sensitivity, specificity = counts.tp / (counts.tp + counts.fn), counts.tn / (counts.tn + counts.fp)
    if estimate.interval is None:
        passed = Estimate.of(share, wilson(positives, independent))
        return Correction(
            unavailable_reason=f"the judge passes {passed} of this run, which is impossible if it errs as on {where}: there it passes "
            f"{Estimate(value=sensitivity)} of what people pass and {Estimate(value=1 - specificity)} of what they fail"
        )
    value, (low, high, method) = min(1.0, max(0.0, (share + specificity - 1) / estimate.youden)), estimate.interval
    return Correction(
        method="Rogan-Gladen",
        corrected=Estimate(value=value, low=min(low, value), high=max(high, value), method=method),
        assumptions=f"the judge errs here as often as on {where}; the agents are the same, and nothing else that shows without "
        "labels contradicts it",
    )


def too_few_labels(n: int, minimum: int, samples_text: str = "") -> str:
    """Return a sentence that too few labeled samples support no mean; ``samples_text`` says which samples count."""
    return f"only {count_text(n, 'labeled sample')}{samples_text and f' {samples_text}'}; at least {minimum} are needed"


def independent_share(
    values: Sequence[float], groups: Sequence[str | None], parts: Sequence[float] | None = None
) -> float:
    """Return the share of independent values that would tell as much as values of 0 or 1: 1 over the design effect.

    The result is in (0, 1]. Source: Kish 1965, "Survey Sampling". If nothing varies, each group counts as one value.
    ``parts`` gives the weight of each value, in (0, 1].
    """
    units = Units.of(values, groups)
    if units.codes is None:
        return 1.0
    each = np.ones(len(values)) if parts is None else np.asarray(parts)
    share = float(each @ units.values / each.sum())
    off = units.sums(each * (units.values - share))
    variance = float(np.square(off).sum()) * len(units) / max(1, len(units) - 1) / each.sum() ** 2
    if variance <= _ROUNDING:
        return len(units) / len(values)
    return min(1.0, share * (1 - share) / float(each.sum()) / float(variance))

"""Plans of how many samples of a run people should label."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from judgekit.analysis.correction import corrected_mean, independent_share
from judgekit.analysis.gates import CORRECTED_FIELDS, OPERATORS, Gate
from judgekit.analysis.stored_labels import stored_labels
from judgekit.errors import ConfigError, check_choice, count_text
from judgekit.runs.results import Run
from judgekit.stats.label_planning import labels_needed, labels_to_meet
from judgekit.stats.prediction_powered import MIN_LABELS, PPIMean
from judgekit.stats.quantiles import normal_quantile

_BLANK = 0.1
_POWER = 0.8
_MOST = 1_000_000  # samples that a plan may ask for
_AGREEMENT = ("kappa", "weighted kappa", "alpha")


@dataclass(frozen=True)
class LabelPlan:
    """The number of labels, drawn at random, that a corrected mean of one scorer needs.

    Attributes:
        run: The number of the run.
        scorer: The scorer whose question people answer.
        aim: What the labels are for.
        samples: The number of samples that the judge scored.
        mean: The mean that is planned with, and where it is from.
        agreement: The agreement of judge and people that is planned with, and where it is from.
        labels: The number of labels, at least as many as a corrected mean needs; ``None`` if even labels of all samples do not suffice.
        labels_alone: The number without the judge.
        design_effect: How many samples tell as much as one independent sample, since samples share groups; 1 if none do.
        samples_needed: The number of scored samples whose labels would suffice, if those of all samples do not.
        labeled: The number of samples that people have labeled already.
        has_confidence: Whether all scores have the judge's confidence, by which labels can be drawn too.
    """

    run: int
    scorer: str
    aim: str
    samples: int
    mean: tuple[float, str]
    agreement: tuple[float, str]
    labels: int | None
    labels_alone: int | None
    design_effect: float
    labeled: int
    has_confidence: bool
    samples_needed: int | None = None

    @property
    def draw_count(self) -> int | None:
        """The number of samples to draw: the labels, and a tenth left blank."""
        if self.labels is None:
            return None
        return min(self.samples, ceil(self.labels * (1 + _BLANK)))

    def lines(self) -> Iterator[str]:
        """Yield the plan in words."""
        yield f"labels of {self.scorer} in run {self.run}, for {self.aim}"
        yield f"planned with a mean of {self.mean[0]:.2f} ({self.mean[1]}) and an agreement of {self.agreement[0]:.2f} ({self.agreement[1]})"
        if self.design_effect > 1.05:
            yield f"samples share groups: {self.design_effect:.2g} of them tell as much as an independent one, as far as the judge's values show"
        if self.labeled:
            yield f"{count_text(self.labeled, 'sample')} {'has' if self.labeled == 1 else 'have'} labels already"
        every = count_text(self.samples, "scored sample")
        if self.labels is None or self.draw_count is None:
            enough = (
                ""
                if self.samples_needed is None
                else f": about {self.samples_needed:,} labeled conversations would suffice"
            )
            yield f"even a label of each of the {every} leaves too wide an interval; record more conversations{enough}"
            return
        alone = f"{self.labels_alone:,}" if self.labels_alone else "more than there are"
        yield f"{self.labels:,} labels drawn at random from the {every}; without the judge, {alone}"
        if self.has_confidence:
            yield "drawn by verdict, sure and unsure ones apart, labels are up to a third more precise: --by-verdict"
        yield f"next: judgekit label {self.run} --scorer {self.scorer} --n {self.draw_count} -o sheet.html (a tenth may be left blank)"


def plan_labels(
    run: Run,
    scorer: str,
    *,
    half_width: float | None = None,
    gate: str | None = None,
    agreement: float | None = None,
    mean: float | None = None,
) -> LabelPlan:
    """Return how many samples people should label.

    Args:
        run: The run.
        scorer: A scorer of the run that asks a judge.
        half_width: Half the width that the 95 % interval of the corrected mean may have.
        gate: Instead, a gate on the scorer's corrected mean, such as ``tone.corrected.lower >= 0.7``, which is to be met with
            a probability of 80 % if the mean is as planned.
        agreement: The agreement of judge and people: kappa, or the correlation of their values. By default, the lower bound
            of kappa in the judge's audit record.
        mean: The mean that people would give. By default, the corrected mean, else the judge's.

    Raises:
        ConfigError: There is no such scorer, it scored nothing, nothing or both are aimed at, or a number is out of range.
    """
    names = [record.name for record in run.scorers if record.judged]
    check_choice("scorer of the run that asks a judge", scorer, names)
    if (half_width is None) == (gate is None):
        raise ConfigError("pass --half-width or --gate, which says what the labels are for")
    for name, number, highest in (("half_width", half_width, 0.5), ("mean", mean, 1.0), ("agreement", agreement, 1.0)):
        if number is not None and not 0 <= number <= highest:
            raise ConfigError(f"{name} must be between 0 and {highest:g}, found {number:g}")
    values = run.summary[scorer].values
    if not values:
        raise ConfigError(f"{scorer} scored no sample of run {run.number}: there is nothing to label")
    planned, source = (mean, "given") if mean is not None else (sum(values) / len(values), "the judge's")
    if (
        mean is None
        and (corrected := corrected_mean(run, scorer).corrected) is not None
        and corrected.value is not None
    ):
        planned, source = corrected.value, "corrected"
    goal: Callable[[PPIMean], bool] | None = None
    if gate is None:
        aim = f"a corrected mean within {half_width:g} of people's"
    else:
        goal, text = _goal(gate, scorer, names, planned, source)
        aim = f"{text}, met with a probability of {_POWER:.0%}"
    planned_agreement, where = (agreement, "given") if agreement is not None else _audited_agreement(run, scorer)
    rows = [row for row in run.rows(scorer=scorer) if row.score.value is not None]
    independent = independent_share([row.score.value or 0.0 for row in rows], [row.unit for row in rows])
    samples, share = len(rows) * independent, min(0.99, max(0.01, planned))

    def needed(correlation: float, samples: float = samples) -> int | None:
        if goal is not None:
            count = labels_to_meet(goal, share, sum(values) / len(values), correlation, round(samples), power=_POWER)
        else:
            error = (half_width or 0) / normal_quantile(0.975)
            count = labels_needed(share, correlation, error, samples) if error else None
        return None if count is None else max(MIN_LABELS, ceil(count / independent))

    labels = needed(planned_agreement)
    return LabelPlan(
        run.number,
        scorer,
        aim,
        len(rows),
        (planned, source),
        (planned_agreement, where),
        labels,
        needed(0.0),
        1 / independent,
        len({label.number for label in stored_labels(run) if label.scorer == scorer and label.value is not None}),
        all(row.score.confidence is not None for row in rows),
        None if labels is not None else needed(0.0, _MOST),
    )


def _goal(
    gate: str, scorer: str, names: Sequence[str], planned: float, source: str
) -> tuple[Callable[[PPIMean], bool], str]:
    """Return whether a corrected mean meets a gate, and the gate's text."""
    parsed = Gate.parse(gate, names)
    if parsed.scorer != scorer or parsed.field not in CORRECTED_FIELDS or parsed.operator == "==":
        raise ConfigError(f"{gate!r}: expected a gate on {scorer}.corrected, such as {scorer}.corrected.lower >= 0.7")
    is_met, bound = OPERATORS[parsed.operator], parsed.bound
    if planned == bound or not is_met(planned - bound):
        raise ConfigError(
            f"a mean of {planned:.3g} ({source}) does not meet {parsed.text}, so no labels would show that it does"
        )

    def meets(mean: PPIMean) -> bool:
        bounds = {"corrected.lower": mean.interval.low, "corrected.upper": mean.interval.high}
        return is_met(bounds.get(parsed.field, mean.value) - bound)

    return meets, parsed.text


def _audited_agreement(run: Run, scorer: str) -> tuple[float, str]:
    status = run.audits[scorer]
    for name in _AGREEMENT:
        if status.record is not None and (figure := status.record.agreement.get(name)) and figure.low is not None:
            return max(0.0, figure.low), f"the lower bound of {name} in the audit of run {status.record.run}"
    raise ConfigError(
        f"{scorer}: {status}; assume an agreement with people (--agreement 0.6), or plan for labels alone (--agreement 0)"
    )

"""The corrected means of a run, and the gates that they are good enough for."""

from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from judgekit.analysis.gates import CORRECTED_FIELDS, MEAN_FIELDS, OPERATORS, TOLERANCE, Gate, meet_same_gates
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run

_DIGITS = range(2, 10)  # decimals to try; the fewest that keep a statement true are shown


class MeanBound(NamedTuple):
    """A bound on the mean of a scorer."""

    operator: str
    bound: float

    @property
    def sign(self) -> int:
        """1 if the mean must be high enough, -1 if it must be low enough."""
        return 1 if ">" in self.operator else -1

    def __str__(self) -> str:
        words = {">=": "at", ">": "above", "<=": "at no more than", "<": "below"}
        return f"{words[self.operator]} {_plain(self.bound)}"


def run_corrections(run: Run) -> Mapping[str, Correction]:
    """Return the corrected mean of each scorer whose judge was audited, or the reason why there is none."""
    audited = [scorer for scorer, status in run.audits.items() if status.record is not None]
    if not audited:
        return {}
    from judgekit.analysis.correction import corrected_mean  # noqa: PLC0415 - loads numpy

    return {scorer: corrected_mean(run, scorer) for scorer in audited}


def corrected_means(corrections: Mapping[str, Correction]) -> Mapping[str, Estimate]:
    """Return the corrected mean of each scorer that has one."""
    means = {scorer: correction.corrected for scorer, correction in corrections.items()}
    return {scorer: mean for scorer, mean in means.items() if mean is not None}


def describe_correction(correction: Correction) -> str:
    """Return how a mean was corrected and what that assumes, or why it was not corrected, in a line."""
    if correction.corrected is None:
        return f"not corrected: {correction.unavailable_reason}"
    assumes = f"; assumes: {correction.assumptions}" if correction.assumptions else ""
    return f"the mean is corrected ({correction.method}), raw is the judge's own{assumes}"


def mean_bounds(run: Run) -> Mapping[str, MeanBound]:
    """Return the strictest bound that the gates of a run set on the value or corrected value of each scorer."""
    names = [record.name for record in run.scorers]
    gates = run.record.options.get("gates")
    bounds: dict[str, MeanBound] = {}
    for text in gates if isinstance(gates, list) else ():
        gate = Gate.parse(str(text), names)
        if gate.scorer is not None and gate.field in (*MEAN_FIELDS, *CORRECTED_FIELDS) and gate.operator != "==":
            bound = MeanBound(gate.operator, gate.bound)
            bounds[gate.scorer] = max(bounds.get(gate.scorer, bound), bound, key=_strictness)
    return bounds


def _strictness(bound: MeanBound) -> tuple[int, float, int]:
    return bound.sign, bound.sign * bound.bound, -len(bound.operator)


class GateFitness(NamedTuple):
    """Whether a corrected mean is sure to meet the strictest gate on it, the furthest bound that it meets, and a sentence."""

    met: bool | None = None
    reach: float | None = None
    text: str = ""


def gate_fitness(correction: Correction, demand: MeanBound | None) -> GateFitness:
    """Return whether a corrected mean is sure to meet a demand, and which bound it would just meet."""
    bound = MeanBound(">=", 0.0) if demand is None else demand
    meets, sign, figure = OPERATORS[bound.operator], bound.sign, correction.corrected
    edge = None if figure is None else figure.low if sign > 0 else figure.high
    if edge is None:
        missing = f"there is no corrected mean: {correction.unavailable_reason.rstrip('.')}"
        why = missing if figure is None else "the corrected mean has no 95 % interval"
        return GateFitness(met=False, text=f"A gate {bound} is not met: {why}.") if demand else GateFitness()
    is_met = meets(edge - bound.bound)
    slack = TOLERANCE if "=" in bound.operator else -TOLERANCE
    bounds = (sign * floor((sign * edge + slack) * 10**digits) / 10**digits for digits in _DIGITS)
    reached = (near for near in bounds if meets(edge - near) and (not is_met or sign * (near - bound.bound) >= 0))
    reach = next(reached, bound.bound if is_met else None)
    to = "" if reach is None else f"{'up' if sign > 0 else 'down'} to {_plain(reach)}"
    assumed = f" (if {correction.assumptions.partition(';')[0]})" if correction.assumptions else ""
    if is_met:
        head = f"A gate {bound} is met, as is any {to}" if demand else f"Gates {to} are met"
        text = f"{head}: the corrected mean is probably no {'lower' if sign > 0 else 'higher'}{assumed}."
        return GateFitness(met=True if demand else None, reach=reach, text=text if demand or reach else "")
    texts = (f"{edge:.{digits}f}" for digits in _DIGITS)
    shown = next((text for text in texts if meet_same_gates(float(text), edge, bound.bound)), f"{edge}")
    more = f"; gates {to} are met{assumed}" if reach is not None and 0 < reach < 1 else ""
    text = f"A gate {bound} is not met: the corrected mean may be as {'low' if sign > 0 else 'high'} as {shown}{more}."
    return GateFitness(met=False, reach=reach, text=text)


def _plain(number: float) -> str:
    return f"{number:.10g}"

"""Gates on the difference between two runs."""

from judgekit.analysis.difference import Difference
from judgekit.analysis.gates import Gate, GateFields, GateResult
from judgekit.errors import count_text

_DIFFERENCE = ("difference", "difference.lower", "difference.upper")
_CORRECTED = ("difference.corrected", "difference.corrected.lower", "difference.corrected.upper")
DIFFERENCE_FIELDS = GateFields(
    (*_DIFFERENCE, *_CORRECTED, "p", "p_holm", "better", "worse", "pairs"),
    sample_counts=("better", "worse", "pairs"),
    scorers="scorer of both runs",
    example="'tool_call_f1.difference.lower >= -0.02' or 'tool_call_f1.worse <= 5%'",
    ranges={**dict.fromkeys((*_DIFFERENCE, *_CORRECTED), (-1, 1)), **dict.fromkeys(("p", "p_holm"), (0, 1))},
)
"""Fields of a `Difference` that gates may refer to: its attributes, and the bounds of its interval and of the corrected one."""


def difference_gate_result(
    gate: Gate, difference: Difference, samples: int, damaged: int = 0, *, is_audited: bool = False
) -> GateResult:
    """Return the result of a gate; on a number by the judge alone that labels or an audit correct, it says ``raw``.

    Args:
        gate: The gate, parsed with `DIFFERENCE_FIELDS`.
        difference: The difference of its scorer.
        samples: The number of samples in the larger run, of which ``pairs`` may be a share.
        damaged: The number of its scores that are damaged in either run; with any, no gate is met.
        is_audited: Whether the scorer's judge was audited.
    """
    if damaged:
        return GateResult(gate.text, met=False, value_text=f"{count_text(damaged, 'damaged row')} left out")
    if gate.field == "pairs":
        return _count_result(gate, difference.pairs, samples, "samples")
    if gate.field in _CORRECTED:
        return _corrected_result(gate, difference)
    result = _raw_result(gate, difference)
    if difference.corrected is not None:
        raw = f"; raw, by the judge alone; corrected by labels, {difference.corrected}"
    else:
        raw = "; raw, by the judge alone" if is_audited else ""
    return result._replace(value_text=f"{result.value_text}{raw}")


def _corrected_result(gate: Gate, difference: Difference) -> GateResult:
    correction = difference.correction
    if correction is None or correction.difference is None or correction.interval is None:
        reason = "it has no human labels" if correction is None else correction.unavailable_reason
        return GateResult(gate.text, met=False, value_text=f"{difference.scorer} has no corrected difference: {reason}")
    low, high, method = correction.interval
    number = {_CORRECTED[1]: low, _CORRECTED[2]: high}.get(gate.field, correction.difference)
    assumes = f"; assumes: {correction.assumptions}" if correction.assumptions else ""
    return gate.check_number(number, f"{method}, {correction.label_counts}{assumes}")


def _raw_result(gate: Gate, difference: Difference) -> GateResult:
    if difference.difference is None or difference.p is None or difference.p_holm is None:
        return GateResult(gate.text, met=False, value_text="no sample has a value in both runs")
    if gate.field in DIFFERENCE_FIELDS.sample_counts:
        changed = difference.better if gate.field == "better" else difference.worse
        return _count_result(gate, changed, difference.pairs, "pairs")
    pairs = count_text(difference.pairs, "pair")
    if gate.field in ("p", "p_holm"):
        p = difference.p if gate.field == "p" else difference.p_holm
        return gate.check_number(p, f"{difference.test}, {pairs}")
    if gate.field == "difference":
        return gate.check_number(difference.difference, pairs)
    if difference.interval is None:
        few = "there is no interval: the pairs are too few, or all of one group"
        return GateResult(gate.text, met=False, value_text=f"{few} ({pairs})")
    bound = difference.interval.low if gate.field == "difference.lower" else difference.interval.high
    return gate.check_number(bound, f"{difference.interval.method}, {pairs}")


def _count_result(gate: Gate, count: int, total: int, noun: str) -> GateResult:
    if gate.is_share:
        return gate.check_number(count / total, f"{count:,} of {total:,} {noun}")
    return gate.check_number(count, f"of {total:,} {noun}")

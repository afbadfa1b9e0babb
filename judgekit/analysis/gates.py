"""Gates: conditions on the numbers of a run."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf, isfinite
from typing import NamedTuple

from judgekit.errors import ConfigError, count_text, join_limited
from judgekit.runs.audit_records import Correction
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.scorer_counts import UNSCORED_STATUSES
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import REASON_SHOWN, ScorerSummary, one_line
from judgekit.score import ScoreStatus

_GATE = re.compile(r"\s*(?P<name>.*?)\s*(?P<operator>>=|<=|==|>|<)\s*(?P<bound>[^<>=]*?)\s*", re.DOTALL)
_SIGNS = "<>=!"
TOLERANCE = 1e-9
"""The tolerance of comparisons, so that 0.7 + 0.2 equals 0.9."""
OPERATORS: Mapping[str, Callable[[float], bool]] = {
    ">=": lambda above: above > -TOLERANCE,
    ">": lambda above: above >= TOLERANCE,
    "<=": lambda above: above < TOLERANCE,
    "<": lambda above: above <= -TOLERANCE,
    "==": lambda above: abs(above) < TOLERANCE,
}
"""By operator, whether a number that exceeds a bound by this much meets it."""
MEAN_FIELDS = ("value", "lower", "upper")
CORRECTED_FIELDS = ("corrected", "corrected.lower", "corrected.upper")
_NUMBERS = (*MEAN_FIELDS, "min", *CORRECTED_FIELDS)
_OF_COVERAGE = ("n", "coverage", "skipped", "abstained")
_OF_ALL = ("n", "coverage", *UNSCORED_STATUSES, "cost_usd", "shown")  # gates on all scores of a run together


@dataclass(frozen=True)
class GateFields:
    """The numbers that gates may refer to.

    Attributes:
        scorer_fields: Numbers of a scorer, which follow its name and a dot.
        sample_counts: Numbers of a scorer that count whole samples.
        scorers: The word for scorers in messages.
        example: Example gates for messages.
        run_fields: Numbers of all scorers together, which stand alone.
        default: The number that a scorer's name alone stands for, if any.
        not_percentages: Numbers that cannot be given as a percentage, and what they are instead.
        ranges: The least and the greatest value of numbers that have one, apart from shares of samples.
    """

    scorer_fields: Sequence[str]
    sample_counts: Collection[str]
    scorers: str
    example: str
    run_fields: Sequence[str] = ()
    default: str | None = None
    not_percentages: Mapping[str, str] = field(default_factory=dict[str, str])
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


_OF_RUN = GateFields(
    (*_NUMBERS, *_OF_ALL),
    sample_counts=("n", *UNSCORED_STATUSES),
    scorers="scorer of the run",
    example="'tool_call_f1 >= 0.9' or 'failed <= 1%'",
    run_fields=_OF_ALL,
    default="value",
    not_percentages={"n": "a number of samples", "cost_usd": "in US dollars"},
    ranges=dict.fromkeys(("min", "coverage", "shown", *CORRECTED_FIELDS), (0, 1)),
)


class GateResult(NamedTuple):
    """The result of a gate.

    Attributes:
        text: The gate as it was written.
        met: Whether it is met.
        value_text: The number that the gate refers to, in words.
        reason: Why the gate is not met, if the number does not show it.
        sample: The number of the sample that ``value_text`` names, if it names one.
    """

    text: str
    met: bool
    value_text: str
    reason: str = ""
    sample: int | None = None

    @property
    def explanation(self) -> str:
        """The number that was found, and why the gate is not met."""
        return "; ".join(filter(None, (self.value_text, self.reason)))

    def __str__(self) -> str:
        return f"{'met' if self.met else 'not met'}: {self.text}: {self.explanation}"


@dataclass(frozen=True)
class GateResults:
    """The results of the gates of a run.

    Attributes:
        gates: The results, one for each gate.
        low_coverage: For each scorer whose number covers less than ``min_coverage`` of the samples, a sentence that says so.
        undecided: Scorers with failed scores that no gate limits, and scorers whose aggregate failed.
        unmeasured: For each scorer that scored no sample, although no gate allows that, a sentence that says why.
    """

    gates: Sequence[GateResult] = ()
    low_coverage: Mapping[str, str] = field(default_factory=dict[str, str])
    undecided: Sequence[str] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def met(self) -> bool:
        """Whether all gates are met."""
        return all(gate.met for gate in self.gates)

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what is wrong apart from gates that are not met, for reports that say which gates are met."""
        names = join_limited(self.undecided, separator=", ")
        failures = [f"no gate covers the failures of {names}"] if self.gates and names else []
        return [*failures, *self.unmeasured.values()]


def check_gates(run: Run, gates: Iterable[str], *, min_coverage: float | None = None) -> GateResults:
    """Check the gates of a run.

    Args:
        run: The run.
        gates: The gates, in the syntax of `Gate.parse`.
        min_coverage: The least share of samples that a scorer's number must cover to meet a gate. Skipped samples do
            not count as covered: a misspelled column of references skips all of them. The default is half, unless a
            gate limits the scorer's ``n``, ``coverage``, ``skipped`` or ``abstained``.

    Raises:
        ConfigError: A gate cannot be read, or refers to something that does not exist.
    """
    if isinstance(gates, str):
        raise ConfigError(f"gates are a list of texts: check_gates(run, [{gates!r}])")
    names = [scorer.name for scorer in run.record.scorers]
    parsed = [Gate.parse(text, names) for text in gates]
    covered = {gate.scorer for gate in parsed if gate.field in _OF_COVERAGE}
    open_lines = [line for line in run.summary if not {line.scorer, None} & covered]
    if min_coverage is None:
        gated = {gate.scorer for gate in parsed if gate.field in _NUMBERS}
        reasons = {line.scorer: _under_half(line) for line in open_lines if line.scorer in gated}
    else:
        reasons = {line.scorer: _too_few(line, min_coverage) for line in run.summary} if min_coverage else {}
    low_coverage = {scorer: reason for scorer, reason in reasons.items() if reason}
    decided = {gate.scorer for gate in parsed if gate.field == "failed"}
    undecided = [
        line.scorer
        for line in run.summary
        if (line.counts["failed"] and not {line.scorer, None} & decided) or (line.overall and line.overall.error)
    ]
    audited = {scorer for scorer, status in run.audits.items() if status.record is not None}
    to_correct = {
        gate.scorer
        for gate in parsed
        if gate.scorer and (gate.field in CORRECTED_FIELDS or (gate.field in MEAN_FIELDS and gate.scorer in audited))
    }
    corrections: Mapping[str, Correction] = {}
    if to_correct:
        from judgekit.analysis.correction import corrected_mean  # noqa: PLC0415 - loads numpy

        corrections = {scorer: corrected_mean(run, scorer) for scorer in to_correct}
    of_minimum = {gate.scorer for gate in parsed if gate.scorer and gate.field == "min"}
    lowest = {scorer: row for scorer in of_minimum for row in run.lowest(scorer, 1)}
    return GateResults(
        [gate.result(run.summary, low_coverage, corrections, lowest) for gate in parsed],
        low_coverage,
        undecided,
        {
            line.scorer: _unmeasured(line)
            for line in open_lines
            if not line.counts["scored"] and (line.counts["skipped"] or line.counts["abstained"])
        },
    )


def _under_half(line: ScorerSummary) -> str:
    scored = line.counts["scored"]
    if not scored or 2 * scored >= line.total:
        return ""
    return (
        f"only {scored:,} of {line.qualifier}{line.total:,} samples were scored, which is less than half; if that is "
        "enough, set min_coverage"
    )


def _unmeasured(line: ScorerSummary) -> str:
    reasons = (f"{times}: {one_line(reason, REASON_SHOWN)}" for times, reason in line.unscored_reasons())
    return f"{line.scorer} scored none of {line.qualifier}{count_text(line.total, 'sample')}: {'; '.join(reasons)}"


def _too_few(line: ScorerSummary, min_coverage: float) -> str:
    scored = line.counts["scored"]
    if scored >= min_coverage * line.total - TOLERANCE and not line.qualifier:
        return ""
    return f"only {scored:,} of {line.qualifier}{line.total:,} samples were scored, and min_coverage is {min_coverage * 100:g}%"


@dataclass(frozen=True)
class Gate:
    """A condition on one number.

    Attributes:
        text: The gate as it was written.
        scorer: The scorer whose number it is; ``None`` for a number of all scores of the run.
        field: The name of the number.
        operator: The comparison with the bound.
        bound: The bound; a share is given as a fraction of 1.
        is_share: Whether the gate refers to the share of all scores instead of their count.
    """

    text: str
    scorer: str | None
    field: str
    operator: str
    bound: float
    is_share: bool

    @classmethod
    def parse(cls, text: str, scorers: Collection[str], fields: GateFields = _OF_RUN) -> "Gate":
        """Parse ``SCORER[.FIELD] OPERATOR NUMBER[%]``, or ``FIELD OPERATOR NUMBER[%]`` for all scores of the run.

        Fields of a scorer: ``value``, the default; ``lower`` and ``upper``, the bounds of its 95 % interval; ``min``,
        the lowest value of a scored sample; ``corrected``, ``corrected.lower`` and ``corrected.upper``, the value and
        bounds corrected by the audit record of its judge's last audit. Fields of a scorer or a run: ``n``, the number of
        scored samples; ``coverage``, the share of scored samples; ``skipped``, ``failed`` and ``abstained``, the number
        of such samples, or their share with ``%``; ``cost_usd``; ``shown``, the mean share of recordings that judges were
        shown. Operators: ``>=``, ``>``, ``<=``, ``<``, ``==``. Names may contain dots.
        """
        match = _GATE.fullmatch(text)
        if match is None or match["name"][-1:] in tuple(_SIGNS):
            column = match.end("name") if match else next((i for i, sign in enumerate(text, 1) if sign in _SIGNS), 1)
            raise _syntax_error(
                text, column, f"expected one of {', '.join(OPERATORS)} between a name and a number", fields
            )
        scorer, field = _scorer_and_field(text, match["name"], match.start("name") + 1, scorers, fields)
        bound, is_share = _bound(text, match["bound"], match.start("bound") + 1, field, fields)
        return cls(text.strip(), scorer, field, match["operator"], bound, is_share)

    def result(
        self,
        summary: Summary,
        low_coverage: Mapping[str, str],
        corrections: Mapping[str, Correction],
        lowest: Mapping[str, Row] = {},
    ) -> GateResult:
        """Return the result of the gate.

        Args:
            summary: The numbers of the run.
            low_coverage: For each scorer whose numbers cover too few samples, a sentence that says so.
            corrections: The corrected means of the scorers that gates ask for, and of audited ones with gates on the
                raw mean.
            lowest: The rows with the lowest value of these scorers.
        """
        scorer = self.scorer or ""
        row = lowest.get(scorer) if self.field == "min" else None
        too_low = ""
        if self.field in CORRECTED_FIELDS:
            number, explanation = self._corrected_value(corrections[scorer])
        elif row is not None:
            number, explanation, too_low = self._sample_value(row, summary[scorer])
        else:
            number, explanation = (
                self._scorer_value(summary, corrections.get(scorer))
                if self.field in _NUMBERS
                else self._run_value(summary)
            )
        too_few = low_coverage.get(scorer, "") if self.field in _NUMBERS else ""
        line = summary.scorers.get(scorer)
        is_mean = line is not None and line.overall is not None and line.overall.name == "mean"
        if self.field in MEAN_FIELDS and is_mean and not 0 <= self.bound <= 1:
            explanation += f"; {scorer} is from 0 to 1, and {self.bound:g}% would be {self.bound / 100:g}"
        damaged = sum(len(line.damaged_samples) for line in summary if self.scorer in (None, line.scorer))
        left_out = f"{count_text(damaged, 'damaged row')} left out" if damaged else ""
        met = number is not None and self._is_met(number) and not too_few and not damaged
        why = "; ".join(filter(None, (too_low, too_few, left_out)))
        return GateResult(self.text, met, explanation, why, None if row is None else row.index)

    def _is_met(self, number: float) -> bool:
        return OPERATORS[self.operator](number - self.bound)

    def check_number(self, number: float, of: str) -> GateResult:
        """Return the result for a number; ``of`` says where the number comes from."""
        return GateResult(self.text, self._is_met(number), f"found {self._shown(number)} ({of})")

    def _scorer_value(self, summary: Summary, correction: Correction | None) -> tuple[float | None, str]:
        """Return a number of a scorer, or ``None``, and an explanation, which tells a raw mean from a corrected one."""
        scorer = self.scorer or ""
        line = summary.scorers.get(scorer, ScorerSummary(scorer))
        if (number := line.value) is None:
            note = "nothing was scored" if line.overall is None else line.overall.note
            return None, f"{scorer} has no value: {note} ({line.coverage()})"
        how = ""
        if self.field != "value":
            interval = line.interval or line.bootstrap()
            if interval is None:
                few = "there are too few values, values of only one group, or too many to resample"
                return None, f"{line.scorer} has no interval: {few} ({line.coverage()})"
            number, how = interval.low if self.field == "lower" else interval.high, f"{interval.method}, "
        explanation = f"found {self._shown(number)} ({'raw, ' if correction else ''}{how}{line.coverage()})"
        if correction and correction.corrected:
            explanation += f"; the report's mean is the corrected one, {correction.corrected}"
        return number, explanation

    def _sample_value(self, row: Row, line: ScorerSummary) -> tuple[float | None, str, str]:
        """Return the lowest value of a sample, an explanation, and how many samples are too low."""
        value = row.score.value
        explanation = f"found {self._shown(value or 0.0)} (sample #{row.index} {row.sample_id!r}, {line.coverage()})"
        low = sum(not self._is_met(sample_value) for sample_value in line.values)
        if ">" not in self.operator or not low:
            return value, explanation, ""
        below = "below" if "=" in self.operator else "not above"
        return value, explanation, f"{below} {self._shown(self.bound)}: {low:,} of {len(line.values):,} scored samples"

    def _corrected_value(self, correction: Correction) -> tuple[float | None, str]:
        figure = correction.corrected
        if figure is None:
            return None, f"{self.scorer} has no corrected value: {correction.unavailable_reason}"
        number = {"corrected.lower": figure.low, "corrected.upper": figure.high}.get(self.field, figure.value)
        if number is None:
            return None, f"{self.scorer} has a corrected value without an interval"
        assumes = f"; assumes: {correction.assumptions}" if correction.assumptions else ""
        return number, f"found {self._shown(number)} ({correction.method}{assumes})"

    def _run_value(self, summary: Summary) -> tuple[float | None, str]:
        """Return a number of scores or dollars, or ``None`` if it is unknown, and an explanation."""
        lines = [line for line in summary if self.scorer in (None, line.scorer)]
        if self.field == "cost_usd":
            costs = [line.cost_usd for line in lines if line.cost_usd is not None]
            if len(costs) < len(lines):
                return None, "the cost is unknown: a judge has no price, or its provider does not count tokens"
            return fsum(costs), f"found ${self._shown(fsum(costs))}"
        if self.field == "shown":
            if not (judged := sum(line.judged for line in lines)):
                return None, "no judge was shown a recording"
            share = fsum(line.shown for line in lines) / judged
            return share, f"found {self._shown(share)} of the recordings in {count_text(judged, 'judged score')}"
        counts = sum((line.counts for line in lines), Counter[ScoreStatus]())
        count = counts[self.field if self.field in UNSCORED_STATUSES else "scored"]
        of, about = sum(line.total for line in lines), max((line.qualifier for line in lines), default="")
        explanation = f"found {count:,} of {about}{of:,}"
        if not self.is_share:
            return count, explanation
        if not counts.total():
            return None, "there are no scores"
        if about:
            return None, f"{explanation}, so the share is unknown"
        share = count / of
        return share, f"{explanation}, {self._shown(share)}"

    def _shown(self, number: float) -> str:
        """Return the number with enough digits to show on which side of the bound it lies."""
        scale, unit = (100, "%") if self.is_share else (1, "")
        texts = (f"{number * scale:.{digits}g}" for digits in range(3, 18))
        tells = (text for text in texts if meet_same_gates(float(text) / scale, number, self.bound))
        return next(tells, f"{number * scale}") + unit


def meet_same_gates(number: float, other: float, bound: float) -> bool:
    """Return whether two numbers meet the same gates with this bound."""
    return all(meets(number - bound) == meets(other - bound) for meets in OPERATORS.values())


def _syntax_error(text: str, column: int, problem: object, fields: GateFields) -> ConfigError:
    return ConfigError(f"gate {text!r}, column {column}: {problem}; a gate looks like {fields.example}")


def _scorer_and_field(
    text: str, name: str, column: int, scorers: Collection[str], fields: GateFields
) -> tuple[str | None, str]:
    parts = [(scorer, name[len(scorer) + 1 :]) for scorer in scorers if name.startswith(f"{scorer}.")]
    meant: list[tuple[str | None, str]] = [
        *([(name, fields.default)] if name in scorers and fields.default else []),
        *((scorer, field) for scorer, field in parts if field in fields.scorer_fields),
        *([(None, name)] if name in fields.run_fields else []),
    ]
    if len(meant) > 1:
        two = f"{name!r} is ambiguous: give the scorer {meant[0][0]!r} another name with as="
        raise _syntax_error(text, column, two, fields)
    if meant:
        return meant[0]
    if name in scorers:
        which = f"expected . and one of {', '.join(fields.scorer_fields)} after {name}"
        raise _syntax_error(text, column + len(name), which, fields)
    if parts:
        scorer, field = max(parts)
        unknown = ConfigError.unknown(f"number of {scorer}", field, fields.scorer_fields)
        raise _syntax_error(text, column + len(scorer) + 1, unknown, fields)
    ends = (f".{field}" for field in reversed(fields.scorer_fields))
    wanted = next((name.removesuffix(end) for end in ends if name.endswith(end)), name)
    unknown = ConfigError.unknown(fields.scorers, wanted or name, [*scorers, *fields.run_fields])
    raise _syntax_error(text, column, unknown, fields)


def _bound(text: str, bound: str, column: int, field: str, fields: GateFields) -> tuple[float, bool]:
    try:
        number = float(bound.removesuffix("%"))
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise _syntax_error(text, column, f"expected a number, or a share such as 1%, found {bound!r}", fields)
    if bound.endswith("%"):
        if field in fields.not_percentages:
            what = fields.not_percentages[field]
            raise _syntax_error(text, column, f"{field} is {what}, not a share, found {bound!r}", fields)
        number /= 100
    elif field in fields.sample_counts and not number.is_integer():
        whole = f"{field} is a whole number of samples, or a share that ends in %, found {bound!r}"
        raise _syntax_error(text, column, whole, fields)
    is_share = bound.endswith("%") or field == "coverage"
    values = (0, 1) if is_share and field in fields.sample_counts else None
    least, most = fields.ranges.get(field) or values or (-inf, inf)
    if not least <= number <= most:
        percent = "" if bound.endswith("%") else f"; {bound}% would be {number / 100:g}"
        raise _syntax_error(text, column, f"{field} is from {least} to {most}, found {bound!r}{percent}", fields)
    return number, is_share

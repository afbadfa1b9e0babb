"""The repeatability of a judge's verdicts, from the repeats, votes and orders behind its scores."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, TypeAlias

from judgekit.analysis.findings import Repeatability
from judgekit.runs.intervals import Estimate
from judgekit.runs.repeats import Repeats, first_details, repeat_value
from judgekit.runs.rows import Row

Side: TypeAlias = Literal["repeat", "member", "order"]
_PREFERRED = {"trace": 1.0, "tie": 0.5, "baseline": 0.0}
_Vote: TypeAlias = float | Literal["failed"] | None
_ALWAYS_ASKED = 2  # members of an escalating panel; their verdicts decide whether others are asked


@dataclass(frozen=True)
class _SampleVerdicts:
    """The verdicts on one sample.

    Attributes:
        unit: The sample's unit.
        side: The source of repetition.
        values: By member of a panel, or order of a pair, the values of the repeats, with ``None`` for a repeat without a
            value. A member that failed has no repeats.
        votes: The votes that the verdict was made of.
        is_mean: Whether the verdict is their mean instead of the most frequent one.
        draw_count: The number of verdicts made.
        max_repeats: The number of verdicts that could have been made.
        is_adaptive: Whether further repeats were made only if they seemed necessary.
        escalated: Whether further members were asked only if they seemed necessary. In both cases, ``values`` holds what
            was made in any case.
    """

    unit: str | None
    side: Side
    values: Sequence[Sequence[float | None]]
    votes: Sequence[_Vote]
    is_mean: bool
    repeat_count: int
    max_repeats: int
    is_adaptive: bool
    escalated: bool

    @property
    def is_repeated(self) -> bool:
        """Whether there are two or more verdicts, at least one of them with a value."""
        values = [value for repeats in self.values for value in repeats]
        return len(values) > 1 and any(value is not None for value in values)

    @property
    def flips(self) -> float:
        """The probability that two repeats of a member or order differ, or two members or orders with a repeat each."""
        several = [repeats for repeats in self.values if len(repeats) > 1] or [
            [repeat for repeats in self.values for repeat in repeats]
        ]
        return fsum(map(_flips, several)) / len(several)

    @property
    def is_close(self) -> bool:
        """Whether one vote more or less could cost the first place its lead, or move the mean to one half."""
        if self.is_mean:
            values = [value for value in self.votes if isinstance(value, float)]
            return abs(2 * fsum(values) - len(values)) <= 1
        votes = Counter(vote for vote in self.votes if vote != "failed")
        first, second, *_ = *sorted(votes.values(), reverse=True), 0, 0
        return first - second <= 1


def repeatability(rows: Iterable[Row]) -> Repeatability | None:
    """Return the repeatability of a judge's verdicts, from the rows of one scorer.

    It covers samples that the judge was asked about at least twice and that got at least one value: the repeats of a
    `Repeat`, the votes of a panel with the repeats of each member, the two orders of a pair. A repeat without a value is a
    verdict of its own; a member that failed gave none. If the first
    repeats decide whether there are more (``repeats="auto"``, a panel that escalates), only the first are used, since the
    others are not a random choice.

    The flip rate of a sample with n_v repeats of each value v among n is 1 - sum n_v (n_v - 1) / (n (n - 1)), which is
    unbiased for any n; with several members that have repeats, it is the mean over these. A sample is near the threshold
    if one more repeat or vote for the second value, or one less for the first, ends the lead; for a mean, if one more
    could move it to or past one half, which is the same for values of 0 and 1. Intervals are those of means over
    samples, with groups kept whole. Assumes that repeats are independent.

    Returns:
        ``None`` if the judge was asked about no sample twice.
    """
    samples = filter(None, map(_sample_verdicts, rows))
    verdicts = _comparable([sample for sample in samples if sample.is_repeated])
    if not verdicts:
        return None
    units = [sample.unit for sample in verdicts]
    return Repeatability(
        samples=len(verdicts),
        repeats=sum(sample.repeat_count for sample in verdicts),
        max_repeats=sum(sample.max_repeats for sample in verdicts),
        flip_rate=Estimate.mean([sample.flips for sample in verdicts], units),
        near=Estimate.mean([float(sample.is_close) for sample in verdicts], units),
        notes=tuple(_notes(verdicts)),
    )


def _sample_verdicts(row: Row) -> _SampleVerdicts | None:
    score, details = row.score, first_details(row.score)
    side: Side = "repeat"
    values: list[Sequence[float | None]] = []
    votes: list[_Vote] = []
    count = most = 0
    stopped, escalated = "min_repeats" in details, False
    if (repeats := Repeats.of(details)) is not None:
        values.append(repeats.values[: repeats.min_repeats])
        votes += values[0]
        count, most = len(repeats.values), repeats.max_repeats
    elif isinstance(answers := details.get("votes"), dict):
        side = "member"
        for vote in answers.values():
            fields = vote if isinstance(vote, dict) else {}
            failed = fields.get("status") == "failed"
            own = Repeats.of(fields) or Repeats([] if failed else [repeat_value(vote)], 1, 1)
            values.append(own.values[: own.min_repeats])
            votes.append("failed" if failed else repeat_value(vote))
            count, most = count + len(own.values), most + own.max_repeats
            stopped = stopped or "min_repeats" in fields
        unasked = details.get("unasked")
        escalated = isinstance(unasked, list) and bool(unasked)
        most += len(unasked) if isinstance(unasked, list) else 0
    elif isinstance(answers := details.get("verdicts"), list):
        side = "order"
        preferred = [_PREFERRED.get(str(each.get("preferred"))) if isinstance(each, dict) else None for each in answers]
        values += [[vote] for vote in preferred]
        votes += preferred
        count = most = len(votes)
    else:
        return None
    is_mean = score.status == "scored" and score.confidence is None and details is score.details
    return _SampleVerdicts(row.unit, side, values, votes, is_mean, count, most, stopped, escalated)


def _comparable(verdicts: Sequence[_SampleVerdicts]) -> Sequence[_SampleVerdicts]:
    """Return the samples with the first one's source of repetition; of escalating panels, only members always asked."""
    alike = [sample for sample in verdicts if sample.side == verdicts[0].side]
    if not any(sample.escalated for sample in alike):
        return alike
    first = [replace(each, values=each.values[:_ALWAYS_ASKED], votes=each.votes[:_ALWAYS_ASKED]) for each in alike]
    return [sample for sample in first if sample.is_repeated]


def _flips(values: Sequence[float | None]) -> float:
    n = len(values)
    return 1 - sum(times * (times - 1) for times in Counter(values).values()) / (n * (n - 1))


def _notes(verdicts: Sequence[_SampleVerdicts]) -> Iterator[str]:
    if any(sample.is_adaptive for sample in verdicts):
        first = max(len(repeats) for sample in verdicts for repeats in sample.values)
        yield f"Only the first {first} repeats count here, because they decide whether there are more."
    if any(sample.escalated for sample in verdicts):
        yield f"Only the first {_ALWAYS_ASKED} members count here, because they decide whether there are more."

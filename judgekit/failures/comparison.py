"""The issues of two runs over the same samples: new, back, more, less and gone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from pydantic import JsonValue

from judgekit.analysis.sample_pairs import SamplePairs
from judgekit.errors import ConfigError, count_text
from judgekit.failures.issues import Issue
from judgekit.failures.report import FailureReport, RunIssue
from judgekit.stats.comparison import holm, mcnemar, paired_interval, sign_flip
from judgekit.stats.units import Units
from judgekit.stats.wilson import Interval

IssueChangeKind: TypeAlias = Literal["new", "back", "more", "less", "gone", "no evidence", "not compared"]
_ALPHA = 0.05


@dataclass(frozen=True)
class IssueChange:
    """The change of an issue from an earlier run to a later one, over the samples that both analyzed.

    Attributes:
        issue: The issue.
        appeared: How it came into the later run, ``new`` or ``back``; empty if it is known from before, or not there.
        a: The number of its samples in the earlier run.
        b: The number of its samples in the later run.
        only_a: The number of its samples in the earlier run that the later one did not analyze.
        pairs: The number of samples in both runs, of which the interval and p are.
        interval: The 95 % interval of the difference of its shares, clustered if there are groups.
        p: The two-sided p: exact McNemar, or sign-flip permutation if a group has several samples.
        p_holm: p adjusted for the number of issues.
    """

    issue: Issue
    appeared: Literal["new", "back", ""]
    a: int
    b: int
    only_a: int
    pairs: int
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None

    @property
    def kind(self) -> IssueChangeKind:
        """The change in a word; an issue is gone only if all samples that had it were analyzed again."""
        if self.appeared:
            return self.appeared
        if not self.pairs or self.p_holm is None or self.difference is None:
            return "not compared"
        if self.a and not self.b and not self.only_a:
            return "gone"
        if self.p_holm >= _ALPHA:
            return "no evidence"
        return "more" if self.difference > 0 else "less"

    def as_json(self) -> dict[str, JsonValue]:
        """Return the change as JSON."""
        return {
            **self.issue.model_dump(mode="json", include={"id", "name", "label", "where", "status"}),
            **{name: getattr(self, name) for name in ("a", "b", "pairs", "difference", "p", "p_holm")},
            "change": self.kind,
            "not_analyzed_again": self.only_a,
            "interval": None if self.interval is None else self.interval._asdict(),
        }

    def __str__(self) -> str:
        text = f"{self.kind}: {self.issue.name} ({self.issue.id}): {count_text(self.a, 'sample')} then, {self.b:,} now"
        if self.only_a:
            text += f", {count_text(self.only_a, 'sample')} not analyzed again"
        if self.interval is not None and self.p_holm is not None:
            text += f"; of {self.pairs:,} pairs {self.difference:+.3f} ({self.interval.low:+.3f} to {self.interval.high:+.3f}), p {self.p_holm:.2g}"
        return text


def compare_failures(a: FailureReport, b: FailureReport) -> Sequence[IssueChange]:
    """Return how each issue changed from A to B; rejected issues are left out.

    Raises:
        ConfigError: The runs were analyzed by scorers of different names, or are the same run.
    """
    if a.scorer != b.scorer:
        raise ConfigError(f"the runs were analyzed by {a.scorer} and {b.scorer}; compare those of one scorer")
    if a.run.record.id == b.run.record.id:
        raise ConfigError(f"run {b.run.number} is the run itself; name an earlier one")
    pairs = SamplePairs.of(a.run, b.run, [a.scorer])
    numbers_a, numbers_b = pairs.sample_numbers
    judged_a, judged_b = _judged(a), _judged(b)
    both = np.array(
        [first in judged_a and second in judged_b for first, second in zip(numbers_a, numbers_b, strict=True)], bool
    )
    units = pairs.units[both]
    first: dict[str, RunIssue] = {issue.issue.id: issue for issue in a.issues if issue.state != "rejected"}
    second: dict[str, RunIssue] = {issue.issue.id: issue for issue in b.issues if issue.state != "rejected"}
    changes: list[IssueChange] = []
    for at in {**second, **first}:
        in_a, in_b = (
            {failure.row.index for failure in issues[at].failures} if at in issues else set[int]()
            for issues in (first, second)
        )
        had = np.isin(numbers_a[both], [*in_a]).astype(float)
        has = np.isin(numbers_b[both], [*in_b]).astype(float)
        shown = second.get(at) or first[at]
        appeared = _appeared(a, second[at]) if at in second and at not in first else ""
        change = IssueChange(shown.issue, appeared, len(in_a), len(in_b), len(in_a) - int(had.sum()), int(both.sum()))
        if both.any() and shown.state != "unsorted":
            grouped = Units.of(has - had, units.tolist()).codes is not None
            only_a, only_b = int((had > has).sum()), int((has > had).sum())
            p = sign_flip(has - had, units.tolist()) if grouped else mcnemar(only_a, only_b)
            interval = paired_interval(has - had, units.tolist())
            change = replace(change, difference=float((has - had).mean()), interval=interval, p=p)
        changes.append(change)
    adjusted = holm([change.p for change in changes])
    return [replace(change, p_holm=p) for change, p in zip(changes, adjusted, strict=True)]


def _appeared(earlier: FailureReport, shown: RunIssue) -> Literal["new", "back", ""]:
    """Return how an issue that the earlier run does not have came into the later one."""
    if shown.state == "back":
        return "back"
    return "new" if shown.state != "unsorted" and shown.issue.first_seen > earlier.run.started_at else ""


def _judged(report: FailureReport) -> frozenset[int]:
    rows = report.run.rows(scorer=report.scorer, statuses=("scored", "skipped"))
    return frozenset(row.index for row in rows)

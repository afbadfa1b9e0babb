"""A run in a few lines: each scorer's number, the samples behind it, and what it cost."""
# ruff: noqa: SLF001 - summaries merge with others of their class

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from judgekit.aggregates.total import PackedScores, Total, compute_total
from judgekit.errors import ConfigError, count_text, join_limited
from judgekit.runs.answers import AnswerCounts, ReportedNames
from judgekit.runs.counted import CountedRow
from judgekit.runs.hashes import text_hash
from judgekit.runs.repeats import Repeats, first_details
from judgekit.runs.rows import DAMAGED_ROW, Row
from judgekit.score import STATUSES, JudgeCall, Score, ScoreStatus
from judgekit.stats.trials import TaskMean, mean_over_tasks, pass_at_k, pass_hat_k
from judgekit.stats.wilson import Interval, wilson
from judgekit.traces.rendering import quoted_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MEANS = ("mean", "within_budget")  # aggregates that are the mean of the values
_BOOTSTRAP_DRAWS = 1_000
_TRIALS_SHOWN = 8
_RECORDED = 8
_SLICES = 50  # a label with more values tells samples apart, not kinds of samples
_NAMES_SLICED = 100
_REDRAWN = 5_000  # scores; redrawing more takes minutes if their aggregate is not a mean
_LABELS_SHOWN = 8
_WARNINGS_SHOWN = 3
_REASONS_SHOWN = 3
_SAMPLES_SHOWN = 5
_REASONS_COUNTED = 100
_NAME_SHOWN = 80
_NAMED = 8
_UNGROUPED = 0


class Trials(NamedTuple):
    """The results of k trials of a task: that any of them succeeds (pass@k), and that all of them do (pass^k)."""

    k: int
    pass_at_k: TaskMean
    pass_hat_k: TaskMean


@dataclass
class ScorerSummary:
    """The scores of one scorer, added one by one.

    Attributes:
        errors: The number of failed scores by error class.
        labels: The number of scored samples by label.
        warnings: The number of scores by warning.
        reasons: Why samples were not scored, by status: the label of the score, or else its reason, of which a judge
            may give as many as there are samples. The lines of `Summary.slices` have none.
        answers: The replies of judges by the model that answered.
        damaged_samples: The samples of failed scores that cannot be read because the run's file is damaged.
        unscored_requests: The number of requests that belong to attempts that gave no score or were repeated.
        tokens: The tokens of requests that were sent, cached replies being free; ``None`` if a provider did not report
            them.
        cost_usd: The cost of these requests; ``None`` if a price is unknown.
        price_lists: The lists behind the costs, such as ``litellm 1.106.2``.
        missing: The number of samples without a score in a run that was stopped or interrupted.
        qualifier: The words before a total that is not exact: ``about `` or ``at least ``.
        audited: The audit status of the judge; empty for a scorer without one.
        signature: The signature of the scorer; ``None`` if it is unknown.
    """

    scorer: str
    signature: str | None = None
    counts: Counter[ScoreStatus] = field(default_factory=Counter[ScoreStatus])
    errors: Counter[str] = field(default_factory=Counter[str])
    labels: Counter[str] = field(default_factory=Counter[str])
    warnings: Counter[str] = field(default_factory=Counter[str])
    reasons: dict[ScoreStatus, Counter[str]] = field(default_factory=dict[ScoreStatus, Counter[str]])
    answers: AnswerCounts = field(default_factory=AnswerCounts)
    requests: int = 0
    damaged_samples: list[str] = field(default_factory=list[str])
    unscored_requests: int = 0
    lost_calls: int = 0
    cached: int = 0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    price_lists: set[str] = field(default_factory=set[str])
    missing: int = 0
    qualifier: str = ""
    audited: str = ""
    _graded: bool = field(default=False, repr=False)
    _repeated: Counter[str] = field(default_factory=Counter[str], repr=False)
    # Numbers that are computed once: empty, or one of them.
    _overall: tuple[Total | None, ...] = field(default=(), repr=False)
    _interval: tuple[Interval | None, ...] = field(default=(), repr=False)
    _trials: tuple[Sequence[Trials], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Prepare what the numbers are computed from."""
        self._labeled: dict[float, str] = {}
        self._values: array[float] = array("d")
        self._groups: array[int] = array("q")
        self._unscored: set[int] = set()
        self._scores: dict[str, PackedScores] = {}

    def add(self, row: Row | CountedRow, packed: bytes | None = None) -> None:
        """Count one score.

        Only what the scorer's number needs is kept, to save memory in long runs: 16 bytes for a mean, and otherwise the
        ``packed`` score, which other lines may share.
        """
        score = row.score
        self.counts[score.status] += 1
        if score.error is not None:
            self.errors[score.error] += 1
        if score.error == DAMAGED_ROW:
            self.damaged_samples.append(f"#{row.index} {row.sample_id!r}")
            self.tokens = self.cost_usd = None  # its calls are lost as well
        if score.label is not None and score.value is not None:
            self.labels[score.label] += 1
            is_new = self._labeled.setdefault(score.value, score.label) != score.label
            self._graded = self._graded or is_new or 0 < score.value < 1
        self._overall = self._interval = self._trials = ()
        if score.warnings:
            self.warnings.update(score.warnings)
        for call in score.calls:
            self.answers.add(call)
            self._add_cost(call)
        if isinstance(score, Score) and len(score.calls) > 1:
            self._add_repeats(score)
        if score.value is None:
            if row.group is not None:
                self._unscored.add(_group_hash(row.group))
            return
        self._groups.append(_UNGROUPED if row.group is None else _group_hash(row.group))
        self._values.append(score.value)
        if isinstance(score, Score) and score.aggregate != "mean":
            self._scores.setdefault(score.aggregate, PackedScores()).append(packed or PackedScores.pack(score))

    def add_reason(self, score: Score) -> None:
        """Count why a score has no value. Of reasons that are all different, only the first 100 are counted."""
        if score.value is None:
            self._count_reason(score.status, score.label or score.reason or "no reason given", 1)

    def _count_reason(self, status: ScoreStatus, reason: str, times: int) -> None:
        reasons = self.reasons.setdefault(status, Counter())
        if reason in reasons or len(reasons) < _REASONS_COUNTED:
            reasons[reason] += times

    def _add_repeats(self, score: Score) -> None:
        """Count repeats that stop once the lead is decisive."""
        details = first_details(score)
        votes = details.get("votes")
        for told in (details, *(votes.values() if isinstance(votes, dict) else ())):
            if not isinstance(told, Mapping) or not isinstance(saved := told.get("requests_saved"), int):
                continue
            if (repeats := Repeats.of(told)) is not None:
                self._repeated.update(samples=1, made=len(repeats.values), most=repeats.max_repeats, saved=saved)

    def merge(self, other: "ScorerSummary") -> None:
        """Add the scores that the same scorer gave to other samples, as if they had been added one by one.

        Raises:
            ConfigError: It is another scorer.
        """
        if (self.scorer, self.signature) != (other.scorer, other.signature):
            raise ConfigError(
                f"summaries of different scorers cannot be merged: {self.scorer} ({self.signature}) and {other.scorer} "
                f"({other.signature})"
            )
        self.counts += other.counts
        self.errors += other.errors
        self.labels += other.labels
        self.warnings += other.warnings
        self.answers.update(other.answers)
        self.requests += other.requests
        self.damaged_samples += other.damaged_samples
        self.unscored_requests += other.unscored_requests
        self.lost_calls += other.lost_calls
        self.cached += other.cached
        self._add_paid(other.tokens, other.cost_usd)
        self.price_lists |= other.price_lists
        self.missing += other.missing
        self.qualifier = max(self.qualifier, other.qualifier, key=_QUALIFIERS.index)
        self.audited = "; ".join(dict.fromkeys(filter(None, (self.audited, other.audited))))
        for status, reasons in other.reasons.items():
            for reason, times in reasons.items():
                self._count_reason(status, reason, times)
        for value, label in other._labeled.items():
            self._graded = (self._labeled.setdefault(value, label) != label) or self._graded
        self._graded = self._graded or other._graded
        self._values.extend(other._values)
        self._groups.extend(other._groups)
        self._unscored |= other._unscored
        for name, scores in other._scores.items():
            self._scores.setdefault(name, PackedScores()).extend(scores)
        self._repeated += other._repeated
        self._overall = self._interval = self._trials = ()

    def add_unscored(self, calls: Iterable[JudgeCall]) -> None:
        """Add the cost of an attempt that gave no score or was repeated."""
        before = self.requests
        for call in calls:
            self._add_cost(call)
        self.unscored_requests += self.requests - before

    def add_lost_calls(self) -> None:
        """Count calls that can no longer be read, so that tokens and cost are unknown."""
        self.lost_calls += 1
        self.tokens = self.cost_usd = None

    def _add_cost(self, call: JudgeCall) -> None:
        if call.cached:
            self.cached += 1
            return
        self.requests += call.is_request
        if call.price_list is not None:
            self.price_lists.add(call.price_list)
        self._add_paid(call.tokens_paid, call.usd_paid)

    def _add_paid(self, tokens: int | None, cost: float | None) -> None:
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost

    @property
    def judges(self) -> Counter[str]:
        """The number of answers by judge."""
        return Counter({judge: models.total() for judge, models in self.reported_models.items()})

    @property
    def reported_models(self) -> Mapping[str, ReportedNames]:
        """The number of answers by judge and reported model; ``None`` counts answers without one."""
        return self.answers.models

    @property
    def fingerprints(self) -> Mapping[str, ReportedNames]:
        """The number of answers by judge and reported system fingerprint."""
        return self.answers.fingerprints

    @property
    def total(self) -> int:
        """The number of all samples, scored or not."""
        return self.counts.total() + self.missing

    @property
    def overall(self) -> Total | None:
        """The total of the scored samples; ``None`` if there are none."""
        if not self._overall:
            self._overall = (self._total(),)
        return self._overall[0]

    def _total(self) -> Total | None:
        if not (names := self._aggregates):
            return None
        if len(names) > 1:
            return Total(None, "undefined", f"its scores have different aggregates: {', '.join(names)}")
        if names == ["mean"]:
            return Total(fsum(self._values) / len(self._values), "mean")
        return compute_total(names[0], self._scores[names[0]])

    @property
    def _aggregates(self) -> Sequence[str]:
        kept = sum(map(len, self._scores.values()))
        return [*self._scores, *(["mean"] if kept < len(self._values) else [])]

    @property
    def groups(self) -> Sequence[Hashable] | None:
        """A key for the group of each value, if samples have groups. A sample without a group is one by itself."""
        if not any(self._groups):  # all are ungrouped
            return None
        return [(place,) if group == _UNGROUPED else group for place, group in enumerate(self._groups)]

    @property
    def values(self) -> Sequence[float]:
        """The values of the scored samples."""
        return self._values

    @property
    def interval(self) -> Interval | None:
        """The 95 % confidence interval of a mean.

        ``None`` if there are too few values, or if the number is not a mean: `bootstrap` gives its interval.
        """
        if not self._interval:
            self._interval = (self._mean_interval(),)
        return self._interval[0]

    def _mean_interval(self) -> Interval | None:
        if len(names := self._aggregates) != 1 or names[0] not in _MEANS:
            return None
        if not any(self._groups) and set(self._values) <= {0.0, 1.0}:
            return wilson(self._values.count(1.0), len(self._values))

        from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

        return mean_interval(self._values, self.groups)

    def bootstrap(self, seed: int = 0) -> Interval | None:
        """Return the 95 % confidence interval of the number, whatever it is, by the bootstrap.

        Returns:
            ``None`` if there are too few values, or more than 5,000 and the number is not a mean.
        """
        from judgekit.stats.intervals import bootstrap  # noqa: PLC0415

        if len(names := self._aggregates) != 1:
            return None
        if names == ["mean"]:
            return bootstrap(self._values, self.groups, seed=seed)
        [(name, scores)] = self._scores.items()
        if len(scores) > _REDRAWN:
            return None

        def number(places: "NDArray[np.float64]") -> float:
            value = compute_total(name, [scores[int(place)] for place in places]).value
            return nan if value is None else value

        return bootstrap(range(len(scores)), self.groups, statistic=number, draws=_BOOTSTRAP_DRAWS, seed=seed)

    @property
    def trials(self) -> Sequence[Trials]:
        """The results of k trials, for k = 1, 2, ..., if samples are trials of tasks that succeed or fail.

        The group of a sample is its task. Only scored trials count; a task may have none.
        """
        if not self._trials:
            self._trials = (self._all_trials(),)
        return self._trials[0]

    def _all_trials(self) -> Sequence[Trials]:
        if (groups := self.groups) is None or not set(self._values) <= {0.0, 1.0}:
            return []

        made, succeeded = Counter(groups), Counter[Hashable]()
        made.update(dict.fromkeys(self._unscored, 0))
        for group, value in zip(groups, self._values, strict=True):
            succeeded[group] += value == 1
        tasks = [(times, succeeded[group]) for group, times in made.items()]
        most = min(max(made.values(), default=0), _TRIALS_SHOWN)
        ks = range(1, most + 1) if most > 1 else ()
        return [Trials(k, mean_over_tasks(pass_at_k, tasks, k), mean_over_tasks(pass_hat_k, tasks, k)) for k in ks]

    @property
    def value(self) -> float | None:
        """The aggregate of the scored samples; ``None`` if there are none, or if it is undefined."""
        return None if (overall := self.overall) is None else overall.value

    def coverage(self) -> str:
        """Return how many samples the number covers, and the statuses of the others."""
        classes = {"failed": f" ({format_counts(self.errors)})" if self.errors else ""}
        others = [f"{self.counts[one]} {one}{classes.get(one, '')}" for one in UNSCORED_STATUSES if self.counts[one]]
        others += [f"{self.qualifier}{self.missing} missing"] if self.missing else []
        return f"n={self.counts['scored']} of {self.qualifier}{self.total}{'; ' if others else ''}{', '.join(others)}"

    def cost(self) -> str:
        """Return how many judge replies were needed and what they cost."""
        tokens = "tokens unknown" if self.tokens is None else f"{self.tokens:,} tokens"
        cost = "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        prices = f" at the prices of {' and '.join(sorted(self.price_lists))}" if self.price_lists else ""
        return f"{self.requests} judge requests, {self.cached} from cache, {tokens}, {cost}{prices}"

    def parts(self) -> Iterator[str]:
        """Yield the number with its coverage, the cost of its judges, and their audit status."""
        yield str(self)
        if self.requests + self.cached:
            yield self.cost()
        if self.audited:
            yield self.audited if self.audited.isprintable() else ascii(self.audited)

    def notes(self) -> Iterator[str]:
        """Yield notes: what the number is if not a mean, counts of labels, models that changed, warnings."""
        overall = self.overall
        if overall is not None and overall.name != "mean":
            figures = ", ".join(f"{_one_line(name)} {_figure(value)}" for name, value in overall.metrics.items())
            yield "; ".join(filter(None, (overall.name, figures, overall.note)))
        if shares := self.label_shares():
            yield shares
        if drawn := self._repeated:
            yield (
                f"repeats: {drawn['made'] / drawn['samples']:.1f} of at most {drawn['most'] / drawn['samples']:.0f} per sample; "
                f"{drawn['saved']:,} requests saved"
            )
        if self.damaged_samples:
            rows, samples = (
                count_text(len(self.damaged_samples), "damaged row"),
                join_limited(self.damaged_samples, _SAMPLES_SHOWN, ", "),
            )
            yield f"{rows} left out: {samples}; judgekit resume repeats these scores"
        if self.lost_calls:
            yield "the cost of repeated scores is damaged, so tokens and cost are unknown"
        if self.unscored_requests:
            yield f"{count_text(self.unscored_requests, 'request')} led to no stored score: stopped or repeated"
        yield from self.answers.notes()
        for warning, times in self.warnings.most_common(_WARNINGS_SHOWN):
            yield f"{times} with a warning: {warning}"

    def unscored_reasons(self) -> Iterator[tuple[str, str]]:
        """Yield how many samples were not scored and why, such as ``("306 skipped", "not_applicable")``.

        For each status, these are the three most common reasons, and the number of samples with another one.
        """
        for status in UNSCORED_STATUSES:
            common = self.reasons.get(status, Counter[str]()).most_common(_REASONS_SHOWN)
            for reason, times in common:
                yield f"{times:,} {status}", reason
            if more := self.counts[status] - sum(times for _, times in common):
                yield f"{more:,} {status}", "other reasons"

    def label_shares(self) -> str:
        """Return how often each label was given, most frequent first; empty if the mean says as much."""
        if not self._graded:
            return ""
        of = self.labels.total()
        given = (f"{quoted_name(label)} {times} ({times / of:.0%})" for label, times in self.labels.most_common())
        return f"of {of}, {join_limited(given, _LABELS_SHOWN, ', ')}"

    def __str__(self) -> str:
        value = "none" if (number := self.value) is None else f"{number:.2f}"
        return f"{value} ({self.coverage()})"


UNSCORED_STATUSES = STATUSES[1:]
_QUALIFIERS = ("", "about ", "at least ")


@lru_cache(4_096)
def _group_hash(group: str) -> int:
    """Return the hash of a group, which is never that of no group."""
    return text_hash(group) or 1


def _recorded_number(value: str) -> float | None:
    """Return the finite number of a label's text, with 1 for True; ``None`` if it is none."""
    try:
        number = float({"True": "1", "False": "0"}.get(value, value))
    except ValueError:
        return None
    return number if isfinite(number) else None


def _one_line(name: str) -> str:
    """Return a name or a reason on one line, since both may come from recordings."""
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= _NAME_SHOWN else f"{name[: _NAME_SHOWN - 3]}..."


def _figure(value: float | None) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.1 or not value else f"{value:#.3g}"


def format_counts(counts: Counter[str]) -> str:
    """Return how many there are of each, most frequent first."""
    return ", ".join(f"{times} {name}" for name, times in counts.most_common())


@dataclass
class Summary:
    """A summary with one line for each scorer, in the order of their first scores.

    Attributes:
        unmerged_slices: The names of slices that were left out when this summary was merged, since one of the parts may
            not have counted all of its samples.
    """

    scorers: dict[str, ScorerSummary] = field(default_factory=dict[str, ScorerSummary])
    unmerged_slices: set[str] = field(default_factory=set[str])
    _slices: "dict[str, dict[str, Summary] | None]" = field(
        default_factory=dict[str, "dict[str, Summary] | None"], repr=False
    )

    @classmethod
    def merged(cls, parts: "Iterable[Summary]") -> "Summary":
        """Return the summary of all samples from the summaries of parts of them, such as shards of a run.

        The numbers and intervals are those of a summary of all rows, and so are the slices, except for
        ``unmerged_slices``. The parts must have no samples in common, and be given in the order of the samples.

        Raises:
            ConfigError: They are of different scorers.
        """
        merged, names = cls(), None
        for part in parts:
            if names not in (None, [*part.scorers]):
                raise ConfigError(f"summaries of different scorers cannot be merged: {names} and {[*part.scorers]}")
            names = [*part.scorers]
            merged._merge(part)
        return merged

    def _merge(self, part: "Summary") -> None:
        for line in part:
            self.scorers.setdefault(line.scorer, ScorerSummary(line.scorer, line.signature)).merge(line)
        self.unmerged_slices |= part.unmerged_slices
        if len(part._slices) == _NAMES_SLICED:  # it may have left out names
            unknown = {name for name, values in self._slices.items() if values is not None} - part._slices.keys()
            self.unmerged_slices |= unknown
            self._slices.update(dict.fromkeys(unknown))
        for name, values in part._slices.items():
            if name not in self._slices and len(self._slices) == _NAMES_SLICED:
                continue
            known = self._slices.setdefault(name, {})
            if known is None or values is None or len(known.keys() | values.keys()) > _SLICES:
                self._slices[name] = None
                continue
            for value, summary in values.items():
                known.setdefault(value, Summary())._merge(summary)

    def add(self, row: Row | CountedRow) -> None:
        """Count one score."""
        score, packed = row.score, None
        if isinstance(score, Score) and score.value is not None and score.aggregate != "mean":
            packed = PackedScores.pack(score)
        self._count(row, packed)
        if isinstance(score, Score):
            self.scorers[score.scorer].add_reason(score)
        if row.domain is not None:
            self._slice("domain", row.domain, row, packed)
        for name, value in row.labels.items():
            if name != "domain" or row.domain is None:  # a sample must not count twice
                self._slice(name, str(value), row, packed)

    def _count(self, row: Row | CountedRow, packed: bytes | None) -> None:
        if (line := self.scorers.get(row.scorer)) is None:
            line = self.scorers[row.scorer] = ScorerSummary(row.scorer)
        line.add(row, packed)

    def _slice(self, name: str, value: str, row: Row | CountedRow, packed: bytes | None) -> None:
        if name not in self._slices and len(self._slices) == _NAMES_SLICED:
            return
        values = self._slices.setdefault(name, {})
        if values is not None and value not in values and len(values) == _SLICES:
            values = self._slices[name] = None
        if values is not None:
            values.setdefault(value, Summary())._count(row, packed)

    @property
    def slices(self) -> "Mapping[str, Mapping[str, Summary]]":
        """Summaries of parts of the samples, by domain and by each label.

        Names with one value or with too many are left out, and so are names after the first hundred.
        """
        return {name: values for name, values in self._slices.items() if values is not None and len(values) > 1}

    @property
    def used_judge(self) -> bool:
        """Whether any judge answered, including from a cache."""
        return any(line.requests or line.cached for line in self)

    @property
    def prices(self) -> str:
        """The lists behind the costs, such as ``prices: litellm 1.106.2``; empty if there are none."""
        lists = sorted({one for line in self for one in line.price_lists})
        return f"prices: {', '.join(lists)}" if lists else ""

    @property
    def imported(self) -> str:
        """The means, or most frequent values, of labels that came with the recordings; empty if there are none.

        Labels with more than 50 values are left out, and so are names after the first hundred.
        """
        found: list[str] = []
        for name, parts in self._slices.items():
            if name == "domain" or parts is None:
                continue
            counts = {value: max((line.total for line in part), default=0) for value, part in parts.items()}
            numbers = {value: _recorded_number(value) for value in counts}
            n = sum(counts.values())
            if None not in numbers.values():
                mean = sum((numbers[value] or 0.0) * count for value, count in counts.items()) / n
                said = f"mean {mean:.3f}"
            else:
                most = sorted(counts.items(), key=lambda one: -one[1])[:_NAMED]
                said = ", ".join(f"{quoted_name(value)} {count / n:.0%}" for value, count in most)
            found.append(f"{_one_line(name)} {said} (n={n:,})")
        return f"imported with the samples: {join_limited(found, _RECORDED)}" if found else ""

    def __iter__(self) -> Iterator[ScorerSummary]:
        return iter(self.scorers.values())

    def __getitem__(self, scorer: str) -> ScorerSummary:
        return self.scorers[scorer]

    def __str__(self) -> str:
        width = max(map(len, self.scorers), default=0)
        lines = [f"{line.scorer:<{width}}  {'  '.join(line.parts())}" for line in self]
        for line in self:
            lines += [f"{line.scorer}: {told}" for told in line.notes()]
            lines += [f"{line.scorer}: {times}: {_one_line(reason)}" for times, reason in line.unscored_reasons()]
        if names := sorted(map(_one_line, self.unmerged_slices)):
            lines.append(
                f"slices left out, since a part has too many labels to count all: {join_limited(names, _NAMED)}"
            )
        return "\n".join(lines) or "no scores"

"""Numbers with their intervals: an estimate, and the total of a scorer's values with the results of repeated trials."""
# ruff: noqa: SLF001 - values merge with others of their class

from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import fsum, nan
from typing import TYPE_CHECKING, NamedTuple

from judgekit.aggregates.total import PackedScores, Total, compute_total
from judgekit.runs.hashes import text_hash
from judgekit.stats.trials import TaskMean, mean_over_tasks, pass_at_k, pass_hat_k
from judgekit.stats.wilson import Interval, wilson
from judgekit.traces.message import FrozenModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MEANS = ("mean", "within_budget")  # aggregates that are the mean of the values
_BOOTSTRAP_DRAWS = 1_000
_TRIALS_SHOWN = 8
_REDRAWN = 5_000  # scores; redrawing more takes minutes if their aggregate is not a mean
_UNGROUPED = 0


class Estimate(FrozenModel):
    """A number with its 95 % interval.

    ``value`` is ``None`` if the number is undefined; ``low`` and ``high`` are ``None`` if there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""

    @classmethod
    def of(cls, value: float | None, interval: "Interval | None" = None) -> "Estimate":
        """Return a figure from a number and its interval, if it has one."""
        if value is None or interval is None:
            return cls(value=value)
        return cls(value=value, low=interval.low, high=interval.high, method=interval.method)

    @classmethod
    def mean(cls, values: Sequence[float], groups: Sequence[str | None] | None = None) -> "Estimate":
        """Return the mean of values in [0, 1] with its interval; undefined if there are no values."""
        from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

        return cls.of(fsum(values) / len(values), mean_interval(values, groups)) if values else cls(value=None)

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        bounds = "" if self.low is None or self.high is None else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{bounds}"


def _short(number: float) -> str:
    """Return a number with two decimals, or up to four to tell it from 1, and no leading zero: ``.71``, ``.997``."""
    texts = (f"{number:.{digits}f}" for digits in (2, 3, 4))
    text = next((text for text in texts if abs(float(text)) != 1), f"{number:.2f}")
    return text.replace("0.", ".", 1) if abs(number) < 1 else text


class Trials(NamedTuple):
    """The results of k trials of a task: that any of them succeeds (pass@k), and that all of them do (pass^k)."""

    k: int
    pass_at_k: TaskMean
    pass_hat_k: TaskMean


@dataclass
class ScoredValues:
    """The values of scored samples, added one by one, and what is computed from them.

    Only what the number needs is kept, to save memory in long runs: 16 bytes for a mean, and otherwise the packed score.

    Attributes:
        values: The values of the scored samples.
    """

    values: "array[float]" = field(default_factory=lambda: array("d"), init=False, repr=False)
    _groups: "array[int]" = field(default_factory=lambda: array("q"), init=False, repr=False)
    _unscored_groups: set[int] = field(default_factory=set[int], init=False, repr=False)
    _scores: dict[str, PackedScores] = field(default_factory=dict[str, PackedScores], init=False, repr=False)

    def add_value(self, value: float, group: str | None, aggregate: str, packed: bytes | None) -> None:
        """Add a value with the group of its sample. Unless the aggregate is the mean, its packed score is needed too."""
        self._forget()
        self.values.append(value)
        self._groups.append(_UNGROUPED if group is None else _group_hash(group))
        if packed is not None:
            self._scores.setdefault(aggregate, PackedScores()).append(packed)

    def add_unscored_group(self, group: str) -> None:
        """Count a group of which a sample was not scored."""
        self._forget()
        self._unscored_groups.add(_group_hash(group))

    def add_values(self, other: "ScoredValues") -> None:
        """Add the values of other samples."""
        self._forget()
        self.values.extend(other.values)
        self._groups.extend(other._groups)
        self._unscored_groups |= other._unscored_groups
        for name, scores in other._scores.items():
            self._scores.setdefault(name, PackedScores()).extend(scores)

    def _forget(self) -> None:
        """Forget what was computed."""
        for name in ("overall", "interval", "trials"):
            self.__dict__.pop(name, None)

    @cached_property
    def overall(self) -> Total | None:
        """The total of the values; ``None`` if there are none."""
        if not (names := self._aggregates()):
            return None
        if len(names) > 1:
            return Total(None, "undefined", f"its scores have different aggregates: {', '.join(names)}")
        if names == ["mean"]:
            return Total(fsum(self.values) / len(self.values), "mean")
        return compute_total(names[0], self._scores[names[0]])

    def _aggregates(self) -> Sequence[str]:
        packed = sum(map(len, self._scores.values()))
        return [*self._scores, *(["mean"] if packed < len(self.values) else [])]

    @property
    def groups(self) -> Sequence[Hashable] | None:
        """A key for the group of each value, if samples have groups. A sample without a group is one by itself."""
        if not any(self._groups):  # all are ungrouped
            return None
        return [(index,) if group == _UNGROUPED else group for index, group in enumerate(self._groups)]

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % confidence interval of a mean.

        ``None`` if there are too few values, or if the number is not a mean: `bootstrap` gives its interval.
        """
        if len(names := self._aggregates()) != 1 or names[0] not in _MEANS:
            return None
        groups = self.groups
        if groups is None and set(self.values) <= {0.0, 1.0}:
            return wilson(self.values.count(1.0), len(self.values))

        from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

        return mean_interval(self.values, groups)

    def bootstrap(self, seed: int = 0) -> Interval | None:
        """Return the 95 % confidence interval of the number, whatever it is, by the bootstrap.

        Returns:
            ``None`` if there are too few values, or more than 5,000 and the number is not a mean.
        """
        from judgekit.stats.intervals import bootstrap  # noqa: PLC0415

        if len(names := self._aggregates()) != 1:
            return None
        if names == ["mean"]:
            return bootstrap(self.values, self.groups, seed=seed)
        [(name, scores)] = self._scores.items()
        if len(scores) > _REDRAWN:
            return None

        def number(indexes: "NDArray[np.float64]") -> float:
            value = compute_total(name, [scores[int(index)] for index in indexes]).value
            return nan if value is None else value

        return bootstrap(range(len(scores)), self.groups, statistic=number, draws=_BOOTSTRAP_DRAWS, seed=seed)

    @cached_property
    def trials(self) -> Sequence[Trials]:
        """The results of k trials, for k = 1, 2, ..., if samples are trials of tasks that succeed or fail.

        The group of a sample is its task. Only scored trials count; a task may have none.
        """
        if (groups := self.groups) is None or not set(self.values) <= {0.0, 1.0}:
            return []
        scored, succeeded = Counter(groups), Counter[Hashable]()
        scored.update(dict.fromkeys(self._unscored_groups, 0))
        for group, value in zip(groups, self.values, strict=True):
            succeeded[group] += value == 1
        tasks = [(times, succeeded[group]) for group, times in scored.items()]
        most = min(max(scored.values(), default=0), _TRIALS_SHOWN)
        ks = range(1, most + 1) if most > 1 else ()
        return [Trials(k, mean_over_tasks(pass_at_k, tasks, k), mean_over_tasks(pass_hat_k, tasks, k)) for k in ks]


@lru_cache(4_096)
def _group_hash(group: str) -> int:
    """Return the hash of a group, which is never that of no group."""
    return text_hash(group) or 1

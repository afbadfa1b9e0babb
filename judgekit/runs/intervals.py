"""Numbers with their intervals: an estimate, and the total of a scorer's values with the results of repeated trials."""

from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import fsum, nan
from typing import TYPE_CHECKING, NamedTuple

from judgekit.aggregates.total import PackedScores, Total, compute_total
from judgekit.runs.hashes import text_hash
from judgekit.runs.rows import Row
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
_ALONE = 0


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
    _units: dict[int, int] = field(default_factory=dict[int, int], init=False, repr=False)
    _unscored_groups: dict[Hashable, Hashable] = field(default_factory=dict[Hashable, Hashable], init=False, repr=False)
    _scores: dict[str, PackedScores] = field(default_factory=dict[str, PackedScores], init=False, repr=False)

    def add_value(self, row: Row, value: float, packed: bytes | None) -> None:
        """Add the value of a row. Unless the aggregate is the mean, its packed score is needed too."""
        self._forget()
        self.values.append(value)
        if row.unit != row.group:
            self._units[len(self._groups)] = _hash(row.unit)
        self._groups.append(_hash(row.group))
        if packed is not None:
            self._scores.setdefault(row.score.aggregate, PackedScores()).append(packed)

    def add_unscored_sample(self, row: Row) -> None:
        """Count the group of a sample that was not scored."""
        if row.group is not None:
            self._forget()
            self._unscored_groups[_hash(row.group)] = _hash(row.unit)

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
    def units(self) -> Sequence[Hashable] | None:
        """A key for the unit of each value, if samples have any; see `Row`."""
        if not self._units and not any(self._groups):
            return None
        return _keys([self._units.get(index, group) for index, group in enumerate(self._groups)])

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % confidence interval of a mean.

        ``None`` if there are too few values, or if the number is not a mean: `bootstrap` gives its interval.
        """
        if len(names := self._aggregates()) != 1 or names[0] not in _MEANS:
            return None
        units = self.units
        if units is None and set(self.values) <= {0.0, 1.0}:
            return wilson(self.values.count(1.0), len(self.values))

        from judgekit.stats.intervals import mean_interval  # noqa: PLC0415 - numpy takes a while

        return mean_interval(self.values, units)

    def bootstrap(self, seed: int = 0) -> Interval | None:
        """Return the 95 % confidence interval of the number, whatever it is, by the bootstrap.

        Returns:
            ``None`` if there are too few values, or more than 5,000 and the number is not a mean.
        """
        from judgekit.stats.intervals import bootstrap  # noqa: PLC0415

        if len(names := self._aggregates()) != 1:
            return None
        if names == ["mean"]:
            return bootstrap(self.values, self.units, seed=seed)
        [(name, scores)] = self._scores.items()
        if len(scores) > _REDRAWN:
            return None

        def number(indexes: "NDArray[np.float64]") -> float:
            value = compute_total(name, [scores[int(index)] for index in indexes]).value
            return nan if value is None else value

        return bootstrap(range(len(scores)), self.units, statistic=number, draws=_BOOTSTRAP_DRAWS, seed=seed)

    @cached_property
    def trials(self) -> Sequence[Trials]:
        """The results of k trials, for k = 1, 2, ..., if samples are trials of tasks that succeed or fail.

        The group of a sample is its task. Only scored trials count; a task may have none. In intervals, tasks that share
        recordings count once.
        """
        if not any(self._groups) or not set(self.values) <= {0.0, 1.0}:
            return []
        groups = _keys(self._groups)
        units = {**self._unscored_groups, **dict(zip(groups, self.units or groups, strict=True))}
        scored, succeeded = Counter(groups), Counter[Hashable]()
        scored.update(dict.fromkeys(self._unscored_groups, 0))
        for group, value in zip(groups, self.values, strict=True):
            succeeded[group] += value == 1
        tasks = [(times, succeeded[group], units[group]) for group, times in scored.items()]
        most = min(max(scored.values(), default=0), _TRIALS_SHOWN)
        ks = range(1, most + 1) if most > 1 else ()
        return [Trials(k, mean_over_tasks(pass_at_k, tasks, k), mean_over_tasks(pass_hat_k, tasks, k)) for k in ks]


def _keys(hashes: Sequence[int]) -> Sequence[Hashable]:
    """Return a key for each hash, with one of its own for each sample that is one by itself."""
    return [(index,) if name == _ALONE else name for index, name in enumerate(hashes)]


@lru_cache(4_096)
def _hash(name: str | None) -> int:
    """Return the hash of a group or unit, which is never that of none."""
    return _ALONE if name is None else text_hash(name) or 1

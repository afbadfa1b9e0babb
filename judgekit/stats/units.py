"""The independent units of a set of values: single values, or groups such as trials of one task."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Groups: TypeAlias = Sequence[Hashable] | NDArray[np.integer]
"""The group of each value: integers or other hashable keys; ``None`` is a value on its own."""

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Units:
    """Values with their group codes, from 0; ``codes`` is ``None`` if every group has one value."""

    values: NDArray[np.float64]
    codes: NDArray[np.intp] | None

    @classmethod
    def of(cls, values: ArrayLike, groups: Groups | None = None) -> Self:
        """Return the units of values and their groups.

        Raises:
            ValueError: The values are not a list of finite numbers, or the groups do not match them.
        """
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError(f"expected a list of finite numbers, found {array!r}")
        if groups is None:
            return cls(array, None)
        if len(groups) != len(array):
            raise ValueError(f"expected one group for each of {len(array):,} values, found {len(groups):,}")
        codes = _codes(groups)
        return cls(array, None if np.bincount(codes).max(initial=0) < 2 else codes)

    def __len__(self) -> int:
        return len(self.values) if self.codes is None else int(self.codes.max()) + 1

    @property
    def effective_count(self) -> float:
        """The number of units of equal size whose mean would be as uncertain: n**2 / the sum of squared sizes (Kish 1965)."""
        if self.codes is None:
            return float(len(self.values))
        return len(self.values) ** 2 / float(np.square(np.bincount(self.codes)).sum())

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of ``values``, which are parallel to `values`, in each unit."""
        return values if self.codes is None else np.asarray(np.bincount(self.codes, weights=values), np.float64)

    def standard_error(self) -> float | None:
        """Return the standard error of the mean of all values; ``None`` if there are fewer than two units.

        ``se**2 = G / (G - 1) * S / n**2``, where S is the sum over the G units of the square of the sum of a unit's
        deviations from the mean: the sandwich estimator for a constant (Liang and Zeger 1986,
        https://doi.org/10.1093/biomet/73.1.13) with the factor called CR1, G / (G - 1) * (n - 1) / (n - K) where K = 1
        (Cameron and Miller 2015, https://doi.org/10.3368/jhr.50.2.317). With this factor, groups of one value give s / sqrt(n), the ordinary
        standard error. Units are assumed to be independent; within a group, values may depend on each other in any way.
        On average it is too small for few groups, say under 20, or groups of very different sizes.

        Rounding errors, up to 1e-12 or that fraction of the greatest value, give exactly 0.
        """
        units = len(self)
        if units < 2:
            return None
        sums = self.sums(self.values - self.values.mean())
        error = float(np.sqrt(units / (units - 1) * np.square(sums).sum()) / len(self.values))
        return error if error > _ROUNDING * max(1.0, float(np.abs(self.values).max())) else 0.0


def check_within(values: NDArray[np.float64], least: float, most: float, what: str = "values") -> None:
    """Check that all values are within bounds.

    Raises:
        ValueError: A value is less than ``least``, greater than ``most``, or NaN.
    """
    if len(outside := values[~((values >= least) & (values <= most))]):
        raise ValueError(f"expected {what} in [{least:g}, {most:g}], found {outside[0]!s}")


def check_same_length(a: NDArray[Any], b: NDArray[Any]) -> None:
    """Check that two arrays are lists of the same length.

    Raises:
        ValueError: They are not.
    """
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"expected two lists of one length, found {a.shape} and {b.shape}")


def _codes(groups: Groups) -> NDArray[np.intp]:
    if isinstance(groups, np.ndarray) and np.issubdtype(groups.dtype, np.integer):
        return np.unique(groups, return_inverse=True)[1]
    numbers: dict[Hashable, int] = {}
    codes = np.fromiter(
        (-1 if group is None else numbers.setdefault(group, len(numbers)) for group in groups), np.intp, len(groups)
    )
    alone = codes < 0
    codes[alone] = np.arange(len(numbers), len(numbers) + alone.sum())
    return codes

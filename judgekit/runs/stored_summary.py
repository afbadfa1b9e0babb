"""The numbers of a run that its file keeps, so that they can be shown without reading its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from judgekit.runs.effort import EffortTotals
from judgekit.runs.summary import Summary

SUMMARY_VERSION = 2
"""Raised when a number of a summary is computed in another way, or a summary has other fields."""

RowSums: TypeAlias = Sequence[tuple[int, int]]
"""The number of rows and the sum of their checksums, by table."""
Histograms: TypeAlias = Mapping[str, Sequence[int]]
"""The number of values in each tenth of [0, 1], by scorer."""


@dataclass(frozen=True)
class StoredSummary:
    """The numbers of a run, without the values behind them.

    Attributes:
        version: The version of judgekit that computed them; another one does not use them.
        row_sums: The rows that they were computed from.
        summary: The summary.
        effort: The effort of the conversations.
        histograms: The histograms of the values.
    """

    version: str
    row_sums: RowSums
    summary: Summary
    effort: EffortTotals
    histograms: Histograms

    @classmethod
    def of(
        cls, row_sums: RowSums, summary: Summary, effort: EffortTotals, histograms: Histograms
    ) -> "StoredSummary | None":
        """Return the numbers of a run; ``None`` if they cannot be stored."""
        is_storable = all(line.is_storable for line in summary)
        return cls(_version(), row_sums, summary, effort, histograms) if is_storable else None

    @classmethod
    def from_json(cls, text: bytes) -> "StoredSummary | None":
        """Return stored numbers; ``None`` if another version of judgekit computed them."""
        try:
            found = _adapter().validate_json(text)
        except ValidationError:
            return None
        return found if found.version == _version() else None

    def to_json(self) -> bytes:
        """Return the numbers as JSON."""
        return _adapter().dump_json(self)


def _version() -> str:
    return f"{version('judgekit')}/{SUMMARY_VERSION}"


@cache
def _adapter() -> TypeAdapter[StoredSummary]:
    return TypeAdapter(StoredSummary)

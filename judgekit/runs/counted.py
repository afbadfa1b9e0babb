"""Rows of a run in short: what summaries, lists and comparisons read of them. A million of these are made in seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judgekit.runs.hashes import SampleHashes
from judgekit.runs.rows import LabelValue
from judgekit.score import JudgeCall, Score, ScoreStatus


class PlainScore(NamedTuple):
    """A scored score without judge calls whose aggregate is the mean, in short."""

    scorer: str
    value: float | None
    label: str | None
    warnings: Sequence[str]
    status: ScoreStatus = "scored"
    error: str | None = None
    calls: Sequence[JudgeCall] = ()
    aggregate: str = "mean"


_UNKNOWN = SampleHashes()


@dataclass(slots=True)
class CountedRow:
    """A row with what summaries, lists and comparisons read; see `judgekit.runs.rows.Row`.

    ``usage`` is the `judgekit.runs.usage.ConversationUsage` of its sample as JSON. Of a damaged sample, only the
    number is known.
    """

    index: int
    sample_id: str
    score: PlainScore | Score
    group: str | None
    domain: str | None
    labels: Mapping[str, LabelValue]
    usage: str | None = None
    hashes: SampleHashes = _UNKNOWN

    @property
    def scorer(self) -> str:
        """The scorer's name."""
        return self.score.scorer

"""The scores that a run still lacks, looked up in its file."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from judgekit.follow_ups import FollowUpScorer
from judgekit.runs.store import RunStore
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer

_BLOCK = 128
"""The number of samples that are looked up at once."""


class MissingScores:
    """The scorers that have not scored a sample yet.

    Args:
        store: The store of the run.
        run: The number of the run.
        scorers: The scorers by their index in the run.
        retried: The statuses of scores to make again.
    """

    def __init__(
        self, store: RunStore, run: int, scorers: Mapping[int, Scorer], retried: Collection[ScoreStatus] = ()
    ) -> None:
        self._scorers = scorers

        @lru_cache(1)
        def scored(block: int) -> Mapping[int, Collection[int]]:
            first = block * _BLOCK
            return store.scored_by_sample(run, first, first + _BLOCK - 1, except_statuses=retried)

        self._scored = scored

    def of(self, number: int) -> Sequence[Scorer]:
        """Return the scorers that have to score the sample with this number; follow-ups again, if it gets other scores."""
        scored = self._scored(number // _BLOCK).get(number, ())
        missing = self._scorers.keys() - {*scored}
        again = {index for index, scorer in self._scorers.items() if missing and isinstance(scorer, FollowUpScorer)}
        return [scorer for index, scorer in self._scorers.items() if index in missing | again]

    def has_any(self, number: int) -> bool:
        """Return whether a scorer has to score the sample with this number."""
        return bool(self.of(number))

"""A scoring job: the scores of a run that are still missing, in a form that can be sent to other processes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import RunRecord
from judgekit.runs.runner import Task
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer
from judgekit.traces.sample import Sample

_BLOCK = 128
"""The number of samples that are looked up in the store at once, and that one process takes in a row."""


@dataclass(frozen=True)
class ScoringJob:
    """The missing scores of some scorers of a run.

    Attributes:
        path: The file of the run; ``None`` for a run in memory, whose job stays in this process.
        record: The run.
        scorer_indexes: The places of the scorers in the run.
        retried: The statuses of scores to retry.
        from_store: Whether the samples are read from the store instead of the run's files.
        is_new: Whether the run begins with this job. Its workers look for no scores, which can only be each other's.
        textless: Removes text from scores if the run keeps none, in the same way in all processes.
    """

    path: Path | None
    record: RunRecord
    scorer_indexes: Sequence[int]
    retried: Collection[ScoreStatus] = ()
    from_store: bool = False
    is_new: bool = False
    textless: TextRemover = field(default_factory=TextRemover)

    def samples(
        self, store: RunStore, problems: ReadingProblems, sample_filter: Callable[[int], bool]
    ) -> Iterator[tuple[int, Sample]]:
        """Return the samples of the run that are wanted, with their numbers."""
        if self.from_store:
            return store.conversations(self.record.number, sample_filter)
        return RunOptions.from_record(self.record).samples(problems, sample_filter, keeps_text=self.record.keeps_text)

    def tasks(
        self,
        store: RunStore,
        scorers: Sequence[Scorer],
        problems: ReadingProblems,
        claim: Callable[[int], bool] = lambda _: True,
        given: Iterator[tuple[int, Sample]] | None = None,
    ) -> Iterator[Task]:
        """Yield each sample with missing scores, with the scorers to make them.

        Args:
            store: The store of the run.
            scorers: The scorers at the places of this job.
            problems: Receives the records that cannot be read.
            claim: Returns whether this process is to score the block of samples with a number. It is called once for
                each block, in order.
            given: The samples, if they are given in Python.
        """
        is_new = self.is_new or store.is_empty(self.record.number, min(self.scorer_indexes))
        placed = list(zip(self.scorer_indexes, scorers, strict=True))

        is_claimed = cache(claim)

        @lru_cache(1)
        def done(block: int) -> dict[int, set[int]]:
            first = block * _BLOCK
            return store.scored_by_sample(self.record.number, first, first + _BLOCK - 1, except_statuses=self.retried)

        def missing(number: int) -> Sequence[Scorer]:
            block = number // _BLOCK
            if not is_claimed(block):
                return ()
            if is_new:
                return scorers
            there = done(block).get(number, ())
            return [scorer for place, scorer in placed if place not in there]

        samples = self.samples(store, problems, lambda number: bool(missing(number))) if given is None else given
        for number, sample in samples:
            if todo := missing(number):
                yield Task(number, sample, todo)

"""A scoring job: the scores of a run that are still missing, in a form that can be sent to other processes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import Problems
from judgekit.runs.rows import RunRecord
from judgekit.runs.runner import Task
from judgekit.runs.store import Store
from judgekit.runs.textless import Textless
from judgekit.score import Status
from judgekit.scoring import Scorer
from judgekit.traces.sample import Sample

_BLOCK = 512
"""Samples that are looked up in the store at once, and that one worker takes in a row."""


@dataclass(frozen=True)
class Shard:
    """Every ``of``-th block of samples, from the block ``number`` on."""

    number: int = 0
    of: int = 1


@dataclass(frozen=True)
class ScoringJob:
    """The missing scores of some scorers of a run.

    Attributes:
        path: The file of the run; ``None`` for a run in memory, whose job stays in this process.
        record: The run.
        places: The places of the scorers in the run.
        retried: The statuses of scores that are made again.
        from_store: Whether the samples are read from the store instead of the run's files.
        textless: Removes text from scores if the run keeps none, in the same way in all processes.
    """

    path: Path | None
    record: RunRecord
    places: Sequence[int]
    retried: Collection[Status] = ()
    from_store: bool = False
    textless: Textless = field(default_factory=Textless)

    def samples(self, store: Store, problems: Problems, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Sample]]:
        """Return the samples of the run that are wanted, with their numbers."""
        if self.from_store:
            return store.conversations(self.record.number, wanted)
        return RunOptions.of(self.record).samples(problems, wanted, keeps_text=self.record.keeps_text)

    def tasks(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        problems: Problems,
        shard: Shard = Shard(),
        given: Iterator[tuple[int, Sample]] | None = None,
    ) -> Iterator[Task]:
        """Yield each sample that lacks scores with the scorers that are to make them.

        Args:
            store: Where the run is kept.
            scorers: The scorers at the places of this job.
            problems: Receives what cannot be read.
            shard: The blocks of samples to look at.
            given: The samples, if they are given in Python.
        """
        missing = _Missing(self, store, scorers, shard)
        samples = given if given is not None else self.samples(store, problems, lambda number: bool(missing.of(number)))
        for number, sample in samples:
            if todo := missing.of(number):
                yield Task(number, sample, todo)


class _Missing:
    """Finds the scorers of a job that have not scored a sample yet, block by block."""

    def __init__(self, job: ScoringJob, store: Store, scorers: Sequence[Scorer], shard: Shard) -> None:
        self._job, self._store, self._shard = job, store, shard
        self._scorers = list(zip(job.places, scorers, strict=True))
        self._is_new = store.is_empty(job.record.number, min(job.places))
        self._block = -1
        self._done: dict[int, set[int]] = {}

    def of(self, number: int) -> Sequence[Scorer]:
        block = number // _BLOCK
        if block % self._shard.of != self._shard.number:
            return ()
        if block != self._block and not self._is_new:
            first = block * _BLOCK
            run, retried = self._job.record.number, self._job.retried
            self._done = self._store.done(run, first, first + _BLOCK - 1, but=retried)
        self._block = block
        done = self._done.get(number, ())
        return [scorer for place, scorer in self._scorers if place not in done]

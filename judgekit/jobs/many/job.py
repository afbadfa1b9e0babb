"""A scoring job: the scores of a run that are still missing, in a form that can be sent to other processes."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.jobs.missing import MissingScores
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import RunRecord
from judgekit.runs.runner import Task
from judgekit.runs.store import RunStore
from judgekit.runs.textless import TextRemover
from judgekit.score import ScoreStatus
from judgekit.scoring import Scorer
from judgekit.shards import Shard


@dataclass(frozen=True)
class ScoringJob:
    """The missing scores of some scorers of a run.

    Attributes:
        path: The file of the run; ``None`` for a run in memory, whose job stays in this process.
        record: The run.
        scorer_indexes: The indexes of the scorers in the run.
        retried: The statuses of scores to retry.
        from_store: Whether the samples are read from the store instead of the run's files.
        textless: Removes text from scores if the run keeps none, in the same way in all processes.
    """

    path: Path | None
    record: RunRecord
    scorer_indexes: Sequence[int]
    retried: Collection[ScoreStatus] = ()
    from_store: bool = False
    textless: TextRemover = field(default_factory=TextRemover)

    def tasks(
        self, store: RunStore, scorers: Sequence[Scorer], problems: ReadingProblems, shard: Shard
    ) -> Iterator[Task]:
        """Yield each sample of a shard that lacks scores, with the scorers to make them.

        Args:
            store: The store of the run.
            scorers: The scorers with the indexes of this job.
            problems: Receives the records that cannot be read.
            shard: The part of the samples to score.
        """
        number, options = self.record.number, RunOptions.from_record(self.record)
        parts = (
            Shard.parse(options.shard).count if options.shard else 1
        )  # the numbers in one of them leave the same rest
        missing = MissingScores(store, number, dict(zip(self.scorer_indexes, scorers, strict=True)), self.retried)

        def is_wanted(sample_number: int) -> bool:
            return sample_number // parts in shard and missing.has_any(sample_number)

        if self.from_store:
            samples = store.conversations(number, is_wanted)
        else:
            samples = options.samples(problems, is_wanted, keeps_text=self.record.keeps_text)
        for sample_number, sample in samples:
            if is_wanted(sample_number):
                yield Task(sample_number, sample, missing.of(sample_number))

"""The results of a run: one row for each score, read from the run's file."""

import hashlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from judgekit import registry
from judgekit.errors import count_text
from judgekit.runs.reader import ScoredSample
from judgekit.runs.rows import (
    Input,
    Row,
    RunDescription,
    RunRecord,
    SampleCount,
    ScorerRecord,
    ScorerResult,
)
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore, now
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary
from judgekit.runs.units import count_copies
from judgekit.runs.usage import UsageTotals
from judgekit.score import JudgeExchange, ScoreStatus
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.runs.audit_records import AuditStatus, AuditSubject
    from judgekit.runs.population import Population

_IDS_SHOWN = 5
_SILENT_SECONDS = 60
_DESCRIBED = 10_000  # samples that are drawn to describe all of them
_BINS = 10


Histograms: TypeAlias = Mapping[str, Sequence[int]]
"""The number of values in each tenth of [0, 1], by scorer."""


class _Counts(NamedTuple):
    """The numbers of a run."""

    summary: Summary
    usage: UsageTotals


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """The scores of a run, in the order of the samples and, within a sample, of the scorers.

    `judgekit.run` returns it, and `Run.stored` opens one that was kept. Iterating yields a `Row` for each score, and
    ``len`` is their number; they are read on demand. ``print`` shows the usage of the conversations and one line for
    each scorer.
    """

    store: RunStore
    record: RunRecord
    _populations: "dict[str, Population]" = field(default_factory=dict[str, "Population"], init=False)

    @classmethod
    def stored(
        cls, number: int | None = None, path: Path | str = DEFAULT_RUNS_PATH, *, allow_code: bool = False
    ) -> "Run":
        """Return a stored run by its number, or the last one.

        Args:
            number: The number of the run in its file, from 1; the last run if not given.
            path: The file of runs.
            allow_code: Whether to call the functions that stored scores name as their ``aggregate``, in this process.
                Otherwise, only those are called whose module this process or ``judgekit.toml`` names.

        Raises:
            StoreError: There is no such run, or the file cannot be read.
        """
        if allow_code:
            registry.allow_code()
        store = RunStore(path, read_only=True)
        return cls(store, store.record(number))

    @property
    def number(self) -> int:
        """The run's number in its file, from 1."""
        return self.record.number

    @property
    def description(self) -> RunDescription:
        """The name, the note and the tags that people gave it."""
        return self.store.description(self.number)

    @property
    def state(self) -> str:
        """``running``, ``interrupted`` (it was killed, and has said nothing for a minute), ``stopped`` or ``ended``."""
        if self.ended_at is not None:
            return "stopped" if self.stop_reason else "ended"
        last = self.store.stamped_at(self.number) or self.started_at
        return "running" if (now() - last).total_seconds() < _SILENT_SECONDS else "interrupted"

    @property
    def stop_reason(self) -> str:
        """Why the run ended before all samples were scored; empty if it did not."""
        return self.record.stop_reason

    @property
    def started_at(self) -> datetime:
        """When the run began."""
        return self.record.started_at

    @property
    def ended_at(self) -> datetime | None:
        """When the run ended; ``None`` while it is running or if it was interrupted."""
        return self.record.ended_at

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files that the run read."""
        return tuple(self.record.inputs)

    @property
    def scorers(self) -> tuple[ScorerRecord, ...]:
        """The scorers of the run."""
        return tuple(self.record.scorers)

    @cached_property
    def samples(self) -> SampleCount:
        """The number of samples to score, and whether that is exact, an estimate or a minimum."""
        stored = self.store.counts(self.record.number).samples
        return SampleCount(max(self.record.samples, stored), self.record.count_precision)

    @property
    def summary(self) -> Summary:
        """The summary of the scores, one line for each scorer, with the current audits of its judge."""
        return self._counts.summary.with_audits(self.audited) if self.has_judges else self._counts.summary

    @property
    def has_judges(self) -> bool:
        """Whether a judge gives the scores of any scorer."""
        return any(scorer.judged for scorer in self.record.scorers)

    @property
    def usage(self) -> UsageTotals:
        """The usage of the conversations that have a score: messages, tool calls, tokens, cost and time."""
        return self._counts.usage

    @property
    def histograms(self) -> Histograms:
        """For each scorer, the number of values in each tenth of [0, 1]."""
        return {line.scorer: _histogram(line.values) for line in self._counts.summary}

    @cached_property
    def _counts(self) -> "_Counts":
        """The summary and the usage, which are counted in one pass."""
        summary = Summary({scorer.name: ScorerSummary(scorer.name, scorer.signature) for scorer in self.record.scorers})
        usage = UsageTotals()
        for sample in self.store.scored_samples(self.record.number):
            for row in sample.rows:
                summary.add(row)
            if sample.usage is not None:
                usage.add(sample.usage)
        for scorer, calls in self.store.unscored_calls(self.record.number):
            if calls is None:
                summary[scorer].add_lost_calls()
            else:
                summary[scorer].add_unscored(calls)
        for line in summary:
            line.missing = self.samples.samples - line.total
            line.qualifier = self.samples.qualifier
            line.agents = tuple(usage.agents)
        return _Counts(summary, usage)

    def results(self) -> Sequence[ScorerResult]:
        """Return the result of each scorer."""
        results: list[ScorerResult] = []
        for line in self._counts.summary:
            low, high, *_ = line.interval or (None, None)
            scores = line.counts.total()
            results.append(ScorerResult(scores, line.counts["failed"], line.counts["scored"], line.value, low, high))
        return results

    @cached_property
    def duplicate_ids(self) -> tuple[str, ...]:
        """The ids that several samples share, so that their rows cannot be told apart by id."""
        return tuple(self.store.duplicate_ids(self.record.number))

    @cached_property
    def copies(self) -> int:
        """The number of samples whose recording another sample has too; trials of one task that are equal are none."""
        return count_copies(self.store.copied_recordings(self.record.number))

    @property
    def notes(self) -> Sequence[str]:
        """Notes for readers: those of its record, and how many samples are copies."""
        if not self.copies:
            return self.record.notes
        are = "is a copy of another" if self.copies == 1 else "are copies of others"
        return (
            *self.record.notes,
            f"{count_text(self.copies, 'sample')} {are}: in intervals, samples with the same recording count once",
        )

    @property
    def audits_folder(self) -> Path | None:
        """The folder of audit records, next to the run's file; ``None`` for a run in memory."""
        return None if self.store.path is None else self.store.path.parent / "audits"

    @property
    def recordings(self) -> str | None:
        """A hash of what the run read; ``None`` for samples from Python, which cannot be identified."""
        hashes = sorted({file.identity for file in self.inputs})
        return f"sha256:{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:16]}" if hashes else None

    @property
    def audits(self) -> "Mapping[str, AuditStatus]":
        """The audit status of each scorer that asks a judge."""
        judged = [scorer for scorer in self.record.scorers if scorer.judged]
        if not judged:
            return {}

        from judgekit.runs.audit_records import AuditStatus, audit_status  # noqa: PLC0415 - only judges are audited

        folder = self.audits_folder
        return {
            scorer.name: AuditStatus() if folder is None else audit_status(self.audit_subject(scorer), folder, now())
            for scorer in judged
        }

    def audit_subject(self, scorer: ScorerRecord) -> "AuditSubject":
        """Return one of the run's judged scorers, to be compared with audit records."""
        from judgekit.runs.audit_records import AuditSubject  # noqa: PLC0415

        line = self._counts.summary[scorer.name]
        return AuditSubject(
            scorer,
            self.record.number,
            self.started_at,
            self.recordings,
            line.answers.models,
            line.answers.fingerprints,
            partial(self.population, scorer.name),
        )

    def population(self, scorer: str) -> "Population":
        """Return a description of the samples that a scorer scored, or of 10,000 of them drawn at random."""
        if scorer not in self._populations:
            from judgekit.runs.population import describe_population  # noqa: PLC0415

            line, draw = self._counts.summary[scorer], random.Random(0)  # noqa: S311 - a draw, not a secret
            scores = line.counts.total()
            numbers = draw.sample(range(scores), _DESCRIBED) if scores > _DESCRIBED else None
            rows = list(self.rows(scorer=scorer, statuses=["scored"], numbers=numbers))
            described = {row.index for row in rows}
            usages = {
                number: usage for number, usage in self.store.usage_by_sample(self.record.number) if number in described
            }
            count = len(line.values)
            exact = {"samples": count, "mean": fsum(line.values) / count if count else None}
            self._populations[scorer] = describe_population(rows, usages).model_copy(update=exact)
        return self._populations[scorer]

    @property
    def audited(self) -> Mapping[str, str]:
        """The audit status of each judge in words, such as ``audited: kappa .71 [.58, .82], n=120``."""
        return {scorer: str(status) for scorer, status in self.audits.items()}

    def rows(
        self,
        *,
        scorer: str | None = None,
        statuses: Collection[ScoreStatus] | None = None,
        numbers: Collection[int] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows that meet all conditions, in order; without conditions, all rows.

        Args:
            scorer: The name of a scorer.
            statuses: Some of ``scored``, ``skipped``, ``failed`` and ``abstained``.
            numbers: Numbers of samples in the run, from 0; see `Row.index`.
        """
        return self.store.rows(self.record.number, scorer=scorer, statuses=statuses, numbers=numbers)

    def scored_samples(self) -> Iterator[ScoredSample]:
        """Yield the samples that have a score, in order, each with its rows."""
        return self.store.scored_samples(self.record.number)

    def lowest(self, scorer: str, limit: int) -> Iterator[Row]:
        """Yield the rows with the lowest values of a scorer, lowest first.

        Args:
            scorer: The name of the scorer.
            limit: The maximum number of rows.
        """
        return self.store.lowest(self.record.number, scorer, limit)

    def highest(self, scorer: str, limit: int) -> Iterator[Row]:
        """Yield the rows with the highest values of a scorer, highest first.

        Args:
            scorer: The name of the scorer.
            limit: The maximum number of rows.
        """
        return self.store.lowest(self.record.number, scorer, limit, highest=True)

    def conversations(self, sample_filter: Callable[[int], bool] = lambda _: True) -> Iterator[tuple[int, Sample]]:
        """Yield the wanted samples with their numbers, in order. A run with ``store_text = false`` has none.

        Damaged samples are left out, and the log names them.

        Args:
            sample_filter: Whether to yield the sample with a number; by default, all are yielded.
        """
        return self.store.conversations(self.record.number, sample_filter)

    def exchanges(self) -> Iterator[tuple[int, str, int, JudgeExchange]]:
        """Yield the requests to judges with their replies, which are kept if the conversations are.

        Each comes with its sample's number, its scorer, and its position in ``score.calls``. Damaged ones are left out,
        and the log names them.
        """
        return self.store.exchanges(self.record.number)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas data frame, with the columns of the CSV. A score without a value is ``NaN``.

        Raises:
            ConfigError: pandas is not installed.
        """
        from judgekit.runs.frames import to_pandas  # noqa: PLC0415 - seldom needed

        return to_pandas(self)

    def __iter__(self) -> Iterator[Row]:
        return self.rows()

    def __len__(self) -> int:
        return self.store.count(self.record.number)

    def __repr__(self) -> str:
        return f"Run(number={self.record.number}, rows={len(self)}, stop_reason={self.stop_reason!r})"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 - notebooks call it
        printer.text(str(self))

    def __str__(self) -> str:
        return "\n".join(filter(None, (str(self.usage), str(self.summary), *self._notes())))

    def _notes(self) -> Iterator[str]:
        """Yield notes that belong to the numbers."""
        yield from self.notes
        if unfinished := self.record.unfinished:
            yield f"{unfinished}: only the scores so far are counted"
        if self.duplicate_ids:
            shown = ", ".join(map(repr, islice(self.duplicate_ids, _IDS_SHOWN)))
            yield f"{count_text(len(self.duplicate_ids), 'id')} used by more than one sample: {shown}"


def _histogram(values: Sequence[float]) -> Sequence[int]:
    histogram = [0] * _BINS
    for value in values:
        histogram[min(int(value * _BINS), _BINS - 1)] += 1
    return histogram

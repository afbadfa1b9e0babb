"""The results of a run: a row for each score, read from where the run is kept."""

import hashlib
import logging
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.errors import number_of
from judgekit.runs.conduct import Efforts
from judgekit.runs.population import Population, population_of
from judgekit.runs.receipts import Audited, Judged, load
from judgekit.runs.rows import Damaged, Input, Row, RunRecord, SampleCount, ScorerRecord
from judgekit.runs.store import RUNS, Store
from judgekit.runs.summary import Line, Summary
from judgekit.score import Exchange, Status
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_log = logging.getLogger("judgekit")

_IDS_SHOWN = 5
_DESCRIBED = 10_000  # samples that are drawn to describe all of them


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """The scores of a run: in the order of the samples, and within a sample in the order of the scorers.

    They are read as they are asked for. ``print`` shows what the conversations took, and a line a scorer.
    """

    store: Store
    record: RunRecord
    _populations: dict[str, Population] = field(default_factory=dict[str, Population], init=False)

    @classmethod
    def stored(cls, number: int | None = None, path: Path | str = RUNS) -> "Run":
        """A run that was kept in a file, by its number, or the last one.

        Raises:
            StoreError: There is none, or the file cannot be read.
        """
        store = Store(path, read_only=True)
        return cls(store, store.record(number))

    @property
    def number(self) -> int:
        """Its number in the file, from 1."""
        return self.record.number

    @property
    def stopped(self) -> str:
        """Why it ended before all samples were scored; empty if it did not."""
        return self.record.stopped

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return self.record.started_at

    @property
    def ended_at(self) -> datetime | None:
        """When it ended; ``None`` while it is under way, and where it broke off."""
        return self.record.ended_at

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files it read."""
        return tuple(self.record.inputs)

    @property
    def scorers(self) -> tuple[ScorerRecord, ...]:
        """The scorers of the run."""
        return tuple(self.record.scorers)

    @cached_property
    def samples(self) -> SampleCount:
        """How many samples there are to score, as far as that is known; see `judgekit.runs.rows.RunRecord`."""
        held = self.store.counts(self.number).samples
        return SampleCount(max(self.record.samples, held), self.record.samples_known)

    @property
    def summary(self) -> Summary:
        """A line a scorer."""
        audited = self.audited
        for line in self._counted:
            line.audited = audited.get(line.scorer, "")
        return self._counted

    @cached_property
    def _counted(self) -> Summary:
        """The summary without the audits of judges, which may change at any time."""
        summary = Summary({one.name: Line(one.name) for one in self.scorers})
        for row in self:
            summary.add(row)
        for scorer, calls in self.store.unscored_calls(self.number):
            if calls is None:
                summary[scorer].add_lost_calls()
            else:
                summary[scorer].add_unscored(calls)
        for line in summary:
            line.missing = self.samples.samples - line.total
            line.about = self.samples.about
        return summary

    @cached_property
    def efforts(self) -> Efforts:
        """The effort of the conversations: messages, tool calls, tokens, cost and time."""
        return self.store.efforts(self.number)

    @cached_property
    def duplicate_ids(self) -> tuple[str, ...]:
        """Ids that more than one sample has, so that their rows cannot be told apart by id."""
        return tuple(self.store.duplicate_ids(self.number))

    @property
    def receipts_folder(self) -> Path | None:
        """Where receipts of audits are kept, beside the file of the run; nowhere for a run in memory."""
        return None if self.store.path is None else self.store.path.parent / "receipts"

    @property
    def recordings(self) -> str | None:
        """A hash of the files it read; ``None`` of samples in Python, which cannot be told from others."""
        hashes = sorted({one.sha256 for one in self.inputs})
        return f"sha256:{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:16]}" if hashes else None

    @property
    def receipts(self) -> Mapping[str, Audited]:
        """Of each scorer that asks a judge, whether this very judge was audited."""
        folder = self.receipts_folder
        judged = (one for one in self.scorers if one.judged)
        return {one.name: Audited() if folder is None else load(self.judged(one), folder) for one in judged}

    def judged(self, scorer: ScorerRecord) -> Judged:
        """Return what this run says of one of its judged scorers."""
        line = self._counted[scorer.name]
        return Judged(
            scorer,
            self.number,
            self.started_at,
            self.recordings,
            line.reported,
            line.fingerprints,
            partial(self.population, scorer.name),
        )

    def population(self, scorer: str) -> Population:
        """Return what the samples are like that a scorer scored: of very many, by 10,000 of them that are drawn at random."""
        if scorer not in self._populations:
            line, dice = self._counted[scorer], random.Random(0)  # noqa: S311 - a draw, not a secret
            there = line.counts.total()
            numbers = dice.sample(range(there), _DESCRIBED) if there > _DESCRIBED else None
            rows = list(self.rows(scorer=scorer, statuses=["scored"], numbers=numbers))
            wanted = {row.index for row in rows}
            conducts = {number: one for number, one in self.store.conducts(self.number) if number in wanted}
            count = len(line.values)
            exact = {"samples": count, "mean": fsum(line.values) / count if count else None}
            self._populations[scorer] = population_of(rows, conducts).model_copy(update=exact)
        return self._populations[scorer]

    @property
    def audited(self) -> Mapping[str, str]:
        """The audits of the judges in words, such as ``audited: kappa .71 [.58, .82], n=120``, or ``not audited``."""
        return {scorer: str(found) for scorer, found in self.receipts.items()}

    def rows(
        self,
        *,
        scorer: str | None = None,
        statuses: Collection[Status] | None = None,
        numbers: Collection[int] | None = None,
    ) -> Iterator[Row]:
        """The rows, or those of one scorer, with one of these statuses, of the samples with these numbers."""
        return self.store.rows(self.number, scorer=scorer, statuses=statuses, numbers=numbers)

    def lowest(self, scorer: str, most: int) -> Iterator[Row]:
        """The rows with the lowest values of a scorer, the lowest first."""
        return self.store.lowest(self.number, scorer, most)

    @cached_property
    def damaged(self) -> Damaged:
        """Conversations and replies of judges that are left out, for they are damaged in the file; the log names them."""
        found = self.store.damaged(self.number)
        if any(found):
            _log.warning("%s: run %d: %s", self.store.path, self.number, found)
        return found

    def conversations(self, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[tuple[int, Sample]]:
        """The samples that are wanted with their numbers, in order, none of them with ``store_text = false``.

        Those that are damaged are left out; see `damaged`.
        """
        damaged = self.damaged.conversations
        return self.store.conversations(self.number, lambda number: number not in damaged and wanted(number))

    def exchanges(self) -> Iterator[tuple[int, str, int, Exchange]]:
        """Return what judges were sent and replied, kept as the conversations are.

        Each with the number of its sample, its scorer, and the place of the call among ``score.calls``. What is damaged
        is left out; see `damaged`.
        """
        return self.store.exchanges(self.number, but=self.damaged.exchanges)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a table of pandas; see `judgekit.runs.frames`."""
        from judgekit.runs.frames import to_pandas  # noqa: PLC0415 - seldom needed

        return to_pandas(self)

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a table of polars; see `judgekit.runs.frames`."""
        from judgekit.runs.frames import to_polars  # noqa: PLC0415 - seldom needed

        return to_polars(self)

    def __iter__(self) -> Iterator[Row]:
        return self.rows()

    def __len__(self) -> int:
        return self.store.count(self.number)

    def __repr__(self) -> str:
        return f"Run(number={self.number}, rows={len(self)}, stopped={self.stopped!r})"

    def _repr_html_(self) -> str:
        from judgekit.runs.notebook import summary_html  # noqa: PLC0415 - seldom needed

        return summary_html(self.summary, filter(None, (str(self.efforts), self.summary.prices, *self._notes())))

    def __str__(self) -> str:
        return "\n".join(filter(None, (str(self.efforts), str(self.summary), *self._notes())))

    def _notes(self) -> Iterator[str]:
        """Yield notes that belong to the numbers."""
        yield from self.record.notes
        if unfinished := self.record.unfinished:
            yield f"{unfinished}: only what was scored until then is counted"
        if self.duplicate_ids:
            shown = ", ".join(map(repr, islice(self.duplicate_ids, _IDS_SHOWN)))
            yield f"{number_of(len(self.duplicate_ids), 'id')} of more than one sample: {shown}"

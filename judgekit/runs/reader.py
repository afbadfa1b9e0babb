"""The runs in a file: records, rows, conversations. Each method is a query of the same tables."""

import logging
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from judgekit.errors import StoreError, count_text, join_limited
from judgekit.runs.hashes import SampleHashes
from judgekit.runs.rows import DAMAGED_ROW, Row, RunDescription, RunRecord, ScorerResult
from judgekit.runs.sample_search import SampleSearch
from judgekit.runs.schema import KEYS, IssueRow, LabelRow, SampleRow, ScoreRow, is_intact
from judgekit.runs.units import RunUnits
from judgekit.runs.usage import ConversationUsage
from judgekit.score import JudgeCall, JudgeExchange, Score, ScoreStatus
from judgekit.traces.fast_models import construct
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample

_log = logging.getLogger("judgekit")
CALLS_ADAPTER = TypeAdapter(tuple[JudgeCall, ...])
PackedRecord = TypeVar("PackedRecord", bound=FrozenModel)
_LOST_SHOWN = 5
_READ_AT_ONCE = 1_000  # numbers of conversations
_SCORES_AT_ONCE = 64
_SCORES = "SELECT * FROM scores WHERE run = ?"
_SAMPLES = "SELECT * FROM samples WHERE run = ? AND number IN (SELECT value FROM json_each(?))"
_CONVERSATION = "SELECT * FROM conversations WHERE run = ? AND number = ?"


class RunCounts(NamedTuple):
    """The numbers of samples, scores and failed scores in a run."""

    samples: int = 0
    scores: int = 0
    failed: int = 0


class ScoredSample(NamedTuple):
    """The rows of one sample, with what is known of its conversation and of what it is compared with."""

    rows: Sequence[Row]
    usage: ConversationUsage | None = None
    hashes: SampleHashes = SampleHashes()

    @property
    def number(self) -> int:
        """The number of the sample in the run."""
        return self.rows[0].index


class RunReader(SampleSearch):
    """A file of runs, opened for reading; see `judgekit.runs.store.RunStore`."""

    def score_rows(self, run: int, samples: Collection[int]) -> list[ScoreRow]:
        """Return the table rows of the scores of some samples."""
        return [ScoreRow(*row) for row in self._select(*_of("scores", "sample", run, samples))]

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all runs, oldest first."""
        return [number for (number,) in self._select("SELECT number FROM runs ORDER BY number")]

    def record_checksums(self) -> Sequence[tuple[int, int]]:
        """Return the numbers of all runs, oldest first, with the checksums of their records, which tell those that changed."""
        return [(number, kept) for number, kept in self._select("SELECT number, checksum FROM runs ORDER BY number")]

    def record(self, number: int | None = None) -> RunRecord:
        """Return the record of a run, or of the last one that was no alignment's.

        Raises:
            StoreError: There is no such run, or its record is damaged.
        """
        if number is None:
            for last in map(self.record, reversed(self.numbers())):
                if last.alignment is None:
                    return last
            raise StoreError(f"{self.path}: there are no runs yet; judgekit run creates one")
        row = next(self._select("SELECT * FROM runs WHERE number = ?", number), None)
        if row is None:
            raise StoreError(f"{self.path}: contains no run {number}; judgekit runs lists the runs")
        number, body, _ = row
        if not is_intact(row):
            raise self._damaged(f"run {number}")
        with self._reading(f"run {number}"):
            return RunRecord.model_validate({**from_json(body), "number": number})

    def records(self) -> Iterator[RunRecord]:
        """Yield the records of all runs, oldest first. Damaged ones are left out."""
        for number in self.numbers():
            with suppress(StoreError):
                yield self.record(number)

    def results(self, run: int) -> Sequence[ScorerResult]:
        """Return the results of the scorers of a finished run; none if they were not written, or are damaged."""
        rows = list(self._select("SELECT * FROM results WHERE run = ? ORDER BY scorer", run))
        return [ScorerResult(*row[2:-1]) for row in rows] if all(map(is_intact, rows)) else []

    def _names(self, run: int) -> dict[int, str]:
        """Return the names of a run's scorers by their indexes."""
        return {index: scorer.name for index, scorer in enumerate(self.record(run).scorers)}

    def scored_by_sample(
        self, run: int, first: int, last: int, *, except_statuses: Collection[ScoreStatus] = ()
    ) -> dict[int, set[int]]:
        """Return the scorers, by index, that have scored each of the samples ``first`` to ``last``.

        Scores with a status in ``except_statuses`` are left out, and so are damaged scores and scores of damaged samples.
        """
        scorers: dict[int, set[int]] = {}
        for score, is_whole, sample in self._with_samples(f"{_SCORES} AND sample BETWEEN ? AND ?", run, first, last):
            if is_whole and sample is not None and score.status not in except_statuses:
                scorers.setdefault(score.sample, set()).add(score.scorer)
        return scorers

    def lowest(self, run: int, scorer: str, limit: int, *, highest: bool = False) -> Iterator[Row]:
        """Return the rows with the lowest values of a scorer, lowest first, or those with the highest, highest first."""
        index = next((index for index, name in self._names(run).items() if name == scorer), None)
        sql = (
            f"{_SCORES} AND scorer = ? AND value IS NOT NULL ORDER BY value{' DESC' if highest else ''}, sample LIMIT ?"
        )
        rows = self._rows(sql, run, index, limit, is_ordered=False)
        return (row for row, _ in rows if row.score.value is not None)  # the others are damaged

    def count(self, run: int) -> int:
        """Return the number of scores in a run."""
        return int(next(self._select("SELECT count(*) FROM scores WHERE run = ?", run))[0])

    def rows(
        self,
        run: int,
        *,
        scorer: str | None = None,
        statuses: Collection[ScoreStatus] | None = None,
        numbers: Collection[int] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a run one by one, ordered by sample and, within a sample, by scorer.

        A row that is damaged, or whose sample is damaged, is a failed score with the error
        `judgekit.runs.rows.DAMAGED_ROW`.

        Raises:
            StoreError: The file is damaged in such a way that rows cannot be read or occur twice.
        """
        sql, _, *values = _of("scores", "sample", run, numbers)
        if scorer is not None:
            sql += " AND scorer IN (SELECT value FROM json_each(?))"
            values.append(_listed(index for index, name in self._names(run).items() if name == scorer))
        for row, _ in self._rows(f"{sql} ORDER BY sample, scorer", run, *values):
            if statuses is None or row.score.status in statuses:
                yield row

    def sample_scores(self, record: RunRecord, sample: int) -> Sequence[Score]:
        """Return the scores of a sample by its number; those that are damaged are left out."""
        rows = self._with_samples(f"{_SCORES} AND sample = ? ORDER BY scorer", record.number, sample)
        intact = [row for row, is_whole, stored in rows if is_whole and stored is not None]
        return [self._score(record.scorers[row.scorer].name, row) for row in intact if row.scorer < len(record.scorers)]

    def scored_samples(self, run: int) -> Iterator[ScoredSample]:
        """Yield the samples that have a score, in order, with their rows; see `rows`."""
        rows = self._rows(f"{_SCORES} ORDER BY sample, scorer", run)
        for _, pairs in groupby(rows, key=lambda pair: pair[0].index):
            (first, sample), *others = pairs
            sample_rows = (first, *(row for row, _ in others))
            if sample is None:
                yield ScoredSample(sample_rows)
            else:
                usage = ConversationUsage(*from_json(sample.usage)) if sample.usage else None
                hashes = SampleHashes(sample.references_hash, sample.fields_hash, sample.first_message_hash)
                yield ScoredSample(sample_rows, usage, hashes)

    def _rows(
        self, sql: str, run: int, *values: object, is_ordered: bool = True
    ) -> Iterator[tuple[Row, SampleRow | None]]:
        """Yield the scores that a statement selects, each with the table row of its sample, unless that is damaged.

        A failed score stands for one that is damaged, or whose sample is.
        """
        names, units = self._names(run), self._run_units(run)
        last = (-1, -1)
        with self._reading("a score"):
            for score, is_whole, sample in self._with_samples(sql, run, *values):
                index, scorer = score.sample, score.scorer
                name = names.get(scorer)
                if name is None or not isinstance(index, int):  # pyright: ignore[reportUnnecessaryIsInstance] - it may be damaged
                    continue  # no scorer has this index, so the score counts as missing
                if is_whole and sample is not None:
                    if is_ordered and (index, scorer) <= last:
                        raise self._damaged(f"the order of the scores of run {run}")
                    last = index, scorer
                    yield _row_of(index, self._score(name, score), sample, units), sample
                else:
                    what = "its row" if sample is not None else "the row of its sample"
                    reason = f"{what} in {self.path} is damaged; judgekit resume repeats the score"
                    yield _row_of(index, Score.failed(name, reason, error=DAMAGED_ROW), sample, units), sample

    def _with_samples(self, sql: str, run: int, *values: object) -> Iterator[tuple[ScoreRow, bool, SampleRow | None]]:
        """Yield the scores that a statement selects, each with whether it is intact, and its sample if that is."""
        selected = self._select(sql, run, *values)
        samples: dict[int, SampleRow] = {}
        while scores := list(islice(selected, _SCORES_AT_ONCE)):
            numbers = {score[1] for score in scores if isinstance(score[1], int)}
            if missing := numbers.difference(samples):
                rows = list(self._select(_SAMPLES, run, _listed(missing)))
                samples = {number: row for number, row in samples.items() if number in numbers}
                samples |= {row[1]: SampleRow(*row) for row in rows if is_intact(row)}
            for score in scores:
                yield ScoreRow(*score), is_intact(score), samples.get(score[1])

    def _score(self, scorer: str, row: ScoreRow) -> Score:
        with self._reading(f"the score of sample {row.sample}"):
            reason, details = from_json(row.explanation)
            if not (isinstance(reason, str) and isinstance(details, dict)):
                raise TypeError("expected a reason and details")
            if not all(share is None or 0 <= share <= 1 for share in (row.value, row.confidence)):
                raise ValueError("expected a value and a confidence from 0 to 1")
        return construct(
            Score,
            {
                "scorer": scorer,
                "status": row.status,
                "value": row.value,
                "label": row.label,
                "calls": CALLS_ADAPTER.validate_json(row.calls) if row.calls else (),
                "confidence": row.confidence,
                "error": row.error,
                "aggregate": "mean" if row.aggregate is None else row.aggregate,
                "warnings": tuple(from_json(row.warnings)) if row.warnings else (),
                "reason": reason,
                "details": details,
            },
        )

    def table_rows(self, run: int, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a run has in one of `judgekit.runs.schema.PART_TABLES`, without their checksums.

        Raises:
            StoreError: One of them is damaged.
        """
        sql = f"SELECT * FROM {table} WHERE run = ? ORDER BY {KEYS[table]}"  # noqa: S608 - our own names
        for row in self._select(sql, run):
            if not is_intact(row):
                raise self._damaged(f"a row of run {run} ({table})")
            yield row[:-1]

    def counts(self, run: int) -> RunCounts:
        """Return the numbers of samples, scores and failed scores in a run."""
        sql = """
            SELECT (SELECT count(*) FROM samples WHERE run = ?), count(*), total(status = 'failed')
            FROM scores WHERE run = ?
        """
        return RunCounts(*map(int, next(self._select(sql, run, run))))

    def label_rows(self, run: int) -> Iterator[LabelRow | None]:
        """Yield the human labels on samples of a run, in the order in which they were given; ``None`` for damaged ones."""
        for row in self._select("SELECT * FROM labels WHERE run = ? ORDER BY given_at, sample", run):
            yield LabelRow(*row[:-1]) if is_intact(row) else None

    def description(self, run: int) -> RunDescription:
        """Return the name, the note and the tags of a run, which are empty if nobody gave any, or if they are damaged."""
        for row in filter(is_intact, self._select("SELECT * FROM descriptions WHERE run = ?", run)):
            return RunDescription(row[1], row[2], tuple(from_json(row[3])))
        return RunDescription()

    def stamped_at(self, run: int) -> datetime | None:
        """Return the last time at which a running run said so; ``None`` if it never did."""
        stamps = self._select("SELECT * FROM stamps WHERE run = ?", run)
        return next((datetime.fromtimestamp(row[1], UTC) for row in stamps if is_intact(row)), None)

    def label_state(self) -> tuple[int, int]:
        """Return the number of all human labels in the file, and when the last one was given."""
        count, last = next(self._select("SELECT count(*), coalesce(max(given_at), 0) FROM labels"))
        return count, last

    def issue_rows(self, run: int, scorer: str) -> Iterator[IssueRow]:
        """Yield the stored issues of a run's failures. Damaged rows are left out, since they can be made again."""
        for row in self._select("SELECT * FROM issues WHERE run = ? AND scorer = ?", run, scorer):
            if is_intact(row):
                yield IssueRow(*row[:-1])

    def labeled_runs(self) -> Sequence[int]:
        """Return the numbers of the runs that have human labels."""
        return [run for (run,) in self._select("SELECT DISTINCT run FROM labels ORDER BY run")]

    def sample_numbers(self, run: int) -> Mapping[str, Sequence[int]]:
        """Return the numbers of the samples of a run by their ids. Damaged samples are left out."""
        numbers: dict[str, list[int]] = {}
        for row in filter(is_intact, self._select("SELECT * FROM samples WHERE run = ?", run)):
            numbers.setdefault(row[2], []).append(row[1])
        return numbers

    def unscored_calls(self, run: int, first: int = 0) -> Iterator[tuple[str, Sequence[JudgeCall] | None]]:
        """Yield the judge calls of attempts that gave no score or were repeated, each with its scorer.

        Only scorers from the index ``first`` on are included. ``None`` stands for damaged calls.
        """
        sql = "SELECT * FROM unscored_calls WHERE run = ? AND scorer >= ? ORDER BY sample, scorer, id"
        names: Mapping[int, str] = {}
        for row in self._select(sql, run, first):
            *_, index, calls, _ = row
            names = names or self._names(run)
            if index not in names:
                raise self._damaged(f"the cost of run {run}")
            with self._reading(f"the cost of run {run}"):
                yield names[index], CALLS_ADAPTER.validate_json(calls) if is_intact(row) and calls else None

    def has_sample(self, run: int, number: int) -> bool:
        """Return whether a run contains the sample of this number."""
        return any(self._select("SELECT 1 FROM samples WHERE run = ? AND number = ?", run, number))

    def is_empty(self, run: int, first: int = 0) -> bool:
        """Return whether a run's scorers from the index ``first`` on have made no scores and paid for nothing."""
        if any(self._select("SELECT 1 FROM scores WHERE run = ? AND scorer >= ? LIMIT 1", run, first)):
            return False
        return not any(
            calls is None or any(call.is_paid for call in calls) for _, calls in self.unscored_calls(run, first)
        )

    def duplicate_ids(self, run: int) -> Sequence[str]:
        """Return the ids that several samples share."""
        sql = "SELECT id FROM samples WHERE run = ? GROUP BY id HAVING count(*) > 1"
        return [sample_id for (sample_id,) in self._select(sql, run)]

    def usage_by_sample(self, run: int) -> Iterator[tuple[int, ConversationUsage]]:
        """Yield the number and the usage of each conversation that has a score. Damaged samples are left out."""
        sql = """
            SELECT * FROM samples WHERE run = ? AND usage IS NOT NULL
                AND EXISTS (SELECT 1 FROM scores WHERE scores.run = samples.run AND sample = number)
        """
        with self._reading(f"run {run}"):
            for row in map(SampleRow._make, self._select(sql, run)):
                if is_intact(row) and row.usage is not None:
                    yield row.number, ConversationUsage(*from_json(row.usage))

    def has_all_conversations(self, run: int) -> bool:
        """Return whether the conversations of all samples of a run are stored."""
        conversations = self._select("SELECT * FROM conversations WHERE run = ?", run)
        return sum(map(is_intact, conversations)) == self.counts(run).samples

    def conversations(
        self, run: int, sample_filter: Callable[[int], bool] = lambda _: True, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, Sample]]:
        """Yield the stored samples that are wanted, with their numbers; only ``numbers`` are looked at, if given.

        Damaged ones are left out, and the log names them.
        """
        of_numbers = "" if numbers is None else " AND number IN (SELECT value FROM json_each(?))"
        sql = f"SELECT number FROM conversations WHERE run = ? AND number > ?{of_numbers} ORDER BY number LIMIT ?"  # noqa: S608
        wanted = () if numbers is None else (_listed(numbers),)
        last, lost = -1, list[int]()
        # An open statement would keep this connection from writing once another connection has written.
        while block := list(self._select(sql, run, last, *wanted, _READ_AT_ONCE)):
            for (number,) in block:
                if not isinstance(number, int) or number <= last:
                    raise self._damaged(f"the order of the conversations of run {run}")
                last = number
                if sample_filter(number):
                    row: tuple[Any, ...] = next(self._select(_CONVERSATION, run, number), (0,))
                    if is_intact(row):
                        yield number, self._unpacked(Sample, row[-2], f"sample {number} of run {run}")
                    else:
                        lost.append(number)
        self._warn_of_lost(run, "damaged conversation", lost)

    def exchanges(
        self, run: int, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, str, int, JudgeExchange]]:
        """Yield requests to judges with their replies; only those about samples with these ``numbers``, if given.

        Each comes with its sample's number, its scorer, and its position among the score's calls. Damaged ones are left
        out, and the log names them.
        """
        scorers, lost = self._names(run), list[int]()
        sql, *values = _of("exchanges", "sample", run, numbers)
        for row in self._select(f"{sql} ORDER BY sample, scorer, call", *values):
            _, number, index, call, body, _ = row
            if is_intact(row):
                what = f"a judge's reply about sample {number} of run {run}"
                yield number, scorers.get(index, ""), call, self._unpacked(JudgeExchange, body, what)
            else:
                lost.append(number)
        self._warn_of_lost(run, "damaged judge exchange", lost)

    def _warn_of_lost(self, run: int, noun: str, numbers: Sequence[int]) -> None:
        if numbers:
            named = join_limited((f"#{number}" for number in numbers), _LOST_SHOWN, ", ")
            _log.warning("%s: run %d: %s left out: %s", self.path, run, count_text(len(numbers), noun), named)

    def _unpacked(self, kind: type[PackedRecord], body: bytes, what: str) -> PackedRecord:
        with self._reading(what):
            return kind.model_validate_json(zlib.decompress(body))


def _of(table: str, column: str, run: int, numbers: Collection[int] | None) -> tuple[str, int, *tuple[object, ...]]:
    """Return a statement that selects the rows of a run, or of some of its samples, with its values.

    Many numbers are one value, since the number of values in a statement is limited.
    """
    sql = f"SELECT * FROM {table} WHERE run = ?"  # noqa: S608 - our own names
    if numbers is None:
        return sql, run
    return f"{sql} AND {column} IN (SELECT value FROM json_each(?))", run, _listed(numbers)  # noqa: S608


def _listed(numbers: Iterable[int]) -> str:
    return to_json(sorted(numbers)).decode()


def _row_of(index: int, score: Score, sample: SampleRow | None, units: RunUnits) -> Row:
    """Return the row of a score, whose sample may be damaged."""
    if sample is None:
        return Row(index=index, sample_id=f"#{index}", score=score)
    return construct(
        Row,
        {
            "index": index,
            "sample_id": sample.id,
            "score": score,
            "trace_id": sample.trace_id,
            "group": sample.group,
            "copied": units.of(sample.group, sample.recording_hash),
            "domain": sample.domain,
            "labels": from_json(sample.labels) if sample.labels else {},
            "label_sources": from_json(sample.label_sources) if sample.label_sources else {},
        },
    )

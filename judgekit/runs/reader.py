"""Files of runs, opened for reading. Damaged rows are reported, and never taken for scores."""

import os
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from judgekit.database import (
    ACCESS_CODES,
    DATABASE_ERRORS,
    connect,
    create_parent_folder,
    enable_wal,
    result_code,
    schema_version,
)
from judgekit.errors import StoreError
from judgekit.locations import require_local
from judgekit.runs.counted import CountedRow, PlainScore
from judgekit.runs.hashes import SampleHashes
from judgekit.runs.rows import DAMAGED_ROW, DamagedRows, LabelValue, Row, RunRecord
from judgekit.runs.schema import (
    APPLICATION_ID,
    KEYS,
    SCHEMA,
    SCHEMA_VERSION,
    are_intact,
    decompress,
    is_intact,
)
from judgekit.runs.usage import ConversationUsage
from judgekit.score import JudgeCall, JudgeExchange, Score, ScoreStatus
from judgekit.traces.fast_models import construct
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample

_READ_AT_ONCE = 1_000  # numbers of conversations
_ADVICE = {
    sqlite3.SQLITE_FULL: "free some disk space; the scores so far are saved",
    sqlite3.SQLITE_BUSY: "another program is writing to it; try again when it is done",
    sqlite3.SQLITE_CORRUPT: "it is damaged: move it away, or name another file",
    sqlite3.SQLITE_NOTADB: "it is not a database: name another file",
    **dict.fromkeys(ACCESS_CODES, "it and its folder must be writable; or name another file"),
}
CALLS_ADAPTER = TypeAdapter(tuple[JudgeCall, ...])
PackedRecord = TypeVar("PackedRecord", bound=FrozenModel)
_SCORES = "SELECT * FROM scores WHERE run = ?"
_SAMPLES = "SELECT * FROM samples WHERE run = ? AND number IN (SELECT value FROM json_each(?))"
_SCORES_AT_ONCE = 64
_MOST_DICTIONARIES = 50  # in memory
_OF_NUMBERS = " AND sample IN (SELECT value FROM json_each(?))"
"""Many numbers as one value, since the number of values in a statement is limited."""
_WORST = """
    SELECT sample FROM scores
    WHERE run = ? AND scorer < ? AND sample NOT IN (SELECT value FROM json_each(?))
    GROUP BY sample
    ORDER BY
        CASE
            WHEN sample IN (SELECT value FROM json_each(?)) THEN -2.0
            WHEN sample IN (SELECT value FROM json_each(?)) THEN -1.0
            ELSE min(CASE WHEN value IS NOT NULL THEN value WHEN status = 'skipped' THEN 2.0 ELSE -1.0 END)
        END,
        sample
    LIMIT ?
"""
_CONVERSATION = "SELECT * FROM conversations WHERE run = ? AND number = ?"


class RunCounts(NamedTuple):
    """The numbers of samples, scores and failed scores in a run."""

    samples: int = 0
    scores: int = 0
    failed: int = 0


class RunReader:
    """A file of runs, opened for reading; see `judgekit.runs.store.RunStore`."""

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        self.path = None if path is None else require_local(path, "runs are kept in a SQLite file, which must be local")
        self.read_only = read_only
        with self._explaining_errors():
            self._db = self._open(read_only=read_only)
        self._dictionaries: dict[tuple[int, int], bytes | None] = {}
        weakref.finalize(self, self._db.close)

    def _open(self, *, read_only: bool) -> sqlite3.Connection:
        path = self.path
        if path is None:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if path.is_dir():
                raise StoreError(f"{path}: cannot hold runs: it is a folder; name a file in it")
            if read_only and not path.exists():
                raise StoreError(f"{path}: there are no runs yet; judgekit run creates one")
            if not read_only:
                create_parent_folder(path)
            # A file that cannot be written is opened as immutable. Otherwise, others may write while rows are read.
            may_write = os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
            db = connect(path, read_only=read_only and not may_write)
        try:
            self._inode = None if path is None else path.stat().st_ino
            self._prepare(db, read_only=read_only)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection, *, read_only: bool) -> None:
        db.execute("BEGIN")
        version = schema_version(db, self.path, APPLICATION_ID, SCHEMA_VERSION)
        db.execute("COMMIT")
        if read_only:
            db.execute("PRAGMA query_only = ON")
            if not version:  # another process is creating it
                raise StoreError(f"{self.path}: there are no runs yet; judgekit run creates one")
            return
        enable_wal(db)  # without it, only one process at a time can write or read
        db.execute("PRAGMA synchronous = FULL")
        if not version:
            db.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables meanwhile.
            for sql in () if schema_version(db, self.path, APPLICATION_ID, SCHEMA_VERSION) else SCHEMA:
                db.execute(sql)
            db.execute("COMMIT")

    @contextmanager
    def _explaining_errors(self) -> Generator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            advice = _ADVICE.get(result_code(error), "name another file")
            raise StoreError(f"{self.path}: the runs file cannot be used: {error}; {advice}") from error

    @contextmanager
    def _undamaged(self, what: str) -> Generator[None]:
        try:
            yield
        except (ValueError, TypeError, zlib.error) as error:
            raise StoreError(f"{self.path}: {what} is damaged: {error}") from error

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{self.path}: {what} is damaged: its checksum does not match")

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        if self.path is None:
            return True
        try:
            return self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _select(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with self._explaining_errors():
            count = 0
            try:
                for line in self._db.execute(sql, values):  # yield from might close the cursor too late
                    yield line
                    count += 1
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
                # This takes twice as long. Invalid bytes then do not match their checksum.
                self._db.text_factory = partial(str, errors="replace")
                for line in islice(self._db.execute(sql, values), count, None):
                    yield line

    def score_line(self, run: int, sample: int, scorer: int) -> tuple[Any, ...] | None:
        """Return the table row of a score, by the number of its sample and the place of its scorer, if there is one."""
        return next(
            self._select("SELECT * FROM scores WHERE run = ? AND sample = ? AND scorer = ?", run, sample, scorer), None
        )

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all runs, oldest first."""
        return [number for (number,) in self._select("SELECT number FROM runs ORDER BY number")]

    def record(self, number: int | None = None) -> RunRecord:
        """Return the record of a run, or of the last one.

        Raises:
            StoreError: There is no such run, or its record is damaged.
        """
        sql = "SELECT * FROM runs WHERE ?1 IS NULL OR number = ?1 ORDER BY number DESC LIMIT 1"
        found = next(self._select(sql, number), None)
        if found is None:
            if number is None:
                raise StoreError(f"{self.path}: there are no runs yet; judgekit run creates one")
            raise StoreError(f"{self.path}: contains no run {number}; judgekit runs lists the runs")
        if not is_intact(found):
            raise self._damaged(f"run {found[0]}")
        with self._undamaged(f"run {found[0]}"):
            return RunRecord.model_validate({**from_json(found[1]), "number": found[0]})

    def records(self) -> Iterator[RunRecord]:
        """Yield the records of all runs, oldest first. Damaged ones are left out."""
        for number in self.numbers():
            with suppress(StoreError):
                yield self.record(number)

    def _names(self, run: int) -> dict[int, str]:
        """Return the names of a run's scorers by their places."""
        return {place: one.name for place, one in enumerate(self.record(run).scorers)}

    def scored_by_sample(
        self, run: int, first: int, last: int, *, except_statuses: Collection[ScoreStatus] = ()
    ) -> dict[int, set[int]]:
        """Return the scorers, by place, that have scored each of the samples ``first`` to ``last``.

        Scores with a status in ``except_statuses`` are left out, and so are damaged scores and scores of damaged samples.
        """
        found: dict[int, set[int]] = {}
        for score, is_whole, sample in self._with_samples(f"{_SCORES} AND sample BETWEEN ? AND ?", run, first, last):
            if is_whole and sample and score[3] not in except_statuses:
                found.setdefault(score[1], set()).add(score[2])
        return found

    def lowest(self, run: int, scorer: str, limit: int) -> Iterator[Row]:
        """Return the rows with the lowest values of a scorer, lowest first."""
        place = next((place for place, name in self._names(run).items() if name == scorer), None)
        sql = f"{_SCORES} AND scorer = ? AND value IS NOT NULL ORDER BY value, sample LIMIT ?"
        asked, found = limit, list[Row]()
        while place is not None and len(found) < limit:
            rows = list(self._rows(sql, run, place, asked, is_ordered=False))
            found = [row for row in rows if row.score.value is not None]
            if len(rows) < asked:
                break
            asked *= 2  # some of them are damaged
        return iter(found[:limit])

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
        sql = _SCORES
        values: list[object] = []
        if numbers is not None:
            sql += _OF_NUMBERS
            values.append(_listed(numbers))
        if scorer is not None:
            sql += " AND scorer IN (SELECT value FROM json_each(?))"
            values.append(_listed(place for place, name in self._names(run).items() if name == scorer))
        for row in self._rows(f"{sql} ORDER BY sample, scorer", run, *values):
            if statuses is None or row.score.status in statuses:
                yield row

    def counted_rows(self, run: int, numbers: Collection[int] | None = None) -> Iterator[CountedRow]:
        """Yield the rows of a run, or of some of its samples, in short; in the order and with the errors of `rows`."""
        sql, values = (_SCORES, []) if numbers is None else (f"{_SCORES}{_OF_NUMBERS}", [_listed(numbers)])
        last: tuple[Any, ...] = ()
        labels: dict[str, LabelValue] = {}
        hashes = SampleHashes()
        for name, index, line, sample in self._checked(f"{sql} ORDER BY sample, scorer", run, *values):
            if sample is not last:
                last = sample
                labels = from_json(sample[6]) if sample and sample[6] else {}
                hashes = SampleHashes._make(sample[-4:-1]) if sample else SampleHashes()
            score = line if isinstance(line, Score) else self._plain(name, line)
            if sample:
                yield CountedRow(index, sample[2], score, sample[4], sample[5], labels, sample[8], hashes)
            else:
                yield CountedRow(index, f"#{index}", score, None, None, labels)

    def _rows(self, sql: str, run: int, *values: object, is_ordered: bool = True) -> Iterator[Row]:
        """Yield the rows that a statement selects."""
        for name, index, line, sample in self._checked(sql, run, *values, is_ordered=is_ordered):
            yield _row_of(index, line if isinstance(line, Score) else self._score(name, line), sample)

    def _checked(
        self, sql: str, run: int, *values: object, is_ordered: bool = True
    ) -> Iterator[tuple[str, int, Score | tuple[Any, ...], tuple[Any, ...]]]:
        """Yield the scores that a statement selects, each with its scorer, its sample's number, and its sample.

        Both are table rows; a failed score stands for one that is damaged, and an empty row for a damaged sample.
        """
        names = self._names(run)
        last = (-1, -1)
        with self._undamaged("a score"):
            for score, is_whole, sample in self._with_samples(sql, run, *values):
                _, index, place, *_ = score
                name = names.get(place)
                if name is None or not isinstance(index, int):
                    continue  # no scorer has this place, so the score counts as missing
                if is_whole and sample:
                    if is_ordered and (index, place) <= last:
                        raise self._damaged(f"the order of the scores of run {run}")
                    last = index, place
                    yield name, index, score, sample
                else:
                    what = "its row" if sample else "the row of its sample"
                    reason = f"{what} in {self.path} is damaged; judgekit resume repeats the score"
                    yield name, index, Score.failed(name, reason, error=DAMAGED_ROW), sample

    def _with_samples(
        self, sql: str, run: int, *values: object
    ) -> Iterator[tuple[tuple[Any, ...], bool, tuple[Any, ...]]]:
        """Yield the scores that a statement selects, each with whether it is intact, and its sample.

        Both are table rows; an empty one stands for a damaged sample.
        """
        found = self._select(sql, run, *values)
        samples: dict[int, tuple[Any, ...]] = {}
        while scores := list(islice(found, _SCORES_AT_ONCE)):
            numbers = {score[1] for score in scores if isinstance(score[1], int)}
            if missing := numbers.difference(samples):
                rows = list(self._select(_SAMPLES, run, _listed(missing)))
                kept = {number: row for number, row in samples.items() if number in numbers}
                samples = kept | {row[1]: row for row, is_whole in zip(rows, are_intact(rows), strict=True) if is_whole}
            for score, is_whole in zip(scores, are_intact(scores), strict=True):
                yield score, is_whole, samples.get(score[1], ())

    def _plain(self, scorer: str, line: tuple[Any, ...]) -> PlainScore | Score:
        _, _, _, status, value, _, label, _, aggregate, warnings, calls, _, _ = line
        if status != "scored" or aggregate is not None or calls is not None:
            return self._score(scorer, line)
        return PlainScore(scorer, value, label, from_json(warnings) if warnings else ())

    def _score(self, scorer: str, line: tuple[Any, ...]) -> Score:
        _, index, _, status, value, confidence, label, error, aggregate, warnings, calls, explanation, _ = line

        with self._undamaged(f"the score of sample {index}"):
            reason, details = from_json(explanation)
            if not (isinstance(reason, str) and isinstance(details, dict)):
                raise TypeError("expected a reason and details")
        return construct(
            Score,
            {
                "scorer": scorer,
                "status": status,
                "value": value,
                "label": label,
                "calls": CALLS_ADAPTER.validate_json(calls) if calls else (),
                "confidence": confidence,
                "error": error,
                "aggregate": "mean" if aggregate is None else aggregate,
                "warnings": tuple(from_json(warnings)) if warnings else (),
                "reason": reason,
                "details": details,
            },
        )

    def table_rows(self, run: int, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a run has in one of `judgekit.runs.schema.PART_TABLES`, without their checksums.

        Raises:
            StoreError: One of them is damaged.
        """
        for line in self._select(f"SELECT * FROM {table} WHERE run = ? ORDER BY {KEYS[table]}", run):  # noqa: S608 - our own names
            if not is_intact(line):
                raise self._damaged(f"a row of run {run} ({table})")
            yield line[:-1]

    def counts(self, run: int) -> RunCounts:
        """Return the numbers of samples, scores and failed scores in a run."""
        sql = """
            SELECT (SELECT count(*) FROM samples WHERE run = ?1), count(*), total(status = 'failed')
            FROM scores WHERE run = ?1
        """
        return RunCounts(*map(int, next(self._select(sql, run))))

    def scored_samples(self, run: int) -> int:
        """Return the number of samples that have a score."""
        sql = "SELECT count(DISTINCT sample) FROM scores WHERE run = ? AND scorer < ?"
        return int(next(self._select(sql, run, len(self._names(run))))[0])

    def worst_samples(
        self,
        run: int,
        limit: int,
        *,
        included: Iterable[int] = (),
        left_out: Iterable[int] = (),
        damaged: Iterable[int] = (),
    ) -> Sequence[int]:
        """Return the numbers of the samples that most deserve a look, first those.

        After those to be ``included``, these are samples that failed, abstained or are ``damaged``, then those with the
        lowest values.
        """
        values = (len(self._names(run)), _listed(left_out), _listed(included), _listed(damaged), limit)
        return [number for (number,) in self._select(_WORST, run, *values)]

    def unscored_calls(self, run: int, first: int = 0) -> Iterator[tuple[str, Sequence[JudgeCall] | None]]:
        """Yield the judge calls of attempts that gave no score or were repeated, each with its scorer.

        Only scorers from the place ``first`` on are included. ``None`` stands for damaged calls.
        """
        names = self._names(run)
        sql = "SELECT * FROM unscored_calls WHERE run = ? AND scorer >= ? ORDER BY sample, scorer, id"
        for line in self._select(sql, run, first):
            *_, place, calls, _ = line
            if place not in names:
                raise self._damaged(f"the cost of run {run}")
            with self._undamaged(f"the cost of run {run}"):
                yield names[place], CALLS_ADAPTER.validate_json(calls) if is_intact(line) and calls else None

    def has_sample(self, run: int, number: int) -> bool:
        """Return whether a run contains the sample of this number."""
        return any(self._select("SELECT 1 FROM samples WHERE run = ? AND number = ?", run, number))

    def is_empty(self, run: int, first: int = 0) -> bool:
        """Return whether a run's scorers from the place ``first`` on have made no scores and paid for nothing."""
        if any(self._select("SELECT 1 FROM scores WHERE run = ? AND scorer >= ? LIMIT 1", run, first)):
            return False
        return not any(
            calls is None or any(call.is_paid for call in calls) for _, calls in self.unscored_calls(run, first)
        )

    def duplicate_ids(self, run: int) -> Iterator[str]:
        """Yield the ids that several samples share."""
        for (found,) in self._select("SELECT id FROM samples WHERE run = ? GROUP BY id HAVING count(*) > 1", run):
            yield found

    def usage_by_sample(self, run: int) -> Iterator[tuple[int, ConversationUsage]]:
        """Yield the number and the usage of each conversation that has a score. Damaged samples are left out."""
        sql = """
            SELECT * FROM samples WHERE run = ? AND usage IS NOT NULL
                AND EXISTS (SELECT 1 FROM scores WHERE scores.run = samples.run AND sample = number)
        """
        with self._undamaged(f"run {run}"):
            for line in self._select(sql, run):
                if is_intact(line):
                    yield line[1], ConversationUsage(*from_json(line[8]))

    def has_all_conversations(self, run: int) -> bool:
        """Return whether the conversations of all samples of a run are stored."""
        conversations = self._select("SELECT * FROM conversations WHERE run = ?", run)
        return sum(self._dictionary(line) is not None for line in conversations) == self.counts(run).samples

    def has_conversation(self, run: int, number: int) -> bool:
        """Return whether the conversation of a sample is stored."""
        found = next(self._select(_CONVERSATION, run, number), None)
        return found is not None and self._dictionary(found) is not None

    def _dictionary(self, conversation: tuple[Any, ...]) -> bytes | None:
        """Return the dictionary that a conversation is compressed with; ``None`` if either is damaged."""
        if not is_intact(conversation):
            return None
        run, _, dictionary, *_ = conversation
        if (run, dictionary) not in self._dictionaries:
            if len(self._dictionaries) == _MOST_DICTIONARIES:
                self._dictionaries.clear()
            found = next(self._select("SELECT * FROM dictionaries WHERE run = ? AND id = ?", run, dictionary), None)
            self._dictionaries[run, dictionary] = found[2] if found is not None and is_intact(found) else None
        return self._dictionaries[run, dictionary]

    def damaged(self, run: int) -> DamagedRows:
        """Return the conversations and judge replies of a run that are damaged."""
        names = self._names(run)
        conversations = self._select("SELECT * FROM conversations WHERE run = ?", run)
        exchanges = self._select("SELECT * FROM exchanges WHERE run = ?", run)
        return DamagedRows(
            frozenset(line[1] for line in conversations if self._dictionary(line) is None),
            frozenset((line[1], names.get(line[2], ""), line[3]) for line in exchanges if not is_intact(line)),
        )

    def conversations(
        self, run: int, sample_filter: Callable[[int], bool] = lambda _: True
    ) -> Iterator[tuple[int, Sample]]:
        """Yield the stored samples that are wanted, with their numbers.

        Raises:
            StoreError: One of them is damaged.
        """
        numbers = "SELECT number FROM conversations WHERE run = ? AND number > ? ORDER BY number LIMIT ?"
        last = -1
        # An open statement would keep this connection from writing once another connection has written.
        while block := list(self._select(numbers, run, last, _READ_AT_ONCE)):
            for (number,) in block:
                if not isinstance(number, int) or number <= last:
                    raise self._damaged(f"the order of the conversations of run {run}")
                last = number
                if sample_filter(number):
                    line = next(self._select(_CONVERSATION, run, number), (0,))
                    what = f"sample {number} of run {run}"
                    if (dictionary := self._dictionary(line)) is None:
                        raise self._damaged(what)
                    yield number, self._unpacked(Sample, line, what, dictionary)

    def exchanges(
        self, run: int, except_scorers: Collection[tuple[int, str, int]] = ()
    ) -> Iterator[tuple[int, str, int, JudgeExchange]]:
        """Yield requests to judges with their replies.

        Each comes with its sample's number, its scorer, and its position among the score's calls.

        Raises:
            StoreError: One of them is damaged, and not listed in ``except_scorers``.
        """
        scorers = {place: (one.name, one.exchange_dictionary) for place, one in enumerate(self.record(run).scorers)}
        for line in self._select("SELECT * FROM exchanges WHERE run = ? ORDER BY sample, scorer, call", run):
            number, place, call = line[1:4]
            scorer, dictionary = scorers.get(place, ("", b""))
            if (number, scorer, call) not in except_scorers:
                what = f"a judge's reply about sample {number} of run {run}"
                if not is_intact(line):
                    raise self._damaged(what)
                yield number, scorer, call, self._unpacked(JudgeExchange, line, what, dictionary)

    def _unpacked(self, kind: type[PackedRecord], line: tuple[Any, ...], what: str, dictionary: bytes) -> PackedRecord:
        with self._undamaged(what):
            body = line[-2] if self.path is None else decompress(line[-2], dictionary)
            return kind.model_validate_json(body)


def _listed(numbers: Iterable[int]) -> str:
    return to_json(sorted(numbers)).decode()


def _row_of(index: int, score: Score, sample: tuple[Any, ...]) -> Row:
    """Return the row of a score. ``sample`` is the table row of its sample, empty if that is damaged."""
    if not sample:
        return Row(index=index, sample_id=f"#{index}", score=score)
    _, _, sample_id, trace_id, group, domain, labels, label_sources, *_ = sample
    return construct(
        Row,
        {
            "index": index,
            "sample_id": sample_id,
            "score": score,
            "trace_id": trace_id,
            "group": group,
            "domain": domain,
            "labels": from_json(labels) if labels else {},
            "label_sources": from_json(label_sources) if label_sources else {},
        },
    )

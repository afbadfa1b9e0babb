"""Reading recorded conversations and dataset rows from a file."""

import operator
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue, ValidationError

from judgekit.errors import ConfigError, TraceError, path_text, validation_message
from judgekit.formats.columns import DETECTION_ROWS, Columns
from judgekit.formats.detect import detect, reader_for_record
from judgekit.formats.exports import (
    MORE_PAGES,
    RepeatedHistories,
    has_trace_id,
    read_page,
    reject_column_frame,
    reject_mixed_conversations,
    reject_spread_traces,
)
from judgekit.formats.files import File, FileLine, FileRecord, list_files
from judgekit.formats.readers import FALLBACKS, reader_named
from judgekit.formats.readers.base import Reader, as_records
from judgekit.formats.readers.judgekit import JudgekitReader
from judgekit.formats.references import ReferenceJoiner
from judgekit.formats.tables import csv_rows, parquet_rows
from judgekit.locations import Location, Url, to_location
from judgekit.shards import EVERYTHING, LineStart, Shard, ShardStart
from judgekit.traces.fast_models import construct, set_unvalidated
from judgekit.traces.message import is_unicode
from judgekit.traces.recording import TraceSource, TraceWarning
from judgekit.traces.sample import Sample

OnError: TypeAlias = Literal["warn", "raise"] | Callable[[TraceError], object]
SampleFilter: TypeAlias = Callable[[int], bool]
"""A function that returns whether the sample with this number is to be made."""


class _NumberedResult(NamedTuple):
    """The result of a record, with its number over all files; ``None`` if it is not wanted.

    Notices about a whole file have no number.
    """

    number: int | None
    result: Sample | TraceError | None


def read(
    path: Path | str,
    format: str | None = None,
    references: Path | str | None = None,
    on_error: OnError = "warn",
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Iterator[Sample]:
    """Yield recorded conversations or dataset rows.

    JSON Lines, tables and archives are streamed. A JSON document is held in memory as a whole, and so are the
    lines of a log whose lines belong together, such as spans and the sessions of coding agents.

    Args:
        path: A file or its URL (``s3://``, ``gs://``, ``az://``, ``abfs://``): a ``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.eval`` or ``.traj`` file, also
            compressed (``.gz``, ``.zst``); ``.txt`` and ``.log`` if they hold JSON; a folder, in which all files with
            such suffixes are read; a pattern such as ``logs/**/*.json``; or ``-`` for standard input. Each of several
            files may have its own format; samples without an id are numbered over all files.
        format: A format that ``judgekit formats`` lists. The default is to detect it.
        references: A file with references for traces that have none, in any of these containers; see `ReferenceJoiner`.
        on_error: The reaction to a record that cannot be read, a truncated file, one of several files that cannot
            be read, and references that match no sample: a Python warning (the default), an error, or a call with
            the `TraceError`. Except with ``raise``, the rest is read.
        columns: New names of columns in the file or the file of references, by their old names:
            ``{"question": "input", "answer": "response"}``.
        encoding: The encoding of the file and the references, if they hold text. The default is to detect UTF-8 and
            GB18030; ``on_error`` gets a notice about files read as GB18030.

    Raises:
        TraceError: The file cannot be read, has an unknown format, or lacks the columns; or all of several files do.
        ConfigError: The format or encoding is unknown, or two columns get the same name.
    """
    return Recordings(path, format, references, columns, encoding).samples(on_error)


class Recordings:
    """Files that are read together; see `read`.

    Args:
        path: As in `read`, like the next four.
        format: See there.
        references: See there.
        columns: See there.
        encoding: See there.
        shard: The part that is read.
        start: Where the shard begins, as `shard_starts` found it; if not given, what is before it is read to find it.

    Attributes:
        formats: The format of each file that could be read so far.
        failed: The errors of other files that could not be read, or not to the end, and of columns in no file.
    """

    def __init__(
        self,
        path: Path | str,
        format: str | None = None,
        references: Path | str | None = None,
        columns: Mapping[str, str] | None = None,
        encoding: str | None = None,
        shard: Shard = EVERYTHING,
        start: ShardStart | None = None,
    ) -> None:
        self.formats: dict[Location, str] = {}
        self.failed: list[TraceError] = []
        self._encoding = encoding
        self._shard, self._start = shard, start
        self._joiner = None
        self._filter: SampleFilter = _all
        self._is_skipping = False
        self._notices: list[TraceError | None] = []
        self._reader = None if format is None else reader_named(format)
        path = to_location(path)
        self._paths = paths = list_files(path)
        self._sizes = [_size(file) for file in paths] if shard.count > 1 else [0] * len(paths)
        self._columns = Columns(columns or {}, has_more_files=len(paths) > 1)
        self._single = file = File.locate(paths[0], encoding) if paths == [path] else None
        if references is not None:
            known = File.locate(references, encoding)
            with closing(_records(known, self._columns)) as rows:
                self._joiner = ReferenceJoiner(known.path, rows)
            self._notices = [known.notice, self._joiner.notice]
        self._results = (
            self._all_file_results(path)
            if file is None
            else self._single_file_results(
                self._file_results(file, 0) if shard.count == 1 else self._single_shard(file)
            )
        )

    def samples(self, on_error: OnError) -> Iterator[Sample]:
        """Return an iterator over the samples, which can be used once; see `read`."""
        return (sample for _, sample in self.numbered(on_error))

    def numbered(self, on_error: OnError, sample_filter: SampleFilter | None = None) -> Iterator[tuple[int, Sample]]:
        """Yield the samples with the numbers of their records, from 0. This works once.

        Samples that ``sample_filter`` rejects are skipped without being made, unless there are references to join.
        """
        joiner = self._joiner
        self._filter = sample_filter if sample_filter is not None and joiner is None else _all
        histories = RepeatedHistories()
        with closing(self._results):  # otherwise, an error that is raised would keep the file open as long as it lives
            for number, found in chain((_NumberedResult(None, notice) for notice in self._notices), self._results):
                if isinstance(found, TraceError):
                    _report(found, on_error)
                elif found is not None and number is not None:
                    histories.add(found.trace)
                    sample = found if joiner is None else joiner.join(found)
                    if sample_filter is None or sample_filter(number):
                        yield number, sample
        misfits = joiner.misfits(all_samples=self._shard.count == 1) if joiner else ()
        for problem in chain(histories.repeated(), misfits):
            _report(problem, on_error)

    def _file_results(self, file: File, before: int) -> Iterator[_NumberedResult]:
        """Yield the content of a file; ``before`` is the number of records in earlier files."""
        if file.container == "document":
            samples, name = self._from_document(file, before)
        else:
            reader = self._reader or _detected_in(file, self._columns)
            samples, name = self._from_records(file, reader, before), reader.name
        self.formats[file.path] = name
        return samples if file.notice is None else chain([_NumberedResult(None, file.notice)], samples)

    def shard_starts(self) -> Iterator[ShardStart]:
        """Yield where each shard begins. For that, the files are read once, up to the start of the last shard.

        Raises:
            TraceError: A single file cannot be read.
            ConfigError: Its encoding is unknown.
        """
        return self._starts(range(self._shard.count))

    def _starts(self, indexes: Iterable[int]) -> Iterator[ShardStart]:
        """Yield where the shards with these indexes begin, in ascending order."""
        size, records, offset = sum(self._sizes), 0, 0
        ahead = deque(replace(self._shard, index=index).byte_range(size).start for index in indexes)
        for place, path in enumerate(self._paths):
            while ahead and ahead[0] <= offset:
                ahead.popleft()
                yield ShardStart(place, records)
            count = 0
            for line in self._record_starts(path) if ahead else ():
                while ahead and ahead[0] <= offset + line.offset:
                    ahead.popleft()
                    yield ShardStart(place, records, line)
                if not ahead:
                    return
                count += 1
            records, offset = records + count, offset + self._sizes[place]
        yield from [ShardStart(len(self._paths), records)] * len(ahead)

    def _record_starts(self, path: Location) -> Iterator[LineStart]:
        """Yield where each record of a file begins. Unless they are read line by line, that is where the file begins."""
        try:
            file = self._single or File.locate(path, self._encoding)
            if (reader := self._line_reader(file)) is not None:
                self._line_notices(file, reader)
        except (TraceError, ConfigError):
            if self._single is not None:
                raise
            return  # the shard in which the file begins reports it
        with suppress(TraceError, ConfigError):  # likewise
            if reader is not None:
                for index, line in enumerate(file.lines()):
                    yield LineStart(line.offset, line.number - 1, index)
            elif path != self._paths[-1]:
                self._is_skipping = True
                yield from (LineStart() for found in self._file_results(file, 0) if found.number is not None)
        self._is_skipping = False

    def _shard_results(self, file: File, before: int, start: LineStart, stop: float) -> Iterator[_NumberedResult]:
        """Yield what begins in a part of a file; ``before`` is the number of records in earlier files.

        Lines with one record each are taken one by one. All else is one piece, which begins where the file does.
        """
        if self._shard.count == 1 or (reader := self._line_reader(file)) is None:
            return self._file_results(file, before)
        self.formats[file.path] = reader.name
        notices = () if start.offset else self._line_notices(file, reader)
        return chain(notices, self._from_lines(file, reader, before, (start, stop)))

    def _line_reader(self, file: File) -> Reader | None:
        """Return the reader of a file that is read line by line, since its first lines hold one record each."""
        if not file.has_byte_lines:
            return None
        reader = self._reader or _detected_in(file, self._columns)
        if reader.joins_lines:
            return None
        with closing(_required(file, self._columns)) as records:
            first = list(islice(records, DETECTION_ROWS))
        place = self._place(file, reader, 0)
        has_pages = len({record.line_number for record in first}) < len(first)
        is_simple = not has_pages and all(len(_split_row(record, place)[1]) == 1 for record in first)
        return reader if is_simple else None

    def _line_notices(self, file: File, reader: Reader) -> Sequence[_NumberedResult]:
        sessions = None if self._reads_directly(file, reader) else self._sessions_in(file)
        return [_NumberedResult(None, one) for one in (file.notice, sessions) if one is not None]

    def _find_start(self) -> tuple[ShardStart, float]:
        """Return where the shard begins, and the offset from the beginning of its first file at which it ends."""
        if self._start is None:
            self._start = next(self._starts([self._shard.index]))
        stop = self._shard.byte_range(sum(self._sizes)).stop
        return self._start, stop - sum(self._sizes[: self._start.file])

    def _single_shard(self, file: File) -> Iterator[_NumberedResult]:
        """Yield the content of a shard of a single file."""
        start, stop = self._find_start()
        if not start.file:
            yield from self._shard_results(file, 0, start.line, stop)

    def _single_file_results(self, found: Iterator[_NumberedResult]) -> Generator[_NumberedResult]:
        """Yield the content of a single file. If the file breaks off, what was read before stays."""
        any_read = False
        try:
            for one in found:
                any_read = any_read or not isinstance(one.result, TraceError)
                yield one
        except TraceError as error:
            if not any_read and self._start in (None, ShardStart()):
                raise
            self.failed.append(error)
            yield _NumberedResult(None, error)

    def _all_file_results(self, path: Location) -> Generator[_NumberedResult]:
        start, stop = self._find_start()
        before, line = start.records, start.line
        for file, size in islice(zip(self._paths, self._sizes, strict=True), start.file, None):
            if stop <= 0:
                break
            count = line.records
            try:
                for found in self._shard_results(File.locate(file, self._encoding), before, line, stop):
                    count += found.number is not None
                    yield found
            except (TraceError, ConfigError) as error:
                self.failed.append(error if isinstance(error, TraceError) else TraceError(str(error), path=file))
                yield _NumberedResult(None, self.failed[-1])
            before, line, stop = before + count, LineStart(), stop - size
        if not self.formats and self._shard.count == 1:
            raise TraceError(f"none of {len(self._paths):,} files could be read; first error: {self.failed[0]}")
        try:
            if self._shard.count > 1:
                self._look_for_columns()
            self._columns.must_be_seen(path)
        except TraceError as error:
            self.failed.append(error)
            yield _NumberedResult(None, error)

    def _look_for_columns(self) -> None:
        """Look for the renamed columns in all files until all are seen, since they may be in other shards."""
        names, seen = self._columns.names.keys(), self._columns.seen.keys()
        for path in self._paths:
            with suppress(TraceError, ConfigError):  # which are reported where the file is read
                if not names <= seen:
                    with closing(_records(File.locate(path, self._encoding), self._columns)) as rows:
                        next((None for _ in rows if names <= seen), None)

    def _from_records(self, file: File, reader: Reader, before: int) -> Iterator[_NumberedResult]:
        if self._reads_directly(file, reader):
            yield from self._from_lines(file, reader, before)
            return
        if not reader.joins_lines and (notice := self._sessions_in(file)) is not None:
            yield _NumberedResult(None, notice)
        records = _required(file, self._columns)
        place = self._place(file, reader, before)
        found = self._converted(_gathered(records) if reader.joins_lines else records, place)
        if (first := next(found, None)) is None:
            raise TraceError("contains no conversations", path=file.path)
        yield first
        yield from found

    def _sessions_in(self, file: File) -> TraceError | None:
        """Return a notice about records that share a session, if the first records name their trace or session.

        Raises:
            TraceError: A trace is spread over several records.
        """
        with closing(_required(file, self._columns)) as records:
            if not any(has_trace_id(record.value) for record in islice(records, DETECTION_ROWS)):
                return None
        with closing(_required(file, self._columns)) as records:
            notice = reject_spread_traces(record.value for record in records)
        return None if notice is None else TraceError(notice, path=file.path)

    def _reads_directly(self, file: File, reader: Reader) -> bool:
        """Return whether lines are samples of our own format, which can be read as fast as possible."""
        is_own = isinstance(reader, JudgekitReader) and file.container == "lines"
        return is_own and not self._columns.names and file.encoding == "utf-8"

    def _place(self, file: File, reader: Reader, before: int) -> "_Place":
        is_mixed = not (reader.joins_lines or self._reader is not None or self._reads_directly(file, reader))
        return _Place(file.path, path_text(file.path), before, reader, is_mixed)

    def _from_lines(
        self, file: File, reader: Reader, before: int, part: tuple[LineStart, float] | None = None
    ) -> Iterator[_NumberedResult]:
        """Yield the records of lines, of which those in a part of the file are to hold one each."""
        place, is_own = self._place(file, reader, before), self._reads_directly(file, reader)
        start, stop = part or (LineStart(), inf)
        for index, line in enumerate(file.lines(start, stop), start.records):
            if not self._wants(before + index):
                yield _NumberedResult(before + index, None)
                continue
            if is_own:
                try:
                    yield _NumberedResult(before + index, Sample.model_validate_json(line.text))
                    continue
                except ValidationError:
                    pass  # an id is missing, text is invalid, or the error is explained in the general way
            records = [file.parsed(line)] if is_own else unpaged([file.parsed(line)])
            rows = list(self._converted(self._columns.rows(records) if self._columns.names else records, place, index))
            if len(rows) == 1 or part is None:
                yield from rows
            else:
                yield _NumberedResult(before + index, _not_single(file, line, index, len(rows)))

    def _from_document(self, file: File, before: int) -> tuple[Iterator[_NumberedResult], str]:
        names = self._columns
        document = file.document()
        if document is None:
            objects = replace(file, container="objects")
            reader = self._reader or _detected_in(objects, names)
            return self._from_records(objects, reader, before), reader.name
        try:
            value = _value(document.value)
            reject_column_frame(value)
            page = read_page(value)
            notices = [MORE_PAGES] if page is not None and page.has_more else []
            value = value if page is None else cast("JsonValue", page.records)
            if names.names:
                value = _renamed(value, names)
                if not names.has_more_files:
                    names.must_be_seen(file.path)
            reader = self._reader or _document_format(file, value)
            records = _split(value, reader)
            whole = not isinstance(value, list) or not _are_records(value, reader, records)
            if isinstance(value, list) and not whole:
                if any(map(has_trace_id, value[:DETECTION_ROWS])) and (notice := reject_spread_traces(value)):
                    notices.append(notice)
                records = value
            elif len(records) == 1 and not reader.joins_lines:
                reject_mixed_conversations(value)
        except TraceError as error:
            raise TraceError(error.problem, path=file.path) from error
        if not records:
            raise TraceError("contains no conversations", path=file.path)
        place = _Place(
            file.path, path_text(file.path), before, reader, mixed_formats=not whole and self._reader is None
        )
        rows = (FileRecord(None, record, document.clean) for record in records)
        found: Iterator[_NumberedResult] = (
            (self._read_record(row, reader, place, index) for index, row in enumerate(rows))
            if whole
            else self._converted(rows, place)
        )
        return chain((_NumberedResult(None, TraceError(one, path=file.path)) for one in notices), found), reader.name

    def _converted(self, rows: Iterable[FileRecord], place: "_Place", index: int = 0) -> Iterator[_NumberedResult]:
        """Yield the conversations in the rows of a file, counted from ``index``."""
        for row in rows:
            reader, values = _split_row(row, place)
            for value in values:
                record = row if value is row.value else FileRecord(row.line_number, value, row.clean)
                yield self._read_record(record, reader, place, index)
                index += 1

    def _read_record(self, record: FileRecord, reader: Reader, place: "_Place", index: int) -> _NumberedResult:
        number = place.before + index
        return _NumberedResult(number, _make_sample(record, reader, place, index) if self._wants(number) else None)

    def _wants(self, number: int) -> bool:
        return not self._is_skipping and self._filter(number)


def _size(location: Location) -> int:
    if isinstance(location, Url):
        return (location.version or location.current_version()).size
    return location.stat().st_size if location.exists() else 0


def _all(_: int) -> bool:
    return True


def _not_single(file: File, line: FileLine, index: int, count: int) -> TraceError:
    found = (
        f"contains {count} conversations, but the first lines of the file contain one each, and shards count lines; "
        "write one per line with judgekit convert"
    )
    return TraceError(found, path=file.path, index=index, line=line.number)


def _records(file: File, names: Columns) -> Generator[FileRecord]:
    if file.container == "csv":
        yield from csv_rows(file, names)
        return
    if file.container == "parquet":
        yield from parquet_rows(file, names)
        return
    document = file.document() if file.container == "document" else None
    if document is None:
        records = unpaged(file.records())
    elif rows := as_records(_value(document.value)):
        records = unpaged(FileRecord(None, row, document.clean) for row in rows)
    else:
        raise TraceError("contains no rows", path=file.path)
    yield from names.rows(records) if names.names else records


def unpaged(records: Iterable[FileRecord]) -> Iterator[FileRecord]:
    """Yield records, unpacking pages. Ends with an error if the last page is not the final one."""
    last: FileRecord | None = None
    for record in records:
        page = None if isinstance(record.value, TraceError) else read_page(record.value)
        if page is None:
            yield record
        else:
            last = record if page.has_more else None
            yield from (FileRecord(record.line_number, one, record.clean) for one in page.records)
    if last is not None:
        yield FileRecord(last.line_number, TraceError(MORE_PAGES))


def _required(file: File, names: Columns) -> Generator[FileRecord]:
    records = _records(file, names)
    yield from names.required(file.path, records) if names.names else records


def _detected_in(file: File, names: Columns) -> Reader:
    with closing(_required(file, names)) as records:
        return _detected(file, records)


def _detected(file: File, records: Iterable[FileRecord]) -> Reader:
    """Return the format of the first hundred records: the first that is not a fallback, or the log they belong to."""
    failures: list[TraceError] = []
    found: list[Reader] = []
    for line, value, _ in islice(records, DETECTION_ROWS):
        try:
            found.append(_recognised(_value(value)))
        except TraceError as error:
            said = error.problem
            if said.startswith("not JSON: the text ends"):
                said += "; if the file is a single JSON document, give it the suffix .json"
            failures.append(TraceError(said, path=file.path, line=line))
            continue
        if found[-1].name not in FALLBACKS:
            return found[-1]
    if not found:
        raise failures[0] if failures else TraceError("contains no conversations", path=file.path)
    return min(found, key=lambda reader: FALLBACKS.index(reader.name))


def _document_format(file: File, value: JsonValue) -> Reader:
    """Return the format of a document. A list of records is treated like lines, since its first may say little."""
    try:
        reader = _recognised(value)
    except TraceError:
        with suppress(TraceError):
            if isinstance(value, list) and value:
                return _detected(file, (FileRecord(None, item) for item in value))
        raise
    if isinstance(value, list) and reader.name in FALLBACKS and reader.records(value) == value:
        return _detected(file, (FileRecord(None, item) for item in value))
    return reader


def _recognised(value: JsonValue) -> Reader:
    try:
        return detect(value)
    except RecursionError:
        raise TraceError("nested too deeply") from None


def _value(value: JsonValue | TraceError) -> JsonValue:
    if isinstance(value, TraceError):
        raise value
    return value


def _gathered(records: Iterable[FileRecord]) -> Iterator[FileRecord]:
    """Yield rows that belong together as one list, after those that cannot be read."""
    rows: list[JsonValue] = []
    clean = True
    for record in records:
        if isinstance(record.value, TraceError):
            yield record
        else:
            rows.append(record.value)
            clean = clean and record.clean
    yield FileRecord(None, rows, clean)


def _renamed(document: JsonValue, names: Columns) -> JsonValue:
    """Return a document with the keys of its rows renamed. A row where that fails is replaced by its error.

    Raises:
        TraceError: It fails in the first row.
    """
    if not isinstance(document, list):
        return names.row(document)
    rows = [row.value for row in names.rows(FileRecord(None, row) for row in document)]
    if rows and isinstance(rows[0], TraceError):
        raise rows[0]
    return cast("JsonValue", rows)


class _Place(NamedTuple):
    """A file and the number of records before it; ``mixed_formats`` means that records may differ in format."""

    path: Location
    path_text: str
    before: int
    reader: Reader
    mixed_formats: bool = False


def _split_row(row: FileRecord, place: _Place) -> tuple[Reader, Sequence[JsonValue | TraceError]]:
    """Return the reader of a row, and the records in it."""
    reader = place.reader
    try:
        value = _value(row.value)
        reject_column_frame(value)
        if place.mixed_formats:
            reader = reader_for_record(value, reader)
        records: Sequence[JsonValue | TraceError] = _split(value, reader)
        if len(records) == 1 and not reader.joins_lines:
            reject_mixed_conversations(value)
    except TraceError as error:
        records = [error]
    return reader, records


def _are_records(rows: list[JsonValue], reader: Reader, records: list[JsonValue]) -> bool:
    """Return whether a list holds records one by one, like lines, and is not itself a conversation or log."""
    if reader.joins_lines:
        return False
    with suppress(TraceError):
        return records == [record for row in rows for record in _split(row, reader)]
    return False


def _split(value: JsonValue, reader: Reader) -> list[JsonValue]:
    try:
        return list(reader.records(value))
    except RecursionError:
        raise TraceError("nested too deeply") from None


def _make_sample(record: FileRecord, reader: Reader, place: _Place, index: int) -> Sample | TraceError:
    path, before = place.path, place.before
    try:
        value = _value(record.value)
        clean = value if record.clean else _without_surrogates(value)
        sample = reader.sample(clean, before + index)
    except TraceError as error:
        return TraceError(error.problem, path=path, index=index, line=record.line_number)
    except ValidationError as error:
        found = "nested too deeply" if "recursion" in str(error.errors()[0]["type"]) else validation_message(error)
        return TraceError(found, path=path, index=index, line=record.line_number)
    except RecursionError:
        return TraceError("nested too deeply", path=path, index=index, line=record.line_number)
    if clean is not value:
        replaced = TraceWarning("lone surrogates, which are not valid text, replaced by U+FFFD")
        set_unvalidated(sample.trace, warnings=(*sample.trace.warnings, replaced))
    if not isinstance(reader, JudgekitReader):
        source = construct(TraceSource, {"format": reader.name, "path": place.path_text, "index": index})
        set_unvalidated(sample.trace, source=source)
    return sample


def _without_surrogates(value: JsonValue) -> JsonValue:
    """Return the same object if all its text is valid. Arguments are left, since a `ToolCall` keeps broken ones."""
    if isinstance(value, str) and not is_unicode(value):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        cleaned = [_without_surrogates(item) for item in value]
        return value if all(map(operator.is_, cleaned, value)) else cleaned
    if isinstance(value, dict):
        clean = {
            str(_without_surrogates(key)): item
            if key in ("args", "arguments") and isinstance(item, dict)
            else _without_surrogates(item)
            for key, item in value.items()
        }
        same = all(map(operator.is_, clean.values(), value.values())) and all(map(operator.is_, clean, value))
        return value if same else clean
    return value


def _report(error: TraceError, on_error: OnError) -> None:
    if on_error == "raise":
        raise error
    if on_error == "warn":
        warnings.warn(str(error), stacklevel=4)
    else:
        on_error(error)

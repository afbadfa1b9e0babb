"""The conversations in one file: each is found first, and read into a sample where it is wanted."""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TypeAlias, cast

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, path_text, validation_message
from judgekit.formats.columns import DETECTION_ROWS, Columns
from judgekit.formats.detect import RecordReaders, detect_document, detect_first
from judgekit.formats.exports import (
    MORE_PAGES,
    has_trace_id,
    read_page,
    reject_column_frame,
    reject_mixed_conversations,
    reject_spread_traces,
)
from judgekit.formats.files import File, FileLine, FileRecord
from judgekit.formats.readers.base import Reader
from judgekit.formats.readers.judgekit import JudgekitReader
from judgekit.formats.records import records_in
from judgekit.formats.session_files import SESSION_FORMATS, SessionFiles, sub_agent_records
from judgekit.formats.unread import silence
from judgekit.locations import Location
from judgekit.traces.equality import MOST_LEVELS, is_deeper
from judgekit.traces.fast_models import construct, is_encodable, set_unvalidated
from judgekit.traces.message import is_unicode
from judgekit.traces.recording import TraceSource, TraceWarning
from judgekit.traces.sample import Sample

Conversation: TypeAlias = Callable[[int], Sample | TraceError]
"""A conversation that was found: called with its number over all files, it is read."""
FileContent: TypeAlias = Iterator[TraceError | Conversation]
"""The conversations of a file in order, with notices and errors about the file itself."""


@dataclass(frozen=True)
class _Source:
    """A file and the readers of its records. A file of one format has only one."""

    path: Location
    reader: Reader
    record_readers: RecordReaders | None = None


def find_conversations(
    file: File, reader: Reader | None, columns: Columns, session: SessionFiles | None = None
) -> tuple[str, FileContent]:
    """Return the format of a file, which is detected unless there is a reader, and what the file contains.

    If the file is a session of a coding agent, those of its sub-agents are read with it.
    """
    is_detected = reader is None
    if file.container == "document":
        document = file.document()
        if document is not None:
            reader, content = _in_document(file, document, reader, columns)
            return reader.name, content
        file = replace(file, container="objects")
    if reader is None:
        with closing(records_in(file, columns)) as records:
            reader = detect_first(file.path, islice(records, DETECTION_ROWS))
    is_plain = file.container == "lines" and file.encoding == "utf-8" and not columns.names
    if is_plain and isinstance(reader, JudgekitReader):
        return reader.name, _in_own_lines(file, _Source(file.path, reader))
    is_mixed = is_detected and not reader.joins_lines
    source = _Source(file.path, reader, RecordReaders(reader) if is_mixed else None)
    return reader.name, _in_records(file, source, columns, session if joins_sub_agents(file, reader.name) else None)


def joins_sub_agents(file: File, format: str) -> bool:
    """Return whether the sub-agents of a session are read with it."""
    return format in SESSION_FORMATS and file.container == "lines"


def _in_own_lines(file: File, source: _Source) -> FileContent:
    """Yield the samples of judgekit's own lines, each of which is parsed only where it is wanted."""
    index = 0
    for line in file.lines():
        if line.text.startswith(b"{"):
            yield partial(_read_own_line, file, line, source, index)
            index += 1
        else:
            for conversation in _in_record(file.parsed(line), source, index):
                yield conversation
                index += 1


def _read_own_line(file: File, line: FileLine, source: _Source, index: int, number: int) -> Sample | TraceError:
    try:
        return Sample.model_validate_json(line.text)
    except ValidationError:  # an id is missing, text is invalid, or the error is explained in the general way
        [conversation] = _in_record(file.parsed(line), source, index)
    return conversation(number)


def _in_records(file: File, source: _Source, columns: Columns, session: SessionFiles | None) -> FileContent:
    joins_lines = source.reader.joins_lines
    if not joins_lines and (notice := _shared_sessions(file, columns)) is not None:
        yield notice
    records: Iterable[FileRecord] = records_in(file, columns)
    problems: list[TraceError] = []
    if session is not None:
        records = chain(records, (FileRecord(None, value) for value in sub_agent_records(session, problems)))
    conversations = _in_rows(_joined(records) if joins_lines else records, source)
    if (first := next(conversations, None)) is None:
        raise TraceError("contains no conversations", path=file.path)
    yield first
    yield from conversations
    yield from problems


def _shared_sessions(file: File, columns: Columns) -> TraceError | None:
    """Return a notice about records that share a session. A trace that is spread over several records is an error."""
    with closing(records_in(file, columns)) as records:
        if not any(has_trace_id(record.value) for record in islice(records, DETECTION_ROWS)):
            return None
    with closing(records_in(file, columns)) as records:
        notice = reject_spread_traces(record.value for record in records)
    return None if notice is None else TraceError(notice, path=file.path)


def _joined(records: Iterable[FileRecord]) -> Iterator[FileRecord]:
    """Yield rows that belong together as one list, after those that cannot be read."""
    rows: list[JsonValue] = []
    for record in records:
        if isinstance(record.value, TraceError):
            yield record
        else:
            rows.append(record.value)
    yield FileRecord(None, rows)


def _in_document(
    file: File, document: FileRecord, reader: Reader | None, columns: Columns
) -> tuple[Reader, FileContent]:
    is_detected = reader is None
    try:
        content = document.parsed()
        reject_column_frame(content)
        page = read_page(content)
        notices = [TraceError(MORE_PAGES, path=file.path)] if page is not None and page.has_more else []
        content = content if page is None else cast("JsonValue", page.records)
        if columns.names:
            content = _renamed(content, columns)
            if not columns.has_more_files:
                columns.must_be_seen(file.path)
        reader = reader or detect_document(file.path, content)
        conversations = _split(content, reader)
        rows = content if isinstance(content, list) and _are_records(content, reader, conversations) else None
        if rows is not None:
            if any(map(has_trace_id, rows[:DETECTION_ROWS])) and (notice := reject_spread_traces(rows)):
                notices.append(TraceError(notice, path=file.path))
        elif len(conversations) == 1 and not reader.joins_lines:
            reject_mixed_conversations(content)
    except TraceError as error:
        raise TraceError(error.problem, path=file.path) from error
    if not (conversations if rows is None else rows):
        raise TraceError("contains no conversations", path=file.path)
    if rows is not None:
        source = _Source(file.path, reader, RecordReaders(reader) if is_detected else None)
        return reader, chain(notices, _in_rows((FileRecord(None, row) for row in rows), source))
    source = _Source(file.path, reader)
    records = (FileRecord(None, conversation) for conversation in conversations)
    return reader, chain(notices, (partial(_read, one, reader, source, at) for at, one in enumerate(records)))


def _renamed(document: JsonValue, columns: Columns) -> JsonValue:
    """Return a document with the keys of its rows renamed. A row where that fails is replaced by its error."""
    if not isinstance(document, list):
        return columns.row(document)
    rows = [row.value for row in columns.rows(FileRecord(None, row) for row in document)]
    if rows and isinstance(rows[0], TraceError):
        raise rows[0]
    return cast("JsonValue", rows)


def _are_records(rows: list[JsonValue], reader: Reader, records: list[JsonValue]) -> bool:
    """Return whether a list holds records one by one, like lines, and is not itself a conversation or log."""
    if reader.joins_lines:
        return False
    with suppress(TraceError):
        return records == [record for row in rows for record in _split(row, reader)]
    return False


def _in_rows(records: Iterable[FileRecord], source: _Source) -> Iterator[Conversation]:
    index = 0
    for record in records:
        for conversation in _in_record(record, source, index):
            yield conversation
            index += 1


def _in_record(record: FileRecord, source: _Source, index: int) -> Sequence[Conversation]:
    reader = source.reader
    try:
        value = record.parsed()
        reject_column_frame(value)
        if source.record_readers is not None:
            reader = source.record_readers.reader_of(value)
        values: Sequence[JsonValue | TraceError] = _split(value, reader)
        if len(values) == 1 and not reader.joins_lines:
            reject_mixed_conversations(value)
    except TraceError as error:
        values = [error]
    return [
        partial(_read, record if value is record.value else record._replace(value=value), reader, source, position)
        for position, value in enumerate(values, index)
    ]


def _split(value: JsonValue, reader: Reader) -> list[JsonValue]:
    try:
        return list(reader.records(value))
    except RecursionError:
        raise TraceError("nested too deeply") from None


def _read(record: FileRecord, reader: Reader, source: _Source, index: int, number: int) -> Sample | TraceError:
    """Return a conversation as a sample, or the error that it cannot be read, which holds on to no record."""
    try:
        value = record.parsed()
        clean = value if is_encodable(value) else _without_surrogates(value)
        sample = reader.sample(clean, number)
        if sample.trace.children and is_deeper(sample, MOST_LEVELS):
            raise TraceError(f"nested more than {MOST_LEVELS} levels deep (each sub-agent within another counts two)")
        if (problem := silence(sample, reader.name)) is not None:
            raise TraceError(problem)
    except (TraceError, ValidationError, RecursionError) as error:
        return TraceError(_problem(error), path=source.path, index=index, line=record.line_number)
    if clean is not value:
        replaced = TraceWarning("lone surrogates, which are not valid text, replaced by U+FFFD")
        set_unvalidated(sample.trace, warnings=(*sample.trace.warnings, replaced))
    if not isinstance(reader, JudgekitReader):
        origin = construct(TraceSource, {"format": reader.name, "path": path_text(source.path), "index": index})
        set_unvalidated(sample.trace, source=origin)
    return sample


def _problem(error: TraceError | ValidationError | RecursionError) -> str:
    if isinstance(error, TraceError):
        return error.problem
    if isinstance(error, RecursionError) or "recursion" in str(error.errors()[0]["type"]):
        return "nested too deeply"
    return validation_message(error)


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

"""Reading recorded conversations and dataset rows from a file."""

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue, ValidationError

from judgekit.errors import ConfigError, TraceError
from judgekit.traces.columns import ROWS_LOOKED_AT, Columns
from judgekit.traces.detect import detect
from judgekit.traces.files import File, Record
from judgekit.traces.message import is_unicode
from judgekit.traces.readers import READERS
from judgekit.traces.readers.foreign import Reader, items
from judgekit.traces.readers.judgekit import JudgekitReader
from judgekit.traces.references import Joiner
from judgekit.traces.sample import Sample
from judgekit.traces.tables import csv_rows, parquet_rows
from judgekit.traces.trace import Source, TraceWarning

OnError: TypeAlias = Literal["warn", "raise"] | Callable[[TraceError], object]


def read(
    path: Path | str,
    format: str | None = None,
    references: Path | str | None = None,
    on_error: OnError = "warn",
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Iterator[Sample]:
    """Reads recorded conversations or dataset rows, one after another, holding few of them at a time (of JSON, all).

    Args:
        path: A ``.jsonl``, ``.json``, ``.csv``, ``.tsv`` or ``.parquet`` file, or one of these with ``.gz``.
        format: One of ``judgekit``, ``openai-chat``, ``ragas``, ``rows``, ``tau2``; found out by itself when not given.
        references: A file of references for traces that carry none, in any of these containers; see `Joiner`.
        on_error: What is done about a record that cannot be read, and about references that fit no sample: a Python
            warning (the default), an error, or a call with the `TraceError`. The rest is read in any case but ``raise``.
        columns: What columns of rows are called in the file, or in that of references, and what here:
            ``{"question": "input", "answer": "response"}``.
        encoding: That of the file, and of references, if they hold text. UTF-8 and GB18030 are told apart when it is not
            given; what was read as GB18030 is told by ``on_error``.

    Raises:
        TraceError: The file cannot be read at all, has no known format, or has not the columns.
        ConfigError: There is no such format or encoding, or two columns are to have one name.
    """
    file = File.at(path, encoding)
    names = Columns(columns or {})
    joiner = None
    notices = [file.notice]
    if references is not None:
        known = File.at(references, encoding)
        notices.append(known.notice)
        joiner = Joiner(known.path, _records(known, names))
        notices.append(joiner.notice)
    if format is not None and format not in READERS:
        raise ConfigError.unknown("format", format, READERS)
    named = None if format is None else READERS[format]
    if file.container == "document":
        samples = _from_document(file, names, named)
    else:
        samples = _from_records(file, names, named or _detected(file, _required(file, names)))
    return _reported(samples, joiner, on_error, [notice for notice in notices if notice])


def _records(file: File, names: Columns) -> Iterator[Record]:
    if file.container == "csv":
        return csv_rows(file, names)
    if file.container == "parquet":
        return parquet_rows(file, names)
    records = file.records() if file.container == "lines" else file.document()
    if not isinstance(records, Iterator):
        if not (rows := items(records)):
            raise TraceError("holds no rows", path=file.path)
        records = (Record(None, row) for row in rows)
    return names.rows(records) if names.names else records


def _required(file: File, names: Columns) -> Iterator[Record]:
    records = _records(file, names)
    return names.required(file.path, records) if names.names else records


def _detected(file: File, records: Iterator[Record]) -> Reader:
    """The format of the first record that has a known one, among the first hundred."""
    failures: list[TraceError] = []
    for line, value in islice(records, ROWS_LOOKED_AT):
        try:
            return detect(_value(value))
        except TraceError as error:
            found = error.found
            if found.startswith("not JSON"):
                found += ". (A file that holds one JSON document is named .json)"
            failures.append(TraceError(found, path=file.path, line=line))
    raise failures[0]


def _value(value: JsonValue | TraceError) -> JsonValue:
    if isinstance(value, TraceError):
        raise value
    return value


def _from_records(file: File, names: Columns, reader: Reader) -> Iterator[Sample | TraceError]:
    own_lines = isinstance(reader, JudgekitReader) and file.container == "lines"
    if own_lines and not names.names and file.encoding == "utf-8":
        yield from _from_own_lines(file, reader)
        return
    for index, record in enumerate(_required(file, names)):
        yield _converted(record, reader, file.path, index)


def _from_own_lines(file: File, reader: Reader) -> Iterator[Sample | TraceError]:
    """Our own format, as fast as it can be read."""
    for index, line in enumerate(file.lines()):
        try:
            yield Sample.model_validate_json(line.text)
        except ValidationError:  # a missing id or a surrogate; or an error that is explained on the way of all others
            yield _converted(file.parsed(line), reader, file.path, index)


def _from_document(file: File, names: Columns, named: Reader | None) -> Iterator[Sample | TraceError]:
    document = file.document()
    if isinstance(document, Iterator):
        lines = replace(file, container="lines")
        return _from_records(lines, names, named or _detected(lines, _required(lines, names)))
    try:
        if names.names:
            document = _renamed(document, names)
            names.must_be_seen(file.path)
        reader = named or detect(document)
        records = reader.records(document)
    except TraceError as error:
        raise TraceError(error.found, path=file.path) from error
    if not records:
        raise TraceError("holds no conversations", path=file.path)
    return (_converted(Record(None, record), reader, file.path, index) for index, record in enumerate(records))


def _renamed(document: JsonValue, names: Columns) -> JsonValue:
    """A document with the keys of its rows renamed. A row where that fails becomes its error, which is told in its turn.

    Raises:
        TraceError: It fails in the first one.
    """
    if not isinstance(document, list):
        return names.row(document)
    rows = [row.value for row in names.rows(Record(None, row) for row in document)]
    if rows and isinstance(rows[0], TraceError):
        raise rows[0]
    return cast("JsonValue", rows)


def _converted(record: Record, reader: Reader, path: Path, index: int) -> Sample | TraceError:
    try:
        value = _value(record.value)
        clean = _without_surrogates(value)
        sample = reader.sample(clean, index)
    except TraceError as error:
        return TraceError(error.found, path=path, index=index, line=record.line)
    except RecursionError:
        return TraceError("nested too deeply", path=path, index=index, line=record.line)
    trace = sample.trace
    noted: dict[str, object] = {}
    if clean is not value:
        replaced = TraceWarning("lone surrogates, which are no text, replaced by U+FFFD")
        noted["warnings"] = (*trace.warnings, replaced)
    if not isinstance(reader, JudgekitReader):
        noted["source"] = Source(format=reader.name, path=str(path), index=index)
    return sample.model_copy(update={"trace": trace.model_copy(update=noted)})


def _without_surrogates(value: JsonValue) -> JsonValue:
    """The same object if all its text is text. Arguments of tool calls are left: a `ToolCall` keeps broken ones."""
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


def _reported(
    samples: Iterator[Sample | TraceError], joiner: Joiner | None, on_error: OnError, notices: list[TraceError]
) -> Iterator[Sample]:
    for found in chain(notices, samples):
        if isinstance(found, TraceError):
            _report(found, on_error)
        else:
            yield found if joiner is None else joiner.join(found)
    for problem in joiner.misfits() if joiner else ():
        _report(problem, on_error)


def _report(error: TraceError, on_error: OnError) -> None:
    if on_error == "raise":
        raise error
    if on_error == "warn":
        warnings.warn(str(error), stacklevel=3)
    else:
        on_error(error)

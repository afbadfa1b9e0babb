"""Reading recorded conversations from a file."""

import codecs
import gzip
import json
import operator
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from judgekit.errors import ConfigError, TraceError
from judgekit.traces.detect import detect
from judgekit.traces.message import is_unicode
from judgekit.traces.readers import READERS
from judgekit.traces.readers.foreign import Reader
from judgekit.traces.readers.judgekit import JudgekitReader
from judgekit.traces.references import Joiner
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Source, TraceWarning

OnError: TypeAlias = Literal["warn", "raise"] | Callable[[TraceError], object]

_LINES_LOOKED_AT = 100


def read(
    path: Path | str, format: str | None = None, references: Path | str | None = None, on_error: OnError = "warn"
) -> Iterator[Sample]:
    """Reads recorded conversations, one after another, holding only one line of a JSONL file at a time.

    Args:
        path: A ``.jsonl`` or ``.json`` file, or either with ``.gz``.
        format: One of ``judgekit``, ``openai-chat``, ``ragas``, ``tau2``; found out by itself when not given.
        references: A JSONL file of references for traces that carry none; see `Joiner`.
        on_error: What is done about a record that cannot be read, and about references that fit no sample: a Python
            warning (the default), an error, or a call with the `TraceError`. The rest is read in any case but ``raise``.

    Raises:
        TraceError: The file cannot be read at all, or has no known format.
        ConfigError: There is no such format.
    """
    file = _existing(Path(path))
    joiner = None if references is None else Joiner(Path(references), _reference_rows(_existing(Path(references))))
    if format is not None and format not in READERS:
        raise ConfigError.unknown("format", format, READERS)
    named = None if format is None else READERS[format]
    lines = _has_lines(file)
    samples = _from_lines(file, named or _detect_lines(file)) if lines else _from_document(file, named)
    return _reported(samples, joiner, on_error)


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise TraceError("is a folder; give one file", path=path)
    if not path.exists():
        raise TraceError("does not exist", path=path)
    if path.stat().st_size == 0:
        raise TraceError("is empty", path=path)
    return path


def _has_lines(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes]]:
    """The file, unpacked; what goes wrong while it is read is about this file."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"cannot be read: {error}", path=path) from error


class _Line(NamedTuple):
    number: int
    text: bytes


def _lines(path: Path) -> Iterator[_Line]:
    """The lines that are not blank, each with its number from 1; a file has at least one."""
    blank = True
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if text := (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip():
                blank = False
                yield _Line(number, text)
    if blank:
        raise TraceError("has only blank lines", path=path)


def _reference_rows(path: Path) -> Iterator[tuple[int, JsonValue]]:
    for line in _lines(path):
        try:
            yield line.number, parse_json(line.text)
        except ValueError as error:
            raise TraceError(_not_json(error), path=path, line=line.number) from error


def parse_json(text: bytes) -> JsonValue:
    """JSON as real recordings have it: NaN and lone surrogates are let through, for the schema to deal with.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return cast("JsonValue", from_json(text))
    except ValueError:
        if b"\\u" not in text:  # the fast parser refuses nothing else that the slow one takes
            raise
        try:
            return cast("JsonValue", json.loads(text))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _not_json(error: ValueError) -> str:
    """What is wrong with a line, which is line 1 to the parser whatever its number in the file."""
    return f"not JSON: {error}".replace(" at line 1 column ", " at column ")


def _detect_lines(path: Path) -> Reader:
    """The format of the first line that has a known one, among the first hundred."""
    failures: list[TraceError] = []
    for line in islice(_lines(path), _LINES_LOOKED_AT):
        try:
            return detect(parse_json(line.text))
        except TraceError as error:
            failures.append(TraceError(error.found, path=path, line=line.number))
        except ValueError as error:
            found = f"{_not_json(error)}. (A file that holds one JSON document is named .json)"
            failures.append(TraceError(found, path=path, line=line.number))
    raise failures[0]


def _from_lines(path: Path, reader: Reader) -> Iterator[Sample | TraceError]:
    own = isinstance(reader, JudgekitReader)
    for index, line in enumerate(_lines(path)):
        if own:
            try:
                yield Sample.model_validate_json(line.text)
                continue
            except ValidationError:
                pass  # a missing id or a surrogate; or an error that the way below explains
        try:
            value = parse_json(line.text)
        except ValueError as error:
            yield TraceError(_not_json(error), path=path, index=index, line=line.number)
        else:
            yield _converted(value, reader, path, index, line.number)


def _from_document(path: Path, named: Reader | None) -> Iterator[Sample | TraceError]:
    with _opened(path) as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    try:
        document = parse_json(content)
    except ValueError as error:
        if (first := content.lstrip().split(b"\n", 1)[0]) and _is_json(first):
            return _from_lines(path, named or _detect_lines(path))
        raise TraceError(f"not JSON: {error}", path=path) from error
    try:
        reader = named or detect(document)
        records = reader.records(document)
    except TraceError as error:
        raise TraceError(error.found, path=path) from error
    if not records:
        raise TraceError("holds no conversations", path=path)
    return (_converted(record, reader, path, index) for index, record in enumerate(records))


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _converted(
    record: JsonValue, reader: Reader, path: Path, index: int, line: int | None = None
) -> Sample | TraceError:
    try:
        clean = _without_surrogates(record)
        sample = reader.sample(clean, index)
    except TraceError as error:
        return TraceError(error.found, path=path, index=index, line=line)
    except RecursionError:
        return TraceError("nested too deeply", path=path, index=index, line=line)
    trace = sample.trace
    noted: dict[str, object] = {}
    if clean is not record:
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


def _reported(samples: Iterator[Sample | TraceError], joiner: Joiner | None, on_error: OnError) -> Iterator[Sample]:
    for found in samples:
        if isinstance(found, TraceError):
            _report(found, on_error)
        else:
            yield found if joiner is None else joiner.join(found)
    for problem in joiner.problems() if joiner else ():
        _report(problem, on_error)


def _report(error: TraceError, on_error: OnError) -> None:
    if on_error == "raise":
        raise error
    if on_error == "warn":
        warnings.warn(str(error), stacklevel=3)
    else:
        on_error(error)

"""The contract of writers: a line for each sample, and a count of what the format cannot hold."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.files import parse_json
from judgekit.formats.readers.base import Reader
from judgekit.formats.unread import silence
from judgekit.traces.message import CALLER_MESSAGES, JsonObject, Message, Part, RefusalPart, TextPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import Sample

_OPAQUE = {
    *("args", "children", "data", "extra", "fields", "labels", "metadata", "parameters", "relevance", "baseline"),
    "usage",
}
"""Fields that count as one kind of thing, whatever they hold."""


class WrittenLine(NamedTuple):
    """A line, and counts of what it leaves out, by kind. There is no line if the format cannot hold the sample."""

    line: str | None
    missing: Counter[str]


class Writer(Protocol):
    """A writer of one format."""

    @property
    def name(self) -> str:
        """The format's name."""
        ...

    def written(self, sample: Sample, index: int) -> WrittenLine:
        """Return a sample as a line of JSON, with its position in the file."""
        ...


def verify_row(sample: Sample, index: int, row: JsonObject, reader: Reader) -> WrittenLine:
    """Return a row as written. What is missing is found by reading the row again, so that nothing can be forgotten."""
    line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    try:
        [record] = reader.records(parse_json(line.encode()))
        written = reader.sample(record, index)
        if (problem := silence(written, reader.name)) is not None:
            raise TraceError(problem)
    except (TraceError, ValueError):
        return WrittenLine(None, Counter({"samples": 1}))
    return WrittenLine(line, Counter(kind for kind, _ in (_facts(sample) - _facts(written)).elements()))


def _facts(sample: Sample) -> Counter[tuple[str, str]]:
    """Return the facts of a sample, without order: each value with its kind, such as ``assistant: model``."""
    row = sample.model_dump(mode="json", exclude={"trace"}, exclude_defaults=True)
    trace = sample.trace.model_dump(mode="json", exclude={"source", "warnings"}, exclude_defaults=True)
    if trace.get("id") == sample.id:
        del trace["id"]
    facts = Counter[tuple[str, str]]()
    for message, fields in zip(sample.trace.messages, trace.pop("messages", ()), strict=True):
        facts[f"{message.role} messages", ""] += 1
        facts[f"{message.role}: text", message.text] += bool(message.text)
        for part in () if isinstance(message.content, str) else message.content:
            facts.update(_values(_beside_text(part), f"{message.role}: content"))
        for name, value in fields.items():
            if name not in ("role", "content"):
                facts.update(_values(value, f"{message.role}: {name}"))
    facts.update(_pairs(sample.trace.messages))
    for name, value in trace.items():
        facts.update(_values(value, f"trace: {name}"))
    for name, value in row.items():
        facts.update(_values(value, name))
    return facts


def _pairs(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield which results answer which calls of each side, by the calls' numbers."""
    callers = pair_results(messages).calls
    numbers: dict[tuple[int, int], str] = {}
    for side, kind in CALLER_MESSAGES.items():
        callers_of_side = ((at, message) for at, message in enumerate(messages) if isinstance(message, kind))
        calls = ((at, position) for at, message in callers_of_side for position in range(len(message.tool_calls)))
        numbers |= {caller: f"{side} {number}" for number, caller in enumerate(calls)}
    for index, caller in callers.items():
        yield "tool: pairing", f"{numbers[caller.message, caller.position]} {messages[index].text}"


def _beside_text(part: Part) -> JsonObject:
    shown_apart = {"text"} if isinstance(part, TextPart | RefusalPart) else set[str]()
    fields = part.model_dump(mode="json", exclude=shown_apart, exclude_defaults=True)
    return fields if isinstance(part, TextPart) else {**fields, "type": part.type}


def _values(value: JsonValue, kind: str, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values in a field. ``None`` and empty texts are skipped."""
    if isinstance(value, dict):
        opaque = re.split("[ .]", kind)[-1] in _OPAQUE
        for name, item in value.items():
            yield from _values(item, kind if opaque else f"{kind}.{name}", f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield kind, path
            yield from _values(item, kind, path)
    elif value not in (None, ""):
        yield kind, f"{path} {json.dumps(value)}"

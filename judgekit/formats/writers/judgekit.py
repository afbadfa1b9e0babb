"""judgekit's own format: one `Sample` per line, without fields that have their default."""

import json
from collections import Counter

from pydantic_core import PydanticSerializationError, to_json

from judgekit.formats.values import objects_in
from judgekit.formats.writers.writer import WrittenLine
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


class JudgekitWriter:
    """A writer of samples as described by `judgekit schema`. Reading them gives the same samples."""

    name = "judgekit"

    def written(self, sample: Sample, index: int) -> WrittenLine:  # noqa: ARG002 - the sample has an id
        """Return the sample as a line."""
        row = sample.model_dump(mode="json", exclude_defaults=True)
        row["trace"] = _trace_row(row.get("trace", {}), sample.trace)
        if sample.baseline is not None:
            row["baseline"] = _trace_row(row["baseline"], sample.baseline)
        row = {"schema_version": sample.schema_version, **row}
        try:
            line = to_json(row).decode()
        except PydanticSerializationError:  # lone surrogates, which json.dumps escapes
            line = json.dumps(row, separators=(",", ":"))
        return WrittenLine(line, Counter())


def _trace_row(row: JsonObject, trace: Trace) -> JsonObject:
    """Return the row of a trace with what tells the kinds of its parts, even if that is the default."""
    messages = map(_message_row, objects_in(row.get("messages")), trace.messages)
    children = map(_trace_row, objects_in(row.get("children")), trace.children)
    rows: JsonObject = {"messages": [*messages], "children": [*children]}
    kept = {name: value for name, value in rows.items() if value}
    return {"schema_version": trace.schema_version, **row, **kept}


def _message_row(row: JsonObject, message: Message) -> JsonObject:
    row = {"role": message.role, **row}
    if not isinstance(message.content, str):
        parts = zip(message.content, objects_in(row["content"]), strict=True)
        row["content"] = [{"type": part.type, **fields} for part, fields in parts]
    return row

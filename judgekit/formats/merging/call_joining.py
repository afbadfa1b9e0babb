"""Joining of model calls that were recorded as separate conversations."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging.comparison import prefix_hashes, split_instructions
from judgekit.formats.merging.step import SpanStep
from judgekit.formats.span_exports import conversation_id
from judgekit.formats.spans import UNKNOWN_START, Span, read_spans
from judgekit.formats.values import lookup
from judgekit.traces.message import JsonObject

_Call: TypeAlias = tuple[SpanStep, JsonObject]


def join_calls(
    records: Iterable[JsonValue], steps_of: Callable[[Sequence[Span]], Sequence[SpanStep]]
) -> list[JsonValue]:
    """Return records of `group_conversations`, joining those whose history begins with all of an earlier one.

    A client that is traced without a span around its calls and without a session id gives every call a trace
    of its own, which repeats the earlier calls. Only traces of a single span are joined.
    """
    all_records = list(records)
    if len(all_records) < 2:
        return all_records
    calls = [call for record in all_records if (call := _only_call(record, steps_of)) is not None]
    calls.sort(key=lambda call: call[0].span.started_at or UNKNOWN_START)
    open_ends: dict[int, JsonObject] = {}
    gone: set[int] = set()
    for step, record in calls:
        passed = prefix_hashes(split_instructions([*step.input_messages, *step.output_messages])[1])
        before = len(passed) - len(step.output_messages)
        whole = next(
            (end_record for end in reversed(passed[:before]) if (end_record := open_ends.pop(end, None))), None
        )
        if whole is not None:
            cast("list[JsonValue]", whole["spans"]).extend(cast("list[JsonValue]", record["spans"]))
            gone.add(id(record))
        if passed:
            open_ends[passed[-1]] = whole or record
    return [record for record in all_records if id(record) not in gone]


def _only_call(record: JsonValue, steps_of: Callable[[Sequence[Span]], Sequence[SpanStep]]) -> _Call | None:
    spans = lookup(record, "spans")
    if not isinstance(record, dict) or not isinstance(spans, list) or any(map(conversation_id, spans)):
        return None
    try:
        pieces = read_spans(FieldTracker({"spans": spans}))
        steps = steps_of(pieces) if len(pieces) == 1 else ()
    except TraceError:
        return None
    step = next((step for step in steps if step.kind == "model" and step.input_messages and step.output_messages), None)
    return None if step is None else (step, record)

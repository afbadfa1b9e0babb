"""Spans of tracers in the forms of their exporters, as plain objects.

{"resourceSpans": [{"resource": {...}, "scopeSpans": [{"scope": {...}, "spans": [...]}]}]}  OTLP/JSON, typed attributes
[{"trace_id": "..", "span_id": "..", "attributes": {"gen_ai.system": "openai"}}, ...]       lists of spans; one span alone
{"name": "chat", "context": {"trace_id": "0x..", "span_id": "0x.."}, "attributes": {...}}   console exporters
{"context.trace_id": "..", "context.span_id": "..", "attributes.llm.model_name": "gpt-x"}   data frames of Phoenix
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Literal, TypeAlias

from pydantic import JsonValue

from judgekit.formats.field_tracker import Unit, parse_time
from judgekit.formats.values import as_object, first_value, lookup, objects_in, without
from judgekit.traces.message import JsonObject

Convention: TypeAlias = Literal["mlflow", "openinference", "otel"]
"""The conventions for attributes with input and output."""
_MARKS: dict[Convention, tuple[str, ...]] = {
    "mlflow": ("mlflow.",),
    "openinference": ("openinference.", "llm.input_messages", "llm.output_messages", "llm.model_name", "input.value"),
    "otel": (
        *("gen_ai.", "gcp.vertex.agent.", "ai.operationId", "ai.prompt", "ai.response", "traceloop.", "pydantic_ai."),
    ),
}
_MARK_ROOTS = frozenset(mark.partition(".")[0] for marks in _MARKS.values() for mark in marks)
_SPAN_FIELDS = {
    *("attributes", "body", "context", "context.trace_id", "event_name", "eventName", "span_context"),
    *("_spanContext", "trace_id", "traceId"),
}
"""The fields of which each span has at least one, unless it is the bare attributes of one."""
_CONVERSATIONS = (
    *("gen_ai.conversation.id", "session.id", "gcp.vertex.agent.session_id", "ai.telemetry.metadata.sessionId"),
    *("traceloop.association.properties.session_id",),
)
_ROOTS = ("gen_ai", "llm", "openinference", "session", "input", "output", "tool", "ai", "gcp", "traceloop")
"""Prefixes that exporters turn into nested objects."""
_WHOLE = {
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages", "gen_ai.output.messages"),
    *("gen_ai.system_instructions", "gen_ai.prompt", "gen_ai.completion", "input.value", "output.value"),
    *("tool.parameters", "llm.invocation_parameters", "gcp.vertex.agent.llm_request"),
    *("gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
}
"""Attributes whose values are objects."""
_BATCHES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_LOOKED_AT = 1_000
DEEPEST = 60
"""The most levels of nested attributes that are opened."""


def spans_in(document: JsonValue) -> Iterator[JsonObject]:
    """Yield every span of a parsed file or one line, with attributes as plain objects. Raises nothing.

    A log record counts as a span with one event, and the bare attributes of a span as a span.
    """
    yield from _spans_in(document, 3)


def detect_convention(document: JsonValue) -> Convention | None:
    """Return the convention that the spans of a document follow; ``None`` without spans or convention.

    Of two conventions in one document, the one that is first in `Convention` is returned.
    """
    looked_at = document[:_LOOKED_AT] if isinstance(document, list) else document
    conventions = {kind for span in islice(spans_in(looked_at), _LOOKED_AT) for kind in span_conventions(span)}
    return next((kind for kind in _MARKS if kind in conventions), None)


def _spans_in(document: JsonValue, depth: int) -> Iterator[JsonObject]:
    if isinstance(document, list) and depth:
        for item in document:
            yield from _spans_in(item, depth - 1)
    elif isinstance(document, dict):
        batches = () if document.keys().isdisjoint(_BATCHES) else _BATCHES
        name = next((name for name in batches if document.get(name) is not None), None)
        if name is not None:
            yield from _exported(document[name], without(document, name))
        elif isinstance(spans := document.get("spans"), list) and "trajectory" not in document:
            others = without(document, "spans")
            around: JsonObject = {"beside": others} if others else {}
            yield from ({**around, **span} for span in _spans_in(spans, min(depth, 1)))
        elif (span := _span(document)) is not None:
            yield span


def _exported(batches: JsonValue, others: JsonObject) -> Iterator[JsonObject]:
    for batch in objects_in(batches):
        scopes = next((name for name in _SCOPES if batch.get(name) is not None), "")
        for scope in objects_in(batch.get(scopes)):
            spans = next((name for name in ("spans", "logRecords", "log_records") if scope.get(name) is not None), "")
            rest = {"resource": without(batch, "resource", scopes), "scope": without(scope, "scope", spans)}
            around: JsonObject = {
                "resource": _with_attributes(batch.get("resource")),
                "scope": _with_attributes(scope.get("scope")),
                "beside": {**others, **{name: value for name, value in rest.items() if value}},
            }
            around = {name: value for name, value in around.items() if value}
            for fields in objects_in(scope.get(spans)):
                if (span := _span(fields)) is not None:
                    yield {**around, **span}


def _span(fields: JsonObject) -> JsonObject | None:
    """Return an object as a span if it is a span, a log record, or the attributes of one."""
    if _SPAN_FIELDS.isdisjoint(fields) and not _may_have_marks(fields):
        return None
    if "context.trace_id" in fields:
        fields = _from_columns(fields)
    attributes = _plain_attributes(fields.get("attributes"))
    marked = bool(attribute_conventions(as_object(attributes)))
    event = event_name(fields, lookup(attributes, "event.name"))
    body = _plain(fields.get("body"))
    if "name" not in fields and (event.startswith("gen_ai.") or holds_moved_messages(body)):
        log: JsonObject = {**fields, "attributes": attributes, "body": body}
        ids: JsonObject = {"trace_id": trace_id_of(fields), "span_id": span_id_of(fields)}
        return {**{name: value for name, value in ids.items() if value}, "events": [log]}
    if (trace_id_of(fields) and span_id_of(fields)) or marked:
        span = {**fields, "attributes": attributes}
        for name in ("events", "span_events"):
            if isinstance(events := fields.get(name), list):
                span[name] = [_with_attributes(event_fields) for event_fields in events]
        for name in ("resource", "scope"):
            if name in fields:
                span[name] = _with_attributes(fields[name])
        return span
    return {"attributes": _flat(fields)} if attribute_conventions(_flat(fields)) else None


def _from_columns(columns: JsonObject) -> JsonObject:
    """Return a row of Phoenix's data frames, with a column for each attribute, as a span."""
    span: JsonObject = {}
    for whole in ("context", "attributes"):
        parts = {name: value for name, value in columns.items() if name.startswith(f"{whole}.") and value is not None}
        span[whole] = {name.removeprefix(f"{whole}."): value for name, value in parts.items()}
    return span | {name: value for name, value in columns.items() if not name.startswith(("context.", "attributes."))}


def holds_moved_messages(body: JsonValue) -> bool:
    """Return whether the body of a log record holds messages of a span, as the AWS Distro for OpenTelemetry moves them."""
    return any(objects_in(lookup(body, side, "messages")) for side in ("input", "output"))


def event_name(event: JsonObject, attribute: JsonValue) -> str:
    """Return the name of an event, which exporters write into four places."""
    names = (event.get("event_name"), event.get("eventName"), attribute, event.get("name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def span_conventions(span: JsonObject) -> set[Convention]:
    """Return the conventions that a span and its events follow."""
    attributes = span.get("attributes")
    conventions = attribute_conventions(as_object(attributes))
    for name in ("events", "span_events"):
        for event in objects_in(span.get(name)):
            named = event_name(event, lookup(event, "attributes", "event.name"))
            if named.startswith("gen_ai.") or holds_moved_messages(event.get("body")):
                conventions.add("openinference" if named.startswith("openinference.") else "otel")
    return conventions


def _may_have_marks(attributes: JsonObject) -> bool:
    """Return whether an attribute, in dotted form or nested, may have one of the marks. This is fast if not."""
    return any(
        name.partition(".")[0] in _MARK_ROOTS and (name not in _MARK_ROOTS or isinstance(value, dict))
        for name, value in attributes.items()
    )


def attribute_conventions(attributes: Iterable[str]) -> set[Convention]:
    """Return the conventions that have some of these names of attributes."""
    names = tuple(attributes)
    return {kind for kind, marks in _MARKS.items() if any(name.startswith(marks) for name in names)}


def conversation_id(span: JsonValue) -> str | None:
    """Return the conversation or session that a span or one of its events names."""
    events = [event for name in ("events", "span_events") for event in objects_in(lookup(span, name))]
    candidates = [as_object(lookup(holder, "attributes")) for holder in (span, *events)]
    return next((str(fields[name]) for fields in candidates for name in _CONVERSATIONS if fields.get(name)), None)


def trace_id_of(span: JsonObject) -> str | None:
    """Return the id of a span's trace, in whatever form it is."""
    return _identity(span, "trace_id", "traceId")


def span_id_of(span: JsonObject) -> str | None:
    """Return the id of a span."""
    return _identity(span, "span_id", "spanId")


def parent_id_of(span: JsonObject) -> str | None:
    """Return the id of a span's parent."""
    parent = first_value(span, "parentSpanContext", "parent_span_context")
    return _identity(span, "parent_span_id", "parentSpanId", "parent_id", "parentId") or span_id_of(as_object(parent))


def _identity(span: JsonObject, *names: str) -> str | None:
    context = first_value(span, "context", "span_context", "_spanContext")
    for fields in (span, as_object(context)):
        if isinstance(identity := first_value(fields, *names), str | int) and identity:
            return str(identity).removeprefix("0x")
    return None


def started_at(span: JsonObject) -> datetime | None:
    """Return the start of a span."""
    return parse_moment(*map(span.get, ("start_time", "startTime", "start_time_unix_nano", "startTimeUnixNano")))


def parse_moment(*values: JsonValue) -> datetime | None:
    """Return the first valid time: ISO 8601, ``[seconds, nanoseconds]``, or a number whose size shows its unit."""
    for value in values:
        if isinstance(value, list) and len(value) == 2:
            if (seconds := parse_time(value[0])) is not None:
                return seconds
        elif value is not None:
            number = _number(value)
            unit: Unit = "ns" if number > 1e17 else "ms" if number > 1e11 else "s"
            moment = parse_time(number / 1e3, "ms") if 1e14 < number <= 1e17 else parse_time(value, unit)
            if moment is not None:
                return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _number(value: JsonValue) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _with_attributes(fields: JsonValue) -> JsonValue:
    if isinstance(fields, dict) and "attributes" in fields:
        return {**fields, "attributes": _plain_attributes(fields["attributes"])}
    return fields


def _plain_attributes(attributes: JsonValue) -> JsonValue:
    """Return attributes by name. OTLP lists them with types, and other exporters may nest them."""
    if isinstance(attributes, list):
        return _keyed(attributes, 0) if all("key" in as_object(item) for item in attributes) else attributes
    return _flat(attributes) if isinstance(attributes, dict) else attributes


def _keyed(pairs: list[JsonValue], depth: int) -> JsonObject:
    return {str(item.get("key")): _plain(item.get("value"), depth) for item in objects_in(pairs)}


def _plain(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return the plain value of a typed OTLP attribute, and any other value as it is."""
    if not isinstance(value, dict) or len(value) != 1 or depth > DEEPEST:
        return value
    kind, held = next(iter(value.items()))
    kind = kind.lower().replace("_", "")
    inner = held.get("values") if isinstance(held, dict) else None
    if kind == "arrayvalue" and isinstance(held, dict):
        return [_plain(element, depth + 1) for element in inner] if isinstance(inner, list) else []
    if kind == "kvlistvalue" and isinstance(held, dict):
        return _keyed(inner, depth + 1) if isinstance(inner, list) else {}
    if kind == "intvalue" and isinstance(held, str) and held.lstrip("-").isdecimal() and len(held) <= 20:
        return int(held)
    return held if kind in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue", "intvalue") else value


def _flat(attributes: JsonObject) -> JsonObject:
    """Return attributes by dotted name, even if exporters nested them."""
    flat: JsonObject = {}
    pending = [(name, value, 1) for name, value in reversed(attributes.items())]
    while pending:
        name, value, depth = pending.pop()
        opened = name in _ROOTS or (depth > 1 and name not in _WHOLE)
        if isinstance(value, dict) and value and opened and depth < DEEPEST:
            pending += [(f"{name}.{key}", inner, depth + 1) for key, inner in reversed(value.items())]
        else:
            flat[name] = value
    return flat

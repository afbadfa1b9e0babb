"""Spans of tracers in the forms of their exporters, and the conversations they belong to.

{"resourceSpans": [{"resource": {...}, "scopeSpans": [{"scope": {...}, "spans": [...]}]}]}  OTLP/JSON, typed attributes
[{"trace_id": "..", "span_id": "..", "attributes": {"gen_ai.system": "openai"}}, ...]       lists of spans; one span alone
{"name": "chat", "context": {"trace_id": "0x..", "span_id": "0x.."}, "attributes": {...}}   console exporters
{"context.trace_id": "..", "context.span_id": "..", "attributes.llm.model_name": "gpt-x"}   data frames of Phoenix
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Literal, TypeAlias, TypeVar, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker, Unit
from judgekit.formats.moved_messages import READ_TOGETHER_HINT, holds_moved_messages, restore_messages
from judgekit.formats.values import as_list, as_object, lookup, objects_in, without
from judgekit.traces.message import JsonObject

_Id = TypeVar("_Id", str, tuple[str, str])
Convention: TypeAlias = Literal["mlflow", "openinference", "otel"]
"""The conventions for attributes with input and output."""

_MARKS: dict[Convention, tuple[str, ...]] = {
    "mlflow": ("mlflow.",),
    "openinference": ("openinference.", "llm.input_messages", "llm.output_messages", "llm.model_name", "input.value"),
    "otel": (
        "gen_ai.",
        "gcp.vertex.agent.",
        "ai.operationId",
        "ai.prompt",
        "ai.response",
        "traceloop.",
        "pydantic_ai.",
    ),
}
_MARK_ROOTS = frozenset(mark.partition(".")[0] for marks in _MARKS.values() for mark in marks)
_SPAN_FIELDS = frozenset(
    (
        *("attributes", "body", "context", "context.trace_id", "event_name", "eventName", "span_context"),
        *("_spanContext", "trace_id", "traceId"),
    )
)
"""The fields of which each span has at least one, unless it is the bare attributes of one."""
_RESPONSES = ("gen_ai.response.id", "ai.response.id")
_CONVERSATIONS = (
    *("gen_ai.conversation.id", "session.id", "gcp.vertex.agent.session_id", "ai.telemetry.metadata.sessionId"),
    *("traceloop.association.properties.session_id",),
)
_ROOTS = ("gen_ai", "llm", "openinference", "session", "input", "output", "tool", "ai", "gcp", "traceloop")
"""Prefixes that exporters turn into nested objects."""
_WHOLE = frozenset(
    (
        *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages", "gen_ai.output.messages"),
        *("gen_ai.system_instructions", "gen_ai.prompt", "gen_ai.completion", "input.value", "output.value"),
        *("tool.parameters", "llm.invocation_parameters", "gcp.vertex.agent.llm_request"),
        *("gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
    )
)
"""Attributes whose values are objects."""
_BATCHES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_SPANS = ("spans", "logRecords", "log_records")
_SHARED = ("resource", "scope", "beside")
"""Fields that all spans of a library share, and the fields beside the spans in a document."""
CUT_OFF_HINT = "cut off? raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
"""A likely cause of JSON that cannot be parsed."""
_LOOKED_AT = 1_000
_DEEPEST = 60
UNKNOWN_START = datetime.min.replace(tzinfo=UTC)
"""The start of spans without a time."""


class Event:
    """An event of a span, or a log record within one. What is not taken from it stays in the leftover of its span."""

    def __init__(self, fields: FieldTracker) -> None:
        self.fields = fields
        self.attributes = fields.object("attributes") or FieldTracker({}, warnings=fields.warnings)
        self.name = _event_name({name: fields.peek(name) for name in fields}, self.attributes.peek("event.name"))
        self.time = _moment(*map(fields.peek, ("timestamp", "time", "time_unix_nano", "timeUnixNano")))


class Span:
    """A span. Ids, times and everything else not taken from ``fields`` or ``attributes`` stay in the leftover.

    Attributes:
        fields: The span; `FieldTracker.leftover` returns what was not taken.
        attributes: The attributes by dotted name; see `take_nested` for names with indexes.
        parent: The parent span, if it is in the recording; ``depth`` is the number of ancestors.
        error: The error: the message of the status, the type of the error, or the exception.
    """

    def __init__(self, span: FieldTracker) -> None:
        fields = {name: span.peek(name) for name in span}
        self.fields = span
        self.trace_id, self.id, self.parent_id = _trace_id(fields), _span_id(fields), _parent_id(fields)
        self.parent: Span | None = None
        self.depth = 0
        self.name = name if isinstance(name := fields.get("name"), str) else ""
        self.attributes = span.object("attributes") or FieldTracker({}, warnings=span.warnings)
        self.events = [
            Event(event)
            for name in ("events", "span_events")
            if isinstance(events := fields.get(name), list) and all(isinstance(event, dict) for event in events)
            for event in span.objects(name)
        ]
        self.started_at = _started(fields)
        self.ended_at = _moment(*map(fields.get, ("end_time", "endTime", "end_time_unix_nano", "endTimeUnixNano")))
        if self.started_at is None and self.events:
            self.started_at = self.events[0].time
        status: JsonObject = {"code": fields.get("status_code"), "message": fields.get("status_message")}
        self.error = self._error(fields.get("status") or status)

    @property
    def response_id(self) -> str | None:
        """The id of the response to a model call. Like the span's own id, it stays in the leftover."""
        ids = (self.attributes.peek(name) for name in _RESPONSES)
        return next((identity for identity in ids if isinstance(identity, str) and identity), None)

    @property
    def is_generative(self) -> bool:
        """Whether the attributes follow one of the conventions, unlike those of a web server's own span."""
        return bool(_marks(self.attributes))

    def _error(self, status: JsonValue) -> str | None:
        described = status if isinstance(status, dict) else {"code": status}
        code = described.get("code", described.get("status_code"))
        failed = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))
        kind = self.attributes.peek("error.type")
        exceptions = [event.attributes for event in self.events if event.name == "exception"]
        if not failed and kind is None:
            return None
        reasons = [described.get("message"), described.get("description")]
        reasons += [
            attributes.peek(name) for attributes in exceptions for name in ("exception.message", "exception.type")
        ]
        return next((text for text in [*reasons, kind] if isinstance(text, str) and text), "error")


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
    conventions = {kind for span in islice(spans_in(looked_at), _LOOKED_AT) for kind in _conventions(span)}
    return next((kind for kind in _MARKS if kind in conventions), None)


def group_conversations(document: JsonValue) -> list[JsonValue]:
    """Return the spans of each conversation as a record ``{"id": ..., "spans": [...]}``.

    A span belongs to the conversation or session that its outermost ancestor names, or else the one that its trace
    names first; otherwise, its trace is the conversation. Conversations without a convention (of web servers) are left
    out, unless there are no others.
    """
    traces: dict[str, list[JsonObject]] = {}
    for number, span in enumerate(spans_in(document)):
        traces.setdefault(_trace_id(span) or f"#{number}", []).append(span)
    groups: dict[str, list[JsonObject]] = {}
    for trace_id, spans in traces.items():
        _put_back(spans)
        for span, name in zip(spans, _named(spans), strict=True):
            groups.setdefault(name or trace_id, []).append(span)
    talking = {name: spans for name, spans in groups.items() if any(map(_conventions, spans))} or groups
    return [
        cast("JsonValue", {"spans": spans} if name.startswith("#") else {"id": name, "spans": spans})
        for name, spans in talking.items()
    ]


def read_spans(record: FieldTracker) -> list[Span]:
    """Return the spans of a record of `group_conversations`, ordered by start time and linked to their parents.

    Log records of a span become its events. Fields that all spans share (resource, scope, fields beside the spans) stay
    only in the first span.

    Raises:
        TraceError: An item of ``spans`` is not an object, or messages were moved out of spans that are missing.
    """
    pieces = [Span(fields) for fields in record.objects("spans")]
    moved = sum(holds_moved_messages(event.fields.peek("body")) for span in pieces for event in span.events)
    if moved:
        problem = f"spans: {moved} log records contain messages for spans that are missing or cannot hold them"
        raise TraceError(f"{problem}; {READ_TOGETHER_HINT}")
    kept: dict[str, JsonValue] = {}
    for span in pieces:
        for name in _SHARED:
            if span.fields.peek(name) == kept.get(name):
                span.fields.take(name)
            kept[name] = span.fields.peek(name) or kept.get(name)
    spans: dict[tuple[str | None, str | None], Span] = {}
    alone: list[Span] = []
    for span in sorted(pieces, key=_is_log):
        whole = spans.get((span.trace_id, span.id)) if span.id and _is_log(span) else None
        if whole is not None:
            whole.events += span.events
        else:
            spans[span.trace_id, span.id] = span
            alone.append(span)
    _link(alone, spans)
    return sorted(alone, key=lambda span: span.started_at or UNKNOWN_START)


def find_roots(parents: Mapping[_Id, _Id | None]) -> dict[_Id, _Id]:
    """Return the outermost known ancestor of each id, which may be the id itself. One id of each cycle counts as that.

    Args:
        parents: The parent of each id, if it has one.
    """
    roots: dict[_Id, _Id] = {}
    for identity in parents:
        path: dict[_Id, None] = {}
        at = identity
        while at not in roots:
            above = parents[at]
            if above is None or above not in parents or above in path or above == at:
                roots[at] = at
                break
            path[at] = None
            at = above
        roots.update(dict.fromkeys(path, roots[at]))
    return roots


def outermost_ids(spans: JsonValue) -> tuple[set[str], set[str]]:
    """Return the ids of the traces that spans belong to, and the ids of spans that are within no other."""
    objects = objects_in(spans)
    ids = {_span_id(span) for span in objects}
    traces = {trace for span in objects if (trace := _trace_id(span)) is not None}
    within = {_span_id(span): _parent_id(span) in ids for span in objects}
    return traces, {name for name, inner in within.items() if name is not None and not inner}


def time_range(spans: Sequence[Span]) -> dict[str, datetime | None]:
    """Return the start of the first span and the end of the last one, as fields of a `Trace`."""
    return {
        "started_at": min((span.started_at for span in spans if span.started_at), default=None),
        "ended_at": max((span.ended_at for span in spans if span.ended_at), default=None),
    }


def _put_back(spans: list[JsonObject]) -> None:
    """Put messages from log records back into the spans of one trace."""
    places = {_span_id(span): index for index, span in enumerate(spans) if "attributes" in span}
    for record in list(spans):
        if (index := places.get(_span_id(record))) is None:
            continue
        for events in map(as_list, (record.get("events"), record.get("span_events"))):
            for number, event in enumerate(events):
                body, attributes = lookup(event, "body"), spans[index]["attributes"]
                if not isinstance(body, dict) or not isinstance(attributes, dict) or not holds_moved_messages(body):
                    continue
                if (restored := restore_messages(attributes, body)) is not None:
                    events[number] = without(as_object(event), "body")
                    own = [*as_list(spans[index].get("events")), *restored[1]]
                    spans[index] = {**spans[index], "attributes": restored[0], "events": own}


def _link(spans: Iterable[Span], named: Mapping[tuple[str | None, str | None], Span]) -> None:
    """Link spans to their parents, from the outermost inwards. Spans in a cycle get no parent."""
    children: dict[int, list[Span]] = {}
    reached: list[Span] = []
    for span in spans:
        parent = named.get((span.trace_id, span.parent_id)) if span.parent_id else None
        if parent is None:
            reached.append(span)
        else:
            children.setdefault(id(parent), []).append(span)
    for parent in reached:  # the list grows
        for span in children.get(id(parent), ()):
            span.parent, span.depth = parent, parent.depth + 1
            reached.append(span)


def take_nested(attributes: FieldTracker, prefix: str) -> JsonValue:
    """Take all attributes below a dotted prefix as objects and lists: ``a.0.b`` below ``a`` gives ``[{"b": ...}]``.

    Lists are ordered by index. Attributes that are nested in the source are returned as they are.
    """
    whole = attributes.take(prefix)
    tree: dict[str, object] = {}
    for name in attributes:
        if not name.startswith(f"{prefix}."):
            continue
        steps = name[len(prefix) + 1 :].split(".")[:_DEEPEST]
        inner = tree
        for step in steps[:-1]:
            below = inner.setdefault(step, {})
            if not isinstance(below, dict):
                below = inner[step] = {"": below}
            inner = cast("dict[str, object]", below)
        value = attributes.take(name)
        held = inner.get(steps[-1])
        if isinstance(held, dict):
            held[""] = value
        else:
            inner[steps[-1]] = value
    return _listed(tree) if tree else whole


def _listed(tree: object) -> JsonValue:
    if not isinstance(tree, dict):
        return cast("JsonValue", tree)
    fields = {str(name): _listed(value) for name, value in cast("dict[str, object]", tree).items()}
    if fields and all(name.isdecimal() for name in fields):
        return [fields[name] for name in sorted(fields, key=lambda name: (len(name), name))]
    return fields


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
            spans = next((name for name in _SPANS if scope.get(name) is not None), "")
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
    marked = bool(_marks(as_object(attributes)))
    event = _event_name(fields, lookup(attributes, "event.name"))
    body = _plain(fields.get("body"))
    if "name" not in fields and (event.startswith("gen_ai.") or holds_moved_messages(body)):
        log: JsonObject = {**fields, "attributes": attributes, "body": body}
        ids: JsonObject = {"trace_id": _trace_id(fields), "span_id": _span_id(fields)}
        return {**{name: value for name, value in ids.items() if value}, "events": [log]}
    if (_trace_id(fields) and _span_id(fields)) or marked:
        span = {**fields, "attributes": attributes}
        for name in ("events", "span_events"):
            if isinstance(events := fields.get(name), list):
                span[name] = [_with_attributes(event_fields) for event_fields in events]
        for name in ("resource", "scope"):
            if name in fields:
                span[name] = _with_attributes(fields[name])
        return span
    return {"attributes": _flat(fields)} if _marks(_flat(fields)) else None


def _from_columns(columns: JsonObject) -> JsonObject:
    """Return a row of Phoenix's data frames, with a column for each attribute, as a span."""
    span: JsonObject = {}
    for whole in ("context", "attributes"):
        parts = {name: value for name, value in columns.items() if name.startswith(f"{whole}.") and value is not None}
        span[whole] = {name.removeprefix(f"{whole}."): value for name, value in parts.items()}
    return span | {name: value for name, value in columns.items() if not name.startswith(("context.", "attributes."))}


def _event_name(event: JsonObject, attribute: JsonValue) -> str:
    """Return the name of an event, which exporters write into four places."""
    names = (event.get("event_name"), event.get("eventName"), attribute, event.get("name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _is_log(span: Span) -> bool:
    return all(name in ("trace_id", "span_id", *_SHARED) for name in span.fields)


def _conventions(span: JsonObject) -> set[Convention]:
    attributes = span.get("attributes")
    conventions = _marks(as_object(attributes))
    for name in ("events", "span_events"):
        for event in objects_in(span.get(name)):
            named = _event_name(event, lookup(event, "attributes", "event.name"))
            if named.startswith("gen_ai.") or holds_moved_messages(event.get("body")):
                conventions.add("openinference" if named.startswith("openinference.") else "otel")
    return conventions


def _may_have_marks(attributes: JsonObject) -> bool:
    """Return whether an attribute, in dotted form or nested, may have one of the marks. This is fast if not."""
    return any(
        name.partition(".")[0] in _MARK_ROOTS and (name not in _MARK_ROOTS or isinstance(value, dict))
        for name, value in attributes.items()
    )


def _marks(attributes: Iterable[str]) -> set[Convention]:
    names = tuple(attributes)
    return {kind for kind, marks in _MARKS.items() if any(name.startswith(marks) for name in names)}


def conversation_id(span: JsonValue) -> str | None:
    """Return the conversation or session that a span or one of its events names."""
    events = [event for name in ("events", "span_events") for event in objects_in(lookup(span, name))]
    candidates = [as_object(lookup(holder, "attributes")) for holder in (span, *events)]
    return next(
        (str(attributes[name]) for attributes in candidates for name in _CONVERSATIONS if attributes.get(name)), None
    )


def _named(spans: Sequence[JsonObject]) -> list[str | None]:
    """Return the conversation of each span of one trace."""
    parents: dict[str | None, str | None] = {}
    own: dict[str | None, str | None] = {}
    first: tuple[datetime, str] | None = None
    for span in spans:
        name, identity, started = conversation_id(span), _span_id(span), _started(span) or UNKNOWN_START
        parents[identity] = parents.get(identity) or _parent_id(span)
        own[identity] = own.get(identity) or name
        if name is not None and (first is None or started < first[0]):
            first = (started, name)
    names: dict[str | None, str | None] = {}
    for identity in parents:
        path: list[str] = []
        above = identity
        while above is not None and above in parents and above not in names:
            names[above] = None  # for spans in a cycle
            path.append(above)
            above = parents[above]
        name = names.get(above)
        for inner in reversed(path):
            name = names[inner] = name or own[inner]
    return [names.get(_span_id(span)) or (first and first[1]) for span in spans]


def _trace_id(span: JsonObject) -> str | None:
    return _identity(span, "trace_id", "traceId")


def _span_id(span: JsonObject) -> str | None:
    return _identity(span, "span_id", "spanId")


def _parent_id(span: JsonObject) -> str | None:
    parent = _first(span, "parentSpanContext", "parent_span_context")
    return _identity(span, "parent_span_id", "parentSpanId", "parent_id", "parentId") or _span_id(as_object(parent))


def _identity(span: JsonObject, *names: str) -> str | None:
    context = _first(span, "context", "span_context", "_spanContext")
    for fields in (span, as_object(context)):
        if isinstance(identity := _first(fields, *names), str | int) and identity:
            return str(identity).removeprefix("0x")
    return None


def _started(span: JsonObject) -> datetime | None:
    return _moment(*map(span.get, ("start_time", "startTime", "start_time_unix_nano", "startTimeUnixNano")))


def _moment(*values: JsonValue) -> datetime | None:
    """Return the first valid time: ISO 8601, ``[seconds, nanoseconds]``, or a number whose size shows its unit."""
    for value in values:
        if isinstance(value, list) and len(value) == 2:
            seconds = FieldTracker({"time": value[0]}).time("time")
            if seconds is not None:
                return seconds
        elif value is not None:
            number = _number(value)
            unit: Unit = "ns" if number > 1e17 else "ms" if number > 1e11 else "s"
            if 1e14 < number <= 1e17:
                moment = FieldTracker({"time": number / 1e3}).time("time", unit="ms")
            else:
                moment = FieldTracker({"time": value}).time("time", unit=unit)
            if moment is not None:
                return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _number(value: JsonValue) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _first(fields: JsonObject, *names: str) -> JsonValue:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _with_attributes(fields: JsonValue) -> JsonValue:
    if isinstance(fields, dict) and "attributes" in fields:
        return {**fields, "attributes": _plain_attributes(fields["attributes"])}
    return fields


def _plain_attributes(attributes: JsonValue) -> JsonValue:
    """Return attributes by name. OTLP lists them with types, and other exporters may nest them."""
    if isinstance(attributes, list):
        return (
            _keyed(attributes, 0)
            if all(isinstance(item, dict) and "key" in item for item in attributes)
            else attributes
        )
    return _flat(attributes) if isinstance(attributes, dict) else attributes


def _keyed(pairs: list[JsonValue], depth: int) -> JsonObject:
    return {str(item.get("key")): _plain(item.get("value"), depth) for item in objects_in(pairs)}


def _plain(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return the plain value of a typed OTLP attribute, and any other value as it is."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEEPEST:
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
        if isinstance(value, dict) and value and opened and depth < _DEEPEST:
            pending += [(f"{name}.{key}", inner, depth + 1) for key, inner in reversed(value.items())]
        else:
            flat[name] = value
    return flat

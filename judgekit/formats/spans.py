"""Spans of one conversation: grouped, ordered and linked to their parents."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.span_exports import (
    DEEPEST,
    attribute_conventions,
    conversation_id,
    event_name,
    holds_moved_messages,
    parent_id_of,
    parse_moment,
    span_conventions,
    span_id_of,
    spans_in,
    started_at,
    trace_id_of,
)
from judgekit.formats.values import objects_in
from judgekit.traces.message import JsonObject

_Id = TypeVar("_Id", str, tuple[str, str])
_SHARED = ("resource", "scope", "beside")
"""Fields that all spans of a library share, and the fields next to the spans in a document."""
_CONTENT = re.compile(
    r"(^|[._])(inputs?|outputs?|prompts?|completions?|messages?|contents?|events|(request|response)_data|text)(\.value)?$"
)
"""Names of attributes with what was said."""
LOGS_HINT = "read spans and log records together: cat spans.jsonl logs.jsonl > both.jsonl"
"""The remedy for a span whose message contents are in log records."""
CUT_OFF = "cut off? raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
"""A likely cause of JSON that cannot be parsed."""
UNKNOWN_START = datetime.min.replace(tzinfo=UTC)
"""The start of spans without a time."""


class Event:
    """An event of a span, or a log record within one. What is not taken from it stays in the leftover of its span."""

    def __init__(self, fields: FieldTracker) -> None:
        self.fields = fields
        self.attributes = fields.object("attributes") or FieldTracker({}, warnings=fields.warnings)
        self.name = event_name({name: fields.peek(name) for name in fields}, self.attributes.peek("event.name"))
        self.time = parse_moment(*map(fields.peek, ("timestamp", "time", "time_unix_nano", "timeUnixNano")))


class Span:
    """A span. Ids, times and everything else not taken from ``fields`` or ``attributes`` stay in the leftover.

    The attributes have dotted names; see `take_nested` for names with indexes. The parent is there if it is in the
    recording, and ``depth`` is the number of ancestors. The error is the message of the status, the type of the error,
    or the exception.
    """

    def __init__(self, span: FieldTracker) -> None:
        fields = {name: span.peek(name) for name in span}
        self.fields = span
        self.trace_id, self.id, self.parent_id = trace_id_of(fields), span_id_of(fields), parent_id_of(fields)
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
        self.started_at = started_at(fields)
        self.ended_at = parse_moment(*map(fields.get, ("end_time", "endTime", "end_time_unix_nano", "endTimeUnixNano")))
        if self.started_at is None and self.events:
            self.started_at = self.events[0].time
        status: JsonObject = {"code": fields.get("status_code"), "message": fields.get("status_message")}
        self.error = self._error(fields.get("status") or status)

    @property
    def response_id(self) -> str | None:
        """The id of the response to a model call. Like the span's own id, it stays in the leftover."""
        ids = (self.attributes.peek(name) for name in ("gen_ai.response.id", "ai.response.id"))
        return next((identity for identity in ids if isinstance(identity, str) and identity), None)

    @property
    def is_generative(self) -> bool:
        """Whether the attributes follow one of the conventions, unlike those of a web server's own span."""
        return bool(attribute_conventions(self.attributes))

    def _error(self, status: JsonValue) -> str | None:
        described = status if isinstance(status, dict) else {"code": status}
        code = described.get("code", described.get("status_code"))
        failed = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))
        kind = self.attributes.peek("error.type")
        exceptions = [event.attributes for event in self.events if event.name == "exception"]
        if not failed and kind is None:
            return None
        reasons = [described.get("message"), described.get("description")]
        reasons += [raised.peek(name) for raised in exceptions for name in ("exception.message", "exception.type")]
        return next((text for text in [*reasons, kind] if isinstance(text, str) and text), "error")


def group_spans(document: JsonValue) -> list[JsonValue]:
    """Return the spans of each conversation as a record ``{"id": ..., "spans": [...]}``.

    A span belongs to the conversation or session that its outermost ancestor names, or else the one that its trace
    names first; otherwise, its trace is the conversation. Conversations without a convention (of web servers) are left
    out, unless there are no others.
    """
    traces: dict[str, list[JsonObject]] = {}
    for number, span in enumerate(spans_in(document)):
        traces.setdefault(trace_id_of(span) or f"#{number}", []).append(span)
    groups: dict[str, list[JsonObject]] = {}
    for trace_id, spans in traces.items():
        for span, name in zip(spans, _named(spans), strict=True):
            groups.setdefault(name or trace_id, []).append(span)
    talking = {name: spans for name, spans in groups.items() if any(map(span_conventions, spans))} or groups
    return [
        cast("JsonValue", {"spans": spans} if name.startswith("#") else {"id": name, "spans": spans})
        for name, spans in talking.items()
    ]


def read_spans(record: FieldTracker) -> list[Span]:
    """Return the spans of a record of `group_spans`, ordered by start time and linked to their parents.

    Log records of a span become its events. Fields that all spans share (resource, scope, fields next to the spans) stay
    only in the first span. Messages that were moved out of spans are an error.
    """
    pieces = [Span(fields) for fields in record.objects("spans")]
    moved = sum(holds_moved_messages(event.fields.peek("body")) for span in pieces for event in span.events)
    if moved:
        problem = "the AWS Distro for OpenTelemetry moved messages of spans into log records, which are not put back"
        raise TraceError(f"spans: {problem}, found {moved}; record the spans with another exporter")
    kept: dict[str, JsonValue] = {}
    for span in pieces:
        for name in _SHARED:
            span.fields.take_if(name, kept.get(name))
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
    """Return the outermost known ancestor of each id, which may be the id itself. One id of each cycle counts as that."""
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
    ids = {span_id_of(span) for span in objects}
    traces = {trace for span in objects if (trace := trace_id_of(span)) is not None}
    within = {span_id_of(span): parent_id_of(span) in ids for span in objects}
    return traces, {name for name, inner in within.items() if name is not None and not inner}


def time_range(spans: Sequence[Span]) -> dict[str, datetime | None]:
    """Return the start of the first span and the end of the last one, as fields of a `Trace`."""
    return {
        "started_at": min((span.started_at for span in spans if span.started_at), default=None),
        "ended_at": max((span.ended_at for span in spans if span.ended_at), default=None),
    }


def refuse_unread(spans: Iterable[Span]) -> None:
    """Raise an error if there are attributes that may hold messages, none of which could be read."""
    names = {
        f"{name!r}": None
        for span in spans
        for holder in (span.attributes, *(event.attributes for event in span.events))
        for name in holder
        if _CONTENT.search(name) and isinstance(held := holder.peek(name), str | list | dict) and held
    }
    if names:
        shown = ", ".join([*names][:5])
        raise TraceError(f"spans: no messages that can be read, although these attributes may hold some: {shown}")


def final_error(spans: Sequence[Span]) -> str | None:
    """Return the error of the last outermost span, or else of the span that began last; they are ordered by start."""
    outermost = [span.error for span in spans if span.parent is None][-1:]
    return next((error for error in (*outermost, *(span.error for span in spans[-1:])) if error), None)


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
        steps = name[len(prefix) + 1 :].split(".")[:DEEPEST]
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


def _is_log(span: Span) -> bool:
    return all(name in ("trace_id", "span_id", *_SHARED) for name in span.fields)


def _named(spans: Sequence[JsonObject]) -> list[str | None]:
    """Return the conversation of each span of one trace."""
    parents: dict[str | None, str | None] = {}
    own: dict[str | None, str | None] = {}
    first: tuple[datetime, str] | None = None
    for span in spans:
        name, identity, started = conversation_id(span), span_id_of(span), started_at(span) or UNKNOWN_START
        parents[identity] = parents.get(identity) or parent_id_of(span)
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
    return [names.get(span_id_of(span)) or (first and first[1]) for span in spans]

"""Spans in the forms of exporters, and the conversations they belong to."""

from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st
from pydantic import JsonValue

from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.span_exports import detect_convention
from judgekit.formats.spans import Span, find_roots, group_spans, read_spans, take_nested

MARKED = {"gen_ai.operation.name": "chat"}
TYPED = [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
    {"key": "count", "value": {"intValue": "52"}},
    {"key": "share", "value": {"doubleValue": 0.5}},
    {"key": "on", "value": {"boolValue": True}},
    {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": 1}]}}},
    {"key": "none", "value": {"arrayValue": {}}},
    {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"string_value": "v"}}]}}},
    {"key": "odd", "value": {"intValue": "many"}},
]
PLAIN = {
    **MARKED,
    "count": 52,
    "share": 0.5,
    "on": True,
    "list": ["a", 1],
    "none": [],
    "map": {"k": "v"},
    "odd": "many",
}
OTLP_SPAN = {"traceId": "t", "spanId": "s", "attributes": TYPED}


def otlp(*spans: JsonValue) -> JsonValue:
    scope = {"scope": {"name": "lib"}, "spans": list(spans)}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def read(document: JsonValue) -> list[Span]:
    return [span for record in group_spans(document) for span in read_spans(FieldTracker.of(record))]


def test_each_exporter_s_span_is_read() -> None:
    cases = {
        "otlp": (otlp(OTLP_SPAN), ("t", "s", None)),
        "lines of requests": ([otlp(OTLP_SPAN)], ("t", "s", None)),
        "snake case": (
            {
                "resource_spans": [
                    {"scope_spans": [{"spans": [{"trace_id": "t", "span_id": "s", "attributes": TYPED}]}]}
                ]
            },
            ("t", "s", None),
        ),
        "span": ({"trace_id": "t", "span_id": "s", "parent_span_id": "p", "attributes": PLAIN}, ("t", "s", "p")),
        "list": ([{"traceId": "t", "spanId": "s", "parentSpanId": "p", "attributes": PLAIN}], ("t", "s", "p")),
        "wrapper": ({"spans": [{"trace_id": "t", "span_id": "s", "attributes": PLAIN}]}, ("t", "s", None)),
        "console": (
            {"context": {"trace_id": "0xt", "span_id": "0xs"}, "parent_id": "0xp", "attributes": PLAIN},
            ("t", "s", "p"),
        ),
        "javascript": (
            {
                "_spanContext": {"traceId": "t", "spanId": "s"},
                "parentSpanContext": {"spanId": "p"},
                "attributes": PLAIN,
            },
            ("t", "s", "p"),
        ),
        "no ids": ({"name": "chat", "attributes": PLAIN}, (None, None, None)),
        "attributes alone": (PLAIN, (None, None, None)),
    }.values()
    for document, ids in cases:
        (span,) = read(document)
        assert (span.trace_id, span.id, span.parent_id) == ids
        assert {name: span.attributes.peek(name) for name in span.attributes} == PLAIN
        assert detect_convention(document) == "otel"


def test_the_names_of_attributes_tell_the_convention() -> None:
    cases = [
        ({"gen_ai.system": "x"}, "otel"),
        ({"gen_ai": {"system": "x"}}, "otel"),
        ({"ai.operationId": "ai.generateText"}, "otel"),
        ({"gcp.vertex.agent.event_id": "1"}, "otel"),
        ({"openinference.span.kind": "LLM"}, "openinference"),
        ({"openinference": {"span": {"kind": "LLM"}}}, "openinference"),
        ({"openinference.span.kind": "LLM", "gen_ai.system": "x"}, "openinference"),
        ({"mlflow.spanType": '"LLM"', "gen_ai.system": "x"}, "mlflow"),
        ({"http.method": "GET"}, None),
    ]
    for attributes, expected in cases:
        quiet = {"trace_id": "t", "span_id": "a", "attributes": {"http.method": "GET"}}
        assert detect_convention([quiet, {"trace_id": "t", "span_id": "b", "attributes": attributes}]) == expected


def test_traces_that_name_one_conversation_are_one_record_and_others_are_their_own() -> None:
    def span(trace: str, identity: str, **attributes: str) -> dict:
        return {"trace_id": trace, "span_id": identity, "attributes": {**MARKED, **attributes}}

    session = {"gen_ai.conversation.id": "c"}
    quiet = {"trace_id": "web", "span_id": "9", "attributes": {"http.method": "GET"}}
    spans = [span("t1", "1"), span("t1", "2", **session), span("t2", "3", **session), span("t3", "4"), quiet]
    records = group_spans(spans)
    assert [(one["id"], [span["span_id"] for span in one["spans"]]) for one in records] == [
        ("c", ["1", "2", "3"]),
        ("t3", ["4"]),
    ]
    assert [one["id"] for one in group_spans([quiet])] == ["web"]


def test_a_time_s_size_tells_its_unit() -> None:
    cases = [
        *(1767225600000000000, "1767225600000000000", 1767225600000000, 1767225600000, 1767225600, 1767225600.0),
        *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", [1767225600, 5]),
    ]
    for value in cases:
        (span,) = read({"trace_id": "t", "span_id": "s", "attributes": MARKED, "start_time": value})
        assert span.started_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_spans_are_in_the_order_of_time_and_know_their_parents() -> None:
    def span(identity: str, parent: str | None, start: int) -> dict:
        return {
            "trace_id": "t",
            "span_id": identity,
            "parent_span_id": parent,
            "start_time": start,
            "attributes": MARKED,
        }

    late, root = span("late", "root", 1767225602), span("root", None, 1767225600)
    within, itself = span("within", "late", 1767225603), span("loop", "loop", 1767225604)
    spans = read([within, late, itself, root])
    assert [(span.id, span.parent and span.parent.id, span.depth) for span in spans] == [
        ("root", None, 0),
        ("late", "root", 1),
        ("within", "late", 2),
        ("loop", None, 0),
    ]


def test_errors_are_found_wherever_they_stand() -> None:
    cases = [
        ({}, None),
        ({"status": {"code": "OK"}}, None),
        ({"status": {"code": 2, "message": "boom"}}, "boom"),
        ({"status": {"status_code": "ERROR", "description": "boom"}}, "boom"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "error"),
        ({"status": "ERROR"}, "error"),
        ({"attributes": {**MARKED, "error.type": "Timeout"}}, "Timeout"),
        (
            {"status": {"code": 2}, "events": [{"name": "exception", "attributes": {"exception.message": "late"}}]},
            "late",
        ),
    ]
    for fields, error in cases:
        (span,) = read({"trace_id": "t", "span_id": "s", "attributes": MARKED, **fields})
        assert span.error == error


def test_log_records_are_events_of_their_span_and_of_one_span_without_it() -> None:
    def log(identity: str, name: str) -> dict:
        return {"traceId": "t", "spanId": identity, "eventName": name, "body": {"stringValue": name}, "attributes": []}

    logs = {
        "resourceLogs": [
            {"scopeLogs": [{"logRecords": [log("a", "gen_ai.x"), log("b", "gen_ai.y"), log("b", "gen_ai.z")]}]}
        ]
    }
    spans = read([logs, otlp({**OTLP_SPAN, "spanId": "a"})])
    assert {span.id: [event.name for event in span.events] for span in spans} == {
        "a": ["gen_ai.x"],
        "b": ["gen_ai.y", "gen_ai.z"],
    }
    assert spans[0].events[0].fields.peek("body") == "gen_ai.x"


def test_resource_and_scope_are_kept_once_and_all_else_of_every_span() -> None:
    record = FieldTracker.of(group_spans(otlp(OTLP_SPAN, {**OTLP_SPAN, "spanId": "s2"}))[0])
    read_spans(record)
    first, second = record.leftover()["spans"]
    assert (first["scope"], first["resource"]) == ({"name": "lib"}, {"attributes": {"service.name": "shop"}})
    assert second == {"traceId": "t", "spanId": "s2", "attributes": PLAIN}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({f"a.{i}.b": i for i in (10, 9, 0)}, [{"b": 0}, {"b": 9}, {"b": 10}]),
        ({"a.x.y": 1, "a.z": 2}, {"x": {"y": 1}, "z": 2}),
        ({"a": [1]}, [1]),
        ({"a.b": 1, "a.b.c": 2}, {"b": {"": 1, "c": 2}}),
        ({"a.b.c": 2, "a.b": 1}, {"b": {"c": 2, "": 1}}),
        ({"ab": 1}, None),
    ],
)
def test_dotted_names_become_objects_and_lists_in_numeric_order(attributes: dict, expected: JsonValue) -> None:
    assert take_nested(FieldTracker(attributes), "a") == expected


names = st.sampled_from(
    [
        *("resourceSpans", "scopeSpans", "spans", "trace_id", "span_id", "parent_span_id", "attributes", "events"),
        *("key", "value", "context", "start_time", "status", "gen_ai.x", "intValue", "name", "body", "eventName"),
    ]
)


def test_a_span_belongs_to_the_conversation_of_the_outermost_span_that_names_one() -> None:
    def one(identity: str, parent: str | None, began: int, conversation: str | None) -> JsonValue:
        named = {} if conversation is None else {"gen_ai.conversation.id": conversation}
        ids = {"trace_id": "t", "span_id": identity, "parent_span_id": parent}
        return {**ids, "start_time": 1_767_225_600 + began, "attributes": {**MARKED, **named}}

    spans = [
        one("chat2", "run2", 5, None),
        one("chat1", "run1", 2, "inner"),
        one("run2", "all", 4, "second"),
        one("run1", "all", 1, "first"),
        one("all", None, 0, None),
        {"trace_id": "t", "span_id": "chat2", "event_name": "gen_ai.choice", "body": {}},
        one("ring", "ring", 9, "ring"),
    ]
    names = {
        record["id"]: sorted({span["span_id"] for span in record["spans"]})
        for record in group_spans(spans)
        if isinstance(record, dict)
    }
    assert names == {"first": ["all", "chat1", "run1"], "second": ["chat2", "run2"], "ring": ["ring"]}


def test_a_span_is_within_one_of_its_own_trace_though_another_trace_has_the_same_ids() -> None:
    rows: list[JsonValue] = [
        {"trace_id": trace, "span_id": identity, "parent_span_id": parent, "name": "x"}
        for trace in ("t", "u")
        for identity, parent in (("1", None), ("2", "1"))
    ]
    parents = [span.parent for span in read_spans(FieldTracker({"spans": rows}))]
    assert [parent and parent.trace_id for parent in parents] == [None, "t", None, "u"]


def test_an_event_without_a_name_of_its_own_has_that_of_its_attribute() -> None:
    log = {"trace_id": "t", "span_id": "s", "event_name": "", "attributes": {"event.name": "gen_ai.choice"}}
    assert [event.name for span in read([log]) for event in span.events] == ["gen_ai.choice"]


def test_only_the_beginning_of_a_long_list_is_looked_at() -> None:
    rows: list[JsonValue] = [{"role": "user", "content": "Hi"}] * 2_000
    assert detect_convention([*rows, {"trace_id": "t", "span_id": "s", "attributes": MARKED}]) is None


def test_the_outermost_ancestor_is_found_in_any_order_and_in_cycles():
    parents = {"c": "b", "b": "a", "a": None, "x": "gone", "y": "x", "p": "q", "q": "p", "s": "s"}
    for order in (parents, dict(reversed(parents.items()))):
        roots = find_roots(order)
        assert {name: roots[name] for name in "cbaxys"} == dict(zip("cbaxys", "aaaxxs", strict=True))
        assert roots["p"] == roots["q"]
    chain = {str(number): str(number + 1) for number in range(50_000)}
    assert set(find_roots(chain).values()) == {"49999"}

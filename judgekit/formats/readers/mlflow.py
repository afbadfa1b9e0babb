r"""Traces of MLflow, as written by ``Trace.to_json``: wrapped spans whose attributes are JSON within JSON.

{"info": {"trace_id": "tr-1f", "state": "OK", "assessments": [...], "trace_metadata": {...}, "tags": {...}},
 "data": {"spans": [{"span_id": "I4P=", "name": "chat", "attributes": {"mlflow.spanType": "\"CHAT_MODEL\"", ...}}]}}
{"trace_id": "tr-1f", "trace": "{\"info\": ...}", "trace_metadata": {...}, "spans": [...]}    rows of ``mlflow.search_traces()``
"""

from itertools import chain
from typing import cast

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.merging import merge_steps
from judgekit.formats.readers.base import RowReader, as_records, build_sample
from judgekit.formats.readers.payloads import exchange_messages, take_payload
from judgekit.formats.readers.span_steps import payload_reader, read_steps
from judgekit.formats.score_records import make_label
from judgekit.formats.span_exports import detect_convention
from judgekit.formats.spans import Span, group_spans, read_spans
from judgekit.formats.values import as_object, lookup, objects_in, parse_if_complete, parse_if_json, unpacked
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, parse_arguments
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import ExpectedCall, Sample

_CACHED = "cache_read_input_tokens"
_JUDGED = {"CODE": False, "LLM_JUDGE": True, "AI_JUDGE": True}
_VALUES = ("mlflow.spanInputs", "mlflow.spanOutputs")
_INFO = (
    *("trace_id", "request_id", "client_request_id", "state", "status", "request_time", "timestamp_ms"),
    *("execution_duration", "execution_time_ms", "trace_metadata", "request_metadata", "tags", "assessments"),
)
_DATA = ("spans", "request", "response")
"""Columns of ``mlflow.search_traces()`` with the info, and with the data, of a trace."""
_CODE = 'open("traces.jsonl", "w").write("\\n".join(t.to_json() for t in mlflow.search_traces(return_type="list")))'


class MLflowReader(RowReader):
    """A reader of traces, one conversation each. Traces of a session are a group."""

    name = "mlflow"
    shape = 'mlflow: {"info": {"trace_id": ..., ...}, "data": {"spans": [...]}}, or spans with "mlflow." attributes'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize traces by ``info`` and ``data``, and spans by MLflow's attributes."""
        return _is_trace(_trace(next(iter(as_records(value)), None))) or detect_convention(value) == "mlflow"

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the traces, or the spans of each."""
        traces = list(map(_trace, as_records(document)))
        return traces if any(map(_is_trace, traces)) else group_spans(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trace. The leftover of its spans goes into the trace's ``extra``."""
        row = FieldTracker.of(_decoded(record))
        info, data = row.object("info") or FieldTracker({}), row.object("data") or row
        for holder, name in ((data, "spans"), *((info, name) for name in ("assessments", "trace_metadata", "tags"))):
            if isinstance(holder.peek(name), str):
                raise TraceError(f"{name}: a string that is not JSON, as in tables from search_traces(); write {_CODE}")
        spans = read_spans(data)
        steps, tools = read_steps(spans, _kind, payload_reader(_VALUES, _details), _VALUES)
        fields = merge_steps(steps)
        if not spans:  # in version 2
            request, response = take_payload(data, "request", HumanMessage), take_payload(data, "response", AIMessage)
            fields |= {"messages": list(chain(*exchange_messages(request, response, tools)))}
        if not fields["messages"]:
            problem = "no model call, and no text or messages as input or output of the outermost span"
            raise TraceError(f"data.spans: {problem}; enable tracing of models, such as mlflow.openai.autolog()")
        metadata = _metadata(info)
        usage, cost = (unpacked(metadata.get(f"mlflow.trace.{name}")) for name in ("tokenUsage", "cost"))
        totals = FieldTracker({"tokenUsage": usage, "cost": cost})
        labels, facts = _assessed(info)
        started = info.time("request_time") or info.time("timestamp_ms", unit="ms")
        trace = {
            **fields,
            "tools": tools,
            "labels": labels,
            "started_at": started or fields.get("started_at"),
            "usage": read_counts(totals.object("tokenUsage"), cached=_CACHED),
            "cost_usd": (totals.object("cost") or FieldTracker({})).number("total_cost"),
            "termination": info.text("state", "status"),
            "metadata": {**cast("JsonObject", fields.get("metadata", {})), **metadata},
        }
        if isinstance(session := metadata.get("mlflow.trace.session"), str):
            facts["group"] = session
        identity = info.id("trace_id", "request_id") or row.id("id")
        return build_sample(row, index, trace, identity=identity, **facts)


def _trace(record: JsonValue) -> JsonValue:
    """Return the trace in a row of ``mlflow.search_traces()``, as JSON or in columns; any other record as it is."""
    record = unpacked(record)
    if not isinstance(record, dict) or _is_trace(record):
        return record
    named = isinstance(record.get("trace_id", record.get("request_id")), str)
    in_columns = named and not {"trace_metadata", "request_metadata", "assessments"}.isdisjoint(record)
    if not (in_columns or isinstance(record.get("trace"), str)):
        return record
    own = {name: value for name, value in record.items() if name not in (*_INFO, *_DATA)}
    if isinstance(own.get("trace"), str) and _is_trace(whole := unpacked(own.pop("trace"))):
        return {**own, **as_object(whole)}
    if not in_columns:
        return record
    info: JsonObject = {name: unpacked(record[name]) for name in _INFO if record.get(name) is not None}
    info["timestamp_ms"] = info.pop("request_time", info.get("timestamp_ms"))  # here, a number
    data: JsonObject = {name: unpacked(record[name]) for name in _DATA if name in record}
    return {**own, "info": info, "data": data}


def _is_trace(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    info, data = as_object(value.get("info")), as_object(value.get("data"))
    named = bool({"trace_id", "request_id", "trace_metadata", "request_metadata"} & info.keys())
    return named and bool({"spans", "request", "response"} & data.keys())


def _decoded(record: JsonValue) -> JsonValue:
    if not isinstance(record, dict):
        return record
    if isinstance(data := record.get("data"), dict):
        return {**record, "data": _decoded(data)}
    spans = record.get("spans")
    return {**record, "spans": list(map(_decoded_span, spans))} if isinstance(spans, list) else record


def _decoded_span(span: JsonValue) -> JsonValue:
    if isinstance(span, dict) and isinstance(attributes := span.get("attributes"), dict):
        return {**span, "attributes": {name: parse_if_complete(value) for name, value in attributes.items()}}
    return span


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("mlflow.spanType")
    return "LLM" if kind == "CHAT_MODEL" else kind if isinstance(kind, str) else None


def _details(attributes: FieldTracker, tools: list[ToolDefinition]) -> dict[str, object]:
    tools += read_tools(attributes.optional_objects("mlflow.chat.tools"))
    usage = read_counts(attributes.object("mlflow.chat.tokenUsage"), cached=_CACHED)
    return {"model": attributes.text("mlflow.llm.model"), "usage": usage}


def _metadata(info: FieldTracker) -> JsonObject:
    """Return the trace's metadata and tags. Version 2 has another name for the metadata."""
    metadata: JsonObject = {}
    for name in ("trace_metadata", "request_metadata", "tags"):
        fields = info.object(name) or FieldTracker({})
        fields.take_into(metadata, fields)
    return metadata


def _assessed(info: FieldTracker) -> tuple[list[Label], dict[str, object]]:
    """Return labels and references. Assessments stay in ``extra`` too, since they hold more."""
    labels: list[Label] = []
    facts: dict[str, object] = {}
    fields: JsonObject = {}
    for assessment in objects_in(info.peek("assessments")):
        name = assessment.get("assessment_name") or assessment.get("name")
        feedback, expectation = assessment.get("feedback"), assessment.get("expectation")
        if not isinstance(name, str) or assessment.get("valid") is False:  # another one replaces it
            continue
        if isinstance(feedback, dict):
            labels += _labels(name, feedback.get("value"), assessment)
            continue
        is_serialized = isinstance(lookup(expectation, "serialized_value"), dict)
        text = lookup(expectation, "serialized_value", "value")
        value = parse_if_json(text) if is_serialized else lookup(expectation, "value")
        if value is not None:
            if name == "expected_response" and isinstance(value, str):
                facts["reference"] = value
            elif name == "expected_tool_calls" and (calls := _calls(value)) is not None:
                facts["reference_tool_calls"] = calls
            else:
                fields[name] = value
    return labels, {**facts, "fields": fields}


def _labels(name: str, value: JsonValue, assessment: JsonObject) -> list[Label]:
    kind, annotator = (lookup(assessment, "source", field) for field in ("source_type", "source_id"))
    source = "human" if kind == "HUMAN" else label_source(name, judged=_JUDGED.get(str(kind)))
    values = {f"{name}.{key}": verdict for key, verdict in value.items()} if isinstance(value, dict) else {name: value}
    reason = assessment.get("rationale")
    labels = (make_label(name, verdict, source, annotator, reason) for name, verdict in values.items())
    return [label for label in labels if label is not None]


def _calls(value: JsonValue) -> list[ExpectedCall] | None:
    """Return the expected calls; ``None`` if a value is not a call."""
    try:
        calls = FieldTracker({"calls": value}).objects("calls")
        named = [(call.text("name"), parse_arguments(call.take("arguments", "args"))) for call in calls]
        return [ExpectedCall.model_validate({"name": name, **arguments}) for name, arguments in named]
    except (TraceError, ValidationError):
        return None

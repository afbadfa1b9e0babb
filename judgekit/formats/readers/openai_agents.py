r"""Traces that the OpenAI Agents SDK exports.

{"object": "trace", "id": "trace_1", "workflow_name": "Support", "group_id": null, "metadata": null}
{"object": "trace.span", "id": "span_2", "trace_id": "trace_1", "parent_id": "span_1", "started_at": "...",
 "span_data": {"type": "function", "name": "f", "input": "{\"a\": 1}", "output": "2"}, "error": null, ...}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import tool_name
from judgekit.formats.blocks.openai_responses import read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging import SpanStep, merge_steps
from judgekit.formats.readers.base import as_records, build_sample
from judgekit.formats.readers.span_steps import payload_reader
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import Span, read_spans
from judgekit.formats.values import lookup, str_or_none
from judgekit.traces.message import JsonObject, ToolCall, ToolMessage, Usage
from judgekit.traces.sample import Sample

_SPELLED = {"id": "span_id", "started_at": "start_time", "ended_at": "end_time", "span_data": "attributes"}
"""Fields of spans, and the names that other tracers give them."""
_BESIDE = ("handoff", "guardrail", "custom", "mcp_tools", "transcription", "speech", "speech_group")
"""Kinds of spans that hold no messages, or repeat them."""
_SILENT = (
    "message contents are not in the file: RunConfig(trace_include_sensitive_data=True) records it for Chat Completions "
    "models; for the Responses API save result.to_input_list() instead"
)


class OpenAIAgentsReader:
    """A reader of exported traces, in a list or in lines.

    Agents that are called as tools become children of the trace. Source: the SDK's ``agents.tracing``.
    """

    name = "openai-agents"
    joins_lines = True
    shape = 'openai-agents: {"object": "trace" | "trace.span", ...} in each line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows by their ``object``."""
        return lookup(next(iter(_rows(value)), None), "object") in ("trace", "trace.span")

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return each trace with its spans."""
        records: list[JsonValue] = []
        traces: dict[str, tuple[JsonObject, list[JsonValue]]] = {}
        for row in _rows(document):
            if not isinstance(row, dict):
                records.append(row)
                continue
            whole = row.get("object") == "trace"
            name = str_or_none(row.get("id" if whole else "trace_id")) or ""
            if name not in traces:
                spans: list[JsonValue] = []
                traces[name] = ({"spans": spans}, spans)
                records.append(traces[name][0])
            if whole:
                traces[name][0]["trace"] = row
            else:
                traces[name][1].append({_SPELLED.get(key, key): value for key, value in row.items()})
        return records

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trace."""
        row = FieldTracker.of(record)
        head = row.object("trace") or FieldTracker({})
        spans = read_spans(row)
        steps = list(map(_step, spans))
        if not any(step.input_messages or step.output_messages or step.call for step in steps):
            raise TraceError(f"contains no messages: {_SILENT}")
        if not any(step.input_messages or step.output_messages for step in steps):
            row.warn(f"only tool calls; {_SILENT}")
        # The SDK calls a run a task, and writes its span as a custom one.
        runs = [span for span in spans if lookup(span.attributes.peek("data"), "sdk_span_type") == "task"]
        data = runs[0].attributes.object("data") if len(runs) == 1 else None
        errors = [step.span.error for step in steps if step.kind == "agent" or step.span in runs]
        error = next((error for error in reversed(errors) if error), None)
        trace = {
            **merge_steps(steps),
            "usage": _usage(data),
            "termination": error,
            **({"error": error} if error else {}),
        }
        group = head.text("group_id")
        facts = {} if group is None else {"group": group}
        return build_sample(row, index, trace, identity=head.id("id") or spans[0].trace_id, **facts)


def _rows(document: JsonValue) -> list[JsonValue]:
    posted = document.get("data") if isinstance(document, dict) and "object" not in document else None
    return posted if isinstance(posted, list) else as_records(document)


def _usage(holder: FieldTracker | None) -> Usage | None:
    return None if holder is None else read_usage(holder.maybe_object("usage"))


def _step(span: Span) -> SpanStep:
    data, error = span.attributes, span.fields.peek("error")
    if error is not None:
        message = error.get("message") if isinstance(error, dict) else error
        span.error = message if isinstance(message, str) else to_text(error)
    kind, name = data.peek("type"), data.peek("name")
    if kind == "agent":
        return SpanStep(span, "agent", agent=str_or_none(name))
    if kind == "function":
        return _call(span)
    if kind in ("generation", "response"):
        return _exchange(span)
    if kind not in _BESIDE:
        data.warn(f"unreadable span of type {kind!r:.80}, kept in extra")
    return SpanStep(span)


def _call(span: Span) -> SpanStep:
    """Read a tool call, if it was recorded. It has no id."""
    data = span.attributes
    if "input" not in data and "output" not in data and span.error is None:
        return SpanStep(span, "tool")
    name = tool_name(data, "name")
    call = ToolCall.model_validate({"name": name, "args": data.take("input")})  # the model parses text
    output = data.take("output")
    result = None if output is None else ToolMessage(to_text(output), name=name, is_error=span.error is not None)
    return SpanStep(span, "tool", call=call, result=result)


def _exchange(span: Span) -> SpanStep:
    """Read a request, which holds the whole history, and its response, which is only there if it was logged."""
    values = ("input", "response" if "response" in span.attributes else "output")
    return payload_reader(values, lambda data, _: {"model": data.text("model"), "usage": _usage(data)})(span, [])

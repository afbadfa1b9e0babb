"""Messages that a distribution of OpenTelemetry moves from spans into log records."""

import json

import pytest

from judgekit import read
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.span_exports import holds_moved_messages

KINDS = {
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
    },
    "otel": {"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.role": "assistant"},
    "otel of Strands": {"gen_ai.operation.name": "chat"},
}
"""Attributes that the distribution leaves in a span, by the format of the span."""


def span(attributes, **more):
    return {"traceId": "t", "spanId": "a", "name": "x", "startTimeUnixNano": 1, "attributes": attributes, **more}


def log(name):
    said = {"input": {"messages": [{"role": "user", "content": "Weather in Málaga?"}]}}
    kind = "openinference" if name == "openinference" else "strands"
    about = {"traceId": "t", "spanId": "a", "severityNumber": 9, "timeUnixNano": 2}
    return {**about, "body": said, "attributes": {"event.name": f"{kind}.instrumentation.x"}}


@pytest.mark.parametrize("name", KINDS)
def test_log_records_with_messages_of_spans_are_refused(tmp_path, name):
    """With their spans, within them, and alone."""
    attached = span(KINDS[name], span_events=[{"body": log(name)["body"], "event_name": "x"}])
    path = tmp_path / "spans.jsonl"
    for records in ([log(name), span(KINDS[name])], [attached], [log(name)]):
        path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        with pytest.raises(TraceError, match=r"moved messages .* found 1; record the spans with another exporter"):
            list(read(path, on_error="raise"))
    assert detect([log(name)]).name == name.partition(" ")[0]


def test_spans_without_their_log_records_are_refused_or_told(tmp_path):
    path = tmp_path / "spans.jsonl"
    for name, attributes in KINDS.items():
        path.write_text(json.dumps(span(attributes)), encoding="utf-8")
        if name == "openinference":  # it shows that somebody spoke
            [sample] = read(path, on_error="raise")
            assert "without content, found 1 of 1: " in sample.trace.warnings[0].message
        else:
            with pytest.raises(TraceError, match=r"no messages.*cat spans"):
                list(read(path, on_error="raise"))


@pytest.mark.parametrize(
    "body", [None, "x", {}, {"input": None}, {"input": {"messages": "x"}}, {"output": {"messages": [1]}}]
)
def test_other_bodies_hold_no_messages(body):
    assert not holds_moved_messages(body)

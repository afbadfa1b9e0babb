"""Scores become events of OpenTelemetry, in the traces that were scored."""

import json
import sys

import pytest

from judgekit import MaxMessages, Sample, Trace, read, run
from judgekit.errors import ConfigError
from judgekit.integrations.otel import emit_to_otel

HI = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
HELLO = '[{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]'
TRACE, OTHER, SPAN, INNER = "a" * 32, "b" * 32, "1" * 16, "2" * 16


def span(trace_id=TRACE, span_id=SPAN, *, parent=None, start=1, **attributes):
    ids = {"trace_id": trace_id, "span_id": span_id, "parent_span_id": parent}
    return {**ids, "name": "chat", "start_time": start, "attributes": attributes}


def sample_of(*spans, sample_id="s1"):
    return Sample(id=sample_id, trace=Trace(id="conv-7", extra={"spans": list(spans)}))


@pytest.fixture
def sdk():
    return pytest.importorskip("opentelemetry.sdk._logs", reason="opentelemetry-sdk is not installed")


@pytest.fixture
def exported(sdk):
    """A provider, and what it exports."""
    from opentelemetry.sdk._logs import export  # noqa: PLC0415

    name = "InMemoryLogRecordExporter" if hasattr(export, "InMemoryLogRecordExporter") else "InMemoryLogExporter"
    exporter = getattr(export, name)()
    provider = sdk.LoggerProvider()
    provider.add_log_record_processor(
        export.BatchLogRecordProcessor(exporter, max_queue_size=300, max_export_batch_size=300)
    )
    yield provider, lambda: [one.log_record for one in exporter.get_finished_logs()]
    provider.shutdown()


def test_each_score_becomes_an_event_and_only_scored_ones_have_a_value(exported, rows_of):
    provider, events = exported
    assert emit_to_otel(rows_of(trace_id=TRACE), provider=provider) == 4
    tone, f1, goal, panel = events()
    assert {event.event_name for event in events()} == {"gen_ai.evaluation.result"}
    assert {(event.trace_id, event.span_id) for event in events()} == {(int(TRACE, 16), 0)}
    assert dict(tone.attributes) == {
        "gen_ai.evaluation.name": "tone",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "partly",
        "gen_ai.evaluation.explanation": "It is kind.",
        "judgekit.status": "scored",
        "judgekit.judged": True,
        "judgekit.sample_id": "s1",
    }
    assert goal.attributes["error.type"] == "TruncatedError"
    for event, status in ((f1, "skipped"), (goal, "failed"), (panel, "abstained")):
        assert event.attributes["judgekit.status"] == status
        assert "gen_ai.evaluation.score.value" not in event.attributes
        assert ("error.type" in event.attributes) == (status == "failed")


@pytest.mark.parametrize(
    ("spans", "place"),
    [
        ([span(span_id=INNER, parent=SPAN), span(start=0)], (TRACE, SPAN, None)),
        ([span(span_id=INNER, parent=SPAN)], (TRACE, INNER, None)),  # what is around it was not recorded
        ([span(), span(OTHER, INNER, start=2)], (OTHER, INNER, None)),  # a trace for each turn: where it ended
        ([span(**{"gen_ai.response.id": "r1"})], (TRACE, SPAN, "r1")),
        ([span(**{"gen_ai.response.id": one}) for one in ("r1", "r2")], (TRACE, SPAN, None)),
        ([span("live-trace-1")], None),
        ([span("0" * 32)], None),
        (["not a tracer's"], None),
        ([], None),
    ],
)
def test_an_event_belongs_to_the_outermost_span_of_the_trace_in_which_the_conversation_ended(
    spans, place, exported, rows_of
):
    provider, events = exported
    rows = rows_of()[:1]
    if place is None:
        with pytest.warns(UserWarning, match="1 of 1 events belong to no trace: .* 's1'"):
            assert emit_to_otel(rows, samples=[sample_of(*spans)], provider=provider) == 1
    else:
        emit_to_otel(rows, samples=[sample_of(*spans)], provider=provider)
    (event,) = events()
    trace_id, span_id, response_id = place or ("0", "0", None)
    assert (event.trace_id, event.span_id) == (int(trace_id, 16), int(span_id, 16))
    assert event.attributes.get("gen_ai.response.id") == response_id


def test_what_was_emitted_is_read_back_as_the_verdict_of_a_judge_or_of_code(exported, coin_flips, tmp_path):
    provider, events = exported
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": HI, "gen_ai.output.messages": HELLO}
    emit_to_otel(coin_flips, samples=[sample_of(span())], provider=provider)
    records = [
        {
            "trace_id": f"{event.trace_id:032x}",
            "span_id": f"{event.span_id:016x}",
            "event_name": event.event_name,
            "attributes": dict(event.attributes),
        }
        for event in events()
    ]
    lines = [span(**chat), *records]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (sample,) = read(tmp_path / "spans.jsonl", on_error="raise")
    found = {(label.name, label.source, label.value) for label in sample.trace.labels}
    assert found == {("mine", "judge", 0), ("mine", "judge", 1), ("tool_call_f1", "benchmark", 1)}


def test_samples_of_one_id_in_different_traces_lend_no_event_a_trace(exported, rows_of):
    provider, events = exported
    with pytest.warns(UserWarning, match="belong to no trace"):
        emit_to_otel(rows_of(), samples=[sample_of(span()), sample_of(span(OTHER))], provider=provider)
    assert {event.trace_id for event in events()} == {0}


def test_the_span_in_which_the_program_runs_is_not_taken_for_the_one_that_was_scored(exported, rows_of):
    from opentelemetry import trace  # noqa: PLC0415

    provider, events = exported
    around = trace.NonRecordingSpan(trace.SpanContext(int(OTHER, 16), 1, is_remote=False))
    with trace.use_span(around), pytest.warns(UserWarning, match="4 of 4 events"):
        emit_to_otel(rows_of(), provider=provider)
    assert {(event.trace_id, event.span_id) for event in events()} == {(0, 0)}


def test_none_of_many_events_is_dropped(exported, rows_of):
    """The processor here holds 300 and drops what comes on top of them."""
    provider, events = exported
    assert emit_to_otel(rows_of(trace_id=TRACE) * 500, provider=provider) == 2_000
    assert len(events()) == 2_000


def test_a_stored_run_knows_the_spans_of_its_conversations(exported, tmp_path):
    provider, events = exported
    found = run([sample_of(span())], [MaxMessages(3)], store=tmp_path / "runs.sqlite")
    emit_to_otel(found, provider=provider)
    assert [(event.trace_id, event.span_id) for event in events()] == [(int(TRACE, 16), int(SPAN, 16))]


@pytest.mark.parametrize(
    ("path", "trace_id", "span_id"),
    [
        ("otel/otel_genai_convention_spans.json", "a1b2c3d4e5f6" * 2 + "a1b2c3d4", "1000000000000001"),
        ("openinference/smolagents_live_spans.json", "f63de90470d666fccdf71a2b9cb7d089", "93fcaaeb814a0650"),
    ],
)
def test_recordings_of_tracers_are_found_again(path, trace_id, span_id, exported, shared_data):
    provider, events = exported
    samples = list(read(shared_data / "traces" / path))
    emit_to_otel(run(samples, [MaxMessages(3)]), samples=samples, provider=provider)
    assert [(event.trace_id, event.span_id) for event in events()] == [(int(trace_id, 16), int(span_id, 16))]


def test_the_snippet_of_the_documentation_finds_the_spans_of_a_file(exported, snippet, tmp_path, monkeypatch):
    provider, events = exported
    parts = [{"type": "text", "content": "Hi"}]
    said = {"gen_ai.input.messages": [{"role": "user", "parts": parts}], "gen_ai.conversation.id": "conv-7"}
    (tmp_path / "spans.jsonl").write_text(json.dumps(span(**said)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("opentelemetry._logs.get_logger_provider", lambda: provider)
    names = {}
    exec(snippet("OpenTelemetry"), names)  # noqa: S102 - our own documentation
    assert names["emitted"] == 1
    assert [(event.trace_id, event.span_id) for event in events()] == [(int(TRACE, 16), int(SPAN, 16))]


def test_what_would_be_lost_is_an_error(sdk, rows_of):
    with pytest.raises(ConfigError, match="no logger provider is set"):
        emit_to_otel(rows_of())


def test_without_opentelemetry_the_extra_is_named(monkeypatch, rows_of):
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    with pytest.raises(ConfigError, match=r"pip install 'judgekit\[otel\]'"):
        emit_to_otel(rows_of())

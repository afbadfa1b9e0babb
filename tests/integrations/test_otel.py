"""Scores become events of OpenTelemetry, in the traces that were scored."""

import json
import sys

import pytest

from judgekit import AIMessage, MaxMessages, Sample, Trace, read, run
from judgekit.errors import ConfigError
from judgekit.integrations.otel import emit_to_otel

HI = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
HELLO = '[{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]'
TRACE, OTHER, SPAN, INNER = "a" * 32, "b" * 32, "1" * 16, "2" * 16
CHAT = {"gen_ai.operation.name": "chat"}
ASKED = CHAT | {"gen_ai.input.messages": HI}
ANSWERED = ASKED | {"gen_ai.output.messages": HELLO}
AGAIN = json.dumps([*json.loads(HI), *json.loads(HELLO), *json.loads(HI)])
BYE = HELLO.replace("Hello", "Bye")
INDEXED = {
    "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi",
    "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Hello",
}  # fmt: skip
AI_SDK = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt": '{"prompt": "Hi"}', "ai.response.text": "Hello"}
OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi",
    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Hello",
}  # fmt: skip
R1, R2 = {"gen_ai.response.id": "r1"}, {"gen_ai.response.id": "r2"}


def span(trace_id=TRACE, span_id=SPAN, *, parent=None, start=1, **attributes):
    ids = {"trace_id": trace_id, "span_id": span_id, "parent_span_id": parent}
    return {**ids, "name": "chat", "start_time": start, "attributes": attributes}


def sample_of(*spans, messages=()):
    return Sample(id="s1", trace=Trace(id="conv-7", messages=messages, extra={"spans": list(spans)}))


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


def test_the_names_are_those_of_the_semantic_conventions(exported, rows_of):
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for value in vars(conventions).values() if isinstance(value, str)}
    provider, events = exported
    emit_to_otel(rows_of(), samples=[sample_of(span(**R1), messages=[AIMessage("Hello", id="r1")])], provider=provider)
    names = {name for event in events() for name in event.attributes if name.startswith("gen_ai.")}
    assert len(names) == 5
    assert names <= known


@pytest.mark.parametrize(
    ("spans", "place"),
    [
        ([span(span_id=INNER, parent=SPAN), span(start=0)], (TRACE, SPAN)),
        ([span(span_id=INNER, parent=SPAN)], (TRACE, INNER)),  # what is around it was not recorded
        ([span(), span(OTHER, INNER, start=2)], (OTHER, INNER)),  # a trace for each turn: where it ended
        ([span(span_id=INNER, parent=SPAN, **CHAT), span(start=0, **{"http.route": "/"})], (TRACE, INNER)),  # a server
        ([span("live-trace-1")], None),
        ([span("0" * 32)], None),
        (["not a tracer's"], None),
        ([], None),
    ],
)
def test_an_event_belongs_to_the_outermost_generative_span_of_the_trace_in_which_the_conversation_ended(
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
    trace_id, span_id = place or ("0", "0")
    assert (event.trace_id, event.span_id) == (int(trace_id, 16), int(span_id, 16))


@pytest.mark.parametrize(
    ("spans", "response_id"),
    [
        ([span(**ANSWERED, **R1)], "r1"),
        ([span(**INDEXED, **R1)], "r1"),
        ([span(**AI_SDK, **R1)], "r1"),
        ([span(**AI_SDK, **{"ai.response.id": "r1"})], "r1"),
        ([span(**OPENINFERENCE, **R1)], "r1"),  # a processor that writes both conventions
        (
            [
                span(**ANSWERED, **R1),
                span(span_id=INNER, start=2, **ANSWERED | R2 | {"gen_ai.input.messages": AGAIN, "gen_ai.output.messages": BYE}),
            ],
            "r2",
        ),
        # The last answer has no id, or failed: the one before is not taken for it, unless it is what was said last.
        (
            [
                span(**ANSWERED, **R1),
                span(span_id=INNER, start=2, **ANSWERED | {"gen_ai.input.messages": AGAIN, "gen_ai.output.messages": BYE}),
            ],
            None,
        ),
        ([span(**ANSWERED, **R1), span(span_id=INNER, start=2, **ASKED | R2 | {"gen_ai.input.messages": AGAIN})], "r1"),
        ([span(**ANSWERED)], None),
        ([span(**ANSWERED, **{"gen_ai.response.id": ""})], None),
        ([span(**ANSWERED, **{"gen_ai.response.id": 7})], None),
    ],
)  # fmt: skip
def test_the_response_that_was_judged_is_the_last_of_the_conversation(spans, response_id, exported, rows_of, tmp_path):
    provider, events = exported
    (tmp_path / "spans.json").write_text(json.dumps([{"start_time": 1, **one} for one in spans]), encoding="utf-8")
    (sample,) = read(tmp_path / "spans.json", on_error="raise")
    rows = rows_of(sample_id=sample.id)[:1]
    emit_to_otel(rows, samples=[sample], provider=provider)
    assert [event.attributes.get("gen_ai.response.id") for event in events()] == [response_id]


def test_ids_of_messages_that_are_no_responses_are_not_given_out_as_such(exported, rows_of):
    """LangChain, for one, numbers its own messages."""
    provider, events = exported
    emit_to_otel(
        rows_of()[:1], samples=[sample_of(span(**R1), messages=[AIMessage("Hello", id="run-1")])], provider=provider
    )
    assert "gen_ai.response.id" not in events()[0].attributes


def test_what_was_emitted_is_read_back_as_the_verdict_of_a_judge_or_of_code(exported, coin_flips, tmp_path):
    provider, events = exported
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
    lines = [span(**ANSWERED), *records]
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
    ("path", "trace_id", "span_id", "response_id"),
    [
        ("otel/otel_genai_convention_spans.json", "a1b2c3d4e5f6" * 2 + "a1b2c3d4", "1000000000000001", None),
        ("openinference/smolagents_live_spans.json", "f63de90470d666fccdf71a2b9cb7d089", "93fcaaeb814a0650", None),
        (
            "otel/openai_agents_genai_live_spans.json",
            "9fa516c6d3cd456d5b2bf8349dcfa39b",
            "20e16110c2caf0a9",
            "resp_0199dc379c066a05006a7f4284083087d2a433a4fd4d55aa5b",  # the coordinator's last, in span 6ccbe4bda1df4166
        ),
        (
            "otel/pydantic_ai_live_spans.json",
            "25664b7144ee8f957a50b6ff74dfa337",
            "1009ff1545ad6303",
            "e18a158b-d4d9-4c86-912c-169abedd12cc",  # of the later of two chat spans
        ),
        # Attributes of a span alone: the response is what is left to know it by.
        ("otel/otel_genai_client_span_tool_calls.json", None, None, "chatcmpl-CQF10eCkoFphJZJQkzzN6EkTD0AVF"),
        ("otel/otel_genai_deprecated_client_span_tool_calls.json", None, None, "chatcmpl-CQF10eCkoFphJZJQkzzN6EkTD0AVF"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.filterwarnings("ignore:1 of 1 events belong to no trace")
def test_recordings_of_tracers_are_found_again(
    path, trace_id, span_id, response_id, stored, exported, shared_data, tmp_path
):
    provider, events = exported
    samples = list(read(shared_data / "traces" / path))
    if stored:
        emit_to_otel(run(samples, [MaxMessages(3)], store=tmp_path / "runs.sqlite"), provider=provider)
    else:
        emit_to_otel(run(samples, [MaxMessages(3)]), samples=samples, provider=provider)
    (event,) = events()
    assert (event.trace_id, event.span_id) == (int(trace_id or "0", 16), int(span_id or "0", 16))
    assert event.attributes.get("gen_ai.response.id") == response_id


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

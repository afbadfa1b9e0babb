"""Scores become events of OpenTelemetry, in the traces that were scored."""

import base64
import json

import pytest

from judgekit import AIMessage, Sample, Score, Trace, export, read, run
from judgekit.behavior import MaxMessages
from judgekit.errors import ExportError
from judgekit.score import JudgeCall

HI = '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
HELLO = '[{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]'
TRACE, OTHER, SPAN, INNER = "a" * 32, "b" * 32, "1" * 16, "2" * 16
CHAT = {"gen_ai.operation.name": "chat"}
ASKED = CHAT | {"gen_ai.input.messages": HI}
ANSWERED = ASKED | {"gen_ai.output.messages": HELLO}
AGAIN = json.dumps([*json.loads(HI), *json.loads(HELLO), *json.loads(HI)])
BYE = HELLO.replace("Hello", "Bye")
R1, R2 = {"gen_ai.response.id": "r1"}, {"gen_ai.response.id": "r2"}


SCORES = [Score.scored("tone", 0.5, calls=[JudgeCall(judge="openai/a", prompt="tone@1")])]


def span(trace_id=TRACE, span_id=SPAN, *, parent=None, start=1, **attributes):
    ids = {"trace_id": trace_id, "span_id": span_id, "parent_span_id": parent}
    return {**ids, "name": "chat", "start_time": start, "attributes": attributes}


def sample_of(*spans, messages=()):
    return Sample(id="s1", trace=Trace(id="conv-7", messages=messages, extra={"spans": list(spans)}))


class Event:
    """A log record as the protocol's own types read it."""

    def __init__(self, record) -> None:
        self.trace_id, self.span_id = record.trace_id.hex(), record.span_id.hex()
        self.name, self.time = record.event_name, record.time_unix_nano
        self.attributes = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}


@pytest.fixture
def events(loopback, monkeypatch):
    """What a receiver of OTLP gets, read by the types of the protocol."""
    json_format = pytest.importorskip("google.protobuf.json_format")
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", loopback.url)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", raising=False)

    def read_all():
        found = []
        for path, _, body in loopback.requests:
            assert path == "/v1/logs"
            plain = json.loads(json.dumps(body))
            for record in plain["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
                for name in ("traceId", "spanId"):  # the one place where OTLP differs from the JSON of protobuf
                    record[name] = base64.b64encode(bytes.fromhex(record.get(name, ""))).decode()
            request = json_format.ParseDict(plain, service.ExportLogsServiceRequest())
            (resource,) = request.resource_logs
            assert [(one.key, one.value.string_value) for one in resource.resource.attributes] == [
                ("service.name", "judgekit")
            ]
            found += map(Event, resource.scope_logs[0].log_records)
        return found

    return read_all


def test_each_score_becomes_an_event_and_only_scored_ones_have_a_value(events, run_with):
    made = run_with(trace_id=TRACE)
    assert export(made, to="otel").exported == 4
    tone, f1, goal, panel = events()
    assert {event.name for event in events()} == {"gen_ai.evaluation.result"}
    assert {(event.trace_id, event.span_id) for event in events()} == {(TRACE, "")}
    identity = tone.attributes.pop("judgekit.score_id")
    assert tone.attributes == {
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
    export(made, to="otel")
    again = events()[4]
    assert (again.attributes["judgekit.score_id"], again.time) == (identity, tone.time)


def test_the_names_are_those_of_the_semantic_conventions(events, run_with):
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for value in vars(conventions).values() if isinstance(value, str)}
    sample = sample_of(span(**R1), messages=[AIMessage("Hello", id="r1")])
    export(run_with(sample), to="otel", samples=[sample])
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
    spans, place, events, run_with
):
    sample = sample_of(*spans)
    made = run_with(sample, SCORES[:1])
    if place is None:
        with pytest.warns(UserWarning, match="1 of the exported scores belong to no trace"):
            assert export(made, to="otel", samples=[sample]).exported == 1
    else:
        export(made, to="otel", samples=[sample])
    (event,) = events()
    assert (event.trace_id, event.span_id) == (place or ("", ""))


@pytest.mark.parametrize(
    ("spans", "response_id"),
    [
        ([span(**ANSWERED, **R1)], "r1"),
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
def test_the_response_that_was_judged_is_the_last_of_the_conversation(spans, response_id, events, run_with, tmp_path):
    (tmp_path / "spans.json").write_text(json.dumps([{"start_time": 1, **one} for one in spans]), encoding="utf-8")
    (sample,) = read(tmp_path / "spans.json", on_error="raise")
    export(run_with(sample, SCORES[:1]), to="otel", samples=[sample])
    assert [event.attributes.get("gen_ai.response.id") for event in events()] == [response_id]


def test_ids_of_messages_that_are_no_responses_are_not_given_out_as_such(events, run_with):
    """LangChain, for one, numbers its own messages."""
    sample = sample_of(span(**R1), messages=[AIMessage("Hello", id="run-1")])
    export(run_with(sample, SCORES[:1]), to="otel", samples=[sample])
    assert "gen_ai.response.id" not in events()[0].attributes


def test_what_was_exported_is_read_back_as_the_verdict_of_a_judge_or_of_code(events, loopback, coin_flips, tmp_path):
    export(coin_flips, to="otel", samples=[sample_of(span())])
    lines = [span(**ANSWERED), *(body for _, _, body in loopback.requests)]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (sample,) = read(tmp_path / "spans.jsonl", on_error="raise")
    found = {(label.name, label.source, label.value) for label in sample.trace.labels}
    assert found == {("mine", "judge", 0), ("mine", "judge", 1), ("tool_call_f1", "benchmark", 1)}


def test_samples_of_one_id_in_different_traces_lend_no_event_a_trace(events, run_with):
    with pytest.warns(UserWarning, match="belong to no trace"):
        export(run_with(), to="otel", samples=[sample_of(span()), sample_of(span(OTHER))])
    assert {event.trace_id for event in events()} == {""}


def test_a_receiver_may_reject_a_part_which_is_counted(events, loopback, run_with):
    loopback.answers = [(200, {"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "too old"}})]
    with pytest.warns(UserWarning, match="3 not exported: the receiver rejects them: too old"):
        found = export(run_with(trace_id=TRACE), to="otel")
    assert (found.exported, found.left_out) == (1, {"the receiver rejects them: too old": 3})


def test_headers_are_those_of_the_environment(events, loopback, run_with, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20secret,%20x-team = blue")
    export(run_with(trace_id=TRACE), to="otel")
    ((_, headers, _),) = loopback.requests
    assert headers["api-key"] == "a secret"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
    with pytest.raises(ExportError, match="OTEL_EXPORTER_OTLP_HEADERS: expected name=value"):
        export(run_with(trace_id=TRACE), to="otel")


def test_a_stored_run_knows_the_spans_of_its_conversations(events, tmp_path):
    export(run([sample_of(span())], [MaxMessages(3)], store=tmp_path / "runs.sqlite"), to="otel")
    assert [(event.trace_id, event.span_id) for event in events()] == [(TRACE, SPAN)]


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
@pytest.mark.filterwarnings("ignore:OpenTelemetry.* belong to no trace")
def test_recordings_of_tracers_are_found_again(path, trace_id, span_id, response_id, events, shared_data, tmp_path):
    samples = list(read(shared_data / "traces" / path))
    export(run(samples, [MaxMessages(3)], store=tmp_path / "runs.sqlite"), to="otel")
    (event,) = events()
    assert (event.trace_id, event.span_id) == (trace_id or "", span_id or "")
    assert event.attributes.get("gen_ai.response.id") == response_id

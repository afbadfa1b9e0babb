"""Scores are exported to Langfuse and Phoenix; servers on this machine stand in for theirs."""

import json
from datetime import UTC, datetime

import pytest

from judgekit import HumanMessage, Sample, Score, Trace, aexport, export, read, run
from judgekit.behavior import MaxMessages
from judgekit.errors import AuthenticationError, ConfigError, ExportError
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scoring import run_sync

PUBLIC, SECRET = "pk-lf-public-key", "sk-lf-secret-key"
TRACE, OTHER, ABSENT = "a" * 32, "b" * 32, "c" * 32


@pytest.fixture
def langfuse(loopback, monkeypatch):
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    monkeypatch.setenv("LANGFUSE_BASE_URL", loopback.url)
    loopback.answers = [(202, {"message": "Accepted"})]
    return loopback


@pytest.fixture
def phoenix(loopback, monkeypatch):
    for name in ("PHOENIX_ENDPOINT", "PHOENIX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", f"{loopback.url}/v1/traces")

    def answer(body):
        absent = [one["trace_id"] for one in body["data"] if one["trace_id"] == ABSENT]
        return (404, f"Traces with IDs {', '.join(absent)} do not exist.") if absent else (200, {"data": []})

    loopback.answers = [answer]
    return loopback


def sent(server):
    return [one for _, _, body in server.requests for one in (body if isinstance(body, list) else body["data"])]


@pytest.mark.filterwarnings("ignore:Langfuse")
def test_langfuse_gets_scores_with_a_value_as_its_own_client_would_send_them(langfuse, run_with):
    found = export(run_with(trace_id="any-id"), to="langfuse")
    ((path, headers, (tone,)),) = langfuse.requests
    assert path == "/api/public/scores"
    assert headers["Authorization"].startswith("Basic ")
    assert (found.system, found.exported, found.unscored) == (f"Langfuse at {langfuse.url}", 1, 3)
    identity, time = tone.pop("id"), tone.pop("timestamp")
    assert (len(identity), datetime.fromisoformat(time).tzinfo) == (36, UTC)
    assert tone == {
        "traceId": "any-id",
        "name": "tone",
        "value": 0.5,
        "dataType": "NUMERIC",
        "comment": "It is kind.",
        "metadata": {
            "judgekit.sample_id": "s1",
            "judgekit.status": "scored",
            "judgekit.judged": True,
            "judgekit.judges": "openai/a",
            "judgekit.label": "partly",
            "judgekit.details": {"tp": 1},
            "judgekit.cost_usd": 0.5,
        },
    }


def test_what_cannot_be_sent_is_told(langfuse, run_with):
    with pytest.warns(UserWarning, match="1 not exported: the recording has no trace id"):
        found = export(run_with(scores=[Score.scored("tone", 0.5)]), to="langfuse")
    assert found.left_out == {"the recording has no trace id": 1}
    with pytest.warns(UserWarning, match="3 not exported: skipped, failed and abstained scores have no value"):
        export(run_with(trace_id=TRACE), to="langfuse")
    langfuse.answers = [(207, {"accepted": 0, "rejected": 1, "errors": [{"message": "name too long"}]})]
    with pytest.warns(UserWarning, match="1 not exported: Langfuse rejects them: name too long"):
        found = export(run_with(trace_id=TRACE, scores=[Score.scored("tone", 0.5)]), to="langfuse")
    assert (found.exported, len(langfuse.requests)) == (0, 2)  # what it rejects is not retried


def test_ids_and_times_are_the_same_again_also_in_another_run_of_the_same_file(langfuse, tmp_path):
    naive, others = datetime(2026, 11, 1), {"spans": [7]}  # noqa: DTZ001 - as some recordings have it
    trace = Trace(id=TRACE, messages=[HumanMessage("Hi")], started_at=naive, extra=others)
    path = tmp_path / "samples.jsonl"
    lines = [Sample(id=name, trace=trace).model_dump_json() for name in ("s1", "s2", "s2")]
    path.write_text("\n".join(lines), encoding="utf-8")
    for number in range(2):
        found = run(path, [MaxMessages(3)], store=tmp_path / f"runs{number}.sqlite")
        export(found, to="langfuse")
        export(found, to="langfuse")
    once, *others = ({one["id"]: one["timestamp"] for one in body} for _, _, body in langfuse.requests)
    assert len(once) == 3
    assert {*once.values()} == {"2026-11-01T00:00:00+00:00"}
    assert others == [once] * 3
    export(run(path, [MaxMessages(4)], store=tmp_path / "runs2.sqlite"), to="langfuse")
    assert not once.keys() & {one["id"] for one in langfuse.requests[-1][2]}  # another budget is another scorer


def test_many_scores_are_sent_in_requests_of_limited_size(langfuse, run_of):
    samples = [Sample(id=f"s{at}", trace=Trace(id=f"{at:032x}")) for at in range(250)]
    made = run_of([Score.scored("long", 1, reason="x" * 10_000)] * 250, samples=samples)
    assert export(made, to="langfuse").exported == 250
    assert len({one["traceId"] for one in sent(langfuse)}) == 250
    assert max(len(json.dumps(body)) for _, _, body in langfuse.requests) < 1_000_000


def test_an_overloaded_server_is_asked_again_and_a_refusal_shows_no_secret(langfuse, run_with):
    made = run_with(trace_id=TRACE, scores=[Score.scored("tone", 0.5)])
    langfuse.answers = [(503, "busy"), (202, {})]
    assert export(made, to="langfuse").exported == 1
    assert len(langfuse.requests) == 2
    langfuse.answers = [(503, f"busy with {SECRET}")]
    with pytest.raises(ExportError, match=r"HTTP 503: \"busy with \*\*\*\""):
        export(made, to="langfuse")
    assert len(langfuse.requests) == 4
    langfuse.answers = [(207, [SECRET])]
    with pytest.raises(ExportError, match=r"the response cannot be read$"):
        export(made, to="langfuse")
    langfuse.answers = [(400, f"no {SECRET}")]
    with pytest.raises(ExportError, match=r"/api/public/scores: HTTP 400: \"no \*\*\*\""):
        export(made, to="langfuse")
    langfuse.answers = [(401, f"who is {PUBLIC}?")]
    with pytest.raises(AuthenticationError, match=r"HTTP 401: \"who is \*\*\*\?\""):
        export(made, to="langfuse")


def test_a_key_that_is_missing_and_an_address_that_is_none_are_errors(langfuse, run_with, monkeypatch):
    monkeypatch.setenv("LANGFUSE_BASE_URL", "localhost:3000")
    with pytest.raises(ExportError, match="is no address: expected http://host or https://host"):
        export(run_with(trace_id=TRACE), to="langfuse")
    monkeypatch.setenv("LANGFUSE_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(ExportError, match=r"http://127\.0\.0\.1:9: ConnectError"):
        export(run_with(trace_id=TRACE), to="langfuse")
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with pytest.raises(AuthenticationError, match="set the environment variable LANGFUSE_SECRET_KEY"):
        export(run_with(trace_id=TRACE), to="langfuse")


def test_phoenix_gets_an_annotation_of_each_score_and_those_without_a_value_have_their_status_as_label(
    phoenix, run_with
):
    assert run_sync(lambda: aexport(run_with(trace_id=TRACE.upper()), to="phoenix")).exported == 4
    ((path, headers, _),) = phoenix.requests
    assert (path, "Authorization" in headers) == ("/v1/trace_annotations?sync=true", False)
    told = [(one["name"], one["annotator_kind"], *one["result"].values()) for one in sent(phoenix)]
    assert told == [
        ("tone", "LLM", 0.5, "partly", "It is kind."),
        ("f1", "CODE", None, "skipped", "no reference"),
        ("goal", "LLM", None, "failed", "TruncatedError: cut off"),
        ("panel", "LLM", None, "abstained", "they disagree"),
    ]
    assert {one["trace_id"] for one in sent(phoenix)} == {TRACE}
    assert len({one["identifier"] for one in sent(phoenix)}) == 4


def test_a_trace_that_phoenix_does_not_have_keeps_no_other_score_back(phoenix, run_of, monkeypatch):
    monkeypatch.setenv("PHOENIX_API_KEY", "a-key-of-phoenix")
    ids = (TRACE, ABSENT, OTHER, "conv-7")
    made = run_of(
        [Score.scored("tone", 1)] * 4, samples=[Sample(id=f"s{at}", trace=Trace(id=one)) for at, one in enumerate(ids)]
    )
    with pytest.warns(UserWarning, match="no OpenTelemetry trace id; 1 not exported: Phoenix has no trace of this id"):
        found = export(made, to="phoenix")
    assert (found.exported, sum(found.left_out.values())) == (2, 2)
    assert {headers["Authorization"] for _, headers, _ in phoenix.requests} == {"Bearer a-key-of-phoenix"}
    phoenix.answers = [(404, "Not Found")]
    with pytest.raises(ExportError, match="HTTP 404"):
        export(made, to="phoenix")


def test_a_stored_run_knows_the_traces_of_its_spans_and_samples_of_one_id_lend_each_other_none(phoenix, tmp_path):
    said = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    spans = [
        {"trace_id": trace, "span_id": "1" * 16, "name": "chat", "attributes": {"gen_ai.input.messages": said}}
        for trace in (TRACE, OTHER)
    ]
    (tmp_path / "spans.jsonl").write_text("\n".join(map(json.dumps, spans)))
    stored = run(tmp_path / "spans.jsonl", [MaxMessages(3)], store=tmp_path / "runs.sqlite")
    assert export(stored, to="phoenix").exported == 2
    assert [one["trace_id"] for one in sent(phoenix)] == [TRACE, OTHER]
    alike = [sample.model_copy(update={"id": "same"}) for sample in read(tmp_path / "spans.jsonl")]
    alike = [one.model_copy(update={"trace": one.trace.model_copy(update={"id": "conversation"})}) for one in alike]
    with pytest.warns(UserWarning, match="2 not exported: the recording has no OpenTelemetry trace id"):
        export(run(alike, [MaxMessages(3)]), to="phoenix", samples=alike)


def test_only_runs_and_known_systems_are_exported(run_with):
    with pytest.raises(ConfigError, match="expected a Run, found list: its scores have no ids"):
        export(list(run_with()), to="langfuse")
    with pytest.raises(ConfigError, match="phoenix"):
        export(run_with(), to="fenix")


def test_the_snippet_of_the_documentation_annotates_the_traces_of_a_file(phoenix, snippet, tmp_path, monkeypatch):
    said = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    span = {"trace_id": TRACE, "span_id": "1" * 16, "name": "chat", "start_time": 1}
    (tmp_path / "spans.jsonl").write_text(json.dumps(span | {"attributes": {"gen_ai.input.messages": said}}))
    monkeypatch.chdir(tmp_path)
    assert len(list(read("spans.jsonl"))) == 1
    names = {}
    exec(snippet("Phoenix"), names)  # noqa: S102 - our own documentation
    assert names["found"].exported == 1
    assert [one["trace_id"] for one in sent(phoenix)] == [TRACE]


def test_the_command_says_what_it_did_and_its_exit_code_whether_anything_is_missing(
    langfuse, run_of, tmp_path, monkeypatch, capsys
):
    from judgekit.cli.app import app, load_commands  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    load_commands(["export"])
    scores = [Score.scored("tone", 1), Score.skipped("tone", "no"), Score.scored("tone", 0)]
    for last, code in ((OTHER, 0), (None, 1)):
        ids = (TRACE, TRACE, last)
        samples = [Sample(id=f"s{at}", trace=Trace(id=one)) for at, one in enumerate(ids)]
        run_of(scores, samples=samples, store=DEFAULT_RUNS_PATH)
        with pytest.raises(SystemExit) as ended:
            app(["export", "last", "--to", "langfuse"])
        shown = capsys.readouterr()
        assert ended.value.code == code
        assert f"Langfuse at {langfuse.url}: {'1 score' if code else '2 scores'} exported" in shown.out.replace(
            "\n", " "
        )
        assert ("1 not exported: the recording has no trace id" in shown.err) == bool(code)
        assert "1 not exported: skipped, failed and abstained scores have no value" in shown.err

"""Scores become assessments in MLflow; a server on this machine stands in for the one that keeps them."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from judgekit import AIMessage, HumanMessage, Judge, Panel, PromptScorer, Sample, read, run
from judgekit.errors import ConfigError, OverloadError
from judgekit.integrations.mlflow import log_to_mlflow
from judgekit.judges.scripted import ScriptedClient

pytestmark = pytest.mark.filterwarnings(
    "ignore:label:DeprecationWarning"
)  # older ones use what newer protobuf discourages

KNOWN, GONE, BROKEN = (f"tr-{digit * 32}" for digit in "abc")


class Server(ThreadingHTTPServer):
    """Keeps assessments of one trace, and breaks on another."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if KNOWN in self.path:
            self.server.kept.append(found["assessment"])
            self.answer(200, found)
        elif BROKEN in self.path:
            self.answer(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no"})
        else:
            self.answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "gone"})

    def do_GET(self):
        self.answer(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": "an older server"})

    def answer(self, status, found):
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")  # it asks another server where to send it
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    mlflow = pytest.importorskip("mlflow", reason="mlflow-tracing is not installed")
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        mlflow.set_tracking_uri(f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()


def test_each_score_becomes_an_assessment_and_only_scored_ones_have_a_value(server, rows_of):
    assert log_to_mlflow(rows_of(trace_id=KNOWN)) == 4
    tone, f1, _, panel = server.kept
    assert [one["assessment_name"] for one in server.kept] == ["tone", "f1", "goal", "panel"]
    assert {one["trace_id"] for one in server.kept} == {KNOWN}
    assert [one["feedback"].get("value") for one in server.kept] == [0.5, None, None, None]
    assert [one["feedback"].get("error") for one in server.kept] == [
        None,
        {"error_code": "skipped", "error_message": "no reference"},
        {"error_code": "TruncatedError", "error_message": "TruncatedError: cut off"},
        {"error_code": "abstained", "error_message": "they disagree"},
    ]
    assert (tone["rationale"], f1["rationale"]) == ("It is kind.", "no reference")
    judge, code = (
        {"source_type": "LLM_JUDGE", "source_id": "openai/a"},
        {"source_type": "CODE", "source_id": "judgekit"},
    )
    assert [one["source"] for one in server.kept] == [judge, code, judge, judge]
    assert tone["metadata"] == {
        "judgekit.sample_id": "s1",
        "judgekit.status": "scored",
        "judgekit.label": "partly",
        "judgekit.details": '{"tp": 1}',
        "mlflow.assessment.judgeCost": "0.5",
    }
    assert panel["metadata"] == {"judgekit.sample_id": "s1", "judgekit.status": "abstained"}  # one price is unknown


FITTING = {"reason": "Manners.", "evidence": [], "verdict": "fitting"}
BUSY = OverloadError("busy")


def judge(name, *script, fallback=()) -> Judge:
    return Judge(f"openai/{name}", client=ScriptedClient(script), cache_mode="off", attempts=1, fallback=fallback)


@pytest.mark.parametrize(
    ("scorer", "source_id"),
    [
        (lambda: PromptScorer("tone", judge("a", BUSY, fallback=[judge("b", FITTING)])), "openai/b"),
        (lambda: PromptScorer("tone", judge("a", BUSY, fallback=[judge("b", BUSY, fallback=[judge("c", FITTING)])])), "openai/c"),
        (lambda: PromptScorer("tone", judge("a", "no JSON", FITTING)), "openai/a"),  # asked again, and answered then
        (lambda: PromptScorer("tone", judge("a", BUSY, fallback=[judge("b", BUSY)])), "openai/a, openai/b"),  # nobody
        (lambda: Panel([PromptScorer("tone", judge(name, FITTING)) for name in "abc"]), "openai/a, openai/b, openai/c"),
        (
            lambda: Panel(
                [
                    PromptScorer("tone", judge("a", FITTING)),
                    PromptScorer("tone", judge("b", BUSY)),  # has no vote
                    PromptScorer("tone", judge("c", BUSY, fallback=[judge("d", FITTING)])),
                ],
                quorum=2,
            ),
            "openai/a, openai/d",
        ),
        (lambda: Panel([PromptScorer("tone", judge("a", FITTING)), PromptScorer("tone", judge("b", BUSY))]), "openai/a, openai/b"),
    ],
)  # fmt: skip
def test_the_source_names_the_judges_that_answered_and_not_those_that_failed_before(server, scorer, source_id):
    sample = Sample.of([HumanMessage("Hi"), AIMessage("Hello")], id=KNOWN)
    assert log_to_mlflow(run([sample], [scorer()])) == 1
    assert [one["source"] for one in server.kept] == [{"source_type": "LLM_JUDGE", "source_id": source_id}]


def test_what_was_logged_is_read_back_as_the_verdict_of_a_judge_or_of_code(server, coin_flips, tmp_path):
    assert log_to_mlflow(coin_flips) == 60
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'}
    spans = [{"span_id": "1f", "name": "chat", "attributes": attributes}]
    trace = {"info": {"trace_id": KNOWN, "assessments": server.kept}, "data": {"spans": spans}}
    (tmp_path / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    (sample,) = read(tmp_path / "trace.json", on_error="raise")
    found = {(label.name, label.source, label.value) for label in sample.trace.labels}
    assert found == {("mine", "judge", 0), ("mine", "judge", 1), ("tool_call_f1", "benchmark", 1)}


def test_a_score_whose_trace_mlflow_does_not_have_is_counted_and_told(server, rows_of):
    of = rows_of()[:1]
    rows = [row.model_copy(update={"trace_id": KNOWN}) for row in of]
    rows += [row.model_copy(update={"trace_id": "conv-7", "sample_id": KNOWN}) for row in of]
    rows += [row.model_copy(update={"trace_id": GONE, "sample_id": "gone"}) for row in of]
    rows += [row.model_copy(update={"sample_id": "elsewhere"}) for row in of]
    with pytest.warns(UserWarning, match="2 of 4 scores were not logged: MLflow has no trace .* 'gone', 'elsewhere'"):
        assert log_to_mlflow(rows) == 2
    assert [one["trace_id"] for one in server.kept] == [KNOWN, KNOWN]


def test_what_mlflow_refuses_ends_it_and_says_how_far_it_came(server, rows_of):
    with pytest.raises(Exception, match="INVALID_PARAMETER_VALUE: no") as caught:
        log_to_mlflow([*rows_of(trace_id=KNOWN), *rows_of(trace_id=BROKEN)])
    assert caught.value.__notes__ == ["4 scores were logged before this one"]


def test_the_snippet_of_the_documentation_logs_the_traces_of_a_file(server, snippet, tmp_path, monkeypatch):
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'}
    spans = [{"span_id": "1f", "name": "chat", "attributes": attributes}]
    traces = [{"info": {"trace_id": KNOWN}, "data": {"spans": spans}}]
    (tmp_path / "traces.json").write_text(json.dumps(traces), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    source = snippet("MLflow").replace("http://localhost:5000", f"http://127.0.0.1:{server.server_port}")
    names = {}
    exec(source, names)  # noqa: S102 - our own documentation
    assert names["logged"] == len(server.kept) == 1


def test_without_mlflow_the_extra_is_named(monkeypatch, rows_of):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"pip install 'judgekit\[mlflow\]'"):
        log_to_mlflow(rows_of())

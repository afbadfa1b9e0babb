"""Scores become assessments in MLflow; a server on this machine stands in for the one that keeps them."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from judgekit import AIMessage, HumanMessage, Judge, Panel, PromptScorer, Sample, Score, Trace, export, read, run
from judgekit.errors import ConfigError, ExportError, OverloadError
from judgekit.judges.scripted import ScriptedClient
from judgekit.score import JudgeCall

pytestmark = pytest.mark.filterwarnings(
    "ignore:label:DeprecationWarning"
)  # older ones use what newer protobuf discourages

KNOWN, GONE, BROKEN = (f"tr-{digit * 32}" for digit in "abc")
PAID = JudgeCall(judge="openai/a", prompt="tone@1", cost_usd=0.25)
SCORES = (
    Score.scored("tone", 0.5, label="partly", reason="It is kind.", details={"tp": 1}, calls=[PAID, PAID]),
    Score.skipped("f1", "no reference"),
    Score.failed("goal", "cut off", error="TruncatedError", calls=[PAID]),
    Score.abstained("panel", "they disagree", calls=[PAID]),
)
SECRET = "a-token-of-mlflow"  # noqa: S105 - of a server in this file


class Server(ThreadingHTTPServer):
    """Keeps assessments of one trace, and breaks on another."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if KNOWN in self.path:
            location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
            info = {
                "trace_id": KNOWN,
                "trace_location": location,
                "request_time": "2026-11-24T10:00:00Z",
                "state": "OK",
            }
            self.answer(200, {"trace": {"trace_info": {**info, "assessments": self.server.kept}}})
        else:
            code, status = ("INVALID_PARAMETER_VALUE", 400) if BROKEN in self.path else ("RESOURCE_DOES_NOT_EXIST", 404)
            self.answer(status, {"error_code": code, "message": f"no, with {SECRET}"})

    def do_POST(self):
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found["assessment"]["assessment_id"] = f"a-{len(self.server.kept)}"
        self.server.kept.append(found["assessment"])
        self.answer(200, found)

    def do_DELETE(self):
        gone = self.path.rpartition("/")[2]
        self.server.kept[:] = [one for one in self.server.kept if one["assessment_id"] != gone]
        self.answer(200, {})

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


def test_each_score_becomes_an_assessment_and_only_scored_ones_have_a_value(server, run_with):
    assert export(run_with(trace_id=KNOWN), to="mlflow").exported == 4
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
    assert len({one["metadata"].pop("judgekit.score_id") for one in server.kept}) == 4
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
        (lambda: PromptScorer("tone", judge("a", "no JSON", FITTING)), "openai/a"),  # asked again, and answered then
        (lambda: PromptScorer("tone", judge("a", BUSY, fallback=[judge("b", BUSY)])), "openai/a, openai/b"),  # nobody
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
    ],
)  # fmt: skip
def test_the_source_names_the_judges_that_answered_and_not_those_that_failed_before(server, scorer, source_id):
    sample = Sample.of([HumanMessage("Hi"), AIMessage("Hello")], id=KNOWN)
    assert export(run([sample], [scorer()]), to="mlflow").exported == 1
    assert [one["source"] for one in server.kept] == [{"source_type": "LLM_JUDGE", "source_id": source_id}]


def test_what_was_logged_is_read_back_as_the_verdict_of_a_judge_or_of_code(server, coin_flips, tmp_path):
    assert export(coin_flips, to="mlflow").exported == 60
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'}
    spans = [{"span_id": "1f", "name": "chat", "attributes": attributes}]
    trace = {"info": {"trace_id": KNOWN, "assessments": server.kept}, "data": {"spans": spans}}
    (tmp_path / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    (sample,) = read(tmp_path / "trace.json", on_error="raise")
    found = {(label.name, label.source, label.value) for label in sample.trace.labels}
    assert found == {("mine", "judge", 0), ("mine", "judge", 1), ("tool_call_f1", "benchmark", 1)}


def test_a_second_export_replaces_the_first(server, run_with):
    export(run_with(trace_id=KNOWN, scores=SCORES), to="mlflow")
    changed = run_with(trace_id=KNOWN, scores=[SCORES[0].model_copy(update={"value": 1.0}), *SCORES[1:]])
    assert export(changed, to="mlflow").exported == 4
    assert [(one["assessment_name"], one["feedback"].get("value")) for one in server.kept] == [
        *(("tone", 1.0), ("f1", None), ("goal", None), ("panel", None))
    ]


def test_a_score_whose_trace_mlflow_does_not_have_is_counted_and_told(server, run_of):
    ids = (("s1", KNOWN), (KNOWN, "conv-7"), ("gone", GONE), ("elsewhere", None))
    samples = [Sample(id=sample_id, trace=Trace(id=trace_id)) for sample_id, trace_id in ids]
    made = run_of([SCORES[0]] * 4, samples=samples)
    with pytest.warns(
        UserWarning, match="1 not exported: MLflow has no trace of this id; 1 not exported: the recording"
    ):
        found = export(made, to="mlflow")
    assert (found.exported, found.left_out) == (
        2,
        {"MLflow has no trace of this id": 1, "the recording has no trace id of MLflow": 1},
    )
    assert [one["trace_id"] for one in server.kept] == [KNOWN, KNOWN]


def test_what_mlflow_refuses_ends_it_and_shows_no_secret(server, run_with, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", SECRET)
    with pytest.raises(ExportError, match=r"MLflow at http://127.*INVALID_PARAMETER_VALUE: no, with \*\*\*"):
        export(run_with(trace_id=BROKEN), to="mlflow")


def test_the_snippet_of_the_documentation_logs_the_traces_of_a_file(server, snippet, tmp_path, monkeypatch):
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'}
    spans = [{"span_id": "1f", "name": "chat", "attributes": attributes}]
    traces = [{"info": {"trace_id": KNOWN}, "data": {"spans": spans}}]
    (tmp_path / "traces.json").write_text(json.dumps(traces), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    source = snippet("MLflow").replace("http://localhost:5000", f"http://127.0.0.1:{server.server_port}")
    names = {}
    exec(source, names)  # noqa: S102 - our own documentation
    assert names["found"].exported == len(server.kept) == 1


def test_without_mlflow_the_extra_is_named(monkeypatch, run_with):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"pip install 'mlflow"):
        export(run_with(), to="mlflow")

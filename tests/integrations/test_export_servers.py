"""Scores are exported to real servers and stores, and what is sent to Langfuse is read by its own client's types."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from judgekit import Run, Sample, Score, Trace, export

pytestmark = [pytest.mark.export, pytest.mark.timeout(180)]

TRACE, ABSENT = "a" * 32, "b" * 32
STARTED_WITHIN = 120


@pytest.fixture
def phoenix(tmp_path, monkeypatch) -> Iterator[str]:
    """A server of Phoenix with one trace."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, grpc_port = one.getsockname()[1], other.getsockname()[1]
    settings = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc_port),
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url, log = f"http://127.0.0.1:{port}", tmp_path / "phoenix.log"
    with log.open("w") as file:
        serving = subprocess.Popen(
            [sys.executable, "-m", "phoenix.server.main", "serve"], env=os.environ | settings, stdout=file, stderr=file
        )
    try:
        until(lambda: httpx.get(f"{url}/healthz").is_success, serving, log)
        span = {
            "name": "chat",
            "context": {"trace_id": TRACE, "span_id": "1" * 16},
            "span_kind": "LLM",
            "start_time": "2026-11-24T10:00:00+00:00",
            "end_time": "2026-11-24T10:00:01+00:00",
            "status_code": "OK",
            "attributes": {},
        }
        assert httpx.post(f"{url}/v1/projects/default/spans", json={"data": [span]}).is_success
        until(lambda: httpx.get(f"{url}/v1/projects/default/spans").json()["data"], serving, log)
        monkeypatch.setenv("PHOENIX_ENDPOINT", url)
        yield url
    finally:
        serving.terminate()
        serving.wait(30)


def until(it_is_so, serving: subprocess.Popen, log: Path) -> None:
    for _ in range(STARTED_WITHIN * 5):
        assert serving.poll() is None, log.read_text()
        try:
            if it_is_so():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(log.read_text())


def test_a_phoenix_server_keeps_one_annotation_of_each_score(phoenix, run_with, run_of):
    def kept():
        answer = httpx.get(f"{phoenix}/v1/projects/default/trace_annotations?trace_ids={TRACE}").json()
        parts = ("id", "name", "annotator_kind", "identifier", "result")
        return sorted(([one[part] for part in parts] for one in answer["data"]), key=lambda one: one[1])

    assert export(run_with(trace_id=TRACE), to="phoenix").exported == 4
    before = kept()
    assert [(name, kind, *result.values()) for _, name, kind, _, result in before] == [
        ("f1", "CODE", "skipped", None, "no reference"),
        ("goal", "LLM", "failed", None, "TruncatedError: cut off"),
        ("panel", "LLM", "abstained", None, "they disagree"),
        ("tone", "LLM", "partly", 0.5, "It is kind."),
    ]
    export(run_with(trace_id=TRACE), to="phoenix")
    assert kept() == before
    samples = [Sample(id=f"s{at}", trace=Trace(id=one)) for at, one in enumerate((TRACE, ABSENT))]
    with pytest.warns(UserWarning, match="1 not exported: Phoenix has no trace of this id"):
        assert export(run_of([Score.scored("new", 1)] * 2, samples=samples), to="phoenix").exported == 1
    assert len(kept()) == 5


@pytest.mark.filterwarnings("ignore")  # what MLflow and SQLAlchemy discourage in each other
def test_a_store_of_mlflow_keeps_one_assessment_of_each_score(tmp_path, run_with, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("test", artifact_location=str(tmp_path / "artifacts")))
    with mlflow.start_span("chat") as span:
        span.set_inputs("Hi")
    trace_id = span.trace_id
    mlflow.flush_trace_async_logging()

    def kept():
        found = mlflow.tracing.client.TracingClient().get_trace_info(trace_id).assessments
        return sorted((one.name, one.feedback.value, one.rationale, one.assessment_id) for one in found)

    def made(value: float) -> Run:
        return run_with(
            trace_id=trace_id, scores=[Score.scored("tone", value, reason="So."), Score.skipped("f1", "no")]
        )

    assert export(made(0.5), to="mlflow").exported == 2
    before = kept()
    assert [one[:3] for one in before] == [("f1", None, "no"), ("tone", 0.5, "So.")]
    assert export(made(1), to="mlflow").exported == 2
    assert [one[:3] for one in kept()] == [("f1", None, "no"), ("tone", 1.0, "So.")]
    with pytest.warns(UserWarning, match="MLflow has no trace of this id"):
        export(run_with(trace_id="tr-" + "b" * 32), to="mlflow")


@pytest.mark.filterwarnings("ignore:Langfuse .* have no value")
def test_what_langfuse_gets_has_the_form_of_its_own_client(loopback, run_with, monkeypatch):
    types = pytest.importorskip("langfuse.api.scores.types")
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-public-key")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-secret-key")
    monkeypatch.setenv("LANGFUSE_BASE_URL", loopback.url)
    loopback.answers = [(202, types.CreateScoreBatchResponse().dict())]
    export(run_with(trace_id=TRACE), to="langfuse")
    ((_, _, (body,)),) = loopback.requests
    parse_obj_as = pytest.importorskip("langfuse.api.core.pydantic_utilities").parse_obj_as
    request = parse_obj_as(types.CreateScoreRequest, body)
    assert not request.model_extra
    assert (request.trace_id, request.name, request.value, request.data_type) == (TRACE, "tone", 0.5, "NUMERIC")
    assert (request.timestamp.tzinfo is not None, request.metadata["judgekit.judged"]) == (True, True)
    loopback.answers = [(207, types.CreateScoreBatchResults(accepted=0, rejected=1, errors=[{"message": "no"}]).dict())]
    with pytest.warns(UserWarning, match="1 not exported: Langfuse rejects them: no"):
        export(run_with(trace_id=TRACE), to="langfuse")

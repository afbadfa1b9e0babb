"""Rows as Parquet."""

import io

import pytest

from judgekit.reports import parquet
from judgekit.score import JudgeCall, Score
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")


def test_columns_have_types_and_what_is_missing_is_null(run_of, monkeypatch):
    monkeypatch.setattr(parquet, "_AT_ONCE", 2)
    call = JudgeCall(judge="j", prompt="p", model="m-1", system_fingerprint="fp", cost_usd=0.5)
    scores = [
        Score.scored("f1", 0.25, label="bad", reason="é\0\n", calls=[call]),
        Score.skipped("f1", "x"),
        Score.failed("f1", "y", error="E"),
    ]
    samples = [
        Sample(id=str(number), trace=Trace(labels=[Label(name="right", value=number == 1)]), group="g")
        for number in range(3)
    ]
    file = io.BytesIO()
    parquet.write_parquet(run_of(scores, samples=samples), file)
    written = pq.ParquetFile(file)
    assert written.num_row_groups == 2
    table = written.read()
    assert {field.name: str(field.type) for field in table.schema} == {
        **dict.fromkeys(("index", "tokens"), "int64"),
        **dict.fromkeys(("value", "confidence", "requests", "cached", "cost_usd"), "double"),
        **dict.fromkeys(("sample_id", "trace_id", "group", "domain", "scorer", "status"), "string"),
        **dict.fromkeys(("label", "reason", "error", "warnings", "judge_models", "system_fingerprints"), "string"),
        "labels.right": "bool",
    }
    first, second, third = table.to_pylist()
    assert (first["value"], first["cost_usd"], first["reason"], first["labels.right"]) == (0.25, 0.5, "é\0\n", False)
    assert (first["judge_models"], first["system_fingerprints"], second["judge_models"]) == ("m-1", "fp", None)
    assert (second["value"], second["status"], second["domain"]) == (None, "skipped", None)
    assert second["labels.right"] is True
    assert (third["value"], third["error"], third["index"], third["tokens"]) == (None, "E", 2, 0)


def test_a_run_without_scores_is_a_table_without_lines(run_of):
    run = run_of([Score.scored("f1", 1)])
    run.store._db.execute("DELETE FROM scores")
    file = io.BytesIO()
    parquet.write_parquet(run, file)
    assert pq.read_table(file).shape == (0, 19)

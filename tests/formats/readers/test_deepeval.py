import json
from pathlib import Path
from typing import NamedTuple

import pytest

import judgekit
from judgekit.errors import TraceError
from judgekit.formats.columns import Columns
from judgekit.formats.detect import detect
from judgekit.formats.files import File
from judgekit.formats.readers.deepeval import DeepevalReader
from judgekit.formats.tables import csv_rows
from judgekit.traces.message import AIMessage, ReasoningPart

READER = DeepevalReader()
DATA = Path(__file__).parent / "data" / "deepeval"
NO_TURNS = "has no turns; a scenario alone is for deepeval's simulator, which writes them"


class Count(NamedTuple):
    """What a file holds, counted by hand: samples, messages, calls, references, expected calls, documents, labels, and
    conversations that nobody had yet."""

    samples: int
    messages: int
    calls: int
    references: int
    expected_calls: int
    documents: int
    labels: dict[str, int]
    empty: int = 0


OWN = {
    # a question, two calls, one of which has a result, an answer; and a question without an answer
    "goldens.json": Count(2, 6, 2, 2, 1, 2, {}),
    "goldens.jsonl": Count(2, 6, 2, 2, 1, 3, {}),  # "FAQ | shipping" is split, as by deepeval
    "goldens.csv": Count(2, 6, 2, 2, 1, 3, {}),
    "conversations.json": Count(1, 6, 1, 1, 0, 1, {}, 1),
    "conversations.jsonl": Count(1, 6, 1, 1, 0, 1, {}, 1),
    "conversations.csv": Count(1, 6, 1, 1, 0, 1, {}, 1),
    "run.json": Count(2, 6, 1, 2, 1, 1, {"benchmark": 2, "judge": 4}),
    "conversation_run.json": Count(1, 6, 1, 1, 0, 1, {"judge": 2}),
    "result.json": Count(2, 4, 0, 2, 0, 1, {"benchmark": 2, "judge": 4}),  # it has no tools
    "conversation_result.json": Count(1, 6, 1, 0, 0, 1, {"judge": 2}),
}


def counted(path):
    errors: list[TraceError] = []
    samples = list(judgekit.read(path, on_error=errors.append))
    assert {error.problem for error in errors} <= {NO_TURNS}
    labels = [label.source for sample in samples for label in sample.trace.labels]
    return Count(
        len(samples),
        sum(len(sample.trace.messages) for sample in samples),
        sum(len(sample.trace.tool_calls()) for sample in samples),
        sum(len(sample.all_references) for sample in samples),
        sum(len(sample.reference_tool_calls or ()) for sample in samples),
        sum(len(sample.documents or ()) for sample in samples),
        {source: labels.count(source) for source in sorted(set(labels))},
        len(errors),
    )


def document_of(path):
    """Return a file without the goldens that are refused."""
    if path.suffix == ".csv":
        records = [row.value for row in csv_rows(File.locate(path), Columns())]
    else:
        text = path.read_text(encoding="utf-8")
        records = json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))
    return records[:1] if isinstance(records, list) else records


def sample(record):
    assert detect(record).name == "deepeval"
    (case,) = READER.records(record)
    return READER.sample(case, 0)


def told(case):
    return [
        (one.role, one.text, [(c.name, c.args) for c in getattr(one, "tool_calls", ())]) for one in case.trace.messages
    ]


def warned(case):
    return {warning.path: warning.message for warning in case.trace.warnings}


CASE = {"input": "Hi", "actual_output": "Hello"}


@pytest.mark.parametrize("kind", ["goldens", "conversations"])
def test_three_files_of_the_same_goldens_say_the_same(kind):
    whole, *others = [
        list(judgekit.read(DATA / f"{kind}.{end}", on_error=lambda _: None)) for end in ("json", "jsonl", "csv")
    ]
    for samples in others:
        for golden, other in zip(whole, samples, strict=True):
            assert told(other) == told(golden)
            assert (other.id, other.group, other.reference, other.metadata) == (
                golden.id,
                golden.group,
                golden.reference,
                golden.metadata,
            )
            assert other.reference_tool_calls == golden.reference_tool_calls
    assert (whole[0].id, whole[0].group, whole[0].fields["context"]) == ("order", "order", ["Order 7 left on Monday."])


def test_calls_come_before_the_answer_with_their_results_and_reasoning():
    case = sample(
        {
            "input": "Hi",
            "actualOutput": "Hello",
            "toolsCalled": [
                {"name": "f", "input_parameters": {"a": 1}, "reasoning": "Why not.", "description": "A tool."},
                {"name": "f", "inputParameters": {"a": 2}, "output": False},
            ],
        }
    )
    assert told(case) == [
        ("user", "Hi", []),
        ("assistant", "", [("f", {"a": 1})]),
        ("assistant", "", [("f", {"a": 2})]),
        ("tool", "false", []),
        ("assistant", "Hello", []),
    ]
    assert case.trace.messages[1].content == (ReasoningPart("Why not."),)
    assert case.trace.messages[1].tool_calls[0].extra == {"description": "A tool."}
    assert not warned(case)


def test_an_expected_tool_without_parameters_is_expected_by_name():
    tools = [{"name": "f", "inputParameters": {}}, {"name": "g"}]
    case = sample({**CASE, "expected_tools": tools})
    assert [(call.name, call.compare_args) for call in case.reference_tool_calls] == [("f", None), ("g", ())]
    assert sample({**CASE, "expected_tools": []}).reference_tool_calls == ()
    assert sample(CASE).reference_tool_calls is None


def test_retrieved_documents_go_before_the_context():
    assert sample({**CASE, "context": ["c"]}).documents == ("c",)
    both = sample({**CASE, "context": ["c"], "retrieval_context": ["d", {"source": "s", "context": "e"}]})
    assert (both.documents, both.fields["context"]) == (("d", "e"), ["c"])
    assert both.trace.extra["retrieval_context"] == ["d", {"source": "s", "context": "e"}]
    assert "sources" in warned(both)["retrieval_context"]
    joined = sample({**CASE, "retrieval_context": "deepeval_source=a,deepeval_context=x, y|z"})
    assert joined.documents == ("x, y", "z")
    assert "split as deepeval does" in joined.trace.warnings[0].message
    turns = [{"role": role, "content": "x", "retrieval_context": [role, "d"]} for role in ("user", "assistant")]
    assert sample({"scenario": "s", "turns": turns}).documents == ("user", "d", "assistant")


def test_turns_with_mcp_tools_and_users():
    mcp = [{"name": "f", "args": {"a": 1}, "result": {"content": [], "isError": True}}]
    turns = [
        {"role": "user", "content": "Hi", "user_id": "ann"},
        {"role": "assistant", "content": "Hello", "mcp_tools_called": mcp, "metadata": {"tone": "kind"}},
    ]
    case = sample({"scenario": "s", "turns": turns, "expected_outcome": "greeted", "persona": {"name": "Ann"}})
    assert told(case)[1:] == [
        ("assistant", "", [("f", {"a": 1})]),
        ("tool", '{"content": [], "isError": true}', []),
        ("assistant", "Hello", []),
    ]
    assert case.trace.call_errors() == (True,)
    assert (case.trace.messages[0].name, case.trace.messages[-1].extra) == ("ann", {"metadata": {"tone": "kind"}})
    assert (case.reference, case.fields) == ("greeted", {"scenario": "s", "persona": {"name": "Ann"}})


@pytest.mark.parametrize("turns", [None, []])
def test_a_scenario_without_turns_is_refused(turns):
    with pytest.raises(TraceError, match="has no turns"):
        sample({"scenario": "s", "turns": turns, "expected_outcome": "o"})


@pytest.mark.parametrize(
    ("turn", "problem"),
    [({"role": "tool", "content": "x"}, "one of user, assistant"), ({"role": "user", "content": 1}, "a string")],
)
def test_turns_that_cannot_be_read_are_refused(turn, problem):
    with pytest.raises(TraceError, match=problem):
        sample({"scenario": "s", "turns": [turn]})


def run_of(*metrics, **case):
    return {
        "testCases": [
            {"name": "test_case_0", "input": "Hi", "actualOutput": "Hello", "metricsData": list(metrics), **case}
        ]
    }


def test_metrics_with_a_model_are_labels_of_a_judge():
    case = sample(
        run_of(
            {"name": "Answer Relevancy", "score": 0.5, "reason": "so", "evaluationModel": "gpt", "threshold": 0.7},
            {"name": "Exact Match", "score": 1},
            {"name": "Custom", "success": True},
            success=True,
        )
    )
    labels = [(label.name, label.value, label.source, label.annotator, label.reason) for label in case.trace.labels]
    assert labels == [
        ("Answer Relevancy", 0.5, "judge", "gpt", "so"),
        ("Exact Match", 1, "benchmark", None, None),
        ("Custom", True, "benchmark", None, None),
        ("success", True, "judge", None, None),
    ]
    assert case.trace.extra["metricsData"][0] == {"threshold": 0.7}
    assert (case.id, case.group) == ("test_case_0", None)  # nobody gave it this name


def test_a_metric_that_failed_gives_no_label():
    failed = {"name": "Bias", "score": None, "success": False, "error": "no key", "evaluationModel": "gpt"}
    case = sample(run_of(failed, {"name": "Exact Match", "score": 1}, success=False))
    assert [label.name for label in case.trace.labels] == ["Exact Match"]
    assert warned(case)["metricsData[0].error"] == "the metric failed: 'no key'; no label"


def test_a_tested_case_without_an_answer_is_named():
    case = sample(run_of(actualOutput=None))
    assert not any(isinstance(message, AIMessage) for message in case.trace.messages)
    assert warned(case)["actualOutput"] == "contains no answer"
    assert not warned(sample({"input": "Hi", "actual_output": None}))


def test_facts_of_a_run_and_a_case():
    run = run_of(tokenCost=0.5, inputTokenCount=3, completionTime=1.5, metadata={"team": "a"})
    case = sample(
        {"testRunData": {**run, "hyperparameters": {"model": "m", "prompt": {}}, "metricsScores": [{"scores": [1]}]}}
    )
    assert case.metadata == {"agent": {"model": "m"}, "team": "a"}
    assert (case.trace.cost_usd, case.trace.usage.input_tokens, case.trace.usage.output_tokens) == (0.5, 3, None)
    assert case.trace.extra["completionTime"] == 1.5
    assert "metricsScores" in warned(case)


def test_results_of_evaluate_are_read():
    result = {"name": "a", "success": True, "input": "Hi", "actual_output": "Hello", "conversational": False}
    metrics = [{"name": "Bias", "score": 0.0, "evaluation_model": "gpt"}]
    case = sample({"test_results": [{**result, "metrics_data": metrics}], "confident_link": None})
    assert [(label.name, label.value, label.annotator) for label in case.trace.labels] == [
        ("Bias", 0.0, "gpt"),
        ("success", True, None),
    ]
    assert (case.id, case.group) == ("a", "a")


def test_spans_and_images_are_named():
    case = sample(run_of(trace={"uuid": "t", "toolSpans": [{}]}, imagesMapping={"a": {"url": "u"}}))
    assert warned(case) == {
        "trace": "spans are not read, kept as is",
        "imagesMapping": "images are not read, kept as is",
    }


def test_columns_renamed_to_ours_are_read_as_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(CASE))
    [row] = judgekit.read(path, columns={"actual_output": "response"}, on_error="raise")
    assert row.trace.source.format == "rows"


def test_an_input_that_is_not_text_is_refused():
    with pytest.raises(TraceError, match="input: expected a string, found 1"):
        READER.sample({"input": 1, "actual_output": "a"}, 0)


def test_files_of_deepeval_are_read_whole(intact):
    for name, counts in OWN.items():
        assert counted(DATA / name) == counts
        intact(READER, document_of(DATA / name))

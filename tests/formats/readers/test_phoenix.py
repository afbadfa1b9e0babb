import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.phoenix import PhoenixReader

READER = PhoenixReader()
NOTE = {"name": "correct", "annotator_kind": "LLM", "label": "yes", "score": 1.0, "explanation": "same number"}
RUN = {
    "example_id": "e1",
    "repetition_number": 2,
    "input": {"question": "2+2?", "lang": "en"},
    "reference_output": {"answer": "4"},
    "output": "4",
    "error": None,
    "latency_ms": 10.0,
    "start_time": "2026-11-20T10:00:00Z",
    "end_time": "2026-11-20T10:00:01Z",
    "trace_id": None,
    "prompt_token_count": 5,
    "completion_token_count": 1,
    "annotations": [
        NOTE,
        {"name": "exact", "annotator_kind": "CODE", "score": 0.0, "metadata": {"by": "f"}},
        {"name": "kind", "annotator_kind": "HUMAN", "label": "kind", "score": None, "user_id": "ann"},
        {"name": "broken", "annotator_kind": "LLM", "error": "timeout"},
    ],
}
EXAMPLES = {
    "data": {
        "dataset_id": "d",
        "version_id": "v",
        "filtered_splits": ["test"],
        "examples": [
            {"id": f"e{at}", "node_id": "n", "input": {"q": "2+2?"}, "output": {"answer": "4"}, "metadata": {"at": at}}
            for at in (1, 2)
        ],
    }
}


def read(document):
    return [READER.sample(record, at) for at, record in enumerate(READER.records(document))]


def warnings(sample):
    return [(one.message, one.path) for one in sample.trace.warnings]


ONE = "an object with one string, read as that string"


def test_a_run_is_a_sample_of_the_group_of_its_example():
    [sample] = read([RUN])
    assert (sample.id, sample.group, sample.reference) == ("e1#2", "e1", "4")
    assert [message.text for message in sample.trace.messages] == ["2+2?", "4"]
    assert sample.fields == {"question": "2+2?", "lang": "en"}
    assert {(one.name, one.value, one.source, one.annotator, one.reason) for one in sample.trace.labels} == {
        ("correct", 1.0, "judge", None, "same number"),
        ("exact", 0.0, "benchmark", None, None),
        ("kind", "kind", "human", "ann", None),
    }
    assert (sample.trace.usage.input_tokens, sample.trace.usage.output_tokens) == (5, 1)
    assert (sample.trace.ended_at - sample.trace.started_at).total_seconds() == 1
    assert sample.trace.metadata["annotations"] == RUN["annotations"]
    assert warnings(sample) == [(ONE, "reference_output")]


def test_outputs_of_any_type_are_read_and_errors_told():
    cases = [
        (None, None, ["q"], [("contains no answer", "output")]),
        (None, "timeout", ["q"], [("contains no answer: 'timeout'", "error")]),
        ("a", "late", ["q", "a"], [("ended with an error: 'late'", "error")]),
        (4, None, ["q", "4"], []),
        ([1], None, ["q", "[1]"], [("neither a string nor messages, read as its JSON text", "output")]),
        ({"role": "assistant", "content": "a"}, None, ["q", "a"], []),
        ("", None, ["q", ""], []),
    ]
    for answer, error, texts, told in cases:
        [sample] = read([{**RUN, "input": {"q": "q"}, "reference_output": None, "output": answer, "error": error}])
        assert [message.text for message in sample.trace.messages] == texts
        assert (warnings(sample), sample.reference) == (told, None)


def test_a_run_without_input_and_output_is_refused():
    with pytest.raises(TraceError, match="contains neither an input nor an output"):
        read([{**RUN, "input": None, "output": None}])


def test_runs_without_their_examples_are_refused_with_what_to_export():
    run = {"id": "r", "dataset_example_id": "e1", "repetition_number": 1, "output": "4", "experiment_id": "x"}
    assert detect([run]).name == "phoenix"
    with pytest.raises(TraceError, match="without its example; export both: curl PHOENIX/v1/experiments/ID/json"):
        read([run])


def test_examples_are_questions_with_references_that_nobody_answered():
    assert detect(EXAMPLES).name == "phoenix"
    first, second = read(EXAMPLES)
    assert [message.text for message in first.trace.messages] == ["2+2?"]
    assert (first.id, second.id, first.reference) == ("e1", "e2", "4")
    assert second.trace.metadata == {"at": 2}
    assert first.trace.extra["dataset"] == {"dataset_id": "d", "version_id": "v", "filtered_splits": ["test"]}
    assert warnings(first)[1] == ("an example of a dataset, with an expected answer but none of an agent", None)
    [alone] = read(EXAMPLES["data"]["examples"][0])
    assert alone.id == "e1"


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, [RUN], EXAMPLES)

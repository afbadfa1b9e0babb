import json
from pathlib import Path

import pytest

import judgekit
from judgekit.formats.detect import detect
from judgekit.formats.readers.openai_evals_export import OpenAIEvalsExportReader
from judgekit.traces.message import AIMessage

READER = OpenAIEvalsExportReader()
EXPORT = Path(__file__).parent / "data" / "promptfoo" / "openai_export.jsonl"


def result(**row):
    return {
        "run_id": "evalrun_1",
        "data_source_idx": 3,
        "item": {"question": "2+2?", "ideal": "4"},
        "sample": {"outputs": [{"content": "4"}]},
        "grades": {"judge": 0.5},
        **row,
    }


def sample(record):
    assert detect(record).name == "openai-evals-export"
    (one,) = READER.records(record)
    return READER.sample(one, 0)


def told(made):
    return [
        (one.role, one.text, [(c.name, c.args) for c in getattr(one, "tool_calls", ())]) for one in made.trace.messages
    ]


def labels(made):
    return {one.name: (one.value, one.source, one.annotator, one.reason) for one in made.trace.labels}


def warned(made):
    return {one.path: one.message for one in made.trace.warnings}


def test_an_export_is_read_whole(forgotten, crashes):
    answered, failed = judgekit.read(EXPORT, on_error="raise")
    assert told(answered) == [("user", "2+2?", []), ("assistant", "4", [])]
    assert labels(answered) == {
        "is right": (1, "unknown", None, None),
        "judge": (0.5, "judge", "gpt-5", '{"label": "bad"}'),
    }
    assert (answered.id, answered.group, answered.reference) == ("evalrun_1 0", "item 0", "4")
    assert (answered.fields, answered.metadata) == ({"input": "2+2?", "expected": "4"}, {"agent": "evalrun_1"})
    assert (answered.trace.usage.input_tokens, answered.trace.usage.cached_tokens) == (10, 3)
    assert not warned(answered)
    assert told(failed) == [("user", "3+3?", [])]
    assert (failed.trace.termination, labels(failed)) == ("error: rate limit", {})
    assert warned(failed)["sample"] == "contains no answer: {'message': 'rate limit'}"
    document = list(map(json.loads, EXPORT.read_text().splitlines()))
    assert forgotten(READER, document) == []
    assert crashes(READER, document) == []


def test_promptfoo_reads_the_same_from_it():
    imported = judgekit.read(EXPORT.with_name("openai_import.json"), on_error="raise")
    for theirs, ours in zip(imported, judgekit.read(EXPORT), strict=True):
        assert (told(theirs), theirs.fields, theirs.trace.termination) == (
            told(ours),
            ours.fields,
            ours.trace.termination,
        )
        found = labels(theirs)
        assert {name: found[name][:3] for name in labels(ours)} == {name: one[:3] for name, one in labels(ours).items()}


def test_requests_and_calls_of_a_sample():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    outputs = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    made = sample(result(sample={"input": messages, "outputs": outputs, "model": "gpt-5"}))
    assert told(made) == [("system", "s", []), ("user", "u", []), ("assistant", "", [("f", {"a": 1})])]
    assert made.trace.messages[-1].model == "gpt-5"


def test_an_item_without_a_question_and_a_result_without_an_answer_are_named():
    made = sample(result(item={"a": 1, "b": 2}, sample=None))
    assert not any(isinstance(one, AIMessage) for one in made.trace.messages)
    assert warned(made)["sample"] == "contains no answer"
    assert "no user message" in warned(made)[None]
    cut = sample(result(sample={"outputs": [{"content": "4"}], "error": "cut"}))
    assert (cut.trace.response, warned(cut)["sample"]) == ("4", "ended with an error: 'cut'")
    assert cut.trace.termination == "error: cut"


def test_a_grader_without_a_grade_passes_or_fails():
    made = sample(result(grades={"a": "x"}, passes={"a": True, "b": False}))
    assert labels(made) == {"b": (False, "unknown", None, None)}
    assert "expected a finite number" in warned(made)["grades.a"]


@pytest.mark.parametrize(("item", "reference"), [({"q": "x", "ideal": 4}, "4"), ({"ideal": "a", "target": "b"}, None)])
def test_the_one_column_with_an_expected_answer_is_the_reference(item, reference):
    assert sample(result(item=item)).reference == reference

import json

import pytest
from openai.types.evals import run_retrieve_response
from openai.types.evals.runs import output_item_list_response

from judgekit import read
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.openai_evals import OpenAIEvalsReader

READER = OpenAIEvalsReader()
UUID = "a2486074-d803-4445-b431-ad2262e85d47"


def output_item(**fields):
    """Return an output item as the API lists it."""
    sample = {
        "error": None,
        "finish_reason": "stop",
        "input": [{"role": "developer", "content": "Classify."}, {"role": "user", "content": "It is late"}],
        "max_completion_tokens": 2048,
        "model": "gpt-4.1-mini",
        "output": [{"role": "assistant", "content": "shipping"}],
        "seed": 42,
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {"cached_tokens": 1, "completion_tokens": 3, "prompt_tokens": 30, "total_tokens": 33},
    }
    return {
        "id": "outputitem_1",
        "created_at": 1,
        "datasource_item": {"ticket": "It is late", "correct_label": "shipping"},
        "datasource_item_id": 4,
        "eval_id": "eval_1",
        "object": "eval.run.output_item",
        "results": [],
        "run_id": "evalrun_1",
        "status": "pass",
        **fields,
        "sample": sample | fields.get("sample", {}),
    }


def result(name, score, **fields):
    return {"name": f"{name}-{UUID}", "passed": score > 0.5, "score": score, **fields}


def made(record, index=0):
    [record] = READER.records(record)
    return READER.sample(record, index)


def warned(sample):
    return {warning.path: warning.message for warning in sample.trace.warnings}


def test_an_output_item_is_a_conversation_with_its_grades():
    judged = {"output": [{"role": "assistant", "content": '{"result":"polite"}'}], "model": "gpt-4o"}
    results = [result("Match", 1.0, type="string_check"), result("tone", 0.0, type="label_model", sample=judged)]
    sample = made(output_item(results=results))
    assert (sample.id, sample.trace.id, sample.group) == ("outputitem_1", "outputitem_1", "eval_1 4")
    assert [(one.role, one.text) for one in sample.trace.messages] == [
        ("developer", "Classify."),
        ("user", "It is late"),
        ("assistant", "shipping"),
    ]
    answer = sample.trace.messages[-1]
    assert (answer.model, answer.finish_reason) == ("gpt-4.1-mini", "stop")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cached_tokens) == (30, 3, 1)
    assert sample.fields == {"ticket": "It is late", "correct_label": "shipping"}
    assert sample.trace.metadata == {"eval_id": "eval_1", "run_id": "evalrun_1"}
    assert [(one.name, one.value, one.source, one.annotator, one.reason) for one in sample.trace.labels] == [
        ("Match", 1.0, "benchmark", None, None),
        ("tone", 0.0, "judge", "gpt-4o", '{"result":"polite"}'),
    ]
    assert sample.trace.warnings == ()


def test_samples_can_be_named_after_their_items_to_compare_runs(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(output_item()))
    [sample] = read(path, columns={"id": "output_id", "datasource_item_id": "id"}, on_error="raise")
    assert (sample.id, sample.trace.extra["output_id"]) == ("4", "outputitem_1")
    assert sample.trace.warnings == ()


def test_the_record_of_the_openai_package_is_read_whole(forgotten):
    """The package's own types accept the record, so it has the fields that the API lists."""
    graded = {"input": [{"role": "user", "content": "Polite?"}], "output": [{"content": '{"result":"yes"}'}]}
    record = output_item(
        results=[result("tone", 1.0, type="label_model", sample=graded)],
        sample={"error": {"code": "server_error", "message": "It broke"}, "output": []},
    )
    checked = output_item_list_response.OutputItemListResponse.model_validate(record)
    assert json.loads(checked.model_dump_json(exclude_unset=True)) == record
    assert forgotten(READER, record) == []
    sample = made(record)
    assert warned(sample) == {
        "sample.error": "the request to the model failed: server_error: It broke",
        "sample.output": "contains no answer",
        "results": "the messages to graders are kept in extra",
    }
    assert sample.trace.termination == "error: server_error: It broke"
    assert sample.trace.response is None


def test_an_answer_without_content_is_no_answer():
    sample = made(output_item(sample={"output": [{"role": "assistant", "content": None}], "finish_reason": "length"}))
    assert sample.trace.response is None
    assert warned(sample) == {"sample.output": "contains no answer"}
    sample = made(output_item(sample={"output": [{"role": "assistant", "content": ""}], "finish_reason": "length"}))
    assert sample.trace.response == ""
    assert warned(sample) == {"sample.output": "the answer is empty; it ended with length"}


def test_what_is_known_of_a_request_without_an_answer_is_kept(forgotten):
    usage = {"prompt_tokens": 7, "completion_tokens": 0, "cached_tokens": 0, "total_tokens": 7}
    held = {"model": "m", "usage": usage, "finish_reason": "length"}
    for record in ({"item": {"a": 1}, "sample": held}, {"item": {"input": "q"}, "sample": held | {"output": []}}):
        assert made(record).trace.extra["sample"]["model"] == "m"
        assert forgotten(READER, record) == []


def test_an_answer_may_lack_its_role_and_hold_calls():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    sample = made(output_item(sample={"output": [{"content": None, "tool_calls": [call]}]}))
    assert [(one.call.name, one.call.args) for one in sample.trace.tool_calls()] == [("f", {"a": 1})]
    assert made(output_item(sample={"output": [{"content": "hi"}]})).trace.response == "hi"


def test_graders_of_one_name_keep_their_ids():
    second = {"name": "tone-b2486074-d803-4445-b431-ad2262e85d47", "passed": False, "score": 0.0}
    sample = made(output_item(results=[result("tone", 1.0), second]))
    assert [label.name for label in sample.trace.labels] == [f"tone-{UUID}", second["name"]]


def test_a_grade_without_a_number_is_whether_it_passed_or_nothing():
    results = [{"name": "a", "passed": True}, {"name": "b", "score": None, "reason": "timeout"}]
    sample = made(output_item(results=results))
    assert [(label.name, label.value) for label in sample.trace.labels] == [("a", True)]
    assert warned(sample) == {"results[1]": "the grader gave no score"}


def test_the_source_of_a_grade_is_that_of_its_grader():
    kinds = {
        "label_model": "judge",
        "score-model-grader": "judge",
        "string-check-grader": "benchmark",
        "text_similarity": "benchmark",
        "python": "benchmark",
        "azure_ai_evaluator": "unknown",
        "": "unknown",
    }
    results = [{"name": f"g{at}", "score": 1.0, "type": kind} for at, kind in enumerate(kinds)]
    sample = made(output_item(results=[*results, {"name": "g", "score": 1.0, "sample": {}}]))
    assert [label.source for label in sample.trace.labels] == [*kinds.values(), "judge"]


def test_items_of_other_servers_hold_the_answer_beside_the_columns():
    item = {"query": "Rain?", "sample.output_text": "Yes."}
    results = [{"name": "Quality", "score": 0.8, "type": "azure_ai_evaluator", "reason": "It answers."}]
    sample = made({**output_item(datasource_item=item, results=results), "sample": {"model": "m"}})
    assert sample.trace.response == "Yes."
    assert [label.reason for label in sample.trace.labels] == ["It answers."]


@pytest.mark.parametrize("name", ["reference", "ground_truth", "reference_answer", "ideal", "expected_output"])
def test_a_column_with_the_expected_output_is_the_reference(name):
    sample = made(output_item(datasource_item={"question": "2+2?", name: "4"}))
    assert (sample.reference, sample.fields[name]) == ("4", "4")
    assert made({"item": {name: ["4", "four"]}}).references == ("4", "four")
    assert made({"item": {name: "4"}, "reference": "5"}).reference == "5"


def test_an_item_without_a_sample_has_no_answer():
    sample = made({"item": {"question": "2+2?", "n": 1}}, 3)
    assert (sample.id, sample.fields) == ("3", {"question": "2+2?", "n": 1})
    assert [(one.role, one.text) for one in sample.trace.messages] == [("user", "2+2?")]
    assert warned(sample) == {None: "the item has no sample, and so no answer"}


@pytest.mark.parametrize(
    "sample",
    [
        {"output_text": "hi", "output_tools": []},
        {"output_text": "hi", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]},
        {"output": [{"role": "assistant", "content": "hi"}]},
        {"output": "hi"},
    ],
)
def test_a_sample_holds_its_answer_in_several_forms(sample, forgotten):
    record = {"item": {"input": [{"role": "user", "content": "Hello"}]}, "sample": sample}
    found = made(record)
    assert [(one.role, one.text) for one in found.trace.messages] == [("user", "Hello"), ("assistant", "hi")]
    assert found.trace.warnings == ()
    assert forgotten(READER, record) == []


def test_calls_beside_a_text_are_read():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    sample = made({"item": {"query": "q"}, "sample": {"output_text": None, "output_tools": [call]}})
    assert [one.call.name for one in sample.trace.tool_calls()] == ["f"]
    sample = made({"item": {"query": "q"}, "sample": {"output_text": '{"a": 1}', "output_json": {"a": 1}}})
    assert (sample.trace.response, sample.trace.extra) == ('{"a": 1}', {})


def run(source, **fields):
    return {
        "id": "evalrun_1",
        "created_at": 1,
        "data_source": {"type": "completions", "source": source, **fields},
        "error": {"code": "", "message": ""},
        "eval_id": "eval_1",
        "model": "m",
        "name": "first",
        "object": "eval.run",
        "per_model_usage": [],
        "per_testing_criteria_results": [],
        "report_url": "https://example.org",
        "result_counts": {"errored": 0, "failed": 0, "passed": 2, "total": 2},
        "status": "completed",
    }


CONTENT = {"type": "file_content", "content": [{"item": {"query": "q"}, "sample": {"output_text": "a"}}]}


@pytest.mark.parametrize("source", [CONTENT, {"type": "file_id", "id": "file-1"}, {"type": "stored_completions"}])
def test_a_run_is_refused_with_what_helps(source):
    document = run(source)
    assert run_retrieve_response.RunRetrieveResponse.model_validate(document).data_source.type == "completions"
    with pytest.raises(TraceError, match=r"is a run, whose data is not read; save its output items: client\.evals"):
        made(document)


def test_a_definition_is_refused_with_what_helps(tmp_path):
    told: list[TraceError] = []
    page = {"object": "list", "data": [{"object": "eval", "id": "eval_1", "testing_criteria": []}], "has_more": False}
    (tmp_path / "evals.json").write_text(json.dumps(page))
    assert list(read(tmp_path / "evals.json", on_error=told.append)) == []
    assert "is the definition of an eval" in told[0].problem
    (tmp_path / "create.json").write_text(json.dumps({"name": "n", "testing_criteria": []}))  # of the request
    assert list(read(tmp_path / "create.json", on_error=told.append)) == []
    assert "is the definition of an eval" in told[1].problem


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}}, "codex-exec"),
        ({"input": "q", "output": "a", "ideal": "b"}, "rows"),
        ({"messages": [{"role": "user", "content": "2+2?"}], "ideal": "4"}, "openai-evals"),
        ({"input": "2+2?", "ideal": 4}, "openai-evals"),
        ({"item": {"a": 1}, "reference": "b", "group": "g"}, "openai-evals"),
    ],
)
def test_neighbors_are_told_apart(record, name):
    assert detect(record).name == name


def test_ideals_are_references():
    sample = made({"messages": [{"role": "user", "content": "2+2?"}], "ideal": ["4", 4.0], "choice": "A"})
    assert (sample.references, sample.fields) == (("4", "4"), {"choice": "A"})
    assert made({"input": "2+2?", "ideal": 4}).reference == "4"
    assert made({"input": "2+2?", "ideal": None}).all_references == ()


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    graded = result("tone", 1.0, sample={"output": [{"role": "assistant", "content": "yes"}], "model": "m"})
    item = {"item": {"input": "q", "reference": "a"}, "sample": {"output_text": "hi", "model": "m"}}
    intact(READER, output_item(results=[graded]), item, {"input": "2+2?", "ideal": ["4", "four"], "choice": "A"})

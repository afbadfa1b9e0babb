"""Traces, observations and dataset items of Langfuse."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.langfuse import LangfuseReader
from judgekit.formats.reading import read
from judgekit.traces.recording import Label

READER = LangfuseReader()
ITEM = "an item of a dataset, without a run of an agent; its expected output is the reference"
MISSING = "export the observations with their inputs and outputs (fields=core,basic,io,usage)"


@pytest.fixture
def exports(shared_data):
    return shared_data / "exports"


def loaded(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def observed(identity, kind, parent=None, **fields):
    return {"id": identity, "traceId": "t", "type": kind, "parentObservationId": parent, "name": identity, **fields}


def sampled(*records):
    return [READER.sample(record, index) for index, record in enumerate(READER.records(list(records)))]


def warned(sample):
    return {(warning.path, warning.message) for warning in sample.trace.warnings}


def test_the_observations_of_a_trace_are_its_conversation(exports):
    [sample] = read(exports / "langfuse_trace_api.json", on_error="raise")
    trace = sample.trace
    system, question, call, result, answer = trace.messages
    assert (system, question) == (SystemMessage("You help."), HumanMessage("Where is order 7?"))
    assert isinstance(call, AIMessage)
    assert [(one.name, one.args, one.id) for one in call.tool_calls] == [("find_order", {"id": 7}, "c1")]
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.text) == ("c1", '{"status": "sent"}')
    assert (answer.text, answer.agent, answer.model) == ("It was sent.", "agent", "gpt-4.1")
    assert answer.usage == Usage(input_tokens=20, output_tokens=5, extra={"total": 25})
    assert trace.labels == (Label("correct", value=True, source="human", annotator="u1", reason="ok"),)
    assert trace.cost_usd == 0.01
    assert trace.metadata == {"userId": "u", "sessionId": "s1", "environment": "default", "traceName": "agent"}


def test_the_file_of_the_interface_is_the_trace_of_the_api(exports, tmp_path):
    trace = loaded(exports / "langfuse_trace_api.json")
    observations, scores = trace.pop("observations"), trace.pop("scores")
    without = [{**observation, "input": None, "output": None} for observation in observations]
    [expected] = read(exports / "langfuse_trace_api.json", on_error="raise")
    for document in (
        {"trace": trace, "observations": observations, "scores": scores},
        {"trace": {**trace, "observations": without, "scores": scores}, "observations": observations},
        {"trace": {**trace, "observations": observations, "scores": scores}},
    ):
        path = tmp_path / "trace-tr1.json"
        path.write_text(json.dumps(document))
        [sample] = read(path, on_error="raise")
        assert sample.trace.messages == expected.trace.messages
        assert (sample.trace.labels, sample.trace.warnings) == (expected.trace.labels, ())


def test_a_table_of_observations_is_read_like_their_lines(exports, tmp_path):
    rows = loaded(exports / "langfuse_obs_blob.jsonl")
    with (tmp_path / "observations.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, "usage_details": json.dumps(row["usage_details"])} for row in rows)
    [sample] = read(tmp_path / "observations.csv", on_error="raise")
    [expected] = read(exports / "langfuse_obs_blob.jsonl", on_error="raise")
    assert sample.trace.messages == expected.trace.messages
    assert (sample.group, sample.trace.warnings) == ("s1", ())


def test_a_file_holds_many_traces_with_their_observations_and_scores_in_any_place():
    def trace(name):
        score = {"name": "ok", "value": 0, "dataType": "BOOLEAN", "source": "ANNOTATION", "traceId": name}
        about = {"id": name, "timestamp": "2026-01-01T00:00:00Z", "input": f"q{name}", "output": "a", "tags": []}
        return [score, observed(f"o{name}", "SPAN", traceId=name, metadata={"k": name}), about]

    (score, inner, about), (other_score, other_inner, other) = trace("1"), trace("2")
    samples = sampled(score, other, inner, other_score, about, other_inner)
    assert [sample.id for sample in samples] == ["2", "1"]
    for sample in samples:
        assert [message.text for message in sample.trace.messages] == [f"q{sample.id}", "a"]
        assert [(label.name, label.value, label.source) for label in sample.trace.labels] == [("ok", False, "human")]
        assert sample.trace.metadata == {"k": sample.id}


QUESTION = {"role": "user", "content": "q"}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}
SCORE = {"name": "ok", "value": 1, "dataType": "BOOLEAN", "source": "ANNOTATION", "traceId": "t"}


def begun(second, *args, **fields):
    return observed(*args, **fields, startTime=f"2026-01-01T00:00:0{second}Z")


PIECES = [
    {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "input": "q", "output": "a", "tags": ["x"]},
    begun(0, "root", "AGENT", input="q", output="a"),
    begun(1, "llm1", "GENERATION", "root", input=[QUESTION], output=CALL),
    begun(2, "f", "TOOL", "root", input={}, output="r"),
    begun(
        3, "llm2", "GENERATION", "root", input=[QUESTION, CALL, RESULT], output={"role": "assistant", "content": "a"}
    ),
    SCORE,
    begun(0, "other", "SPAN", input="p", output="b", traceId="o"),
]


@given(st.permutations(PIECES))
def test_any_order_of_the_lines_gives_the_same_samples(lines):
    samples = sorted(sampled(*lines), key=lambda sample: sample.id)
    assert samples == sorted(sampled(*PIECES), key=lambda sample: sample.id)
    other, sample = samples
    assert [[one.text for one in each.trace.messages] for each in samples] == [["p", "b"], ["q", "", "r", "a"]]
    assert (len(sample.trace.tool_calls()), len(sample.trace.labels), other.trace.labels) == (1, 1, ())
    assert sample.trace.metadata == {"tags": ["x"]}


def test_scores_say_who_gave_them():
    def score(name, value, kind, source, **fields):
        return {"id": name, "name": name, "value": value, "dataType": kind, "source": source, **fields}

    trace = {
        "id": "t",
        "timestamp": "2026-01-01T00:00:00Z",
        "input": "q",
        "output": "a",
        "observations": [observed("root", "SPAN", input="q", output="a"), observed("inner", "SPAN", "root")],
        "scores": [
            score("ok", 1, "BOOLEAN", "ANNOTATION", authorUserId="u1", comment="fine"),
            {**score("ok_v3", None, "BOOLEAN", "ANNOTATION"), "value": True},
            score("tone", 0.5, "NUMERIC", "EVAL"),
            score("kind", 2, "CATEGORICAL", "API", stringValue="polite"),
            score("note", "well done", "TEXT", "ANNOTATION", observationId="root"),
            score("step", 1, "NUMERIC", "ANNOTATION", observationId="inner"),
            score("output", 0, "CORRECTION", "ANNOTATION", stringValue="b"),
            score("nothing", None, "NUMERIC", "API"),
        ],
    }
    [sample] = sampled(trace)
    assert sample.trace.labels == (
        Label("ok", value=True, source="human", annotator="u1", reason="fine"),
        Label("ok_v3", value=True, source="human"),
        Label("tone", 0.5, source="judge"),
        Label("kind", "polite", source="unknown"),
        Label("note", "well done", source="human"),
    )
    assert sample.reference == "b"
    problem = "scores of single observations, which are no labels of the trace, found 1"
    assert warned(sample) == {("trace.scores", problem)}


def test_scores_of_traces_that_are_not_in_the_file_are_told():
    score = {"name": "ok", "value": 1, "dataType": "BOOLEAN", "source": "ANNOTATION", "traceId": "elsewhere"}
    trace, rest = READER.records([observed("o", "SPAN", input="q", output="a"), score])
    assert READER.sample(trace, 0).trace.labels == ()
    with pytest.raises(TraceError, match=r"contains 1 score of traces that are not in this file; .*audit RUN --labels"):
        READER.sample(rest, 1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"args": ["q"], "kwargs": {}}, "q"),
        ({"args": [], "kwargs": {"question": "q"}}, "q"),
        ({"args": [], "kwargs": {"messages": [{"role": "user", "content": "q"}]}}, "q"),
        ({"args": ["q", 2], "kwargs": {}}, '{"args": ["q", 2], "kwargs": {}}'),
        ({"order": 7, "plan": {"a": 1}}, '{"order": 7, "plan": {"a": 1}}'),
    ],
)
def test_the_arguments_of_a_traced_function_are_its_input(given, text):
    [sample] = sampled(observed("root", "SPAN", input=given, output={"total": 7}))
    assert [message.text for message in sample.trace.messages] == [text, '{"total": 7}']
    structure = "neither a string nor messages, read as its JSON text"
    paths = [f"spans[0].attributes.{name}" for name in (["input"] if text.startswith("{") else []) + ["output"]]
    assert warned(sample) == {(path, structure) for path in paths}


def test_observations_without_input_and_output_are_told_and_the_outermost_ones_read():
    root = observed("root", "AGENT", input="q", output="a")
    silent = [observed(name, "GENERATION", "root") for name in ("one", "two")]
    [sample] = sampled(root, *silent)
    assert [message.text for message in sample.trace.messages] == ["q", "a"]
    lines = [f"model calls without {name}, found 2 of 2; {MISSING}" for name in ("input", "output")]
    assert warned(sample) == {(None, line) for line in lines}
    with pytest.raises(TraceError, match="no run has an input or output that can be read; export the observations"):
        sampled(*silent)


def test_an_answer_of_the_outermost_observation_that_no_model_gave_is_the_last_message():
    messages = [{"role": "user", "content": "q"}]
    model = observed("llm", "GENERATION", "root", input=messages, output={"role": "assistant", "content": "a"})
    for answer, texts in (
        ("a", ["q", "a"]),
        (" a\n", ["q", "a"]),
        ("b", ["q", "a", "b"]),
        ({"answer": "b", "n": 1}, ["q", "a", "b"]),
    ):
        [sample] = sampled(observed("root", "CHAIN", input="q", output=answer), model)
        assert [message.text for message in sample.trace.messages] == texts
        problem = (
            "spans[0].attributes.output",
            "differs from the last answer of a model, and is read as the final answer",
        )
        assert warned(sample) == ({problem} if len(texts) == 3 else set())
    [sample] = sampled(observed("root", "CHAIN", input="another", output={"n": 1}), model)
    assert [message.text for message in sample.trace.messages] == ["q", "a"]
    problem = "the input of the outermost run is not part of the conversation with the model"
    assert warned(sample) == {("spans[0].attributes.input", problem)}


def test_of_several_outermost_observations_none_has_the_final_answer():
    def turn(number, history):
        question = {"role": "user", "content": f"q{number}"}
        times = {"startTime": f"2026-01-01T00:00:0{number}Z", "endTime": f"2026-01-01T00:00:0{number}.9Z"}
        root = observed(f"root{number}", "SPAN", input=f"q{number}", output=f"a{number}", **times)
        answer = {"role": "assistant", "content": f"a{number}"}
        model = observed(f"llm{number}", "GENERATION", root["id"], input=[*history, question], output=answer, **times)
        return [root, model], [*history, question, answer]

    first, history = turn(1, [])
    [sample] = sampled(*first, *turn(2, history)[0])
    assert [message.text for message in sample.trace.messages] == ["q1", "a1", "q2", "a2"]
    assert sample.trace.warnings == ()


def test_errors_and_missing_parents_are_told():
    failed = observed("tool", "TOOL", "root", input={"id": 7}, level="ERROR", statusMessage="no such order")
    [sample] = sampled(observed("root", "AGENT", input="q", output="a", level="ERROR"), failed)
    [call, result] = [message for message in sample.trace.messages if message.role in ("assistant", "tool")][:2]
    assert (call.tool_calls[0].args, result.text, result.is_error) == ({"id": 7}, "no such order", True)
    assert warned(sample) == {("spans[0]", "the outermost run failed: error")}
    [sample] = sampled(observed("llm", "GENERATION", "gone", input="q", output="a"))
    problem = "runs whose parent is not in this file, found 1 of 1; export whole traces"
    assert warned(sample) == {(None, problem)}
    [sample] = sampled(observed("llm", "GENERATION", input="q", level="ERROR"))
    assert (None, "model calls that failed, found 1 of 1") in warned(sample)


def test_an_observation_that_pages_repeat_is_read_once_in_its_later_version():
    first = observed("root", "SPAN", input="q", output="half", version="1")
    [sample] = sampled(first, {**first, "output": "whole", "version": None})
    assert [message.text for message in sample.trace.messages] == ["q", "whole"]
    assert sample.trace.extra["spans"][0]["attributes"]["other_version"] == {"output": "half"}


@pytest.mark.parametrize(
    ("item", "text", "facts"),
    [
        ({"input": "q", "expectedOutput": "a"}, "q", {"reference": "a"}),
        (
            {"input": {"question": "q", "k": 3}, "expectedOutput": ["a", "b"]},
            "q",
            {"references": ("a", "b"), "fields": {"k": 3}},
        ),
        ({"input": {"a": 1}, "expectedOutput": {"b": 2}}, '{"a": 1}', {"reference": '{"b": 2}'}),
        ({"input": [{"role": "user", "content": "q"}], "expectedOutput": None}, "q", {"reference": None}),
        ({"input": "q", "expectedOutput": "a", "metadata": {"k": 1}}, "q", {"metadata": {"k": 1}}),
        (
            {"input": "q", "expectedOutput": "a", "metadata": ["k"]},
            "q",
            {"metadata": {}, "fields": {"metadata": ["k"]}},
        ),
    ],
)
def test_an_item_of_a_dataset_is_a_question_and_a_reference(item, text, facts):
    record = {"id": "i", "datasetName": "d", "status": "ARCHIVED", **item}
    assert READER.recognizes(record)
    [sample] = sampled(record)
    assert (sample.id, [message.text for message in sample.trace.messages]) == ("i", [text])
    assert {name: getattr(sample, name) for name in facts} == facts
    assert {(None, ITEM), ("status", "is archived")} <= warned(sample)


def test_results_of_an_experiment_are_traces_with_references(intact):
    def result(number, **fields):
        return {
            "id": f"o{number}",
            "traceId": f"t{number}",
            "startTime": "2026-11-20T10:00:00Z",
            "level": "DEFAULT",
            "environment": "default",
            "experimentId": "e",
            "experimentName": "nightly",
            "experimentItemId": "i",
            "input": {"question": "2+2?"},
            "output": f"{number}",
            "expectedOutput": {"answer": "4", "why": "w"},
            "scores": [
                {
                    "name": "ok",
                    "value": True,
                    "dataType": "BOOLEAN",
                    "source": "ANNOTATION",
                    "subject": {"kind": "observation", "id": f"o{number}", "traceId": f"t{number}"},
                }
            ],
            **fields,
        }

    records = [result(4), result(5), observed("llm", "GENERATION", "o5", traceId="t5", input="2+2?", output="5")]
    assert READER.recognizes(records)
    first, second = sampled(*records)
    for sample, answer in ((first, "4"), (second, "5")):
        assert (sample.id, sample.group, sample.reference) == (f"t{answer}", "i", "4")
        assert ([message.text for message in sample.trace.messages], sample.fields) == (["2+2?", answer], {"why": "w"})
        assert [(label.name, label.value, label.source) for label in sample.trace.labels] == [("ok", True, "human")]
        assert sample.trace.warnings == ()
    assert second.trace.messages[-1].model is None
    intact(READER, records)


def test_the_ids_of_observations_beside_a_trace_are_kept():
    trace = {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "input": "q", "output": "a", "observations": ["o1", "o2"]}
    [sample] = sampled(trace)
    assert sample.trace.extra["trace"]["observations"] == ["o1", "o2"]


def test_the_calls_in_an_expected_output_are_expected_calls(forgotten):
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "assistant", "content": "Sent."}]
    [sample] = sampled({"id": "i", "datasetId": "d", "input": "q", "expectedOutput": {"messages": messages}})
    assert [(call.name, call.args) for call in sample.reference_tool_calls] == [("find", {"id": 7})]
    assert (sample.reference, sample.fields) == ("Sent.", {})
    assert sample.trace.extra["expectedOutput"] == {"messages": messages}
    record = {"id": "i", "datasetId": "d", "input": "q", "expectedOutput": {"messages": [{"role": "user"}, *messages]}}
    assert forgotten(READER, [record]) == []
    assert forgotten(READER, [{**record, "expectedOutput": {**messages[0], "content": "x", "id": "m"}}]) == []


def test_what_is_neither_trace_nor_item_is_refused_in_its_place():
    good, odd, other = READER.records([observed("o", "SPAN", input="q", output="a"), {"x": 1}, 5])
    assert READER.sample(good, 0).id == "t"
    with pytest.raises(TraceError, match="expected a trace, an observation or a dataset item of Langfuse"):
        READER.sample(odd, 1)
    with pytest.raises(TraceError, match="the record: expected an object, found 5"):
        READER.sample(other, 2)


def test_nothing_is_forgotten_and_nothing_crashes(exports, intact):
    for name in ("langfuse_dataset_items.jsonl", "langfuse_obs_blob.jsonl", "langfuse_trace_api.json"):
        intact(READER, loaded(exports / name))

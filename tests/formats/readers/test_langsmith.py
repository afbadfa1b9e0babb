"""Runs and dataset examples of LangSmith."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import HumanMessage, SystemMessage, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.langsmith import LangSmithReader
from judgekit.formats.reading import read

READER = LangSmithReader()
ITEM = "an item of a dataset, without a run of an agent; its expected output is the reference"
BARE = "has no run_type, so it counts as an example of a dataset: its outputs are the reference"
EXPECTED = "messages, of which the last answer and the calls are the reference"
HI = {"type": "human", "content": "Hi"}


def ai(content, **fields):
    return {"type": "ai", "content": content, **fields}


def dumpd(message):
    kind = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[message["type"]]
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": message}


def ran(identity, kind="chain", parent=None, trace="r", **fields):
    order = f"{trace}.{parent}.{identity}" if parent else trace
    run = {"id": identity, "trace_id": trace, "dotted_order": order, "parent_run_id": parent, "run_type": kind}
    return {**run, "name": identity, "inputs": {}, "outputs": None, **fields}


def sampled(*records):
    return [READER.sample(record, index) for index, record in enumerate(READER.records(list(records)))]


def texts(sample):
    return [message.text for message in sample.trace.messages]


def warned(sample):
    return {(warning.path, warning.message) for warning in sample.trace.warnings}


@pytest.fixture
def exports(shared_data):
    return shared_data / "exports"


def test_the_runs_of_a_trace_are_one_conversation(exports):
    [whole] = read(exports / "langsmith_runs_all.jsonl", on_error="raise")
    system, question, call, result, answer = whole.trace.messages
    assert (system, question) == (SystemMessage("You help."), HumanMessage("Where is order 7?"))
    assert [(one.name, one.args, one.id) for one in call.tool_calls] == [("find_order", {"id": 7}, "c1")]
    assert call.usage == Usage(input_tokens=3, output_tokens=4)
    assert isinstance(result, ToolMessage)
    assert (result.text, result.tool_call_id, answer.text) == ('{"status": "sent"}', "c1", "It was sent.")
    [root] = read(exports / "langsmith_runs_root.jsonl", on_error="raise")
    assert texts(root) == texts(whole)


RECORDED = Path(__file__).parent / "recordings"
"""Runs that the SDK of LangSmith 0.15.1 wrote, in reverse order: of ``traceable`` functions, and of LangGraph 1.2.24."""


def recorded(name):
    return list(map(json.loads, (RECORDED / name).read_text(encoding="utf-8").splitlines()))


def test_functions_that_the_sdk_traced():
    [sample] = read(RECORDED / "langsmith_traceable.jsonl", on_error="raise")
    assert [message.role for message in sample.trace.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert texts(sample) == ["Where is order 7?", "", '{"status": "sent"}', "", "Ann", "It was sent."]
    calls = [(pair.call.name, pair.call.args) for pair in sample.trace.tool_calls()]
    assert calls == [("find_order", {"id": 7}), ("find_name", {"id": 7})]
    assert sample.trace.warnings == ()


def test_a_graph_that_the_sdk_traced():
    [sample] = read(RECORDED / "langsmith_langgraph.jsonl", on_error="raise")
    assert [one.role for one in sample.trace.messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert (sample.trace.messages[0].text, sample.trace.response) == ("You help.", "It was sent.")
    calls = [(pair.call.name, pair.call.args, pair.call.id) for pair in sample.trace.tool_calls()]
    assert calls == [("find_order", {"id": 7}, "c1"), ("find_order", {"id": 8}, "c2")]
    assert [tool.name for tool in sample.trace.tools] == ["find_order"]
    assert (sample.group, len(sample.trace.extra["spans"]), sample.trace.warnings) == ("th1", 17, ())


@pytest.mark.parametrize("name", ["langsmith_traceable.jsonl", "langsmith_langgraph.jsonl"])
def test_nothing_that_the_sdk_traced_is_forgotten_or_depends_on_the_order_of_lines(name, intact):
    runs = recorded(name)
    intact(READER, runs)
    expected = sampled(*runs)
    for _ in range(5):
        Random().shuffle(runs)  # noqa: S311 - no secret
        assert sampled(*runs) == expected


MESSAGES = [{"role": "user", "content": "q"}]
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}
TREE = [
    ran(
        "r",
        inputs={"question": "q"},
        outputs={"answer": "a"},
        extra={"metadata": {"thread_id": "th"}},
        status="success",
    ),
    ran(
        "r1",
        "llm",
        "r",
        inputs={"messages": MESSAGES},
        outputs={"choices": [{"message": {"role": "assistant", "tool_calls": [CALL]}}]},
    ),
    ran("r2", "tool", "r", name="find", inputs={"id": 7}, outputs={"output": "sent"}),
    ran(
        "r3",
        "llm",
        "r",
        inputs={
            "messages": [
                *MESSAGES,
                {"role": "assistant", "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c", "content": "sent"},
            ]
        },
        outputs={"choices": [{"message": {"role": "assistant", "content": "a"}}]},
    ),
]
OTHER = [ran("o", trace="o", inputs={"question": "p"}, outputs={"answer": "b"}), ran("p", trace="o", parent="o")]


@given(st.permutations([*TREE, *OTHER]), st.sampled_from(["trace_id", "dotted_order", ""]))
def test_any_order_of_the_lines_gives_the_same_samples(lines, left_out):
    def without(run):
        return {name: value for name, value in run.items() if name != left_out}

    samples = sorted(sampled(*map(without, lines)), key=lambda sample: sample.id)
    expected = sorted(sampled(*map(without, [*TREE, *OTHER])), key=lambda sample: sample.id)
    assert samples == expected
    other, sample = samples
    assert (other.id, texts(other), sample.id, sample.group) == ("o", ["p", "b"], "r", "th")
    assert [message.role for message in sample.trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert [pair.call.name for pair in sample.trace.tool_calls()] == ["find"]
    assert (sample.trace.termination, sample.trace.warnings) == ("success", ())


def test_runs_nested_in_their_parents_are_the_same_trace():
    root, *children = TREE
    [nested] = sampled({**root, "child_runs": [{**children[0], "child_runs": [children[1]]}, children[2]]})
    [flat] = sampled(*TREE)
    assert nested == flat


def test_what_a_run_was_asked_goes_before_what_it_answers_where_that_does_not_repeat_it():
    cases = [
        ([HI], {"messages": [ai("Hello")]}, ["Hi", "Hello"]),
        ([HI], {"messages": [HI, ai("Hello")]}, ["Hi", "Hello"]),
        ([{**HI, "id": "h"}], {"messages": [{**HI, "id": "h", "content": "HI"}, ai("Hello")]}, ["HI", "Hello"]),
        ([{**HI, "id": "h"}], {"messages": [{**HI, "id": "i"}]}, ["Hi", "Hi"]),
        ([{"role": "user", "content": "Hi"}], {"messages": [dumpd(HI), ai("Hello")]}, ["Hi", "Hello"]),
        ([{"role": "user", "content": "Hi"}], {"messages": [ai("Hello")]}, ["Hi", "Hello"]),
        ([HI], {"output": dumpd(ai("Hello"))}, ["Hi", "Hello"]),
        ([["user", "Hi"]], {"messages": [HI, ai("Hello")]}, ["Hi", "Hello"]),
        ([[dumpd(HI)]], {"generations": [[{"text": "Hello", "message": dumpd(ai("Hello"))}]]}, ["Hi", "Hello"]),
        ([HI, ai("Hello"), {**HI, "content": "Bye"}], {"messages": [ai("Hello")]}, ["Hi", "Hello", "Bye", "Hello"]),
        ([HI, ai("Hello"), HI], {"messages": [HI, ai("Again")]}, ["Hi", "Hello", "Hi", "Again"]),
        ([{**HI, "id": "1"}, {**HI, "id": "2"}], {"messages": [{**HI, "id": "2"}, ai("a")]}, ["Hi", "Hi", "a"]),
    ]
    for inputs, outputs, expected in cases:
        record = ran("r", inputs={"messages": inputs}, outputs=outputs)
        assert READER.recognizes(record)
        [sample] = sampled(record)
        assert texts(sample) == expected
        assert sample.trace.extra["spans"]


def test_runs_are_read_in_the_words_of_any_provider():
    cases = [
        ({"question": "q"}, {"answer": "a"}),
        ({"messages": MESSAGES}, {"output": {"content": "a", "type": "ai"}}),
        ({"prompts": ["q"]}, {"generations": [[{"text": "a"}]]}),
        ({"messages": MESSAGES, "model": "m"}, {"choices": [{"message": {"role": "assistant", "content": "a"}}]}),
    ]
    for inputs, outputs in cases:
        for kind in ["chain", "llm"]:
            [sample] = sampled(ran("r", kind, inputs=inputs, outputs=outputs))
            assert [(message.role, message.text) for message in sample.trace.messages] == [
                ("user", "q"),
                ("assistant", "a"),
            ]
            assert sample.trace.warnings == ()


def test_a_result_is_the_message_that_a_tool_returned():
    message = {"type": "tool", "content": "sent", "tool_call_id": "c", "status": "error"}
    for output in (message, dumpd(message)):
        [sample] = sampled(TREE[0], TREE[1], {**TREE[2], "outputs": {"output": output}})
        result = sample.trace.messages[2]
        assert (result.text, result.tool_call_id, result.is_error) == ("sent", "c", True)


@pytest.mark.parametrize(
    ("inputs", "outputs", "args", "text"),
    [
        ({"input": '{"id": 7}'}, {"output": {"status": "sent"}}, {"id": 7}, '{"status": "sent"}'),
        ({"input": "7"}, {"status": "sent"}, {"input": "7"}, '{"status": "sent"}'),
    ],
)
def test_arguments_and_results_of_tools_stand_in_wrappers(inputs, outputs, args, text):
    [sample] = sampled(TREE[0], ran("r1", "tool", "r", inputs=inputs, outputs=outputs))
    [call] = sample.trace.tool_calls()
    assert (call.call.name, call.call.args) == ("r1", args)
    assert [message.text for message in sample.trace.messages if message.role == "tool"] == [text]


def test_the_answer_of_an_outermost_run_without_outputs_is_that_of_the_only_run_in_it():
    inner = ran("n", parent="r", inputs={"question": "q"}, outputs={"answer": "b"})
    model = ran(
        "m", "llm", "n", inputs={"messages": MESSAGES}, outputs={"output": {"role": "assistant", "content": "a"}}
    )
    [sample] = sampled(ran("r"), inner, model)
    assert texts(sample) == ["q", "a", "b"]
    [sample] = sampled(ran("r"), {**model, "parent_run_id": "r"})
    assert texts(sample) == ["q", "a"]


def test_facts_of_the_outermost_run_are_those_of_the_trace():
    about = {"extra": {"metadata": {"session_id": "s", "k": 1}}, "tags": ["x"], "session_id": "project"}
    costs = {"total_cost": 0.5, "prompt_tokens": 7, "completion_tokens": 2, "prompt_token_details": {"cache_read": 3}}
    [sample] = sampled({**TREE[0], **about, **costs}, *TREE[1:])
    assert sample.group == "s"
    assert sample.trace.metadata == {"session_id": "s", "k": 1, "tags": ["x"]}
    assert (sample.trace.cost_usd, sample.trace.usage.input_tokens, sample.trace.usage.cached_tokens) == (0.5, 7, 3)
    [sample] = sampled({**TREE[0], **about, "reference_example_id": "e"}, *TREE[1:])
    assert sample.group == "e"


def test_models_and_tools_of_a_model_call():
    tool = {"type": "function", "function": {"name": "find", "parameters": {}}}
    extra = {"metadata": {"ls_model_name": "m"}, "invocation_params": {"tools": [tool], "temperature": 0}}
    [sample] = sampled(ran("r", "llm", inputs={"messages": [[HI]]}, outputs={"output": ai("Hello")}, extra=extra))
    assert (sample.trace.messages[-1].model, [tool.name for tool in sample.trace.tools]) == ("m", ["find"])
    assert sample.trace.extra["spans"][0]["attributes"]["extra"] == {"invocation_params": {"temperature": 0}}


def test_a_structured_input_and_output_are_read_as_their_json():
    [sample] = sampled(ran("r", inputs={"order": 7, "at": {"x": 1}}, outputs={"total": 7}))
    assert texts(sample) == ['{"order": 7, "at": {"x": 1}}', '{"total": 7}']
    structure = "neither a string nor messages, read as its JSON text"
    assert warned(sample) == {(f"spans[0].attributes.{name}", structure) for name in ("inputs", "outputs")}


def test_an_example_is_a_question_and_a_reference():
    example = {
        "id": "e",
        "dataset_id": "d",
        "inputs": {"question": "q", "context": ["c"]},
        "outputs": {"answer": "a", "why": "w"},
    }
    [sample] = sampled({**example, "metadata": {"dataset_split": ["test"]}})
    assert (sample.id, texts(sample), sample.reference) == ("e", ["q"], "a")
    assert (sample.fields, sample.metadata) == ({"context": ["c"], "why": "w"}, {"dataset_split": ["test"]})
    [sample] = sampled({**example, "outputs": None})
    assert (sample.reference, warned(sample)) == (None, {(None, ITEM)})
    [sample] = sampled({"inputs": {"messages": [HI]}, "outputs": {"messages": [HI, ai("Hello")]}})
    assert (texts(sample), sample.reference, warned(sample)) == (
        ["Hi"],
        "Hello",
        {(None, BARE), (None, ITEM), ("outputs", EXPECTED)},
    )


def test_rows_of_a_table_of_results_are_runs_with_references_and_labels(tmp_path, intact):
    rows = [
        {
            "inputs.question": "2+2?",
            "outputs.answer": "4",
            "error": None,
            "reference.answer": "four",
            "reference.why": "w",
            "feedback.correct": True,
            "feedback.model_graded_qa": 0.5,
            "execution_time": 0.3,
            "example_id": "e1",
            "id": "r1",
        },
        {"inputs.question": "3+3?", "error": "Boom", "reference.answer": "6", "example_id": "e2", "id": "r2"},
    ]
    first, second = sampled(*rows)
    assert (first.id, first.group, texts(first), first.reference) == ("r1", "e1", ["2+2?", "4"], "four")
    assert first.fields == {"why": "w"}
    assert [(label.name, label.value, label.source) for label in first.trace.labels] == [
        ("correct", True, "unknown"),
        ("model_graded_qa", 0.5, "judge"),
    ]
    assert (second.id, second.reference, warned(second)) == (
        "r2",
        "6",
        {("spans[0]", "the outermost run failed: Boom")},
    )
    intact(READER, rows)
    path = tmp_path / "results.csv"
    path.write_text(
        "input.question,outputs.answer,reference.answer,feedback.correct,example_id,id\n2+2?,4,four,1.0,e1,r1\n,,,,,\n"
    )
    [sample] = read(path, on_error="raise")
    assert (texts(sample), sample.reference, sample.trace.labels[0].value) == (["2+2?", "4"], "four", 1.0)


def test_a_column_whose_field_is_taken_stays_as_it_is():
    [sample] = sampled({"inputs": "text", "inputs.question": "q", "outputs.answer": "a", "example_id": "e", "id": "r"})
    assert sample.trace.extra["spans"][0]["attributes"]["inputs.question"] == "q"
    assert texts(sample) == ["text", "a"]


def test_a_model_call_that_holds_other_values_than_messages_is_kept():
    embedding = ran("r1", "llm", "r", inputs={"n": 1}, outputs={"vector": [1]})
    [sample] = sampled(TREE[0], embedding)
    assert texts(sample) == ["q", "a"]
    assert sample.trace.extra["spans"][1]["attributes"]["outputs"] == {"vector": [1]}


def test_a_table_of_inputs_and_outputs_alone_is_a_dataset():
    [sample] = sampled({"inputs.question": "q", "outputs.answer": "a", "id": "e"})
    assert (sample.id, texts(sample), sample.reference) == ("e", ["q"], "a")


def test_examples_and_runs_in_one_file_keep_apart():
    example = {"id": "e", "dataset_id": "d", "inputs": {"question": "q"}, "outputs": {"answer": "a"}}
    run, item = sampled(example, *TREE)
    assert (run.id, item.id) == ("r", "e")
    records = READER.records([*TREE, "text", {"x": 1}])
    with pytest.raises(TraceError, match="the record: expected an object, found 'text'"):
        READER.sample(records[1], 1)
    with pytest.raises(TraceError, match="expected a run or an example of LangSmith, with inputs and outputs"):
        READER.sample(records[2], 2)


def test_a_value_that_stands_beside_both_question_and_answer_is_kept_twice():
    example = {"inputs": {"question": "q", "k": 1}, "outputs": {"answer": "a", "k": 2}}
    [sample] = sampled({"id": "e", "dataset_id": "d", **example})
    assert sample.fields == {"k": 1, "outputs": {"k": 2}}


def test_a_run_without_a_trace_belongs_to_that_of_its_parent():
    child = {
        "id": "c",
        "parent_run_id": "gone",
        "run_type": "llm",
        "inputs": {"input": "q"},
        "outputs": {"output": "a"},
    }
    [sample] = sampled(child)
    assert sample.id == "gone"


def test_runs_without_an_id_belong_to_the_traces_that_they_name():
    runs = [
        {"trace_id": name, "run_type": "llm", "inputs": {"input": name}, "outputs": {"output": "a"}} for name in "xy"
    ]
    assert [(sample.id, texts(sample)) for sample in sampled(*runs)] == [("x", ["x", "a"]), ("y", ["y", "a"])]
    runs = [{**run, "trace_id": name, "id": name} for run in runs for name in ("", None)]
    assert [(sample.id, texts(sample)[0]) for sample in sampled(*runs)] == [
        ("0", "x"),
        ("1", "x"),
        ("2", "y"),
        ("3", "y"),
    ]


def test_nothing_is_forgotten_and_nothing_crashes(exports, intact):
    for name in ("langsmith_runs_all.jsonl", "langsmith_examples_chat.jsonl"):
        intact(READER, list(map(json.loads, (exports / name).read_text(encoding="utf-8").splitlines())))

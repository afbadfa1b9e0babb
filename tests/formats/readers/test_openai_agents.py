"""Traces of the OpenAI Agents SDK."""

import json
from collections import Counter

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.openai_agents import OpenAIAgentsReader
from judgekit.formats.reading import read
from judgekit.traces.message import ToolCall, Usage
from judgekit.traces.pairing import pair_results

READER = OpenAIAgentsReader()
TRACE = {"object": "trace", "id": "t", "workflow_name": "w", "group_id": "thread", "metadata": {"a": 1}}


def span(name: str, parent: str | None, start: int, end: int, error: object = None, /, **data: object) -> dict:
    return {
        "object": "trace.span",
        "id": name,
        "trace_id": "t",
        "parent_id": parent,
        "started_at": f"2026-11-20T11:36:{start:02}+00:00",
        "ended_at": f"2026-11-20T11:36:{end:02}+00:00",
        "span_data": data,
        "error": error,
    }


def call(name: str, arguments: str, identity: str) -> dict:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": "Be brief"}
ASKED = {"role": "user", "content": "Weather?"}
CALLING = {"role": "assistant", "content": None, "tool_calls": [call("f", '{"x":1}', "1"), call("f", '{"x":2}', "2")]}
RESULTS = [{"role": "tool", "tool_call_id": "1", "content": "a"}, {"role": "tool", "tool_call_id": "2", "content": "b"}]
ANSWER = {"role": "assistant", "content": "Rain"}
USAGE = {"input_tokens": 9, "output_tokens": 5}
TASK = {"sdk_span_type": "task", "name": "Agent workflow", "usage": {"input_tokens": 20, "output_tokens": 10}}
SPOKEN = [  # in the order of their ends
    span("g1", "a", 2, 3, type="generation", input=[SYSTEM, ASKED], output=[CALLING], model="m", usage=USAGE),
    span("f2", "a", 4, 5, {"message": "bad"}, type="function", name="f", input='{"x":2}', output="b"),
    span("f1", "a", 4, 6, type="function", name="f", input='{"x":1}', output="a"),
    span(
        "g2",
        "a",
        7,
        8,
        type="generation",
        input=[SYSTEM, ASKED, CALLING, *RESULTS],
        output=[ANSWER],
        model="m",
        usage={"input_tokens": 11, "output_tokens": 5},
    ),
    span("a", "r", 1, 9, type="agent", name="Weather", tools=["f"], handoffs=[], output_type="str"),
    span("r", None, 0, 9, type="custom", name="task", data=TASK),
    TRACE,
]


def only(document: object):
    [record] = READER.records(document)
    return READER.sample(record, 0)


def test_a_history_that_each_request_repeats_is_told_once():
    sample = only(SPOKEN)
    made = sample.trace
    assert (sample.id, sample.group, made.warnings) == ("t", "thread", ())
    assert [(message.role, message.text) for message in made.messages] == [
        ("system", "Be brief"),
        ("user", "Weather?"),
        ("assistant", ""),
        ("tool", "a"),
        ("tool", "b"),
        ("assistant", "Rain"),
    ]
    calling, first, second, answer = made.messages[2:]
    assert (calling.agent, calling.model, calling.usage) == ("Weather", "m", Usage(input_tokens=9, output_tokens=5))
    # Only the spans of the tools record errors. They match calls by name and arguments, since they have no ids.
    assert not first.is_error
    assert second.is_error
    assert answer.usage.input_tokens == 11
    assert made.usage == Usage(input_tokens=20, output_tokens=10)
    assert (made.started_at.second, made.ended_at.second) == (2, 8)


def test_another_run_in_the_same_trace_goes_on_where_its_history_says():
    run = span("g3", "a", 10, 11, type="generation", input=[ANSWER, ASKED], output=[ANSWER])
    other = {"role": "user", "content": "Something else"}
    fresh = span("g4", "a", 12, 13, type="generation", input=[SYSTEM, other], output=[ANSWER])
    texts = [message.text for message in only([*SPOKEN, run, fresh]).trace.messages]
    assert texts[5:] == ["Rain", "Weather?", "Rain", "Something else", "Rain"]


def test_what_one_of_several_runs_used_is_not_what_all_did():
    made = only([*SPOKEN, span("r2", None, 10, 11, type="custom", name="task", data=TASK)]).trace
    assert made.usage is None


def test_an_error_of_the_run_is_how_it_ended():
    run = span("r", None, 0, 9, {"message": "Max turns exceeded"}, type="custom", name="task", data=TASK)
    assert only([run if row["id"] == "r" else row for row in SPOKEN]).trace.termination == "Max turns exceeded"


def test_an_agent_that_is_called_as_a_tool_is_a_child():
    inner = {"role": "user", "content": "1"}
    nested = [
        span("a2", "f1", 4, 5, type="agent", name="Inner"),
        span("g3", "a2", 4, 5, type="generation", input=[inner], output=[ANSWER]),
    ]
    made = only([*SPOKEN, *nested]).trace
    assert len(made.messages) == 6
    [child] = made.children
    assert (child.id, child.metadata) == ("a2", {"call_id": "1"})
    assert [(message.role, message.text) for message in child.messages] == [("user", "1"), ("assistant", "Rain")]
    assert child.messages[1].agent == "Inner"


def test_the_result_of_a_last_call_stands_in_its_span_alone():
    made = only(SPOKEN[:3]).trace
    assert {(message.text, message.is_error) for message in made.messages[3:]} == {("b", True), ("a", False)}
    assert {index: caller.call.id for index, caller in pair_results(made.messages).calls.items()} == {
        index: message.tool_call_id for index, message in enumerate(made.messages) if message.role == "tool"
    }


def test_streamed_and_logged_responses_are_read():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain"}]}
    response = {"object": "response", "model": "m", "status": "completed", "output": [item]}
    streamed = span("g", None, 1, 2, type="generation", input=[ASKED], output=[response])
    logged = span("g", None, 1, 2, type="response", response_id="resp", input="Weather?", response=response)
    for one in (streamed, logged):
        made = only([one]).trace
        assert [message.text for message in made.messages] == ["Weather?", "Rain"]
        assert made.messages[1].model == "m"


def test_without_messages_the_calls_of_tools_are_the_conversation():
    first = span("1", "p", 1, 3, type="function", name="f", input='{"a":1}', output="x")
    second = span("2", "p", 2, 4, {"message": "bad", "data": 1}, type="function", name="g", input="{}", output=None)
    made = only([second, first]).trace
    assert [one.call for one in made.tool_calls()] == [ToolCall("f", {"a": 1}), ToolCall("g")]
    results = [message for message in made.messages if message.role == "tool"]
    assert [(result.text, result.is_error) for result in results] == [("x", False), ("bad", True)]
    assert "only tool calls; message contents are not in the file" in made.warnings[0].message


@pytest.mark.parametrize(
    "spans",
    [
        [span("g", None, 1, 2, type="generation", input=None, output=None, model="m")],
        [span("g", None, 1, 2, type="response", response_id="resp")],
        [span("f", None, 1, 2, type="function", name="f", input=None, output=None)],
    ],
)
def test_spans_that_do_not_say_what_was_said_are_refused(spans):
    with pytest.raises(TraceError, match=r"trace_include_sensitive_data=True.*to_input_list"):
        only([*spans, TRACE])


def test_a_history_that_was_changed_is_kept_beside():
    changed = json.loads(json.dumps(SPOKEN))
    changed[3]["span_data"]["input"][2]["tool_calls"][0]["id"] = "other"
    made = only(changed).trace
    assert [message.text for message in made.messages] == ["Be brief", "Weather?", "", "a", "b", "Rain"]
    assert '"other"' in json.dumps(made.metadata)


@pytest.mark.parametrize("document", [TRACE, SPOKEN[0], SPOKEN, {"data": SPOKEN}])
def test_each_shape_tells_the_format(document):
    assert detect(document).name == "openai-agents"


def test_traces_in_one_file_are_conversations_of_their_own(tmp_path):
    other = [{**row, "id": "u"} if row is TRACE else {**row, "trace_id": "u"} for row in SPOKEN]
    path = tmp_path / "traces.jsonl"
    mixed = [row for pair in zip(SPOKEN, other, strict=True) for row in pair]
    path.write_text("\n".join(map(json.dumps, mixed)))
    samples = list(read(path, on_error="raise"))
    assert [(sample.id, len(sample.trace.messages)) for sample in samples] == [("t", 6), ("u", 6)]


def test_a_recorded_trace_of_two_calls(shared_data, no_question):
    """No request was logged. Calls, results and errors are as counted in the raw spans."""
    path = shared_data / "traces/openai-agents/openai_agents_trace_export.json"
    spans = [row for row in json.loads(path.read_text()) if row["object"] == "trace.span"]
    kinds = Counter(row["span_data"]["type"] for row in spans)
    [sample] = read(path, on_error="raise")
    made = sample.trace
    assert [(one.call.name, one.call.args) for one in made.tool_calls()] == [
        ("get_weather2", {"city": "Paris"}),
        ("fails", {"x": 1}),
    ]
    results = [message for message in made.messages if message.role == "tool"]
    assert len(results) == kinds["function"] == 2
    assert [message.is_error for message in results] == [False, True]
    assert {message.agent for message in made.messages if message.role == "assistant"} == {"Billing"}
    assert {row["attributes"]["to_agent"] for row in made.extra["spans"] if "to_agent" in row["attributes"]} == {
        "Billing"
    }
    assert len(made.warnings) == 2
    assert made.warnings[1] == no_question


def test_a_span_of_an_unknown_kind_is_told():
    unknown = span("s9", None, 8, 9, type="dream", input="sheep", output="wool")
    [record] = READER.records([*SPOKEN, unknown])
    warnings = READER.sample(record, 0).trace.warnings
    assert "unreadable span of type 'dream', kept in extra" in [one.message for one in warnings]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, SPOKEN)

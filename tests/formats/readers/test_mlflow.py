import csv
import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgekit
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.mlflow import MLflowReader

READER = MLflowReader()
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def span(kind, name, inputs, outputs, *, id, parent=None, start=1, error=None, **attributes):
    """Return a span as MLflow 3 writes it."""
    found = {"spanType": kind, "spanInputs": inputs, "spanOutputs": outputs} | attributes
    return {
        "trace_id": "3BjzF4jVwEiBAY02LvXZ6w==",
        "span_id": f"{id}=",
        "parent_span_id": parent and f"{parent}=",
        "name": name,
        "start_time_unix_nano": 1_795_174_737_000_000_000 + start * 10**9,
        "end_time_unix_nano": 1_795_174_737_500_000_000 + start * 10**9,
        "status": {"code": "STATUS_CODE_ERROR" if error else "STATUS_CODE_OK", "message": error or ""},
        "attributes": {
            f"mlflow.{name.replace('__', '.')}": json.dumps(value) for name, value in found.items() if value is not None
        },
    }


def trace(*spans, **info):
    return {"info": {"trace_id": "tr-1", "state": "OK", **info}, "data": {"spans": list(spans)}}


def assessment(name, source="HUMAN", **given):
    return {"assessment_name": name, "source": {"source_type": source, "source_id": "ann"}, **given}


def read(document):
    (record,) = READER.records(document)
    return READER.sample(record, 0)


def told(made):
    return [(one.role, one.text, [(c.name, c.args) for c in getattr(one, "tool_calls", ())]) for one in made.messages]


CHAT_IN = {"model": "m", "messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"}]}
CHAT_OUT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
            },
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}
PAYLOADS = {
    "openai": (CHAT_IN, CHAT_OUT),
    "responses": (
        {"model": "m", "instructions": "Be brief", "input": "Hi"},
        {
            "id": "resp_1",
            "object": "response",
            "output": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}],
        },
    ),
    "anthropic": (
        {"model": "claude-x", "max_tokens": 10, "system": "Be brief", "messages": [{"role": "user", "content": "Hi"}]},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}],
            "stop_reason": "tool_use",
        },
    ),
    "gemini": (
        {"model": "gemini-2", "contents": "Hi", "config": {"system_instruction": "Be brief", "temperature": None}},
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [{"text": None, "function_call": {"name": "f", "args": {"a": 1}}}],
                    }
                }
            ]
        },
    ),
    "bedrock": (
        {"modelId": "x", "system": [{"text": "Be brief"}], "messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}],
                }
            },
            "stopReason": "tool_use",
        },
    ),
}


@pytest.mark.parametrize("provider", PAYLOADS)
def test_requests_and_responses_of_every_provider_are_the_same_conversation(provider):
    inputs, outputs = PAYLOADS[provider]
    made = read(trace(span("CHAT_MODEL", "chat", inputs, outputs, id="a"))).trace
    assert told(made) == [("system", "Be brief", []), ("user", "Hi", []), ("assistant", "", [("f", {"a": 1})])]


def test_a_tool_that_is_defined_twice_is_one():
    again = {"function": dict(reversed(TOOL["function"].items())), "type": "function"}
    made = read(trace(span("CHAT_MODEL", "chat", {**CHAT_IN, "tools": [again]}, CHAT_OUT, id="a", chat__tools=[TOOL])))
    assert [tool.name for tool in made.trace.tools] == ["f"]


def test_of_several_choices_the_first_is_read():
    other = {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "B"}}
    response = {**CHAT_OUT, "choices": [*CHAT_OUT["choices"], other]}
    made = read(trace(span("CHAT_MODEL", "chat", CHAT_IN, response, id="a"))).trace
    assert [text for _, text, _ in told(made)] == ["Be brief", "Hi", ""]
    assert [one.message.partition(";")[0] for one in made.warnings] == ["2 choices"]


AGENT = trace(
    span("AGENT", "agent", {"q": "Hi"}, "Done", id="a"),
    span(
        "CHAT_MODEL",
        "chat",
        CHAT_IN,
        CHAT_OUT,
        id="b",
        parent="a",
        start=2,
        chat__tools=[TOOL],
        llm__model="m-1",
        chat__tokenUsage={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7, "cache_read_input_tokens": 3},
    ),
    span("TOOL", "f_1", {"a": 1}, 12, id="c", parent="a", start=3),
    span("EVALUATOR", "judge", {"x": "y"}, "yes", id="e", parent="a", start=4),
    span(
        "CHAT_MODEL", "chat", {"messages": [{"role": "user", "content": "Good?"}]}, "Yes", id="g", parent="e", start=5
    ),
    assessments=[
        assessment("tone", "LLM_JUDGE", feedback={"value": "kind"}, rationale="It greets"),
        assessment("marks", feedback={"value": {"style": 0.5, "length": 2}}),
        assessment("old", feedback={"value": True}, valid=False),
        assessment("failed", "CODE", feedback={"value": None, "error": {"error_code": "E"}}),
        assessment("expected_response", expectation={"value": "12"}),
        assessment("expected_facts", expectation={"serialized_value": {"value": '["a", "b"]'}}),
        assessment("expected_tool_calls", expectation={"value": [{"name": "f", "arguments": {"a": 1}}]}),
    ],
    trace_metadata={
        "mlflow.trace.session": "chat-7",
        "mlflow.trace.tokenUsage": '{"input_tokens": 6, "output_tokens": 3, "total_tokens": 9}',
        "mlflow.trace.cost": '{"input_cost": 0.5, "output_cost": 0.25, "total_cost": 0.75}',
    },
    tags={"customer": "c1"},
    request_time="2026-11-20T11:38:57.524Z",
)


def test_labels_references_and_totals_come_along(forgotten):
    sample = read(AGENT)
    made = sample.trace
    assert told(made)[2:] == [("assistant", "", [("f", {"a": 1})]), ("tool", "12", [])]
    assert [(one.name, one.value, one.source, one.reason, one.annotator) for one in made.labels] == [
        ("tone", "kind", "judge", "It greets", "ann"),
        ("marks.style", 0.5, "human", None, "ann"),
        ("marks.length", 2, "human", None, "ann"),
    ]
    assert (sample.reference, sample.fields, sample.group) == ("12", {"expected_facts": ["a", "b"]}, "chat-7")
    assert [(one.name, one.args) for one in sample.reference_tool_calls] == [("f", {"a": 1})]
    assert (made.usage.input_tokens, made.cost_usd, made.termination) == (6, 0.75, "OK")
    assert made.metadata["customer"] == "c1"
    assert made.started_at.isoformat() == "2026-11-20T11:38:57.524000+00:00"
    answer = made.messages[2]
    assert (answer.model, answer.finish_reason, answer.usage.input_tokens) == ("m-1", "tool_calls", 5)
    assert not forgotten(READER, AGENT)


def test_several_traces_are_several_samples():
    other = {**AGENT, "info": {"request_id": "tr-2", "status": "ERROR", "timestamp_ms": 1_700_000_000_000}}
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records([AGENT, other]))]
    assert [sample.id for sample in samples] == ["tr-1", "tr-2"]
    assert samples[1].trace.termination == "ERROR"
    assert samples[1].trace.started_at.year == 2023


@pytest.mark.parametrize(
    "document",
    [
        trace(span("CHAIN", "main", {"question": "Hi", "top_k": 3}, "Hello", id="a")),
        trace(
            span(
                "CHAIN",
                "main",
                {"messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL]},
                {"answer": "Hello", "n": 1},
                id="a",
            )
        ),
        {"info": {"request_id": "tr-1"}, "data": {"request": '{"question": "Hi"}', "response": "Hello"}},
        [
            {
                "traceId": "t",
                "spanId": "s",
                "attributes": trace(span("LLM", "x", "Hi", "Hello", id="a"))["data"]["spans"][0]["attributes"],
            }
        ],
    ],
)
def test_what_went_in_and_came_out_is_the_conversation_where_there_is_no_other(document, forgotten):
    assert detect(document).name == "mlflow"
    assert not forgotten(READER, document)
    assert told(read(document).trace) == [("user", "Hi", []), ("assistant", "Hello", [])]


def row(document, *, without=(), **given):
    """Return a row of `mlflow.search_traces()`: the trace as JSON, and most of it in columns too."""
    info = document["info"]
    columns = {
        "trace_id": info["trace_id"],
        "trace": json.dumps(document),
        "client_request_id": None,
        "state": info["state"],
        "request_time": 1_795_174_737_524,
        "execution_duration": 12,
        "request": {"q": "Hi"},
        "response": "Done",
        "trace_metadata": info["trace_metadata"],
        "tags": info["tags"],
        "spans": document["data"]["spans"],
        "assessments": info["assessments"],
        **given,
    }
    return {name: value for name, value in columns.items() if name not in without}


def csv_of(rows, told=json.dumps):
    """Return rows as pandas writes them, with Python's text of all structures."""
    cells = [[value if isinstance(value, str) else told(value) for value in one.values()] for one in rows]
    text = io.StringIO()
    csv.writer(text).writerows([list(rows[0]), *cells])
    return text.getvalue()


WHOLE = read(AGENT)


def test_rows_of_search_traces_are_whole_traces(tmp_path):
    cases = {
        "records": ("rows.json", json.dumps([row(AGENT)])),
        "lines": ("rows.jsonl", json.dumps(row(AGENT))),
        "table": ("rows.csv", csv_of([row(AGENT)], told=str)),
        "without the trace": ("rows.json", json.dumps([row(AGENT, without=("trace",))])),
        "table of JSON": ("rows.csv", csv_of([row(AGENT, without=("trace",))])),
        "texts": ("rows.json", json.dumps([json.dumps(AGENT)])),
        "only the trace": ("rows.jsonl", json.dumps({"trace": json.dumps(AGENT)})),
    }.values()
    for name, text in cases:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        (sample,) = judgekit.read(path, on_error="raise")
        made, expected = sample.trace, WHOLE.trace
        assert (sample.id, sample.group, sample.reference) == ("tr-1", "chat-7", "12")
        assert (sample.fields, sample.reference_tool_calls) == (WHOLE.fields, WHOLE.reference_tool_calls)
        assert told(made) == told(expected)
        assert (made.labels, made.usage, made.cost_usd) == (expected.labels, expected.usage, expected.cost_usd)
        assert (made.termination, made.started_at, made.metadata) == ("OK", expected.started_at, expected.metadata)
        [judged] = made.warnings
        assert (
            judged.message
            == "model calls by evaluators, guardrails or rerankers, not part of the conversation, found 1"
        )


def test_columns_of_ones_own_beside_those_of_search_traces_come_along(intact):
    document = [row(AGENT, reviewed="yes", label="fine")]
    sample = read(document)
    assert (sample.label, sample.trace.extra["reviewed"]) == ("fine", "yes")
    intact(READER, AGENT, [row(AGENT, without=("trace",))], [row(AGENT, without=("trace", "execution_duration"))])


@pytest.mark.parametrize("without", [("trace",), ("trace", "spans"), ("trace", "spans", "assessments")])
def test_tables_with_text_of_pythons_are_refused(tmp_path, without):
    path = tmp_path / "rows.csv"
    path.write_text(csv_of([row(AGENT, without=without)], told=str), encoding="utf-8")
    with pytest.raises(TraceError, match=r"not JSON.*mlflow\.search_traces\(return_type=\"list\"\)"):
        list(judgekit.read(path, on_error="raise"))


def test_spans_that_say_nothing_are_refused():
    with pytest.raises(TraceError, match=r"no model call.*autolog"):
        read(trace(span("CHAIN", "main", {"rows": [1, 2]}, 3, id="a")))


def test_a_payload_that_cannot_be_read_is_told_with_its_place():
    inputs = {"messages": [{"role": "user", "content": "Hi"}, {"role": "judge", "content": "x"}]}
    with pytest.raises(TraceError, match=r"data\.spans\[0\]\.attributes\.mlflow\.spanInputs: messages\[1\]\.role"):
        read(trace(span("CHAT_MODEL", "chat", inputs, None, id="a")))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["messages", "role", "content", "input", "contents", "parts"]), inner)
        ),
    )
)
def test_any_payload_is_read_or_refused(payload):
    document = trace(span("CHAT_MODEL", "chat", payload, payload, id="a"))
    with suppress(TraceError):
        assert read(document).trace.messages


def test_feedback_is_of_whom_its_source_says_and_code_by_the_name_of_a_judge_is_one():
    cases = [
        ("tone", "HUMAN", "human"),
        ("right", "LLM_JUDGE", "judge"),
        ("right", "AI_JUDGE", "judge"),
        ("right", "CODE", "benchmark"),
        ("tone", "CODE", "judge"),
        ("right", "SOURCE_TYPE_UNSPECIFIED", "unknown"),
        ("right", None, "unknown"),
        ("llm_verdict", None, "judge"),
    ]
    for name, source_type, source in cases:
        found = read(
            {**AGENT, "info": {**AGENT["info"], "assessments": [assessment(name, source_type, feedback={"value": 1})]}}
        )
        assert [(label.name, label.source) for label in found.trace.labels] == [(name, source)]

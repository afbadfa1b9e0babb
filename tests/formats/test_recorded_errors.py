"""The error that a recording ended with is the trace's `error`, in each format that records one."""

import json

from judgekit import read

ASK = {"role": "user", "content": "Where is my order?"}
SPAN = {"trace_id": "t", "start_time": 1, "end_time": 2}
RECORDS = {
    "openai-chat": {"messages": [ASK], "error": "Boom"},
    "openai-chat object": {"messages": [ASK], "error": {"type": "server", "message": "Boom"}},
    "openai-chat pair": {"request": {"messages": [ASK]}, "response": {"error": {"message": "Boom", "code": 500}}},
    "openai-responses pair": {
        "request": {"model": "m", "input": "Where is my order?"},
        "response": {"object": "response", "status": "failed", "error": {"message": "Boom"}, "output": []},
    },
    "openai batch": {
        "custom_id": "a",
        "body": {"messages": [ASK]},
        "response": {"status_code": 500, "body": {"error": {"message": "Boom"}}},
    },
    "anthropic pair": {
        "request": {"model": "claude", "max_tokens": 9, "messages": [ASK]},
        "response": {"type": "error", "error": {"type": "overloaded_error", "message": "Boom"}},
    },
    "row": {"input": "Where is my order?", "response": None, "reference": "r", "error": "Boom"},
    "otel": {
        **SPAN,
        "span_id": "1",
        "name": "chat",
        "status": {"code": "ERROR", "description": "Boom"},
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "q"}]}],
        },
    },
    "openinference": {
        **SPAN,
        "context": {"trace_id": "t", "span_id": "1"},
        "parent_id": None,
        "name": "llm",
        "status_code": "ERROR",
        "status_message": "Boom",
        "attributes": {
            "openinference.span.kind": "LLM",
            "llm.input_messages": [{"message.role": "user", "message.content": "q"}],
        },
    },
    "langfuse": {
        "id": "1",
        "traceId": "t",
        "type": "GENERATION",
        "name": "chat",
        "startTime": "2026-01-01T00:00:00Z",
        "input": [ASK],
        "output": None,
        "level": "ERROR",
        "statusMessage": "Boom",
    },
    "braintrust": {
        "id": "a",
        "span_id": "a",
        "root_span_id": "a",
        "span_parents": [],
        "span_attributes": {"name": "eval", "type": "eval"},
        "input": "Where is my order?",
        "error": "Boom",
        "scores": {},
    },
    "promptfoo": {
        "testIdx": 0,
        "promptIdx": 0,
        "prompt": {"raw": "Where is my order?", "label": "p"},
        "provider": {"id": "p"},
        "vars": {},
        "response": {"error": "Boom"},
        "error": "Boom",
        "failureReason": 2,
        "success": False,
    },
}


def test_the_error_that_a_record_ended_with_is_that_of_the_trace(tmp_path):
    path = tmp_path / "record.jsonl"
    for name, record in RECORDS.items():
        path.write_text(json.dumps(record))
        [sample] = read(path, on_error="raise")
        assert sample.trace.error == "Boom", name


def test_a_field_without_an_error_is_none(tmp_path):
    path = tmp_path / "record.jsonl"
    for error in [None, "", " ", False, 0, {}, [], "None", "null", "NaN"]:
        path.write_text(json.dumps({"messages": [ASK], "error": error}))
        assert next(iter(read(path))).trace.error is None, error


def test_an_assertion_that_failed_is_no_error_of_the_agent(tmp_path):
    path = tmp_path / "record.jsonl"
    failed = {"response": {"output": "5"}, "error": "Expected 4", "failureReason": 1}
    path.write_text(json.dumps({**RECORDS["promptfoo"], **failed}))
    assert next(iter(read(path))).trace.error is None


def test_of_several_attempts_the_last_one_counts(tmp_path):
    path = tmp_path / "spans.jsonl"
    answer = {"gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]}
    second = {**RECORDS["otel"], "span_id": "2", "start_time": 3, "end_time": 4, "status": {"code": "OK"}}
    second["attributes"] = {**RECORDS["otel"]["attributes"], **answer}
    path.write_text("\n".join(map(json.dumps, (RECORDS["otel"], second))))
    [sample] = read(path, on_error="raise")
    assert sample.trace.error is None


def test_the_error_stays_in_extra_as_it_was_recorded(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_text(json.dumps(RECORDS["openai-chat object"]))
    assert next(iter(read(path))).trace.extra["error"] == {"type": "server", "message": "Boom"}

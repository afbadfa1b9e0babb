"""Spans of OpenTelemetry's conventions and of related tracers."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.readers.otel import OTelReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.trace import Trace

READER = OTelReader()


def span(identity: str, attributes: dict, parent: str | None = None, *, events: tuple[dict, ...] = ()) -> dict:
    began = 1_767_225_600 + int(identity)
    fields = {
        "trace_id": "t",
        "span_id": identity,
        "parent_span_id": parent,
        "name": "x",
        "start_time": began,
        "end_time": began + 1,
    }
    return {**fields, "attributes": attributes, "events": list(events)}


def text(role: str, words: str) -> dict:
    return {"role": role, "parts": [{"type": "text", "content": words}]}


def chat(asked: list[dict], answered: list[dict], **beside: JsonValue) -> dict:
    messages = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(answered)}
    return {"gen_ai.operation.name": "chat", **messages, **beside}


def tool(name: str, **beside: JsonValue) -> dict:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **beside}


def one(document: JsonValue) -> Trace:
    assert READER.recognizes(document)
    (record,) = READER.records(document)
    return READER.sample(record, 0).trace


CALLS = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}],
    "finish_reason": "tool_call",
}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "12C"}]}
ASKED, DONE = text("user", "Weather?"), text("assistant", "12C")
DEFINITION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
TWO = [{**text("assistant", words), "finish_reason": "stop"} for words in ("A", "B")]
CALLED = {**CALLS, "finish_reason": "stop"}
CURRENT = [
    span("1", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "A", "gen_ai.conversation.id": "conv", "gen_ai.usage.input_tokens": 9}),
    span(
        "2",
        chat([ASKED], [CALLS]) | {
            "gen_ai.system_instructions": '[{"type": "text", "content": "Be brief"}]',
            "gen_ai.tool.definitions": [DEFINITION],
            "gen_ai.response.model": "gpt",
            "gen_ai.response.id": "r1",
            "gen_ai.response.finish_reasons": ["tool_call"],
            "gen_ai.usage.input_tokens": 5,
        },
        "1",
    ),
    span("3", tool("f", **{"gen_ai.tool.call.id": "c1", "error.type": "Timeout"}), "1"),
    span("4", chat([ASKED, CALLS, RESULT], [DONE]) | {"gen_ai.system_instructions": [{"type": "text", "content": "Be brief"}]}, "1"),
]  # fmt: skip


def test_the_current_convention_is_read_whole() -> None:
    made = one(CURRENT)
    assert made.id == "conv"
    assert made.messages == (
        SystemMessage("Be brief"),
        HumanMessage("Weather?"),
        AIMessage(
            tool_calls=[ToolCall("f", {"a": 1}, id="c1")],
            id="r1",
            agent="A",
            model="gpt",
            finish_reason="tool_call",
            usage=Usage(input_tokens=5),
            timestamp=datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC),
        ),
        ToolMessage("12C", tool_call_id="c1", is_error=True),
        AIMessage("12C", agent="A", timestamp=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)),
    )
    assert made.tools == (ToolDefinition("f", description="d", parameters={"type": "object"}),)
    assert made.usage == Usage(input_tokens=9)
    assert (made.started_at, made.ended_at) == (
        datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC),
    )
    assert made.metadata == {}


def log(name: str, body: JsonValue, **attributes: JsonValue) -> dict:
    return {
        "trace_id": "t",
        "span_id": "1",
        "event_name": name,
        "body": body,
        "attributes": attributes,
        "timestamp": 1_767_225_600,
    }


def body(**fields: JsonValue) -> dict:
    return {
        "kvlistValue": {"values": [{"key": name, "value": {"stringValue": value}} for name, value in fields.items()]}
    }


OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
PROMPT = {
    f"gen_ai.prompt.{n}.{name}": value for n in range(11) for name, value in (("role", "user"), ("content", f"m{n}"))
}
MODEL_CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}}
DIALECTS: dict[str, tuple[JsonValue, list[str]]] = {
    "details in an event": (
        span("1", {"gen_ai.operation.name": "chat"}, events=({"name": "gen_ai.client.inference.operation.details", "attributes": {
            "gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [CALLS]}},)),
        ["user Weather?", "assistant f{'a': 1}c1"],
    ),
    "details in a log": (
        log("gen_ai.client.inference.operation.details", None, **{"gen_ai.input.messages": json.dumps([ASKED]), "gen_ai.output.messages": json.dumps([DONE])}),
        ["user Weather?", "assistant 12C"],
    ),
    "events of a span": (
        span("1", {"gen_ai.system": "openai"}, events=(
            {"name": "gen_ai.system.message", "attributes": {"content": "Be brief"}},
            {"name": "gen_ai.user.message", "attributes": {"content": "Weather?"}},
            {"name": "gen_ai.assistant.message", "attributes": {"tool_calls": json.dumps([OPENAI_CALL])}},
            {"name": "gen_ai.tool.message", "attributes": {"id": "c1", "content": "12C"}},
            {"name": "gen_ai.choice", "attributes": {"index": 0, "finish_reason": "stop", "message": '{"content": "12C"}'}},
        )),
        ["system Be brief", "user Weather?", "assistant f{'a': 1}c1", "tool 12C", "assistant 12C"],
    ),
    "logs of a span": (
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"traceId": "t", "spanId": "1", "eventName": "gen_ai.user.message", "body": body(content="Weather?")},
            {"traceId": "t", "spanId": "1", "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}],
             "body": {"kvlistValue": {"values": [{"key": "message", "value": body(role="assistant", content="12C")}]}}},
        ]}]}]},
        ["user Weather?", "assistant 12C"],
    ),
    "lines of logs": (
        [log("gen_ai.user.message", {"content": "Weather?"}), log("gen_ai.choice", {"message": {"content": "12C"}, "finish_reason": "stop"})],
        ["user Weather?", "assistant 12C"],
    ),
    "events in an attribute": (
        span("1", {"gen_ai.operation.name": "chat", "events": json.dumps([
            {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?", "gen_ai.message.index": 0},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [OPENAI_CALL]}}])}),
        ["user Weather?", "assistant f{'a': 1}c1"],
    ),
    "blocks of Bedrock in events": (
        span("1", {"gen_ai.system": "strands-agents"}, events=(
            {"name": "gen_ai.user.message", "attributes": {"content": '[{"text": "Weather?"}]'}},
            {"name": "gen_ai.tool.message", "attributes": {"role": "tool", "content": '[{"toolResult": {"toolUseId": "c1", "status": "error", "content": [{"text": "12C"}]}}]'}},
            {"name": "gen_ai.choice", "attributes": {"finish_reason": "tool_use", "message": '[{"text": "Hm"}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}]'}},
        )),
        ["user Weather?", "tool 12C", "assistant Hm f{'a': 1}c1"],
    ),
    "traceloop, in numeric order": (
        span("1", {**PROMPT, "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls", "gen_ai.completion.0.tool_calls.0.id": "c1",
                   "gen_ai.completion.0.tool_calls.0.name": "f", "gen_ai.completion.0.tool_calls.0.arguments": '{"a": 1}'}),
        [*(f"user m{n}" for n in range(11)), "assistant f{'a': 1}c1"],
    ),
    "traceloop's parts as JSON": (
        span("1", {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": '[{"type": "text", "text": "Weather?"}]', "gen_ai.completion.0.content": "[{not JSON"}),
        ["user Weather?", "assistant [{not JSON"],
    ),
    "prompt and completion": (
        {"gen_ai.prompt": json.dumps([ASKED]), "gen_ai.completion": '{"text": "12C", "finish_reason": "stop"}'},
        ["user Weather?", "assistant 12C"],
    ),
    "prompt and completion as text in events": (
        span("1", {"gen_ai.system": "x"}, events=({"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": "Weather?"}}, {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": "12C"}})),
        ["user Weather?", "assistant 12C"],
    ),
    "ADK": (
        [span("1", {"gcp.vertex.agent.llm_request": json.dumps({"config": {"system_instruction": "Be brief"}, "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}]}),
                    "gcp.vertex.agent.llm_response": json.dumps({"content": {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "f", "args": {"a": 1}}}]}})}),
         span("2", tool("f", **{"gcp.vertex.agent.tool_call_args": '{"a": 1}', "gcp.vertex.agent.tool_response": '{"result": "12C"}'}))],
        ["system Be brief", "user Weather?", "assistant f{'a': 1}c1", "tool 12C"],
    ),
    "Vercel's AI SDK": (
        [span("1", {"ai.operationId": "ai.generateText", "ai.prompt": '{"system": "Be brief", "prompt": "Weather?"}', "ai.response.text": "12C"}),
         span("2", {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps([{"role": "system", "content": "Be brief"}, {"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]),
                    "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "f", "input": '{"a": 1}'}])}, "1"),
         span("3", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "f", "ai.toolCall.id": "c1", "ai.toolCall.args": '{"a": 1}', "ai.toolCall.result": '"12C"'}, "1"),
         span("4", {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps([{"role": "system", "content": "Be brief"}, {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
                    {"role": "assistant", "content": [MODEL_CALL]}, {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "f", "output": {"type": "text", "value": "12C"}}]}]), "ai.response.text": "12C"}, "1")],
        ["system Be brief", "user Weather?", "assistant f{'a': 1}c1", "tool 12C", "assistant 12C"],
    ),
    "Vercel's AI SDK, outer span alone": (
        span("1", {"ai.operationId": "ai.streamText", "ai.prompt": '{"messages": [{"role": "user", "content": "Weather?"}]}', "ai.response.text": "12C"}),
        ["user Weather?", "assistant 12C"],
    ),
    "Pydantic AI's whole conversation": (
        span("1", {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": json.dumps([ASKED, CALLS, RESULT, DONE])}),
        ["user Weather?", "assistant f{'a': 1}c1", "tool 12C", "assistant 12C"],
    ),
    "a tool alone": (tool("f", input='{"a": 1}', output="12C"), ["assistant f{'a': 1}None", "tool 12C"]),
    "messages alone": ([ASKED, CALLS, RESULT, DONE], ["user Weather?", "assistant f{'a': 1}c1", "tool 12C", "assistant 12C"]),
    "messages in a row": ({"id": "x", "messages": [ASKED, DONE]}, ["user Weather?", "assistant 12C"]),
}  # fmt: skip


def test_every_dialect_gives_the_same_messages() -> None:
    for document, expected in DIALECTS.values():
        made = one(document)
        said = []
        for message in made.messages:
            calls = [f"{call.name}{call.args}{call.id}" for call in getattr(message, "tool_calls", ())]
            said.append(" ".join(part for part in (message.role, message.text, *calls) if part))
        assert said == expected
        assert made.children == ()
        assert made.metadata.get("variants", []) == []


WRAPPED = [
    {"project": "shop", "spans": CURRENT},
    {"x": 1, "resourceSpans": [{"schemaUrl": "u1", "resource": {"attributes": [{"key": "host", "value": {"stringValue": "h"}}]},
        "scopeSpans": [{"schemaUrl": "u2", "scope": {"name": "lib", "version": "1"}, "spans": CURRENT}]}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "returned", "args", "result"),
    [
        ({"args": [], "kwargs": {"city": "Paris"}}, "sun", {"city": "Paris"}, "sun"),
        ({"args": [1], "kwargs": {"b": 2}}, {"a": 1}, {"args": [1], "b": 2}, '{"a": 1}'),
        (
            {"input_str": "{'city': 'Paris'}", "tags": [], "metadata": {}, "inputs": {"city": "Paris"}, "kwargs": {}},
            {"output": {"content": "sun", "type": "tool"}, "kwargs": {"name": "weather"}},
            {"city": "Paris"},
            "sun",
        ),
        (
            {"input_str": '{"city": "Paris"}', "inputs": None},
            {"output": {"lc": 1, "type": "constructor", "kwargs": {"content": "sun"}}, "kwargs": {}},
            {"city": "Paris"},
            "sun",
        ),
    ],
)
def test_tools_that_traceloop_wraps_are_calls_with_results(given, returned, args, result) -> None:
    request = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Weather?",
        "gen_ai.completion.0.content": "I look.",
    }
    wrapped = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "weather",
        "traceloop.entity.input": json.dumps(given),
        "traceloop.entity.output": json.dumps(returned),
    }
    trace = one([span("1", request), span("2", wrapped)])
    (call,) = [call for message in trace.messages if message.role == "assistant" for call in message.tool_calls]
    assert (call.name, call.args, trace.messages[-1].text) == ("weather", args, result)


def test_a_tool_span_without_contents_that_no_model_calls_is_told() -> None:
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {}}]}
    silent = [span("2", tool("f")), span("3", tool("g")), span("4", tool("g")), span("5", tool("h"))]
    trace = one([span("1", chat([text("user", "Hi")], [call])), *silent])
    (warning,) = trace.warnings
    assert warning.message == "tool calls without arguments and results that no message makes, found 3: g, g, h"


OFF = [
    *([span("1", {"gen_ai.operation.name": name, "gen_ai.request.model": "m"})] for name in ("chat", "invoke_agent")),
    [span("1", tool("f", **{"gen_ai.tool.call.id": "c"}))],
    [span("1", {"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"})],
    [span("1", tool("f", **{"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}))],
    [log("gen_ai.user.message", {}), log("gen_ai.choice", {"index": 0, "message": {}})],
    [span("1", chat([{"role": "user", "parts": [{"type": "text"}]}], []))],
]


def test_content_that_was_not_captured_is_an_error_that_says_so() -> None:
    for document in OFF:
        assert READER.recognizes(document)
        with pytest.raises(TraceError, match=r"content capture (was off|enabled)"):
            READER.sample(READER.records(document)[0], 0)


def test_calls_without_a_span_around_them_are_one_conversation_if_they_repeat_each_other() -> None:
    def alone(identity: str, asked: list[dict], answered: list[dict], **beside: JsonValue) -> dict:
        return {**span(identity, chat(asked, answered, **beside)), "trace_id": f"t{identity}"}

    calls = [
        alone("3", [ASKED, CALLS, RESULT, DONE, text("user", "Thanks")], [text("assistant", "Bye")]),
        alone("1", [ASKED], [CALLS]),
        alone("2", [ASKED, CALLS, RESULT], [DONE]),
        alone("4", [ASKED], [text("assistant", "Another")]),
        alone("5", [ASKED, text("assistant", "Another")], [DONE], **{"session.id": "s"}),
    ]
    made = [READER.sample(record, 0).trace for record in READER.records(calls)]
    assert [(one.id, len(one.messages)) for one in made] == [("t1", 6), ("t4", 2), ("s", 3)]


@pytest.mark.parametrize(
    ("document", "expected"),
    {
        "texts": (span("1", chat([ASKED], TWO)), ["user Weather?", "assistant A"]),
        "calls": (span("1", chat([ASKED], [CALLS, CALLED], **{"gen_ai.request.choice.count": 2})), ["user Weather?", "assistant f"]),
        "reasons": (span("1", chat([ASKED], [TWO[0], CALLED], **{"gen_ai.response.finish_reasons": ["a", "b"]})), ["user Weather?", "assistant A"]),
        "one answer in pieces": (span("1", chat([ASKED], [TWO[0], CALLED])), ["user Weather?", "assistant A", "assistant f"]),
        "events": (
            [log("gen_ai.user.message", {"content": "Weather?"}), *(log("gen_ai.choice", {"index": n, "message": {"tool_calls": [OPENAI_CALL]}}) for n in range(2))],
            ["user Weather?", "assistant f"],
        ),
        "traceloop": (
            span("1", {"gen_ai.prompt.0.content": "Weather?", **{f"gen_ai.completion.{n}.{key}": value for n in range(2) for key, value in (("content", f"A{n}"), ("finish_reason", "stop"))}}),
            ["user Weather?", "assistant A0"],
        ),
    }.values(),
)  # fmt: skip
def test_of_several_choices_the_first_is_read(document: JsonValue, expected: list[str]) -> None:
    made = one(document)
    calls = [",".join(call.name for call in getattr(message, "tool_calls", ())) for message in made.messages]
    assert [f"{one.role} {one.text or call}" for one, call in zip(made.messages, calls, strict=True)] == expected
    whole = len(expected) == 3
    assert [one.message.partition(";")[0] for one in made.warnings] == ([] if whole else ["2 choices"])
    assert len(made.messages[-1].extra.get("choices", [])) == (0 if whole else 1)


def test_a_reason_that_is_no_text_is_kept_as_it_stands() -> None:
    asked = {"name": "gen_ai.user.message", "attributes": {"content": "q"}}
    event = {"name": "gen_ai.choice", "attributes": {"message": '[{"text": "hi"}]', "finish_reason": []}}
    made = one(span("1", {"gen_ai.system": "x"}, events=(asked, event)))
    assert (made.messages[1].text, len(made.warnings)) == ("hi", 1)


def test_of_several_reasons_none_is_that_of_a_single_answer() -> None:
    reasons: JsonValue = ["length", "stop"]
    made = one([span("1", chat([ASKED], [DONE], **{"gen_ai.response.finish_reasons": reasons}))])
    assert made.messages[-1] == AIMessage("12C", timestamp=made.messages[-1].timestamp)
    assert "gen_ai.response.finish_reasons" in str(made.extra)


def test_evaluations_in_events_are_labels_of_unknown_source_unless_a_mark_or_their_name_tells() -> None:
    def verdict(**fields: JsonValue) -> dict:
        attributes = {f"gen_ai.evaluation.{name.replace('__', '.')}": value for name, value in fields.items()}
        return {"name": "gen_ai.evaluation.result", "attributes": attributes}

    def judged(*, mark: bool) -> dict[str, JsonValue]:
        return {"judgekit.judged": mark, "gen_ai.evaluation.score.value": 1}

    events = (
        verdict(name="kind", score__value=0.5, score__label="fair", explanation="polite"),
        verdict(name="safe", score__label="pass"),
        verdict(score__value=1),
        {"name": "gen_ai.evaluation.result", "attributes": {**judged(mark=True), "gen_ai.evaluation.name": "goal"}},
        {"name": "gen_ai.evaluation.result", "attributes": {**judged(mark=False), "gen_ai.evaluation.name": "bleu"}},
        verdict(name="faithfulness", score__value=1),
    )
    made = one([span("1", chat([ASKED], [DONE]), events=events)])
    assert made.labels == (
        Label("kind", 0.5, reason="polite"),
        Label("safe", "pass"),
        Label("goal", 1, source="judge"),
        Label("bleu", 1, source="benchmark"),
        Label("faithfulness", 1, source="judge"),
    )
    (left,) = made.extra["spans"]
    assert [event["attributes"] for event in left["events"] if "attributes" in event] == [
        {"gen_ai.evaluation.score.label": "fair"},
        {"gen_ai.evaluation.score.value": 1},
        {"judgekit.judged": True},
        {"judgekit.judged": False},
    ]


def test_traces_in_which_agents_are_only_made_are_left_out() -> None:
    made = {**span("1", {"gen_ai.operation.name": "create_agent"}), "trace_id": "other"}
    assert len(READER.records([made, *CURRENT])) == 1
    assert len(READER.records([made])) == 1


def test_lines_of_spans_are_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in CURRENT))
    (sample,) = read(path)
    assert sample.trace.source is not None
    assert (sample.trace.source.format, len(sample.trace.messages)) == ("otel", 5)


def test_a_recording_without_content_is_refused(shared_data: Path) -> None:
    with pytest.raises(TraceError, match="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"):
        list(read(shared_data / "traces" / "otel" / "autogen_live_spans.json", on_error="raise"))


def test_calls_that_hold_nothing_but_system_messages_are_not_folded():
    def call(trace: str, role: str) -> dict:
        said = [{"role": role, "parts": [{"type": "text", "content": "x"}]}]
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said, "gen_ai.output.messages": said}
        return {"trace_id": trace, "span_id": "1", "attributes": attributes}

    assert len(list(READER.records([call("a", "system"), call("b", "user")]))) == 2


@pytest.mark.parametrize("name", ["ai.prompt.messages", "gcp.vertex.agent.llm_request", "gen_ai.input.messages"])
def test_an_attribute_that_was_cut_off_is_refused_with_the_reason(name):
    other = {"gen_ai.input.messages": "gen_ai.operation.name", "ai.prompt.messages": "ai.operationId"}
    attributes = {
        name: '[{"role": "us',
        other.get(name, "gcp.vertex.agent.llm_response"): "{}" if "gcp" in name else "ai.generateText.doGenerate",
    }
    (record,) = READER.records([{"trace_id": "a", "span_id": "1", "attributes": attributes}])
    with pytest.raises(TraceError, match="OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"):
        READER.sample(record, 0)


def test_an_event_whose_name_is_no_text_is_no_event():
    events = json.dumps([{"event.name": ["x"]}, {"event.name": "gen_ai.user.message", "content": "Hi"}])
    attributes = {"gen_ai.operation.name": "chat", "events": events}
    (record,) = READER.records([{"trace_id": "a", "span_id": "1", "attributes": attributes}])
    assert [message.text for message in READER.sample(record, 0).trace.messages] == ["Hi"]


def test_nothing_is_forgotten_and_nothing_crashes(intact) -> None:
    documents = (document for document, _ in DIALECTS.values())
    intact(READER, CURRENT, span("1", chat([ASKED], TWO)), *WRAPPED, *documents, most=40)

"""Messages that a distribution of OpenTelemetry moves from spans into log records."""

import json
import re
from pathlib import Path

import pytest

from judgekit import read
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.span_exports import holds_moved_messages

USER = {"role": "user", "content": "Weather in Málaga?"}
SYSTEM, ANSWER = {"role": "system", "content": "Be brief"}, {"role": "assistant", "content": "It is 12C"}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "12C"}
SILENT = {"role": "assistant", "call": "c1"}
SAYING = {"role": "assistant", "content": "Let me see", "call": "c1"}
TOOL_USE = '[{"text": "Hm"}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}]'
TOOL_RESULT = '[{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "12C"}]}}]'
_WHOLE = re.compile(r"(input|output)\.value|traceloop\.entity\.(input|output)|gen_ai\.(input|output)\.messages")
_CONTENT = re.compile(r"(llm\.(?:in|out)put_messages|gen_ai\.(?:prompt|completion))\.(\d+)\.(?:message\.)?content")
_DEFAULTS = {"llm.input_messages": "user", "llm.output_messages": "assistant"}


def span(identity, attributes, parent="a", *, start=1, events=()):
    return {
        "traceId": "t",
        "spanId": identity,
        **({"parentSpanId": parent} if parent != identity else {}),
        "name": attributes.get("tool.name", "x"),
        "startTimeUnixNano": (1_795_000_000 + start) * 10**9,
        "endTimeUnixNano": (1_795_000_000 + start + (20 if parent == identity else 1)) * 10**9,
        "attributes": attributes,
        "events": [{"name": f"gen_ai.{name}", "attributes": values} for name, values in events],
    }


def moved(spans, *, by_role=False):
    """Return spans and log records as the distribution writes them. Its versions assign contents to different roles."""
    left, logs = [], []
    for one in spans:
        attributes = one["attributes"]
        said = []
        for name, value in attributes.items():
            if match := _WHOLE.fullmatch(name):
                said.append(("user" if "input" in match[0] else "assistant", "", value))
        said += [(_role(event), "", event["attributes"]) for event in one["events"]]
        contents = [(match, value) for name, value in attributes.items() if (match := _CONTENT.fullmatch(name))]
        for match, value in sorted(contents, key=lambda content: (content[0][1], int(content[0][2]))):
            role = (
                attributes[match[0].removesuffix("content") + "role"] if by_role else _DEFAULTS.get(match[1], "unknown")
            )
            said.append((role, match[1], value))
        sides = {"input": [], "output": []}
        for role, family, value in said:
            answered = role == "assistant" or (role == "unknown" and "completion" in family)
            sides["output" if answered else "input"].append({"role": role, "content": value})
        kept = {name: value for name, value in attributes.items() if not _WHOLE.fullmatch(name)}
        kept = {name: value for name, value in kept.items() if not _CONTENT.fullmatch(name)}
        left.append({**one, "attributes": kept, "events": []})
        if any(sides.values()):
            log = {"timeUnixNano": one["endTimeUnixNano"], "severityNumber": 9, "traceId": "t", "spanId": one["spanId"]}
            body = {side: {"messages": messages} for side, messages in sides.items() if messages}
            named = {"event.name": f"{KINDS.get(next(iter(attributes)), 'strands')}.instrumentation.x"}
            logs.append({**log, "body": body, "attributes": named})
    return left, logs


KINDS = {"openinference.span.kind": "openinference"}


def _role(event):
    kind = event["name"].split(".")[1]
    return "assistant" if kind == "choice" else kind


def flat(prefix, *messages, inner="message."):
    made = {}
    for number, message in enumerate(messages):
        place = f"{prefix}.{number}.{inner}"
        made |= {f"{place}{name}": value for name, value in message.items() if name != "call"}
        if "call" in message and inner:
            made[f"{place}tool_calls.0.tool_call.id"] = message["call"]
            made[f"{place}tool_calls.0.tool_call.function.name"] = "f"
            made[f"{place}tool_calls.0.tool_call.function.arguments"] = '{"a": 1}'
        elif "call" in message:
            call = {"id": message["call"], "name": "f", "arguments": '{"a": 1}'}
            made |= {f"{place}tool_calls.0.{name}": value for name, value in call.items()}
    return made


def openinference(called, *, whole=True):
    def llm(identity, asked, answer, start):
        values = {"input.value": json.dumps({"messages": asked}), "output.value": json.dumps(answer)} if whole else {}
        messages = flat("llm.input_messages", *asked) | flat("llm.output_messages", answer)
        return span(identity, {"openinference.span.kind": "LLM", **values, **messages}, start=start)

    agent = {"openinference.span.kind": "AGENT", "input.value": USER["content"], "output.value": "It is 12C"}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "f", "input.value": '{"a": 1}', "output.value": "12C"}
    return [
        span("a", agent),
        llm("b", [SYSTEM, USER], called, 2),
        span("c", tool, start=4),
        llm("d", [SYSTEM, USER, called, RESULT], ANSWER, 6),
    ]


def chat(identity, start, *events):
    return span(identity, {"gen_ai.operation.name": "chat"}, start=start, events=events)


ASKED = ("user.message", {"content": json.dumps([{"text": USER["content"]}])})
TRACELOOP = [
    span("a", {"traceloop.span.kind": "workflow", "traceloop.entity.input": "{}", "traceloop.entity.output": "x"}),
    *(
        span(
            identity, flat("gen_ai.prompt", *asked, inner="") | flat("gen_ai.completion", answer, inner=""), start=start
        )
        for identity, start, asked, answer in (
            ("b", 2, [SYSTEM, USER], SILENT),
            ("c", 4, [SYSTEM, USER, SILENT, RESULT], ANSWER),
        )
    ),
]
STRANDS = [
    span("a", {"gen_ai.operation.name": "invoke_agent"}, events=[ASKED, ("choice", {"message": "It is 12C"})]),
    chat("b", 2, ASKED, ("choice", {"message": TOOL_USE, "finish_reason": "tool_use"})),
    chat(
        *("c", 4, ASKED, ("assistant.message", {"content": TOOL_USE}), ("tool.message", {"content": TOOL_RESULT})),
        ("choice", {"message": '[{"text": "It is 12C"}]', "finish_reason": "end_turn"}),
    ),
]
PARTS = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]),
    "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "12C"}]}]),
}
SPANS = {
    "openinference": openinference(SILENT),
    "openinference, calls with text": openinference(SAYING),
    "openinference, no requests": openinference(SILENT, whole=False),
    "openinference, no requests and calls with text": openinference(SAYING, whole=False),
    "traceloop": TRACELOOP,
    "strands": STRANDS,
    "parts": [span("a", PARTS)],
}


def told(path: Path):
    (sample,) = read(path, on_error="raise")
    assert not sample.trace.warnings
    assert not sample.trace.children
    return [
        (one.role, one.text, [(call.id, call.name, call.args) for call in getattr(one, "tool_calls", ())])
        for one in sample.trace.messages
    ]


def written(path, records):
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


REFUSED = r"moved messages of spans into log records, .* found \d+; record the spans with another exporter"


def test_log_records_with_messages_of_spans_are_refused(tmp_path):
    """With their spans, within them, and alone."""
    for by_role in [False, True]:
        for spans in SPANS.values():
            assert len(told(written(tmp_path / "spans.jsonl", spans))) > 1
            left, logs = moved(spans, by_role=by_role)
            attached = [
                {
                    **one,
                    "span_events": [
                        {"body": log["body"], "event_name": "x"} for log in logs if log["spanId"] == one["spanId"]
                    ],
                }
                for one in left
            ]
            for records in ([*logs, *left], attached, logs):
                with pytest.raises(TraceError, match=REFUSED):
                    list(read(written(tmp_path / "both.jsonl", records), on_error="raise"))


def test_such_log_records_have_the_format_of_their_spans():
    for spans, name in ((openinference(SILENT), "openinference"), (STRANDS, "otel")):
        assert detect(moved(spans)[1]).name == name


def test_spans_without_their_log_records_are_refused_or_told(tmp_path):
    for spans in (openinference(SILENT), TRACELOOP):
        (sample,) = read(written(tmp_path / "spans.jsonl", moved(spans)[0]), on_error="raise")
        assert any(
            re.search(r"without content, found 2 of 2: .*cat spans", one.message) for one in sample.trace.warnings
        )
    with pytest.raises(TraceError, match=r"no messages.*cat spans"):
        list(read(written(tmp_path / "spans.jsonl", moved(STRANDS)[0]), on_error="raise"))


@pytest.mark.parametrize(
    "body", [None, "x", {}, {"input": None}, {"input": {"messages": "x"}}, {"output": {"messages": [1]}}]
)
def test_other_bodies_hold_no_messages(body):
    assert not holds_moved_messages(body)

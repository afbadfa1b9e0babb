import json
import re
from collections import Counter
from datetime import UTC, datetime

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.adk import ADKReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage, Usage

READER = ADKReader()


def event(author, *parts, **more):
    content = {"content": {"role": "user" if author == "user" else "model", "parts": list(parts)}} if parts else {}
    return {"author": author, "invocation_id": "i1", **content, **more}


SESSION = {
    "id": "s1",
    "app_name": "shop",
    "user_id": "u1",
    "state": {"cart": ["tree"]},
    "events": [
        event("user", {"text": "A tree?"}, id="e1", timestamp=100.5),
        event("shop", actions={"state_delta": {"cart": []}}, id="e2"),
        event(
            "shop",
            {"text": "Let me ask."},
            {"function_call": {"name": "transfer_to_agent", "args": {"agent_name": "trees"}, "id": "c1"}},
            id="e3",
            model_version="gemini-3",
            finish_reason="STOP",
            usage_metadata={"prompt_token_count": 3, "candidates_token_count": 2},
        ),
        {
            **event("shop", id="e4", actions={"transfer_to_agent": "trees"}),
            "content": {
                "role": "user",
                "parts": [
                    {"function_response": {"name": "transfer_to_agent", "id": "c1", "response": {"result": None}}}
                ],
            },
        },
        event("trees", {"text": "An oak."}, id="e5", branch="shop.trees", turn_complete=True),
    ],
    "last_update_time": 200.0,
}


def test_a_session_is_read_whole():
    assert detect(SESSION).name == "adk"
    [record] = READER.records(SESSION)
    sample = READER.sample(record, 0)
    trace = sample.trace
    assert (sample.id, trace.ended_at, trace.warnings) == ("s1", datetime.fromtimestamp(200, UTC), ())
    about = {"invocation_id": "i1"}
    assert trace.messages == (
        HumanMessage("A tree?", id="e1", timestamp=datetime.fromtimestamp(100.5, UTC), extra=about),
        AIMessage(
            "Let me ask.",
            id="e3",
            tool_calls=[ToolCall("transfer_to_agent", {"agent_name": "trees"}, id="c1")],
            agent="shop",
            model="gemini-3",
            finish_reason="STOP",
            usage=Usage(input_tokens=3, output_tokens=2),
            extra=about,
        ),
        ToolMessage(
            '{"result": null}',
            id="e4",
            name="transfer_to_agent",
            tool_call_id="c1",
            extra={**about, "author": "shop", "actions": {"transfer_to_agent": "trees"}},
        ),
        AIMessage("An oak.", id="e5", agent="trees", extra={**about, "branch": "shop.trees", "turn_complete": True}),
    )
    assert trace.extra["events"] == [{}, {**SESSION["events"][1]}, {}, {}, {}]
    assert trace.extra["state"] == {"cart": ["tree"]}


@pytest.mark.parametrize(
    "document",
    [
        SESSION["events"],
        {"id": "s1", "appName": "shop", "userId": "u1", "events": [{"author": "user", "invocationId": "i", "content": {"parts": [{"text": "x"}]}}]},
        {"context": {}, "events": SESSION["events"], "past_events": []},
        [SESSION, SESSION],
    ],
    ids=["events", "camelCase", "old", "list"],
)  # fmt: skip
def test_other_layouts_are_recognized(document):
    assert detect(document).name == "adk"
    for record in READER.records(document):
        assert READER.sample(record, 0).trace.messages[0].role == "user"


def test_events_in_lines_are_one_session_and_sessions_in_lines_one_each(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, SESSION["events"])))
    assert [len(sample.trace.messages) for sample in read(path, on_error="raise")] == [4]
    path.write_text("\n".join(map(json.dumps, [SESSION, {**SESSION, "id": "s2"}, SESSION["events"]])))
    assert [sample.id for sample in read(path, on_error="raise")] == ["s1", "s2", "2"]


def test_parts_of_a_streamed_message_are_not_doubled():
    parts = [event("shop", {"text": text}, partial=True) for text in ("An ", "oak")]
    session = {"events": [event("user", {"text": "x"}), *parts, event("shop", {"text": "An oak"}, partial=False)]}
    trace = READER.sample(session, 0).trace
    assert [message.text for message in trace.messages] == ["x", "An oak"]
    assert [warning.path for warning in trace.warnings] == ["events[1].content", "events[2].content"]
    cut = READER.sample({"events": session["events"][:-1]}, 0).trace
    assert [message.text for message in cut.messages] == ["x", "An ", "oak"]
    assert len(cut.warnings) == 2


def test_what_was_spoken_is_read_from_its_transcript():
    session = {
        "events": [
            event("user", input_transcription={"text": "Hi", "finished": True}),
            event("shop", output_transcription={"text": "Hel"}, partial=True),
            event("shop", output_transcription={"text": "Hello", "finished": True}),
        ]
    }
    assert [(message.role, message.text) for message in READER.sample(session, 0).trace.messages] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
    ]


def test_failures_and_rewinding_are_told():
    session = {
        "events": [
            event("user", {"text": "x"}),
            event("shop", error_code="503", error_message="down"),
            event("user", actions={"rewind_before_invocation_id": "i1"}),
        ]
    }
    trace = READER.sample(session, 0).trace
    assert [(warning.path, warning.message[:20]) for warning in trace.warnings] == [
        ("events[1]", "the agent failed her"),
        ("events[2]", "the session was rewo"),
    ]
    assert trace.extra["events"][1]["error_message"] == "down"


def test_the_logs_of_requests_in_old_sessions_are_kept_with_a_warning(shared_data):
    path = shared_data / "traces/adk/context_update_test_successful_test.session.json"
    trace = next(read(path, on_error="raise")).trace
    assert trace.extra["event_logs"] == json.loads(path.read_text())["event_logs"]
    assert [warning.path for warning in trace.warnings] == ["event_logs"]
    assert "(instructions, tools and token counts) are not read" in trace.warnings[0].message


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"events": [{"author": "user", "content": "x"}]}, "events[0].content: expected an object, found 'x'"),
        ({"events": [event("user", {"text": 5})]}, "events[0].content.parts[0].text: expected a string, found 5"),
        ({"events": [event("shop")]}, "events: the session contains no messages"),
        (5, "the record: expected an object"),
    ],
)
def test_an_error_says_where_and_what_was_found(record, problem):
    with pytest.raises(TraceError, match=re.escape(problem)):
        READER.sample(record, 0)


PINNED = {
    "context_update_test_successful_test": {
        "user": 2,
        "assistant": 3,
        "tool": 1,
        "calls": 1,
        "warnings": 1,
    },
    "customer-service_123": {"user": 11, "assistant": 17, "tool": 6, "calls": 6},
    "flow_complex_spark_sample": {"user": 1, "assistant": 6, "tool": 2, "calls": 2, "warnings": 1},
    "text_search_floral_dress": {"user": 8, "assistant": 20, "tool": 12, "calls": 12, "stateful": 10},
}
"""Counts from the raw files: events by author, and events without content. The requests of a log repeat the events."""


@pytest.mark.parametrize("name", PINNED)
def test_recorded_sessions_are_read_without_a_loss(name, shared_data, intact):
    path = shared_data / f"traces/adk/{name}.session.json"
    [sample] = read(path, on_error="raise")
    counts = Counter(message.role for message in sample.trace.messages)
    counts["calls"] = len(sample.trace.tool_calls())
    counts["warnings"] = len(sample.trace.warnings)
    counts["stateful"] = sum("id" in event for event in sample.trace.extra.get("events", ()))
    assert sample.trace.source.format == "adk"
    assert +counts == PINNED[name]
    intact(READER, SESSION, json.loads(path.read_text()), most=40)


def test_a_recorded_session_without_events_is_an_error(shared_data):
    with pytest.raises(TraceError, match="the session contains no messages"):
        list(read(shared_data / "traces/adk/trip_planner_agent_initial.session.json", on_error="raise"))


def test_a_time_of_0_is_none():
    [record] = READER.records(
        {**SESSION, "events": [event("user", {"text": "Hi"}, timestamp=0)], "last_update_time": 0}
    )
    trace = READER.sample(record, 0).trace
    assert (trace.messages[0].timestamp, trace.ended_at) == (None, None)


def test_a_call_of_the_form_of_an_agent_that_is_a_tool_is_a_warning():
    def called(*args):
        parts = [{"function_call": {"name": "research\n", "args": arg}} for arg in args]
        session = {**SESSION, "events": [event("user", {"text": "Hi"}), event("shop", *parts)]}
        return [warning.message for warning in READER.sample(session, 0).trace.warnings]

    warning = r'"research\n" is called as agents are: if it is one, its own calls and messages are not recorded'
    assert called({"request": "Find trees."}, {"request": "More."}) == [warning]
    assert called({"request": 1}, {"request": "a", "limit": 2}, {}) == []

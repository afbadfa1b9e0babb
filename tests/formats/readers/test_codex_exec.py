"""Output of ``codex exec --json``."""

import json

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.codex_exec import CodexExecReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, MediaPart, OtherPart, ReasoningPart, ToolCall, ToolMessage, Usage

READER = CodexExecReader()


def item(event: str, identity: str, kind: str, **fields: object) -> dict:
    return {"type": f"item.{event}", "item": {"id": identity, "type": kind, **fields}}


def command(event: str, identity: str, output: str = "", code: int | None = None, status: str = "completed") -> dict:
    fields = {"command": f"bash -lc {identity}", "aggregated_output": output, "exit_code": code, "status": status}
    return item(event, identity, "command_execution", **fields)


STARTED = {"type": "thread.started", "thread_id": "0199"}
USAGE = {"input_tokens": 90, "cached_input_tokens": 20, "output_tokens": 5, "reasoning_output_tokens": 3}
ENDED = {"type": "turn.completed", "usage": USAGE}
TODO = [{"text": "Look", "completed": False}, {"text": "Fix", "completed": False}]
DONE = [{**one, "completed": True} for one in TODO]
PARTS = [{"type": "text", "text": "It rains"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]
STREAM = [
    STARTED,
    {"type": "turn.started"},
    item("completed", "item_0", "reasoning", text="**Looking**"),
    item("started", "item_1", "todo_list", items=TODO),
    command("started", "item_2", status="in_progress"),
    command("started", "item_3", status="in_progress"),
    command("completed", "item_3", "a.py\n", 0),
    command("completed", "item_2", "no such file", 2, "failed"),
    item("updated", "item_1", "todo_list", items=DONE),
    item("completed", "item_4", "file_change", changes=[{"path": "a.py", "kind": "update"}], status="completed"),
    item(
        "started",
        "item_5",
        "mcp_tool_call",
        server="w",
        tool="weather",
        arguments={"city": "Paris"},
        status="in_progress",
    ),
    item(
        *("completed", "item_5", "mcp_tool_call"),
        server="w",
        tool="weather",
        arguments={"city": "Paris"},
        status="completed",
        error=None,
        result={"content": PARTS, "structured_content": None},
    ),
    item(
        *("completed", "item_6", "mcp_tool_call"),
        server="w",
        tool="weather",
        arguments=None,
        status="failed",
        error={"message": "no city"},
    ),
    item("completed", "item_7", "web_search", query="rain", action={"type": "search", "query": "rain"}),
    item("completed", "item_8", "error", message="a model is deprecated"),
    item("completed", "item_9", "agent_message", text="Take an umbrella."),
    item("completed", "item_1", "todo_list", items=DONE),
    ENDED,
]


def trace(*rows: object):
    return READER.sample(list(rows), 0).trace


def told(*rows: object) -> list[str]:
    return [warning.message for warning in trace(*rows).warnings]


def test_a_command_that_exits_with_an_error_failed_whatever_its_status():
    thread = trace(STARTED, *(command("completed", f"item_{code}", "x", code) for code in (0, 1)), ENDED)
    assert [message.is_error for message in thread.messages if isinstance(message, ToolMessage)] == [False, True]


def test_a_turn_that_failed_ends_no_thread_that_goes_on():
    failed = {"type": "turn.failed", "error": {"message": "overloaded"}}
    rows = [STARTED, {"type": "turn.started"}, item("completed", "item_0", "agent_message", text="Hm"), failed]
    assert trace(*rows).termination == "overloaded"
    assert trace(*rows, {"type": "turn.started"}).termination is None


def test_a_stream_in_lines_is_one_conversation(tmp_path, no_question):
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, STREAM)))
    [sample] = read(path, on_error="raise")
    thread = sample.trace
    assert (sample.id, thread.source.format, thread.termination) == ("0199", "codex-exec", None)
    assert [(message.role, message.text) for message in thread.messages] == [
        ("assistant", ""),
        ("tool", "no such file"),
        ("assistant", ""),
        ("tool", "a.py\n"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", ""),
        ("tool", "It rains"),
        ("assistant", ""),
        ("tool", "no city"),
        ("assistant", "Take an umbrella."),
    ]
    assert thread.messages[0] == AIMessage(
        [ReasoningPart("**Looking**", extra={"id": "item_0"})],
        tool_calls=[
            ToolCall("todo_list", {"items": DONE}, id="item_1"),
            ToolCall(
                "command_execution",
                {"command": "bash -lc item_2"},
                id="item_2",
                extra={"exit_code": 2, "status": "failed"},
            ),
        ],
    )
    assert [(thread.call.name, thread.call.args) for thread in thread.tool_calls()][2:] == [
        ("command_execution", {"command": "bash -lc item_3"}),
        ("file_change", {"changes": [{"path": "a.py", "kind": "update"}]}),
        ("weather", {"city": "Paris"}),
        ("weather", {}),
        ("web_search", {"query": "rain", "action": {"type": "search", "query": "rain"}}),
    ]
    results = [message for message in thread.messages if message.role == "tool"]
    assert [(one.name, one.tool_call_id, one.is_error) for one in results] == [
        ("command_execution", "item_2", True),
        ("command_execution", "item_3", False),
        ("file_change", "item_4", False),
        ("weather", "item_5", False),
        ("weather", "item_6", True),
    ]
    assert results[3].content[1] == MediaPart(
        kind="image", data="AA==", extra={"type": "image", "mimeType": "image/png"}
    )
    assert thread.usage == Usage(input_tokens=90, output_tokens=5, cached_tokens=20, reasoning_tokens=3)
    *warnings, last = thread.warnings
    assert last == no_question
    assert [warning.message for warning in warnings] == [
        "an error: 'a model is deprecated'",
        "earlier versions of updated items, dropped, found 1",
    ]


def test_nothing_but_earlier_states_is_forgotten(forgotten):
    earlier = tuple(
        f"[{index}]." for index, row in enumerate(STREAM) if row["type"] in ("item.started", "item.updated")
    )
    assert [index for index in forgotten(READER, STREAM) if not index.startswith(earlier)] == []


def test_the_threads_of_a_file_are_conversations_and_a_resumed_one_goes_on(tmp_path):
    def run(thread: str, text: str) -> list[dict]:
        said = item("completed", "item_0", "agent_message", text=text)
        return [{"type": "thread.started", "thread_id": thread}, {"type": "turn.started"}, said, ENDED]

    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, [*run("a", "1"), *run("a", "2"), *run("b", "3")])))
    first, second = read(path, on_error="raise")
    assert [(one.id, [message.text for message in one.trace.messages]) for one in (first, second)] == [
        ("a", ["1", "2"]),
        ("b", ["3"]),
    ]
    assert (first.trace.usage, second.trace.usage.output_tokens) == (None, 5)
    assert (
        first.trace.warnings[0].message
        == "token counts of turns, which may include earlier turns, kept in extra, found 2"
    )
    assert first.trace.extra["rows"][1] == {"type": "turn.completed", "usage": USAGE}


REPLY = item("completed", "item_0", "agent_message", text="Hm")
RECONNECTING = {"type": "error", "message": "Reconnecting... 1/5"}


@pytest.mark.parametrize(
    ("rows", "termination", "warned"),
    [
        ([{"type": "turn.started"}, RECONNECTING, REPLY, ENDED], None, ["an error: 'Reconnecting... 1/5'"]),
        (
            [{"type": "turn.started"}, REPLY, {"type": "turn.failed", "error": {"message": "no tokens"}}],
            "no tokens",
            [],
        ),
        (
            [{"type": "turn.started"}, REPLY, RECONNECTING],
            "Reconnecting... 1/5",
            ["an error: 'Reconnecting... 1/5'", "the stream ends before the last turn is complete"],
        ),
    ],
)
def test_how_a_turn_ends_is_the_termination(rows, termination, warned):
    assert (trace(*rows).termination, told(*rows)[:-1]) == (termination, warned)


@pytest.mark.parametrize(
    ("output", "results"), [("", []), ("half", [ToolMessage("half", tool_call_id="i", name="command_execution")])]
)
def test_a_command_that_did_not_end_is_a_call_and_what_it_printed_is_its_result(output, results):
    row = command("updated", "i", output, status="in_progress")
    call, *rest = trace(row).messages
    assert (call.tool_calls[0].name, rest) == ("command_execution", results)
    assert "a call that did not finish" in told(row)


def test_a_call_to_other_agents_is_named_by_its_tool():
    fields = {"prompt": "Look", "receiver_thread_ids": ["t"], "agents_states": {"t": {"message": "Found"}}}
    row = item(
        "completed", "i", "collab_tool_call", tool="spawn_agent", sender_thread_id="s", status="completed", **fields
    )
    call, result = trace(row).messages
    assert (call.tool_calls[0].name, call.tool_calls[0].args["prompt"]) == ("spawn_agent", "Look")
    assert result.text == '{"t": {"message": "Found"}}'


def test_unknown_kinds_are_kept_and_told():
    rows = [item("completed", "i", "dream", text="sheep"), {"type": "turn.paused", "why": "night"}, "x"]
    thread = trace(*rows)
    assert thread.messages == (AIMessage([OtherPart({"id": "i", "type": "dream", "text": "sheep"})]),)
    assert thread.extra == {"rows": [{"type": "turn.paused", "why": "night"}]}
    assert told(*rows)[:3] == [
        "unknown event type turn.paused, kept as is",
        "a row that is not an object, dropped",
        "unknown item type 'dream', kept as is",
    ]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([STARTED, ENDED], "contains no messages: no item comes from the agent"),
        ([{"type": "turn.failed", "error": {"message": "no tokens"}}], "contains no messages: no tokens"),
        ([item("completed", "i", "agent_message", text=1)], r"\[0\].item.text: expected a string, found 1"),
    ],
)
def test_a_stream_that_cannot_be_read_says_why(rows, problem):
    with pytest.raises(TraceError, match=problem):
        trace(*rows)


@pytest.mark.parametrize("value", [STARTED, STREAM, ENDED, STREAM[2:]])
def test_events_are_recognized(value):
    assert detect(value).name == "codex-exec"


def test_whatever_is_wrong_is_a_trace_error(crashes):
    assert crashes(READER, STREAM) == []


def test_sub_agents_that_the_stream_does_not_hold_are_told():
    spawning = {"type": "collab_tool_call", "tool": "spawn_agent", "status": "completed", "receiver_thread_ids": ["b"]}
    rows = [
        {"type": "thread.started", "thread_id": "a"},
        *({"type": kind, "item": {"id": "i", **spawning}} for kind in ("item.started", "item.completed")),
    ]
    [warning] = [warning for warning in READER.sample(rows, 0).trace.warnings if warning.path == "children"]
    assert warning.message == "sub-agents whose conversations are not in the recording, found 1: b"

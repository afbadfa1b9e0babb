"""Sessions of the Codex CLI."""

import json
from datetime import UTC, datetime

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.codex import CodexReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, ReasoningPart, TextPart, ToolCall, Usage

READER = CodexReader()


def row(kind: str, second: int = 0, /, **payload: object) -> dict:
    return {"timestamp": f"2025-10-29T00:59:{second:02}.000Z", "type": kind, "payload": payload}


def item(second: int = 0, /, **payload: object) -> dict:
    return row("response_item", second, **payload)


def said(role: str, text: str, second: int = 0) -> dict:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, type="message", role=role, content=[{"type": kind, "text": text}])


def tokens(total: int, last: int, second: int = 0) -> dict:
    info = {
        "total_token_usage": {"input_tokens": total, "cached_input_tokens": 2, "output_tokens": 5},
        "last_token_usage": {"input_tokens": last, "reasoning_output_tokens": 3, "total_tokens": last},
    }
    return row("event_msg", second, type="token_count", info=info, rate_limits={"primary": None})


META = row(
    "session_meta",
    0,
    id="019a",
    timestamp="2025-10-29T00:59:00.000Z",
    cwd="/w",
    cli_version="0.46.0",
    base_instructions={"text": "You are Codex"},
    dynamic_tools=[{"name": "look", "description": "d", "inputSchema": {}}],
)
SESSION = [
    META,
    said("developer", "<permissions instructions>"),
    said("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
    row("turn_context", 1, cwd="/w", model="gpt-5-codex", effort="high"),
    said("user", "List the files", 2),
    row("event_msg", 2, type="user_message", message="List the files", kind="plain"),
    row("event_msg", 3, type="agent_reasoning", text="**Listing**"),
    item(3, type="reasoning", summary=[{"type": "summary_text", "text": "**Listing**"}], encrypted_content="gAAA"),
    item(4, type="function_call", name="shell", arguments='{"command":["ls"]}', call_id="call_1"),
    item(4, type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="call_2", status="completed"),
    tokens(10, 10, 4),
    tokens(10, 10, 4),
    row("event_msg", 5, type="exec_command_end", call_id="call_1", exit_code=1, stdout=""),
    row("event_msg", 5, type="patch_apply_end", call_id="call_2", success=True),
    item(5, type="function_call_output", call_id="call_1", output="no such directory"),
    item(6, type="custom_tool_call_output", call_id="call_2", output="Success"),
    said("assistant", "Done", 7),
    row("event_msg", 7, type="agent_message", message="Done"),
    tokens(30, 20, 8),
    row("event_msg", 9, type="task_complete", last_agent_message="Done"),
]


def trace(*rows: object):
    return READER.sample(list(rows), 0).trace


def test_a_session_in_lines_is_one_conversation(tmp_path):
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join(map(json.dumps, SESSION)))
    [sample] = read(path, on_error="raise")
    session = sample.trace
    assert (sample.id, session.source.format, len(session.tools)) == ("019a", "codex", 1)
    assert [(message.role, message.text) for message in session.messages] == [
        ("system", "You are Codex"),
        ("developer", "<permissions instructions>"),
        ("developer", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        ("user", "List the files"),
        ("assistant", ""),
        ("tool", "no such directory"),
        ("tool", "Success"),
        ("assistant", "Done"),
    ]
    working, failed, fine, done = session.messages[4:]
    assert working == AIMessage(
        [ReasoningPart("**Listing**", extra={"encrypted_content": "gAAA"})],
        model="gpt-5-codex",
        timestamp=datetime(2025, 10, 29, 0, 59, 3, tzinfo=UTC),
        usage=Usage(input_tokens=10, reasoning_tokens=3, extra={"total_tokens": 10}),
        tool_calls=[
            ToolCall("shell", {"command": ["ls"]}, id="call_1", extra={"timestamp": "2025-10-29T00:59:04.000Z"}),
            ToolCall(
                "apply_patch",
                {"input": "*** Begin Patch"},
                id="call_2",
                extra={"type": "custom_tool_call", "status": "completed", "timestamp": "2025-10-29T00:59:04.000Z"},
            ),
        ],
    )
    assert (failed.is_error, fine.is_error) == (True, False)
    assert done.usage == Usage(input_tokens=20, reasoning_tokens=3, extra={"total_tokens": 20})
    assert session.usage == Usage(input_tokens=30, output_tokens=5, cached_tokens=2)
    assert (session.started_at.second, session.ended_at.second) == (0, 9)
    [warning] = session.warnings
    assert warning.message == "9 events that repeat items or count tokens, dropped"


@pytest.mark.parametrize(
    ("rows", "counts", "told"),
    [
        ("user count reasoning call output count reply user count reply", [1, 2, 3], 0),
        ("user reasoning call count output reply count", [1, 2], 0),
        ("user call output count reply count", [1, 2], 0),
        ("user count", [], 1),
        ("user count count reply", [2], 1),
    ],
)
def test_a_count_of_tokens_is_that_of_the_reply_beside_it(rows, counts, told):
    """Older versions write it before the items of the reply, newer versions after its call or result."""
    known = {
        "user": said("user", "a"),
        "reply": said("assistant", "b"),
        "reasoning": item(type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        "call": item(type="function_call", name="shell", arguments="{}", call_id="c"),
        "output": item(type="function_call_output", call_id="c", output="x"),
    }
    number = iter(range(1, 9))
    made = trace(*(tokens(at := next(number), at) if one == "count" else known[one] for one in rows.split()))
    replies = [message for message in made.messages if message.role == "assistant"]
    assert [reply.usage.input_tokens for reply in replies] == counts
    found = [warning.message for warning in made.warnings if "to no reply" in warning.message]
    assert found == [f"{told} token counts belong to no reply in this file"] * bool(told)


def test_what_the_user_typed_is_read_from_events_where_no_item_has_it():
    """Some versions write no items for the user's messages."""
    typed = row("event_msg", type="user_message", message="Hi")
    made = trace(META, typed, said("assistant", "Hello"), typed)
    assert [message.role for message in made.messages] == ["system", "user", "assistant", "user"]
    assert made.warnings == ()


def test_turns_that_the_user_took_back_are_left_out():
    back = row("event_msg", type="thread_rolled_back", num_turns=1)
    made = trace(said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d"), back)
    assert [message.text for message in made.messages] == ["a", "b"]
    [warning] = made.warnings
    assert (warning.message, warning.path) == ("2 messages of 1 turns that the user undid, dropped", "[4].payload")


@pytest.mark.parametrize(
    ("turns", "left"), [([1], "ab"), ([2], "a"), ([1, 1], "a"), ([9], ""), ([0], "abc"), ([-1], "abc")]
)
def test_as_many_turns_are_left_out_as_were_taken_back(turns, left):
    back = [row("event_msg", type="thread_rolled_back", num_turns=number) for number in turns]
    made = trace(*(said("user", text) for text in "abc"), *back, said("user", "z"))
    assert "".join(message.text for message in made.messages) == left + "z"


def test_a_compacted_history_stays_whole_and_the_summary_is_kept():
    made = trace(said("user", "a"), row("compacted", message="a summary"), said("user", "b"))
    assert [message.text for message in made.messages] == ["a", "b"]
    assert made.extra["rows"][0]["payload"]["message"] == "a summary"
    assert "summary replaced the history" in made.warnings[0].message


@pytest.mark.parametrize(
    ("ending", "termination"),
    [
        ([row("event_msg", type="turn_aborted", reason="interrupted")], "interrupted"),
        ([row("event_msg", type="error", message="limit reached")], "limit reached"),
        ([row("event_msg", type="turn_aborted", reason="interrupted"), said("user", "go on")], None),
    ],
)
def test_how_a_session_ended(ending, termination):
    assert trace(said("user", "a"), *ending).termination == termination


def test_the_log_of_a_fork_is_named_by_its_own_head():
    parent = row("session_meta", id="parent", instructions="old")
    sample = READER.sample([META, parent, said("user", "a")], 0)
    assert sample.id == "019a"
    assert [message.text for message in sample.trace.messages] == ["You are Codex", "a"]
    assert sample.trace.extra["rows"][1]["payload"] == {"id": "parent", "instructions": "old"}


def test_messages_that_codex_itself_wrote_are_told_from_those_that_only_begin_so():
    both = item(
        type="message",
        role="user",
        content=[
            {"type": "input_text", "text": "# AGENTS.md instructions for /w"},
            {"type": "input_text", "text": "<environment_context>"},
        ],
    )
    mixed = item(
        type="message", role="user", content=[*both["payload"]["content"], {"type": "input_text", "text": "x"}]
    )
    first, second = trace(both, mixed).messages
    assert (first.role, first.metadata) == ("developer", {"role": "user"})
    assert first.content == (TextPart("# AGENTS.md instructions for /w"), TextPart("<environment_context>"))
    assert second.role == "user"


def test_tools_of_another_kind_are_told():
    [warning] = trace(row("session_meta", id="x", dynamic_tools=[5]), said("user", "a")).warnings
    assert warning.path == "[0].payload.dynamic_tools"


@pytest.mark.parametrize(("code", "is_error"), [(0, False), (127, True), (-1, True)])
def test_a_command_failed_if_it_ended_with_any_code_but_0(code, is_error):
    made = trace(
        said("user", "a"),
        item(type="function_call", name="shell", arguments="{}", call_id="1"),
        row("event_msg", type="exec_command_end", call_id="1", exit_code=code),
        item(type="function_call_output", call_id="1", output="x"),
    )
    assert made.messages[-1].is_error is is_error


def test_snapshots_of_the_files_are_no_messages():
    made = trace(said("user", "a"), item(type="ghost_snapshot", ghost_commit={"id": "x"}))
    assert len(made.messages) == 1
    assert made.extra["rows"][0]["ghost_commit"] == {"id": "x"}


def test_rows_that_are_no_objects_are_told():
    made = trace(said("user", "a"), 42, "x")
    assert [warning.path for warning in made.warnings] == ["[1]", "[2]"]


@pytest.mark.parametrize("rows", [[], [META | {"payload": {"id": "1"}}], [42]])
def test_a_session_without_messages_is_refused(rows):
    with pytest.raises(TraceError, match="contains no messages"):
        READER.sample(rows, 0)


@pytest.mark.parametrize("document", [SESSION, SESSION[4], SESSION[5:], META])
def test_any_row_tells_the_format(document):
    assert detect(document).name == "codex"


@pytest.mark.parametrize("unknown", [row("dream", text="sheep"), {"type": "event_msg"}])
def test_a_row_of_an_unknown_kind_is_kept_and_told(unknown):
    made = trace(META, said("user", "a"), unknown)
    assert [(warning.path, warning.message) for warning in made.warnings] == [
        ("[2]", f"unreadable row of type {unknown['type']}, kept in extra")
    ]
    assert unknown in made.extra["rows"]


def header(identity: str, parent: str | None = None, **spawn: object) -> dict:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, **spawn}}}
    return row("session_meta", 0, id=identity, cwd="/w", source="cli" if parent is None else spawned)


def calls(identity: str, name: str, second: int = 0, /, **arguments: object) -> dict:
    return item(second, type="function_call", name=name, call_id=identity, arguments=json.dumps(arguments))


def result(identity: str, output: object, second: int = 0) -> dict:
    text = output if isinstance(output, str) else json.dumps(output)
    return item(second, type="function_call_output", call_id=identity, output=text)


def of_file(name: str, *rows: dict, problem: str | None = None) -> dict:
    return {"sub_agent_file": name, "rows": list(rows), "meta": None, "problem": problem}


def parent(output: object, *more: dict) -> list[dict]:
    return [
        header("a"),
        said("user", "go"),
        calls("c1", "spawn_agent", message="look"),
        result("c1", output),
        *more,
        said("assistant", "done"),
    ]


CHILD = [said("user", "look"), calls("c1", "glob"), result("c1", "a.py"), said("assistant", "One file.")]


def placed(*rows: object) -> list:
    return [(call.message, call.call.name, call.agent) for call in trace(*rows).tool_calls()]


@pytest.mark.parametrize(
    "log",
    [
        parent({"agent_id": "b", "nickname": "Boole"}),
        parent({"task_name": "/root/look"}),
        parent({"task_name": "look"}),
        parent(
            "spawned", row("event_msg", type="sub_agent_activity", event_id="c1", agent_thread_id="b", kind="started")
        ),
        parent("spawned", row("event_msg", type="collab_agent_spawn_end", call_id="c1", new_thread_id="b")),
        parent("spawned"),
    ],
    ids=["id", "path", "name", "activity", "event", "prompt"],
)
def test_the_log_of_a_sub_agent_is_a_child_of_the_call_that_started_it(log):
    child = of_file("rollout-b.jsonl", header("b", "a", agent_path="/root/look", agent_role="explorer"), *CHILD)
    assert placed(*log, child) == [(2, "spawn_agent", None), ("2.1.2", "glob", "explorer")]
    told = [warning.message for warning in trace(*log, child).warnings]
    assert told == []


def test_sub_agents_of_sub_agents_are_their_children_even_if_no_call_names_them():
    middle = [said("user", "look"), calls("b1", "spawn_agent", message="x"), result("b1", {"agent_id": "c"})]
    logs = [
        of_file("rollout-b.jsonl", header("b", "a"), *middle),
        of_file("rollout-c.jsonl", header("c", "b"), *CHILD[1:]),
        of_file("rollout-d.jsonl", header("d", "c"), calls("d1", "glob")),
    ]
    found = trace(*parent({"agent_id": "b"}), *logs)
    assert [(call.message, call.call.name) for call in found.tool_calls()] == [
        (2, "spawn_agent"),
        ("2.1.2", "spawn_agent"),
        ("2.1.2.1.1", "glob"),
        ("2.1.2.1.0.1.1", "glob"),
    ]
    assert [warning.message for warning in found.warnings] == [
        "sub-agents that no call in the recording started, found 1: rollout-d.jsonl"
    ]


@pytest.mark.parametrize("shared", ["calls", "messages"])
def test_what_a_sub_agent_got_of_its_parent_counts_once(shared):
    log = parent({"agent_id": "b"})
    copied = log if shared == "calls" else [log[0], log[1]]
    started = [result("c1", "You are the new agent")] if shared == "calls" else []
    found = trace(*log[:-1], of_file("rollout-b.jsonl", header("b", "a"), *copied[:-1], *started, *CHILD))
    if shared == "messages":
        found = trace(*log, of_file("rollout-b.jsonl", header("b", "a"), *copied, *CHILD))
    [child] = found.children
    assert [message.text for message in child.messages] == ["look", "", "a.py", "One file."]
    [warning] = found.warnings
    assert warning.message.endswith("rows that a sub-agent got from its parent, read once")


def test_a_sub_agent_that_was_not_recorded_is_told():
    found = trace(*parent({"agent_id": "b"}))
    assert [(warning.message, warning.path) for warning in found.warnings] == [
        ("sub-agents whose conversations are not in the recording, found 1: b", "children")
    ]
    assert trace(*parent("Agent depth limit reached. Solve the task yourself.")).warnings == ()
    broken = trace(*parent({"agent_id": "b"}), of_file("rollout-b.jsonl", header("b", "a"), problem="not JSON"))
    assert broken.warnings[0].message == "files of sub-agents that cannot be read, found rollout-b.jsonl: not JSON"


def test_a_folder_or_a_session_holds_its_sub_agents(tmp_path):
    logs = {
        "rollout-2026-01-01T00-00-00-a.jsonl": parent({"agent_id": "b"}),
        "rollout-2026-01-01T00-00-01-b.jsonl": [header("b", "a"), *CHILD],
        "rollout-2026-01-01T00-00-02-c.jsonl": [header("c", "b"), said("user", "more"), calls("e1", "grep")],
        "rollout-2026-01-01T00-00-03-d.jsonl": [header("d", "gone"), *CHILD],
    }
    for name, rows in logs.items():
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    first, second, *_ = (tmp_path / name for name in logs)
    sizes = {sample.id: len(sample.trace.tool_calls()) for sample in read(tmp_path, on_error="raise")}
    assert sizes == {"a": 3, "d": 1}
    [sample] = read(first, on_error="raise")
    assert (sample.id, len(sample.trace.tool_calls())) == ("a", 3)
    [sample] = read(second, on_error="raise")
    assert (sample.id, len(sample.trace.tool_calls())) == ("b", 2)


def test_nothing_but_repeating_events_is_forgotten_and_nothing_crashes(forgotten, crashes, intact):
    events = tuple(f"[{index}]." for index, one in enumerate(SESSION) if one["type"] == "event_msg")
    assert [index for index in forgotten(READER, SESSION) if not index.startswith(events)] == []
    assert crashes(READER, SESSION) == []
    intact(READER, [*parent({"agent_id": "b"}), of_file("rollout-b.jsonl", header("b", "a"), *CHILD)])

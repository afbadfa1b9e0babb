"""Sessions of Claude Code."""

import json
from datetime import UTC, datetime

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.claude_code import ClaudeCodeReader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, ReasoningPart, TextPart, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import ToolDefinition

READER = ClaudeCodeReader()
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def row(kind: str, uuid: str | None, parent: str | None, message: object, **fields: object) -> dict:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **fields}


def user(uuid: str | None, parent: str | None, content: object, **fields: object) -> dict:
    return row("user", uuid, parent, {"role": "user", "content": content}, **fields)


def says(uuid: str | None, parent: str | None, reply: str, *blocks: object, **fields: object) -> dict:
    message = {"id": reply, "type": "message", "role": "assistant", "model": "claude", "content": [*blocks]}
    return row("assistant", uuid, parent, {**message, **fields}, requestId="req_" + reply)


def text(text: str) -> dict:
    return {"type": "text", "text": text}


def call(identity: str, name: str = "Bash", **arguments: object) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def answers(uuid: str | None, parent: str | None, identity: str, output: str = "ok", **fields: object) -> dict:
    return user(uuid, parent, [{"type": "tool_result", "tool_use_id": identity, "content": output}], **fields)


def trace_of(*rows: object):
    [record] = READER.records([*rows])
    return READER.sample(record, 0).trace


def outline(trace) -> list:
    """Return who said what, with the ids of calls and of the calls that results answer."""
    return [
        (
            message.role,
            message.text,
            *(call.id for call in getattr(message, "tool_calls", ())),
            *([message.tool_call_id] if message.role == "tool" else []),
        )
        for message in trace.messages
    ]


def test_rows_of_one_reply_are_one_message_whose_usage_counts_once():
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4}
    trace = trace_of(
        user("u1", None, "fix it", cwd="/p", version="2", timestamp="2026-01-02T03:04:05Z"),
        says(
            "u2",
            "u1",
            "m1",
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            usage={**usage, "output_tokens": 1},
        ),
        says("u3", "u2", "m1", text("ok"), usage={**usage, "output_tokens": 9}),
        says("u4", "u3", "m1", call("c1"), usage={**usage, "output_tokens": 9}, stop_reason="tool_use"),
        answers("u5", "u4", "c1", cwd="/q", toolUseResult={"stdout": "ok"}, timestamp="2026-01-02T03:04:06Z"),
    )
    human, reply, result = trace.messages
    assert human == HumanMessage("fix it", id="u1", timestamp=WHEN)
    assert (reply.id, reply.model, reply.finish_reason) == ("m1", "claude", "tool_use")
    assert reply.content == (ReasoningPart("hm", extra={"signature": "S"}), TextPart("ok"))
    assert reply.tool_calls == (ToolCall("Bash", id="c1"),)
    assert reply.usage == Usage(input_tokens=7, output_tokens=9, cached_tokens=4, extra=usage)
    first = {"uuid": "u2", "parentUuid": "u1", "requestId": "req_m1"}
    assert reply.extra["rows"][0] == {**first, "message": {"usage": {"output_tokens": 1, **usage}}}
    assert result == ToolMessage(
        "ok",
        tool_call_id="c1",
        is_error=False,
        id="u5",
        timestamp=trace.ended_at,
        extra={"parentUuid": "u4", "cwd": "/q", "toolUseResult": {"stdout": "ok"}},
    )
    assert trace.metadata == {"sessionId": "s", "cwd": "/p", "version": "2"}
    assert (trace.id, trace.started_at, trace.warnings) == ("s", WHEN, ())


def test_rows_without_a_reply_id_go_by_their_request_or_stand_alone():
    def bare(uuid: str, words: str, **fields: object) -> dict:
        return row("assistant", uuid, None, {"role": "assistant", "content": [text(words)]}, **fields)

    trace = trace_of(bare("1", "a", requestId="r"), bare("2", "b", requestId="r"), bare("3", "c"), bare("4", "d"))
    assert [message.text for message in trace.messages] == ["a\nb", "c", "d"]


def test_replies_to_different_prompts_are_different_though_they_have_one_id():
    trace = trace_of(
        user("u1", None, "a"), says("a1", "u1", "m", text("b")), user("u2", "a1", "c"), says("a2", "u2", "m", text("d"))
    )
    assert [message.text for message in trace.messages] == ["a", "b", "c", "d"]


def test_parallel_calls_fork_the_tree_and_nothing_of_them_is_left_out():
    """Each result follows the row of its own call; only one of them leads on."""
    trace = trace_of(
        user("u1", None, "go"),
        says("a1", "u1", "m1", call("c1")),
        says("a2", "a1", "m1", call("c2")),
        answers("r1", "a1", "c1", "one"),
        says("a3", "a2", "m1", call("c3")),
        {"type": "progress", "uuid": "p", "parentUuid": "a3", "sessionId": "s"},
        answers("r3", "p", "c3", "three"),
        answers("r2", "a2", "c2", "two"),
        says("a4", "r2", "m2", text("done")),
    )
    assert outline(trace) == [
        ("user", "go"),
        ("assistant", "", "c1", "c2", "c3"),
        ("tool", "one", "c1"),
        ("tool", "three", "c3"),
        ("tool", "two", "c2"),
        ("assistant", "done"),
    ]
    assert [warning.message for warning in trace.warnings] == ["rows of unread types, kept in extra: 1 progress"]


def test_branches_that_were_left_are_kept_apart_and_counted():
    trace = trace_of(
        user("u1", None, "go"),
        says("a1", "u1", "m1", text("what?")),
        user("u2", "a1", "left"),
        says("a2", "u2", "m2", call("c1")),
        answers("r1", "a2", "c1"),
        user("u3", "a1", "went on"),
        says("a3", "u3", "m3", text("done")),
        user("u9", "a3", "a note", isMeta=True),
    )
    assert [message.text for message in trace.messages] == ["go", "what?", "went on", "done"]
    assert [left["uuid"] for left in trace.extra["abandoned"]] == ["u2", "a2", "r1", "u9"]
    assert [warning.message for warning in trace.warnings] == [
        "4 rows of abandoned branches, kept in extra as 'abandoned'"
    ]


def test_trees_whose_parent_is_missing_follow_in_the_order_of_the_file():
    trace = trace_of(
        user("u1", "gone", "first"),
        says("a1", "u1", "m1", text("yes")),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"},
        user("u2", "b", "So far: ...", isCompactSummary=True),
        says("a2", "u2", "m2", text("on")),
        user("u3", "lost", "next"),
        user("u4", "u4", "its own parent"),
    )
    assert [(message.role, message.text) for message in trace.messages] == [
        ("user", "first"),
        ("assistant", "yes"),
        ("system", "So far: ..."),
        ("assistant", "on"),
        ("user", "next"),
        ("user", "its own parent"),
    ]
    assert trace.warnings == ()
    assert trace.extra["rows"][0]["subtype"] == "compact_boundary"


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([user("u2", None, "q2"), says("a2", "u2", "m2", text("yes"))], ["q2", "yes"]),
        ([user("u2", None, "So far", isCompactSummary=True)], ["q1", "no", "So far"]),
        ([user("u1", None, "q1", version="2")], ["q1", "no", "q1"]),
        ([user("u2", None, "q2"), says("a2", None, "m2", text("yes"))], ["q1", "no", "q2", "yes"]),
        ([user("u2", "lost", "q2")], ["q1", "no", "q2"]),
    ],
    ids=["asked anew", "summary", "copy", "no parents", "lost parent"],
)
def test_a_first_prompt_that_was_taken_back_is_left_with_all_that_followed(rows, kept):
    trace = trace_of(user("u1", None, "q1"), says("a1", "u1", "m1", text("no")), *rows)
    assert [message.text for message in trace.messages] == kept
    assert len(trace.extra.get("abandoned", ())) == 2 * (kept[0] != "q1") == 2 * len(trace.warnings)


def test_what_the_program_wrote_in_the_users_place_is_no_turn_of_the_users():
    said = [
        ("user", "Caveat: The messages below were generated by the user while running local commands."),
        ("user", "<command-name>/model</command-name>"),
        ("user", "<local-command-stdout>Set model</local-command-stdout>"),
        ("user", "<bash-input>ls</bash-input>"),
        ("user", "<command-message>review</command-message><command-name>/review</command-name>"),
        ("meta", "You review code."),
        ("user", "thanks"),
    ]
    trace = trace_of(*(user(None, None, said, isMeta=kind == "meta") for kind, said in said))
    assert [message.role for message in trace.messages] == ["system"] * 4 + ["user", "system", "user"]


def test_copies_of_rows_count_once():
    rows = [user("u1", None, "go"), says("a1", "u1", "m1", call("c1")), answers("r1", "a1", "c1")]
    trace = trace_of(*rows, *rows, says("a2", "r1", "m2", text("done")))
    assert outline(trace) == [("user", "go"), ("assistant", "", "c1"), ("tool", "ok", "c1"), ("assistant", "done")]
    assert [warning.message for warning in trace.warnings] == ["3 duplicate rows, dropped"]


def side(agent: str | None, uuid: str, parent: str | None, fields: dict) -> dict:
    return {**fields, "uuid": uuid, "parentUuid": parent, "isSidechain": True, **({"agentId": agent} if agent else {})}


@pytest.mark.parametrize("agents", [("A", "B"), (None, None)])
def test_sub_agents_are_children_named_by_the_call_that_started_them(agents):
    first, second = agents
    trace = trace_of(
        user("u1", None, "go"),
        says("a1", "u1", "m1", call("c1", "Task", prompt="look"), call("c2", "Task", prompt="find")),
        side(second, "B1", None, user(None, None, "find")),
        side(first, "A1", None, user(None, None, "look")),
        side(first, "A2", "A1", says(None, None, "x1", call("d1"))),
        side(second, "B2", "B1", says(None, None, "y1", text("found"))),
        side(first, "A3", "A2", answers(None, None, "d1")),
        answers("r1", "a1", "c1", "seen", toolUseResult={"agentId": first}),
        answers("r2", "r1", "c2", "found", toolUseResult={"agentId": second}),
    )
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "tool"]
    assert [(child.metadata["call_id"], outline(child)) for child in trace.children] == [
        ("c2", [("user", "find"), ("assistant", "found")]),
        ("c1", [("user", "look"), ("assistant", "", "d1"), ("tool", "ok", "d1")]),
    ]
    assert [child.id for child in trace.children] == ([second, first] if first else ["B1", "A1"])


def test_a_sub_agent_that_was_not_told_the_prompt_as_it_stands_is_that_of_the_result_which_names_it():
    trace = trace_of(
        user("u1", None, "go"),
        says("a1", "u1", "m1", call("c1", "Task", prompt="look"), call("c2", "Task", prompt="find")),
        side("A", "A1", None, user(None, None, "You are asked to find")),
        answers("r1", "a1", "c1", "seen", toolUseResult={"agentId": "B"}),
        answers("r2", "r1", "c2", "found", toolUseResult={"agentId": "A"}),
    )
    assert [(child.id, child.metadata) for child in trace.children] == [("A", {"call_id": "c2"})]


def test_the_side_chain_of_a_file_of_one_sub_agent_is_told():
    trace = trace_of(side("A", "A1", None, user(None, None, "look")))
    assert trace.messages[0].extra == {"isSidechain": True}


def test_a_file_of_sub_agents_alone_holds_a_conversation_of_each():
    rows = [
        side("A", "A1", None, user(None, None, "look")),
        side("A", "A2", "A1", says(None, None, "x1", text("seen"))),
        side("B", "B1", None, user(None, None, "find")),
    ]
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(rows))]
    assert [(sample.id, outline(sample.trace)) for sample in samples] == [
        ("s#A", [("user", "look"), ("assistant", "seen")]),
        ("s#B", [("user", "find")]),
    ]


def streamed(kind: str, parent: str | None = None, **fields: object) -> dict:
    return {"type": kind, "session_id": "s", "parent_tool_use_id": parent, "uuid": fields.pop("uuid", None), **fields}


RESULT = {"usage": {"input_tokens": 5, "output_tokens": 6}, "total_cost_usd": 0.25, "num_turns": 2}
STREAM = [
    streamed("system", subtype="init", tools=["Bash", "Task"], model="claude"),
    streamed("assistant", message=says(None, None, "m1", call("c1", "Task", prompt="look"))["message"]),
    streamed("user", "c1", message={"role": "user", "content": [text("look")]}),
    streamed("assistant", "c1", message=says(None, None, "x1", text("seen"))["message"]),
    streamed("user", message=answers(None, None, "c1")["message"], tool_use_result={"agentId": "A"}),
    streamed("assistant", message=says(None, None, "m2", text("done"))["message"]),
    streamed("result", subtype="success", is_error=False, result="done", **RESULT),
]


def test_the_stream_of_the_sdk_reports_on_the_whole(no_question):
    trace = trace_of(*STREAM)
    assert outline(trace) == [("assistant", "", "c1"), ("tool", "ok", "c1"), ("assistant", "done")]
    [child] = trace.children
    assert (child.id, child.metadata, outline(child)) == (
        "c1",
        {"call_id": "c1"},
        [("user", "look"), ("assistant", "seen")],
    )
    assert trace.tools == (ToolDefinition("Bash"), ToolDefinition("Task"))
    assert trace.usage == Usage(input_tokens=5, output_tokens=6, extra={"input_tokens": 5})
    assert (trace.cost_usd, trace.termination, trace.warnings) == (0.25, "success", (no_question,))
    assert trace.extra["rows"][-1]["result"] == "done"


@pytest.mark.parametrize(
    ("ends", "termination"),
    [
        ([{"subtype": "error_max_turns", "is_error": True}], "error_max_turns"),
        ([{"subtype": "success", "is_error": True}], "error"),
        ([{"subtype": "success"}, {"subtype": "success"}], "success"),
        ([{"subtype": 5}], None),
    ],
)
def test_the_last_result_says_how_it_ended(ends, termination):
    trace = trace_of(STREAM[-2], *(streamed("result", **RESULT, **end) for end in ends))
    assert trace.termination == termination
    assert (trace.cost_usd is None) == (len(ends) > 1)


def test_each_session_of_a_file_is_a_conversation(tmp_path):
    rows = [
        {"type": "summary", "summary": "About it", "leafUuid": "x"},
        user("u1", None, "one"),
        {**user("u2", None, "two"), "sessionId": "t"},
        42,
        user("u3", "u1", "more"),
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    first, second = read(path)
    assert (first.id, [message.text for message in first.trace.messages]) == ("s", ["one", "more"])
    assert first.trace.extra["rows"] == [rows[0]]
    assert (second.id, second.trace.extra["rows"]) == ("t", [42])


def test_lines_that_cannot_be_read_are_kept_and_told():
    broken = [
        row("user", "u2", "u1", {"role": "user", "content": 5}),
        row("user", "u3", "u1", "error"),
        "x",
        [1],
        {"a": 1},
    ]
    trace = trace_of(user("u1", None, "go"), *broken, {"type": "file-history-snapshot", "snapshot": {"a": 1}})
    assert [message.text for message in trace.messages] == ["go"]
    assert [(warning.message, warning.path) for warning in trace.warnings] == [
        (
            "unreadable row, kept in extra: rows[1].message.content: expected a string or a list of blocks, found 5",
            "rows[1]",
        ),
        ("4 lines that are not rows of a session, kept in extra", "rows"),
        ("rows of unread types, kept in extra: 1 file-history-snapshot", "rows"),
    ]
    assert all(any(json.dumps(one) in json.dumps(kept) for kept in trace.extra["rows"]) for one in ("x", [1], {"a": 1}))
    assert broken[0] in trace.extra["rows"]


@pytest.mark.parametrize("role", ["user", "system", "x", None])
def test_a_reply_whose_message_is_of_another_role_is_kept_and_told(role):
    odd = says("a", "u", "r", text("Hm"))
    odd["message"]["role"] = role
    trace = trace_of(user("u", None, "Hi"), odd, says("b", "a", "s", text("Yes")))
    assert [message.text for message in trace.messages] == ["Hi", "Yes"]
    assert "unreadable row, kept in extra: " in trace.warnings[0].message
    assert trace.extra["rows"] == [odd]


def test_a_session_without_messages_is_refused():
    with pytest.raises(TraceError, match="contains no messages"):
        trace_of({"type": "summary", "summary": "About it", "leafUuid": "x"})


EXPORT = {
    "title": "About it",
    "loglines": [
        {"type": "user", "timestamp": "2026-01-02T03:04:05Z", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [text("done")]}},
    ],
}


@pytest.mark.parametrize("document", [EXPORT, [EXPORT], STREAM, STREAM[1], [5, *STREAM], user("u", None, "x")])
def test_its_rows_and_exports_are_recognized(document):
    assert detect(document).name == "claude-code"


def test_an_export_of_the_web_version_is_a_conversation():
    [record] = READER.records(EXPORT)
    sample = READER.sample(record, 3)
    assert (sample.id, sample.trace.extra) == ("3", {"title": "About it"})
    assert sample.trace.messages == (HumanMessage("go", timestamp=WHEN), AIMessage("done"))


SESSION = [
    {"type": "summary", "summary": "About it", "leafUuid": "x"},
    user("u1", None, "go", cwd="/p"),
    says("a1", "u1", "m1", text("look"), usage={"input_tokens": 1, "output_tokens": 2}, stop_reason=None),
    says("a2", "a1", "m1", call("c1", "Task", prompt="look"), usage={"input_tokens": 1, "output_tokens": 5}),
    answers("r0", "a2", "c1"),
    side("A", "A1", None, user(None, None, "look")),
    user("u2", "a2", "left"),
    answers("r1", "a2", "c1", toolUseResult={"agentId": "A", "stdout": "ok"}),
    says("a3", "r1", "m2", text("done"), stop_reason="end_turn"),
]


def test_a_side_row_without_a_parent_does_not_take_the_place_of_the_conversation():
    def reply(text: str, uuid: str, parent: str) -> dict:
        return row("assistant", uuid, parent, {"id": uuid, "role": "assistant", "content": text})

    def asked(text: str, uuid: str, parent: str | None) -> dict:
        return row("user", uuid, parent, {"role": "user", "content": text})

    rows = [
        asked("q1", "1", None),
        reply("a1", "2", "1"),
        asked("<bash-input>ls</bash-input>", "3", None),
        asked("q2", "4", "2"),
        reply("a2", "5", "4"),
    ]
    (record,) = READER.records(rows)
    texts = [message.text for message in READER.sample(record, 0).trace.messages]
    assert [text for text in texts if "bash" not in text] == ["q1", "a1", "q2", "a2"]


def test_an_empty_result_makes_no_warning():
    """Fields of the row, such as the session's slug, are not taken for its text."""
    trace = trace_of(
        user("u1", None, "go"),
        says("a1", "u1", "m1", call("c1")),
        answers("r1", "a1", "c1", "", toolUseResult={"stdout": ""}, slug="radiant-music", sourceToolAssistantUUID="a1"),
    )
    assert trace.messages[-1].text == ""
    assert trace.messages[-1].extra["slug"] == "radiant-music"
    assert trace.warnings == ()


def of_file(name: str, *rows: dict, **fields: object) -> dict:
    """The record of a sub-agent's file, as it comes with the rows of its session."""
    return {"sub_agent_file": name, "rows": list(rows), "meta": None, "problem": None, **fields}


def progress(agent: str, parent: str, message: dict, **fields: object) -> dict:
    data = {"type": "agent_progress", "agentId": agent, "prompt": "look", "message": message}
    return {
        "type": "progress",
        "sessionId": "s",
        "uuid": f"p{agent}",
        "parentToolUseID": parent,
        "data": data,
        **fields,
    }


def unread(*names: str) -> str:
    return f"sub-agents whose conversations are not in the recording, found {len(names)}: {', '.join(names)}"


DELEGATION = [
    user("u1", None, "go"),
    says("a1", "u1", "m1", call("c1", "Task", prompt="look", subagent_type="Explore")),
    answers("r1", "a1", "c1", "seen", toolUseResult={"agentId": "A", "status": "completed"}),
    says("a2", "r1", "m2", text("done")),
]
LOOKING = [
    side("A", "A1", None, user(None, None, "look")),
    side("A", "A2", "A1", says(None, None, "x1", call("d1", "Glob"))),
    side("A", "A3", "A2", answers(None, None, "d1", "a.py")),
    side("A", "A4", "A3", says(None, None, "x2", text("seen"))),
]
LOOKED = [("user", "look"), ("assistant", "", "d1"), ("tool", "a.py", "d1"), ("assistant", "seen")]


def test_the_file_of_a_sub_agent_is_a_child_of_the_call_whose_result_names_it():
    trace = trace_of(*DELEGATION, of_file("agent-A.jsonl", *LOOKING))
    [child] = trace.children
    assert (child.id, child.metadata, outline(child)) == ("A", {"call_id": "c1", "agent": "Explore"}, LOOKED)
    assert [call.call.name for call in trace.tool_calls()] == ["Task", "Glob"]
    assert trace.warnings == ()


def test_rows_of_progress_hold_what_no_file_holds():
    rows = [*DELEGATION, *(progress("A", "c1", {**row, "isSidechain": None, "agentId": None}) for row in LOOKING)]
    trace = trace_of(*rows)
    [child] = trace.children
    assert (child.metadata["call_id"], outline(child)) == ("c1", LOOKED)
    assert trace.warnings == ()
    whole = trace_of(*rows, of_file("agent-A.jsonl", *LOOKING))
    assert [outline(child) for child in whole.children] == [LOOKED]
    assert whole.warnings == ()
    part = trace_of(*rows, of_file("agent-A.jsonl", *LOOKING[:2]))
    assert [outline(child) for child in part.children] == [LOOKED]


def test_a_sub_agent_that_was_interrupted_is_that_of_its_prompt_or_its_progress():
    rows = [user("u1", None, "go"), says("a1", "u1", "m1", call("c1", "Task", prompt="look"))]
    by_prompt = trace_of(*rows, of_file("agent-A.jsonl", *LOOKING))
    other = [side("A", "A1", None, user(None, None, "look closely")), *LOOKING[1:]]
    by_progress = trace_of(*rows, progress("A", "c1", LOOKING[1]), of_file("agent-A.jsonl", *other))
    by_metadata = trace_of(*rows, of_file("agent-A.jsonl", *other, meta={"toolUseId": "c1", "agentType": "Plan"}))
    for trace in (by_prompt, by_progress, by_metadata):
        assert [child.metadata["call_id"] for child in trace.children] == ["c1"]
        assert trace.warnings == ()
    assert by_metadata.children[0].metadata["agent"] == "Plan"
    assert by_metadata.children[0].extra == {
        "file": "agent-A.jsonl",
        "meta": {"toolUseId": "c1", "agentType": "Plan"},
    }


@pytest.mark.parametrize("named", ["in the text", "by metadata"])
def test_sub_agents_of_sub_agents_are_their_children(named):
    """Within sub-agents, the row of a result has no ``toolUseResult``."""
    outer = [
        side("A", "A1", None, user(None, None, "look")),
        side("A", "A2", "A1", says(None, None, "x1", call("d1", "Task", prompt="look deeper"))),
        side("A", "A3", "A2", answers(None, None, "d1", "agentId: B" if named == "in the text" else "found")),
    ]
    inner = [
        side("B", "B1", None, user(None, None, "You shall look deeper")),
        side("B", "B2", "B1", says(None, None, "y1", call("e1", "Glob"))),
    ]
    meta = None if named == "in the text" else {"toolUseId": "d1", "spawnDepth": 2}
    trace = trace_of(*DELEGATION, of_file("agent-B.jsonl", *inner, meta=meta), of_file("agent-A.jsonl", *outer))
    assert [(call.message, call.call.name) for call in trace.tool_calls()] == [
        (2, "Task"),
        ("2.1.2", "Task"),
        ("2.1.2.1.2", "Glob"),
    ]
    assert trace.warnings == ()


def test_a_sub_agent_that_is_resumed_is_one_child_of_its_first_call():
    trace = trace_of(
        *DELEGATION,
        says("a3", "a2", "m3", call("c2", "Task", prompt="go on", resume="A", subagent_type="Explore")),
        answers("r3", "a3", "c2", "more", toolUseResult={"agentId": "A"}),
        of_file("agent-A.jsonl", *LOOKING, side("A", "A5", None, user(None, None, "go on"))),
    )
    assert [(child.metadata["call_id"], len(child.messages)) for child in trace.children] == [("c1", 5)]
    assert trace.warnings == ()


def test_a_sub_agent_that_no_call_started_is_kept_and_told_with_its_file():
    trace = trace_of(user("u1", None, "go"), says("a1", "u1", "m1", text("done")), of_file("agent-A.jsonl", *LOOKING))
    assert [call.message for call in trace.tool_calls()] == ["0.1.2"]
    [warning] = trace.warnings
    assert warning.message == "sub-agents that no call in the recording started, found 1: agent-A.jsonl"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"toolUseResult": {"agentId": "A"}}, unread("A")),
        ({}, unread("that of call c1")),
        ({"toolUseResult": "Error: no such agent"}, None),
    ],
)
def test_a_call_whose_sub_agent_is_not_recorded_is_told(result, told):
    answer = answers("r1", "a1", "c1", "seen", **result)
    answer["message"]["content"][0]["is_error"] = told is None
    trace = trace_of(*DELEGATION[:2], answer)
    assert [warning.message for warning in trace.warnings] == ([] if told is None else [told])
    assert all(warning.path == "children" for warning in trace.warnings)


def test_what_a_sub_agent_got_of_its_parent_counts_once():
    """A fork's file begins with a copy of the session, whose rows are marked as its own."""
    copied = [{**row, "isSidechain": True, "agentId": "A"} for row in DELEGATION[:2]]
    started = side("A", "f1", "a1", answers(None, None, "c1", "You are the fork"))
    trace = trace_of(*DELEGATION, of_file("agent-A.jsonl", *copied, started, *LOOKING))
    assert [message.text for message in trace.messages] == ["go", "", "seen", "done"]
    assert [(child.metadata["call_id"], outline(child)) for child in trace.children] == [("c1", LOOKED)]
    [warning] = trace.warnings
    assert warning.message == "3 rows that a sub-agent got from its parent, read once"


def test_the_programs_own_requests_about_a_session_are_no_sub_agents():
    copied = [{**row, "isSidechain": True, "agentId": "acompact-1"} for row in DELEGATION]
    request = side("acompact-1", "q1", "a2", user(None, None, "Summarize the conversation"))
    summary = side("acompact-1", "q2", "q1", says(None, None, "q", text("It went well")))
    trace = trace_of(*DELEGATION, *LOOKING, of_file("agent-acompact-1.jsonl", *copied, request, summary))
    assert [child.id for child in trace.children] == ["A"]
    assert [warning.message for warning in trace.warnings] == [
        "4 rows that a sub-agent got from its parent, read once",
        "agent-acompact-1.jsonl: the program's own requests about the session, not read",
    ]


@pytest.mark.parametrize(
    ("rows", "problem"), [([], "contains no messages"), (LOOKING[:2], "not JSON: the text ends at column 1")]
)
def test_a_file_of_a_sub_agent_that_cannot_be_read_is_told(rows, problem):
    broken = of_file("agent-A.jsonl", *rows, problem=problem if rows else None)
    trace = trace_of(*DELEGATION, broken)
    assert trace.warnings[-2 if not rows else -1].message.startswith("files of sub-agents that cannot be read, found ")
    assert problem in str(trace.warnings)
    assert len(trace.children) == bool(rows)


def test_files_of_sub_agents_belong_to_their_session():
    other = [{**row, "sessionId": "t"} for row in DELEGATION]
    file = of_file("agent-A.jsonl", *({**row, "sessionId": "t"} for row in LOOKING))
    samples = [READER.sample(record, 0) for record in READER.records([*DELEGATION, *other, file])]
    assert [(sample.id, len(sample.trace.children)) for sample in samples] == [("s", 0), ("t", 1)]


NESTED = [*SESSION, of_file("agent-B.jsonl", *LOOKING, meta={"agentType": "Explore"}), progress("C", "c1", LOOKING[1])]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, SESSION, STREAM, EXPORT, NESTED)

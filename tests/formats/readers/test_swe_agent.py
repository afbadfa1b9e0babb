import json
import re
from datetime import UTC, datetime

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.swe_agent import SWEAgentReader
from judgekit.formats.reading import read
from judgekit.traces.message import ReasoningPart, TextPart
from judgekit.traces.recording import TraceWarning

READER = SWEAgentReader()


def row(role, content, kind, **more):
    return {"role": role, "content": content, "agent": "main", "message_type": kind, **more}


CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
FILE = {
    "environment": "swe_main",
    "trajectory": [
        {"action": "ls", "observation": "a.py", "response": "Look.", "thought": "Look.", "execution_time": 0.25,
         "state": {"working_dir": "/repo"}, "query": [{"role": "system", "content": "Solve it."}]},
    ],
    "history": [
        row("system", "Solve it.", "system_prompt"),
        row("user", "A demonstration", "demonstration", is_demo=True),
        row("user", [{"type": "text", "text": "The issue"}], "observation"),
        row("assistant", "Look.", "action", thought="Look.", action="ls", tool_calls=[CALL],
            thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        row("tool", "a.py", "observation", tool_call_ids=["call_1"]),
        {**row("assistant", "Done.\n```\nsubmit\n```", "action", thought="Done.", action="submit"), "agent": "reviewer"},
    ],
    "info": {
        "exit_status": "submitted",
        "submission": "diff --git",
        "model_stats": {"instance_cost": 0.5, "tokens_sent": 100, "tokens_received": 20, "api_calls": 2},
    },
    "replay_config": "{}",
}  # fmt: skip
MINI = {
    "trajectory_format": "mini-swe-agent-1.1",
    "instance_id": "django__1",
    "messages": [
        {"role": "user", "content": "The issue"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "extra": {
                "timestamp": 100.5,
                "response": {"model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
            },
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a.py", "extra": {"returncode": 0, "timestamp": 101.5}},
        {"role": "exit", "content": "diff --git", "extra": {"exit_status": "Submitted"}},
    ],
    "info": {"exit_status": "Submitted", "model_stats": {"instance_cost": 0.25, "api_calls": 1}},
}


def test_the_history_is_read_without_demonstrations():
    assert detect(FILE).name == "swe-agent"
    sample = READER.sample(READER.records(FILE)[0], 4)
    trace = sample.trace
    assert trace.messages == (
        SystemMessage("Solve it.", extra={"agent": "main", "message_type": "system_prompt"}),
        HumanMessage("The issue", extra={"agent": "main", "message_type": "observation"}),
        AIMessage(
            [ReasoningPart("hm", extra={"type": "thinking", "signature": "s"}), TextPart("Look.")],
            agent="main",
            tool_calls=[ToolCall("bash", {"command": "ls"}, id="call_1")],
            extra={"message_type": "action", "thought": "Look.", "action": "ls"},
        ),
        ToolMessage("a.py", tool_call_id="call_1", extra={"agent": "main", "message_type": "observation"}),
        AIMessage(
            "Done.\n```\nsubmit\n```",
            agent="reviewer",
            extra={"message_type": "action", "thought": "Done.", "action": "submit"},
        ),
    )
    assert (sample.id, trace.termination, trace.cost_usd) == ("4", "submitted", 0.5)
    assert trace.usage == Usage(input_tokens=100, output_tokens=20)
    assert trace.warnings == (
        TraceWarning("a demonstration, not part of the conversation, dropped", path="history[1]"),
        TraceWarning("the steps' queries repeat the history and are dropped", path="trajectory"),
    )
    assert trace.extra["info"] == {"submission": "diff --git", "model_stats": {"api_calls": 2}}
    assert trace.extra["trajectory"][0]["execution_time"] == 0.25


def test_a_trajectory_of_mini_swe_agent_is_read():
    assert detect(MINI).name == "swe-agent"
    sample = READER.sample(READER.records(MINI)[0], 0)
    assert [message.role for message in sample.trace.messages] == ["user", "assistant", "tool"]
    said = sample.trace.messages[1]
    assert (said.model, said.usage) == ("m", Usage(input_tokens=3, output_tokens=2))
    assert said.timestamp == datetime.fromtimestamp(100.5, UTC)
    assert (sample.id, sample.trace.termination, sample.trace.cost_usd) == ("django__1", "Submitted", 0.25)
    assert sample.trace.extra["messages"][3] == MINI["messages"][3]
    assert [one.path for one in sample.trace.warnings] == ["messages"]  # the exit status is not read


@pytest.mark.parametrize(
    "document",
    [{"history": FILE["history"]}, {"history": [{"role": "user", "content": "x"}], "trajectory": []}, [FILE, MINI]],
)
def test_parts_of_a_file_and_lists_are_recognized(document):
    assert detect(document).name == "swe-agent"
    assert all(READER.sample(record, 0).trace.messages for record in READER.records(document))


def test_several_results_in_one_row_stay_unpaired_and_are_told():
    history = [*FILE["history"][:5], row("tool", "x", "observation", tool_call_ids=["a", "b"])]
    trace = READER.sample({"history": history}, 0).trace
    assert trace.messages[-1].extra["tool_call_ids"] == ["a", "b"]
    assert trace.warnings[-1].message == "a tool result that answers no earlier call"


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"history": [row("martian", "x", "action")]}, "history[0].role: expected one of system"),
        ({"history": [row("user", 5, "observation")]}, "history[0].content: expected a string or a list"),
        ({"history": [row("user", "x", "demonstration", is_demo=True)]}, "contains no messages"),
        ({"history": "x"}, "history: expected a list"),
    ],
)
def test_an_error_says_where_and_what_was_found(record, found):
    with pytest.raises(TraceError, match=re.escape(found)):
        READER.sample(record, 0)


def test_files_of_the_agent_are_read_by_name_and_in_folders(tmp_path):
    path = tmp_path / "django.traj"
    path.write_text(json.dumps(FILE), encoding="utf-8")
    (named,), (found,) = read(path), read(tmp_path)
    assert named == found
    assert named.trace.source.format == "swe-agent"


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, FILE, MINI)
